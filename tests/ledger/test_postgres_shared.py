"""Reservations of many threads that go together: each comes out as it would alone, and the budget is never passed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.batch import Batch, Result
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import StoredAnswer
from tests.ledger.pg import Place
from tests.ledger.support import pure_budget, request

THREADS = 24


def _shared(place: Place) -> SharedPostgresLedger:
    """A ledger that ana may spend from, opened to be shared."""
    with place.create(pure_budget(1_000)):
        pass
    return SharedPostgresLedger.open(place.dsn, source_id=place.source_id, anchors=place.anchors)


def _at_once(act: Callable[[int], None]) -> None:
    gate = threading.Barrier(THREADS)

    def one(number: int) -> None:
        gate.wait()
        act(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the statements that were sent."""
    sizes: list[int] = []
    plain = PostgresLedger._reserve_batch

    def counting(self: PostgresLedger, batch: Batch) -> tuple[Result, ...]:
        sizes.append(len(batch.requests))
        return plain(self, batch)

    monkeypatch.setattr(PostgresLedger, "_reserve_batch", counting)
    return sizes


def test_many_threads_reserve_together_and_commit(place: Place, counted: list[int]) -> None:
    with _shared(place) as ledger:
        permits: list[Permit] = []

        def act(number: int) -> None:
            permit = ledger.reserve(request(f"r{number}", analyst="ana", loss=3))
            assert isinstance(permit, Permit)
            permits.append(permit)
            ledger.commit(permit, f"answer {number}".encode())

        _at_once(act)
        assert len({permit.charge_id for permit in permits}) == THREADS
        assert ledger.balance().spent.loss == 3 * THREADS
        assert sum(counted) >= THREADS // 2, "they went together"
        again = ledger.reserve(request("r0", analyst="ana", loss=3))
        assert isinstance(again, StoredAnswer)
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


def test_the_budget_is_not_passed_and_one_refusal_is_not_anothers(place: Place) -> None:
    with _shared(place) as ledger:
        total = ledger.balance().budget.loss_total
        each = total // 10
        found: Counter[str] = Counter()

        def act(number: int) -> None:
            who = "nobody" if number % 6 == 0 else "ana"
            try:
                found[type(ledger.reserve(request(f"b{number}", analyst=who, loss=each))).__name__] += 1
            except LapwingError as error:
                found[error.code] += 1

        _at_once(act)
        assert found == {"Permit": 10, "analyst-unknown": THREADS // 6, "budget-exceeded": THREADS - THREADS // 6 - 10}
        assert ledger.balance().spent.loss == 10 * each


def test_a_request_that_is_none_stops_nobody_else(place: Place) -> None:
    with _shared(place) as ledger:
        found: Counter[str] = Counter()

        def act(number: int) -> None:
            try:
                name = "" if number % 4 == 0 else f"x{number}"
                found[type(ledger.reserve(request(name, analyst="ana", loss=1))).__name__] += 1
            except LapwingError as error:
                found[error.code] += 1

        _at_once(act)
        assert found == {"Permit": THREADS - THREADS // 4, "request-invalid": THREADS // 4}


def test_trouble_of_the_ledger_reaches_everybody_who_waits(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with _shared(place) as ledger:

        def broken(self: PostgresLedger, *_: object) -> None:
            raise LedgerError("ledger-unreachable", "gone")

        with monkeypatch.context() as patch:
            patch.setattr(PostgresLedger, "_ask", broken)
            found: Counter[str] = Counter()

            def act(number: int) -> None:
                try:
                    ledger.reserve(request(f"t{number}", analyst="ana", loss=1))
                except LapwingError as error:
                    found[error.code] += 1

            _at_once(act)
        assert found == {"ledger-unreachable": THREADS}
        assert ledger.balance().spent.loss == 0
