"""Columns and rows per unit of every relation, derived from the plan and the facts alone.

Guarantee (both neighbour relations): for any data, a relation holds at most ``rows_per_unit`` rows of any one unit and at most
``rows_max`` rows in all, its rows lie in ``columns``, and the rows of a unit depend on that unit's rows and public tables only.
Proofs: docs/proofs/unit-local.md, docs/proofs/rows-per-unit.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
from lapwing.kernel.expressions import Call, Case, Column, Expression, Literal, is_null, part_count
from lapwing.kernel.facts import Facts
from lapwing.kernel.functions import result_domain
from lapwing.kernel.ir import (
    Filter,
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
from lapwing.kernel.shapes import Shape, half_joined, joined, named, publicly_joined, united

__all__ = ["Shape", "domain_of", "shape_of"]


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
    """Refuse what cannot be sent to any engine: it would fail after the charge."""
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
        case Scan():
            return _scan(relation, facts)
        case Filter(source, predicate):
            shape = shape_of(source, facts)
            _require_boolean(domain_of(predicate, shape.columns), "a filter")
            return shape.after(part_count(predicate))
        case Project(source, columns):
            shape = shape_of(source, facts)
            listed = named((name, domain_of(value, shape.columns)) for name, value in columns)
            return replace(shape, columns=listed).after(1 + sum(part_count(value) for _, value in columns))
        case PublicJoin(source, table, on):
            shape = shape_of(source, facts)
            joined_shape = publicly_joined(relation, shape, domain_of(on, shape.columns), facts.public_table(table))
            return joined_shape.after(1 + part_count(on))
        case UnitJoin(left, right):
            return joined(relation, shape_of(left, facts), shape_of(right, facts))
        case SemiJoin(source, other, pairs):
            return half_joined(pairs, shape_of(source, facts), shape_of(other, facts))
        case Union(sources):
            return united(tuple(shape_of(source, facts) for source in sources))
        case PerUnit(source, columns):
            return _per_unit(columns, shape_of(source, facts))
        case _:
            assert_never(relation)


def _scan(scan: Scan, facts: Facts) -> Shape:
    known, rows = facts.table(scan.table), scan.rows_per_unit
    if not 1 <= rows <= known.rows_per_unit_max:
        raise Refused("rows-per-unit", f"rows per unit of {scan.table!r} must be from 1 to {known.rows_per_unit_max}")
    return Shape(named(known.columns.items()), rows, known.rows_max, weighable=True, widest=rows, work=rows)


def _per_unit(columns: tuple[tuple[str, UnitAggregate], ...], shape: Shape) -> Shape:
    listed = named((name, _unit_aggregate(aggregate, shape)) for name, aggregate in columns)
    parts = 1 + sum(1 if aggregate.value is None else part_count(aggregate.value) for _, aggregate in columns)
    return Shape(listed, 1, shape.rows_max, weighable=False, widest=shape.widest, work=shape.after(parts).work)


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
