"""What a version on Spark is: the one file that says so, and how the session's catalogue of tables learns of it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lapwing.catalog import Declaration, Settings, parse
from lapwing.catalog.facts import PLANNING_RULES_UNNUMBERED
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.prepare import SNAPSHOT_FORMAT, number_types_value
from lapwing.engines.spark.block_folders import WrittenFolders
from lapwing.errors import PreparationError
from lapwing.kernel.facts import Facts
from lapwing.render.relations import RANK, UNIT
from lapwing.render.spark import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Stored:
    """What is known of a version without asking Spark. Public, but for ``files`` and ``blocks``: text, types, values of public tables."""

    format: int
    version: int
    source_id: str
    text: str
    buckets: int
    columns: dict[str, list[tuple[str, str]]]
    """Columns of every written table with their Spark types."""
    values: dict[str, dict[str, list[str | None]]]
    """Text values of public tables."""
    files: dict[str, dict[str, Any]]
    """The files of every private table of a virtual version, which is about them and no others; see ``SourceFiles``."""
    numbers: dict[str, dict[str, str]] | None = None
    """Number types of columns."""
    rules: int = PLANNING_RULES_UNNUMBERED
    """Its planning rules."""
    blocks: dict[str, Any] | None = None
    """Of a version with blocks of time, which it holds and where; see ``WrittenFolders``."""

    def declaration(self, settings: Settings) -> Declaration:
        """What it was prepared with."""
        return parse(self.text, settings=settings)

    def facts(self, settings: Settings) -> Facts:
        """The public facts of the version."""
        return declared_facts(
            self.declaration(settings),
            self.values,
            version=self.version,
            settings=settings,
            numbers=number_types_value(self.numbers),
            rules=self.rules,
            prepared=None if self.blocks is None else self.index().prepared,
        )

    def index(self) -> WrittenFolders:
        """Its blocks of time. Refuses a version that holds none."""
        if self.blocks is None:
            raise PreparationError("snapshot-unreadable", "this version holds no blocks of time", hint="prepare a new version")
        return WrittenFolders.of(self.blocks)


def marker_path(directory: Path, version: int) -> Path:
    """The file that says that a version is there, whole."""
    return directory / f"v{version:06d}.spark.json"


def rows_path(directory: Path, version: int) -> Path:
    """The directory with a version's rows. Every executor must see it under this path."""
    return directory / f"v{version:06d}.spark"


def read_marker(directory: Path, version: int) -> Stored:
    """What a version is, or refuse."""
    try:
        stored = json.loads(marker_path(directory, version).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PreparationError("snapshot-unreadable", "the snapshot cannot be opened", hint="prepare the data set again") from error
    if stored.get("format") != SNAPSHOT_FORMAT:
        raise PreparationError("snapshot-format", "the snapshot has another format version", hint="prepare the data set again")
    columns = {table: [(name, kind) for name, kind in listed] for table, listed in stored["columns"].items()}
    return Stored(**{**stored, "columns": columns})


def register_tables(session: SparkSession, directory: Path, stored: Stored) -> str:
    """Tell the session's catalogue of tables about a version; gives the name of its database."""
    rows = rows_path(directory.resolve(), stored.version)
    database = f"lapwing_{hashlib.sha256(str(rows).encode()).hexdigest()[:24]}"
    session.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
    in_blocks = () if stored.blocks is None else stored.index().held
    for table, columns in stored.columns.items():
        if table in in_blocks:
            continue
        listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
        bucketed = f"CLUSTERED BY ({quoted(UNIT)}) SORTED BY ({quoted(RANK)}, {quoted(UNIT)}) INTO {stored.buckets} BUCKETS"
        layout = bucketed if any(name == UNIT for name, _ in columns) else ""
        name = f"{quoted(database)}.{quoted(table)}"
        location = _string(str(rows / table))
        session.sql(f"CREATE TABLE IF NOT EXISTS {name} ({listed}) USING parquet {layout} LOCATION {location}")
    return database


def forget_tables(session: SparkSession, directory: Path, version: int) -> None:
    """Take a version out of the catalogue of tables again."""
    rows = rows_path(directory.resolve(), version)
    session.sql(f"DROP DATABASE IF EXISTS lapwing_{hashlib.sha256(str(rows).encode()).hexdigest()[:24]} CASCADE")


def _string(value: str) -> str:
    """A text constant where the grammar wants one in quotes; only for paths."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def write_marker(directory: Path, stored: Stored) -> None:
    """Say what a version is, whole or not at all: from here on it is what everybody opens."""
    path = marker_path(directory, stored.version)
    partial = path.with_suffix(".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(json.dumps(asdict(stored)))
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(partial, path)
