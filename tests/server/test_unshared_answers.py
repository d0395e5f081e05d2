"""Answers that are not shared: of what one analyst paid for, another sees nothing, by any way in; nor after losing the right to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from lapwing.asking.weights_session import plan_weights, weighed_before
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.console.visitor import Visitor
from tests.ledger.cluster import Cluster
from tests.ledger.wired import new_wired
from tests.server.fleet import url_of
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: shared ledger")
BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"
PARTS = [{"kind": "marginals", "columns": ["sex", "smoker"]}, {"kind": "tree", "columns": ["birth_year"]}]


@pytest.fixture(scope="module")
def apart(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A server whose ledger shows answers to whoever paid, and to nobody else. Ada and Eve are admitted."""
    home, dsn = tmp_path_factory.mktemp("apart"), shared_cluster.dsn(shared_cluster.new_database())
    identities = url_of(shared_cluster.dsn(shared_cluster.new_database(), role="postgres"))
    with ServerUnderTest.over(lambda _: new_wired(home, dsn), home, identities=identities) as under_test:
        under_test.app_state.identities.grant("eve", Grant(Role.ANALYST, "*"))
        under_test.keys["eve"] = under_test.app_state.identities.new_key("eve")[0]
        for name in ("ada", "eve"):
            assert under_test.call("PUT", f"/v1/data-sets/{{d}}/analysts/{name}", by="olga", json={"share": 0.9}).status_code == 200
        limits = {"answers_shared": False, "reason": "each pays"}
        assert under_test.call("PUT", "/v1/data-sets/{d}/limits", by="olga", json=limits).status_code == 200
        yield under_test


def posted(server: ServerUnderTest, by: str, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    return server.call("POST", f"/v1/data-sets/{{d}}/{path}", by=by, json=body, headers=headers)


def spent(server: ServerUnderTest, by: str) -> float:
    return float(server.call("GET", "/v1/data-sets/{d}/budget", by=by).json()["own"]["spent"])


def test_a_release_is_of_whoever_bought_it(apart: ServerUnderTest) -> None:
    bought = posted(apart, "ada", "releases", {"name": "private-one", "table": "patients", "epsilon": "0.2", "wanted": PARTS})
    assert bought.status_code == 200, bought.text
    for _ in range(2):  # the second time it is in memory
        assert [one["name"] for one in apart.call("GET", "/v1/data-sets/{d}/releases").json()["releases"]] == ["private-one"]
        assert posted(apart, "ada", "releases/private-one/query", {"sql": BY_SEX}).status_code == 200
        assert apart.call("GET", "/v1/data-sets/{d}/releases", by="eve").json()["releases"] == []
        for reply in (
            posted(apart, "eve", "releases/private-one/query", {"sql": BY_SEX}),
            apart.call("GET", "/v1/data-sets/{d}/releases/private-one", by="eve"),
        ):
            assert (reply.status_code, reply.json()["code"]) == (422, "release-unknown"), reply.text
    for sql in (BY_SEX, "SELECT MEDIAN(birth_year) AS middle FROM patients"):
        body = {"sql": sql, "reuse": "only"}
        assert posted(apart, "ada", "ask", body).status_code == 200
        refused = posted(apart, "eve", "ask", body)
        assert (refused.status_code, refused.json()["code"]) == (422, "release-not-covered")
        assert "private-one" not in refused.text, "not even its name"
        explained = posted(apart, "eve", "explain", {"sql": sql, "epsilon": "0.01"})
        assert "private-one" not in explained.json()["text"] and not explained.json()["cost"]["free"]
    before = spent(apart, "eve")
    again = posted(apart, "eve", "releases", {"name": "private-one", "table": "patients", "epsilon": "0.2", "wanted": PARTS})
    assert again.status_code == 200 and spent(apart, "eve") > before, "who buys the same pays the same"
    mine, theirs = (posted(apart, who, "releases/private-one/query", {"sql": BY_SEX}).json()["rows"] for who in ("ada", "eve"))
    assert mine != theirs, "and gets noise of their own"


def test_a_request_is_named_by_whoever_sends_it(apart: ServerUnderTest) -> None:
    """Another analyst's name of a request is no way to what that request paid for: of an accuracy, of norms, of a release."""
    asked = [
        {"sql": "SELECT smoker, COUNT(*) AS n FROM patients GROUP BY smoker WITH PRIVACY (error = 40)"},
        {"sql": "SELECT code, COUNT(*) AS n FROM visits GROUP BY code WITH PRIVACY (error = 2000)"},
        {"sql": "SELECT COUNT(*) AS n FROM visits WHERE cost > 50", "epsilon": "0.05"},
    ]
    for number, body in enumerate(asked):
        name = f"same-{number}"
        first = posted(apart, "ada", "ask", body, **{"Idempotency-Key": name})
        assert first.status_code in (200, 402), first.text
        before = spent(apart, "eve")
        other = posted(apart, "eve", "ask", body, **{"Idempotency-Key": name})
        assert other.status_code == first.status_code, other.text
        if first.status_code == 200:
            assert spent(apart, "eve") > before, body
            assert other.json()["rows"] != first.json()["rows"], body
            assert posted(apart, "ada", "ask", body, **{"Idempotency-Key": name}).json()["rows"] == first.json()["rows"]


def test_pages_show_nothing_of_others(apart: ServerUnderTest) -> None:
    question = PageQuestion("SELECT region, COUNT(*) AS n FROM patients GROUP BY region", "0.05")
    assert posted(apart, "ada", "ask", {"sql": question.sql, "epsilon": question.epsilon}).status_code == 200
    eve = Visitor(apart)
    eve.sign_in("eve")
    page = eve.get(f"/console/d/{{d}}/answer?q={question.token()}")
    assert "±" not in page.text and "answer/csv" not in page.text
    for form in ("csv", "svg"):
        assert eve.get(f"/console/d/{{d}}/answer/{form}?q={question.token()}").status_code == 404
    entries = apart.call("GET", "/v1/data-sets/{d}/history").json()["entries"]
    charge = next(entry["charge"] for entry in entries if entry["kind"] == "reserve" and entry["detail"].startswith("SELECT region"))
    assert eve.get(f"/console/d/{{d}}/history/{charge}").status_code == 404
    assert question.sql not in eve.get("/console/d/{d}/history").text


def test_what_a_session_of_weights_told_is_of_whoever_paid(apart: ServerUnderTest) -> None:
    with apart.app_state.desk.served[apart.data_set].opened() as opened:
        session = plan_weights(opened.curator, ("sex", "smoker"), alpha="0.4", starts=1, rows=20_000, table="patients", analyst="ada")
        with session:
            told = session.ask("SELECT COUNT(*) FROM patients WHERE smoker")
        assert told in weighed_before(opened.curator, analyst="ada")[0].told.values()
        assert weighed_before(opened.curator, analyst="eve") == ()


def test_whoever_is_suspended_reads_no_release_any_more(apart: ServerUnderTest) -> None:
    body = {"name": "last", "table": "patients", "epsilon": "0.05", "wanted": PARTS[:1]}
    assert posted(apart, "eve", "releases", body).status_code == 200
    assert posted(apart, "eve", "releases/last/query", {"sql": BY_SEX}).status_code == 200
    ended = apart.call("POST", "/v1/data-sets/{d}/analysts/eve/suspend", by="olga", json={"reason": "over"})
    assert ended.status_code == 200, ended.text
    assert posted(apart, "eve", "releases/last/query", {"sql": BY_SEX}).status_code != 200
    assert apart.call("GET", "/v1/data-sets/{d}/releases/last", by="eve").status_code != 200
    assert apart.call("GET", "/v1/data-sets/{d}/releases", by="eve").json().get("releases", []) == []
    assert posted(apart, "eve", "ask", {"sql": BY_SEX, "reuse": "only"}).status_code != 200


def test_the_terms_of_a_charge_are_told_to_whoever_paid_and_replay_it(apart: ServerUnderTest) -> None:
    terms = {"epsilon": "0.0312500001", "confidence": "0.8", "dialect": "postgres", "reuse": "never"}
    body = {"sql": 'SELECT "smoker", COUNT(*) AS n FROM patients GROUP BY "smoker"', **terms}
    answer = posted(apart, "ada", "ask", body).json()
    entries = apart.call("GET", "/v1/data-sets/{d}/history", by="ada").json()["entries"]
    charge = next(entry["charge"] for entry in entries if entry["kind"] == "reserve" and entry["detail"] == body["sql"])
    path = f"/v1/data-sets/{{d}}/history/{charge}"
    asked = apart.call("GET", path, by="ada").json()
    assert asked["epsilons"] == ["0.0312500001"] and {name: asked["terms"][name] for name in terms} == terms
    again = {"sql": asked["sql"], **{name: asked["terms"][name] for name in terms}}
    assert posted(apart, "ada", "replay", again).json()["rows"] == answer["rows"]
    assert apart.call("GET", path, by="eve").status_code == 404
