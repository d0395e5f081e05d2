"""DuckDB as an engine: one file for each version, in the state directory of the data set; blocks of time in a folder beside it."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

from lapwing.catalog import Declaration, Preparation, Settings, parse
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Progress, Snapshot
from lapwing.engines.duckdb.append import append_snapshot
from lapwing.engines.duckdb.block_files import blocks_folder
from lapwing.engines.duckdb.block_writing import late_rows, write_blocks
from lapwing.engines.duckdb.prepare import prepare_snapshot
from lapwing.engines.duckdb.snapshot import DuckDBSnapshot, stored_blocks, stored_declaration, stored_files, stored_text
from lapwing.engines.duckdb.virtual import VirtualDuckDBSnapshot
from lapwing.engines.losses import Witness
from lapwing.engines.marks import file_marks
from lapwing.errors import PreparationError

_VERSION_FILE = re.compile(r"v(\d{6})\.duckdb")


class DuckDBEngine:
    """The versions of one data set as files ``v000001.duckdb``; each is written whole or not at all."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        self._directory = directory
        self._settings = settings

    def versions(self) -> tuple[int, ...]:
        """Numbers of the versions that exist, oldest first."""
        if not self._directory.exists():
            return ()
        matches = (_VERSION_FILE.fullmatch(path.name) for path in self._directory.iterdir())
        return tuple(sorted(int(match.group(1)) for match in matches if match))

    def path(self, version: int) -> Path:
        """The file of a version."""
        return self._directory / f"v{version:06d}.duckdb"

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
        """Write one version, from nothing or from an older one and the rows that came since. One with blocks of time, from nothing."""
        target, settings = self.path(version), self._settings
        if append_to is None or blocks is not None or declaration.dataset.preparation is Preparation.VIRTUAL:
            prepare_snapshot(
                declaration,
                text,
                target,
                version=version,
                ranking_key=ranking_key,
                settings=settings,
                progress=progress,
                blocks=blocks,
                witness=witness,
            )
            return
        self._require(append_to)
        older = self.path(append_to)
        append_snapshot(declaration, text, target, older, version=version, ranking_key=ranking_key, settings=settings, progress=progress)

    def prepared_blocks(self, version: int) -> PreparedBlocks | None:
        """The blocks of time whose rows a version holds; None of a version without blocks."""
        self._require(version)
        return stored_blocks(self.path(version), self._settings)

    def write_blocks(self, version: int, write: BlockWrite) -> None:
        """Write blocks of time of a version, which then holds the blocks ``write.after``."""
        self._require(version)
        prepared, facts = stored_declaration(self.path(version), self._settings)
        write_blocks(write, prepared, facts, self.path(version), self._settings)

    def late_rows(self, declaration: Declaration, version: int) -> dict[str, int]:
        """How many more rows than were read the sources have now in the blocks that the version holds, by table: exact, for the owner."""
        self._require(version)
        _, facts = stored_declaration(self.path(version), self._settings)
        return late_rows(declaration, facts, self.path(version), self._settings)

    def open(self, version: int, *, ranking_key: bytes) -> Snapshot:
        """Open a version for reading."""
        path, settings = self.path(version), self._settings
        snapshot = DuckDBSnapshot(path, ranking_key=ranking_key, settings=settings)
        declaration = replace(parse(self.stored_text(version), settings=settings), directory=self._directory.parent)
        if declaration.dataset.preparation is Preparation.STORED:
            return snapshot
        snapshot.close()
        files = stored_files(path, settings)
        return VirtualDuckDBSnapshot(path, declaration, snapshot.facts, files, ranking_key=ranking_key, settings=settings)

    def source_marks(self, declaration: Declaration) -> dict[str, frozenset[str]]:
        """The files of the tables."""
        return {table.name: file_marks([declaration.source_path(table)]) for table in declaration.all_tables}

    def stored_text(self, version: int) -> str:
        """The catalogue text a version was prepared with."""
        return stored_text(self.path(version), self._settings)

    def retire(self, version: int) -> None:
        """Delete the rows of a version."""
        self._require(version)
        # The file last: as long as it is there, the version is listed and can be retired again.
        folder = blocks_folder(self.path(version))
        if folder.exists():
            shutil.rmtree(folder)
        self.path(version).unlink()

    def _require(self, version: int) -> None:
        if version not in self.versions():
            raise PreparationError("no-such-version", f"there is no version {version}")

    def close(self) -> None:
        """Nothing is held open between calls."""
