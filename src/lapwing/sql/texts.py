"""Functions of text and LIKE, as public look-ups; on text without declared values only LIKE 'start%' and comparisons are possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from lapwing.kernel.domains import Kind, TextDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql import text_values
from lapwing.sql.functions import INTEGER_BITS, REALS, cast, type_name
from lapwing.sql.lookups import TEXT_CHARACTERS_MAX, Lookup, Result, emit, joined, lookup_of, mapped, too_much
from lapwing.sql.reader import Reader
from lapwing.sql.scalars import Handler, Scalars, Typed, function


@dataclass(frozen=True, slots=True)
class TextFunction:
    """A function from text to text: how it becomes a table, and the names it may be called by."""

    read: Callable[[Scalars, Reader], Lookup]
    names: frozenset[str] = frozenset()

    def handler(self) -> Handler:
        """The handler for where an expression is wanted."""
        return Handler(lambda scalars, reader: emit(scalars, reader.node, self.read(scalars, reader), Kind.TEXT), self.names)


def lookup(scalars: Scalars, node: exp.Expr) -> Lookup:
    """The table of a text expression: nested functions of text become one table."""
    found = _TEXT.get(type(node))
    if found is None:
        return lookup_of(scalars, scalars.bind(node))
    scalars.check_name(node, found.names)
    with scalars.session.reading(node) as reader:
        return found.read(scalars, reader)


def _integer(scalars: Scalars, node: exp.Expr) -> int:
    found = scalars.bind(node).expression
    if isinstance(found, Literal) and isinstance(found.value, int) and found.kind is Kind.INTEGER and abs(found.value) < 2**31:
        return found.value
    raise scalars.session.refuse("wrong-arguments", "a whole number is needed here", node=node)


def _constant(scalars: Scalars, node: exp.Expr) -> str:
    found = scalars.bind(node).expression
    if isinstance(found, Literal) and isinstance(found.value, str):
        return found.value
    raise scalars.session.refuse("wrong-arguments", "a text constant is needed here", node=node)


# -- from text to text ---------------------------------------------------------------------------------------------------------------------


def _one(change: Callable[[str], str], *names: str) -> TextFunction:
    def read(scalars: Scalars, reader: Reader) -> Lookup:
        return mapped(scalars, reader.node, lookup(scalars, reader.node_of("this")), change)

    return TextFunction(read, frozenset(names))


def _paren(scalars: Scalars, reader: Reader) -> Lookup:
    return lookup(scalars, reader.node_of("this"))


def _substring(scalars: Scalars, reader: Reader) -> Lookup:
    found, start, length = lookup(scalars, reader.node_of("this")), reader.node_of("start"), reader.optional("length")
    first, count = _integer(scalars, start), None if length is None else _integer(scalars, length)
    return mapped(scalars, reader.node, found, lambda text: text_values.substring(text, first, count))


def _end(take: Callable[[str, int], str], *names: str) -> TextFunction:
    def read(scalars: Scalars, reader: Reader) -> Lookup:
        found, count = lookup(scalars, reader.node_of("this")), _integer(scalars, reader.node_of("expression"))
        return mapped(scalars, reader.node, found, lambda text: take(text, count))

    return TextFunction(read, frozenset(names))


def _trim(scalars: Scalars, reader: Reader) -> Lookup:
    position = reader.word("position").upper()
    return mapped(scalars, reader.node, lookup(scalars, reader.node_of("this")), lambda text: text_values.trimmed(text, position))


def _replace(scalars: Scalars, reader: Reader) -> Lookup:
    found = lookup(scalars, reader.node_of("this"))
    old, new = (_constant(scalars, reader.node_of(name)) for name in ("expression", "replacement"))

    def replaced(text: str) -> str:
        if not old:
            return text
        if len(text) + text.count(old) * (len(new) - len(old)) > TEXT_CHARACTERS_MAX:
            raise too_much(scalars, reader.node)
        return text.replace(old, new)

    return mapped(scalars, reader.node, found, replaced)


def _bar(scalars: Scalars, reader: Reader) -> Lookup:
    """a || b is NULL where either is."""
    reader.flag("safe")  # that other dialects would also put numbers together
    before, after = (lookup(scalars, reader.node_of(name)) for name in ("this", "expression"))
    return joined(scalars, reader.node, before, after, lambda a, b: a + b if isinstance(a, str) and isinstance(b, str) else None)


def _concat(scalars: Scalars, reader: Reader) -> Lookup:
    """CONCAT leaves NULLs out."""
    reader.flag("safe")
    if not reader.flag("coalesce"):
        raise scalars.session.refuse("sql-unsupported", "texts are put together with || or CONCAT", node=reader.node)
    whole = Lookup(None, {None: ""})
    for node in reader.many("expressions"):
        whole = joined(scalars, node, whole, lookup(scalars, node), lambda a, b: f"{a or ''}{b or ''}")
    return whole


# -- from text to something else -----------------------------------------------------------------------------------------------------------


def _length(scalars: Scalars, reader: Reader) -> Typed:
    return emit(scalars, reader.node, mapped(scalars, reader.node, lookup(scalars, reader.node_of("this")), len), Kind.INTEGER)


def _tested(test: Callable[[str, str], bool], *names: str) -> Handler:
    return function(
        lambda scalars, reader: tested(scalars, reader.node, reader.node_of("this"), reader.node_of("expression"), test), *names
    )


def tested(scalars: Scalars, node: exp.Expr, text: exp.Expr, other: exp.Expr, test: Callable[[str, str], bool]) -> Typed:
    """Whether a text starts with, ends with or contains a constant."""
    constant = _constant(scalars, other)
    undeclared = _undeclared(scalars, text) if test is str.startswith else None
    if undeclared is not None:
        return scalars.call(node, Function.STARTS_WITH, undeclared, scalars.constant(other, Literal(constant, Kind.TEXT)))
    table = mapped(scalars, node, lookup(scalars, text), lambda value: test(value, constant))
    return emit(scalars, node, table, Kind.BOOLEAN)


def _contains(text: str, other: str) -> bool:
    return other in text


def _undeclared(scalars: Scalars, node: exp.Expr) -> Typed | None:
    """Text without declared values; None for anything else."""
    if type(node) in _TEXT:
        return None
    found = scalars.bind(node)
    return found if isinstance(found.domain, TextDomain) and found.domain.values is None else None


def _like(scalars: Scalars, reader: Reader) -> Typed:
    return _liked(scalars, reader, None)


def _escape(scalars: Scalars, reader: Reader) -> Typed:
    like, character = reader.node_of("this"), reader.node_of("expression")
    escape = _constant(scalars, character)
    if type(like) is not exp.Like or len(escape) != 1:
        raise scalars.session.refuse("wrong-arguments", "ESCAPE takes one character, after LIKE", node=character)
    with scalars.session.reading(like) as inner:
        return _liked(scalars, inner, escape)


def _liked(scalars: Scalars, reader: Reader, escape: str | None) -> Typed:
    node, text, place = reader.node, reader.node_of("this"), reader.node_of("expression")
    any_case, negated, written = type(node) is exp.ILike, reader.flag("negate"), _constant(scalars, place)
    pattern = text_values.Pattern.read(text_values.lower(written) if any_case else written, escape)
    if pattern is None:
        raise scalars.session.refuse("wrong-arguments", "the pattern ends with its escape character", node=place)
    undeclared = None if any_case else _undeclared(scalars, text)
    if undeclared is not None and (pattern.is_exact or pattern.is_prefix):
        constant = scalars.constant(place, Literal("".join(pattern.parts[0]), Kind.TEXT))
        found = scalars.call(node, Function.EQUAL if pattern.is_exact else Function.STARTS_WITH, undeclared, constant)
    else:
        fits = pattern.matches
        table = mapped(scalars, node, lookup(scalars, text), lambda value: fits(text_values.lower(value) if any_case else value))
        found = emit(scalars, node, table, Kind.BOOLEAN)
    return scalars.call(node, Function.NOT, found) if negated else found


def _try_cast(scalars: Scalars, reader: Reader) -> Typed:
    """A cast that gives NULL where it fails: of text with declared values it is a look-up, of anything else a cast that cannot fail."""
    reader.flag("safe")
    wanted, inner = type_name(scalars, reader.node_of("to")), reader.node_of("this")
    if type(inner) not in _TEXT:
        found = scalars.bind(inner)
        if not isinstance(found.domain, TextDomain) or isinstance(found.expression, Literal):
            return cast(scalars, reader.node, found, wanted)
    table = lookup(scalars, inner)
    if wanted in REALS:
        table = mapped(scalars, reader.node, table, lambda text: _in_range(text_values.number(text), 2**300))
        return emit(scalars, reader.node, table, Kind.REAL)
    if wanted in INTEGER_BITS:
        limit = 2 ** (min(INTEGER_BITS[wanted], 63) - 1)
        table = mapped(scalars, reader.node, table, lambda text: _in_range(text_values.whole_number(text), limit))
        return emit(scalars, reader.node, table, Kind.INTEGER)
    raise scalars.session.refuse("cast-unsupported", "text can be cast to numbers only", node=reader.node)


def _in_range(number: Result, limit: int) -> Result:
    return number if not isinstance(number, str) and number is not None and -limit <= number < limit else None


_TEXT: dict[type[exp.Expr], TextFunction] = {
    exp.Paren: TextFunction(_paren),
    exp.Lower: _one(text_values.lower, "LOWER", "LCASE"),
    exp.Upper: _one(text_values.upper, "UPPER", "UCASE"),
    exp.Substring: TextFunction(_substring, frozenset({"SUBSTRING", "SUBSTR"})),
    exp.Left: _end(text_values.left, "LEFT"),
    exp.Right: _end(text_values.right, "RIGHT"),
    exp.Trim: TextFunction(_trim, frozenset({"TRIM", "LTRIM", "RTRIM"})),
    exp.Replace: TextFunction(_replace, frozenset({"REPLACE"})),
    exp.DPipe: TextFunction(_bar),
    exp.Concat: TextFunction(_concat, frozenset({"CONCAT"})),
}

HANDLERS: dict[type[exp.Expr], Handler] = {
    **{node: found.handler() for node, found in _TEXT.items() if node is not exp.Paren},
    exp.Length: function(_length, "LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"),
    exp.StartsWith: _tested(str.startswith, "STARTS_WITH"),
    exp.EndsWith: _tested(str.endswith, "ENDS_WITH"),
    exp.Contains: _tested(_contains, "CONTAINS"),
    exp.Like: Handler(_like),
    exp.ILike: Handler(_like),
    exp.Escape: Handler(_escape),
    exp.TryCast: Handler(_try_cast),
}
