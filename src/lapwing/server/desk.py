"""The data sets that a worker serves, and the asking of them: a bounded pool for each, and moments at which its answers may be seen."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from lapwing.client.dataset import DataSet
from lapwing.client.dataset import open as open_data_set
from lapwing.curator.life import Curator
from lapwing.curator.public_work import Hold, PublicWork, told_before_charges, told_of_charges
from lapwing.errors import CallRefused, LapwingError
from lapwing.server.call_notes import CallNotes
from lapwing.server.configuration import MomentSettings, Served, ServerLimits
from lapwing.server.moments import PublicMoments

LOOK_SECONDS = 1.0
"""How often it is looked whether there is a newer version."""

Result = TypeVar("Result")


class ServedDataSet:
    """One data set, as one worker serves it. A version that was prepared meanwhile, here or elsewhere, is opened by itself."""

    def __init__(self, catalogue: Path, limits: ServerLimits, moments: PublicMoments, *, home: Path | None = None) -> None:
        self._catalogue = catalogue
        self._home = home
        self._gate = threading.Lock()
        self._current = self._open()
        self._looked = time.monotonic()
        self._limits = limits
        self._inside = 0
        self._pool = ThreadPoolExecutor(limits.running_max, thread_name_prefix="lapwing-ask")
        self.moments = moments
        self.data_set_id = self._current.data_set.curator.declaration.dataset.id

    @contextmanager
    def opened(self) -> Iterator[DataSet]:
        """The data set in its newest version; what is running in an older one goes on there."""
        with self._gate:
            self._look()
            one = self._current
            one.users += 1
        try:
            yield one.data_set
        finally:
            with self._gate:
                one.users -= 1
                done = one.users == 0 and one is not self._current
            if done:
                one.data_set.close()

    def _look(self) -> None:
        """Open a newer version, where there is one. Pre: the gate is held."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        if self._current.data_set.curator.engine.versions()[-1:] == self._current.versions:
            return
        before, self._current = self._current, self._open()
        if before.users == 0:
            before.data_set.close()

    def _open(self) -> _Opened:
        curator = Curator(self._catalogue, home=self._home, shared=True)
        versions = curator.engine.versions()[-1:]
        with suppress(LapwingError):  # here, where one thread is: many would open them many times. What is wrong is told to whoever asks.
            _ = curator.ledger, curator.snapshot
        return _Opened(DataSet(curator), versions)

    def apart(self) -> DataSet:
        """The data set opened once more, for an owner's act: what others ask meanwhile goes on. To be closed by whoever asked for it."""
        return open_data_set(self._catalogue, home=self._home)

    async def run(self, work: Callable[[DataSet], Result], notes: CallNotes | None = None) -> Result:
        """What ``work`` gives, in the pool; ``busy`` where too much waits, ``TimeoutError`` when it takes long: it goes on by itself.

        What it charges is noted in ``notes``.
        """
        with self._gate:
            if self._inside >= self._limits.running_max + self._limits.waiting_max:
                raise CallRefused("busy", "too many statements of this data set wait already", hint="ask again in a moment")
            self._inside += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, self._inside_the_pool, work, notes or CallNotes())
        return await asyncio.wait_for(asyncio.shield(future), self._limits.wait_seconds)

    def _inside_the_pool(self, work: Callable[[DataSet], Result], notes: CallNotes) -> Result:
        try:
            with (
                self.opened() as data_set,
                told_before_charges(lambda public: self._announced(public, notes)),
                told_of_charges(notes.charges.append),
            ):
                return work(data_set)
        finally:
            with self._gate:
                self._inside -= 1

    def _announced(self, work: PublicWork, notes: CallNotes) -> Hold:
        """From now on until the moment that public facts decide, nobody hears what comes of it."""
        begun, at = time.monotonic(), time.time_ns()

        def hold() -> None:
            took = time.monotonic() - begun
            after = self.moments.leaves_after(work, took=took)
            time.sleep(max(after - took, 0.0))
            if self.moments.public:  # else it ends when rows have been read, and the span would say so
                notes.holds.append((at, at + round(after * 1e9)))

        return hold

    def close(self) -> None:
        """Let what runs come to its end, then give up files and connections."""
        self._pool.shutdown(wait=True)
        self._current.data_set.close()


@dataclass(slots=True)
class _Opened:
    """A data set, the version it is opened in (none, or one), and how many use it."""

    data_set: DataSet
    versions: tuple[int, ...]
    users: int = 0


@dataclass(slots=True)
class Desk:
    """All data sets of a worker, by their names."""

    served: dict[str, ServedDataSet] = field(default_factory=dict)

    @classmethod
    def open(
        cls, listed: list[Served], limits: ServerLimits, moments: MomentSettings, *, directory: Path, home: Path | None = None
    ) -> Desk:
        """Open every catalogue that is listed, as seen from ``directory``."""
        desk = cls()
        try:
            for item in listed:
                base = moments.base_seconds if item.answer_after is None else item.answer_after
                own = PublicMoments(base, moments.public, fixed=item.answer_after is not None)
                one = ServedDataSet(directory / item.catalogue, limits, own, home=home)
                if one.data_set_id in desk.served:
                    one.close()
                    raise LapwingError("server-configuration", f"two catalogues have the name {one.data_set_id!r}")
                desk.served[one.data_set_id] = one
        except BaseException:
            desk.close()
            raise
        return desk

    def of(self, data_set: str) -> ServedDataSet | None:
        """The data set of this name."""
        return self.served.get(data_set)

    def close(self) -> None:
        """Close all of them."""
        for one in self.served.values():
            one.close()
