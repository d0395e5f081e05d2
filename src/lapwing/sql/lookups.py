"""Public look-ups: a function of text with declared values is a finite table, computed here and never by an engine.

The values of a declared column are public, so the table is too. It is written as a list of cases or, where the result is true or false, as
a list of values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from lapwing.kernel.domains import Kind, TextDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars import Scalars, Typed

Result: TypeAlias = str | bool | int | Fraction | None

LOOKUP_CHARACTERS_MAX = 300_000
"""Most text that the look-ups of one statement may hold: what is rendered from them must fit an engine's statement."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A table from the values of ``base`` (None stands for NULL) to results; without a base, the one entry of None is a constant."""

    base: Typed | None
    table: Mapping[str | None, Result]

    def map(self, function: Callable[[str], Result]) -> Lookup:
        """The function applied to each result; NULL stays NULL."""
        return self.map_all(lambda result: function(result) if isinstance(result, str) else None)

    def map_all(self, function: Callable[[Result], Result]) -> Lookup:
        """The function applied to each result, NULL included."""
        return Lookup(self.base, {value: function(result) for value, result in self.table.items()})


def lookup_of(scalars: Scalars, found: Typed) -> Lookup:
    """Text with known values as a table of itself, or refuse."""
    if isinstance(found.expression, Literal) and (found.is_null or isinstance(found.expression.value, str)):
        constant = found.expression.value
        return Lookup(None, {None: constant if isinstance(constant, str) else None})
    if not isinstance(found.domain, TextDomain):
        raise scalars.session.refuse("type-mismatch", f"text is needed here, not a {found.kind.value}", node=found.node)
    if found.domain.values is None:
        hint = "only comparisons and LIKE 'start%' work on it; the owner can declare the values of the column"
        raise scalars.session.refuse("text-undeclared", "the values of this text are not declared", node=found.node, hint=hint)
    table: dict[str | None, Result] = {value: value for value in found.domain.values}
    if found.domain.nullable:
        table[None] = None
    return Lookup(found, table)


def joined(scalars: Scalars, left: Lookup, right: Lookup, node: exp.Expr, function: Callable[[Result, Result], Result]) -> Lookup:
    """Two tables as one, when one of them is constant or both are of the same text."""
    if right.base is None:
        return left.map_all(lambda result: function(result, right.table[None]))
    if left.base is None:
        return right.map_all(lambda result: function(left.table[None], result))
    if left.base.expression != right.base.expression:
        hint = "group by both columns instead"
        raise scalars.session.refuse("text-several", "text of two columns cannot be put together", node=node, hint=hint)
    return Lookup(left.base, {value: function(result, right.table[value]) for value, result in left.table.items()})


def emit(scalars: Scalars, node: exp.Expr, found: Lookup, kind: Kind) -> Typed:
    """The table as an expression of the kernel's closed list."""
    if found.base is None:
        return scalars.constant(node, Literal(found.table[None], kind))
    if all(value == result for value, result in found.table.items()):
        return found.base
    if all(result is None for result in found.table.values()):
        raise scalars.session.refuse("null-constant", "this is NULL for every declared value", node=node)
    _charge(scalars, node, found)
    if kind is Kind.BOOLEAN and found.table.get(None) is None and None not in [r for v, r in found.table.items() if v is not None]:
        return _membership(scalars, node, found)
    groups: dict[Result, list[str]] = {}
    for value, result in found.table.items():
        if value is not None:
            groups.setdefault(result, []).append(value)
    branches: list[tuple[Typed, Typed]] = []
    if None in found.table:
        is_null = scalars.call(node, Function.IS_NULL, found.base)
        branches.append((is_null, scalars.constant(node, Literal(found.table[None], kind))))
    if not groups:
        raise scalars.session.refuse("text-undeclared", "this text has no values", node=node)
    largest = max(groups, key=lambda result: len(groups[result]))  # the first of the largest
    for result, values in groups.items():
        if result != largest:
            branches.append((_listed(scalars, node, found.base, values), scalars.constant(node, Literal(result, kind))))
    otherwise = scalars.constant(node, Literal(largest, kind))
    if not branches:
        return otherwise
    return scalars.case(node, branches, otherwise)


def _membership(scalars: Scalars, node: exp.Expr, found: Lookup) -> Typed:
    """True, false, or NULL where the text is: a list of the values for which it is true, or false if those are fewer."""
    assert found.base is not None
    true = [value for value, result in found.table.items() if value is not None and result]
    false = [value for value, result in found.table.items() if value is not None and not result]
    if true and false:
        if len(true) <= len(false):
            return _listed(scalars, node, found.base, true)
        return scalars.call(node, Function.NOT, _listed(scalars, node, found.base, false))
    always = scalars.constant(node, Literal(bool(true), Kind.BOOLEAN))
    if None not in found.table:
        return always
    null = scalars.constant(node, Literal(None, Kind.BOOLEAN))
    return scalars.case(node, [(scalars.call(node, Function.IS_NULL, found.base), null)], always)


def _listed(scalars: Scalars, node: exp.Expr, base: Typed, values: list[str]) -> Typed:
    options = [scalars.constant(node, Literal(value, Kind.TEXT)) for value in values]
    return scalars.call(node, Function.EQUAL if len(options) == 1 else Function.IN, base, *options)


def _charge(scalars: Scalars, node: exp.Expr, found: Lookup) -> None:
    """Count the text of a look-up towards the limit of the statement."""
    scalars.session.lookup_characters += sum(len(value) + 3 for value in found.table if value is not None)
    if scalars.session.lookup_characters > LOOKUP_CHARACTERS_MAX:
        hint = "compare with the few values that are meant"
        raise scalars.session.refuse("statement-too-large", "the declared values are too many for this function", node=node, hint=hint)
