"""Plans with sets of quantiles, over the tables of ``worlds``: every kind of value, of groups and of relation."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from lapwing.audit.plan_shapes import CLINICS, NOTHING, ONE_GROUP, Shape, law_of
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    DiscoveredGroups,
    Filter,
    GridSum,
    KnownGroups,
    PerUnit,
    Plan,
    QuantileSet,
    Query,
    Ranked,
    Relation,
    RowCount,
    Scan,
    Union,
    UnitAggregate,
    UnitAggregateKind,
    UnitJoin,
    Vector,
)
from lapwing.kernel.quantile_tree import AtShare, FromGreatest, FromLeast, Target

SCALE = Fraction(8)
MEDIAN: tuple[Target, ...] = (AtShare(Fraction(1, 2)),)
SEVERAL: tuple[Target, ...] = (FromLeast(3), AtShare(Fraction(1, 10)), AtShare(Fraction(1, 2)), AtShare(Fraction(9, 10)), FromGreatest(2))


def _set(name: str, value: Expression, lower: int, upper: int, steps: int, targets: tuple[Target, ...] = SEVERAL) -> QuantileSet:
    return QuantileSet(name, value, Fraction(lower), Fraction(upper), steps, targets, SCALE)


COST = _set("q", Column("cost"), 0, 500, 100)
CHANGE = _set("c", Column("change"), -100, 100, 2, MEDIAN)
DAY = _set("d", Column("day"), 19_000, 21_000, 1)
NARROW = _set("n", Column("cost"), 3, 7, 10, MEDIAN)
"""A range that most rows exceed."""
COMPUTED = _set("e", call(Function.MULTIPLY, Column("cost"), Column("cost")), 0, 1000, 4)
WHERE = _set("w", Case(((Column("flag"), Column("cost")),), Literal(None, Kind.REAL)), 0, 500, 100, MEDIAN)


def _plan(source: Relation, *sets: QuantileSet, by_clinic: bool = False, vectors: tuple[Vector, ...] = ()) -> Plan:
    keys = (("clinic", Column("clinic")),) if by_clinic else NOTHING
    return Plan((Query(source, keys, CLINICS if by_clinic else ONE_GROUP, Ranked(), vectors, sets),))


def _vectors(facts: Facts) -> tuple[Vector, ...]:
    total = GridSum(Column("cost"), Fraction(0), Fraction(500), 100)
    return (Vector("v0", RowCount(), law_of(facts)), Vector("v1", total, law_of(facts)))


def _basic() -> Mapping[str, Shape]:
    visits = Scan("visits", 3)
    july = call(Function.EQUAL, call(Function.MONTH, Column("day")), Literal(7, Kind.INTEGER))
    totals = PerUnit(Scan("visits", 4), (("t", UnitAggregate(UnitAggregateKind.SUM, Column("cost"))),))
    joined = UnitJoin(visits, Scan("drugs", 4), (("visit_id", "visit_id"),), (("drug", "drug"), ("dose", "dose")))
    return {
        "quantiles, one group": lambda f: _plan(visits, COST),
        "median alone": lambda f: _plan(visits, CHANGE),
        "quantiles, by clinic": lambda f: _plan(visits, COST, CHANGE, DAY, by_clinic=True),
        "quantiles beside vectors": lambda f: _plan(visits, COST, WHERE, by_clinic=True, vectors=_vectors(f)),
        "quantiles, narrow and computed": lambda f: _plan(visits, NARROW, COMPUTED, by_clinic=True),
        "quantiles, filtered": lambda f: _plan(Filter(visits, july), COST, DAY, by_clinic=True),
        "quantiles per unit": lambda f: _plan(totals, _set("t", Column("t"), 0, 2000, 100)),
        "quantiles of a join": lambda f: _plan(joined, COST, _set("x", Column("dose"), 0, 10, 2), by_clinic=True),
        "quantiles of a union": lambda f: _plan(Union((Scan("visits", 2), Scan("visits", 1))), COST, by_clinic=True),
        "quantiles of one row per unit": lambda f: Plan(
            (
                Query(
                    Scan("people", 1),
                    (("sex", Column("sex")),),
                    KnownGroups((("f",), ("m",), (None,))),
                    Ranked(),
                    (),
                    (_set("a", Column("age"), 18, 90, 2), _set("s", Column("score"), -100, 50, 4, MEDIAN)),
                ),
            )
        ),
    }


def _discovering() -> Mapping[str, Shape]:
    dose = _set("q", Column("dose"), 0, 10, 2)

    def discovered(facts: Facts) -> Plan:
        groups = DiscoveredGroups(law_of(facts), Fraction(1, 10**9), 1_000)
        vectors = (Vector("n", RowCount(), law_of(facts)),)
        return Plan((Query(Scan("drugs", 4), (("drug", Column("drug")),), groups, Ranked(), vectors, (dose,)),))

    return {"quantiles, discovered": discovered}


def quantile_shapes(account: Account) -> dict[str, Shape]:
    """Every shape with quantiles that can be certified for this kind of account."""
    return {**_basic(), **_discovering()} if account is Account.APPROXIMATE else {**_basic()}
