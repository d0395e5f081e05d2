"""Plan shapes over blocks of time: every plan shape, its units persons over several blocks, within each block, and in one block alone."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from lapwing.audit.block_worlds import FIRST_DAY, LAST_DAY, block_number
from lapwing.audit.plan_shapes import BITS, NOTHING, ONE, ONE_GROUP, Shape, law_of, number, shapes
from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.kernel.accounting import Account
from lapwing.kernel.blocks import reach_of
from lapwing.kernel.expressions import Column, Function, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Blocks,
    Cap,
    Clipped,
    Filter,
    JoinKind,
    KnownGroups,
    PerUnit,
    Plan,
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

JANUARY, DECEMBER = block_number(FIRST_DAY) or 0, block_number(LAST_DAY) or 0
FEBRUARY, JULY = JANUARY + 1, JANUARY + 6
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
    return found | crossing_shapes()


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


def _replaced(query: Query, blocks: Blocks) -> Query:
    """The query over these blocks of the tables that have any."""

    def changed(part: Any) -> Any:
        if isinstance(part, Scan):
            return part if part.table in STANDING else replace(part, blocks=blocks)
        if isinstance(part, tuple):
            return tuple(changed(each) for each in part)
        if hasattr(part, "__dataclass_fields__"):
            return replace(part, **{each.name: changed(getattr(part, each.name)) for each in fields(part) if each.init})
        return part

    return replace(query, source=changed(query.source))
