"""Which blocks of time a statement reads: at least those in which a time meets its conditions, and of comparisons these and no others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pytest

from lapwing.catalog import Declaration, Settings, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.catalog.facts import blocks_of_table, facts
from lapwing.errors import Refused
from lapwing.kernel.block_calendar import Period
from lapwing.kernel.ir import Blocks
from lapwing.kernel.workload import scans_of
from lapwing.sql import bind
from lapwing.sql.rows.block_ranges import with_blocks
from tests.support.conditions_on_time import FIRST, LAST, Conditions, blocks_of, statement_of_two
from tests.support.sizes import size

NUMBER = size("conditions on time")
CATALOGUE = """
format = 1
[dataset]
id = "events"
unit = "person"
[budget]
epsilon = 1
[blocks]
every = "{every}"
person_cap = "none"
[tables.events]
source = "events.parquet"
unit = "person"
blocks = "day"
rows_per_unit_max = 100
rows_max = 100_000
[tables.events.columns]
person = {{ type = "key" }}
day = {{ type = "{type}", min = {low}, max = {high} }}
n = {{ type = "integer", min = 0, max = 9 }}
[tables.orders]
source = "orders.parquet"
unit = "person"
blocks = "day"
rows_per_unit_max = 100
rows_max = 100_000
[tables.orders.columns]
person = {{ type = "key" }}
day = {{ type = "date", min = {first}, max = {last} }}
n = {{ type = "integer", min = 0, max = 9 }}
"""


@dataclass(frozen=True)
class World:
    """A declaration of events, and the blocks of it that are closed."""

    declaration: Declaration
    every: Period
    declared: tuple[int, int]
    closed: tuple[int, int]

    @classmethod
    def random(cls, rng: random.Random, *, timed: bool) -> World:
        every = rng.choice(list(Period))
        low, high = (f"{FIRST}T00:00:00", f"{LAST}T23:59:59.999999") if timed else (FIRST, LAST)
        kind = "timestamp" if timed else "date"
        text = CATALOGUE.format(every=every.value, type=kind, low=low, high=high, first=FIRST, last=LAST)
        declaration = parse(text)
        declared = blocks_of_table(declaration.table("events"))
        ends = sorted(rng.randint(*declared) for _ in range(2))
        return cls(declaration, every, declared, (ends[0], ends[1]))

    def read(self, sql: str) -> dict[str, Blocks]:
        """The blocks of each table that a statement reads; refuses as the curator does."""
        known = facts(self.declaration, {}, version=1, prepared=PreparedBlocks(*self.closed))
        units = {"events": "person", "orders": "person"}
        statement = bind(sql, known, settings=Settings(), unit_columns=units, moment=0)
        read = with_blocks(statement, known, {table.name: blocks_of_table(table) for table in self.declaration.tables})
        found = [(scan.table, scan.blocks) for query in read.privates for scan in scans_of(query.source)]
        assert len(found) == len(dict(found)), "each table is scanned once"
        return {table: blocks for table, blocks in found if blocks is not None}

    def within_closed(self, blocks: set[int]) -> set[int]:
        return {block for block in blocks if self.closed[0] <= block <= self.closed[1]}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    opened = duckdb.connect(config={"threads": "1"})
    yield opened
    opened.close()


def meeting(connection: duckdb.DuckDBPyConnection, conditions: Conditions, condition: str, every: Period) -> set[int]:
    """The blocks of all times, closed or not, that meet a condition."""
    kind = pa.timestamp("us") if conditions.timed else pa.date32()
    connection.register("times", pa.table({"day": pa.array(conditions.times(), kind)}))
    others = "(SELECT UNNEST([NULL, 0, 5, 9]) AS n)"
    rows = connection.execute(f"SELECT DISTINCT day FROM times, {others} WHERE {condition}").fetchall()
    return blocks_of((row[0] for row in rows), every)


def blocks_read(world: World, condition: str, rng: random.Random) -> tuple[int, int] | Refused:
    """The range of events that a statement with this condition reads."""
    listed = rng.choice(["events", "(SELECT * FROM events)", "(SELECT n + 1 AS m, day, n FROM events)"])
    try:
        blocks = world.read(f"SELECT COUNT(*) AS c FROM {listed} WHERE {condition}")["events"]
    except Refused as refusal:
        return refusal
    return blocks.first, blocks.last


@pytest.mark.parametrize("timed", [False, True], ids=["dates", "timestamps"])
def test_blocks_in_which_a_time_meets_the_conditions_are_read(connection: duckdb.DuckDBPyConnection, timed: bool) -> None:
    rng, bound = random.Random(21 + timed), 0
    for _ in range(NUMBER):
        world, conditions = World.random(rng, timed=timed), Conditions(rng, "day", timed)
        condition = conditions.any()
        wanted = meeting(connection, conditions, condition, world.every)
        found = blocks_read(world, condition, rng)
        if isinstance(found, Refused):
            assert found.code != "blocks-open" or not world.within_closed(wanted), condition
            bound += found.code == "blocks-open"
            continue
        bound += 1
        assert all(found[0] <= block <= found[1] for block in world.within_closed(wanted)), (condition, world.closed, found, wanted)
    assert bound >= 0.9 * NUMBER, "most of the conditions are read"


@pytest.mark.parametrize("timed", [False, True], ids=["dates", "timestamps"])
def test_of_comparisons_no_other_blocks_are_read(connection: duckdb.DuckDBPyConnection, timed: bool) -> None:
    rng, exact = random.Random(31 + timed), 0
    for _ in range(NUMBER):
        world, conditions = World.random(rng, timed=timed), Conditions(rng, "day", timed)
        condition = conditions.interval()
        wanted = meeting(connection, conditions, condition, world.every)
        if not wanted:
            continue
        exact += 1
        within, found = world.within_closed(wanted), blocks_read(world, condition, rng)
        if isinstance(found, Refused):
            assert found.code == "blocks-open" and not within, (condition, found)
        else:
            assert found == (min(within), max(within)), (condition, world.closed)
    assert exact >= NUMBER // 3


def test_an_answer_over_the_blocks_that_are_read_is_that_over_all_closed_ones(connection: duckdb.DuckDBPyConnection) -> None:
    rng, bound, moved = random.Random(41), 0, 0
    for name in ("events", "orders"):
        days = [(rng.randrange(12), rng.choice(Conditions(rng, "day", False).times()), rng.choice([None, 0, 5, 9])) for _ in range(400)]
        table = pa.table(dict(zip(("person", "day", "n"), map(list, zip(*days, strict=True)), strict=True)))
        connection.register(f"all_{name}", table)
    for _ in range(NUMBER):
        world, sql = World.random(rng, timed=False), statement_of_two(rng)
        try:
            read = world.read(sql)
        except Refused as refusal:
            bound += refusal.code == "blocks-open"
            continue
        bound += 1
        closed = {table: Blocks(*world.closed) for table in read}
        answers = [answer(connection, sql, each, world.every) for each in (read, closed)]
        assert answers[0] == answers[1], (sql, read, world.closed)
        moved += read != closed
    assert bound >= 0.6 * NUMBER and moved >= NUMBER // 5, "most statements are read, and many of them not as a whole"


def answer(connection: duckdb.DuckDBPyConnection, sql: str, read: dict[str, Blocks], every: Period) -> object:
    """What bare DuckDB answers over the rows of these blocks."""
    number = {
        Period.DAY: "DATE_DIFF('day', DATE '1970-01-01', day)",
        Period.WEEK: "(DATE_DIFF('day', DATE '1970-01-01', day) + 3) // 7",
        Period.MONTH: "12 * YEAR(day) + MONTH(day) - 1",
    }[every]
    for table, blocks in read.items():
        rows = f"SELECT * FROM all_{table} WHERE {number} BETWEEN {blocks.first} AND {blocks.last}"
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS {rows}")
    return connection.execute(sql).fetchall()
