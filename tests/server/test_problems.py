"""What callers are told when something is wrong: each in the words that are meant for them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from lapwing.asking.ask import explain
from lapwing.asking.explaining.explanation import Explanation
from lapwing.asking.options import AskRequest
from lapwing.curator.curator import Curator
from lapwing.demo import write_demo
from lapwing.errors import BudgetRefused, CallRefused, CatalogueError, Incident, LapwingError, LedgerError, PreparationError, Refused, Span
from lapwing.interfaces.http.configuration import MomentSettings, ServerLimits
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.problems import problem, shown, status_of
from lapwing.interfaces.python.problems import error_of
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: problems")

SECRET = "/srv/clinic/patients.parquet"


@pytest.mark.parametrize(
    ("error", "to_analyst", "to_owner"),
    [
        (Refused("unknown-column", "there is no column"), "unknown-column", "unknown-column"),
        (BudgetRefused("budget-exceeded", "no"), "budget-exceeded", "budget-exceeded"),
        (Incident(), "incident", "incident"),
        (PreparationError("rows-lost", SECRET), "data-set-unavailable", "rows-lost"),
        (CatalogueError("catalogue-differs", SECRET), "data-set-unavailable", "catalogue-differs"),
        (LedgerError("ledger-damaged", SECRET), "unavailable", "ledger-damaged"),
        (ValueError(SECRET), "internal", "internal"),
        (CallRefused("forbidden", "no"), "forbidden", "forbidden"),
    ],
    ids=lambda item: item if isinstance(item, str) else type(item).__name__,
)
def test_each_hears_what_concerns_them(error: Exception, to_analyst: str, to_owner: str) -> None:
    for is_owner, code in ((False, to_analyst), (True, to_owner)):
        seen = shown(error, to_owner=is_owner)
        assert seen.code == code
        body = problem(seen, status_of(seen))
        assert 400 <= body["status"] < 600
        assert (SECRET in str(body)) == (is_owner and isinstance(error, LapwingError) and SECRET in error.message)


def test_a_problem_becomes_the_same_error_again() -> None:
    import json

    for error in (
        Refused("unknown-column", "no", hint="look", span=Span(3, 5, 1, 4)),
        BudgetRefused("budget-exceeded", "no"),
        Incident(),
        LapwingError("internal", "inside"),
    ):
        again = error_of(status_of(error), json.dumps(problem(error, status_of(error))).encode())
        assert (type(again), again.code, again.message, again.hint, again.span) == (
            type(error),
            error.code,
            error.message,
            error.hint,
            error.span,
        )
    assert error_of(502, b"<html>").code == "server-reply"


def test_an_analyst_hears_no_more_than_that_the_owner_must_act(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def unprepared(*_: object, **__: object) -> None:
        raise PreparationError("snapshot-outdated", SECRET)

    monkeypatch.setattr("lapwing.asking.ask.bound_statement", unprepared)
    body = {"sql": "SELECT COUNT(*) FROM visits"}
    reply = server.call("POST", "/v1/data-sets/{d}/explain", json=body)
    assert (reply.status_code, reply.json()["code"]) == (503, "data-set-unavailable")
    assert SECRET not in reply.text
    owner = server.call("POST", "/v1/data-sets/{d}/explain", by="olga", json=body)
    assert (owner.status_code, owner.json()["code"], SECRET in owner.text) == (409, "snapshot-outdated", True)


def test_an_analyst_hears_that_a_local_ledger_knows_no_shares(server: ServerUnderTest) -> None:
    """Not that the server cannot answer now: it never will."""
    reply = server.call("POST", "/v1/data-sets/{d}/requests", json={"share": 0.5, "reason": "more"})
    assert (reply.status_code, reply.json()["code"]) == (409, "ledger-local")


def test_what_is_not_ours_is_told_to_nobody(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError(SECRET)

    monkeypatch.setattr(Identities, "granted_to", broken)
    reply = server.call("GET", "/v1/me")
    assert (reply.status_code, reply.json()["code"]) == (500, "internal")
    assert SECRET not in reply.text
    assert SECRET not in caplog.text
    assert "KeyError in /v1/me" in caplog.text


def test_more_than_can_wait_is_refused_and_the_rest_is_answered(tmp_path: Path) -> None:
    limits = ServerLimits(running_max=1, waiting_max=1, requests_per_second=1_000.0, burst=1_000)
    with ServerUnderTest.over(
        lambda to: write_demo(to, patients=300), tmp_path, moments=MomentSettings(base_seconds=1.5), limits=limits
    ) as small:
        seen: list[tuple[int, str]] = []

        def one(number: int) -> None:
            reply = small.ask(f"SELECT COUNT(*) AS n FROM patients WHERE birth_year > {1950 + number}", epsilon="0.01")
            seen.append((reply.status_code, reply.json().get("code", "")))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
            time.sleep(0.05)
        for thread in threads:
            thread.join()
        assert sorted(seen) == [(200, "")] * 2 + [(503, "busy")] * 3


def test_too_many_calls_are_told_so_with_a_time(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    from lapwing.interfaces.http.rates import Rates

    monkeypatch.setattr(server.app_state, "rates", Rates(0.5, 1))
    server.call("GET", "/v1/me")
    reply = server.call("GET", "/v1/me")
    assert (reply.status_code, reply.json()["code"]) == (429, "too-many-requests")
    assert reply.headers["retry-after"].isdigit()


def test_explaining_costs_nothing_and_takes_no_more_than_half(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen statements of a data set run at once: eight of them may be of one person, by whatever route."""
    gate, inside, others = threading.Event(), list[int](), list[int]()

    def slow(curator: Curator, request: AskRequest) -> Explanation:
        if "smoker" in request.sql:
            inside.append(1)
            assert gate.wait(30)
        return explain(curator, request)

    monkeypatch.setattr("lapwing.asking.ask.explain", slow)

    def one(by: str, sql: str, seen: list[int]) -> None:
        seen.append(server.call("POST", "/v1/data-sets/{d}/explain", by=by, json={"sql": sql, "epsilon": "0.1"}).status_code)

    held: list[int] = []
    threads = [
        threading.Thread(target=one, args=("ada", f"SELECT COUNT(*) FROM patients WHERE smoker AND {n} = {n}", held)) for n in range(20)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    begun = time.monotonic()
    one("olga", "SELECT COUNT(*) FROM visits", others)
    took, running = time.monotonic() - begun, len(inside)
    gate.set()
    for thread in threads:
        thread.join()
    assert (others, held) == ([200], [200] * 20)
    assert running == 8 and took < 5
