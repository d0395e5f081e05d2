"""Asking over HTTP: the same answers, refusals and prices as the library gives, and what only a server has."""

from __future__ import annotations

import csv
import io
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.asking.answer_bytes import budget_view, packed, unpacked
from lapwing.data_set import open as open_data_set
from lapwing.demo import write_demo
from lapwing.errors import Incident
from lapwing.interfaces.http.configuration import MomentSettings, ServerLimits
from lapwing.interfaces.http.rates import Rates
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: asking")

BY_KIND = "SELECT kind, COUNT(*) AS n, AVG(cost) AS c FROM visits JOIN clinics USING (clinic_id) GROUP BY kind"


def test_an_answer_is_the_one_that_the_library_gives(server: ServerUnderTest) -> None:
    reply = server.ask(BY_KIND, epsilon="0.05")
    assert reply.status_code == 200, reply.text
    told = reply.json()
    with open_data_set(server.home / "clinic", home=server.home / "ledgers", analyst="ada") as local:
        same = local.ask(BY_KIND, epsilon="0.05")
    assert same.cost.free
    mine = same.to_dict()
    for part in ("columns", "rows", "intervals", "marks", "confidence"):
        assert told[part] == mine[part]
    assert told["cost"]["epsilon"] > 0
    again = server.ask(BY_KIND, epsilon="0.05").json()
    assert (again["rows"], again["cost"]["epsilon"]) == (told["rows"], 0)


def test_every_format_carries_the_same_values(server: ServerUnderTest) -> None:
    told = server.ask(BY_KIND, epsilon="0.05").json()

    def content(accept: str) -> bytes:
        reply = server.ask(BY_KIND, epsilon="0.05", headers={"Accept": accept})
        assert reply.headers["content-type"].startswith(accept)
        return bytes(reply.content)

    rows = list(csv.reader(io.StringIO(content("text/csv").decode())))
    assert rows[0] == ["kind", "n", "n_lo", "n_hi", "n_mark", "c", "c_lo", "c_hi", "c_mark"]
    assert [int(row[1]) for row in rows[1:]] == [row[1] for row in told["rows"]]
    arrow = pa.ipc.open_stream(content("application/vnd.apache.arrow.stream")).read_all()
    parquet = pq.read_table(io.BytesIO(content("application/vnd.apache.parquet")))
    assert arrow.column("n").to_pylist() == parquet.column("n").to_pylist() == [row[1] for row in told["rows"]]
    ends = zip(arrow.column("n_lo").to_pylist(), arrow.column("n_hi").to_pylist(), strict=True)
    assert [list(pair) for pair in ends] == told["intervals"]["n"]
    back = unpacked(content("application/vnd.apache.arrow.stream"))
    assert back.to_dict() | {"cost": 0, "remaining": 0, "notes": 0} == told | {"cost": 0, "remaining": 0, "notes": 0}
    assert packed(unpacked(packed(back))) == packed(back)
    wrong = server.ask(BY_KIND, epsilon="0.05", headers={"Accept": "image/png"})
    assert (wrong.status_code, wrong.json()["code"]) == (406, "not-acceptable")


def test_a_refusal_says_where_and_what_to_do_and_costs_nothing(server: ServerUnderTest) -> None:
    before = server.call("GET", "/v1/data-sets/{d}/budget").json()["loss"]
    reply = server.ask("SELECT COUNT(*), nonsense FROM visits")
    assert reply.status_code == 422
    assert reply.headers["content-type"] == "application/problem+json"
    told = reply.json()
    assert told["code"] == "unknown-column"
    assert told["type"] == "urn:lapwing:error:unknown-column"
    assert (told["span"]["line"], told["span"]["start"]) == (1, 17)
    for body in ({}, {"sql": ""}, {"sql": 3}, {"sql": "SELECT 1", "more": 1}, {"sql": "SELECT 1", "dialect": "oracle"}):
        wrong = server.call("POST", "/v1/data-sets/{d}/ask", json=body)
        assert (wrong.status_code, wrong.json()["code"]) == (422, "body-invalid")
    assert server.call("GET", "/v1/data-sets/{d}/budget").json()["loss"] == before


def test_what_the_budget_cannot_pay_is_refused_as_such(server: ServerUnderTest) -> None:
    reply = server.ask("SELECT COUNT(*) AS n FROM visits", epsilon="2.999")
    assert (reply.status_code, reply.json()["code"]) == (402, "statement-limit")


def test_a_request_with_a_name_is_charged_once(server: ServerUnderTest) -> None:
    sql, name = "SELECT COUNT(*) AS n FROM visits WHERE cost > 50", {"Idempotency-Key": "monday-1"}
    first = server.ask(sql, epsilon="0.02", headers=name)
    second = server.ask(sql, epsilon="0.02", headers=name)
    assert first.json()["rows"] == second.json()["rows"]
    assert second.json()["cost"]["epsilon"] == 0
    other = server.ask("SELECT COUNT(*) AS n FROM visits WHERE cost > 60", epsilon="0.02", headers=name)
    assert (other.status_code, other.json()["code"]) == (409, "request-mismatch")
    wrong = server.ask(sql, epsilon="0.02", headers={"Idempotency-Key": "a b"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "body-invalid")


def test_replays_are_free_or_refused(server: ServerUnderTest) -> None:
    body = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE minutes > 20", "epsilon": "0.02"}
    unasked = server.call("POST", "/v1/data-sets/{d}/replay", json=body)
    assert (unasked.status_code, unasked.json()["code"]) == (404, "not-answered-before")
    spent = server.call("GET", "/v1/data-sets/{d}/budget").json()["loss"]["spent"]
    paid = server.ask(body["sql"], epsilon=body["epsilon"]).json()
    assert server.call("GET", "/v1/data-sets/{d}/budget").json()["loss"]["spent"] > spent
    assert server.call("POST", "/v1/data-sets/{d}/replay", json=body).json()["rows"] == paid["rows"]


def test_explaining_is_free_and_says_the_price(server: ServerUnderTest) -> None:
    told = server.call("POST", "/v1/data-sets/{d}/explain", json={"sql": BY_KIND, "epsilon": "0.05"}).json()
    assert told["cost"]["epsilon"] == pytest.approx(0.05, rel=0.1)
    assert "price" in told["text"]


def test_people_see_their_own_entries_and_owners_all(server: ServerUnderTest) -> None:
    server.ask("SELECT COUNT(*) AS n FROM visits WHERE minutes > 40", epsilon="0.01")
    mine = server.call("GET", "/v1/data-sets/{d}/history").json()["entries"]
    assert mine
    assert {entry["analyst"] for entry in mine} == {"ada"}
    every = server.call("GET", "/v1/data-sets/{d}/history", by="aude").json()["entries"]
    assert {"ada", "owner"} <= {entry["analyst"] for entry in every}
    assert len(server.call("GET", "/v1/data-sets/{d}/history?limit=2").json()["entries"]) == 2


def test_the_budget_is_told_exactly(server: ServerUnderTest) -> None:
    told = server.call("GET", "/v1/data-sets/{d}/budget").json()
    view = budget_view(told["exact"])
    assert {key: value for key, value in told.items() if key not in ("own", "exact")} == view.to_dict()


def test_a_new_version_is_served_without_a_restart(server: ServerUnderTest) -> None:
    before = server.call("GET", "/v1/data-sets/{d}/versions").json()["versions"]
    made = server.call("POST", "/v1/data-sets/{d}/versions", by="olga", json={})
    assert made.status_code == 201, made.text
    until = time.monotonic() + 20
    while server.call("GET", "/v1/data-sets/{d}").json()["version"] == before[-1] and time.monotonic() < until:
        time.sleep(0.2)
    assert server.call("GET", "/v1/data-sets/{d}").json()["version"] == made.json()["version"] == before[-1] + 1
    assert server.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.01").status_code == 200
    assert isinstance(server.call("GET", f"/v1/data-sets/{{d}}/versions/{made.json()['version']}/losses", by="olga").json()["losses"], list)


def test_many_at_once_are_all_answered(server: ServerUnderTest) -> None:
    codes: list[int] = []

    def one(number: int) -> None:
        codes.append(server.ask(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}", epsilon="0.001").status_code)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [200] * 12


def test_too_long_a_body_and_too_many_calls_are_refused(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = server.call("POST", "/v1/data-sets/{d}/ask", content=b" " * 300_000, headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["code"]) == (413, "body-too-large")
    monkeypatch.setattr(server.app_state, "rates", Rates(0.01, 2))
    assert [server.call("GET", "/v1/me").status_code for _ in range(3)] == [200, 200, 429]
    assert server.call("GET", "/v1/me", by="aude").status_code == 200


def test_every_reply_has_headers_that_keep_it_private(server: ServerUnderTest) -> None:
    for reply in (server.call("GET", "/v1/me"), server.call("GET", "/nowhere"), server.call("PUT", "/v1/me")):
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert len(reply.headers["x-request-id"]) == 16
        assert "server" not in reply.headers
    assert server.call("PUT", "/v1/me").json()["code"] == "method-not-allowed"


def test_health_is_for_everybody_and_metrics_for_operators(server: ServerUnderTest) -> None:
    assert server.call("GET", "/health/live", by=None).json() == {"state": "live"}
    assert server.call("GET", "/health/ready", by=None).json() == {"state": "ready"}
    server.call("GET", "/v1/me")
    server.ask("SELECT COUNT(*) AS n FROM patients WHERE smoker", epsilon="0.01")
    text = server.call("GET", "/metrics", by="ops").text
    assert 'lapwing_requests_total{method="GET",route="/v1/me",status="200"}' in text
    assert f'lapwing_answers_total{{data_set="{server.data_set}"}}' in text


def test_the_audit_log_says_who_and_what_came_of_it(server: ServerUnderTest) -> None:
    server.ask("SELECT COUNT(*) FROM nowhere")
    lines = server.app_state.configuration.audit_path(server.home).read_text().splitlines()
    assert '"who": "ada"' in lines[-1]
    assert '"act": "ask"' in lines[-1]
    assert '"outcome": "unknown-table"' in lines[-1]
    assert not any("SELECT" in line or "lw_" in line for line in lines)


def test_an_answer_that_takes_long_is_fetched_by_its_name(tmp_path: Path) -> None:
    limits = ServerLimits(wait_seconds=0.3, requests_per_second=1000.0, burst=1000)
    moments = MomentSettings(base_seconds=1.0)
    with ServerUnderTest.over(lambda to: write_demo(to, patients=300), tmp_path, moments=moments, limits=limits) as slow:
        first = slow.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1")
        assert first.status_code == 202
        key = {"Idempotency-Key": first.json()["idempotency_key"]}
        assert int(first.headers["retry-after"]) > 0
        until = time.monotonic() + 30
        while (reply := slow.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1", headers=key)).status_code == 202:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert reply.status_code == 200
        reserved = [entry for entry in slow.call("GET", "/v1/data-sets/{d}/history").json()["entries"] if entry["kind"] == "reserve"]
        assert len(reserved) == 1


def test_what_fails_after_rows_were_read_is_one_text_and_closes_the_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lapwing.engines.duckdb.snapshot import DuckDBSnapshot

    with ServerUnderTest.over(lambda to: write_demo(to, patients=300), tmp_path) as broken:

        def failing(*_: object, **__: object) -> None:
            raise Incident

        monkeypatch.setattr(DuckDBSnapshot, "run", failing)
        reply = broken.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1")
        assert (reply.status_code, reply.json()["code"]) == (500, "incident")
        monkeypatch.undo()
        after = broken.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1")
        assert (after.status_code, after.json()["code"]) == (423, "data-set-closed")
        seen = broken.call("GET", "/v1/data-sets/{d}/incidents", by="olga").json()
        assert seen["closed"]
        assert broken.call("POST", "/v1/data-sets/{d}/reopen", json={"reason": "looked into"}).status_code == 403
        assert broken.call("POST", "/v1/data-sets/{d}/reopen", by="olga", json={"reason": "looked into"}).json() == {"closed": False}
        assert broken.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1").status_code == 200
