"""Ranges of values that follow from a statement: its conditions, and differences that cannot be negative.

The kernel derives a domain from each column on its own, so ``MAX(t) - MIN(t)`` may be negative for it, and ``x`` beyond a condition on it.
Here both are concluded. Sums are clamped to the result, which the kernel certifies as any other clamp: a mistake affects accuracy only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import DateDomain, Domain, IntegerDomain, Kind, RealDomain, TimestampDomain, bounds, is_numeric, kind_of
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, columns_of, is_null
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Filter,
    GridSum,
    JoinKind,
    PerUnit,
    Project,
    PublicJoin,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitAggregate,
    UnitAggregateKind,
    UnitJoin,
    UnitWindow,
)
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.kernel.unit_windows import unit_sum
from lapwing.kernel.window_columns import WindowColumn, WindowKind
from lapwing.statements import MIRRORED

SECOND_MICROSECONDS = 1_000_000

_Ordered: TypeAlias = IntegerDomain | RealDomain | DateDomain | TimestampDomain
_Pairs: TypeAlias = frozenset[tuple[str, str]]

_RISING = frozenset(
    {
        Function.FLOOR,
        Function.CEILING,
        Function.ROUND,
        Function.TO_REAL,
        Function.TO_INTEGER,
        Function.YEAR,
        Function.TRUNCATE_YEAR,
        Function.TRUNCATE_QUARTER,
        Function.TRUNCATE_MONTH,
        Function.TRUNCATE_WEEK,
        Function.TRUNCATE_DAY,
        Function.TRUNCATE_HOUR,
        Function.TRUNCATE_MINUTE,
        Function.DAY_NUMBER,
        Function.MICROSECONDS,
        Function.DATE_OF,
        Function.TIMESTAMP_OF,
    }
)
"""Functions of one argument that never fall where it rises."""


@dataclass(frozen=True, slots=True)
class ValueRanges:
    """What is known of the rows of a relation."""

    columns: Mapping[str, Domain]
    """Domains, by the conditions on the rows."""
    ordered: _Pairs = frozenset()
    """Pairs of columns: where both have a value, the first is at least the second."""

    def of(self, value: Expression) -> Domain:
        """The values that an expression can have in these rows."""
        match value:
            case Case(((condition, inner),), otherwise) if is_null(otherwise):  # a FILTER
                return replace(self.under(condition).of(inner), nullable=True)
            case _:
                found: dict[str, Domain] = {}
                return domain_of(self._with_differences(value, found), {**self.columns, **found})

    def under(self, condition: Expression) -> ValueRanges:
        """The same for those rows for which a condition is true."""
        columns, ordered = dict(self.columns), set(self.ordered)
        for part in _conjuncts(condition):
            match part:
                case Call(Function.GREATER | Function.GREATER_EQUAL, (Column(first), Column(second))):
                    ordered.add((first, second))
                case Call(Function.LESS | Function.LESS_EQUAL, (Column(first), Column(second))):
                    ordered.add((second, first))
                case Call(Function.EQUAL | Function.IN, (Column(name), *options)) if name in columns:
                    columns[name] = _between(columns[name], options, options)
                case Call(function, (Literal() as end, Column(name))) if function in MIRRORED and name in columns:
                    columns[name] = _compared(columns[name], MIRRORED[function], end)
                case Call(function, (Column(name), Literal() as end)) if function in MIRRORED and name in columns:
                    columns[name] = _compared(columns[name], function, end)
                case _:
                    pass
        return ValueRanges(columns, frozenset(ordered))

    def _with_differences(self, value: Expression, found: dict[str, Domain]) -> Expression:
        """The expression with a column in place of each difference of ordered columns, whose range goes to ``found``."""
        if not isinstance(value, Call):
            return value
        if value.function is Function.SUBTRACT and (width := self._difference(value)) is not None:
            name = f" {len(found)}"
            found[name] = width
            return Column(name)
        return replace(value, arguments=tuple(self._with_differences(argument, found) for argument in value.arguments))

    def _difference(self, value: Call) -> Domain | None:
        """The range of the difference of the same rising function of two ordered columns."""
        (first, second) = value.arguments
        upper, lower = _rising(first), _rising(second)
        if upper is None or lower is None or _renamed(first, upper) != _renamed(second, lower):
            return None
        if not {(upper, lower), (lower, upper)} & self.ordered:
            return None
        domain = domain_of(value, self.columns)
        most, least = (self._end(first, upper, high=True), self._end(second, lower, high=False))
        if (upper, lower) not in self.ordered:
            least, most = self._end(first, upper, high=False), self._end(second, lower, high=True)
            return _clamped(domain, least - most, Fraction(0))
        return _clamped(domain, Fraction(0), most - least)

    def _end(self, value: Expression, name: str, *, high: bool) -> Fraction:
        """The largest or least value of a rising function of a column."""
        domain = self.columns[name]
        assert isinstance(domain, _Ordered)
        end = Fraction(domain.hi if high else domain.lo)
        least, most = bounds(_mapped(value, _clamped(domain, end, end)))
        return most if high else least


def ranges_of(relation: Relation, facts: Facts) -> ValueRanges:
    """What the statement says of the values of a relation."""
    columns = shape_of(relation, facts).columns
    match relation:
        case Scan() | Union():
            return ValueRanges(columns)
        case Filter(source, predicate):
            return ranges_of(source, facts).under(predicate)
        case SemiJoin(source):
            return ranges_of(source, facts)
        case Project(source, projected):
            inner = ranges_of(source, facts)
            names = [(name, value.name) for name, value in projected if isinstance(value, Column)]
            return ValueRanges({**columns, **{name: inner.of(value) for name, value in projected}}, _renamed_pairs(inner.ordered, names))
        case PublicJoin(source):
            return _joined(columns, ranges_of(source, facts))
        case UnitJoin(left, right, _, added):
            first, second = ranges_of(left, facts), ranges_of(right, facts)
            listed = {name: second.columns[of] for name, of in added}
            both = _joined(columns, ValueRanges({**first.columns, **listed}, first.ordered | _renamed_pairs(second.ordered, added)))
            return both if relation.where is None or relation.kind is not JoinKind.INNER else both.under(relation.where)
        case UnitWindow(source, added):
            inner = ranges_of(source, facts)
            pairs = {pair for name, column in added if (pair := _neighbours(name, column)) is not None}
            return ValueRanges({**columns, **inner.columns}, inner.ordered | pairs)
        case PerUnit(source, aggregates, keys):
            inner, rows = ranges_of(source, facts), shape_of(source, facts).rows_per_unit
            listed = {name: _aggregated(aggregate, inner, rows, columns[name]) for name, aggregate in aggregates}
            return ValueRanges({**columns, **listed, **{name: inner.of(value) for name, value in keys}}, _extremes(aggregates))
        case _:
            assert_never(relation)


def within_ranges(grid: GridSum, ranges: ValueRanges) -> GridSum:
    """The sum clamped to the values that are possible."""
    domain = ranges.of(grid.value)
    if not is_numeric(domain):
        return grid
    lower, upper = bounds(domain)
    lower, upper = max(lower, grid.lower), min(upper, grid.upper)
    return replace(grid, lower=lower, upper=upper) if lower < upper else grid


def _aggregated(aggregate: UnitAggregate, inner: ValueRanges, rows: int, domain: Domain) -> Domain:
    """The range of a per-unit column."""
    if aggregate.value is None:
        return domain
    match aggregate.kind:
        case UnitAggregateKind.MIN | UnitAggregateKind.MAX:
            return inner.of(aggregate.value)
        case UnitAggregateKind.SUM:
            value = inner.of(aggregate.value)
            try:
                return unit_sum(value, rows)
            except Refused:
                return domain
        case _:
            return domain


def _extremes(aggregates: tuple[tuple[str, UnitAggregate], ...]) -> _Pairs:
    """Pairs of MAX and MIN of the same value."""
    return frozenset(
        (upper, lower)
        for upper, most in aggregates
        for lower, least in aggregates
        if most.kind is UnitAggregateKind.MAX and least.kind is UnitAggregateKind.MIN and most.value == least.value
    )


def _neighbours(name: str, column: WindowColumn) -> tuple[str, str] | None:
    """LAG and LEAD of a column by which the rows are sorted are before and after it."""
    if column.kind not in (WindowKind.LAG, WindowKind.LEAD) or not isinstance(column.value, Column):
        return None
    first = next((key for key in column.order if key.value != Call(Function.IS_NULL, (column.value,))), None)
    if first is None or first.value != column.value:
        return None
    is_earlier = (column.kind is WindowKind.LAG) != first.descending
    return (column.value.name, name) if is_earlier else (name, column.value.name)


def _joined(columns: Mapping[str, Domain], inner: ValueRanges) -> ValueRanges:
    """The columns of a join, with the ranges of its sides."""
    listed = {name: _within(domain, inner.columns[name]) if name in inner.columns else domain for name, domain in columns.items()}
    return ValueRanges(listed, inner.ordered)


def _renamed_pairs(pairs: _Pairs, names: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> _Pairs:
    """The pairs under other names: (new, old)."""
    return frozenset((upper, lower) for upper, old_upper in names for lower, old_lower in names if (old_upper, old_lower) in pairs)


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Call) and condition.function is Function.AND:
        for argument in condition.arguments:
            yield from _conjuncts(argument)
    else:
        yield condition


def _rising(value: Expression) -> str | None:
    """The column of which an expression is a function that never falls; None if it is not known to be one."""
    match value:
        case Column(name):
            return name
        case Call(Function.ADD, (Call(Function.INTEGER_DIVIDE), Call(Function.SECOND, (inner,)))) if value == _seconds(inner):
            return _rising(inner)
        case Call(Function.ADD | Function.SUBTRACT, (inner, Literal())) | Call(Function.ADD, (Literal(), inner)):
            return _rising(inner)
        case Call(Function.MULTIPLY | Function.DIVIDE | Function.INTEGER_DIVIDE, (inner, Literal(int() | Fraction() as by))) if by > 0:
            return _rising(inner)
        case Call(function, (inner,)) if function in _RISING:
            return _rising(inner)
        case _:
            return None


def _seconds(value: Expression) -> Expression:
    """Whole seconds since 1970, as DATE_DIFF computes them."""
    minutes = Call(Function.MICROSECONDS, (Call(Function.TRUNCATE_MINUTE, (value,)),))
    whole = Call(Function.INTEGER_DIVIDE, (minutes, Literal(SECOND_MICROSECONDS, Kind.INTEGER)))
    return Call(Function.ADD, (whole, Call(Function.SECOND, (value,))))


def _mapped(value: Expression, point: Domain) -> Domain:
    """The value of a rising function at a point, as a domain."""
    match value:
        case Call(Function.ADD, (Call(Function.INTEGER_DIVIDE), Call(Function.SECOND, (inner,)))) if value == _seconds(inner):
            seconds = Call(Function.INTEGER_DIVIDE, (Call(Function.MICROSECONDS, (inner,)), Literal(SECOND_MICROSECONDS, Kind.INTEGER)))
            return _mapped(seconds, point)
        case Call(Function.INTEGER_DIVIDE, (inner, Literal(int() as by))):
            domain = _mapped(inner, point)
            assert isinstance(domain, IntegerDomain)
            return replace(domain, lo=math.trunc(Fraction(domain.lo, by)), hi=math.trunc(Fraction(domain.hi, by)))
        case Call(_, arguments):
            (inner,) = (argument for argument in arguments if columns_of(argument))
            outer = replace(value, arguments=tuple(Column("at") if argument is inner else argument for argument in arguments))
            return domain_of(outer, {"at": _mapped(inner, point)})
        case _:
            return point


def _renamed(value: Expression, name: str) -> Expression:
    """The expression with its column unnamed."""
    match value:
        case Column(found) if found == name:
            return Column("")
        case Call(_, arguments):
            return replace(value, arguments=tuple(_renamed(argument, name) for argument in arguments))
        case _:
            return value


def _compared(domain: Domain, function: Function, end: Literal) -> Domain:
    """The values that a comparison with a constant leaves."""
    below = function in (Function.LESS, Function.LESS_EQUAL)
    if function in (Function.LESS, Function.GREATER) and not isinstance(domain, RealDomain) and isinstance(end.value, int):
        end = replace(end, value=end.value - 1 if below else end.value + 1)
    return _between(domain, (), (end,)) if below else _between(domain, (end,), ())


def _between(domain: Domain, least: Sequence[Expression], most: Sequence[Expression]) -> Domain:
    """The values from the least of some constants to the greatest of others, without an end where there is none or not a constant."""
    if not isinstance(domain, _Ordered):
        return domain
    ends = [[_number(option, domain) for option in options] for options in (least, most)]
    lows, highs = ([end for end in listed if end is not None] if None not in listed else [] for listed in ends)
    return _clamped(domain, min(lows, default=Fraction(domain.lo)), max(highs, default=Fraction(domain.hi)))


def _number(option: Expression, domain: _Ordered) -> Fraction | None:
    """A constant that can be compared with the values of a domain; None if it is none."""
    if not isinstance(option, Literal) or isinstance(option.value, bool) or not isinstance(option.value, int | Fraction):
        return None
    is_number = option.kind in (Kind.INTEGER, Kind.REAL)
    return Fraction(option.value) if option.kind is kind_of(domain) or (is_number and is_numeric(domain)) else None


def _clamped(domain: Domain, lo: Fraction, hi: Fraction) -> Domain:
    """The part of a domain between two ends; the whole one where nothing would be left."""
    if not isinstance(domain, _Ordered):
        return domain
    if isinstance(domain, RealDomain):
        least, most = max(domain.lo, lo), min(domain.hi, hi)
        return replace(domain, lo=least, hi=most) if least <= most else domain
    first, last = max(domain.lo, math.ceil(lo)), min(domain.hi, math.floor(hi))
    return replace(domain, lo=first, hi=last) if first <= last else domain


def _within(domain: Domain, other: Domain) -> Domain:
    """The part of a domain that lies in another of its kind."""
    if not isinstance(domain, _Ordered) or type(domain) is not type(other):
        return domain
    return _clamped(domain, Fraction(other.lo), Fraction(other.hi))
