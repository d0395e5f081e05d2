"""The audit log: who did what, with which outcome, a line of JSON for each call. It holds no value from the data, credential or statement.

A call that charges has two lines with the same number: one that is on disk before the charge, and one when the call has ended. Without
the first there is no charge.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from lapwing.errors import CallRefused
from lapwing.interfaces.http.rates import Rates, sender
from lapwing.interfaces.http.time_text import moment_text

_log = logging.getLogger("lapwing.server")
BEGUN = "begun"
"""The outcome in a line before a charge."""
ADDRESS_LENGTH_MAX = 64
ADDRESSES = 10
"""All unauthenticated callers together have this many times the lines of one address; further lines are left out."""
COUNTED_SECONDS = 60.0
_TOO_MANY, _UNWRITABLE = "too-many-requests", "audit-unwritable"


class AuditLog:
    """Lines appended to one file, which several workers may share. Each is written whole, to the file that is at ``path`` at the time: a
    file that was renamed to begin a new one gets no more lines.

    For unauthenticated callers, the lines per minute are limited for each address, and in total to ten times as many; others are counted.
    """

    def __init__(self, path: Path, *, strangers_per_minute: int = 60) -> None:
        self._path = path
        self._gate = threading.Lock()
        self._by_address = Rates(strangers_per_minute / 60, strangers_per_minute)
        self._by_all = Rates(ADDRESSES * strangers_per_minute / 60, ADDRESSES * strangers_per_minute)
        self._left_out: Counter[str] = Counter()
        self._counted_at = -COUNTED_SECONDS
        self._file: int | None = _opened(path)

    def begin(self, *, who: str, credential: str, act: str, data_set: str, request: str) -> None:
        """Write the line before a charge; ``audit-unwritable`` if it cannot be stored on disk."""
        line = _line(who=who, credential=credential, act=act, data_set=data_set, outcome=BEGUN, request=request, charges=[])
        try:
            with self._gate:
                self._tell_left_out()
                self._append(line)
                synced = os.dup(self._open_file())  # another thread may meanwhile begin a new file and close this one
            try:
                if stat.S_ISREG(os.fstat(synced).st_mode):
                    os.fdatasync(synced)
            finally:
                os.close(synced)
        except OSError:
            _log.error("the audit log cannot be written: nothing is charged")
            hint = "the operator of the server must free disk space for it"
            raise CallRefused("audit-unwritable", "the audit log cannot be written, so nothing is charged", hint=hint) from None

    def write(
        self,
        *,
        who: str,
        credential: str,
        act: str,
        data_set: str,
        outcome: str,
        request: str,
        charges: Sequence[int] = (),
        address: str = "",
    ) -> bool:
        """Write one decision. ``outcome`` is a status or a code, ``request`` the request's number, ``charges`` are ids in the ledger.

        For an unauthenticated caller (``who`` is empty), the line has the address. Returns whether it was written; otherwise it is counted.
        """
        said: dict[str, str | list[int]] = {"who": who, "credential": credential, "act": act, "data_set": data_set, "outcome": outcome}
        if not who:
            said["address"] = address[:ADDRESS_LENGTH_MAX]
        line = _line(**said, request=request, charges=list(charges))
        with self._gate:
            try:
                if who or self._has_room_for(address):
                    self._tell_left_out()
                    self._append(line)
                    return True
                self._left_out[_TOO_MANY] += 1
                self._tell_left_out()
            except OSError:
                if not self._left_out[_UNWRITABLE]:
                    _log.error("the audit log cannot be written")
                self._left_out[_UNWRITABLE] += 1
        return False

    def close(self) -> None:
        """Close the file, after a last count of the lines that were left out."""
        with self._gate:
            self._counted_at = -COUNTED_SECONDS
            with suppress(OSError):
                self._tell_left_out()
            if self._file is not None:
                os.close(self._file)
            self._file = None  # a late line must not go to another file that gets this descriptor

    def _has_room_for(self, address: str) -> bool:
        return not self._by_address.seconds_to_wait(sender(address)) and not self._by_all.seconds_to_wait("")

    def _tell_left_out(self) -> None:
        """Write how many lines were left out, and why; for unauthenticated callers, once a minute."""
        for why, count in list(self._left_out.items()):
            if why == _TOO_MANY and time.monotonic() - self._counted_at < COUNTED_SECONDS:
                continue
            self._append(_line(who="", credential="", act="left-out", data_set="", outcome=why, request="", charges=[], lines=count))
            del self._left_out[why]
            if why == _TOO_MANY:
                self._counted_at = time.monotonic()

    def _append(self, line: bytes) -> None:
        while not self._is_written(line):
            new = _opened(self._path)
            os.close(self._open_file())
            self._file = new

    def _is_written(self, line: bytes) -> bool:
        """Write all of it or nothing, one worker at a time; False if the file was renamed."""
        file = self._open_file()
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            if not _is_at(self._path, file):
                return False
            before = os.fstat(file).st_size
            if os.write(file, line) != len(line):
                with suppress(OSError):
                    os.ftruncate(file, before)
                raise OSError(errno.ENOSPC, "only a part was written")
            return True
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def _open_file(self) -> int:
        if self._file is None:
            raise OSError(errno.EBADF, "the log is closed")
        return self._file


def _line(*, request: object, **said: object) -> bytes:
    return json.dumps({"at": moment_text(datetime.now(UTC)), "request": request, **said}, ensure_ascii=True).encode("ascii") + b"\n"


def _opened(path: Path) -> int:
    """Open the file, or create it. No other user may read it, except a group to which it was assigned."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode) and mode & stat.S_IRWXO:
        with suppress(PermissionError):  # it belongs to another user
            os.fchmod(file, stat.S_IMODE(mode) & ~stat.S_IRWXO)
    return file


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False
