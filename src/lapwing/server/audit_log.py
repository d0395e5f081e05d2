"""Who did what, and what came of it: a line of JSON for each request. No value from the data, no credential and no statement is in it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from lapwing.server.moment_texts import moment_text


class AuditLog:
    """Lines appended to one file, which several workers may share: each line is written at once."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._gate = threading.Lock()

    def write(self, *, who: str, credential: str, act: str, data_set: str, outcome: str, request: str, charges: Sequence[int] = ()) -> None:
        """One decision. ``outcome`` is a status or a code; ``request`` the request's own number, ``charges`` those in the ledger."""
        at = moment_text(datetime.now(UTC))
        said = {"at": at, "request": request, "who": who, "credential": credential, "act": act, "data_set": data_set, "outcome": outcome}
        line: dict[str, str | list[int]] = {**said, "charges": list(charges)}
        with self._gate:
            os.write(self._file, json.dumps(line, ensure_ascii=True).encode("ascii") + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
