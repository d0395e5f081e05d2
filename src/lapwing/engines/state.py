"""What belongs to a data set and not to one version of it: one directory beside the catalogue.

    .lapwing/ranking.key      the secret that orders rows within a unit; readable by the owner only; made once, kept over all versions
    .lapwing/v000001.duckdb   one file per version, where the engine is DuckDB; written whole or not at all
    .lapwing/versions         the newest number that any version had
    .lapwing/statistics.json  noisy statistics bought at preparation (released values)
    .lapwing/ledger.sqlite    the ledger (see lapwing.ledger)

The ranking key decides which rows of a unit survive the cap. Its secrecy stops somebody from writing rows that are sure to survive; the
guarantee does not rest on it. Losing it is no breach: the next version then orders rows anew.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lapwing.errors import PreparationError

STATE_DIRECTORY = ".lapwing"


class StateDirectory:
    """The state directory of one data set."""

    def __init__(self, catalogue_directory: Path) -> None:
        self.directory = catalogue_directory / STATE_DIRECTORY

    @property
    def ledger_path(self) -> Path:
        """Where the local ledger is."""
        return self.directory / "ledger.sqlite"

    def ranking_key(self) -> bytes:
        """The ranking key; made from operating-system randomness the first time."""
        path = self.directory / "ranking.key"
        if not path.exists():
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(secrets.token_bytes(32))
                handle.flush()
                os.fsync(handle.fileno())
        key = path.read_bytes()
        if len(key) != 32:
            raise PreparationError("ranking-key", "the ranking key is damaged", hint="restore it, or delete it and prepare a new version")
        return key

    def next_version(self, existing: Iterable[int]) -> int:
        """A number no version ever had: a counter, kept even when versions are retired. A preparation that failed made no version."""
        return max((self._newest(), *existing)) + 1

    def _newest(self) -> int:
        counter = self.directory / "versions"
        return int(counter.read_text()) if counter.exists() else 0

    def remember(self, version: int) -> None:
        """Note that a version number is used."""
        if version <= self._newest():
            return
        counter = self.directory / "versions"
        partial = counter.with_suffix(".partial")
        partial.write_text(f"{version}\n")
        os.replace(partial, counter)

    def statistics(self) -> dict[str, Any]:
        """Noisy statistics bought so far, by table: released values, so public."""
        path = self.directory / "statistics.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def save_statistics(self, statistics: dict[str, Any]) -> None:
        """Keep bought statistics for later versions."""
        path = self.directory / "statistics.json"
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(statistics, indent=1))
        os.replace(partial, path)
