"""What a new block of time costs a version, against preparing all of its blocks from nothing; what appends take of the disk; memory.

    python -m benchmarks.append_blocks duckdb postgres                      # 10^7 rows in 100 blocks, then 100 more
    python -m benchmarks.append_blocks duckdb --rows 100_000_000 --appends 1 --memory-gigabytes 2
    python -m benchmarks.append_blocks postgres --rows 1_000_000 --at-once  # and the same blocks in a version prepared at once

Events come by the day, one file (or one load) for each day, as many each day. Persons are drawn anew for each row, by a law under which
one of a million has one row in a hundred. CPU time is that of this process, which on DuckDB is the engine, and of the server's processes
on PostgreSQL. The sources are written by processes of their own, so the largest resident size is that of preparing. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import duckdb
from benchmarks.engines_places import _load, _server_cpu_seconds
from benchmarks.files import RANKING_KEY
from benchmarks.markdown import megabytes, table
from benchmarks.spent import Spent, spent

from lapwing.catalog import Declaration, Settings, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Engine, silent
from lapwing.engines.duckdb import DuckDBEngine
from lapwing.engines.postgres import PostgresEngine
from lapwing.engines.postgres.prepare import schema_name
from lapwing.engines.postgres.session import ask, connect
from lapwing.kernel.calendar import to_days
from lapwing.kernel.certify import certify
from lapwing.kernel.ir import KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian

FIRST_DAY = datetime.date(2024, 1, 1)
PERSONS = 1_000_000
ROWS_PER_DAY_MAX = 1_000
"""Of one person: the most that a version keeps."""
_COLUMNS = "user_id bigint, at timestamp, region text, amount double precision"


def catalogue(*, engine: str, connection: str, source: str, rows: int) -> str:
    """The owner's declaration."""
    regions = ", ".join(f'"r{number}"' for number in range(20))
    return f"""\
format = 1

[dataset]
id = "events"
unit = "user"
engine = "{engine}"
connection = "{connection}"

[budget]
epsilon = 3
delta = "2^-40"

[blocks]
every = "day"
person_cap = "none"

[tables.events]
source = "{source}"
unit = "user_id"
blocks = "at"
rows_max = {2 * rows}
rows_per_unit_max = {ROWS_PER_DAY_MAX}

[tables.events.columns]
user_id = {{ type = "key", null = false }}
at = {{ type = "timestamp", min = 2024-01-01T00:00:00, max = 2033-12-31T00:00:00 }}
region = {{ type = "text", values = [{regions}] }}
amount = {{ type = "real", min = 0, max = 100, steps = 100 }}
"""


def write_day(target: Path, day: int, rows: int) -> None:
    """The events of one day, in random order: the same for the same arguments."""
    uniform = "(hash(i, {salt}) / 18446744073709551616.0)"
    user = f"CAST({PERSONS} * pow({uniform.format(salt=1)}, 3) AS BIGINT)"
    moment = f"TIMESTAMP '{FIRST_DAY}' + INTERVAL ({day}) DAY + INTERVAL (CAST({uniform.format(salt=2)} * 86399 AS BIGINT)) SECOND"
    region, amount = "'r' || CAST(hash(i, 3) % 20 AS VARCHAR)", f"round({uniform.format(salt=4)} * 120, 2)"
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '1GB'")
        connection.execute("SET enable_progress_bar = false")
        numbers = f"range({day * rows}, {(day + 1) * rows}) t(i)"
        select = f"SELECT {user} AS user_id, {moment} AS at, {region} AS region, {amount} AS amount FROM {numbers}"
        connection.execute(f"COPY ({select}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


def write_days(directory: Path, first: int, last: int, rows: int) -> None:
    """A file for each day, written by another process."""
    process = multiprocessing.get_context("spawn").Process(target=_write_days, args=(directory, first, last, rows))
    process.start()
    process.join()
    assert process.exitcode == 0


def _write_days(directory: Path, first: int, last: int, rows: int) -> None:
    for day in range(first, last + 1):
        if not (path := directory / f"day-{day:05d}.parquet").exists():
            write_day(path, day, rows)


@dataclass
class Place:
    """An engine, with events in files or in a table."""

    name: str
    engine: Engine
    declaration: Declaration
    text: str
    add_days: Callable[[int, int], None]
    engine_cpu_seconds: Callable[[], float]
    version_bytes: Callable[[int], int]
    block_zero: int = field(default=to_days(FIRST_DAY))

    def spent(self, action: Callable[[], object]) -> Spent:
        """Run an action once; CPU time of this process and of the engine's."""
        before = self.engine_cpu_seconds()
        found = spent(action)
        return Spent(found.cpu_seconds + self.engine_cpu_seconds() - before, found.wall_seconds, found.peak_bytes)

    def prepare(self, days: int, *, version: int = 1) -> Spent:
        """All days from nothing."""
        blocks = PreparedBlocks(self.block_zero, self.block_zero + days - 1)
        prepare = self.engine.prepare
        return self.spent(
            lambda: prepare(self.declaration, self.text, version=version, ranking_key=RANKING_KEY, progress=silent, blocks=blocks)
        )

    def append(self, day: int) -> Spent:
        """One more day."""
        block = self.block_zero + day
        after = PreparedBlocks(self.block_zero, block)
        return self.spent(lambda: self.engine.write_blocks(1, BlockWrite(self.declaration, (block, block), after, RANKING_KEY)))

    def question(self, first: int, last: int) -> Spent:
        """A count of the rows of some days, once warm."""
        snapshot = self.engine.open(1, ranking_key=RANKING_KEY)
        blocks = snapshot.facts.table("events").blocks_between(self.block_zero + first, self.block_zero + last, apart=True)
        scan = Scan("events", ROWS_PER_DAY_MAX, blocks)
        query = Query(scan, (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(), DiscreteGaussian(Fraction(4))),))
        certified = certify(Plan((query,)), snapshot.facts)
        snapshot.check(certified)
        snapshot.run(certified)
        found = self.spent(lambda: snapshot.run(certified))
        snapshot.close()
        return found


@contextmanager
def on_duckdb(directory: Path, *, rows: int, settings: Settings) -> Iterator[Place]:
    """One file for each day."""
    days, state = directory / "days", directory / "state"
    days.mkdir()
    state.mkdir()
    text = catalogue(engine="duckdb", connection="", source=f"{days}/*.parquet", rows=rows)

    def version_bytes(version: int) -> int:
        return sum(path.stat().st_blocks * 512 for path in state.rglob("*") if path.is_file() and f"v{version:06d}" in str(path))

    add = lambda first, last: write_days(days, first, last, rows)  # noqa: E731
    yield Place("duckdb", DuckDBEngine(state, settings), parse(text), text, add, lambda: 0.0, version_bytes)


@contextmanager
def on_postgres(directory: Path, *, rows: int, settings: Settings) -> Iterator[Place]:
    """A table with an index on its time, in a temporary server on disk."""
    from tests.ledger.cluster import Cluster

    directory.chmod(0o755)
    options = ("shared_buffers=1GB", "max_wal_size=16GB", "autovacuum=off", "checkpoint_timeout=1h", "synchronous_commit=off")
    cluster = Cluster(options, within=directory)
    try:
        with cluster.superuser() as connection:
            for role in ("events_owner", "events_reader"):
                connection.execute(f"CREATE ROLE {role} LOGIN".encode())
            connection.execute(b"CREATE DATABASE events OWNER events_owner")
        owner = connect(cluster.dsn("events", role="events_owner"))
        ask(owner, "CREATE SCHEMA shop")
        ask(owner, f"CREATE TABLE shop.events ({_COLUMNS})")
        ask(owner, "CREATE INDEX ON shop.events (at)")
        text = catalogue(engine="postgres", connection=cluster.dsn("events", role="events_reader"), source="shop.events", rows=rows)
        declaration = parse(text)

        def add(first: int, last: int) -> None:
            write_days(directory, first, last, rows)
            for day in range(first, last + 1):
                _load(owner, "shop.events", directory / f"day-{day:05d}.parquet")
                (directory / f"day-{day:05d}.parquet").unlink()
            ask(owner, "VACUUM (FREEZE, ANALYZE) shop.events")

        def version_bytes(version: int) -> int:
            sizes = "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            schema = schema_name(declaration.dataset.id, version)
            return int(ask(owner, f"{sizes} WHERE c.relkind = 'r' AND n.nspname = $1", [schema])[0][0])

        engine = PostgresEngine(declaration, settings, owner="user=events_owner")
        yield Place("postgres", engine, declaration, text, add, lambda: _server_cpu_seconds(cluster), version_bytes)
        engine.close()
        owner.close()
    finally:
        cluster.close()


PLACES = {"duckdb": on_duckdb, "postgres": on_postgres}


def measure(place: Place, *, blocks: int, appends: int, at_once: bool = False) -> list[tuple[str, ...]]:
    """Rows of the report; ``at_once`` also prepares all blocks from nothing as another version, to compare what both take of the disk."""
    place.add_days(0, blocks - 1)
    whole = place.prepare(blocks)
    before = place.version_bytes(1)
    rows = [_row(place, f"prepare {blocks} blocks", whole, disk=before, is_peak=True)]
    costs: list[Spent] = []
    place.add_days(blocks, blocks + appends - 1)
    looks = sorted({max(1, appends // 10), max(1, appends // 2), appends})
    grown: dict[int, int] = {}
    for done in range(1, appends + 1):
        costs.append(place.append(blocks + done - 1))
        if done in looks:
            grown[done] = place.version_bytes(1) - before
    share = [100 * cost.cpu_seconds / whole.cpu_seconds * blocks / 100 for cost in costs]
    cpu, wall = (statistics.median(getattr(cost, name) for cost in costs) for name in ("cpu_seconds", "wall_seconds"))
    most = f"{statistics.median(share):.2f} % of a preparation of a hundred such blocks, at most {max(share):.2f} %"
    rows.append((place.name, f"append a block ({most})", f"{cpu:.3f}", f"{wall:.3f}", "", megabytes(grown[appends])))
    for done in looks:
        named = f"disk for {done} appends, of that for as many blocks prepared"
        rows.append((place.name, named, f"{grown[done] * blocks / (before * done):.3f}", "", "", megabytes(grown[done])))
    if at_once:
        again = place.prepare(blocks + appends, version=2)
        disk = place.version_bytes(2)
        rows.append(_row(place, f"prepare {blocks + appends} blocks", again, disk=disk))
        named = f"disk of the version that grew, of that of {blocks + appends} blocks prepared at once"
        rows.append((place.name, named, f"{(before + grown[appends]) / disk:.3f}", "", "", ""))
    for days in sorted({1, min(30, blocks), blocks + appends}):
        asked = place.question(blocks + appends - days, blocks + appends - 1)
        rows.append(
            (place.name, f"count the rows of the last {days} blocks", f"{asked.cpu_seconds:.3f}", f"{asked.wall_seconds:.3f}", "", "")
        )
    return rows


def _row(place: Place, what: str, found: Spent, *, disk: int, is_peak: bool = False) -> tuple[str, ...]:
    peak = megabytes(found.peak_bytes) if is_peak else ""
    return place.name, what, f"{found.cpu_seconds:.2f}", f"{found.wall_seconds:.2f}", peak, megabytes(disk)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a new block of time costs.")
    parser.add_argument("engines", nargs="+", choices=sorted(PLACES))
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows that are prepared from nothing")
    parser.add_argument("--blocks", type=int, default=100)
    parser.add_argument("--appends", type=int, default=100)
    parser.add_argument("--at-once", action="store_true", help="also prepare all blocks at once, to compare the disk")
    parser.add_argument("--memory-gigabytes", type=float, default=Settings().memory_limit_bytes / 2**30)
    parser.add_argument("--directory", type=Path, default=None, help="where the files are to be, for the time of the run")
    given = parser.parse_args(arguments)
    settings = Settings(memory_limit_bytes=int(given.memory_gigabytes * 2**30))
    os.environ.setdefault("TZ", "UTC")
    for name in given.engines:
        with (
            tempfile.TemporaryDirectory(prefix="lapwing-blocks-", dir=given.directory) as directory,
            PLACES[name](Path(directory), rows=given.rows // given.blocks, settings=settings) as place,
        ):
            found = measure(place, blocks=given.blocks, appends=given.appends, at_once=given.at_once)
        table(f"{given.rows:,} rows in {given.blocks} blocks", ("engine", "what", "CPU s", "wall s", "peak MB", "disk MB"), found)


if __name__ == "__main__":
    main()
