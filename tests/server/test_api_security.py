"""What the OWASP API Security Top 10 (2023) asks, where no other test shows it; docs/explanation/api-security.md names them all."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import RIGHTS, Grant, Role
from tests.meta.tree import DOCS, ROOT
from tests.server.test_rights import OPEN, ROUTES
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: api security")
PAGE = DOCS / "explanation" / "api-security.md"
QUESTION = "SELECT COUNT(*) AS n FROM patients WHERE smoker"


def _path(template: str) -> str:
    for name, value in {"data_set": "{d}", "table": "visits", "charge": "1", "number": "1", "analyst": "ada"}.items():
        template = template.replace("{" + name + "}", value)
    return template


@pytest.fixture(scope="module")
def bo(server: ServerUnderTest) -> str:
    """The key of a second analyst."""
    server.app_state.identities.grant("bo", Grant(Role.ANALYST, "*"))
    return server.app_state.identities.new_key("bo")[0]


# -- 1: objects of others ---------------------------------------------------------------------------------------------------------


def test_what_one_analyst_did_is_not_found_by_another(server: ServerUnderTest, bo: str) -> None:
    name = {"Idempotency-Key": "adas-own-name"}
    assert server.ask(QUESTION, epsilon="0.02", headers=name).status_code == 200
    charge = server.call("GET", "/v1/data-sets/{d}/history").json()["entries"][0]["charge"]
    assert server.call("GET", "/v1/data-sets/{d}/history", token=bo).json()["entries"] == []
    there = server.call("GET", f"/v1/data-sets/{{d}}/receipts/{charge}", token=bo)
    absent = server.call("GET", "/v1/data-sets/{d}/receipts/999999", token=bo)
    assert (there.status_code, there.content) == (absent.status_code, absent.content) == (404, absent.content)
    # The name that somebody gave to a request is theirs: another's request of the same name is another request.
    body = {"sql": "SELECT COUNT(*) AS n FROM patients WHERE NOT smoker", "epsilon": "0.02"}
    other = server.call("POST", "/v1/data-sets/{d}/ask", token=bo, headers=name, json=body)
    assert other.status_code == 200, other.text
    mine = server.call("GET", "/v1/data-sets/{d}/history", token=bo).json()["entries"]
    assert {entry["analyst"] for entry in mine} == {"bo"}


# -- 3: properties ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{"analyst": "bo"}, {"by": "olga"}, {"role": "owner"}, {"request_id": "x"}, {"is_owner": True}])
def test_no_body_takes_a_word_that_is_not_known(server: ServerUnderTest, more: dict[str, Any]) -> None:
    tried = 0
    for (method, template), (act, body) in ROUTES.items():
        if body is None or template.endswith("/retire"):
            continue  # takes none
        who = "ada" if act is None or act in RIGHTS[Role.ANALYST] else "olga"
        reply = server.call(method, _path(template), by=who, json=body | more)
        assert (reply.status_code, reply.json()["code"]) == (422, "body-invalid"), (method, template, reply.text)
        tried += 1
    assert tried >= 12


def test_who_asks_is_said_by_the_credential_alone(server: ServerUnderTest, bo: str) -> None:
    body = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE minutes > 11", "epsilon": "0.02"}
    headers = {"X-Forwarded-User": "ada", "X-Remote-User": "ada", "Cookie": "user=ada"}
    assert server.call("POST", "/v1/data-sets/{d}/ask?analyst=ada&by=ada", token=bo, headers=headers, json=body).status_code == 200
    newest = server.call("GET", "/v1/data-sets/{d}/history?limit=1", by="aude").json()["entries"][0]
    assert newest["analyst"] == "bo"


def test_analysts_see_no_names_of_others_and_no_places(server: ServerUnderTest, bo: str) -> None:
    server.ask("SELECT COUNT(*) AS n FROM visits WHERE minutes > 12", epsilon="0.02")
    seen = 0
    for (method, template), (_, body) in ROUTES.items():
        if "{analyst}" in template:
            continue  # the name is in the address
        text = server.call(method, _path(template), token=bo, json=body).text
        words = set(re.findall(r"\w+", text))  # a digest may hold "ada" by chance
        assert not words & {"ada", "olga"}, (method, template)
        for secret in (str(server.home), "sqlite", ".parquet", "secret_sha256"):
            assert secret not in text, (method, template, secret)
        seen += 1
    assert seen >= 20


# -- 4: resources -----------------------------------------------------------------------------------------------------------------


def test_what_would_be_too_large_is_refused_before_it_is_charged(server: ServerUnderTest) -> None:
    before = server.call("GET", "/v1/data-sets/{d}/budget").json()["loss"]["spent"]
    many = " UNION ALL ".join(["SELECT COUNT(*) AS n FROM visits"] * 2_000)
    wide = ", ".join(f"SUM(cost + {number}) AS s{number}" for number in range(1_500))
    for sql in (many, f"SELECT {wide} FROM visits", "(" * 3_000 + "SELECT 1" + ")" * 3_000, "SELECT '" + "x" * 70_000 + "'"):
        reply = server.ask(sql, epsilon="0.01")
        assert 400 <= reply.status_code < 500, (sql[:40], reply.status_code)
        assert len(reply.content) < 10_000
    assert server.call("GET", "/v1/data-sets/{d}/budget").json()["loss"]["spent"] == before
    for limit in (0, -1, 1_001, 10**12):
        assert server.call("GET", f"/v1/data-sets/{{d}}/history?limit={limit}").status_code == 422
    deep = "[" * 100_000
    reply = server.call("POST", "/v1/data-sets/{d}/ask", content=deep.encode(), headers={"Content-Type": "application/json"})
    assert reply.status_code in (413, 422)


def test_no_stranger_makes_counts_or_the_log_grow_by_words_of_their_own(server: ServerUnderTest) -> None:
    before = len(server.call("GET", "/metrics", by="ops").text)
    for number in range(50):
        made_up = f"M{number:03d}{'X' * 1_000}"
        assert server.call(made_up, "/v1/me", by=None).status_code == 405
        assert server.call("GET", f"/v1/data-sets/{made_up}", by=None).status_code == 401
        assert server.call("GET", f"/{made_up}?{made_up}=1", by=None).status_code == 404
    counts = server.call("GET", "/metrics", by="ops").text
    assert 'method="OTHER",route="/v1/me",status="405"} 50' in counts
    assert len(counts) < before + 500
    logged = (server.home / "audit.jsonl").read_text(encoding="utf-8").splitlines()[-150:]
    assert max(map(len, logged)) < 600
    assert len([line for line in logged if json.loads(line)["act"] == "OTHER /v1/me"]) >= 49


# -- 7: addresses that callers choose -----------------------------------------------------------------------------------------------


def test_no_route_takes_an_address(server: ServerUnderTest) -> None:
    described = json.dumps(server.client.get("/v1/openapi.json").json())
    assert '"format": "uri' not in described
    names = {name.lower() for name in re.findall(r'"(\w+)":', described)} - {"security", "securityschemes"}
    assert [name for name in names if re.search("url|uri|callback|webhook|redirect", name)] == []


# -- 8: configuration ---------------------------------------------------------------------------------------------------------------


def test_other_methods_are_refused_and_no_other_site_may_read(server: ServerUnderTest) -> None:
    from_elsewhere = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    for method in ("TRACE", "OPTIONS", "HEAD", "PATCH", "DELETE", "CONNECT"):
        reply = server.call(method, "/v1/data-sets/{d}/ask", headers=from_elsewhere)
        assert reply.status_code == 405, method
        assert not [name for name in reply.headers if name.startswith("access-control-")]
    allowed = server.call("GET", "/v1/me", headers=from_elsewhere)
    assert allowed.status_code == 200
    assert not [name for name in allowed.headers if name.startswith("access-control-")]
    assert "set-cookie" not in allowed.headers


def test_errors_of_every_kind_are_problems_with_the_same_headers(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("/srv/secret")

    replies = [
        server.call("GET", "/nowhere"),
        server.call("GET", "/v1/../../etc/passwd"),
        server.call("GET", "/docs"),
        server.call("GET", "/redoc"),
        server.call("POST", "/v1/data-sets/{d}/ask", content=b"\xff\xfe", headers={"Content-Type": "application/json"}),
        server.call("POST", "/v1/data-sets/{d}/ask", content=b"<a/>", headers={"Content-Type": "application/xml"}),
        server.call("GET", "/v1/me", by=None),
    ]
    monkeypatch.setattr(Identities, "granted_to", broken)
    replies.append(server.call("GET", "/v1/me"))
    for reply in replies:
        assert reply.status_code >= 400
        assert reply.headers["content-type"] == "application/problem+json"
        for header in ("cache-control", "x-content-type-options", "x-frame-options", "content-security-policy", "x-request-id"):
            assert header in reply.headers, (reply.status_code, header)
        assert not re.search(r"Traceback|File \"|secret|starlette|uvicorn", reply.text)
    assert replies[-1].status_code == 500


def test_browsers_that_came_over_tls_are_told_to_stay_there(server: ServerUnderTest) -> None:
    """The scheme is https where the server has a certificate, or a proxy that is believed says so: see test_strangers.py."""
    for address in ("https://curator.example/v1/me", "https://curator.example/console/sign-in", "https://curator.example/nowhere"):
        assert server.client.get(address).headers["strict-transport-security"] == "max-age=31536000"
    assert "strict-transport-security" not in server.client.get("/v1/me").headers


# -- 9: inventory -------------------------------------------------------------------------------------------------------------------


def test_there_is_no_route_beside_the_description(server: ServerUnderTest) -> None:
    app = server.client.app
    assert isinstance(app, FastAPI)
    described = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    assert described == set(ROUTES) | OPEN
    others = {getattr(route, "path", "") for route in app.routes if not isinstance(route, APIRoute)}
    hidden = {route.path for route in app.routes if isinstance(route, APIRoute) and not route.include_in_schema}
    assert others <= {"/v1/openapi.json", ""}
    assert hidden == {"/", "/console"}, "ways to the pages, whose rights are looked at in tests/console/test_page_rights.py"


# -- the page -------------------------------------------------------------------------------------------------------------------------


def test_the_page_names_tests_that_exist_for_each_of_the_ten() -> None:
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    ten = {part.split(":")[0]: part for part in parts if part.startswith("API")}
    assert sorted(ten) == sorted(f"API{number}" for number in range(1, 11))
    for name, part in ten.items():
        named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", part)
        assert named, name
        for file, test in named:
            text = (ROOT / "tests" / "server" / file).read_text(encoding="utf-8")
            assert f"def {test}(" in text, (name, file, test)
