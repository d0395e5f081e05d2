"""Plan shapes over blocks of time: every plan shape, its units persons over several blocks, within each block, and in one block alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from lapwing.audit.block_worlds import DECEMBER, EVERY, FEBRUARY, JANUARY, JULY
from lapwing.audit.plan_shapes import BITS, NOTHING, ONE, ONE_GROUP, Shape, law_of, number, shapes
from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.kernel.accounting import Account
from lapwing.kernel.block_calendar import days_of_block
from lapwing.kernel.blocks import reach_of
from lapwing.kernel.domains import IntegerDomain
from lapwing.kernel.expressions import Column, Function, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Blocks,
    Cap,
    Clipped,
    Filter,
    GridSum,
    JoinKind,
    KnownGroups,
    PerUnit,
    Plan,
    Project,
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
    Vector,
    Weighted,
)
from lapwing.kernel.stability import shape_of

RANGES = ((JANUARY, JULY), (FEBRUARY, DECEMBER))
"""Of the queries of a plan in turn: they overlap, and neither is the other."""
STANDING = frozenset({"people"})


def block_shapes(account: Account) -> dict[str, Shape]:
    """Every shape three times, where it can be certified: persons over blocks, within each block, and in one block alone."""
    found: dict[str, Shape] = {}
    for name, shape in {**shapes(account), **quantile_shapes(account)}.items():
        found[f"{name}, over blocks"] = _with_blocks(shape, apart=False, one=False)
        found[f"{name}, within blocks"] = _with_blocks(shape, apart=True, one=False)
        found[f"{name}, of one block"] = _with_blocks(shape, apart=False, one=True)
    return {name: _as_corrected(shape) for name, shape in (found | crossing_shapes()).items()}


def crossing_shapes() -> dict[str, Shape]:
    """Queries that read several ranges of blocks, or blocks and people."""

    def visits(first: int, last: int, *, apart: bool = False) -> Scan:
        return Scan("visits", 3, Blocks(first, last, apart))

    def drugs(first: int, last: int, *, apart: bool = False) -> Scan:
        return Scan("drugs", 4, Blocks(first, last, apart))

    def counted(source: Relation, *, units: bool = False) -> Shape:
        measure = UnitCount() if units else RowCount()
        return lambda facts: Plan((Query(source, NOTHING, ONE_GROUP, Ranked(), (Vector("n", measure, law_of(facts)),)),))

    def clipped(source: Relation) -> Shape:
        cap = Cap(2 * ONE)
        return lambda facts: Plan((Query(source, NOTHING, ONE_GROUP, Clipped(BITS), (Vector("n", RowCount(), law_of(facts), cap),)),))

    def days_since(source: Relation, block: int) -> Relation:
        start = days_of_block(block, EVERY)[0]
        return Project(source, (("days", call(Function.SUBTRACT, call(Function.DAY_NUMBER, Column("day")), number(start))),))

    def summed(source: Relation) -> Shape:
        """Between the ends that the blocks give the column."""

        def plan(facts: Facts) -> Plan:
            domain = shape_of(_as_prepared(source, facts), facts).columns["days"]
            assert isinstance(domain, IntegerDomain)
            measure = GridSum(Column("days"), Fraction(domain.lo), Fraction(domain.hi), 1)
            return Plan((Query(source, NOTHING, ONE_GROUP, Ranked(), (Vector("s", measure, law_of(facts)),)),))

        return plan

    def joined(left: Relation, right: Relation) -> Relation:
        return UnitJoin(left, right, (), (("drug", "drug"),))

    sexes = KnownGroups((("f",), ("m",), (None,)))
    of_people = UnitJoin(visits(JULY, JULY), Scan("people", 1), (), (("sex", "sex"),), JoinKind.LEFT)
    rows = UnitAggregate(UnitAggregateKind.COUNT, None)
    visits_of_unit = PerUnit(visits(JANUARY, DECEMBER), (("visits", rows),))
    many = call(Function.GREATER, Column("visits"), number(3))
    return {
        "a join of two ranges": counted(joined(visits(JANUARY, JULY), drugs(FEBRUARY, DECEMBER))),
        "a join of two ranges, clipped": clipped(joined(visits(JANUARY, JULY), drugs(FEBRUARY, DECEMBER))),
        "a join within blocks": counted(joined(visits(JANUARY, JULY, apart=True), drugs(FEBRUARY, DECEMBER, apart=True))),
        "a join within blocks, clipped": clipped(joined(visits(JANUARY, DECEMBER, apart=True), drugs(JANUARY, DECEMBER, apart=True))),
        "a union of two ranges": counted(Union((visits(JANUARY, FEBRUARY), visits(JULY, DECEMBER)))),
        "a union within blocks": counted(Union((visits(JANUARY, JULY, apart=True), visits(JULY, DECEMBER, apart=True)))),
        "came in January, not in December": counted(
            SemiJoin(visits(JANUARY, JANUARY), visits(DECEMBER, DECEMBER), negated=True), units=True
        ),
        "came in January and in December": clipped(SemiJoin(visits(JANUARY, JANUARY), visits(DECEMBER, DECEMBER))),
        "people with visits of one block": counted(SemiJoin(Scan("people", 1), visits(JULY, JULY)), units=True),
        "visits of one block by sex": lambda facts: Plan(
            (Query(of_people, (("sex", Column("sex")),), sexes, Clipped(BITS), (Vector("n", RowCount(), law_of(facts), Cap(ONE)),)),)
        ),
        "units with many visits": counted(Filter(visits_of_unit, many), units=True),
        "units with many visits of a block": counted(
            Filter(PerUnit(visits(JANUARY, DECEMBER, apart=True), (("visits", rows),)), many), units=True
        ),
        "days of one block, summed": summed(days_since(visits(DECEMBER, DECEMBER), DECEMBER)),
        "days of a range, summed": summed(days_since(visits(FEBRUARY, JULY), FEBRUARY)),
        "days within blocks, summed": summed(days_since(visits(JANUARY, JULY, apart=True), JANUARY)),
        "weighted over blocks": lambda facts: Plan(
            (
                Query(
                    Scan("visits", 12, Blocks(JANUARY, DECEMBER, True)),
                    NOTHING,
                    ONE_GROUP,
                    Weighted(3, BITS),
                    (Vector("n", RowCount(), law_of(facts)),),
                ),
            )
        ),
    }


def _with_blocks(shape: Shape, *, apart: bool, one: bool) -> Shape:
    """The queries of the shape that may be certified so: units of one block have no rows in tables without blocks, and rows have weights by
    the rows of one block.
    """

    def plan(facts: Facts) -> Plan:
        queries = []
        for place, query in enumerate(shape(facts).queries):
            first, last = (JULY, JULY) if one else RANGES[place % 2]
            joins_standing = reach_of(_replaced(query, Blocks(first, last)).source).standing
            weighs_several = isinstance(query.bounding, Weighted) and not apart and not one
            if not (apart and joins_standing) and not weighs_several:
                queries.append(_replaced(query, Blocks(first, last, apart)))
        return Plan(tuple(queries))

    return plan


def _as_corrected(shape: Shape) -> Shape:
    """The shape, with the corrections of the blocks that it reads."""

    return lambda facts: Plan(tuple(replace(query, source=_as_prepared(query.source, facts)) for query in shape(facts).queries))


def _as_prepared(source: Any, facts: Facts) -> Any:
    def named(scan: Scan) -> Scan:
        blocks = scan.blocks
        if blocks is None:
            return scan
        return replace(scan, blocks=facts.table(scan.table).blocks_between(blocks.first, blocks.last, apart=blocks.apart))

    return _scans_changed(source, named)


def _replaced(query: Query, blocks: Blocks) -> Query:
    """The query over these blocks of the tables that have any."""
    source = _scans_changed(query.source, lambda scan: scan if scan.table in STANDING else replace(scan, blocks=blocks))
    return replace(query, source=source)


def _scans_changed(source: Any, change: Callable[[Scan], Scan]) -> Any:
    def changed(part: Any) -> Any:
        if isinstance(part, Scan):
            return change(part)
        if isinstance(part, tuple):
            return tuple(changed(each) for each in part)
        if hasattr(part, "__dataclass_fields__"):
            return replace(part, **{each.name: changed(getattr(part, each.name)) for each in fields(part) if each.init})
        return part

    return changed(source)
