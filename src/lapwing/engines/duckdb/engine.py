"""DuckDB as an engine: one file for each version, in the state directory of the data set."""

from __future__ import annotations

import re
from pathlib import Path

from lapwing.catalog import Declaration, Settings
from lapwing.engines.base import Progress, Snapshot
from lapwing.engines.duckdb.prepare import prepare_snapshot
from lapwing.engines.duckdb.snapshot import DuckDBSnapshot, stored_text
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

    def prepare(self, declaration: Declaration, text: str, *, version: int, ranking_key: bytes, progress: Progress) -> None:
        """Write one version."""
        prepare_snapshot(
            declaration, text, self.path(version), version=version, ranking_key=ranking_key, settings=self._settings, progress=progress
        )

    def open(self, version: int, *, ranking_key: bytes) -> Snapshot:
        """Open a version for reading."""
        return DuckDBSnapshot(self.path(version), ranking_key=ranking_key, settings=self._settings)

    def stored_text(self, version: int) -> str:
        """The catalogue text a version was prepared with."""
        return stored_text(self.path(version), self._settings)

    def retire(self, version: int) -> None:
        """Delete the rows of a version."""
        if version not in self.versions():
            raise PreparationError("no-such-version", f"there is no version {version}")
        self.path(version).unlink()

    def close(self) -> None:
        """Nothing is held open between calls."""
