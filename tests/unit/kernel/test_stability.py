"""Rows per unit, rows in all, columns and weights of every relation, as the gate derives them from the plan and the facts."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.kernel.domains import BooleanDomain, Domain, IntegerDomain, Kind, RealDomain, TextDomain
from lapwing.kernel.expressions import Case, Expression, Function, Literal, call
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
    UnitWindow,
)
from lapwing.kernel.stability import domain_of, shape_of
from tests.unit.kernel.bad_plans import CITY, COLUMNS, FACTS, FLAG, MONEY, VISITS, N, per_unit

ONE, FOUR, EIGHT = Scan("visits", 1), VISITS, Scan("visits", 8)
ALL = 10**6
X = Project(FOUR, (("x", N),))
COUNTED = UnitAggregate(UnitAggregateKind.COUNT, None)


@pytest.mark.parametrize(
    ("relation", "rows_per_unit", "rows_max", "weighable"),
    [
        (ONE, 1, ALL, True),
        (EIGHT, 8, ALL, True),
        (Filter(FOUR, FLAG), 4, ALL, True),
        (Project(FOUR, (("x", N),)), 4, ALL, True),
        (PublicJoin(FOUR, "places", CITY, ()), 4, ALL, True),
        (PublicJoin(FOUR, "places", CITY, (), JoinKind.LEFT), 4, ALL, True),
        (SemiJoin(FOUR, EIGHT), 4, ALL, True),
        (SemiJoin(FOUR, EIGHT, negated=True), 4, ALL, True),
        # each of 4 rows meets up to 8 of its own unit; of all rows, none meets more than its unit has
        (UnitJoin(FOUR, EIGHT, (), ()), 32, 4 * ALL, False),
        (UnitJoin(EIGHT, FOUR, (), ()), 32, 4 * ALL, False),
        (UnitJoin(EIGHT, ONE, (), ()), 8, ALL, False),
        (UnitJoin(EIGHT, ONE, (), (), JoinKind.LEFT), 8, ALL, False),
        (UnitJoin(ONE, EIGHT, (), (), JoinKind.LEFT), 8, 2 * ALL, False),
        (Union((X, X, X)), 12, 3 * ALL, False),
        (Union((X,)), 4, ALL, False),
        (PerUnit(EIGHT, (("rows", COUNTED),)), 1, ALL, False),
        (PerUnit(EIGHT, (("rows", COUNTED),), (("by", CITY),)), 8, ALL, False),
        (PerUnit(EIGHT, (), (("by", CITY),)), 8, ALL, False),
        (PerUnit(PerUnit(EIGHT, (), (("by", CITY),)), (("rows", COUNTED),)), 1, ALL, False),
        (UnitJoin(PerUnit(EIGHT, (("rows", COUNTED),)), PerUnit(EIGHT, ()), (), ()), 1, ALL, False),
        (Filter(UnitJoin(FOUR, FOUR, (), ()), FLAG), 16, 4 * ALL, False),
    ],
)
def test_rows_of_a_relation(relation: Relation, rows_per_unit: int, rows_max: int, weighable: bool) -> None:
    shape = shape_of(relation, FACTS)
    assert (shape.rows_per_unit, shape.rows_max, shape.weighable) == (rows_per_unit, rows_max, weighable)


def _rows(relation: Relation, units: dict[int, int]) -> dict[int, int]:
    """How many rows of each unit a relation has when every condition holds and every row has a partner: the most there can be."""
    match relation:
        case Scan(_, limit):
            return {unit: min(rows, limit) for unit, rows in units.items()}
        case Filter(source) | Project(source) | PublicJoin(source) | SemiJoin(source) | UnitWindow(source):
            return _rows(source, units)
        case UnitJoin(left, right):
            one, two = _rows(left, units), _rows(right, units)
            return {unit: one[unit] * two[unit] for unit in units}
        case Union(sources):
            parts = [_rows(source, units) for source in sources]
            return {unit: sum(part[unit] for part in parts) for unit in units}
        case PerUnit(source, _, keys):
            return _rows(source, units) if keys else dict.fromkeys(units, 1)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_is_derived_holds_for_the_fullest_data_and_is_reached_by_it(depth: int) -> None:
    """Units with as many rows as preparation lets through: no bound is passed, and that of a unit's rows is met."""
    relation: Relation = FOUR
    for _ in range(depth):
        relation = UnitJoin(Union((relation, SemiJoin(relation, ONE))), Filter(Scan("visits", 2), FLAG), (), ())
    shape, rows = shape_of(relation, FACTS), _rows(relation, {1: 8, 2: 8, 3: 1})
    assert max(rows.values()) == shape.rows_per_unit == 4 ** (depth + 1)
    assert sum(rows.values()) <= shape.rows_max


def test_columns_come_from_the_sources_and_what_may_be_missing_may_be_null() -> None:
    inner = shape_of(PublicJoin(FOUR, "places", CITY, (("people", "people"), ("town", "city"))), FACTS).columns
    outer = shape_of(PublicJoin(FOUR, "places", CITY, (("people", "people"), ("town", "city")), JoinKind.LEFT), FACTS).columns
    assert inner["town"] == TextDomain(("a", "b"), nullable=False)
    assert outer["town"] == TextDomain(("a", "b"), nullable=True)
    assert set(inner) == {*COLUMNS, "people", "town"}
    added = shape_of(UnitJoin(FOUR, per_unit(UnitAggregateKind.COUNT, None), (), (("all", "value"),), JoinKind.LEFT), FACTS).columns
    assert added["all"] == IntegerDomain(0, 4, nullable=True)
    assert list(shape_of(Project(FOUR, (("x", N),)), FACTS).columns) == ["x"]
    union = shape_of(Union((X, Project(FOUR, (("x", Literal(50, Kind.INTEGER)),)))), FACTS).columns
    assert union["x"] == IntegerDomain(0, 50)


@pytest.mark.parametrize(
    ("kind", "value", "domain"),
    [
        (UnitAggregateKind.COUNT, None, IntegerDomain(0, 4, nullable=False)),
        (UnitAggregateKind.COUNT, CITY, IntegerDomain(0, 4, nullable=False)),
        (UnitAggregateKind.ANY, FLAG, BooleanDomain()),
        (UnitAggregateKind.MIN, N, IntegerDomain(0, 10)),
        (UnitAggregateKind.MAX, MONEY, RealDomain(Fraction(-5), Fraction(5), steps=100)),
        (UnitAggregateKind.SUM, N, IntegerDomain(0, 40)),
        (UnitAggregateKind.SUM, MONEY, RealDomain(Fraction(-20), Fraction(20), steps=100)),
    ],
)
def test_a_value_per_unit(kind: UnitAggregateKind, value: Expression | None, domain: Domain) -> None:
    assert shape_of(per_unit(kind, value), FACTS).columns == {"value": domain}


@pytest.mark.parametrize(
    ("expression", "domain"),
    [
        (Literal(None, Kind.INTEGER), IntegerDomain(0, 0)),
        (Literal(7, Kind.INTEGER), IntegerDomain(7, 7, nullable=False)),
        # the constant NULL brings NULL and no 0
        (Case(((FLAG, Literal(7, Kind.INTEGER)),), Literal(None, Kind.INTEGER)), IntegerDomain(7, 7)),
        (Case(((FLAG, Literal(7, Kind.INTEGER)),), Literal(9, Kind.INTEGER)), IntegerDomain(7, 9, nullable=False)),
        (Case(((FLAG, Literal(None, Kind.INTEGER)),), Literal(None, Kind.INTEGER)), IntegerDomain(0, 0)),
        (call(Function.COALESCE, N, Literal(20, Kind.INTEGER)), IntegerDomain(0, 20, nullable=False)),
        (Literal(Fraction(1, 3), Kind.REAL), RealDomain(Fraction(1 / 3), Fraction(1 / 3), nullable=False)),
    ],
)
def test_the_domain_of_an_expression(expression: Expression, domain: Domain) -> None:
    assert domain_of(expression, COLUMNS) == domain
