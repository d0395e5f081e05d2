"""Plans with one fault each, and the same plans without it: what the gate must refuse, and for what reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
)
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, call, not_null
from lapwing.kernel.facts import Facts, PublicFacts, TableFacts, UnitLimits
from lapwing.kernel.ir import (
    Blocks,
    Bounding,
    Cap,
    Clipped,
    DiscoveredGroups,
    DistinctCount,
    Filter,
    Follow,
    GridSum,
    Grouped,
    KnownGroups,
    Measure,
    PerUnit,
    Plan,
    ProductGroups,
    Project,
    PublicJoin,
    QuantileSet,
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
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.quantile_tree import AtShare, FromGreatest, FromLeast

LAPLACE, GAUSSIAN = DiscreteLaplace(Fraction(8)), DiscreteGaussian(Fraction(8))
COLUMNS: Mapping[str, Domain] = {
    "n": IntegerDomain(0, 10),
    "wide": IntegerDomain(0, 2**61 - 1),
    "money": RealDomain(Fraction(-5), Fraction(5), steps=100),
    "flag": BooleanDomain(),
    "city": TextDomain(("a", "b")),
    "note": TextDomain(None),
    "day": DateDomain(0, 20_000),
    "at": TimestampDomain(0, 10**15),
    "card": KeyDomain(),
    "mail": KeyDomain(text=True),
}
PLACES = PublicFacts({"city": TextDomain(("a", "b"), nullable=False), "people": IntegerDomain(0, 100)}, key="city")
EVENTS = TableFacts(COLUMNS, 8, 1_000, blocks=(10, 40))
"""A table with blocks of time."""
FACTS = Facts(
    source_id="gate",
    version=1,
    neighbours=Neighbours.UNBOUNDED,
    account=Account.APPROXIMATE,
    tables={"visits": TableFacts(COLUMNS, 8, 10**6), "long": TableFacts(COLUMNS, 5_000, 1_000), "events": EVENTS},
    public_tables={"places": PLACES},
)
PURE = replace(FACTS, account=Account.PURE)
STRICT = replace(FACTS, limits=UnitLimits(rows=8, work=200, size=20_000))

VISITS, LONG = Scan("visits", 4), Scan("long", 1)
IN_BLOCKS = Scan("events", 4, Blocks(12, 20, apart=True))
N, MONEY, FLAG, CITY, NOTE = Column("n"), Column("money"), Column("flag"), Column("city"), Column("note")
COMPUTED = call(Function.DIVIDE, MONEY, Literal(3, Kind.INTEGER))
"""A real number that is on no grid."""
BUSY = Filter(VISITS, call(Function.OR, *[FLAG] * 20))
TOTAL = KnownGroups(((),))
CITIES = KnownGroups((("a",), ("b",)))
FOUND = DiscoveredGroups(GAUSSIAN, Fraction(1, 10**9), 100)
SPREAD = replace(FOUND, spread_bits=16)
ROWS = Vector("rows", RowCount(), GAUSSIAN)
SPENT = GridSum(N, Fraction(0), Fraction(10), 1)
EVERYBODY, ONE_CITY = UnitCount(), Cap(16)
CELLS = Clipped(4)


@dataclass(frozen=True, slots=True)
class Fault:
    """A plan that is certified, and the same plan with one thing wrong."""

    code: str
    sound: Plan
    bad: Plan
    facts: Facts = FACTS
    bad_facts: Facts | None = None
    """Where the fault lies in what the plan is asked of."""


def query(**changed: Any) -> Query:
    """Rows of one table, counted."""
    return replace(Query(VISITS, (), TOTAL, Ranked(), (ROWS,)), **changed)


BY_CITY = query(keys=(("city", CITY),), groups=CITIES)
BY_NOTE = query(keys=(("note", NOTE),), groups=FOUND)
CLIPPED = query(bounding=Clipped(4), vectors=(replace(ROWS, bound=Cap(64)),))
GROUPED = replace(BY_CITY, bounding=Grouped(2), vectors=(replace(ROWS, bound=Cap(3)),))
WEIGHTED = query(bounding=Weighted(2, 10))


def measured(measure: Measure, **changed: Any) -> Query:
    """One measure of rows of one table."""
    return query(vectors=(Vector("measured", measure, GAUSSIAN),), **changed)


def quantile(**changed: Any) -> Query:
    """A median of numbers up to 10."""
    median = QuantileSet("median", N, Fraction(0), Fraction(10), 1, (AtShare(Fraction(1, 2)),), Fraction(8))
    bounding = changed.pop("bounding", Ranked())
    return query(vectors=(), quantiles=(replace(median, **changed),), bounding=bounding)


def fault(code: str, sound: Query, bad: Query | None = None, **kwargs: Any) -> Fault:
    """A fault in the only query of a plan, or in the facts."""
    return Fault(code, Plan((sound,)), Plan((sound if bad is None else bad,)), **kwargs)


def of_source(code: str, sound: Relation, bad: Relation) -> Fault:
    """A fault in the relation whose rows are counted."""
    return fault(code, query(source=sound), query(source=bad))


def per_unit(kind: UnitAggregateKind, value: Expression | None, rows: int = 4) -> PerUnit:
    """One value of each unit."""
    return PerUnit(Scan("visits", rows), (("value", UnitAggregate(kind, value)),))


def following(leader: Measure, follower: Measure, *, cap: int = 64, name: str = "rows") -> Query:
    """A clipped count, and something that follows it."""
    vectors = (Vector("rows", leader, GAUSSIAN, Cap(cap)), Vector("spent", follower, GAUSSIAN, Follow(name)))
    return query(bounding=Clipped(4), vectors=vectors)


def by_norm(**changed: Any) -> Query:
    """Units by the norm of their rows in each city."""
    norms = replace(UnitNorms(VISITS, (("city", CITY),), RowCount(), (0, 1, 4), "size"), **changed)
    return query(source=norms, keys=(("size", Column("size")),), groups=KnownGroups(((0,), (1,), (2,), (3,))))


def clipped_units(measure: Measure = EVERYBODY, bound: Cap | Follow | None = ONE_CITY, **changed: Any) -> Query:
    """Units in each city, clipped by the length of a unit's vector."""
    by_city = replace(BY_CITY, bounding=Clipped(4), vectors=(Vector("units", measure, GAUSSIAN, bound),))
    return replace(by_city, **changed)


PLANS = {
    "no query": Fault("plan-empty", Plan((query(),)), Plan(())),
    "a query that measures nothing": fault("plan-empty", query(), query(vectors=())),
    "two columns of one name": fault("column-name", query(vectors=(ROWS, replace(ROWS, name="again"))), query(vectors=(ROWS, ROWS))),
    "a column with the name of a key": fault("column-name", BY_CITY, replace(BY_CITY, vectors=(replace(ROWS, name="city"),))),
    "a row limit that is no integer": of_source("plan-type", Scan("visits", 1), Scan("visits", True)),
    "a table that is not there": of_source("unknown-table", VISITS, Scan("elsewhere", 1)),
    "no row per unit": of_source("rows-per-unit", Scan("visits", 1), Scan("visits", 0)),
    "more rows per unit than were kept": of_source("rows-per-unit", Scan("visits", 8), Scan("visits", 9)),
}

GROUPS = {
    "groups named by an identifier": fault(
        "groups-by-unit", replace(BY_NOTE, keys=(("who", CITY),)), replace(BY_NOTE, keys=(("who", Column("card")),))
    ),
    "groups chosen by a computed real": fault(
        "groups-by-real",
        replace(GROUPED, keys=(("x", MONEY),), groups=KnownGroups(((Fraction(1),), (Fraction(2),)))),
        replace(GROUPED, keys=(("x", COMPUTED),), groups=KnownGroups(((Fraction(1),), (Fraction(2),)))),
    ),
    "groups discovered of reals": fault("groups-by-real", BY_NOTE, replace(BY_NOTE, keys=(("x", MONEY),))),
    "no known group": fault("groups-invalid", BY_CITY, replace(BY_CITY, groups=KnownGroups(()))),
    "a known group twice": fault("groups-invalid", BY_CITY, replace(BY_CITY, groups=KnownGroups((("a",), ("a",))))),
    "a known group of other keys": fault("groups-invalid", BY_CITY, replace(BY_CITY, groups=KnownGroups((("a", "b"),)))),
    "an axis with a value twice": fault("groups-invalid", BY_CITY, replace(BY_CITY, groups=ProductGroups((("a", "a"),)))),
    "an axis without a key": fault("groups-invalid", BY_CITY, replace(BY_CITY, groups=ProductGroups((("a",), ("b",))))),
    "an axis without values": fault("groups-invalid", BY_CITY, replace(BY_CITY, groups=ProductGroups(((),)))),
    "groups discovered without keys": fault("groups-invalid", BY_NOTE, replace(BY_NOTE, keys=())),
    "groups discovered without delta": fault(
        "keys-need-delta",
        replace(BY_NOTE, groups=replace(FOUND, law=LAPLACE), vectors=(replace(ROWS, law=LAPLACE),)),
        bad_facts=PURE,
    ),
    "groups discovered with weights": fault("keys-need-rows", BY_NOTE, replace(BY_NOTE, bounding=Weighted(2, 10), vectors=())),
    "groups discovered with clipping": fault(
        "clipped-known-groups",
        replace(BY_NOTE, bounding=Clipped(4), vectors=(), groups=SPREAD),
        replace(BY_NOTE, bounding=Clipped(4), vectors=()),
    ),
    "a table with blocks and no range of them": of_source("blocks-missing", IN_BLOCKS, Scan("events", 4)),
    "blocks of a table that has none": of_source("blocks-missing", VISITS, Scan("visits", 4, Blocks(12, 12))),
    "a block that is not closed": of_source("blocks-open", IN_BLOCKS, Scan("events", 4, Blocks(12, 41))),
    "a correction of a block that was not corrected": of_source(
        "blocks-corrected", IN_BLOCKS, Scan("events", 4, Blocks(12, 12, False, ((12, 1),)))
    ),
    "persons within blocks beside rows of no block": of_source("blocks-mixed", IN_BLOCKS, UnitJoin(IN_BLOCKS, VISITS, (), ())),
    "groups discovered by weights finer than allowed": fault(
        "range-too-wide", replace(BY_NOTE, groups=SPREAD), replace(BY_NOTE, groups=replace(SPREAD, spread_bits=25))
    ),
    "groups discovered by weights of less than no bit": fault(
        "range-too-wide", replace(BY_NOTE, groups=SPREAD), replace(BY_NOTE, groups=replace(SPREAD, spread_bits=-1))
    ),
    "groups discovered by weights in a table that is too long": fault(
        "range-too-wide",
        replace(BY_NOTE, groups=SPREAD),
        bad_facts=replace(FACTS, tables={"visits": TableFacts(COLUMNS, 8, 2**46)}),
    ),
    "distinct values where groups are discovered by weights": fault(
        "measure-unsupported",
        measured(DistinctCount(N), keys=(("note", NOTE),), groups=FOUND),
        measured(DistinctCount(N), keys=(("note", NOTE),), groups=SPREAD),
    ),
    "row weights where groups are discovered by weights": fault(
        "keys-need-rows", replace(BY_NOTE, groups=SPREAD), replace(BY_NOTE, bounding=Weighted(2, 10), vectors=(), groups=SPREAD)
    ),
    "groups discovered for no delta": fault("keys-delta", BY_NOTE, replace(BY_NOTE, groups=replace(FOUND, delta=Fraction(0)))),
    "groups discovered for a delta of 1": fault("keys-delta", BY_NOTE, replace(BY_NOTE, groups=replace(FOUND, delta=Fraction(1)))),
    "no group to be shown": fault("keys-delta", BY_NOTE, replace(BY_NOTE, groups=replace(FOUND, groups_max=0))),
    "a delta beyond what tails are known for": fault(
        "probability-invalid", BY_NOTE, replace(BY_NOTE, groups=replace(FOUND, delta=Fraction(1, 2**201)))
    ),
}

BOUNDS = {
    "weights for rows of a join": fault("weights-unsound", WEIGHTED, replace(WEIGHTED, source=UnitJoin(VISITS, Scan("visits", 1), (), ()))),
    "weights for no row": fault("weights-unsound", WEIGHTED, replace(WEIGHTED, bounding=Weighted(0, 10))),
    "weights for discovered groups": fault(
        "weights-unsound",
        replace(WEIGHTED, keys=(("city", CITY),), groups=CITIES),
        replace(WEIGHTED, keys=(("city", CITY),), groups=FOUND),
    ),
    "clipping over discovered groups": fault(
        "clipped-known-groups",
        replace(CLIPPED, keys=(("city", CITY),), groups=SPREAD),
        replace(CLIPPED, keys=(("city", CITY),), groups=FOUND),
    ),
    "a grid of weights that is too fine": fault("bound-missing", WEIGHTED, replace(WEIGHTED, bounding=Weighted(2, 41))),
    "a grid of cells with less than no bit": fault("bound-missing", CLIPPED, replace(CLIPPED, bounding=Clipped(-1))),
    "clipping like a vector that there is not": fault(
        "bound-missing", CLIPPED, replace(CLIPPED, vectors=(replace(ROWS, bound=Cap(64, "nothing")),))
    ),
    "clipping without a bound": fault("bound-missing", CLIPPED, replace(CLIPPED, vectors=(ROWS,))),
    "clipping to nothing": fault("bound-missing", CLIPPED, replace(CLIPPED, vectors=(replace(ROWS, bound=Cap(0)),))),
    "a bound on ranked rows": fault("bound-missing", query(), query(vectors=(replace(ROWS, bound=Cap(3)),))),
    "no groups kept": fault("bound-missing", GROUPED, replace(GROUPED, bounding=Grouped(0))),
    "a cell clamped to nothing": fault("bound-missing", GROUPED, replace(GROUPED, vectors=(replace(ROWS, bound=Cap(0)),))),
    "a bound on counted units": fault(
        "bound-missing", measured(UnitCount()), query(vectors=(Vector("measured", UnitCount(), GAUSSIAN, Cap(1)),))
    ),
    "a bound on distinct values": fault(
        "bound-missing", measured(DistinctCount(N)), query(vectors=(Vector("measured", DistinctCount(N), GAUSSIAN, Cap(1)),))
    ),
    "a sum that follows nobody": fault("bound-missing", following(RowCount(), SPENT), following(RowCount(), SPENT, name="nobody")),
    "a sum that follows a sum": fault("bound-missing", following(RowCount(), SPENT), following(SPENT, SPENT)),
    "a sum that follows a count of other rows": fault(
        "bound-missing", following(RowCount(not_null(N)), SPENT), following(RowCount(FLAG), SPENT)
    ),
    "a count that follows a count": fault("bound-missing", following(RowCount(), SPENT), following(RowCount(), RowCount())),
    "units counted by weight": fault("measure-unsupported", WEIGHTED, replace(WEIGHTED, vectors=(Vector("units", UnitCount(), GAUSSIAN),))),
    "distinct values with clipping": fault(
        "measure-unsupported", measured(DistinctCount(N)), measured(DistinctCount(N), bounding=Clipped(4))
    ),
    "Gaussian noise on a pure account": fault("gaussian-needs-delta", query(vectors=(replace(ROWS, law=LAPLACE),)), query(), facts=PURE),
}

MEASURES = {
    "a condition that is a number": fault("type-mismatch", measured(RowCount(FLAG)), measured(RowCount(N))),
    "units where a text": fault("type-mismatch", measured(UnitCount(FLAG)), measured(UnitCount(CITY))),
    "distinct real numbers": fault("type-mismatch", measured(DistinctCount(N)), measured(DistinctCount(MONEY))),
    "a sum of texts": fault("type-mismatch", measured(SPENT), measured(replace(SPENT, value=CITY))),
    "a sum on no grid": fault("sum-bounds", measured(SPENT), measured(replace(SPENT, steps=0))),
    "a sum on too fine a grid": fault("sum-bounds", measured(replace(SPENT, steps=10**6)), measured(replace(SPENT, steps=10**12 + 1))),
    "a sum with its bounds the wrong way round": fault(
        "sum-bounds", measured(SPENT), measured(replace(SPENT, lower=Fraction(10), upper=Fraction(0)))
    ),
    "a sum beyond exact doubles": fault("range-too-wide", measured(SPENT), measured(replace(SPENT, upper=Fraction(2**52)))),
    "a sum shifted beyond exact doubles": fault("range-too-wide", measured(SPENT), measured(replace(SPENT, offset=2**52))),
    "a unit that moves a sum too far": fault(
        "range-too-wide",
        measured(replace(SPENT, upper=Fraction(2**51)), source=LONG),
        measured(replace(SPENT, upper=Fraction(2**51)), source=Scan("long", 5_000)),
    ),
    "a sum that could overflow": fault(
        "range-too-wide", measured(replace(SPENT, upper=Fraction(2**40))), measured(replace(SPENT, upper=Fraction(2**51)))
    ),
    "a norm that could overflow": fault("range-too-wide", CLIPPED, replace(CLIPPED, vectors=(replace(ROWS, bound=Cap(2**61)),))),
    "quantiles of clamped cells": fault("measure-unsupported", quantile(), quantile(bounding=Grouped(1))),
    "a quantile of texts": fault("type-mismatch", quantile(), quantile(value=CITY)),
    "a quantile on no grid": fault("quantile-invalid", quantile(), quantile(steps=0)),
    "a quantile of days on a grid": fault("quantile-invalid", quantile(value=Column("day")), quantile(value=Column("day"), steps=2)),
    "a quantile with its bounds the wrong way round": fault("quantile-invalid", quantile(), quantile(lower=Fraction(11))),
    "a quantile beyond exact doubles": fault("range-too-wide", quantile(), quantile(upper=Fraction(2**52))),
    "no quantile": fault("quantile-invalid", quantile(), quantile(targets=())),
    "quantiles out of order": fault(
        "quantile-invalid",
        quantile(targets=(AtShare(Fraction(1, 4)), AtShare(Fraction(1, 2)))),
        quantile(targets=(AtShare(Fraction(1, 2)), AtShare(Fraction(1, 4)))),
    ),
    "a quantile of nothing": fault("quantile-invalid", quantile(), quantile(targets=(AtShare(Fraction(0)),))),
    "the extreme with rank 0": fault("quantile-invalid", quantile(targets=(FromLeast(1),)), quantile(targets=(FromGreatest(0),))),
    "a quantile without noise": fault("scale-invalid", quantile(), quantile(scale=Fraction(0))),
}

RELATIONS = {
    "a filter by a number": of_source("type-mismatch", Filter(VISITS, FLAG), Filter(VISITS, N)),
    "a column that is not there": of_source("unknown-column", Filter(VISITS, FLAG), Filter(VISITS, Column("elsewhere"))),
    "a column twice": of_source("column-name", Project(VISITS, (("x", N), ("y", N))), Project(VISITS, (("x", N), ("X", N)))),
    "a reserved column": of_source("column-name", Project(VISITS, (("rank", N),)), Project(VISITS, (("_rank", N),))),
    "a column without a name": of_source("column-name", Project(VISITS, (("x", N),)), Project(VISITS, (("", N),))),
    "a name that is cut off": of_source("column-name", Project(VISITS, (("x" * 63, N),)), Project(VISITS, (("x" * 64, N),))),
    "a public table that is not there": of_source(
        "unknown-table", PublicJoin(VISITS, "places", CITY, ()), PublicJoin(VISITS, "elsewhere", CITY, ())
    ),
    "a public table joined on another type": of_source(
        "type-mismatch", PublicJoin(VISITS, "places", CITY, ()), PublicJoin(VISITS, "places", N, ())
    ),
    "a public column that is not there": of_source(
        "unknown-column",
        PublicJoin(VISITS, "places", CITY, (("people", "people"),)),
        PublicJoin(VISITS, "places", CITY, (("people", "elsewhere"),)),
    ),
    "a joined column that is not there": of_source(
        "unknown-column", UnitJoin(VISITS, VISITS, (("n", "n"),), (("m", "n"),)), UnitJoin(VISITS, VISITS, (("n", "n"),), (("m", "x"),))
    ),
    "a join of different types": of_source(
        "type-mismatch", UnitJoin(VISITS, VISITS, (("n", "n"),), ()), UnitJoin(VISITS, VISITS, (("n", "city"),), ())
    ),
    "a join on real numbers": of_source(
        "type-mismatch", SemiJoin(VISITS, VISITS, (("card", "card"),)), SemiJoin(VISITS, VISITS, (("money", "money"),))
    ),
    "a join of numbers and texts that are identifiers": of_source(
        "type-mismatch", SemiJoin(VISITS, VISITS, (("card", "card"),)), SemiJoin(VISITS, VISITS, (("card", "mail"),))
    ),
    "a condition of a join that is a number": of_source(
        "type-mismatch",
        UnitJoin(VISITS, VISITS, (), (("m", "n"),), where=call(Function.LESS, N, Column("m"))),
        UnitJoin(VISITS, VISITS, (), (("m", "n"),), where=Column("m")),
    ),
    "a condition of EXISTS on a column that is not named": of_source(
        "unknown-column",
        SemiJoin(VISITS, VISITS, (), False, (("m", "n"),), call(Function.LESS, N, Column("m"))),
        SemiJoin(VISITS, VISITS, (), False, (), call(Function.LESS, N, Column("m"))),
    ),
    "a column of EXISTS that has the name of one outside": of_source(
        "column-name",
        SemiJoin(VISITS, VISITS, (), False, (("m", "n"),), call(Function.LESS, N, Column("m"))),
        SemiJoin(VISITS, VISITS, (), False, (("n", "n"),), call(Function.LESS, N, N)),
    ),
    "a union of nothing": of_source("union-empty", Union((VISITS,)), Union(())),
    "a union of other columns": of_source(
        "union-columns",
        Union((Project(VISITS, (("x", N),)), Project(VISITS, (("x", N),)))),
        Union((Project(VISITS, (("x", N),)), Project(VISITS, (("y", N),)))),
    ),
    "a union of other grids": of_source(
        "union-columns",
        Union((Project(VISITS, (("x", MONEY),)), Project(VISITS, (("x", MONEY),)))),
        Union((Project(VISITS, (("x", MONEY),)), Project(VISITS, (("x", COMPUTED),)))),
    ),
    "a union of other types": of_source(
        "union-columns",
        Union((Project(VISITS, (("x", N),)), Project(VISITS, (("x", N),)))),
        Union((Project(VISITS, (("x", N),)), Project(VISITS, (("x", CITY),)))),
    ),
    "a sum of nothing per unit": of_source(
        "wrong-arguments", per_unit(UnitAggregateKind.COUNT, None), per_unit(UnitAggregateKind.SUM, None)
    ),
    "rows of a unit grouped by a computed real": of_source(
        "type-mismatch", PerUnit(Scan("visits", 4), (), (("by", MONEY),)), PerUnit(Scan("visits", 4), (), (("by", COMPUTED),))
    ),
    "any of numbers per unit": of_source("type-mismatch", per_unit(UnitAggregateKind.ANY, FLAG), per_unit(UnitAggregateKind.ANY, N)),
    "a least text per unit": of_source("type-mismatch", per_unit(UnitAggregateKind.MIN, N), per_unit(UnitAggregateKind.MIN, CITY)),
    "a sum per unit on no grid": of_source(
        "type-mismatch", per_unit(UnitAggregateKind.SUM, MONEY), per_unit(UnitAggregateKind.SUM, COMPUTED)
    ),
    "a sum per unit that could overflow": of_source(
        "range-too-wide", per_unit(UnitAggregateKind.SUM, Column("wide"), 1), per_unit(UnitAggregateKind.SUM, Column("wide"), 4)
    ),
    "a case without a condition": of_source(
        "wrong-arguments", Project(VISITS, (("x", Case(((FLAG, N),), N)),)), Project(VISITS, (("x", Case((), N)),))
    ),
    "a unit with too many rows": fault(
        "unit-rows", query(source=Union((VISITS, VISITS))), query(source=UnitJoin(VISITS, VISITS, (), ())), facts=STRICT
    ),
    "a unit with too many bytes": fault(
        "unit-size",
        query(keys=(("a", NOTE), ("b", CITY)), groups=KnownGroups((("", "a"),))),
        query(keys=tuple((name, NOTE) for name in "abcd"), groups=KnownGroups((("", "", "", ""),))),
        facts=STRICT,
    ),
    "a unit with too much work": fault(
        "unit-work", query(source=Filter(VISITS, FLAG)), measured(RowCount(call(Function.OR, *[FLAG] * 50))), facts=STRICT
    ),
}

NORMS = {
    "norms over groups of an identifier": fault("groups-by-unit", by_norm(), by_norm(keys=(("who", Column("card")),))),
    "norms over groups of a computed real": fault("groups-by-real", by_norm(keys=(("x", MONEY),)), by_norm(keys=(("x", COMPUTED),))),
    "norms of distinct values": fault("measure-unsupported", by_norm(measure=UnitCount()), by_norm(measure=DistinctCount(N))),
    "norms of rows where a number": fault("type-mismatch", by_norm(measure=RowCount(FLAG)), by_norm(measure=RowCount(N))),
    "norms of a sum on no grid": fault("sum-bounds", by_norm(measure=SPENT), by_norm(measure=replace(SPENT, steps=0))),
    "norms that could overflow": fault(
        "range-too-wide",
        by_norm(measure=replace(SPENT, upper=Fraction(2**51)), source=LONG),
        by_norm(measure=replace(SPENT, upper=Fraction(2**51)), source=Scan("long", 5_000)),
    ),
    "norms of a shifted sum that could overflow": fault(
        "range-too-wide",
        by_norm(measure=replace(SPENT, offset=2**51), source=LONG),
        by_norm(measure=replace(SPENT, offset=2**51), source=Scan("long", 5_000)),
    ),
    "no edge": fault("norm-edges", by_norm(), by_norm(squared_edges=())),
    "too many edges": fault("norm-edges", by_norm(squared_edges=tuple(range(256))), by_norm(squared_edges=tuple(range(257)))),
    "an edge below nothing": fault("norm-edges", by_norm(squared_edges=(0, 4)), by_norm(squared_edges=(-1, 4))),
    "an edge twice": fault("norm-edges", by_norm(squared_edges=(1, 4)), by_norm(squared_edges=(4, 4))),
    "edges out of order": fault("norm-edges", by_norm(squared_edges=(1, 4)), by_norm(squared_edges=(4, 1))),
    "an edge that no square can reach": fault("norm-edges", by_norm(squared_edges=(2**124 - 1,)), by_norm(squared_edges=(2**124,))),
    "an edge that is no integer": fault("plan-type", by_norm(squared_edges=(0, 1)), by_norm(squared_edges=(0, True))),
    "an edge that is a fraction": fault("plan-type", by_norm(squared_edges=(0, 1)), by_norm(squared_edges=(0, Fraction(1)))),
    "edges in a list": fault("plan-type", by_norm(squared_edges=(0, 1)), by_norm(squared_edges=[0, 1])),
    "a sample of no units": fault("norm-sample", by_norm(one_in=8), by_norm(one_in=0)),
    "too small a sample": fault("norm-sample", by_norm(one_in=65_536), by_norm(one_in=65_537)),
    "a sample of a truth": fault("plan-type", by_norm(one_in=1), by_norm(one_in=True)),
    "a sample of too much work": fault("unit-work", by_norm(source=BUSY), by_norm(source=BUSY, one_in=2), facts=STRICT),
    "a bin with a reserved name": fault("column-name", by_norm(), by_norm(name="_size")),
    "norms over a column that is not there": fault("unknown-column", by_norm(), by_norm(keys=(("x", Column("elsewhere")),))),
    "bins chosen by a column of the rows": fault("unknown-column", by_norm(), replace(by_norm(), keys=(("city", CITY),), groups=CITIES)),
    "weights for bins": fault("weights-unsound", by_norm(), replace(by_norm(), bounding=Weighted(1, 4))),
    "norms over too many rows": fault("unit-rows", by_norm(), by_norm(source=UnitJoin(VISITS, VISITS, (), ())), facts=STRICT),
    "norms over too many bytes": fault(
        "unit-size",
        by_norm(keys=tuple((name, CITY) for name in "abcd")),
        by_norm(keys=tuple((name, NOTE) for name in "abcd")),
        facts=STRICT,
    ),
    "norms of too much work": fault("unit-work", by_norm(), by_norm(measure=RowCount(call(Function.OR, *[FLAG] * 50))), facts=STRICT),
    "too many edges for so little work": fault("unit-work", by_norm(), by_norm(squared_edges=tuple(range(200))), facts=STRICT),
}


def alike(rows: Cap, spent: Cap | Follow | None, bounding: Bounding = CELLS) -> Query:
    """A count and a sum in each city, each with a bound of its own."""
    return replace(
        BY_CITY, bounding=bounding, vectors=(Vector("rows", RowCount(), GAUSSIAN, rows), Vector("spent", SPENT, GAUSSIAN, spent))
    )


BOTH = alike(Cap(64, "spent"), Cap(99, "rows"))
ALIKE = {
    "a vector scaled like itself": fault("bound-missing", BOTH, alike(Cap(64, "rows"), Cap(99, "rows"))),
    "a vector scaled like none": fault("bound-missing", BOTH, alike(Cap(64, "nobody"), Cap(99, "rows"))),
    "a vector scaled like one that follows": fault(
        "bound-missing", alike(Cap(64), Follow("rows")), alike(Cap(64, "spent"), Follow("rows"))
    ),
    "a vector scaled to nothing, like another": fault("bound-missing", BOTH, alike(Cap(0, "spent"), Cap(99, "rows"))),
    "a cell clamped like another": fault(
        "bound-missing", alike(Cap(3), Cap(9), bounding=Grouped(2)), alike(Cap(3, "spent"), Cap(9), bounding=Grouped(2))
    ),
}

UNITS = {
    "units clipped and clamped": fault("bound-missing", clipped_units(), clipped_units(bounding=Grouped(2))),
    "units clipped and weighted": fault("bound-missing", clipped_units(), clipped_units(bounding=Weighted(2, 4))),
    "units clipped to nothing": fault("bound-missing", clipped_units(bound=None), clipped_units(bound=Cap(0))),
    "units clipped to less than nothing": fault("bound-missing", clipped_units(), clipped_units(bound=Cap(-1))),
    "units that follow a count": fault("bound-missing", following(RowCount(), SPENT), following(RowCount(), UnitCount())),
    "a sum that follows units": fault("bound-missing", following(RowCount(), SPENT), following(UnitCount(), SPENT)),
    "distinct values with a bound": fault("bound-missing", clipped_units(), clipped_units(DistinctCount(N))),
    "units clipped over discovered groups": fault("clipped-known-groups", clipped_units(), clipped_units(groups=FOUND)),
    "a length of units that could overflow": fault("range-too-wide", clipped_units(), clipped_units(bound=Cap(2**61))),
    "clipped units where a number": fault("type-mismatch", clipped_units(UnitCount(FLAG)), clipped_units(UnitCount(N))),
}

FAULTS = NORMS | UNITS | ALIKE | PLANS | GROUPS | BOUNDS | MEASURES | RELATIONS
