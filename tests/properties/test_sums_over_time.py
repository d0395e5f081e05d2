"""Where a statement is measured block by block, the answers of the blocks add up to that over the range: random statements, bare DuckDB."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from lapwing.catalog import Declaration, Settings, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.catalog.facts import blocks_of_table, facts
from lapwing.data_set import DataSet
from lapwing.errors import Refused
from lapwing.kernel.block_calendar import Period, block_of_day, days_of_block
from lapwing.kernel.calendar import to_date, to_days
from lapwing.kernel.facts import Facts
from lapwing.sql import bind
from lapwing.sql.rows.block_parts import BlockParts, block_parts
from lapwing.sql.rows.block_ranges import with_blocks
from tests.support.shop_of_events import BLOCKS, CATALOGUE, START, Shop
from tests.support.sizes import size
from tests.support.sums_over_time import Row, Statements, SumOverTime, alike

STATEMENTS, ASKED = size("statements over blocks"), size("statements over blocks, asked")
TABLES = {"events": "day", "orders": "paid"}
LENGTHS = {Period.DAY: 12, Period.WEEK: 45, Period.MONTH: 130}
"""Days of rows of each period."""


@dataclass(frozen=True)
class Timeline:
    """A declaration of the shop, the days that have rows, and the blocks that are closed."""

    declaration: Declaration
    every: Period
    days: tuple[datetime.date, ...]
    closed: tuple[int, int]

    @classmethod
    def random(cls, rng: random.Random) -> Timeline:
        every = rng.choice(list(Period))
        terms = {"neighbours": "unbounded", "epsilon": "1", "delta": "0", "budget": ""}
        blocks = BLOCKS.format(every=every.value, cap='"none"', keep="")
        text = CATALOGUE.format(**terms, blocks=blocks, events='blocks = "day"', orders='blocks = "paid"')
        days = tuple(START + datetime.timedelta(days=number) for number in range(LENGTHS[every]))
        first, last = (block_of_day(to_days(day), every) for day in (days[0], days[-1]))
        return cls(parse(text), every, days, (first + rng.choice([0, 0, 1]), last - rng.choice([0, 1])))

    def facts(self) -> Facts:
        return facts(self.declaration, {}, version=1, prepared=PreparedBlocks(*self.closed))


def parts_of(statement: SumOverTime, declaration: Declaration, known: Facts) -> tuple[tuple[BlockParts, ...], ...]:
    """The parts of each private query; refuses as the curator does."""
    units = dict.fromkeys(("users", *TABLES), "user_id")
    bound = bind(statement.sql(), known, settings=Settings(), unit_columns=units, moment=0)
    read = with_blocks(bound, known, {name: blocks_of_table(declaration.table(name)) for name in TABLES})
    return tuple(block_parts(query, known) for query in read.privates)


def view_blocks(connection: duckdb.DuckDBPyConnection, first: int, last: int, every: Period) -> None:
    """Events and orders are the rows of these blocks."""
    low, high = to_date(days_of_block(first, every)[0]), to_date(days_of_block(last, every)[1])
    for table, column in TABLES.items():
        rows = f"SELECT * FROM all_{table} WHERE {column} BETWEEN DATE '{low}' AND DATE '{high}'"
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS {rows}")


def with_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Random events and orders for each period."""
    rng = random.Random(51)
    for every, days in LENGTHS.items():
        rows: list[list[object]] = []
        for _ in range(300):
            day = START + datetime.timedelta(days=rng.randrange(days))
            seen = datetime.datetime.combine(day, datetime.time(rng.randrange(24), rng.randrange(60)))
            rows.append([rng.randrange(9), day, seen, rng.choice(["web", "app", None]), rng.choice([None, *range(0, 20, 3)])])
        name = f"events_{every.value}"
        connection.execute(f"CREATE TABLE {name} (user_id INTEGER, day DATE, seen TIMESTAMP, device VARCHAR, amount INTEGER)")
        connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute(
            f"CREATE TABLE orders_{every.value} AS SELECT user_id, day AS paid, 4 * amount AS price FROM {name} USING SAMPLE 90"
        )


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    opened = duckdb.connect(config={"threads": "1"})
    with_rows(opened)
    yield opened
    opened.close()


def test_answers_of_blocks_add_up_to_that_of_bare_duckdb_over_the_range(connection: duckdb.DuckDBPyConnection) -> None:
    rng, sums, bound = random.Random(52), 0, 0
    for _ in range(STATEMENTS):
        line = Timeline.random(rng)
        statement = Statements(rng, line.days).statement()
        try:
            (parts,) = parts_of(statement, line.declaration, line.facts())
        except Refused:
            continue
        bound += 1
        if not parts:
            continue
        sums += 1
        for table in TABLES:
            connection.execute(f"CREATE OR REPLACE TEMP VIEW all_{table} AS SELECT * FROM {table}_{line.every.value}")
        blocks = [block for part in parts for block in range(part.first, part.last + 1)]
        assert blocks == list(range(blocks[0], blocks[-1] + 1)), "each block once, in order"
        expected = answers(connection, statement, [line.closed], line.every)
        found = answers(connection, statement, [(block, block) for block in blocks], line.every)
        assert alike(found, expected, keys=len(statement.keys)), (statement.sql(), line.every, line.closed)
    assert bound >= 0.8 * STATEMENTS and sums >= 0.25 * STATEMENTS, f"{sums} of {STATEMENTS} are sums, {bound} are read at all"


def answers(connection: duckdb.DuckDBPyConnection, statement: SumOverTime, ranges: list[tuple[int, int]], every: Period) -> list[Row]:
    """What bare DuckDB answers over each range alone, added up."""
    found = []
    for first, last in ranges:
        view_blocks(connection, first, last, every)
        found.append(connection.execute(statement.parts()).fetchall())
    return statement.together(found)


PURE, APPROXIMATE, ORDER = ("0", ""), ('"2^-40"', ""), ('"2^-40"', "order = 32")
EPSILONS = {PURE: "5_000_000", APPROXIMATE: "50_000_000", ORDER: "10_000"}
"""At which the noise of a pure account rounds away, and that of the others is small."""
NAMES = {PURE: "pure", APPROXIMATE: "approximate", ORDER: "order"}
TERMS = [
    pytest.param(every, neighbours, account, id=f"{every}-{neighbours}-{NAMES[account]}")
    for neighbours in ("unbounded", "bounded")
    for account in EPSILONS
    for every in ("day", "week", "month")
]


@pytest.mark.parametrize(("every", "neighbours", "account"), TERMS)
def test_what_is_bought_by_block_is_the_answer_of_bare_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: str, neighbours: str, account: tuple[str, str]
) -> None:
    """Exactly on a pure account, and within narrow bars on the others."""
    period, (delta, budget) = Period(every), account
    rng = random.Random(f"{every} {neighbours} {account}")
    shop = Shop(tmp_path, monkeypatch)
    shop.declare(every=every, neighbours=neighbours, delta=delta, budget=budget)
    shop.users()
    days = [START + datetime.timedelta(days=number) for number in range(LENGTHS[period])]
    for day in days:
        shop.day(day, rows={Period.DAY: 30, Period.WEEK: 12, Period.MONTH: 4}[period])
    shop.today(days[-1] + datetime.timedelta(days=1))
    with shop.open() as data_set:
        data_set.prepare()
        statements, asked, drawn = Statements(rng, days), 0, 0
        while asked < ASKED:
            drawn += 1
            assert drawn < 20 * ASKED, "many statements are measured by block"
            asked += is_answered(shop, data_set, statements.statement(), account)


def is_answered(shop: Shop, data_set: DataSet, statement: SumOverTime, account: tuple[str, str]) -> bool:
    """Whether a statement is measured by block; then its answer is that of bare DuckDB."""
    curator = data_set.curator
    if statement.rollup and account is not PURE:
        return False  # groups of NULL and totals are told apart by their numbers of rows
    try:
        if not all(parts_of(statement, curator.declaration, curator.facts)):
            return False
        answer = data_set.ask(statement.sql(), epsilon=EPSILONS[account], confidence="0.999999")
    except Refused:
        return False
    if not any(note.startswith("measured by") for note in answer.notes):
        return False
    held = curator.engine.prepared_blocks(1)
    assert held is not None and curator.declaration.blocks is not None
    last = to_date(days_of_block(held.last, curator.declaration.blocks.every)[1])
    width, rows = len(statement.keys), [tuple(row.values()) for row in answer.table.to_pylist()]
    truth = [row for row in shop.truth(statement.sql(), last) if row[width]]
    if account is PURE:
        found = [row for row in rows if row[width]]
        assert alike(found, truth, keys=width, within=1e-2, withheld=True), statement.sql()
        return True
    place = {row[:width]: number for number, row in enumerate(rows)}
    for row in truth:
        for column, value in zip(["n", *(f"a{number}" for number in range(len(statement.measured)))], row[width:], strict=True):
            bar = answer.intervals[column][place[row[:width]]] if column in answer.intervals else None
            assert bar is None or value is None or bar.lo - 1 <= value <= bar.hi + 1, (statement.sql(), row, column, bar)
    return True
