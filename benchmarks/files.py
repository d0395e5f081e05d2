"""Both sides of a comparison on disk: the prepared version, and an ordinary DuckDB table of the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
from benchmarks.spent import Spent, spent
from benchmarks.visits import catalogue, write_visits

from lapwing.catalog import Settings, load
from lapwing.engines.duckdb import DuckDBSnapshot, prepare_snapshot

RANKING_KEY = bytes(range(32))
"""A benchmark needs no secret; the same key makes the same ranks."""


@dataclass(frozen=True, slots=True)
class Files:
    """Everything a run needs on disk."""

    directory: Path

    @property
    def source(self) -> Path:
        """The rows as the owner has them."""
        return self.directory / "visits.parquet"

    @property
    def catalogue(self) -> Path:
        """The declaration."""
        return self.directory / "lapwing.toml"

    @property
    def bare(self) -> Path:
        """The rows as an ordinary DuckDB table."""
        return self.directory / "bare.duckdb"

    @property
    def snapshot(self) -> Path:
        """The prepared version."""
        return self.directory / "version.duckdb"


def write_source(files: Files, *, rows: int) -> None:
    """The Parquet file and the catalogue, unless the directory already holds them for as many rows."""
    text = catalogue(source=files.source.name, rows=rows)
    if files.source.exists() and files.catalogue.exists() and files.catalogue.read_text(encoding="utf-8") == text:
        return
    write_visits(files.source, rows=rows)
    files.catalogue.write_text(text, encoding="utf-8")


def prepare(files: Files) -> Spent:
    """The owner's act: one version from the source."""
    declaration, text, settings = load(files.catalogue), files.catalogue.read_text(encoding="utf-8"), Settings()
    return spent(partial(prepare_snapshot, declaration, text, files.snapshot, version=1, ranking_key=RANKING_KEY, settings=settings))


def load_bare(files: Files) -> Spent:
    """The same rows as an ordinary table, as they are in the file."""
    files.bare.unlink(missing_ok=True)
    source = str(files.source).replace("'", "''")
    with duckdb.connect(str(files.bare)) as connection:
        return spent(lambda: connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_parquet('{source}'); CHECKPOINT"))


@contextmanager
def opened(files: Files) -> Iterator[tuple[duckdb.DuckDBPyConnection, DuckDBSnapshot]]:
    """Both sides, open for reading with the same limit of memory and the same number of threads (the engine's own choice)."""
    config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": f"{Settings().memory_limit_bytes}B"}
    bare = duckdb.connect(str(files.bare), read_only=True, config=config)
    snapshot = DuckDBSnapshot(files.snapshot, ranking_key=RANKING_KEY)
    try:
        yield bare, snapshot
    finally:
        snapshot.close()
        bare.close()


def run_bare(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """One bare statement, its result fetched the way the engine module fetches."""
    return connection.sql(sql).to_arrow_table()
