"""The engines of the suite behind one face: prepare a declaration over Parquet files, run certified plans, look at prepared rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Declaration
from lapwing.engines.base import Snapshot
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.engines.postgres import PostgresSnapshot
from lapwing.engines.postgres.session import ask, transaction
from lapwing.kernel.domains import DateDomain, Domain, TimestampDomain
from lapwing.render.dialect import Dialect
from lapwing.render.duckdb import DUCKDB
from lapwing.render.relations import RANK, ROWS, UNIT
from tests.support.postgres_worlds import PostgresWorlds
from tests.support.spark_worlds import prepare_in_spark

NAMES = ("duckdb", "postgres", "spark")
OTHERS = NAMES[1:]


class SuiteEngine(Protocol):
    """What the suite asks of an engine."""

    @property
    def name(self) -> str: ...

    def prepare(self, declaration: Declaration, *, ranking_key: bytes = RANKING_KEY) -> Snapshot:
        """Prepare the sources, which are Parquet files or what the engine has instead, as version 1, and open it."""
        ...

    def select(self, snapshot: Snapshot, columns: str, table: str) -> list[tuple[Any, ...]]:
        """Rows of a prepared table; ``columns`` is SQL of the engine's own."""
        ...

    def dialect(self, snapshot: Snapshot) -> Dialect:
        """The spelling of columns."""
        ...


@dataclass(frozen=True, slots=True)
class OnDuckDB:
    """DuckDB, in memory."""

    name: str = "duckdb"

    def prepare(self, declaration: Declaration, *, ranking_key: bytes = RANKING_KEY) -> Snapshot:
        return DuckDBSnapshot.in_memory(declaration, version=1, ranking_key=ranking_key)

    def select(self, snapshot: Snapshot, columns: str, table: str) -> list[tuple[Any, ...]]:
        assert isinstance(snapshot, DuckDBSnapshot)
        return snapshot._connection.execute(f"SELECT {columns} FROM {DUCKDB.table(table)} t").fetchall()

    def dialect(self, snapshot: Snapshot) -> Dialect:
        return DUCKDB


@dataclass(frozen=True, slots=True)
class OnPostgres:
    """A real server."""

    worlds: PostgresWorlds
    name: str = "postgres"

    def prepare(self, declaration: Declaration, *, ranking_key: bytes = RANKING_KEY) -> Snapshot:
        return self.worlds.prepare(declaration, ranking_key=ranking_key)

    def select(self, snapshot: Snapshot, columns: str, table: str) -> list[tuple[Any, ...]]:
        assert isinstance(snapshot, PostgresSnapshot) and snapshot._connection is not None
        with transaction(snapshot._connection, self.worlds.settings, read_only=True) as connection:
            return ask(connection, f"SELECT {columns} FROM {snapshot.dialect.table(table)} t")

    def dialect(self, snapshot: Snapshot) -> Dialect:
        assert isinstance(snapshot, PostgresSnapshot)
        return snapshot.dialect


@dataclass(frozen=True, slots=True)
class OnSpark:
    """Spark in this process's JVM."""

    name: str = "spark"

    def prepare(self, declaration: Declaration, *, ranking_key: bytes = RANKING_KEY) -> Snapshot:
        return prepare_in_spark(declaration, ranking_key=ranking_key)

    def select(self, snapshot: Snapshot, columns: str, table: str) -> list[tuple[Any, ...]]:
        spark: Any = snapshot
        return [tuple(row) for row in spark._session.sql(f"SELECT {columns} FROM {spark._stored.table(table)} t").collect()]

    def dialect(self, snapshot: Snapshot) -> Dialect:
        spark: Any = snapshot
        stored: Dialect = spark._stored
        return stored


def prepared(engine: SuiteEngine, snapshot: Snapshot, table: str) -> list[tuple[Any, ...]]:
    """Every row of a prepared private table: unit, rank, rows of the unit, columns; dates and times as whole numbers; in one order."""
    columns = snapshot.facts.table(table).columns
    listed = ", ".join([f"t.{UNIT}", f"t.{RANK}", f"t.{ROWS}", *_numbers(columns, engine.dialect(snapshot))])
    return sorted((tuple(map(_plain, row)) for row in engine.select(snapshot, listed, table)), key=repr)


def _numbers(columns: Mapping[str, Domain], dialect: Dialect) -> list[str]:
    listed = []
    for name, domain in columns.items():
        column = f"t.{dialect.quoted(name)}"
        match domain:
            case DateDomain():
                listed.append(dialect.days(column))
            case TimestampDomain():
                listed.append(dialect.microseconds(column))
            case _:
                listed.append(column)
    return listed


def _plain(value: Any) -> Any:
    assert value is None or isinstance(value, bool | int | str), type(value)
    return value
