"""MIN and MAX of text with declared values, as the least and the greatest place in the order of these values.

The declared values are public, and so is their order, by bytes. A place is a whole number: the least place of a unit is a function of its
rows, and the least place of a group is selected like that of any whole number. The result is always one of the declared values.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from lapwing.kernel.domains import Kind, TextDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.text_tables import emit, lookup_of, mapped
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Session


def in_order(session: Session, text: Typed) -> tuple[str, ...]:
    """The declared values of a text, ordered by bytes; refuse text without declared values."""
    assert isinstance(text.domain, TextDomain)
    if text.domain.values is None:
        message = "MIN and MAX of text need declared values: without them they would show the text of one row"
        hint = "GROUP BY the text with COUNT(*): values that many units share are shown; or ask the owner to declare the values"
        raise session.refuse("text-undeclared", message, node=text.node, hint=hint)
    if not text.domain.values:
        raise session.refuse("null-constant", "NULL has neither a least nor a greatest value", node=text.node)
    return tuple(sorted(set(text.domain.values)))


def place_of(scalars: Scalars, text: Typed, words: tuple[str, ...]) -> Typed:
    """The place of a text among ``words``, from 0 on; NULL stays NULL."""
    places = {word: place for place, word in enumerate(words)}
    table = mapped(scalars, text.node, lookup_of(scalars, text), lambda value: places[value])
    return emit(scalars, text.node, table, Kind.INTEGER)


def word_at(scalars: Scalars, node: exp.Expr, place: Typed, words: tuple[str, ...]) -> Typed:
    """The word at a place; NULL stays NULL."""
    branches = [(scalars.call(node, Function.IS_NULL, place), scalars.constant(node, Literal(None, Kind.TEXT)))]
    named = [scalars.constant(node, Literal(word, Kind.TEXT)) for word in words]
    for number, word in enumerate(named[:-1]):
        at = scalars.constant(node, Literal(number, Kind.INTEGER))
        branches.append((scalars.call(node, Function.EQUAL, place, at), word))
    return scalars.case(node, branches, named[-1])


def extreme(rows: Scalars, result: Scalars, value: Typed, measured: Callable[[Typed], Typed]) -> Typed:
    """The least or greatest value in some rows of a unit, as ``measured`` finds it; text is compared by its place in the order."""
    if not isinstance(value.domain, TextDomain):
        return measured(value)
    words = in_order(rows.session, value)
    return word_at(result, value.node, measured(place_of(rows, value, words)), words)
