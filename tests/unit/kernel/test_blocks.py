"""Blocks of time: what a query reads, for which neighbours it is certified, what each block pays; and numbers of a public calendar."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.block_calendar import Period, block_of_day
from lapwing.kernel.blocks import BlockCost, reach_of
from lapwing.kernel.calendar import to_days
from lapwing.kernel.canonical import canonical_bytes
from lapwing.kernel.certify import certify
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.facts import TableFacts
from lapwing.kernel.ir import Blocks, Cap, Clipped, Plan, Query, Ranked, Relation, RowCount, Scan, SemiJoin, Union, UnitJoin, Vector
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, loss
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import issue
from lapwing.kernel.release import Released, release
from lapwing.kernel.stability import shape_of
from tests.unit.kernel.bad_plans import CITIES, CITY, COLUMNS, FACTS

TABLES = {
    "visits": TableFacts(COLUMNS, 8, 1_000, blocks=(10, 40)),
    "drugs": TableFacts(COLUMNS, 8, 1_000, blocks=(10, 40)),
    "people": TableFacts(COLUMNS, 1, 1_000),
}
BLOCKED = replace(FACTS, tables=TABLES, account=Account.APPROXIMATE)
PEOPLE = Scan("people", 1)


def visits(first: int, last: int, *, apart: bool = False) -> Scan:
    return Scan("visits", 4, Blocks(first, last, apart))


def counted(source: Relation) -> Query:
    vector = Vector("n", RowCount(), DiscreteGaussian(Fraction(1_024)), Cap(2**10))
    return Query(source, (("city", CITY),), CITIES, Clipped(10), (vector,))


def joined(left: Relation, right: Relation) -> Relation:
    return UnitJoin(left, right, (), ())


@pytest.mark.parametrize(
    ("scan", "rows", "rows_max", "weighable"),
    [
        (visits(12, 12), 4, 1_000, True),
        (visits(12, 21), 40, 10_000, False),
        (visits(12, 21, apart=True), 4, 10_000, True),
        (visits(10, 40), 124, 31_000, False),
        (PEOPLE, 1, 1_000, True),
    ],
)
def test_a_person_has_its_rows_of_every_block(scan: Scan, rows: int, rows_max: int, weighable: bool) -> None:
    shape = shape_of(scan, BLOCKED)
    assert (shape.rows_per_unit, shape.rows_max, shape.weighable) == (rows, rows_max, weighable)


@pytest.mark.parametrize(
    ("source", "declared"),
    [
        (visits(12, 12), True),
        (visits(12, 13), False),
        (visits(12, 13, apart=True), True),
        (joined(visits(12, 12), visits(12, 12)), True),
        (joined(visits(12, 12), visits(13, 13)), False),
        (joined(visits(12, 12, apart=True), visits(13, 20, apart=True)), True),
        (joined(visits(12, 12), PEOPLE), False),
        (SemiJoin(PEOPLE, visits(12, 12)), False),
        (Union((visits(12, 12), visits(20, 20))), False),
        (PEOPLE, True),
    ],
)
@pytest.mark.parametrize("relation", list(Neighbours))
def test_one_block_or_persons_within_blocks_keep_the_declared_relation(source: Relation, declared: bool, relation: Neighbours) -> None:
    facts = replace(BLOCKED, neighbours=relation)
    assert reach_of(source).facts(facts).neighbours is (relation if declared else Neighbours.BOUNDED)
    (query,) = certify(Plan((counted(source),)), facts).queries
    bounded = not declared or relation is Neighbours.BOUNDED
    assert query.vectors[0].sensitivity.l2_squared == (2 if bounded else 1) * 2**20


def test_each_block_pays_for_the_queries_that_read_it() -> None:
    first, second, third = counted(visits(12, 20)), counted(visits(15, 30, apart=True)), counted(SemiJoin(PEOPLE, visits(30, 30)))
    certified = certify(Plan((first, second, third)), BLOCKED)
    one, two, three = (certify(Plan((query,)), BLOCKED).cost for query in (first, second, third))
    assert certified.blocks == (
        BlockCost(12, 14, one),
        BlockCost(15, 20, one + two),
        BlockCost(21, 29, two),
        BlockCost(30, 30, two + three),
        BlockCost(None, None, three),
    )
    assert all(certified.cost.covers(block.cost) for block in certified.blocks)


def test_the_cost_of_a_block_is_rounded_up_once() -> None:
    query = counted(visits(12, 12))
    pair = certify(Plan((query, query)), BLOCKED)
    alone = certify(Plan((query,)), BLOCKED).cost
    assert pair.blocks == (BlockCost(12, 12, pair.cost),)
    assert 0 <= 2 * alone.loss - pair.cost.loss <= 1 and pair.cost != Cost.zero()


def test_a_plan_without_blocks_has_no_costs_by_block() -> None:
    assert certify(Plan((counted(PEOPLE),)), BLOCKED).blocks == ()


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (Scan("visits", 4), "blocks-missing"),
        (Scan("people", 1, Blocks(12, 12)), "blocks-missing"),
        (visits(9, 12), "blocks-open"),
        (visits(39, 41), "blocks-open"),
        (visits(13, 12), "blocks-open"),
        (joined(visits(12, 12, apart=True), PEOPLE), "blocks-mixed"),
        (joined(visits(12, 20, apart=True), visits(12, 20)), "blocks-mixed"),
    ],
)
def test_what_is_refused(source: Relation, code: str) -> None:
    with pytest.raises(Refused) as refused:
        certify(Plan((counted(source),)), BLOCKED)
    assert refused.value.code == code


@pytest.mark.parametrize("account", list(Account))
def test_a_person_within_several_blocks_is_as_many_units(account: Account) -> None:
    law = DiscreteGaussian(Fraction(1_024)) if account is Account.APPROXIMATE else DiscreteLaplace(Fraction(1_024))
    facts = replace(BLOCKED, account=account)

    def person(source: Relation) -> Cost:
        query = replace(counted(source), bounding=Ranked(), vectors=(Vector("n", RowCount(), law),))
        certified = certify(Plan((query,)), facts)
        assert certified.person is not None
        return certified.person

    one, range_of_five, five = (person(visits(12, last, apart=apart)) for last, apart in ((12, True), (16, False), (16, True)))
    assert five.loss == one.loss * (25 if account is Account.APPROXIMATE else 5)
    assert range_of_five.loss >= five.loss > one.loss, "over a range its rows are more, and it may have others"


@pytest.mark.parametrize("order", [2, 3, 32, 1_000])
@pytest.mark.parametrize("units", [2, 3, 31])
def test_the_loss_of_a_group_is_at_most_its_square_at_every_order(order: int, units: int) -> None:
    for scale in (Fraction(1, 8), Fraction(1), Fraction(3, 2), Fraction(64), Fraction(4_096)):
        for law in (DiscreteLaplace(scale), DiscreteGaussian(scale)):
            one = loss(law, Account.APPROXIMATE, l1=3, l2_squared=9, order=order)
            group = loss(law, Account.APPROXIMATE, l1=3 * units, l2_squared=9 * units**2, order=order)
            assert group <= one * units**2


def test_digests_of_plans_without_blocks_are_what_they_were() -> None:
    assert canonical_bytes(Scan("visits", 4)) == b"d19:s4:Scans6:visitsi4;"
    assert canonical_bytes(visits(1, 2)) not in (canonical_bytes(Scan("visits", 4)), canonical_bytes(visits(1, 2, apart=True)))


@pytest.mark.parametrize(
    ("first", "second", "period", "apart"),
    [
        ("2024-02-29", "2024-03-01", Period.DAY, 1),
        ("1969-12-31", "1970-01-01", Period.DAY, 1),
        ("2024-12-29", "2024-12-30", Period.WEEK, 1),
        ("2024-12-30", "2025-01-05", Period.WEEK, 0),
        ("1969-12-28", "1969-12-29", Period.WEEK, 1),
        ("2023-12-31", "2024-01-01", Period.MONTH, 1),
        ("2024-01-01", "2025-01-01", Period.MONTH, 12),
    ],
)
def test_blocks_are_numbered_by_the_calendar(first: str, second: str, period: Period, apart: int) -> None:
    numbers = [block_of_day(to_days(datetime.date.fromisoformat(day)), period) for day in (first, second)]
    assert numbers[1] - numbers[0] == apart


@pytest.mark.parametrize("charged", ["nothing", "one block less", "less", "another range"])
def test_nothing_is_drawn_for_blocks_that_were_not_charged(charged: str) -> None:
    plan = certify(Plan((counted(visits(12, 20)),)), BLOCKED)
    (paid,) = plan.blocks
    ranges = {
        "nothing": (),
        "one block less": (replace(paid, last=19),),
        "less": (replace(paid, cost=Cost(paid.cost.loss - 1, 0)),),
        "another range": (replace(paid, first=13, last=21),),
    }
    exact = Exact([ExactTable(groups=[], vectors=[[]], units=None)], certified=plan)
    with pytest.raises(LapwingError) as refusal:
        release(plan, issue(1, plan.digest, plan.cost, ranges=ranges[charged]), exact)
    assert refusal.value.code == "permit-mismatch"
    assert isinstance(release(plan, issue(2, plan.digest, plan.cost, ranges=plan.blocks), exact), Released)
