"""The data sets that a worker serves: a bounded thread pool for each, and the moments at which its answers are sent."""

from __future__ import annotations

import asyncio
import math
import secrets
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lapwing.curator.catalogue_name import catalogue_name
from lapwing.curator.cost_estimate import CostEstimate, Hold, on_charge, on_reservation
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.data_set import open as open_data_set
from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.http.call_notes import CallNotes
from lapwing.interfaces.http.configuration import MomentSettings, Served, ServerLimits
from lapwing.interfaces.http.fair_threads import FairThreadPool
from lapwing.interfaces.http.release_schedule import PublicMoments

LOOK_SECONDS = 1.0
"""How often to check for a newer version."""

Result = TypeVar("Result")


class ServedDataSet:
    """One data set, as one worker serves it. The first request opens it; a version that was prepared meanwhile is opened
    automatically.

    ``opened_now`` is called after opening, so that others may be closed; ``counted`` after the moment of an answer, with the time it was
    due (None if moments are not public) and whether it was late.
    """

    def __init__(
        self,
        data_set_id: str,
        catalogue: Path,
        limits: ServerLimits,
        moments: PublicMoments,
        *,
        opened_now: Callable[[ServedDataSet], None],
        counted: Callable[[float | None, bool], None] = lambda *_: None,
        home: Path | None = None,
    ) -> None:
        self.data_set_id = data_set_id
        self.moments = moments
        self.used_at = 0.0
        self.catalogue = catalogue
        self.home = home
        self._limits = limits
        self._opened_now = opened_now
        self._counted = counted
        self._opening = threading.Lock()
        """Held while the data set is opened: by threads of the pool, never by the thread that accepts requests."""
        self._counting = threading.Lock()
        self._current: _Opened | None = None
        self._looked = -math.inf
        self._turns: FairThreadPool | None = None
        self._named: dict[Hashable, asyncio.Future[Any]] = {}
        """Work in progress that has a name; used only by the event loop's thread."""

    @contextmanager
    def opened(self) -> Iterator[DataSet]:
        """The data set in its newest version; statements that run in an older one continue there."""
        with self._opening:
            is_new = self._current is None
            one = self._newest()
            one.users += 1
            self.used_at = time.monotonic()
        try:
            if is_new:
                self._opened_now(self)
            yield one.data_set
        finally:
            with self._opening:
                one.users -= 1
                done = one.users == 0 and one is not self._current
            if done:
                one.data_set.close()

    def _newest(self) -> _Opened:
        """The newest version, opened if necessary. Pre: no other thread is opening it."""
        before = self._current
        if before is not None:
            if time.monotonic() - self._looked < LOOK_SECONDS:
                return before
            self._looked = time.monotonic()
            if _last_prepared(before.data_set.curator) == before.prepared:
                return before
        self._current = self._open()
        self._looked = time.monotonic()
        if before is not None and before.users == 0:
            before.data_set.close()
        return self._current

    def _open(self) -> _Opened:
        curator = Curator(self.catalogue, home=self.home, shared=True)
        prepared = _last_prepared(curator)
        with suppress(LapwingError):  # opened by one thread here, not by many later; requests report errors
            _ = curator.ledger, curator.snapshot
        return _Opened(DataSet(curator), prepared)

    @property
    def is_open(self) -> bool:
        """Whether it holds files and connections."""
        return self._current is not None

    def close_if_idle(self) -> bool:
        """Close files, connections and threads if they are unused; returns whether that was done."""
        if not self._opening.acquire(blocking=False):
            return False
        try:
            with self._counting:
                one = self._current
                if one is None or one.users or (self._turns is not None and self._turns.inside):
                    return False
                turns, self._current, self._turns = self._turns, None, None
        finally:
            self._opening.release()
        if turns is not None:
            turns.close(wait=False)
        one.data_set.close()
        return True

    @contextmanager
    def apart(self, notes: CallNotes) -> Iterator[DataSet]:
        """The data set, opened again for an owner's act; other requests continue. Its result is visible at once."""

        def announced(_: CostEstimate) -> Hold:
            notes.before_charge()
            return _at_once

        try:
            with (
                open_data_set(self.catalogue, home=self.home) as opened,
                on_charge(announced),
                on_reservation(notes.charges.append),
            ):
                yield opened
        finally:
            self._looked = -math.inf

    async def run(
        self, work: Callable[[DataSet], Result], notes: CallNotes | None = None, *, name: Hashable = None, person: str | None = None
    ) -> Result:
        """The result of ``work``, run in the pool; ``busy`` if too much waits, ``TimeoutError`` if it takes long (it continues then).

        One ``person`` has at most half of the pool, so that others' requests run too. Its charges are recorded in ``notes``. If work of the
        same ``name`` is in progress, this waits for it and does not begin it again, so a client that polls costs nothing.
        """
        future: asyncio.Future[Result] | None = None if name is None else self._named.get(name)
        if future is None:
            future = self._begun(work, notes or CallNotes(), person)
            if name is not None:
                self._named[name] = future
                future.add_done_callback(lambda _: self._named.pop(name, None))
        return await asyncio.wait_for(asyncio.shield(future), self._limits.wait_seconds)

    def _begun(self, work: Callable[[DataSet], Result], notes: CallNotes, person: str | None) -> asyncio.Future[Result]:
        with self._counting:
            if self._turns is None:
                self._turns = FairThreadPool(self._limits.running_max, self._limits.waiting_max)
            begun = self._turns.begin(secrets.token_hex(8) if person is None else person, partial(self._inside_the_pool, work, notes))
        if begun is None:
            raise CallRefused("busy", "too many statements of this data set are waiting already", hint="ask again in a moment")
        return asyncio.wrap_future(begun)

    def _inside_the_pool(self, work: Callable[[DataSet], Result], notes: CallNotes) -> Result:
        with (
            self.opened() as data_set,
            on_charge(lambda public: self._announced(public, notes)),
            on_reservation(notes.charges.append),
        ):
            return work(data_set)

    def _announced(self, work: CostEstimate, notes: CallNotes) -> Hold:
        """Hold the outcome until the time that public facts determine."""
        notes.before_charge()
        begun, at = time.monotonic(), time.time_ns()

        def hold() -> None:
            took = time.monotonic() - begun
            after = self.moments.leaves_after(work, took=took)
            time.sleep(max(after - took, 0.0))
            # Not before: frequent reads of the counts would show when rows had been read.
            due = self.moments.due_after(work) if self.moments.public else None
            self._counted(due, due is not None and took > due)
            if self.moments.public:  # otherwise it ends when rows have been read, and the span would reveal that
                notes.holds.append((at, at + round(after * 1e9)))

        return hold

    def close(self) -> None:
        """Let running work finish, then close files and connections."""
        if self._turns is not None:
            self._turns.close(wait=True)
        if self._current is not None:
            self._current.data_set.close()


def _at_once() -> None:
    pass


@dataclass(slots=True)
class _Opened:
    """An open data set, the preparation that it was opened after, and the number of its users."""

    data_set: DataSet
    prepared: tuple[tuple[int, ...], str | None, str]
    users: int = 0


def _last_prepared(curator: Curator) -> tuple[tuple[int, ...], str | None, str]:
    """The newest version, if any, its blocks, and the catalogue as last prepared: another budget or default does not make a version."""
    return curator.engine.versions()[-1:], curator.state.declared(), curator.state.blocks_seen()


class DataSetPool:
    """All data sets of a worker, by name. A limited number is open at once: the least recently used is closed for another."""

    def __init__(
        self,
        limits: ServerLimits,
        moments: MomentSettings,
        *,
        home: Path | None,
        added: Callable[[], Mapping[str, Path]],
        counted: Callable[[str, float | None, bool], None],
    ) -> None:
        self._served: dict[str, ServedDataSet] = {}
        self._limits = limits
        self._moments = moments
        self._home = home
        self._added = added
        self._counted = counted
        self._looked = -math.inf
        self._closing = threading.Lock()
        self._looking = threading.Lock()

    @classmethod
    def open(
        cls,
        listed: list[Served],
        limits: ServerLimits,
        moments: MomentSettings,
        *,
        directory: Path,
        home: Path | None = None,
        added: Callable[[], Mapping[str, Path]] = dict,
        counted: Callable[[str, float | None, bool], None] = lambda *_: None,
    ) -> DataSetPool:
        """A pool of the listed catalogues, relative to ``directory``; none is opened before its first request.

        ``added`` returns those that any worker declared while the server ran. ``counted`` is called for each answer: with its data set,
        when it was due, and whether it was late.
        """
        desk = cls(limits, moments, home=home, added=added, counted=counted)
        for item in listed:
            catalogue = directory / item.catalogue
            name = catalogue_name(catalogue)
            if name in desk._served:
                raise LapwingError("server-configuration", f"two catalogues have the name {name!r}")
            desk._serve(name, catalogue, item.answer_after)
        return desk

    def _serve(self, name: str, catalogue: Path, answer_after: float | None = None) -> None:
        base = self._moments.base_seconds if answer_after is None else answer_after
        own = PublicMoments(base, self._moments.public, fixed=answer_after is not None)
        self._served[name] = ServedDataSet(
            name, catalogue, self._limits, own, opened_now=self.make_room, counted=partial(self._counted, name), home=self._home
        )

    @property
    def served(self) -> dict[str, ServedDataSet]:
        """All data sets, including those declared by now."""
        with self._looking:
            if time.monotonic() - self._looked >= LOOK_SECONDS:
                self._look()
            return dict(self._served)

    def _look(self) -> None:
        for name, catalogue in self._added().items():
            if name not in self._served:
                self._serve(name, catalogue)
        self._looked = time.monotonic()

    def look_now(self) -> None:
        """Serve what was just declared, without waiting for the next check."""
        with self._looking:
            self._look()

    def make_room(self, newest: ServedDataSet) -> None:
        """Close idle data sets, least recently used first, until the number of open ones is within the limit."""
        with self._closing:
            others = sorted((one for one in dict(self._served).values() if one.is_open and one is not newest), key=lambda one: one.used_at)
            excess = len(others) + 1 - self._limits.open_max
            for one in others:
                if excess <= 0:
                    return
                excess -= one.close_if_idle()

    def of(self, data_set: str) -> ServedDataSet | None:
        """The data set of this name."""
        return self._served.get(data_set) or self.served.get(data_set)

    def close(self) -> None:
        """Close all of them."""
        for one in self._served.values():
            one.close()
