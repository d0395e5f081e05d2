"""Columns and rows per unit of every relation, derived from the plan and the facts alone.

Guarantee (both neighbour relations): for any data, a relation holds at most ``rows_per_unit`` rows of any one unit and at most
``rows_max`` rows in all, its rows lie in ``columns``, and the rows of a unit depend on that unit's rows and public tables only.
Proofs: docs/proofs/unit-local.md, docs/proofs/rows-per-unit.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar, assert_never

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.domains import (
    REAL_LIMIT,
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
    bounds,
    is_numeric,
    kind_of,
    nearest_double,
    union,
    with_null,
)
from lapwing.kernel.expressions import Call, Case, Column, Expression, Literal, is_null
from lapwing.kernel.facts import Facts
from lapwing.kernel.functions import result_domain
from lapwing.kernel.ir import (
    Filter,
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
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is publicly known of a relation. ``weighable``: each row still is one row of one prepared table, so row weights are sound."""

    columns: Mapping[str, Domain]
    rows_per_unit: int
    rows_max: int
    weighable: bool


def domain_of(expression: Expression, columns: Mapping[str, Domain]) -> Domain:
    """Domain of an expression over a relation with these columns, or refuse."""
    match expression:
        case Column(name):
            if name not in columns:
                raise Refused("unknown-column", f"there is no column {name!r} here")
            return columns[name]
        case Literal():
            return _literal_domain(expression)
        case Call(function, arguments):
            return result_domain(function, tuple(domain_of(argument, columns) for argument in arguments), arguments)
        case Case(branches, otherwise):
            if not branches:
                raise Refused("wrong-arguments", "CASE needs at least one WHEN")
            for condition, _ in branches:
                _require_boolean(domain_of(condition, columns), "a CASE condition")
            return _one_of((*(value for _, value in branches), otherwise), columns)
        case _:
            assert_never(expression)


def _one_of(values: tuple[Expression, ...], columns: Mapping[str, Domain]) -> Domain:
    """The least domain that holds all of these. The constant NULL adds NULL to the other values of its type, and nothing else."""
    nulls = [value for value in values if is_null(value)]
    result: Domain | None = None
    for value in values:
        if value not in nulls:
            domain = domain_of(value, columns)
            result = domain if result is None else union(result, domain)
    for null in nulls:
        domain = domain_of(null, columns)
        alike = result is not None and kind_of(result) is kind_of(domain)
        result = domain if result is None else with_null(result, nullable=True) if alike else union(result, domain)
    assert result is not None
    return result


def _literal_domain(literal: Literal) -> Domain:
    value, null = literal.value, literal.value is None
    match literal.kind, value:
        case Kind.BOOLEAN, (bool() | None):
            return BooleanDomain(null)
        case Kind.TEXT, (str() | None):
            if value is not None:
                _require_valid_text(value)
            return TextDomain(() if value is None else (value,), null)
        case Kind.REAL, (int() | Fraction() | None) if not isinstance(value, bool):
            number = Fraction(value or 0)
            if abs(number) > REAL_LIMIT:
                raise Refused("range-too-wide", "a real constant is too large")
            return RealDomain(nearest_double(number), nearest_double(number), null)
        case Kind.INTEGER, (int() | None) if not isinstance(value, bool):
            return result_bounds_checked(IntegerDomain(value or 0, value or 0, null))
        case Kind.DATE, (int() | None) if not isinstance(value, bool):
            return _within_calendar(DateDomain(value or 0, value or 0, null), day_length=1)
        case Kind.TIMESTAMP, (int() | None) if not isinstance(value, bool):
            return _within_calendar(TimestampDomain(value or 0, value or 0, null), day_length=calendar.DAY_MICROSECONDS)
        case _:
            raise Refused("type-mismatch", f"a constant does not fit the type {literal.kind.value}")


def _require_valid_text(value: str) -> None:
    """Refuse what no engine can be sent: it would fail after the charge."""
    if "\x00" in value:
        raise Refused("text-invalid", "text may not contain the character with code 0")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        raise Refused("text-invalid", "text may not contain half of a surrogate pair")


_Dated = TypeVar("_Dated", DateDomain, TimestampDomain)


def _within_calendar(domain: _Dated, *, day_length: int) -> _Dated:
    """Refuse date constants outside the years 1 to 9999, which engines and Python share."""
    if not calendar.DAYS_MIN <= domain.lo // day_length <= calendar.DAYS_MAX:
        raise Refused("range-too-wide", "a date constant lies outside the years 1 to 9999")
    return domain


def result_bounds_checked(domain: IntegerDomain) -> IntegerDomain:
    """Refuse integer constants that do not fit 62 bits."""
    if max(abs(domain.lo), abs(domain.hi)) >= 2**62:
        raise Refused("range-too-wide", "an integer constant exceeds 62 bits")
    return domain


def _require_boolean(domain: Domain, what: str) -> None:
    if not isinstance(domain, BooleanDomain):
        raise Refused("type-mismatch", f"{what} must be true or false, not a {kind_of(domain).value}")


def shape_of(relation: Relation, facts: Facts) -> Shape:
    """Shape of a relation, or refuse."""
    match relation:
        case Scan(table, rows_per_unit):
            known = facts.table(table)
            if not 1 <= rows_per_unit <= known.rows_per_unit_max:
                raise Refused("rows-per-unit", f"rows per unit of {table!r} must be from 1 to {known.rows_per_unit_max}")
            return Shape(known.columns, rows_per_unit, known.rows_max, weighable=True)
        case Filter(source, predicate):
            shape = shape_of(source, facts)
            _require_boolean(domain_of(predicate, shape.columns), "a filter")
            return shape
        case Project(source, columns):
            shape = shape_of(source, facts)
            return replace(shape, columns=_named((name, domain_of(value, shape.columns)) for name, value in columns))
        case PublicJoin():
            return _public_join(relation, facts)
        case UnitJoin():
            return _unit_join(relation, facts)
        case SemiJoin(source, other, on):
            shape = shape_of(source, facts)
            _require_comparable(on, shape, shape_of(other, facts))
            return shape
        case Union(sources):
            return _union(tuple(shape_of(source, facts) for source in sources))
        case PerUnit(source, columns):
            shape = shape_of(source, facts)
            named = _named((name, _unit_aggregate(aggregate, shape)) for name, aggregate in columns)
            return Shape(named, 1, shape.rows_max, weighable=False)
        case _:
            assert_never(relation)


def _named(columns: Iterable[tuple[str, Domain]]) -> Mapping[str, Domain]:
    result: dict[str, Domain] = {}
    for name, domain in columns:
        if name in result or name.startswith("_"):
            raise Refused("column-name", f"the column name {name!r} is used twice or reserved")
        result[name] = domain
    return result


def _public_join(join: PublicJoin, facts: Facts) -> Shape:
    shape, public = shape_of(join.source, facts), facts.public_table(join.table)
    key, on = public.columns[public.key], domain_of(join.on, shape.columns)
    texts = isinstance(key, KeyDomain) and isinstance(on, KeyDomain) and key.text != on.text
    if kind_of(key) is not kind_of(on) or isinstance(key, RealDomain) or texts:
        raise Refused("type-mismatch", f"the key of {join.table!r} is a {kind_of(key).value}, not a {kind_of(on).value}")
    added = []
    for name, column in join.columns:
        if column not in public.columns:
            raise Refused("unknown-column", f"there is no column {column!r} in {join.table!r}")
        domain = public.columns[column]
        added.append((name, with_null(domain, True) if join.kind is JoinKind.LEFT else domain))
    return replace(shape, columns=_named([*shape.columns.items(), *added]))


def _require_comparable(on: tuple[tuple[str, str], ...], left: Shape, right: Shape) -> None:
    for a, b in on:
        x, y = domain_of(Column(a), left.columns), domain_of(Column(b), right.columns)
        if isinstance(x, KeyDomain) and isinstance(y, KeyDomain) and x.text == y.text:
            continue
        if kind_of(x) is not kind_of(y) or isinstance(x, RealDomain | KeyDomain):
            raise Refused("type-mismatch", f"columns {a!r} and {b!r} cannot be joined")


def _unit_join(join: UnitJoin, facts: Facts) -> Shape:
    left, right = shape_of(join.left, facts), shape_of(join.right, facts)
    _require_comparable(join.on, left, right)
    optional = join.kind is JoinKind.LEFT
    added = []
    for name, column in join.columns:
        domain = domain_of(Column(column), right.columns)
        added.append((name, with_null(domain, True) if optional else domain))
    fan_out = max(1, right.rows_per_unit) if optional else right.rows_per_unit
    columns = _named([*left.columns.items(), *added])
    # Counted from either side: a row of the one meets at most as many rows of its unit as the other has. LEFT keeps lonely left rows too.
    rows_max = min(left.rows_max * fan_out, right.rows_max * left.rows_per_unit + (left.rows_max if optional else 0))
    return Shape(columns, left.rows_per_unit * fan_out, rows_max, weighable=False)


def _union(shapes: tuple[Shape, ...]) -> Shape:
    if not shapes:
        raise Refused("union-empty", "a union needs at least one source")
    first = shapes[0]
    columns = dict(first.columns)
    for shape in shapes[1:]:
        if list(shape.columns) != list(columns):
            raise Refused("union-columns", "all parts of a UNION ALL must have the same columns")
        for name, domain in shape.columns.items():
            if isinstance(domain, RealDomain) and domain.steps != getattr(columns[name], "steps", None):
                raise Refused("union-columns", f"column {name!r} is on different grids in the parts of a UNION ALL")
            if kind_of(domain) is not kind_of(columns[name]):
                raise Refused("union-columns", f"column {name!r} has different types in the parts of a UNION ALL")
            columns[name] = union(columns[name], domain)
    rows = sum(shape.rows_per_unit for shape in shapes)
    return Shape(columns, rows, sum(shape.rows_max for shape in shapes), weighable=False)


def _unit_aggregate(aggregate: UnitAggregate, shape: Shape) -> Domain:
    rows = shape.rows_per_unit
    if aggregate.value is None:
        if aggregate.kind is not UnitAggregateKind.COUNT:
            raise Refused("wrong-arguments", f"{aggregate.kind.value} needs a value")
        return IntegerDomain(0, rows, nullable=False)
    value = domain_of(aggregate.value, shape.columns)
    match aggregate.kind:
        case UnitAggregateKind.COUNT:
            return IntegerDomain(0, rows, nullable=False)
        case UnitAggregateKind.ANY:
            _require_boolean(value, "the argument of a per-unit ANY")
            return BooleanDomain(value.nullable)
        case UnitAggregateKind.MIN | UnitAggregateKind.MAX:
            if isinstance(value, KeyDomain | TextDomain | BooleanDomain):
                raise Refused("type-mismatch", "per-unit MIN and MAX take numbers and dates")
            return value
        case UnitAggregateKind.SUM:
            return _unit_sum(value, rows)
        case _:
            assert_never(aggregate.kind)


def _unit_sum(value: Domain, rows: int) -> Domain:
    if not is_numeric(value) or (isinstance(value, RealDomain) and value.steps is None):
        raise Refused("type-mismatch", "a per-unit SUM takes integers, or reals on a grid")
    lo, hi = bounds(value)
    lo, hi = min(lo, lo * rows), max(hi, hi * rows)
    if max(abs(lo), abs(hi)) * (getattr(value, "steps", None) or 1) >= 2**62:
        raise Refused("range-too-wide", "a per-unit SUM could exceed 62 bits", hint="lower the rows per unit")
    if isinstance(value, RealDomain):
        return RealDomain(lo, hi, value.nullable, value.steps)
    return IntegerDomain(int(lo), int(hi), value.nullable)
