"""Public look-ups: a function of text with declared values is a finite table, computed here and never by an engine.

The values of a declared column are public, so the table is too; for text of several columns it has a row for every combination. It is
written as a list of cases or, where the result is true or false, as a list of values. The amount of text that a statement makes us compute
and write is limited, however its functions are nested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Kind, TextDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.typed import Typed

Result: TypeAlias = str | bool | int | Fraction | None
Values: TypeAlias = tuple[str | None, ...]
"""A value of each column of a look-up; None is NULL."""

TEXT_CHARACTERS_MAX = 4_096
"""Longest text that a function may produce."""
WORK_CHARACTERS_MAX = 5_000_000
"""Most text that the functions of one statement may process."""
LISTED_CHARACTERS_MAX = 300_000
"""Most text that the look-ups of one statement may list: the SQL rendered from them must fit an engine's statement."""
CASES_MAX = 1_000
"""Most different results of one look-up."""
COMBINATIONS_MAX = 10_000
"""Most combinations of values of several columns in a look-up."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A table from tuples of values, one for each of ``bases``, to results; without bases, the one entry of () is a constant."""

    bases: tuple[Typed, ...]
    table: Mapping[Values, Result]

    @classmethod
    def constant(cls, result: Result) -> Lookup:
        """A table of one entry."""
        return cls((), {(): result})


def lookup_of(scalars: Scalars, text: Typed) -> Lookup:
    """Text with known values as a table that maps each value to itself, or refuse."""
    if isinstance(text.expression, Literal) and (text.is_null or isinstance(text.expression.value, str)):
        constant = text.expression.value
        return Lookup.constant(constant if isinstance(constant, str) else None)
    if not isinstance(text.domain, TextDomain):
        raise scalars.session.refuse("type-mismatch", f"text is needed here, not a {text.kind.value}", node=text.node)
    if text.domain.values is None:
        hint = (
            "LENGTH, LOWER, UPPER, LEFT, RIGHT, SUBSTRING, SPLIT_PART, STRPOS and LIKE work on it; or ask the owner to declare the values"
        )
        raise scalars.session.refuse("text-undeclared", "the values of this text are not declared", node=text.node, hint=hint)
    if not text.domain.values:
        raise scalars.session.refuse("text-undeclared", "this text has no values", node=text.node)
    table: dict[Values, Result] = {(value,): value for value in text.domain.values}
    if text.domain.nullable:
        table[(None,)] = None
    return Lookup((text,), table)


def mapped(scalars: Scalars, node: exp.Expr, lookup: Lookup, function: Callable[[str], Result]) -> Lookup:
    """The function applied to each text; NULL stays NULL."""
    _count_work(scalars, node, lookup)
    table = {values: function(result) if isinstance(result, str) else None for values, result in lookup.table.items()}
    return _checked(scalars, node, Lookup(lookup.bases, table))


def joined(scalars: Scalars, node: exp.Expr, left: Lookup, right: Lookup, function: Callable[[Result, Result], Result]) -> Lookup:
    """Two tables as one: shared columns have the same value in both, and all other columns are combined freely."""
    _count_work(scalars, node, left)
    _count_work(scalars, node, right)
    known = [base.expression for base in left.bases]
    shared = [(known.index(base.expression), place) for place, base in enumerate(right.bases) if base.expression in known]
    added = [place for place, base in enumerate(right.bases) if base.expression not in known]
    beside: dict[Values, list[tuple[Values, Result]]] = {}
    for values, result in right.table.items():
        beside.setdefault(tuple(values[place] for _, place in shared), []).append((tuple(values[place] for place in added), result))
    table: dict[Values, Result] = {}
    for values, result in left.table.items():
        for more, other in beside.get(tuple(values[place] for place, _ in shared), []):
            table[(*values, *more)] = function(result, other)
            if len(table) > COMBINATIONS_MAX and added and left.bases:
                raise too_much(scalars, node)
    return _checked(scalars, node, Lookup((*left.bases, *(right.bases[place] for place in added)), table))


def _count_work(scalars: Scalars, node: exp.Expr, lookup: Lookup) -> None:
    scalars.session.lookup_work += sum(len(result) + 1 if isinstance(result, str) else 1 for result in lookup.table.values())
    if scalars.session.lookup_work > WORK_CHARACTERS_MAX:
        raise too_much(scalars, node)


def _checked(scalars: Scalars, node: exp.Expr, lookup: Lookup) -> Lookup:
    if any(isinstance(result, str) and len(result) > TEXT_CHARACTERS_MAX for result in lookup.table.values()):
        raise too_much(scalars, node)
    return lookup


def too_much(scalars: Scalars, node: exp.Expr) -> Refused:
    """The refusal of functions that process too much text."""
    hint = "compare the column with the few values you need"
    return scalars.session.refuse("statement-too-large", "the declared values are too many or too long for this", node=node, hint=hint)


def emit(scalars: Scalars, node: exp.Expr, lookup: Lookup, kind: Kind) -> Typed:
    """The table as an expression of the kernel's closed list."""
    if not lookup.bases:
        return scalars.constant(node, Literal(lookup.table[()], kind))
    if all(result is None for result in lookup.table.values()):
        raise scalars.session.refuse("null-constant", "this is NULL for every declared value", node=node)
    base, inner = lookup.bases[0], lookup.bases[1:]
    if inner:
        return _by_first(scalars, node, lookup, kind)
    results = {value: result for (value,), result in lookup.table.items()}
    if all(value == result for value, result in results.items()):
        return base
    groups: dict[Result, list[str]] = {}
    for value, result in results.items():
        if value is not None:
            groups.setdefault(result, []).append(value)
    _count_listed(scalars, node, (value for value in results if value is not None), cases=len(groups))
    if kind is Kind.BOOLEAN and len(groups) == 2 and None not in groups and results.get(None) is None:
        true, false = groups[True], groups[False]
        if len(true) <= len(false):
            return _listed(scalars, node, base, true)
        return scalars.call(node, Function.NOT, _listed(scalars, node, base, false))
    constants = {result: scalars.constant(node, Literal(result, kind)) for result in (*groups, results.get(None))}
    null = constants[results[None]] if None in results else None
    return _cases(scalars, node, base, null, [(values, constants[result]) for result, values in groups.items()])


def _by_first(scalars: Scalars, node: exp.Expr, lookup: Lookup, kind: Kind) -> Typed:
    """Cases of the first column, with a table of the others in each; values with the same table share one."""
    tables: dict[str | None, dict[Values, Result]] = {}
    for (value, *rest), result in lookup.table.items():
        tables.setdefault(value, {})[tuple(rest)] = result
    alike: dict[tuple[tuple[Values, Result], ...], list[str | None]] = {}
    for value, table in tables.items():
        alike.setdefault(tuple(table.items()), []).append(value)
    _count_listed(scalars, node, (value for value in tables if value is not None), cases=len(alike))
    null: Typed | None = None
    groups: list[tuple[list[str], Typed]] = []
    for items, values in alike.items():
        table = dict(items)
        if all(result is None for result in table.values()):
            inside = scalars.constant(node, Literal(None, kind))
        else:
            inside = emit(scalars, node, Lookup(lookup.bases[1:], table), kind)
        null = inside if None in values else null
        listed = [value for value in values if value is not None]
        if listed:
            groups.append((listed, inside))
    return _cases(scalars, node, lookup.bases[0], null, groups)


def _count_listed(scalars: Scalars, node: exp.Expr, values: Iterable[str], *, cases: int) -> None:
    scalars.session.lookup_listed += sum(len(value) + 3 for value in values)
    if scalars.session.lookup_listed > LISTED_CHARACTERS_MAX or cases > CASES_MAX:
        raise too_much(scalars, node)


def _cases(scalars: Scalars, node: exp.Expr, base: Typed, null: Typed | None, groups: list[tuple[list[str], Typed]]) -> Typed:
    """The result for NULL, then one case for each result; the most common result needs no list."""
    branches: list[tuple[Typed, Typed]] = []
    if null is not None:
        branches.append((scalars.call(node, Function.IS_NULL, base), null))
    commonest = max(groups, key=lambda group: len(group[0]))
    branches += [(_listed(scalars, node, base, values), result) for values, result in groups if values is not commonest[0]]
    return scalars.case(node, branches, commonest[1]) if branches else commonest[1]


def _listed(scalars: Scalars, node: exp.Expr, base: Typed, values: list[str]) -> Typed:
    options = [scalars.constant(node, Literal(value, Kind.TEXT)) for value in values]
    return scalars.call(node, Function.EQUAL if len(options) == 1 else Function.IN, base, *options)
