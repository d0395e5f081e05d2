"""Traces, as a collector receives them: public facts and lengths that public facts decide; and the audit log beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lapwing.demo import write_demo
from lapwing.engines.duckdb.snapshot import DuckDBSnapshot
from lapwing.errors import LapwingError
from lapwing.interfaces.http.call_notes import CallNotes
from lapwing.interfaces.http.operation import traces
from lapwing.interfaces.http.operation.traces import MILLISECOND, NoTraces, RepliedCall, coarse, traces_to
from tests.server.collector import attributes, collector
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: traces")
SQL = "SELECT COUNT(*) AS n FROM patients"
HELD = "held until a public moment"


def _lines(server: ServerUnderTest) -> list[dict[str, object]]:
    """What the audit log says of calls that have ended."""
    lines = [json.loads(line) for line in server.app_state.configuration.audit_path(server.home).read_text().splitlines()]
    return [line for line in lines if line["outcome"] != "begun"]


def test_a_collector_receives_calls_and_holds_and_nothing_that_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as kept, ServerUnderTest.over(lambda to: write_demo(to, patients=300), tmp_path, traces=kept.url) as server:
        asked = server.ask(SQL, epsilon="0.1", headers={"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"})
        assert asked.status_code == 200
        assert server.ask(SQL, epsilon="0.1").json()["cost"]["epsilon"] == 0
        server.ask("SELECT nonsense FROM patients")
        server.call("GET", "/v1/data-sets/secret-name", by="nemo")
        server.call("GET", "/health/live", by=None)

        def failing(*_: object, **__: object) -> None:
            raise ValueError("a value")

        monkeypatch.setattr(DuckDBSnapshot, "run", failing)
        assert server.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.1").status_code == 500
        lines = _lines(server)
    assert kept.services == {"lapwing"}
    calls = [span for span in kept.spans if span.name != HELD]
    held = [span for span in kept.spans if span.name == HELD]
    assert [attributes(span).get("http.response.status_code") for span in calls] == [200, 200, 422, 404, 500]
    assert [attributes(span)["lapwing.request"] for span in calls] == [line["request"] for line in lines]
    assert [span.parent_span_id for span in held] == [calls[0].span_id, calls[4].span_id], "a replay and a refusal hold nothing"
    for span in held:
        length = span.end_time_unix_nano - span.start_time_unix_nano
        assert length % (10 * MILLISECOND) == 0, "the moment itself, not when a thread woke up"
    for span in calls:
        assert coarse(span.end_time_unix_nano - span.start_time_unix_nano) == span.end_time_unix_nano - span.start_time_unix_nano
        assert span.trace_id != bytes.fromhex("ab" * 16), "a stranger does not choose"
    # Without names that are hexadecimal digits: one in some dozens has an "ada" in it.
    sent = re.sub(rb"[0-9a-f]{8,}", b"", b"".join(kept.bodies))
    for word in (b"ada", b"SELECT", b"a value", b"secret-name", b"lw_"):
        assert word not in sent
    assert attributes(calls[4])["lapwing.code"] == "incident"


def test_each_ask_is_logged_with_the_numbers_of_its_charges(server: ServerUnderTest) -> None:
    before = len(_lines(server))
    server.ask(SQL, epsilon="0.05")
    server.ask(SQL, epsilon="0.05")
    server.call("POST", "/v1/data-sets/{d}/replay", json={"sql": SQL, "epsilon": "0.05"})
    server.call("POST", "/v1/data-sets/{d}/explain", json={"sql": SQL, "epsilon": "0.06"})
    server.ask("SELECT nonsense FROM patients")
    charges = [line["charges"] for line in _lines(server)[before:]]
    reserved = [
        entry["charge"] for entry in server.call("GET", "/v1/data-sets/{d}/history").json()["entries"] if entry["kind"] == "reserve"
    ]
    assert charges == [reserved[:1]] * 3 + [[], []]


def test_an_incident_is_logged_with_its_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ValueError("a value")

    with ServerUnderTest.over(lambda to: write_demo(to, patients=300), tmp_path) as server:
        monkeypatch.setattr(DuckDBSnapshot, "run", failing)
        server.ask(SQL, epsilon="0.1")
        line = _lines(server)[-1]
        assert (line["outcome"], line["act"]) == ("incident", "ask")
        entries = server.call("GET", "/v1/data-sets/{d}/incidents", by="olga").json()["entries"]
        history = server.call("GET", "/v1/data-sets/{d}/history", by="olga").json()["entries"]
        forfeited = [entry["charge"] for entry in history if entry["kind"] == "forfeit"]
        assert line["charges"] == forfeited
        assert {entry["kind"] for entry in entries} >= {"forfeit"}


@pytest.mark.parametrize(("nanoseconds", "milliseconds"), [(0, 1), (MILLISECOND, 1), (MILLISECOND + 1, 2), (300 * MILLISECOND, 512)])
def test_lengths_are_powers_of_two(nanoseconds: int, milliseconds: int) -> None:
    assert coarse(nanoseconds) == milliseconds * MILLISECOND


def test_without_a_collector_there_are_none_and_without_the_libraries_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    none = traces_to(None)
    assert isinstance(none, NoTraces)
    none.replied(RepliedCall("GET", "/v1/me", 200, None, "me", "", "0", 1, 2), CallNotes())
    none.close()
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(LapwingError) as missing:
        traces.SentTraces("http://127.0.0.1:1/")
    assert missing.value.code == "extra-missing"
