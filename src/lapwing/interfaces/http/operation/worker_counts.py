"""Counts of all workers of a server, kept when a worker dies: each worker has its own file, and a scrape adds them up.

A worker's file is mapped into its memory: counting is a store of eight bytes, and the counts survive if the worker is killed. It holds
a lock on the file exactly as long as it lives, whatever ends it. So an unlocked file belongs to a worker that has ended: its counts are
added once to those of other ended workers, and the file is removed. A count never goes down while the server runs.
"""

from __future__ import annotations

import fcntl
import json
import logging
import mmap
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapwing.errors import CallRefused

SAMPLES_MAX = 8_192
"""The number of samples of one worker. Further ones are counted together as left out."""
LEFT_OUT = "lapwing_samples_left_out_total"
PASSING = "lapwing_connections"
"""Samples with this prefix are current values, and vanish with the worker."""
LOCK_SECONDS = 1.0
"""How long a scrape waits for another one to finish."""
_VALUES_BYTES = 8 * SAMPLES_MAX
_ENDED, _LEFT_OUT, _FIRST = 0, 1, 2
"""Positions in the file: whether the worker ended normally, the count of left-out samples, and where the named counts begin."""
_GONE, _LOCK, _COUNTS, _NEW = "gone.json", "lock", ".counts", ".new"
_log = logging.getLogger("lapwing.server")


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of all workers together, by sample."""

    counts: Counter[str]
    alive: int
    lost: int
    """Workers that ended unexpectedly since the server was started."""


def begin_anew(directory: Path) -> None:
    """Prepare a private directory at the start of the server, without files of earlier runs."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        directory.chmod(0o700)
        for path in directory.iterdir():
            if path.suffix not in (_COUNTS, _NEW) or _is_unlocked(path):
                path.unlink()
    except OSError as error:
        _log.warning("counts of workers cannot be added up (%s): each worker counts only for itself", error.strerror)


class WorkerCounts:
    """The counts of this worker, with access to those of the others. Safe to share between threads."""

    def __init__(self, directory: Path | None) -> None:
        """Without a ``directory``, or if it cannot be written to, this worker counts only for itself."""
        self._gate = threading.Lock()
        self._places = {LEFT_OUT: _LEFT_OUT}
        self._names_end = _VALUES_BYTES
        self._directory, self._file = directory, -1
        if directory is not None:
            try:
                directory.mkdir(mode=0o700, exist_ok=True)
                self._file = _new_file(directory)
            except OSError as error:
                _log.warning("counts of this worker cannot be added to those of others (%s)", error.strerror)
                self._directory = None
        # Integers of eight bytes: a concurrent reader sees the old or the new number, never half of each.
        self._values = memoryview(mmap.mmap(self._file, _VALUES_BYTES)).cast("q")

    def add(self, sample: str, by: int) -> None:
        """Add to the count of this sample."""
        with self._gate:
            place = self._places.get(sample)
            if place is None:
                place = self._new_place(sample)
            self._values[place] += by

    def _new_place(self, sample: str) -> int:
        place = _FIRST - 1 + len(self._places)
        if place == SAMPLES_MAX or not self._is_named(sample):
            return _LEFT_OUT
        self._places[sample] = place
        return place

    def _is_named(self, sample: str) -> bool:
        """Append the name of the next position before its first count, so that no count lacks a name."""
        if self._file < 0:
            return True
        line = sample.encode() + b"\n"
        try:
            written = os.pwrite(self._file, line, self._names_end)
        except OSError:  # the disk is full
            return False
        if written == len(line):
            self._names_end += written
        return written == len(line)

    def totals(self) -> Totals:
        """The totals of all workers; ``busy`` if another scrape takes too long."""
        if self._directory is None:
            with self._gate:
                return Totals(Counter({sample: self._values[place] for sample, place in self._places.items()}), 1, 0)
        with _alone(self._directory):
            return _sum(self._directory)

    def close(self) -> None:
        """Record that the worker ends normally. Later counts are not visible."""
        with self._gate:
            self._values[_ENDED] = 1
            if self._file >= 0:
                fcntl.flock(self._file, fcntl.LOCK_UN)  # closing alone would not release the lock: the mapping holds the file too
                os.close(self._file)
                self._file = -1


def _new_file(directory: Path) -> int:
    """A file of this worker, locked before others can see it."""
    name = secrets.token_hex(8)
    begun = directory / f"{name}{_NEW}"
    file = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.posix_fallocate(file, 0, _VALUES_BYTES)  # storing into a page for which the disk has no room would kill the process
        begun.rename(directory / f"{name}{_COUNTS}")
    except BaseException:
        os.close(file)
        raise
    return file


def _sum(directory: Path) -> Totals:
    """Add up all counts. Pre: no other process does. If this process dies here, no count is lost or counted twice."""
    try:
        kept = json.loads((directory / _GONE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        kept = {"counts": {}, "lost": 0, "added": []}
    gone, lost, added = Counter[str](kept["counts"]), int(kept["lost"]), []
    for name in kept["added"]:
        (directory / name).unlink(missing_ok=True)
    counts, alive = Counter[str](), 0
    for path in directory.glob(f"*{_COUNTS}"):
        file = os.open(path, os.O_RDONLY)
        try:
            is_gone = _locks(file)
            ended, found = _read(file)
        finally:
            os.close(file)
        if is_gone:
            gone.update({sample: count for sample, count in found.items() if not sample.startswith(PASSING)})
            lost += not ended
            added.append(path.name)
        else:
            counts.update(found)
            alive += 1
    if added:
        _keep(directory, {"counts": gone, "lost": lost, "added": added})
    counts.update(gone)
    return Totals(counts, alive, lost)


def _keep(directory: Path, gone: dict[str, Any]) -> None:
    """Write the counts of ended workers, then remove their files; a file that is named there is not added again."""
    partial = directory / f"{_GONE}.partial"
    try:
        partial.write_text(json.dumps(gone), encoding="utf-8")
        partial.replace(directory / _GONE)
    except OSError:  # the disk is full: they are added up again each time
        return
    for name in gone["added"]:
        (directory / name).unlink()


def _read(file: int) -> tuple[bool, dict[str, int]]:
    """Whether the worker of this file ended normally, and its counts."""
    names = os.pread(file, os.fstat(file).st_size - _VALUES_BYTES, _VALUES_BYTES)
    samples = [line.decode() for line in names.split(b"\n")[:-1]]
    with mmap.mmap(file, _VALUES_BYTES, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as raw, raw.cast("q") as values:
        counted = {sample: values[_FIRST + number] for number, sample in enumerate(samples)}
        return bool(values[_ENDED]), {LEFT_OUT: values[_LEFT_OUT], **counted}


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    file, until = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT, 0o600), time.monotonic() + LOCK_SECONDS
    try:
        while not _locks(file):
            if time.monotonic() > until:
                raise CallRefused("busy", "counts are being added up already", hint="ask again in a moment")
            time.sleep(0.01)
        yield
    finally:
        os.close(file)


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_unlocked(path: Path) -> bool:
    file = os.open(path, os.O_RDONLY)
    try:
        return _locks(file)
    finally:
        os.close(file)
