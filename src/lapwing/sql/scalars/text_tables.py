"""Public look-ups: a function of text with declared values is a finite table, computed here and never by an engine.

The values of a declared column are public, so the table is too. It is written as a list of cases or, where the result is true or false, as
a list of values. How much text a statement may make us compute and write is limited, whatever functions it nests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Kind, TextDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars.binding import Scalars, Typed

Result: TypeAlias = str | bool | int | Fraction | None

TEXT_CHARACTERS_MAX = 4_096
"""Longest text a function may make."""
WORK_CHARACTERS_MAX = 5_000_000
"""Most text that the functions of one statement may go through."""
LISTED_CHARACTERS_MAX = 300_000
"""Most text that the look-ups of one statement may list: what is rendered from them must fit an engine's statement."""
CASES_MAX = 1_000
"""Most different results of one look-up."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A table from the values of ``base`` (None stands for NULL) to results; without a base, the one entry of None is a constant."""

    base: Typed | None
    table: Mapping[str | None, Result]


def lookup_of(scalars: Scalars, text: Typed) -> Lookup:
    """Text with known values as a table of itself, or refuse."""
    if isinstance(text.expression, Literal) and (text.is_null or isinstance(text.expression.value, str)):
        constant = text.expression.value
        return Lookup(None, {None: constant if isinstance(constant, str) else None})
    if not isinstance(text.domain, TextDomain):
        raise scalars.session.refuse("type-mismatch", f"text is needed here, not a {text.kind.value}", node=text.node)
    if text.domain.values is None:
        hint = "only comparisons and LIKE 'start%' work on it; the owner can declare the values of the column"
        raise scalars.session.refuse("text-undeclared", "the values of this text are not declared", node=text.node, hint=hint)
    if not text.domain.values:
        raise scalars.session.refuse("text-undeclared", "this text has no values", node=text.node)
    table: dict[str | None, Result] = {value: value for value in text.domain.values}
    if text.domain.nullable:
        table[None] = None
    return Lookup(text, table)


def mapped(scalars: Scalars, node: exp.Expr, lookup: Lookup, function: Callable[[str], Result]) -> Lookup:
    """The function applied to each text; NULL stays NULL."""
    return _each(scalars, node, lookup, lambda _, result: function(result) if isinstance(result, str) else None)


def joined(scalars: Scalars, node: exp.Expr, left: Lookup, right: Lookup, function: Callable[[Result, Result], Result]) -> Lookup:
    """Two tables as one, when one of them is constant or both are of the same text."""
    if right.base is None:
        return _each(scalars, node, left, lambda _, result: function(result, right.table[None]))
    if left.base is None:
        return _each(scalars, node, right, lambda _, result: function(left.table[None], result))
    if left.base.expression != right.base.expression:
        hint = "group by both columns instead"
        raise scalars.session.refuse("text-several", "text of two columns cannot be put together", node=node, hint=hint)
    return _each(scalars, node, left, lambda value, result: function(result, right.table[value]))


def _each(scalars: Scalars, node: exp.Expr, lookup: Lookup, function: Callable[[str | None, Result], Result]) -> Lookup:
    scalars.session.lookup_work += sum(len(result) + 1 if isinstance(result, str) else 1 for result in lookup.table.values())
    if scalars.session.lookup_work > WORK_CHARACTERS_MAX:
        raise too_much(scalars, node)
    table = {value: function(value, result) for value, result in lookup.table.items()}
    if any(isinstance(result, str) and len(result) > TEXT_CHARACTERS_MAX for result in table.values()):
        raise too_much(scalars, node)
    return Lookup(lookup.base, table)


def too_much(scalars: Scalars, node: exp.Expr) -> Refused:
    """The refusal of functions of too much text."""
    hint = "compare with the few values that are meant"
    return scalars.session.refuse("statement-too-large", "the declared values are too many or too long for this", node=node, hint=hint)


def emit(scalars: Scalars, node: exp.Expr, lookup: Lookup, kind: Kind) -> Typed:
    """The table as an expression of the kernel's closed list."""
    base = lookup.base
    if base is None:
        return scalars.constant(node, Literal(lookup.table[None], kind))
    if all(value == result for value, result in lookup.table.items()):
        return base
    if all(result is None for result in lookup.table.values()):
        raise scalars.session.refuse("null-constant", "this is NULL for every declared value", node=node)
    scalars.session.lookup_listed += sum(len(value) + 3 for value in lookup.table if value is not None)
    groups: dict[Result, list[str]] = {}
    for value, result in lookup.table.items():
        if value is not None:
            groups.setdefault(result, []).append(value)
    if scalars.session.lookup_listed > LISTED_CHARACTERS_MAX or len(groups) > CASES_MAX:
        raise too_much(scalars, node)
    if kind is Kind.BOOLEAN and len(groups) == 2 and None not in groups and lookup.table.get(None) is None:
        true, false = groups[True], groups[False]
        if len(true) <= len(false):
            return _listed(scalars, node, base, true)
        return scalars.call(node, Function.NOT, _listed(scalars, node, base, false))
    return _cases(scalars, node, base, lookup, groups, kind)


def _cases(scalars: Scalars, node: exp.Expr, base: Typed, lookup: Lookup, groups: Mapping[Result, list[str]], kind: Kind) -> Typed:
    """What NULL gives, then one case for each result; the result of most values needs no list."""
    branches: list[tuple[Typed, Typed]] = []
    if None in lookup.table:
        is_null = scalars.call(node, Function.IS_NULL, base)
        branches.append((is_null, scalars.constant(node, Literal(lookup.table[None], kind))))
    commonest = max(groups, key=lambda result: len(groups[result]))
    for result, values in groups.items():
        if result != commonest:
            branches.append((_listed(scalars, node, base, values), scalars.constant(node, Literal(result, kind))))
    otherwise = scalars.constant(node, Literal(commonest, kind))
    return scalars.case(node, branches, otherwise) if branches else otherwise


def _listed(scalars: Scalars, node: exp.Expr, base: Typed, values: list[str]) -> Typed:
    options = [scalars.constant(node, Literal(value, Kind.TEXT)) for value in values]
    return scalars.call(node, Function.EQUAL if len(options) == 1 else Function.IN, base, *options)
