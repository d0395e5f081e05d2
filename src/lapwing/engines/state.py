"""The state of a data set that is not part of one version: one directory beside the catalogue.

    .lapwing/ranking.key      the secret that orders rows within a unit; readable by the owner only; made once, kept over all versions
    .lapwing/v000001.duckdb   one file per version, where the engine is DuckDB; written whole or not at all
    .lapwing/v000001.blocks/  its blocks of time, where it has any: a file for each table and block, and the index of these
    .lapwing/versions         the newest number that any version had
    .lapwing/declared.toml    the catalogue as it was last prepared, kept when versions are retired
    .lapwing/blocks           which blocks of time were last prepared
    .lapwing/prepare.lock     held while a version is prepared
    .lapwing/v000001.report.json  what its preparation left out and changed: exact, for the owner alone
    .lapwing/statistics.json  noisy statistics bought at preparation (released values)
    .lapwing/ledger.sqlite    the ledger (see lapwing.ledger)

The ranking key decides which rows of a unit survive the cap. Its secrecy prevents anyone from writing rows that are sure to survive; the
guarantee does not rest on it. Losing it is not a breach: the next version then orders rows anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lapwing.catalog.blocks import PreparedBlocks
from lapwing.errors import PreparationError

STATE_DIRECTORY = ".lapwing"
KEPT_FILES = ("ranking.key", "versions", "declared.toml", "statistics.json")
"""What a backup keeps of it, in addition to the ledger."""
LOCK_FILE = "prepare.lock"
"""Files that a refused preparation leaves behind."""


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

    def require_usable(self, *, writing: bool = False) -> None:
        """Refuse (``state-private``) a directory of another user. Approvals and the ledger do not need it."""
        if self.directory.exists() and not os.access(self.directory, os.R_OK | os.X_OK | (os.W_OK if writing else 0)):
            hint = "ask and prepare as the user who prepared it"
            raise PreparationError("state-private", "the state directory of this data set is another user's", hint=hint)

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Held by one preparation at a time; refuses another one (``preparation-in-progress``)."""
        self.require_usable(writing=True)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                hint = "wait until it has ended"
                raise PreparationError("preparation-in-progress", "another process is preparing this data set", hint=hint) from None
            try:
                yield
            finally:
                # A child that was forked meanwhile has the same lock: closing alone would not give it back.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def declared(self) -> str | None:
        """The catalogue as it was last prepared; None if nothing was."""
        path = self.directory / "declared.toml"
        return path.read_text(encoding="utf-8") if path.exists() else None

    def remember_declared(self, text: str) -> None:
        """Store the catalogue of a preparation, even if its version is deleted later."""
        self._write("declared.toml", text)

    def _write(self, name: str, text: str) -> None:
        """Write a file atomically and durably, readable by the owner only, even while it is being written."""
        partial = self.directory / f"{name}.partial"
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(partial, self.directory / name)

    def blocks_seen(self) -> str:
        """Which blocks of time were last prepared, as text: it changes whenever they do."""
        path = self.directory / "blocks"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def remember_blocks(self, version: int, prepared: PreparedBlocks) -> None:
        """Note which blocks of time a version holds, so that other processes open it again."""
        self._write("blocks", json.dumps({"version": version, **prepared.body()}))

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
        self._write("versions", f"{version}\n")

    def prepared_at(self) -> float | None:
        """When the newest version was prepared, in seconds of the system's clock; None before the first."""
        try:
            return (self.directory / "versions").stat().st_mtime
        except OSError:
            return None

    def report_path(self, version: int) -> Path:
        """Where the owner's report on the preparation of a version is."""
        return self.directory / f"v{version:06d}.report.json"

    def save_report(self, version: int, report: dict[str, Any]) -> Path:
        """Store the owner's report on a preparation, readable by the owner alone. Exact figures: never for release."""
        path = self.report_path(version)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(path.name, json.dumps(report, indent=1))
        return path

    def report(self, version: int) -> dict[str, Any] | None:
        """The owner's report on a preparation, if there is one."""
        path = self.report_path(version)
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def statistics(self) -> dict[str, Any]:
        """Noisy statistics bought so far, by table: released values, so public."""
        path = self.directory / "statistics.json"
        statistics: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return statistics

    def save_statistics(self, statistics: dict[str, Any]) -> None:
        """Keep bought statistics for later versions."""
        self._write("statistics.json", json.dumps(statistics, indent=1))
