"""Which engine a data set is on. Engines are imported when they are needed, and not before."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from lapwing.catalog import Declaration, Engine, Settings
from lapwing.engines import base


def engine_of(declaration: Declaration, directory: Path, settings: Settings) -> base.Engine:
    """The engine a catalogue names, with its versions; ``directory`` is the state directory of the data set."""
    match declaration.dataset.engine:
        case Engine.DUCKDB:
            from lapwing.engines.duckdb import DuckDBEngine

            return DuckDBEngine(directory, settings)
        case Engine.POSTGRES:
            from lapwing.engines.postgres import PostgresEngine

            return PostgresEngine(declaration, settings)
        case Engine.SPARK:
            from lapwing.engines.spark import SparkEngine

            return SparkEngine(directory, settings)
        case _:
            assert_never(declaration.dataset.engine)
