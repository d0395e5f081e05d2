"""Blocks of time on PostgreSQL: what the role that answers may read, what an index serves, and plans that run meanwhile."""

from __future__ import annotations

import datetime
from contextlib import closing
from typing import Any

import psycopg
import pytest

from lapwing.catalog import Declaration, Settings, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, silent
from lapwing.engines.postgres import PostgresEngine
from lapwing.engines.postgres.block_writing import write_version_blocks
from lapwing.engines.postgres.prepare import schema_name
from lapwing.engines.postgres.session import ask, connect, transaction
from lapwing.engines.postgres.sources import source_table
from lapwing.kernel.calendar import to_days
from tests.engines.postgres.place import KEY, ROWS, Place

MONTH = 12 * 2024
BLOCKS = '[blocks]\nevery = "month"\nperson_cap = "none"\n[tables.visits]\nblocks = "day"\n'


class Months:
    """The visits of a place, by months."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.text = place.text().replace("[tables.visits]\n", BLOCKS, 1).replace('appended_by = "id"\n', "")
        self.engine = PostgresEngine(self.declaration, Settings(), owner=f"user={place.owner}")
        place.engines.append(self.engine)
        self.schema = schema_name(self.declaration.dataset.id, 1)

    @property
    def declaration(self) -> Declaration:
        return parse(self.text)

    def prepare(self, first: int, last: int) -> PreparedBlocks:
        blocks = PreparedBlocks(MONTH + first, MONTH + last)
        self.engine.prepare(self.declaration, self.text, version=1, ranking_key=KEY, progress=silent, blocks=blocks)
        return blocks

    def write(self, first: int, last: int, after: PreparedBlocks) -> None:
        self.engine.write_blocks(1, BlockWrite(self.declaration, (MONTH + first, MONTH + last), after, KEY))

    def as_owner(self, sql: str) -> list[tuple[Any, ...]]:
        with self.place.as_owner() as connection:
            return ask(connection, sql)


@pytest.fixture
def months(place: Place) -> Months:
    return Months(place)


def test_the_role_that_answers_reads_rows_and_no_counts(months: Months) -> None:
    held = months.prepare(0, 2)
    months.write(3, 3, PreparedBlocks(held.first, held.last + 1))
    counts = dict(months.as_owner(f"SELECT block - {MONTH}, rows FROM {months.schema}._lapwing_rows"))
    assert sorted(counts) == [0, 1, 2, 3] and sum(counts.values()) < ROWS
    with connect(months.declaration.dataset.connection) as reader:
        assert ask(reader, f"SELECT COUNT(*) FROM {months.schema}.visits")[0][0] > 0
        for table in ("_lapwing_rows", "_lapwing_marks"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ask(reader, f"SELECT * FROM {months.schema}.{table}")
        meta = ask(reader, f"SELECT body FROM {months.schema}._lapwing")[0][0]
    assert all(f": {count}" not in meta for count in counts.values())
    with closing(months.engine.open(1, ranking_key=KEY)) as snapshot:
        assert snapshot.facts.table("visits").blocks == (MONTH, MONTH + 3)


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_an_index_on_the_time_of_the_source_serves(months: Months, kind: str) -> None:
    """Also with a column of fixed point, which is converted once for each row."""
    with months.place.as_owner() as owner:
        ask(owner, "ALTER TABLE clinic.visits ALTER cost TYPE numeric(10, 2)")
        ask(owner, f"ALTER TABLE clinic.visits ALTER day TYPE {kind}")
        ask(owner, "CREATE INDEX visits_by_day ON clinic.visits (day)")
        ask(owner, "INSERT INTO clinic.visits SELECT 1000 + i, i, 1, DATE '2030-01-01' + i, 1, '', '' FROM generate_series(1, 20000) i")
        ask(owner, "ANALYZE clinic.visits")
        declaration = months.declaration
        table = declaration.table("visits")
        with transaction(owner, Settings(), read_only=True):
            near = source_table(owner, declaration, table, near=(MONTH + 2, MONTH + 2))
            plan = "\n".join(str(row[0]) for row in ask(owner, f"EXPLAIN SELECT * FROM {near.sql} s"))
            assert "visits_by_day" in plan
            days = [row[0] for row in ask(owner, f"SELECT DISTINCT CAST(day AS DATE) FROM {near.sql} s ORDER BY 1")]
    first, last = datetime.date(2024, 3, 1), datetime.date(2024, 3, 31)
    assert all(to_days(first) - 1 <= to_days(day) <= to_days(last) + 1 for day in days)
    assert {day for day in days if first <= day <= last} == {first + datetime.timedelta(n) for n in range(31)}


def test_a_transaction_that_reads_sees_the_blocks_of_its_start(months: Months) -> None:
    """A correction waits for nobody and disturbs nobody: who reads has one state of all tables until the end."""
    held = months.prepare(0, 2)
    counted = f"SELECT (SELECT body FROM {months.schema}._lapwing), COUNT(*), SUM(_block) FROM {months.schema}.visits"
    with connect(months.declaration.dataset.connection) as reader, transaction(reader, Settings(), read_only=True):
        before = ask(reader, counted)
        months.as_owner("INSERT INTO clinic.visits SELECT 5000 + i, 3000 + i, 1, '2024-02-02', 1, '', '' FROM generate_series(1, 50) i")
        months.write(1, 3, PreparedBlocks(held.first, held.last + 1).with_corrections(MONTH + 1, MONTH + 3))
        assert ask(reader, counted) == before
    after = months.as_owner(counted)
    assert after[0][1] > before[0][1] + 50


def test_an_index_finds_the_rows_of_few_blocks_after_old_ones_went(months: Months) -> None:
    """Pages of deleted blocks are used for new ones, and are summarised anew: they are not read for both."""
    many = "SELECT 10000 + i, i, 1, DATE '2024-01-01' + i % 300, 1, repeat('x', 60), '' FROM generate_series(1, 60000) i"
    months.as_owner(f"INSERT INTO clinic.visits {many}")
    held = months.prepare(0, 3)
    for step in range(1, 5):
        months.write(3 + step, 3 + step, PreparedBlocks(held.first + step, held.last + step))
    for block in (4, 7):
        counted = f"SELECT COUNT(*) FROM {months.schema}.visits WHERE _block = {MONTH + block}"
        with months.place.as_owner() as owner:
            ask(owner, "SET enable_seqscan = off")
            plan = "\n".join(str(row[0]) for row in ask(owner, f"EXPLAIN (ANALYZE, COSTS off, TIMING off) {counted}"))
        assert "Bitmap Index Scan" in plan
        removed = [int(line.split(":")[1]) for line in plan.splitlines() if "Rows Removed by Index Recheck" in line]
        rows = months.as_owner(counted)[0][0]
        assert rows > 1_000 and sum(removed) < 2 * rows


def test_what_fails_in_the_middle_changes_nothing(months: Months) -> None:
    held = months.prepare(0, 2)
    state = f"SELECT CAST(ctid AS TEXT), CAST(xmin AS TEXT) FROM {months.schema}.visits ORDER BY 1"
    before = months.as_owner(state)
    months.as_owner("INSERT INTO clinic.visits SELECT 5000 + i, 3000 + i, 1, '2024-04-02', 1, '', '' FROM generate_series(1, 50) i")

    def progress(_what: str, done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with months.place.as_owner() as owner, pytest.raises(KeyboardInterrupt):
        after = PreparedBlocks(held.first, held.last + 1).with_corrections(MONTH + 1, MONTH + 3)
        write = BlockWrite(months.declaration, (MONTH + 1, MONTH + 3), after, KEY, progress)
        write_version_blocks(owner, write, schema=months.schema, settings=Settings())
    assert months.as_owner(state) == before
    assert months.engine.prepared_blocks(1) == held
