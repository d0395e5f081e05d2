"""Two worlds that differ in one patient, the same requests in both: replies, logs and traces are the same but for noisy values."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lapwing.audit.lists.second_list import second_list
from lapwing.demo import write_demo
from lapwing.engines.duckdb.snapshot import DuckDBSnapshot
from lapwing.errors import Incident
from tests.server.under_test import ServerUnderTest
from tests.server.worlds import CANARY, MOMENTS, audit_log, counts, no_canary, two_servers, with_one_more
from tests.support.sizes import size

pytestmark = pytest.mark.xdist_group("server: two worlds")

EPSILON = "0.002"
STATEMENTS = size("two worlds, statements")

Seen = tuple[int, dict[str, str], Any]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerUnderTest, ServerUnderTest]]:
    """A server on each world; the second has one patient more."""
    plain = tmp_path_factory.mktemp("plain") / "clinic"
    write_demo(plain, patients=300)

    def other(directory: Path) -> None:
        shutil.copytree(plain, directory)
        with_one_more(directory)

    homes = tmp_path_factory.mktemp("w0"), tmp_path_factory.mktemp("w1")
    with two_servers((lambda directory: shutil.copytree(plain, directory), other), homes, spans_min=size("two worlds, requests")) as found:
        yield found


def _requests() -> list[tuple[str, str, str, Any]]:
    """Who calls what: statements of all kinds, answered and refused, and every other route."""
    listed = [item.sql for item in second_list()]
    statements = listed[:: max(1, len(listed) // STATEMENTS)]
    calls: list[tuple[str, str, str, Any]] = []
    for sql in statements:
        calls.append(("ada", "POST", "explain", {"sql": sql, "epsilon": EPSILON}))
        calls.append(("ada", "POST", "ask", {"sql": sql, "epsilon": EPSILON}))
    calls += [("ada", "POST", "replay", {"sql": sql, "epsilon": EPSILON}) for sql in statements[::3]]
    calls += [
        ("ada", "POST", "ask", {"sql": f"SELECT COUNT(*) AS n FROM patients WHERE region = '{CANARY[:4]}'", "epsilon": EPSILON}),
        ("ada", "POST", "ask", {"sql": "SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug", "epsilon": "0.1"}),
        ("ada", "POST", "ask", {"sql": "SELECT COUNT(*) FROM visits", "epsilon": "100"}),
        ("ada", "POST", "ask", {"sql": "rubbish", "epsilon": EPSILON}),
    ]
    people = {"kind": "marginals", "columns": ["sex", "region", "smoker"]}
    for wanted in ([people], [people, {"kind": "tree", "columns": ["sex", "birth_year"]}], [{"kind": "tree", "columns": ["region"]}]):
        body = {"name": "people", "wanted": wanted, "table": "patients", "epsilon": "0.02"}
        calls += [("ada", "POST", path, body) for path in ("releases/plan", "releases", "releases")]
    for sql in (
        "SELECT sex, COUNT(*) AS n FROM patients WHERE birth_year > 1970 GROUP BY sex",
        f"SELECT COUNT(*) AS n FROM patients WHERE region = '{CANARY[:4]}'",
        "SELECT COUNT(*) AS n FROM patients WHERE vaccinated",
    ):
        calls.append(("ada", "POST", "releases/people/query", {"sql": sql}))
    for who in ("ada", "olga", "aude", "ops", "nemo"):
        calls.append((who, "GET", "releases", None))
        calls += [
            (who, "GET", path, None)
            for path in (
                "",
                "budget",
                "history?limit=1000",
                "versions",
                "terms",
                "incidents",
                "receipts/1",
                "tables/visits",
                "tables/nowhere",
            )
        ]
    return calls


def _seen(world: ServerUnderTest, call: tuple[str, str, str, Any]) -> Seen:
    who, method, path, body = call
    reply = world.call(method, f"/v1/data-sets/{{d}}/{path}".rstrip("/"), by=who, json=body)
    no_canary(reply.text)
    headers = {name: value for name, value in reply.headers.items() if name not in MOMENTS}
    return int(reply.status_code), headers, _masked(reply.json())


def _masked(value: Any) -> Any:
    """The same without moments."""
    match value:
        case dict():
            return {key: None if key in MOMENTS else _masked(item) for key, item in value.items()}
        case list():
            return [_masked(item) for item in value]
        case _:
            return value


def test_replies_and_logs_are_the_same_but_for_noise(
    worlds: tuple[ServerUnderTest, ServerUnderTest], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    calls = _requests()
    assert len(calls) >= size("two worlds, requests")
    kinds = set()
    for call in calls:
        first, second = (_seen(world, call) for world in worlds)
        assert first == second, call
        kinds.add(first[0])
    assert kinds >= {200, 402, 403, 404, 422}
    logs = [audit_log(world) for world in worlds]
    assert logs[0] == logs[1]
    assert len(logs[0]) >= len(calls)
    no_canary(caplog.text)
    counted = [counts(world) for world in worlds]
    assert counted[0] == counted[1]


def test_a_fault_is_the_same_in_both(worlds: tuple[ServerUnderTest, ServerUnderTest], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ValueError(f"could not convert {CANARY}")

    monkeypatch.setattr(DuckDBSnapshot, "run", failing)
    call = ("ada", "POST", "ask", {"sql": "SELECT COUNT(*) AS n FROM visits WHERE minutes > 77", "epsilon": EPSILON})
    first, second = (_seen(world, call) for world in worlds)
    assert first == second
    assert first[0] == 500
    after = [_seen(world, call) for world in worlds]
    assert after[0] == after[1]
    assert (after[0][0], after[0][2]["code"]) == (423, "data-set-closed")
    assert Incident().code == "incident"
