"""Versions that grow by blocks of time: what they hold, what they leave alone, and what an open snapshot still answers."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Snapshot
from lapwing.engines.losses import TableLosses
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.block_calendar import Period
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.ir import KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian
from tests.support.growing_worlds import START, Growing, growing, in_files, on_server

NAMES = ("duckdb", "postgres")
GrowingOn = Callable[..., Growing]
JANUARY_7 = datetime.date(2024, 1, 7)


@pytest.fixture
def growing_on(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GrowingOn]:
    """A growing world on an engine, by its name."""
    made: list[Growing] = []

    def on(name: str, *, every: Period = Period.DAY, time: str = "date", seed: int = 1) -> Growing:
        place = in_files if name == "duckdb" else on_server(request.getfixturevalue("postgres_worlds"))
        made.append(growing(place, tmp_path / f"{name}-{len(made)}", every=every, time=time, seed=seed))
        return made[-1]

    yield on
    for world in made:
        world.sources.close()


def _grown(world: Growing, first: datetime.date, last: datetime.date, *, version: int = 1) -> PreparedBlocks:
    """A version of the blocks from one day to another, prepared from nothing, of rows that were added for it."""
    held = PreparedBlocks(world.block(first), world.block(last))
    for block in range(held.first, held.last + 1):
        world.add_block(block)
    world.prepare(version, held)
    return held


def _counting(snapshot: Snapshot, first: int, last: int) -> Certified:
    """A plan that counts the visits of some blocks."""
    blocks = snapshot.facts.table("visits").blocks_between(first, last)
    query = Query(Scan("visits", 3, blocks), (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(), DiscreteGaussian(Fraction(4))),))
    return certify(Plan((query,)), snapshot.facts)


def _count(snapshot: Snapshot, certified: Certified) -> int:
    (table,) = snapshot.run(certified)._tables
    return int(table._vectors[0][0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("every", "time"),
    [(Period.DAY, "date"), (Period.DAY, "instant"), (Period.WEEK, "timestamp"), (Period.WEEK, "text"), (Period.MONTH, "instant")],
)
def test_a_version_that_grew_has_the_rows_of_one_from_nothing(growing_on: GrowingOn, name: str, every: Period, time: str) -> None:
    """Over more than twenty blocks (twelve months), some of them empty; rows of later blocks lie in the source before their time."""
    world = growing_on(name, every=every, time=time)
    first = world.block(START)
    last = first + (11 if every is Period.MONTH else 24)
    held = _grown(world, START, START)
    block = first + 1
    while block <= last:
        until = min(block + world.rng.randint(0, 3), last)
        for each in range(block, until + 1):
            if each % 5:
                world.add_block(each, visits=world.rng.randint(1, 60))
        held = PreparedBlocks(first, until)
        world.write(1, (block, until), held)
        assert world.engine.prepared_blocks(1) == held
        block = until + 1
    world.prepare(2, held)
    grown, anew = world.rows(1), world.rows(2)
    assert grown == anew
    assert max(row[2] for row in grown["visits"]) == 3 and len(grown["visits"]) > 60 and len(grown["calls"]) > 10
    numbers = {row[1] for row in grown["visits"]}
    assert numbers <= set(range(first, last + 1)) and len(numbers) > (last - first) // 2
    for snapshot in (world.open(1), world.open(2)):
        assert snapshot.facts.table("visits").blocks == (first, last)
        total = sum(_count(snapshot, _counting(snapshot, each, each)) for each in range(first, last + 1))
        assert total == _count(snapshot, _counting(snapshot, first, last)) == len(grown["visits"])
        snapshot.close()
    assert set(world.engine.late_rows(world.sources.declaration, 1).values()) == {0}


@pytest.mark.parametrize("name", NAMES)
def test_an_append_leaves_every_older_row_where_it_is(growing_on: GrowingOn, name: str) -> None:
    world = growing_on(name)
    held = _grown(world, START, JANUARY_7)
    before = {table: world.sources.places(1, table) for table in ("visits", "calls")}
    world.add_block(held.last + 1)
    world.write(1, (held.last + 1, held.last + 1), PreparedBlocks(held.first, held.last + 1))
    for table, places in before.items():
        after = world.sources.places(1, table)
        assert places and after.keys() > places.keys()
        assert {place: after[place] for place in places} == places


@pytest.mark.parametrize("name", NAMES)
def test_late_rows_are_left_out_and_counted(growing_on: GrowingOn, name: str) -> None:
    world = growing_on(name)
    held = _grown(world, START, JANUARY_7)
    before, declaration = world.rows(1), world.sources.declaration
    assert world.engine.late_rows(declaration, 1) == {"visits": 0, "calls": 0}
    late = [{**world.visit(START), "at": datetime.date(2024, 1, day)} for day in (1, 2, 2, 7, 8, 9)]
    world.add("visits", [*late, {**world.visit(START), "at": None, "person": None}])
    assert world.engine.late_rows(declaration, 1) == {"visits": 4, "calls": 0}
    world.write(1, (held.last + 1, held.last + 1), PreparedBlocks(held.first, held.last + 1))
    assert world.engine.late_rows(declaration, 1) == {"visits": 4, "calls": 0}
    after = world.rows(1)
    assert [row for row in after["visits"] if row[1] <= held.last] == before["visits"]


@pytest.mark.parametrize("name", NAMES)
def test_a_correction_replaces_the_rows_of_its_blocks_alone(growing_on: GrowingOn, name: str) -> None:
    world = growing_on(name)
    held = _grown(world, START, JANUARY_7)
    before, second = world.rows(1), held.first + 1
    world.add("visits", [{**world.visit(START), "at": datetime.date(2024, 1, 2), "person": 90 + n, "cost": 1.0} for n in range(4)])
    world.add("visits", [{**world.visit(START), "at": datetime.date(2024, 1, 5), "person": 80, "cost": 1.0}])
    opened = world.open(1)
    plans = {block: _counting(opened, block, block) for block in (held.first, second)}
    both = _counting(opened, held.first, held.last)
    counted = _count(opened, plans[second])
    corrected = held.with_corrections(second, second)
    world.write(1, (second, second), corrected)
    assert world.engine.prepared_blocks(1) == corrected
    after = world.rows(1)
    assert [row for row in after["visits"] if row[1] != second] == [row for row in before["visits"] if row[1] != second]
    assert after["calls"] == before["calls"]
    assert len(after["visits"]) == len(before["visits"]) + 4
    assert world.engine.late_rows(world.sources.declaration, 1) == {"visits": 1, "calls": 0}
    # who opened it before reads other blocks as before, and pays for nothing that it cannot read
    opened.check(plans[held.first])
    assert _count(opened, plans[held.first]) > 0
    for plan in (plans[second], both):
        with pytest.raises(PreparationError) as refused:
            opened.check(plan)
        assert refused.value.code == "snapshot-outdated"
        with pytest.raises(Incident):
            opened.run(plan)
    opened.close()
    newer = world.open(1)
    assert newer.facts.table("visits").corrected == ((second, 1),)
    plan = _counting(newer, second, second)
    newer.check(plan)
    assert _count(newer, plan) == counted + 4
    newer.close()
    world.write(1, (second, second + 1), corrected.with_corrections(second, second + 1))
    assert world.engine.prepared_blocks(1) == PreparedBlocks(held.first, held.last, ((second, 2), (second + 1, 1)))


@pytest.mark.parametrize("name", NAMES)
def test_old_blocks_are_deleted_with_or_without_new_ones(growing_on: GrowingOn, name: str) -> None:
    world = growing_on(name)
    held = _grown(world, START, JANUARY_7)
    opened = world.open(1)
    plans = {block: _counting(opened, block, block) for block in (held.first, held.last)}
    for step in range(1, 10):
        world.add_block(held.last + step)
        world.write(1, (held.last + step, held.last + step), PreparedBlocks(held.first + step, held.last + step))
    kept = PreparedBlocks(held.first + 12, held.last + 9)
    world.write(1, (1, 0), kept)
    world.prepare(2, kept)
    assert world.rows(1) == world.rows(2)
    assert all(kept.first <= row[1] <= kept.last for row in world.rows(1)["visits"])
    assert world.engine.late_rows(world.sources.declaration, 1) == {"visits": 0, "calls": 0}
    for plan in plans.values():
        with pytest.raises(PreparationError) as refused:
            opened.check(plan)
        assert refused.value.code == "snapshot-outdated"
    opened.close()


@pytest.mark.parametrize("name", NAMES)
def test_an_open_snapshot_goes_on_after_an_append(growing_on: GrowingOn, name: str) -> None:
    world = growing_on(name)
    held = _grown(world, START, JANUARY_7)
    opened = world.open(1)
    plan = _counting(opened, held.first, held.last)
    counted = _count(opened, plan)
    for step in (1, 2):
        world.add_block(held.last + step)
        world.write(1, (held.last + step, held.last + step), PreparedBlocks(held.first, held.last + step))
        opened.check(plan)
        assert _count(opened, plan) == counted
    assert opened.facts.table("visits").blocks == (held.first, held.last)
    newer = world.open(1)
    assert newer.facts.table("visits").blocks == (held.first, held.last + 2)
    assert _count(newer, _counting(newer, held.first, held.last)) == counted
    newer.close()
    opened.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_write_that_stops_leaves_what_was_there(growing_on: GrowingOn, name: str) -> None:
    """At every step that the owner hears of; then it can be done again."""
    world = growing_on(name)
    held = _grown(world, START, JANUARY_7)
    before, opened = world.rows(1), world.open(1)
    plan = _counting(opened, held.first, held.last)
    for step in range(1, 4):
        world.add_block(held.last + step)
    after = PreparedBlocks(held.first + 1, held.last + 3).with_corrections(held.last, held.last)
    heard: list[str] = []

    def stop_after(steps: int) -> Callable[[str, int, int], None]:
        def progress(what: str, _done: int, _total: int) -> None:
            heard.append(what)
            if len(heard) > steps and what != "done":
                raise KeyboardInterrupt

        return progress

    for steps in range(10):
        heard.clear()
        try:
            world.write(1, (held.last, held.last + 3), after, progress=stop_after(steps))
        except KeyboardInterrupt:
            assert world.engine.prepared_blocks(1) == held
            assert world.rows(1) == before
            opened.check(plan)
            assert _count(opened, plan) == len(before["visits"])
        else:
            break
    assert steps >= 2
    world.prepare(2, PreparedBlocks(after.first, after.last))
    assert world.rows(1) == world.rows(2)
    opened.close()


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_written_leaves_what_was_there(growing_on: GrowingOn, name: str) -> None:
    """One block with more rows than declared; all together they have more, which is no fault."""
    world = growing_on(name)
    held = _grown(world, START, JANUARY_7)
    for _ in range(12):
        world.add_block(held.last + 1)
    before = world.rows(1)
    crowd = [{**world.visit(START), "at": datetime.date(2024, 1, 9), "person": 100 + n, "cost": 1.0} for n in range(201)]
    world.add("visits", crowd)
    with pytest.raises(PreparationError) as refused:
        world.write(1, (held.last + 1, held.last + 2), PreparedBlocks(held.first, held.last + 2))
    assert refused.value.code == "rows-max"
    assert world.engine.prepared_blocks(1) == held and world.rows(1) == before
    world.write(1, (held.last + 1, held.last + 1), PreparedBlocks(held.first, held.last + 1))


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_those_of_the_blocks_that_are_written(growing_on: GrowingOn, name: str) -> None:
    world = growing_on(name)
    heard: list[TableLosses] = []

    def witness(losses: Sequence[TableLosses]) -> None:
        heard.extend(losses)

    blocks = [world.block(JANUARY_7) + n for n in range(4)]
    for block in blocks:
        world.add_block(block)
    held = PreparedBlocks(blocks[0], blocks[1])
    world.prepare(1, held, witness=witness)
    assert [losses.table for losses in heard] == ["people", "visits", "calls"]
    first = world.rows(1)
    assert {losses.table: losses.kept for losses in heard} == {table: len(rows) for table, rows in first.items()}
    assert all(losses.beyond_cap for losses in heard if losses.table == "visits")
    heard.clear()
    world.write(1, (blocks[2], blocks[3]), PreparedBlocks(blocks[0], blocks[3]), witness=witness)
    grown = world.rows(1)
    assert {losses.table: losses.kept for losses in heard} == {
        table: len(grown[table]) - len(first[table]) for table in ("visits", "calls")
    }
    assert sum(losses.rows for losses in heard) < 4 * 33


@pytest.mark.parametrize("name", NAMES)
def test_a_table_that_is_declared_in_another_way_gets_no_rows(growing_on: GrowingOn, name: str) -> None:
    world = growing_on(name)
    held = _grown(world, START, JANUARY_7)
    wider = type(world.sources.declaration)
    assert wider is not None
    changed = world.sources.text.replace("rows_per_unit_max = 3", "rows_per_unit_max = 4")
    assert changed != world.sources.text
    from lapwing.catalog import parse

    with pytest.raises(PreparationError) as refused:
        after = PreparedBlocks(held.first, held.last + 1)
        world.engine.write_blocks(1, BlockWrite(parse(changed), (after.last, after.last), after, b"g" * 32))
    assert refused.value.code == "version-mismatch"
