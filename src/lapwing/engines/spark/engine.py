"""Spark as an engine: the versions of one data set as Parquet files in its state directory."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from lapwing.catalog import Declaration, Settings
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Progress, Snapshot
from lapwing.engines.losses import Witness
from lapwing.engines.spark.block_writing import late_rows, write_blocks
from lapwing.engines.spark.prepare import prepare_version
from lapwing.engines.spark.sessions import base_session, own_session
from lapwing.engines.spark.snapshot import SparkSnapshot
from lapwing.engines.spark.sources import marks_of
from lapwing.engines.spark.stored import forget_tables, marker_path, read_marker, rows_path
from lapwing.errors import PreparationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARKER = re.compile(r"v(\d{6})\.spark\.json")


class SparkEngine:
    """The versions of one data set. Spark is looked for, or started, when it is first needed: listing versions does not need it."""

    def __init__(self, directory: Path, settings: Settings, *, session: SparkSession | None = None) -> None:
        self._directory = directory
        self._settings = settings
        self._given = session
        self._session: SparkSession | None = None

    def _own(self) -> SparkSession:
        if self._session is None:
            self._session = own_session(self._given or base_session())
        return self._session

    def versions(self) -> tuple[int, ...]:
        """Numbers of the versions that exist, oldest first."""
        if not self._directory.exists():
            return ()
        matches = (_MARKER.fullmatch(path.name) for path in self._directory.iterdir())
        return tuple(sorted(int(match.group(1)) for match in matches if match))

    def prepare(
        self,
        declaration: Declaration,
        text: str,
        *,
        version: int,
        ranking_key: bytes,
        progress: Progress,
        append_to: int | None = None,
        blocks: PreparedBlocks | None = None,
        witness: Witness | None = None,
    ) -> None:
        """Write one version. Even with ``append_to`` it is made from nothing, which gives the same rows."""
        prepare_version(
            self._own(),
            declaration,
            text,
            self._directory,
            version=version,
            ranking_key=ranking_key,
            settings=self._settings,
            progress=progress,
            blocks=blocks,
            witness=witness,
        )

    def prepared_blocks(self, version: int) -> PreparedBlocks | None:
        """The blocks of time whose rows a version holds; None of a version without blocks."""
        stored = read_marker(self._directory, version)
        return None if stored.blocks is None else stored.index().prepared

    def write_blocks(self, version: int, write: BlockWrite) -> None:
        """Write blocks of time of a version, which then holds the blocks ``write.after``."""
        write_blocks(self._own(), write, self._directory, version=version, settings=self._settings)

    def late_rows(self, declaration: Declaration, version: int) -> dict[str, int]:
        """How many more rows than were read the sources have now in the blocks that the version holds, by table: exact, for the owner."""
        return late_rows(self._own(), declaration, self._directory, version=version, settings=self._settings)

    def open(self, version: int, *, ranking_key: bytes) -> Snapshot:
        """Open a version for reading."""
        return SparkSnapshot(
            own_session(self._given or base_session()),  # its own: a time limit interrupts all that its session runs
            self._directory,
            read_marker(self._directory, version),
            ranking_key=ranking_key,
            settings=self._settings,
            catalogue_directory=self._directory.parent,
        )

    def source_marks(self, declaration: Declaration) -> dict[str, frozenset[str]]:
        """The files that hold the rows, of a path or of a table of the catalogue; for tables their name too."""
        return {table.name: marks_of(self._own(), declaration, table) for table in declaration.all_tables}

    def stored_text(self, version: int) -> str:
        """The catalogue text a version was prepared with."""
        return read_marker(self._directory, version).text

    def retire(self, version: int) -> None:
        """Delete the rows of a version."""
        if version not in self.versions():
            raise PreparationError("no-such-version", f"there is no version {version}")
        marker_path(self._directory, version).unlink()
        forget_tables(self._own(), self._directory, version)
        shutil.rmtree(rows_path(self._directory, version), ignore_errors=True)

    def close(self) -> None:
        """Spark is not ours to stop."""
        self._session = None
