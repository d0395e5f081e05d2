"""Versions in use: a question ends on the version that it started with, even if one is prepared or retired meanwhile.

A version that is no longer the newest is closed by the last question that reads it. A version is deleted when no question of this process
reads it; questions that arrive meanwhile wait and then read the newest one. Otherwise an owner's act would look like a fault of the
engine, which is an incident. What other processes read is not known here; ``Snapshot.check`` refuses a version that is gone.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from weakref import WeakSet

from lapwing.engines.base import Snapshot

LOOK_SECONDS = 1.0
"""Interval in seconds for finding sessions that were opened while a version waits to be deleted."""
_changed = threading.Condition(threading.RLock())
"""Held while the three below are read or changed, and never while anything is opened, closed or deleted."""
_users: Counter[tuple[Path, int]] = Counter()
_retiring: set[tuple[Path, int]] = set()
_all: WeakSet[OpenedVersions] = WeakSet()
_held: ContextVar[dict[OpenedVersions, VersionLease] | None] = ContextVar("lapwing_held_versions", default=None)


class VersionLease:
    """A lease on a version: the version stays open until the lease ends."""

    def __init__(self, versions: OpenedVersions, version: int, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._versions: OpenedVersions | None = versions
        self._version = version

    def give_back(self) -> None:
        """End the lease. Later calls have no effect."""
        versions, self._versions = self._versions, None
        if versions is not None:
            versions.given_back(self._version, self.snapshot)


class OpenedVersions:
    """The newest version of a data set as one curator has it opened, and older ones that are still read.

    ``place`` is the state directory; ``end_sessions`` ends the sessions, which hold a version for longer than a question.
    """

    def __init__(
        self, place: Path, *, latest: Callable[[], int], opened: Callable[[int], Snapshot], end_sessions: Callable[[], None]
    ) -> None:
        self._place, self._latest, self._opened, self._end_sessions = place, latest, opened, end_sessions
        self._opening = threading.Lock()  # among concurrent threads, one opens
        self._newest: tuple[int, Snapshot] | None = None
        self._readers: Counter[int] = Counter()
        """The readers of a snapshot, by its id: several of one version may be opened in turn."""
        with _changed:
            _all.add(self)

    @property
    def snapshot(self) -> Snapshot:
        """The version with which the question of this thread started; outside questions, the newest."""
        held = _held.get()
        if held is None:
            used = self._used()
            used.give_back()
            return used.snapshot
        if self not in held:
            held[self] = self._used()
        return held[self].snapshot

    def kept(self) -> VersionLease:
        """A lease on the version with which the question of this thread started; it may outlast the question. Pre: there is a question."""
        held = _held.get()
        assert held is not None, "nothing is kept outside questions"
        snapshot = self.snapshot
        version = snapshot.facts.version
        with self._opening, _changed:
            _users[self._place, version] += 1
            self._readers[id(snapshot)] += 1
        return VersionLease(self, version, snapshot)

    def _used(self) -> VersionLease:
        """The newest version, which stays open and is not deleted until it is released."""
        while True:
            with self._opening:
                version = self._latest() if self._newest is None else self._newest[0]
                key = (self._place, version)
                with _changed:
                    is_kept = key not in _retiring
                    _users[key] += is_kept
                if is_kept:
                    try:
                        self._newest = self._newest or (version, self._opened(version))
                    except BaseException:
                        _leave(key)
                        raise
                    snapshot = self._newest[1]
                    self._readers[id(snapshot)] += 1
                    return VersionLease(self, version, snapshot)
            _wait_until_kept(key)

    def given_back(self, version: int, snapshot: Snapshot) -> None:
        """End one reader's use of this version."""
        with self._opening:
            self._readers[id(snapshot)] -= 1
            is_done = not self._readers[id(snapshot)]
            if is_done:
                del self._readers[id(snapshot)]
            is_newest = self._newest is not None and self._newest[1] is snapshot
        try:
            if is_done and not is_newest:
                snapshot.close()
        finally:
            _leave((self._place, version))

    def forget_newest(self, version: int | None = None) -> None:
        """Make new questions open the newest version again; present readers keep theirs. With ``version``, only if it is the one in use."""
        with self._opening:
            if self._newest is None or version not in (None, self._newest[0]):
                return
            (_, snapshot), self._newest = self._newest, None
            is_read = id(snapshot) in self._readers
        if not is_read:
            snapshot.close()

    def _end_sessions_of(self, version: int) -> None:
        newest = self._newest
        if newest is not None and newest[0] == version:
            self._end_sessions()

    @contextmanager
    def unread(self, version: int) -> Iterator[None]:
        """Inside the context no reader of this process uses the version, so it may be deleted. Sessions on it are ended, questions finish
        first."""
        key = (self._place, version)
        with _changed:
            _wait_until_kept(key)
            _retiring.add(key)
            here = [one for one in _all if one._place == self._place]
        try:
            is_read = True
            while is_read:  # a session may just have been opened
                for one in here:
                    one._end_sessions_of(version)
                with _changed:
                    is_read = not _changed.wait_for(lambda: not _users[key], timeout=LOOK_SECONDS)
            for one in here:
                one.forget_newest(version)
            yield
        finally:
            with _changed:
                _retiring.discard(key)
                _changed.notify_all()


@contextmanager
def one_version() -> Iterator[None]:
    """A question, which reads one version of the data set throughout. A nested question belongs to the outer one."""
    if _held.get() is not None:
        yield
        return
    held: dict[OpenedVersions, VersionLease] = {}
    token = _held.set(held)
    try:
        yield
    finally:
        _held.reset(token)
        for used in held.values():
            used.give_back()


def _leave(key: tuple[Path, int]) -> None:
    with _changed:
        _users[key] -= 1
        if not _users[key]:
            del _users[key]
        _changed.notify_all()


def _wait_until_kept(key: tuple[Path, int]) -> None:
    with _changed:
        _changed.wait_for(lambda: key not in _retiring)
