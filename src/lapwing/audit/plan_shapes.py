"""One plan of every shape the kernel certifies, over the tables of ``worlds``.

Scales do not matter to the oracle (it compares exact integers with claimed bounds), so one public scale serves all vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from lapwing.audit.key_shapes import discovering_by_weight
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, call, not_null
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Bounding,
    Cap,
    Clipped,
    DiscoveredGroups,
    DistinctCount,
    Filter,
    Follow,
    GridSum,
    Grouped,
    JoinKind,
    KnownGroups,
    Measure,
    PerUnit,
    Plan,
    Project,
    PublicJoin,
    Query,
    Ranked,
    Relation,
    RowCount,
    Scan,
    SemiJoin,
    Union,
    UnitAggregate,
    UnitAggregateKind,
    UnitCount,
    UnitJoin,
    UnitNorms,
    Vector,
    Weighted,
)
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law

Shape: TypeAlias = Callable[[Facts], Plan]
NOTHING: tuple[tuple[str, Expression], ...] = ()
ONE_GROUP = KnownGroups(((),))
CLINICS = KnownGroups(tuple((i,) for i in (0, 1, 2, 3, None)))
NO_KEY = Literal(None, Kind.KEY)
BITS = 10
ONE = 2**BITS


def number(value: Fraction | int, kind: Kind = Kind.INTEGER) -> Literal:
    """A numeric constant."""
    return Literal(value, kind)


def law_of(facts: Facts) -> Law:
    """A noise law that the account allows."""
    # Laplace noise, because only its charge is new in an account with an order
    is_laplace = facts.account is Account.PURE or facts.order is not None
    return DiscreteLaplace(Fraction(8)) if is_laplace else DiscreteGaussian(Fraction(8))


def _vectors(facts: Facts, *measures: tuple[str, Measure] | tuple[str, Measure, Cap | Follow]) -> tuple[Vector, ...]:
    law = law_of(facts)
    return tuple(Vector(item[0], item[1], law, item[2] if len(item) == 3 else None) for item in measures)


def grid_sum(column: str, lower: int | Fraction, upper: int | Fraction, steps: int, *, centred: bool = False) -> GridSum:
    """Sum of a column; ``centred`` subtracts the middle of its range, as AVG does."""
    offset = (int(lower * steps) + int(upper * steps)) // 2 if centred else 0
    return GridSum(Column(column), Fraction(lower), Fraction(upper), steps, offset)


COST = grid_sum("cost", 0, 500, 100)
CHANGE = grid_sum("change", -100, 100, 2)
LATE = grid_sum("late", 50, 100, 1)
EDGE_SUM = GridSum(call(Function.DIVIDE, Column("cost"), number(Fraction(1000), Kind.REAL)), Fraction(0), Fraction(0.49999999999999994), 1)
"""Values up to 0.5 clamped below 1/2: on the grid of whole numbers each is 0, unless float arithmetic rounds up."""

_STEPS = [call(Function.STEPS, Column(name)) for name in ("cost", "change")]
PRODUCT = GridSum(call(Function.OF_STEPS, call(Function.MULTIPLY, *_STEPS), number(200)), Fraction(-1000), Fraction(1000), 200)
"""Decimals: a product of two numbers on grids, in steps of both, clamped to a smaller range than it can have."""


def _query(
    facts: Facts,
    source: Relation,
    bounding: Bounding,
    *measures: tuple[str, Measure] | tuple[str, Measure, Cap | Follow],
    by_clinic: bool = False,
) -> Query:
    keys = (("clinic", Column("clinic")),) if by_clinic else NOTHING
    return Query(source, keys, CLINICS if by_clinic else ONE_GROUP, bounding, _vectors(facts, *measures))


def _discovered(
    facts: Facts,
    source: Relation,
    key: str,
    bounding: Bounding,
    *measures: tuple[str, Measure] | tuple[str, Measure, Cap | Follow],
    spread_bits: int | None = None,
    law: Law | None = None,
) -> Query:
    groups = DiscoveredGroups(law_of(facts) if law is None else law, Fraction(1, 10**9), 1_000, spread_bits)
    return Query(source, ((key, Column(key)),), groups, bounding, _vectors(facts, *measures))


def _july() -> Expression:
    return call(Function.EQUAL, call(Function.MONTH, Column("day")), number(7))


def _visits(k: int = 3) -> Scan:
    return Scan("visits", k)


def _basic() -> Mapping[str, Shape]:
    all_measures = (("n", RowCount()), ("s", COST), ("c", CHANGE), ("l", LATE), ("e", EDGE_SUM), ("u", UnitCount()))
    return {
        "ranked, one group": lambda f: Plan((_query(f, _visits(), Ranked(), *all_measures),)),
        "ranked, by clinic": lambda f: Plan((_query(f, _visits(), Ranked(), *all_measures, by_clinic=True),)),
        "ranked, a product of decimals": lambda f: Plan((_query(f, _visits(), Ranked(), ("p", PRODUCT), by_clinic=True),)),
        "ranked, conditions": lambda f: Plan(
            (
                _query(
                    f,
                    _visits(),
                    Ranked(),
                    ("n", RowCount(Column("flag"))),
                    ("m", RowCount(not_null(Column("cost")))),
                    ("u", UnitCount(Column("flag"))),
                    by_clinic=True,
                ),
            )
        ),
        "ranked, narrowed bounds": lambda f: Plan(
            (_query(f, _visits(), Ranked(), ("s", grid_sum("cost", 0, 20, 100)), ("c", grid_sum("change", -5, 5, 2)), by_clinic=True),)
        ),
        "ranked, centred sum": lambda f: Plan(
            (
                _query(
                    f,
                    _visits(),
                    Ranked(),
                    ("n", RowCount(not_null(Column("cost")))),
                    ("s", grid_sum("cost", 0, 500, 100, centred=True)),
                    ("l", grid_sum("late", 50, 100, 1, centred=True)),
                    ("c", grid_sum("change", -100, 100, 2, centred=True)),
                ),
            )
        ),
        "ranked, distinct values": lambda f: Plan(
            (_query(f, _visits(), Ranked(), ("d", DistinctCount(Column("visit_id"))), ("m", DistinctCount(Column("day"))), by_clinic=True),)
        ),
        "ranked, distinct identifiers of some rows": lambda f: Plan(
            (_query(f, _visits(), Ranked(), ("d", DistinctCount(Case(((Column("flag"), Column("visit_id")),), NO_KEY))), by_clinic=True),)
        ),
        "one row per unit": lambda f: Plan(
            (
                Query(
                    Scan("people", 1),
                    (("sex", Column("sex")),),
                    KnownGroups((("f",), ("m",), (None,))),
                    Ranked(),
                    _vectors(f, ("n", RowCount()), ("s", grid_sum("score", -100, 50, 4)), ("a", grid_sum("age", 18, 90, 1))),
                ),
            )
        ),
        "weighted": lambda f: Plan(
            (_query(f, _visits(12), Weighted(3, BITS), ("n", RowCount()), ("s", COST), ("c", CHANGE), ("l", LATE), by_clinic=True),)
        ),
        "weighted, filtered": lambda f: Plan(
            (_query(f, Filter(_visits(12), _july()), Weighted(2, BITS), ("n", RowCount(Column("flag"))), ("s", COST)),)
        ),
        "clipped": lambda f: Plan(
            (
                _query(
                    f,
                    _visits(12),
                    Clipped(BITS),
                    ("n", RowCount(), Cap(3 * ONE)),
                    ("s", COST, Cap(70_001 * ONE)),
                    ("c", CHANGE, Cap(411 * ONE + 7)),
                    ("u", UnitCount()),
                    by_clinic=True,
                ),
            )
        ),
        "clipped, one group": lambda f: Plan(
            (_query(f, _visits(12), Clipped(BITS), ("n", RowCount(), Cap(2 * ONE)), ("c", CHANGE, Cap(ONE))),)
        ),
        "clipped, units of few rows apart": lambda f: Plan(
            (
                _query(f, _visits(12), Clipped(BITS), ("n", RowCount(), Cap(2 * ONE)), ("l", LATE, Cap(300 * ONE))),
                _query(f, Filter(_visits(12), _july()), Clipped(BITS), ("l", LATE, Cap(150 * ONE)), ("u", UnitCount()), by_clinic=True),
            )
        ),
        "clipped units": lambda f: Plan(
            (
                _query(
                    f,
                    _visits(12),
                    Clipped(BITS),
                    ("u", UnitCount(), Cap(ONE + ONE // 3)),
                    ("w", UnitCount(Column("flag")), Cap(ONE)),
                    ("n", RowCount(), Cap(2 * ONE)),
                    by_clinic=True,
                ),
                _query(f, _visits(12), Clipped(BITS), ("u", UnitCount(), Cap(ONE // 2 + 1)), ("all", UnitCount())),
            )
        ),
        "clipped mean": lambda f: Plan(
            (
                _query(
                    f,
                    _visits(12),
                    Clipped(BITS),
                    ("n", RowCount(not_null(Column("cost"))), Cap(2 * ONE + 3)),
                    ("s", grid_sum("cost", 0, 500, 100, centred=True), Follow("n")),
                    by_clinic=True,
                ),
            )
        ),
        "clipped mean, each with a cap": lambda f: Plan(
            (
                _query(
                    f,
                    _visits(12),
                    Clipped(BITS),
                    ("n", RowCount(not_null(Column("cost"))), Cap(2 * ONE + 3, "s")),
                    ("s", COST, Cap(30_001 * ONE, "n")),
                    ("c", CHANGE, Cap(100 * ONE, "n")),
                    by_clinic=True,
                ),
            )
        ),
        "clipped mean of all rows": lambda f: Plan(
            (_query(f, _visits(12), Clipped(BITS), ("n", RowCount(), Cap(2 * ONE)), ("s", CHANGE, Follow("n")), by_clinic=True),)
        ),
        "grouped": lambda f: Plan(
            (
                _query(
                    f,
                    _visits(12),
                    Grouped(2),
                    ("n", RowCount(), Cap(3)),
                    ("s", COST, Cap(60_000)),
                    ("c", CHANGE, Cap(333)),
                    ("u", UnitCount()),
                    ("w", UnitCount(Column("flag"))),
                    by_clinic=True,
                ),
            )
        ),
        "grouped, one group": lambda f: Plan((_query(f, _visits(12), Grouped(1), ("n", RowCount(), Cap(4)), ("c", CHANGE, Cap(250))),)),
    }


def _relations() -> Mapping[str, Shape]:
    joined = UnitJoin(_visits(3), Scan("drugs", 4), (("visit_id", "visit_id"),), (("drug", "drug"), ("dose", "dose")))
    left = UnitJoin(Scan("people", 1), _visits(3), (), (("clinic", "clinic"), ("cost", "cost")), JoinKind.LEFT)
    public = PublicJoin(_visits(), "clinics", Column("clinic"), (("city", "city"),))
    outer = PublicJoin(_visits(), "clinics", Column("clinic"), (("city", "city"),), JoinKind.LEFT)
    both = Union((Project(_visits(2), (("clinic", Column("clinic")), ("cost", Column("cost")))),) * 2)
    totals = PerUnit(
        _visits(4),
        (
            ("n", UnitAggregate(UnitAggregateKind.COUNT, None)),
            ("t", UnitAggregate(UnitAggregateKind.SUM, Column("cost"))),
            ("c", UnitAggregate(UnitAggregateKind.SUM, Column("change"))),
            ("last", UnitAggregate(UnitAggregateKind.MAX, Column("day"))),
            ("any", UnitAggregate(UnitAggregateKind.ANY, Column("flag"))),
        ),
    )
    bins = Case(((call(Function.LESS, Column("cost"), number(Fraction(100), Kind.REAL)), number(0)),), number(1))
    binned = Project(_visits(), (("clinic", bins), ("cost", call(Function.MULTIPLY, Column("cost"), Column("cost")))))
    return {
        "filter": lambda f: Plan((_query(f, Filter(_visits(), _july()), Ranked(), ("n", RowCount()), ("s", COST), by_clinic=True),)),
        "project": lambda f: Plan(
            (
                Query(
                    binned,
                    (("clinic", Column("clinic")),),
                    KnownGroups(((0,), (1,))),
                    Ranked(),
                    _vectors(f, ("s", grid_sum("cost", 0, 1000, 4))),
                ),
            )
        ),
        "public join": lambda f: Plan(
            (
                Query(
                    public,
                    (("city", Column("city")),),
                    KnownGroups((("a",), ("b",))),
                    Ranked(),
                    _vectors(f, ("n", RowCount()), ("s", COST)),
                ),
            )
        ),
        "public left join, weighted": lambda f: Plan(
            (
                Query(
                    outer,
                    (("city", Column("city")),),
                    KnownGroups((("a",), ("b",), (None,))),
                    Weighted(2, BITS),
                    _vectors(f, ("n", RowCount())),
                ),
            )
        ),
        "join along a key": lambda f: Plan(
            (_query(f, joined, Ranked(), ("n", RowCount()), ("s", COST), ("u", UnitCount()), by_clinic=True),)
        ),
        "join, clipped": lambda f: Plan((_query(f, joined, Clipped(BITS), ("n", RowCount(), Cap(3 * ONE)), by_clinic=True),)),
        "left join on the unit": lambda f: Plan((_query(f, left, Ranked(), ("n", RowCount()), ("s", COST), by_clinic=True),)),
        "self join on the unit": lambda f: Plan(
            (_query(f, UnitJoin(_visits(3), _visits(2), (), ()), Ranked(), ("n", RowCount()), by_clinic=True),)
        ),
        "grandchild": lambda f: Plan((_query(f, Scan("drugs", 5), Ranked(), ("n", RowCount()), ("s", grid_sum("dose", 0, 10, 2))),)),
        "semi-join": lambda f: Plan(
            (
                _query(
                    f,
                    SemiJoin(_visits(), Filter(Scan("people", 1), call(Function.EQUAL, Column("sex"), Literal("f", Kind.TEXT)))),
                    Ranked(),
                    ("n", RowCount()),
                    by_clinic=True,
                ),
            )
        ),
        "anti-join": lambda f: Plan(
            (
                _query(
                    f,
                    SemiJoin(Scan("people", 1), Scan("drugs", 20), negated=True),
                    Ranked(),
                    ("n", RowCount()),
                    ("a", grid_sum("age", 18, 90, 1)),
                ),
            )
        ),
        "semi-join on a key": lambda f: Plan(
            (_query(f, SemiJoin(_visits(), Scan("drugs", 20), (("visit_id", "visit_id"),)), Ranked(), ("n", RowCount()), by_clinic=True),)
        ),
        "union": lambda f: Plan((_query(f, both, Ranked(), ("n", RowCount()), ("s", COST), by_clinic=True),)),
        "per unit": lambda f: Plan(
            (
                _query(
                    f,
                    totals,
                    Ranked(),
                    ("n", grid_sum("n", 0, 4, 1)),
                    ("t", grid_sum("t", 0, 2000, 100)),
                    ("c", grid_sum("c", -400, 400, 2)),
                    ("a", RowCount(Column("any"))),
                ),
            )
        ),
        "per unit, joined": lambda f: Plan(
            (
                Query(
                    UnitJoin(Scan("people", 1), totals, (), (("t", "t"),)),
                    (("sex", Column("sex")),),
                    KnownGroups((("f",), ("m",))),
                    Ranked(),
                    _vectors(f, ("t", grid_sum("t", 0, 1000, 100))),
                ),
            )
        ),
        "disjoint branches as one vector": lambda f: Plan(
            (
                Query(
                    _visits(),
                    (("half", Case(((call(Function.LESS, Column("day"), Literal(19905, Kind.DATE)), number(0)),), number(1))),),
                    KnownGroups(((0,), (1,))),
                    Ranked(),
                    _vectors(f, ("n", RowCount())),
                ),
            )
        ),
        "two queries": lambda f: Plan(
            (
                _query(f, Filter(_visits(), _july()), Ranked(), ("n", RowCount())),
                _query(f, _visits(), Ranked(), ("n", RowCount()), by_clinic=True),
            )
        ),
    }


def norms(facts: Facts, source: Relation, measure: Measure, squared_edges: tuple[int, ...], *, key: str | None = None) -> Query:
    """A histogram of units by the norm of what they add to a measure, by a key or in total."""
    keys = NOTHING if key is None else ((key, Column(key)),)
    bins = KnownGroups(tuple((number,) for number in range(len(squared_edges) + 1)))
    units = UnitNorms(source, keys, measure, squared_edges, "size")
    return Query(units, (("size", Column("size")),), bins, Ranked(), _vectors(facts, ("units", RowCount())))


COUNT_EDGES = (0, 1, 2, 4, 9, 10, 36, 144)
"""Squares that occur among units of the worlds, and some that do not."""
SUM_EDGES = (0, 100**2, 1_234**2, 50_000**2, 2_500_000_001, 2 * 50_000**2, 300_000**2)


def _norms() -> Mapping[str, Shape]:
    joined = UnitJoin(_visits(3), Scan("drugs", 4), (("visit_id", "visit_id"),), (("drug", "drug"), ("dose", "dose")))
    public = PublicJoin(_visits(12), "clinics", Column("clinic"), (("city", "city"),), JoinKind.LEFT)
    return {
        "norms of counts": lambda f: Plan(
            (
                norms(f, _visits(12), RowCount(Column("flag")), COUNT_EDGES),
                norms(f, _visits(12), RowCount(), COUNT_EDGES, key="clinic"),
                norms(f, _visits(12), UnitCount(), COUNT_EDGES, key="clinic"),
            )
        ),
        "norms of sums": lambda f: Plan(
            (
                norms(f, _visits(12), COST, SUM_EDGES, key="clinic"),
                norms(f, _visits(12), CHANGE, (0, 67**2, 200**2, 400**2)),
                norms(f, _visits(12), grid_sum("late", 50, 100, 1, centred=True), (0, 1, 25**2, 300**2), key="clinic"),
            )
        ),
        "norms over relations": lambda f: Plan(
            (
                norms(f, Filter(_visits(12), _july()), RowCount(), COUNT_EDGES, key="clinic"),
                norms(f, public, COST, SUM_EDGES, key="city"),
                norms(f, joined, RowCount(), COUNT_EDGES, key="drug"),
            )
        ),
    }


def sampled_norms() -> dict[str, Shape]:
    """The norms of half of the units. The engine chooses which units, so exact results differ between engines."""

    def sampled(shape: Shape) -> Shape:
        def plan(facts: Facts) -> Plan:
            found = [(query, query.source) for query in shape(facts).queries if isinstance(query.source, UnitNorms)]
            return Plan(tuple(replace(query, source=replace(source, one_in=2)) for query, source in found))

        return plan

    return {f"{name}, of a sample": sampled(shape) for name, shape in _norms().items()}


def _discovering() -> Mapping[str, Shape]:
    return {
        "discovered, ranked": lambda f: Plan(
            (_discovered(f, Scan("drugs", 4), "drug", Ranked(), ("n", RowCount()), ("s", grid_sum("dose", 0, 10, 2)), ("u", UnitCount())),)
        ),
        "discovered, grouped": lambda f: Plan((_discovered(f, Scan("drugs", 20), "drug", Grouped(2), ("n", RowCount(), Cap(3))),)),
        "discovered days, grouped": lambda f: Plan(
            (_discovered(f, _visits(12), "day", Grouped(1), ("n", RowCount(), Cap(2)), ("u", UnitCount())),)
        ),
        "discovered twice": lambda f: Plan(
            (
                _discovered(f, Scan("drugs", 4), "drug", Ranked(), ("n", RowCount())),
                _discovered(f, _visits(3), "day", Ranked(), ("n", RowCount())),
            )
        ),
        "discovered, no measure": lambda f: Plan((_discovered(f, Scan("drugs", 4), "drug", Grouped(2)),)),
    }


def shapes(account: Account) -> dict[str, Shape]:
    """Every shape that can be certified for this kind of account."""
    by_name = {**_basic(), **_relations(), **_norms()}
    return {**by_name, **_discovering(), **discovering_by_weight(_discovered)} if account is Account.APPROXIMATE else by_name
