"""A server whose ledger and identities are in PostgreSQL: admission, receipts, requests and proposals with a second person."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import httpx2 as httpx
import pytest
import sqlalchemy as sa

from lapwing.asking.answer_bytes import MEDIA_TYPE, unpacked
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.http.formats import FORMATS
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.interfaces.http.release_schedule import PublicMoments
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from lapwing.owner.release_file import release_in
from lapwing.receipts import check, receipt_value
from tests.console.visitor import Visitor
from tests.ledger.cluster import Cluster
from tests.ledger.wired import new_wired
from tests.server.fleet import url_of
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: shared ledger")
COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.fixture(scope="module")
def shared(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A server on a data set with a ledger in a database; its identities are in another."""
    home, dsn = tmp_path_factory.mktemp("shared"), shared_cluster.dsn(shared_cluster.new_database())
    identities = url_of(shared_cluster.dsn(shared_cluster.new_database(), role="postgres"))  # whoever may make tables there
    with ServerUnderTest.over(lambda _: new_wired(home, dsn), home, identities=identities) as under_test:
        yield under_test


def test_the_ledger_refuses_whom_no_owner_admitted(shared: ServerUnderTest) -> None:
    refused = shared.ask(COUNT, epsilon="0.05")
    assert (refused.status_code, refused.json()["code"]) == (422, "analyst-unknown")
    admitted = shared.call("PUT", "/v1/data-sets/{d}/analysts/ada", by="olga", json={"share": 0.5, "reason": "her project"})
    assert admitted.status_code == 200, admitted.text
    answer = shared.ask(COUNT, epsilon="0.05")
    assert answer.status_code == 200, answer.text
    own = shared.call("GET", "/v1/data-sets/{d}/budget").json()["own"]
    assert float(own["spent"]) > 0
    with shared.app_state.desk.served[shared.data_set].opened() as opened:
        assert isinstance(opened.curator.ledger, SharedPostgresLedger)


def test_receipts_are_for_whoever_paid_and_for_those_who_check(shared: ServerUnderTest) -> None:
    shared.call("PUT", "/v1/data-sets/{d}/analysts/ada", by="olga", json={})
    told = shared.ask("SELECT COUNT(*) AS n FROM patients WHERE smoker", epsilon="0.02").json()["receipt"]
    charge = told["charge_id"]
    assert shared.call("GET", f"/v1/data-sets/{{d}}/receipts/{charge}").json()["receipt"] == told
    assert shared.call("GET", f"/v1/data-sets/{{d}}/receipts/{charge}", by="aude").json()["receipt"] == told
    shared.app_state.identities.grant("bo", Grant(Role.ANALYST, "*"))
    key, _ = shared.app_state.identities.new_key("bo")
    assert shared.call("GET", f"/v1/data-sets/{{d}}/receipts/{charge}", token=key).json()["code"] == "receipt-missing"
    assert shared.call("GET", "/v1/data-sets/{d}/receipts/99999", by="aude").status_code == 404
    check(receipt_value(json.dumps(told)), shared.home / "keys")


def test_a_shared_answer_says_nothing_of_who_paid_for_it(shared: ServerUnderTest) -> None:
    for name in ("ada", "bo"):
        shared.call("PUT", f"/v1/data-sets/{{d}}/analysts/{name}", by="olga", json={})
    shared.app_state.identities.grant("bo", Grant(Role.ANALYST, "*"))
    key, _ = shared.app_state.identities.new_key("bo")
    asked = {"sql": "SELECT COUNT(*) AS n FROM patients WHERE NOT smoker", "epsilon": "0.02"}
    wanted = {"name": "for_all", "table": "patients", "wanted": [{"kind": "marginals", "columns": ["sex"]}], "epsilon": "0.02"}
    named = {"Idempotency-Key": "the-name-of-this-request"}
    paid = shared.call("POST", "/v1/data-sets/{d}/ask", json=asked, headers=named).json()
    assert paid["receipt"]["analyst"] == "ada" and paid["receipt"]["request_id"] == "the-name-of-this-request"
    assert shared.call(
        "POST", "/v1/data-sets/{d}/releases", json=wanted, headers={"Idempotency-Key": "the-name-of-this-request-too"}
    ).is_success
    entry = shared.call("GET", "/v1/data-sets/{d}/history").json()["entries"][0]
    private = ["the-name-of-this-request", paid["receipt"]["at"], paid["receipt"]["head"], entry["at"]]
    replies = [
        shared.call("POST", f"/v1/data-sets/{{d}}/{where}", token=key, json=asked, headers={"Accept": form})
        for where in ("ask", "replay")
        for form in FORMATS
    ]
    replies += [shared.call(*call, token=key) for call in (("GET", "/v1/data-sets/{d}/releases"), ("GET", "/v1/data-sets/{d}/history"))]
    for reply in replies:
        assert reply.status_code == 200, reply.text
        assert not any(word.encode() in reply.content for word in private)
    assert replies[0].json()["rows"] == paid["rows"]
    answer = unpacked(replies[list(FORMATS).index(MEDIA_TYPE)].content)
    answer.check_receipt(shared.home / "keys")  # what it claims is still signed for
    file = shared.call("GET", "/v1/data-sets/{d}/releases/for_all", token=key).content
    release = release_in(file, keys=shared.home / "keys")
    for receipt in (answer.receipt, release.receipt):
        assert receipt is not None
        said = receipt.statement
        assert (said.analyst, said.request_id, said.at, said.charge_id, said.entry_id, said.head) == ("", "", "", 0, 0, "")
        assert said.loss > 0 and said.request_digest and said.answer_digest
    assert "paid by another analyst" in str(answer) and "ada" not in str(answer)
    bo = Visitor(shared)
    shared.keys["bo"] = key
    bo.sign_in("bo")
    page = bo.get(f"/console/d/{{d}}/answer?q={PageQuestion(asked['sql'], asked['epsilon']).token()}")
    assert page.status_code == 200 and "Receipt of charge" not in page.text and not any(word in page.text for word in private)
    again = shared.call("POST", "/v1/data-sets/{d}/ask", json=asked).json()
    assert again["receipt"] == paid["receipt"], "the payer's is the payer's, as it was"


def test_a_wish_is_granted_by_an_owner_and_a_budget_by_nobody_who_asks_the_same_server(shared: ServerUnderTest) -> None:
    shared.call("PUT", "/v1/data-sets/{d}/analysts/ada", by="olga", json={"share": 0.1})
    wish = shared.call("POST", "/v1/data-sets/{d}/requests", json={"share": 0.25, "reason": "two tables are left"})
    assert wish.status_code == 201, wish.text
    number = wish.json()["proposal"]
    assert shared.call("POST", f"/v1/data-sets/{{d}}/proposals/{number}/approve", json={}).status_code == 403
    assert shared.call("POST", f"/v1/data-sets/{{d}}/proposals/{number}/approve", by="otto", json={}).status_code == 200
    total = shared.call("GET", "/v1/data-sets/{d}/budget").json()
    assert float(total["own"]["total"]) == pytest.approx(0.25 * float(total["loss"]["total"]))
    body = {"what": "budget", "epsilon": "2.5", "reason": "be careful"}
    proposed = shared.call("POST", "/v1/data-sets/{d}/proposals", by="olga", json=body)
    assert proposed.status_code == 201, proposed.text
    number = proposed.json()["proposal"]
    for owner in ("olga", "otto"):  # the database counts its own roles as persons, and the server has one
        alone = shared.call("POST", f"/v1/data-sets/{{d}}/proposals/{number}/approve", by=owner, json={})
        assert (alone.status_code, alone.json()["code"]) == (409, "second-person")
    assert shared.call("GET", "/v1/data-sets/{d}/budget").json()["epsilon"] == 3.0
    terms = shared.call("GET", "/v1/data-sets/{d}/terms", by="aude").json()
    assert "ada" in {one["analyst"] for one in terms["analysts"]}


def test_an_analyst_asks_the_owners_for_more_in_the_console(shared: ServerUnderTest) -> None:
    shared.call("PUT", "/v1/data-sets/{d}/analysts/ada", by="olga", json={"share": 0.1})
    ada = Visitor(shared)
    ada.sign_in("ada")
    assert "of your share is left" in ada.get("/console/d/{d}/budget").text
    sent = ada.submit("/console/d/{d}/budget", "/console/d/{d}/requests", percent="35", reason="a <b>study</b>")
    assert sent.status_code == 303, sent.text
    done = ada.get(sent.headers["location"]).text
    assert "The owners have been asked" in done
    made = shared.call("GET", "/v1/data-sets/{d}/terms", by="olga").json()["proposals"]
    (wish,) = [one for one in made if one["reason"] == "a <b>study</b>"]
    assert (wish["what"], wish["by"]) == ("share of ada", "ada")
    assert shared.call("POST", f"/v1/data-sets/{{d}}/proposals/{wish['number']}/approve", by="otto", json={}).status_code == 200
    assert "it is 35.0% of the whole budget" in ada.get("/console/d/{d}/budget").text


def test_a_receipt_is_checked_over_http(shared: ServerUnderTest) -> None:
    shared.call("PUT", "/v1/data-sets/{d}/analysts/ada", by="olga", json={})
    told = shared.ask("SELECT COUNT(*) AS n FROM patients WHERE vaccinated", epsilon="0.02").json()["receipt"]
    checked = shared.call("POST", "/v1/data-sets/{d}/receipts/check", by="aude", json={"receipt": json.dumps(told)})
    assert checked.json() == {"genuine": True, "of_this_data_set": True, "says": told}
    for changed in (told | {"loss": told["loss"] + 1}, told | {"key_id": "0" * 32}, told | {"more": 1}):
        reply = shared.call("POST", "/v1/data-sets/{d}/receipts/check", by="aude", json={"receipt": json.dumps(changed)})
        assert (reply.status_code, reply.json()["code"]) == (422, "receipt-invalid")


def test_whoever_is_suspended_asks_no_more(shared: ServerUnderTest) -> None:
    shared.app_state.identities.grant("guest", Grant(Role.ANALYST, "*"))
    key, _ = shared.app_state.identities.new_key("guest")
    assert shared.call("PUT", "/v1/data-sets/{d}/analysts/guest", by="olga", json={}).status_code == 200
    ask = {"sql": COUNT, "epsilon": "0.01"}
    assert shared.call("POST", "/v1/data-sets/{d}/ask", token=key, json=ask).status_code == 200
    assert shared.call("POST", "/v1/data-sets/{d}/analysts/guest/suspend", by="otto", json={"reason": "left"}).status_code == 200
    assert shared.call("POST", "/v1/data-sets/{d}/ask", token=key, json=ask | {"epsilon": "0.011"}).status_code == 422
    unknown = shared.call("POST", "/v1/data-sets/{d}/analysts/stranger/suspend", by="otto", json={})
    assert (unknown.status_code, unknown.json()["code"]) == (409, "analyst-never-admitted")


def test_many_ask_at_once_and_the_ledger_agrees(shared: ServerUnderTest) -> None:
    shared.call("PUT", "/v1/data-sets/{d}/analysts/ada", by="olga", json={"share": 0.9})
    before = float(shared.call("GET", "/v1/data-sets/{d}/budget").json()["loss"]["spent"])
    paid: list[float] = []

    def one(number: int) -> None:
        reply = shared.ask(f"SELECT COUNT(*) AS n FROM patients WHERE birth_year > {1930 + number}", epsilon="0.01")
        assert reply.status_code == 200, reply.text
        paid.append(reply.json()["cost"]["rho"])

    threads = [threading.Thread(target=one, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = float(shared.call("GET", "/v1/data-sets/{d}/budget").json()["loss"]["spent"])
    assert len(paid) == 16
    assert after - before == pytest.approx(sum(paid))


def test_who_paid_for_the_same_at_the_same_time_gets_their_own_again(shared: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    shared.call("PUT", "/v1/data-sets/{d}/analysts/ada", by="olga", json={"share": 0.9})
    monkeypatch.setattr(
        shared.app_state.desk.served[shared.data_set], "moments", PublicMoments(1.0)
    )  # all have paid when the first is answered
    sql, gate = "SELECT SUM(minutes) AS m FROM visits WHERE minutes > 7", threading.Barrier(6)
    first: dict[str, httpx.Response] = {}

    def one(key: str) -> None:
        gate.wait()
        first[key] = shared.ask(sql, epsilon="0.01", headers={"Idempotency-Key": key})

    threads = [threading.Thread(target=one, args=(f"crowded-{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {reply.status_code for reply in first.values()} == {200}
    charges = {key: reply.json()["receipt"]["charge_id"] for key, reply in first.items()}
    assert len(set(charges.values())) == 6, "each has paid"
    for key, reply in first.items():
        again = shared.ask(sql, epsilon="0.01", headers={"Idempotency-Key": key}).json()
        assert (again["rows"], again["receipt"]) == (reply.json()["rows"], reply.json()["receipt"])


def test_while_the_database_of_identities_is_away_callers_are_told_to_come_again(
    shared: ServerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = sa.create_engine("postgresql+psycopg://nobody@/nothing?host=/nonexistent")
    monkeypatch.setattr(shared.app_state.identities, "_engine", away)
    reply = shared.ask(COUNT, epsilon="0.05")
    assert (reply.status_code, reply.json()["code"], reply.headers["retry-after"]) == (503, "unavailable", "1")
    assert shared.call("GET", "/health/ready").status_code == 503


def test_an_owner_decides_whether_answers_are_shared(shared: ServerUnderTest) -> None:
    shared.app_state.identities.grant("cy", Grant(Role.ANALYST, "*"))
    key, _ = shared.app_state.identities.new_key("cy")
    for name in ("ada", "cy"):
        shared.call("PUT", f"/v1/data-sets/{{d}}/analysts/{name}", by="olga", json={"share": 0.9})
    body = {"sql": "SELECT COUNT(*) AS n FROM patients WHERE NOT smoker", "epsilon": "0.013"}
    assert shared.call("POST", "/v1/data-sets/{d}/ask", json=body).json()["cost"]["epsilon"] > 0
    assert shared.call("POST", "/v1/data-sets/{d}/replay", token=key, json=body).status_code == 200
    off = {"answers_shared": False, "reason": "each pays"}
    assert shared.call("PUT", "/v1/data-sets/{d}/limits", json=off).status_code == 403
    assert shared.call("PUT", "/v1/data-sets/{d}/limits", by="olga", json=off).json() == {"answers_shared": False, "changed": True}
    alone = shared.call("POST", "/v1/data-sets/{d}/replay", token=key, json=body)
    assert (alone.status_code, alone.json()["code"]) == (404, "not-answered-before")
    assert shared.call("POST", "/v1/data-sets/{d}/replay", json=body).status_code == 200, "whoever paid sees it"
    on = {"answers_shared": True}
    assert shared.call("PUT", "/v1/data-sets/{d}/limits", by="otto", json=on).json()["changed"]
    assert shared.call("POST", "/v1/data-sets/{d}/replay", token=key, json=body).status_code == 200


def test_one_analyst_cannot_spend_what_belongs_to_all(shared: ServerUnderTest) -> None:
    shared.app_state.identities.grant("greedy", Grant(Role.ANALYST, "*"))
    shared.app_state.identities.grant("modest", Grant(Role.ANALYST, "*"))
    keys = {name: shared.app_state.identities.new_key(name)[0] for name in ("greedy", "modest")}
    assert shared.call("PUT", "/v1/data-sets/{d}/analysts/greedy", by="olga", json={"share": 0.01}).status_code == 200
    assert shared.call("PUT", "/v1/data-sets/{d}/analysts/modest", by="olga", json={}).status_code == 200

    def ask(name: str, year: int) -> tuple[int, str]:
        body = {"sql": f"SELECT COUNT(*) AS n FROM patients WHERE birth_year <> {year}", "epsilon": "0.1"}
        reply = shared.call("POST", "/v1/data-sets/{d}/ask", token=keys[name], json=body)
        return reply.status_code, reply.json().get("code", "")

    statuses = [ask("greedy", 1950 + number) for number in range(20)]
    assert statuses[-1] == (402, "analyst-budget")
    assert sum(status == 200 for status, _ in statuses) < 10
    own = shared.call("GET", "/v1/data-sets/{d}/budget", token=keys["greedy"]).json()
    assert float(own["own"]["spent"]) <= 0.01 * float(own["loss"]["total"])
    assert ask("modest", 1990) == (200, "")
