"""Sources that grow by the day, in files or in tables of a server, and versions that grow with them."""

from __future__ import annotations

import datetime
import itertools
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import Declaration, Settings, load, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Engine, Snapshot, silent
from lapwing.engines.duckdb import DuckDBEngine, DuckDBSnapshot
from lapwing.engines.postgres import PostgresEngine, PostgresSnapshot
from lapwing.engines.postgres.prepare import schema_name
from lapwing.engines.postgres.session import ask
from lapwing.kernel.block_calendar import Period, block_of_day, days_of_block
from lapwing.kernel.calendar import to_date, to_days
from lapwing.kernel.ir import Blocks
from lapwing.render.dialect import quoted
from lapwing.render.relations import BLOCK, RANK, ROWS, UNIT
from tests.support.postgres_worlds import PostgresWorlds, catalogue_on_postgres, copy_parquet

KEY = b"g" * 32
START = datetime.date(2024, 1, 1)
Row = dict[str, Any]
TIMES: dict[str, tuple[str, pa.DataType]] = {
    "date": ("date", pa.date32()),
    "timestamp": ("timestamp", pa.timestamp("us")),
    "instant": ("timestamp", pa.timestamp("us", tz="UTC")),
    "text": ("date", pa.string()),
}
"""What the column of time is declared as, and what the source holds."""
CATALOGUE = """
format = 1
[dataset]
id = "{id}"
unit = "person"
[budget]
epsilon = 1
delta = "2^-30"
[blocks]
every = "{every}"
person_cap = "none"
[tables.people]
source = "people.parquet"
unit = "person"
rows_per_unit_max = 1
rows_max = 1_000
[tables.people.columns]
person = {{ type = "key", of = "{unit}" }}
age = {{ type = "integer", min = 0, max = 120 }}
[tables.visits]
source = "visits.parquet"
unit = "person"
blocks = "at"
rows_per_unit_max = 3
rows_max = 200
[tables.visits.columns]
person = {{ type = "key", of = "{unit}" }}
at = {{ type = "{time}", min = {low}, max = {high} }}
clinic = {{ type = "text", values = ["a", "b"], other = "b" }}
cost = {{ type = "real", min = 0, max = 100, steps = 4, null = false }}
units = {{ type = "integer", min = -5, max = 9 }}
paid = {{ type = "boolean" }}
note = {{ type = "text" }}
[tables.calls]
source = "calls.parquet"
unit = "caller"
blocks = "day"
rows_per_unit_max = 5
rows_max = 200
[tables.calls.columns]
caller = {{ type = "key", of = "{unit}" }}
day = {{ type = "date", min = 2024-01-06, max = 2024-12-31 }}
minutes = {{ type = "integer", min = 0, max = 60 }}
[public.clinics]
source = "clinics.parquet"
key = "name"
[public.clinics.columns]
name = {{ type = "text" }}
"""
LISTED = {
    "people": [UNIT, RANK, ROWS, "person", "age"],
    "visits": [UNIT, BLOCK, RANK, ROWS, "person", "at", "clinic", "cost", "units", "paid", "note"],
    "calls": [UNIT, BLOCK, RANK, ROWS, "caller", "day", "minutes"],
}
"""The columns of the prepared tables."""


class Sources(Protocol):
    """Where the owner's rows are, and an engine beside them."""

    engine: Engine
    declaration: Declaration
    text: str

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """More rows of a source."""
        ...

    def stored(self, snapshot: Snapshot, table: str, blocks: tuple[int, int] | None) -> list[tuple[Any, ...]]:
        """Rows of a prepared table, in one order."""
        ...

    def places(self, version: int, table: str) -> dict[Any, Any]:
        """Where the rows of a prepared table are: the same as long as nothing rewrites them."""
        ...

    def close(self) -> None: ...


@dataclass
class InFiles:
    """Parquet files, each addition one more."""

    declaration: Declaration
    text: str
    schemas: dict[str, pa.Schema]
    engine: Engine = field(init=False)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        assert self.declaration.directory is not None
        self.directory = self.declaration.directory
        (self.directory / ".lapwing").mkdir(mode=0o700)
        self.engine = DuckDBEngine(self.directory / ".lapwing", Settings())

    def add(self, table: str, rows: Sequence[Row]) -> None:
        path = self.directory / f"{table}-{next(self.numbers):04d}.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows), self.schemas[table]), path)

    def stored(self, snapshot: Snapshot, table: str, blocks: tuple[int, int] | None) -> list[tuple[Any, ...]]:
        assert isinstance(snapshot, DuckDBSnapshot)
        rows = snapshot._dialect.scanned(table, None if blocks is None else Blocks(*blocks))
        listed = ", ".join(f"t.{quoted(name)}" for name in LISTED[table])
        return sorted(snapshot._connection.execute(f"SELECT {listed} FROM {rows} t").fetchall(), key=repr)

    def places(self, version: int, table: str) -> dict[Any, Any]:
        folder = self.directory / ".lapwing" / f"v{version:06d}.blocks" / str(list(LISTED).index(table))
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}

    def close(self) -> None:
        self.engine.close()


@dataclass
class OnServer:
    """Tables of a PostgreSQL server."""

    declaration: Declaration
    text: str
    schemas: dict[str, pa.Schema]
    worlds: PostgresWorlds
    directory: Path
    schema: str
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.engine = PostgresEngine(self.declaration, Settings(), owner="", any_reader=True)

    def add(self, table: str, rows: Sequence[Row]) -> None:
        part = self.directory / "part.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows), self.schemas[table]), part)
        connection, target = self.worlds.connection, f"{self.schema}.{table}"
        copy_parquet(connection, part, f"{target}_part")
        if ask(connection, "SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = $2", [self.schema, table]):
            ask(connection, f"INSERT INTO {target} SELECT * FROM {target}_part")
            ask(connection, f"DROP TABLE {target}_part")
        else:
            ask(connection, f"ALTER TABLE {target}_part RENAME TO {table}")

    def stored(self, snapshot: Snapshot, table: str, blocks: tuple[int, int] | None) -> list[tuple[Any, ...]]:
        assert isinstance(snapshot, PostgresSnapshot)
        within = "" if blocks is None else f" WHERE t.{BLOCK} BETWEEN {blocks[0]} AND {blocks[1]}"
        listed = ", ".join(f"t.{quoted(name)}" for name in LISTED[table])
        return sorted(ask(self.worlds.connection, f"SELECT {listed} FROM {snapshot.dialect.table(table)} t{within}"), key=repr)

    def places(self, version: int, table: str) -> dict[Any, Any]:
        name = f"{schema_name(self.declaration.dataset.id, version)}.{table}"
        found = ask(self.worlds.connection, f"SELECT CAST(ctid AS TEXT), CAST(xmin AS TEXT), CAST(t AS TEXT) FROM {name} t")
        return {place: (written, row) for place, written, row in found}

    def close(self) -> None:
        for version in self.engine.versions():
            self.engine.retire(version)
        self.engine.close()


_numbers = itertools.count(1)


@dataclass
class Growing:
    """A world whose visits and calls come day by day."""

    sources: Sources
    every: Period
    time: str
    rng: random.Random
    added: dict[str, list[Row]] = field(default_factory=lambda: {"visits": [], "calls": []})

    @property
    def engine(self) -> Engine:
        return self.sources.engine

    def block(self, date: datetime.date) -> int:
        return block_of_day(to_days(date), self.every)

    def prepare(self, version: int, blocks: PreparedBlocks, **more: Any) -> None:
        text = self.sources.text
        self.engine.prepare(self.sources.declaration, text, version=version, ranking_key=KEY, progress=silent, **{"blocks": blocks, **more})

    def write(self, version: int, write: tuple[int, int], after: PreparedBlocks, **more: Any) -> None:
        self.engine.write_blocks(version, BlockWrite(self.sources.declaration, write, after, KEY, **more))

    def open(self, version: int) -> Snapshot:
        return self.engine.open(version, ranking_key=KEY)

    def rows(self, version: int) -> dict[str, list[tuple[Any, ...]]]:
        """All prepared rows."""
        snapshot = self.open(version)
        try:
            held = {name: snapshot.facts.table(name).blocks for name in LISTED}
            return {name: self.sources.stored(snapshot, name, held[name]) for name in LISTED if _is_any(held[name])}
        finally:
            snapshot.close()

    def add_block(self, block: int, *, visits: int = 25, calls: int = 8) -> None:
        """Rows of one block: most of them few persons', some without a person, a cost or a time, and equal ones."""
        first, last = days_of_block(block, self.every)
        days = [to_date(day) for day in (first, last, self.rng.randint(first, last))]
        self.add("visits", [self.visit(self.rng.choice(days)) for _ in range(visits)])
        self.add("calls", [self.call(self.rng.choice(days)) for _ in range(calls)])

    def visit(self, day: datetime.date) -> Row:
        choose = self.rng.choice
        person = choose([None, 1, 1, 1, 2, *(self.rng.randint(3, 40) for _ in range(4))])
        made = {"person": person, "at": self.time_of(day), "clinic": choose(["a", "b", "c", None])}
        made |= {"cost": choose([0.0, 12.3, 1e300, float("nan"), None]), "units": choose([-9, 3, None])}
        return made | {"paid": choose([True, False, None]), "note": choose(["", "x", "ä'\"\n", None])}

    def call(self, day: datetime.date) -> Row:
        choose = self.rng.choice
        return {"caller": choose(["1", "1", "1", "2", "03", None]), "day": choose([day, day, None]), "minutes": choose([0, 7, 99])}

    def time_of(self, day: datetime.date) -> Any:
        """Of a day, its ends as often as anything; now and then none, or one that is not declared."""
        if self.rng.random() < 0.05:
            return None
        day = datetime.date(1999, 5, 5) if self.rng.random() < 0.05 else day
        if self.time == "date":
            return day
        if self.time == "text":
            return day.isoformat() if self.rng.random() < 0.9 else f"{day.isoformat()}."
        zone = datetime.UTC if self.time == "instant" else None
        time = self.rng.choice([datetime.time.min, datetime.time.max, datetime.time(12, 30, 1, 7)])
        return datetime.datetime.combine(day, time, zone)

    def add(self, table: str, rows: Sequence[Row]) -> None:
        self.added[table] += rows
        self.sources.add(table, rows)


def _is_any(blocks: tuple[int, int] | None) -> bool:
    return blocks is None or blocks[0] <= blocks[1]


def growing(
    sources: Callable[[Path, str, dict[str, pa.Schema]], Sources], directory: Path, *, every: Period, time: str = "date", seed: int = 1
) -> Growing:
    """A world without visits or calls yet. With times that are text, persons are text too."""
    directory.mkdir(parents=True, exist_ok=True)
    declared, held = TIMES[time]
    ends = ("2024-01-01", "2024-12-31") if declared == "date" else ("2024-01-01T00:00:00", "2024-12-31T23:59:59")
    name = f"growing.{os.getpid()}.{next(_numbers)}"
    text = CATALOGUE.format(
        id=name, every=every.value, time=declared, unit="text" if time == "text" else "integer", low=ends[0], high=ends[1]
    )
    schemas = {
        "people": pa.schema([("person", pa.int64()), ("age", pa.int32())]),
        "visits": pa.schema(
            [
                ("person", pa.int64()),
                ("at", held),
                ("clinic", pa.string()),
                ("cost", pa.float64()),
                ("units", pa.int16()),
                ("paid", pa.bool_()),
                ("note", pa.string()),
            ]
        ),
        "calls": pa.schema([("caller", pa.string()), ("day", pa.date32()), ("minutes", pa.int64())]),
        "clinics": pa.schema([("name", pa.string())]),
    }
    made = Growing(sources(directory, text, schemas), every, time, random.Random(seed))
    made.sources.add("people", [{"person": person, "age": person} for person in range(1, 30)])
    made.sources.add("clinics", [{"name": "a"}, {"name": "b"}])
    for table in ("visits", "calls"):
        made.sources.add(table, [])
    return made


def in_files(directory: Path, text: str, schemas: dict[str, pa.Schema]) -> Sources:
    """Sources that are files, on DuckDB."""
    text = text.replace(".parquet", "-*.parquet")
    (directory / "lapwing.toml").write_text(text, encoding="utf-8")
    return InFiles(load(directory / "lapwing.toml"), text, schemas)


def on_server(worlds: PostgresWorlds) -> Callable[[Path, str, dict[str, pa.Schema]], Sources]:
    """Sources that are tables of a server."""

    def made(directory: Path, text: str, schemas: dict[str, pa.Schema]) -> Sources:
        schema = worlds._new_schema()
        ask(worlds.connection, f"CREATE SCHEMA {schema}")
        text = catalogue_on_postgres(text, schema=schema, connection=worlds.conninfo)
        return OnServer(parse(text), text, schemas, worlds, directory, schema)

    return made
