"""The external dependencies of a worker and their health: the database of identities, ledgers, and the wire's shadow.

Each part is probed in its own thread, one probe at a time, and the result is cached briefly: many requests cause few probes,
so unauthenticated clients may ask too. A request waits for a bounded time; a part without a reply by then is down.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from lapwing.answers.display.budget import share_of_cost
from lapwing.catalog import Settings, load
from lapwing.curator.curator import CATALOGUE_FILE
from lapwing.engines.state import StateDirectory
from lapwing.errors import LapwingError
from lapwing.interfaces.http.data_set_pool import DataSetPool, ServedDataSet
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.operation.metrics import DATA_SETS_MAX, sample_name
from lapwing.ledger.connect import Place, place_of
from lapwing.ledger.glance import local_balance, postgres_balances
from lapwing.ledger.protocol import Balance

KEPT_SECONDS = 1.0
"""How long the result of a probe is cached."""
WAIT_SECONDS = 1.5
"""Timeout of a probe: a monitor that polls every other second notices a silent part."""
IDENTITIES, LEDGER, SHADOW = "the database of identities", "the ledger", "the database behind the wire's catalogue"
"""Parts as shown to unauthenticated clients: only their kinds."""

Seen = TypeVar("Seen")


class DependencyProbe(Generic[Seen]):
    """Probes one part: ``look`` returns its reply, or fails."""

    def __init__(self, look: Callable[[], Seen]) -> None:
        self.look = look
        self._gate = threading.Lock()
        self._newest: Future[Seen] | None = None
        self._begun = self._ended = 0.0

    async def seen(self, until: float) -> Seen:
        """The part's reply; ``TimeoutError`` if there is none by ``until``, or the probe has already run too long."""
        newest, begun = self._under_way()
        left = min(until, begun + WAIT_SECONDS) - time.monotonic()
        if left <= 0 and not newest.done():
            raise TimeoutError
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(newest)), max(left, WAIT_SECONDS / 10))

    def _under_way(self) -> tuple[Future[Seen], float]:
        with self._gate:
            now = time.monotonic()
            if self._newest is None or (self._newest.done() and now - self._ended >= KEPT_SECONDS):
                self._newest, self._begun = Future(), now
                threading.Thread(target=self._run, args=(self._newest,), name="lapwing-outside", daemon=True).start()
            return self._newest, self._begun

    def _run(self, told: Future[Seen]) -> None:
        try:
            seen = self.look()
        except BaseException as error:  # including errors of libraries: whatever it is, the part cannot be used
            self._ended = time.monotonic()
            told.set_exception(error)
        else:
            self._ended = time.monotonic()
            told.set_result(seen)


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """Where a data set has its ledger, and when its newest version was prepared; None before the first."""

    place: Place
    prepared_at: float | None

    @property
    def database(self) -> str | None:
        """The database of the ledger; None for a file."""
        return None if self.place.server is None else self.place.server.database


@dataclass(frozen=True, slots=True)
class LedgerHealth:
    """The observed health of a data set's ledger."""

    up: bool | None
    """None before the first version: there is no ledger yet."""
    balance: Balance | None
    prepared_at: float | None


class Dependencies:
    """The parts that one worker needs."""

    def __init__(self) -> None:
        self._looks: dict[str, DependencyProbe[None]] = {}
        self._catalogues: DependencyProbe[dict[str, LedgerPlace]] | None = None
        self._ledgers: dict[str | None, DependencyProbe[dict[str, Balance | None]]] = {}
        self._read: dict[str, tuple[int, Place, StateDirectory]] = {}
        self.shadow: Callable[[], None] | None = None
        """Fails if the wire's shadow does not answer; None without a wire."""

    async def down(self, desk: DataSetPool, identities: Identities) -> list[str]:
        """The parts that do not answer."""
        until = time.monotonic() + WAIT_SECONDS
        waited = self._answers(IDENTITIES, lambda: _look_at(identities), until), self._answers(SHADOW, self.shadow, until)
        known, shadow, (_, ledgers) = await asyncio.gather(*waited, self._sights(desk, until))
        return [part for part, answers in ((IDENTITIES, known), (LEDGER, ledgers), (SHADOW, shadow)) if not answers]

    async def gauges(self, desk: DataSetPool) -> tuple[list[str], dict[str, float]]:
        """The data sets that are shown, and samples of their health and of the shadow's."""
        until = time.monotonic() + WAIT_SECONDS
        (sights, _), shadow = await asyncio.gather(self._sights(desk, until), self._answers(SHADOW, self.shadow, until))
        gauges: dict[str, float] = {"lapwing_data_sets": len(sights)}
        if self.shadow is not None:
            gauges["lapwing_shadow_up"] = int(shadow)
        listed = sorted(sights)[:DATA_SETS_MAX]
        for name in listed:
            gauges |= _samples(name, sights[name])
        return listed, gauges

    async def _answers(self, name: str, look: Callable[[], None] | None, until: float) -> bool:
        if look is None:
            return True
        part = self._looks.setdefault(name, DependencyProbe(look))
        part.look = look
        try:
            await part.seen(until)
        except Exception:
            return False
        return True

    async def _sights(self, desk: DataSetPool, until: float) -> tuple[dict[str, LedgerHealth], bool]:
        """The health of each data set's ledger, and whether every database of ledgers answers."""
        if self._catalogues is None:
            self._catalogues = DependencyProbe(lambda: self._places(desk))
        try:
            places = await self._catalogues.seen(until)
        except Exception:
            return {}, False
        databases = {one.database for one in places.values()}
        found = await asyncio.gather(*(self._balances(database, places, until) for database in databases))
        of_database = dict(zip(databases, found, strict=True))
        return {name: _sight(name, one, of_database[one.database]) for name, one in places.items()}, None not in found

    async def _balances(self, database: str | None, places: dict[str, LedgerPlace], until: float) -> dict[str, Balance | None] | None:
        """The balances in one database, or those of all ledgers in files; None if the database does not answer."""
        own = {name: one.place.local for name, one in places.items() if one.database == database}
        look = partial(_in_files, own) if database is None else partial(_in_database, database, list(own))
        part = self._ledgers.setdefault(database, DependencyProbe(look))
        part.look = look
        try:
            return await part.seen(until)
        except Exception:
            return None

    def _places(self, desk: DataSetPool) -> dict[str, LedgerPlace]:
        """The ledgers that the catalogues name. An unreadable catalogue is skipped: the next request to the data set says why."""
        places = {}
        for name, served in desk.served.items():
            with suppress(LapwingError, OSError):
                places[name] = self._place(name, served)
        return places

    def _place(self, name: str, served: ServedDataSet) -> LedgerPlace:
        path = served.catalogue / CATALOGUE_FILE if served.catalogue.is_dir() else served.catalogue
        changed = path.stat().st_mtime_ns
        if name not in self._read or self._read[name][0] != changed:
            settings, state = Settings(), StateDirectory(path.resolve().parent)
            declaration, timeout = load(path, settings=settings), settings.query_timeout_seconds
            place = place_of(declaration, local=state.ledger_path, home=served.home, query_timeout_seconds=timeout)
            self._read[name] = changed, place, state
        _, place, state = self._read[name]
        return LedgerPlace(place, state.prepared_at())


def _sight(name: str, one: LedgerPlace, balances: dict[str, Balance | None] | None) -> LedgerHealth:
    if balances is not None and name in balances:
        return LedgerHealth(True, balances[name], one.prepared_at)
    return LedgerHealth(None if balances is not None and one.prepared_at is None else False, None, one.prepared_at)


def _look_at(identities: Identities) -> None:
    identities.granted_to("nobody")


def _in_database(database: str, source_ids: list[str]) -> dict[str, Balance | None]:
    return {**postgres_balances(database, source_ids)}


def _in_files(paths: dict[str, Path]) -> dict[str, Balance | None]:
    """The balances that can be read."""
    read: dict[str, Balance | None] = {}
    for name, path in paths.items():
        with suppress(LapwingError, sqlite3.Error):
            read[name] = local_balance(path)
    return read


def _samples(name: str, sight: LedgerHealth) -> dict[str, float]:
    samples: dict[str, float] = {} if sight.up is None else {sample_name("lapwing_ledger_up", data_set=name): int(sight.up)}
    if sight.balance is not None:
        left = max(1.0 - share_of_cost(sight.balance.budget, sight.balance.spent), 0.0)
        samples[sample_name("lapwing_budget_left_ratio", data_set=name)] = left
        samples[sample_name("lapwing_data_set_closed", data_set=name)] = int(sight.balance.closed)
    if sight.prepared_at is not None:
        samples[sample_name("lapwing_version_age_seconds", data_set=name)] = round(max(time.time() - sight.prepared_at, 0.0), 3)
    return samples
