"""The data sets that a worker serves, and the asking of them: a bounded pool for each, and moments at which its answers may be seen."""

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
"""How often it is looked whether there is a newer version."""

Result = TypeVar("Result")


class ServedDataSet:
    """One data set, as one worker serves it. It is opened on the first request; a version that was prepared meanwhile is opened
    automatically.

    ``opened_now`` is told after it was opened, so that others may be closed; ``counted`` after the moment of an answer, with when it was
    due (None where moments are not public) and whether it was late.
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
        """What is under way and has a name; of the loop's thread alone."""

    @contextmanager
    def opened(self) -> Iterator[DataSet]:
        """The data set in its newest version; what is running in an older one goes on there."""
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
        """The newest version, opened where it is not. Pre: no other thread is opening it."""
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
        with suppress(LapwingError):  # here, where one thread is: many would open them many times. What is wrong is told to whoever asks.
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
        """The data set opened once more, for an owner's act: what others ask meanwhile goes on. What comes of it is seen at once."""

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
        """What ``work`` gives, in the pool; ``busy`` where too much waits, ``TimeoutError`` when it takes long: it goes on by itself.

        One ``person`` has half of the pool at most, so that what others ask goes on beside it. What it charges is noted in ``notes``. Work
        of the same ``name`` that is under way is waited for and not begun again: whoever is told to look again, and does, costs nothing.
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
            raise CallRefused("busy", "too many statements of this data set wait already", hint="ask again in a moment")
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
            if self.moments.public:  # else it ends when rows have been read, and the span would say so
                notes.holds.append((at, at + round(after * 1e9)))

        return hold

    def close(self) -> None:
        """Let what runs come to its end, then give up files and connections."""
        if self._turns is not None:
            self._turns.close(wait=True)
        if self._current is not None:
            self._current.data_set.close()


def _at_once() -> None:
    pass


@dataclass(slots=True)
class _Opened:
    """A data set, what it was opened after, and how many use it."""

    data_set: DataSet
    prepared: tuple[tuple[int, ...], str | None]
    users: int = 0


def _last_prepared(curator: Curator) -> tuple[tuple[int, ...], str | None]:
    """The newest version (none, or one), and the catalogue as it was last prepared: with another budget or default the version stays."""
    return curator.engine.versions()[-1:], curator.state.declared()


class DataSetPool:
    """All data sets of a worker, by their names. So many are open at once; who was used longest ago is closed for another."""

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
        """Every catalogue that is listed, as seen from ``directory``; none is opened before somebody asks it.

        ``added`` names those that were declared while the server ran, by whichever worker. ``counted`` hears of each answer: of which data
        set, when it was due, and whether it was late.
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
        """All of them, those included that were declared by now."""
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
        """Serve what was just declared, without waiting for the next look."""
        with self._looking:
            self._look()

    def make_room(self, newest: ServedDataSet) -> None:
        """Close those that were used longest ago and are idle, as many as are open beyond the limit."""
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
