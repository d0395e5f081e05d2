"""Which engine a data set is on. Engines are imported when they are needed, and not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import assert_never

from lapwing.catalog import Declaration, EngineKind, Settings
from lapwing.engines import base


def source_fields(engine: EngineKind, connection: str, sources: Sequence[str], settings: Settings) -> list[Mapping[str, base.SourceField]]:
    """What the columns of tables on an engine of the owner's hold, by name, from its own catalogue: no row is read.

    Raises PreparationError where there is no such table. Files on DuckDB carry their own schema.
    """
    match engine:
        case EngineKind.POSTGRES:
            from lapwing.engines.postgres import schemas as on_postgres

            return on_postgres.schemas(connection, sources, settings)
        case EngineKind.SPARK:
            from lapwing.engines.spark import schemas as on_spark

            return on_spark.schemas(sources)
        case EngineKind.DUCKDB:
            raise ValueError("the sources of this engine are files")
        case _:
            assert_never(engine)


def source_tables(connection: str, settings: Settings) -> tuple[list[str], list[base.ForeignKey]]:
    """The tables of a PostgreSQL database that can be sources, and the foreign keys among them; from its own catalogue, and no row."""
    from lapwing.engines.postgres import schemas as on_postgres

    return on_postgres.tables(connection, settings)


def engine_of(declaration: Declaration, directory: Path, settings: Settings) -> base.Engine:
    """The engine a catalogue names, with its versions; ``directory`` is the state directory of the data set."""
    match declaration.dataset.engine:
        case EngineKind.DUCKDB:
            from lapwing.engines.duckdb import DuckDBEngine

            return DuckDBEngine(directory, settings)
        case EngineKind.POSTGRES:
            from lapwing.engines.postgres import PostgresEngine

            return PostgresEngine(declaration, settings)
        case EngineKind.SPARK:
            from lapwing.engines.spark import SparkEngine

            return SparkEngine(directory, settings)
        case _:
            assert_never(declaration.dataset.engine)
