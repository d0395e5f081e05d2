"""Pages say what a browser may load, cannot be framed, take no form that is not their own, and escape whatever stands in them."""

from __future__ import annotations

import re

import pytest
from fastapi.routing import APIRoute

from lapwing.interfaces.console.mounting import ROUTERS
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.console.visits import FIELDS_MAX, TOKEN_FIELD
from tests.console.visitor import Visitor
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("console: security")


@pytest.fixture(scope="module")
def ada(server: ServerUnderTest) -> Visitor:
    """An analyst who is signed in."""
    visitor = Visitor(server)
    visitor.sign_in("ada")
    return visitor


def _routes(method: str) -> list[str]:
    listed = [route for router in ROUTERS for route in router.routes]
    return [route.path for route in listed if isinstance(route, APIRoute) and method in (route.methods or ())]


def _filled(template: str) -> str:
    for name, value in {"data_set": "{d}", "number": "1", "charge": "1", "analyst": "ada", "form": "csv"}.items():
        template = template.replace("{" + name + "}", value)
    return template


def test_every_page_has_a_strict_policy_and_cannot_be_framed(server: ServerUnderTest, ada: Visitor) -> None:
    seen = 0
    for visitor in (ada, Visitor(server)):
        for path in ("/console/", "/console/sign-in", "/console/d/{d}", "/console/d/none", "/console/nowhere"):
            reply = visitor.get(path)
            if reply.status_code == 303:
                continue
            policy = reply.headers["content-security-policy"]
            assert "unsafe" not in policy, path
            assert "http" not in policy, "no other host"
            directives = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
            assert directives["default-src"] == "'none'"
            assert directives["script-src"] == "'self'"
            assert directives["frame-ancestors"] == "'none'"
            assert directives["base-uri"] == "'none'"
            assert directives["form-action"] == "'self'"
            assert reply.headers["x-frame-options"] == "DENY"
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["referrer-policy"] == "no-referrer"
            assert reply.headers["cache-control"] == "no-store"
            assert re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|javascript:", reply.text) is None, path
            seen += 1
    assert seen >= 5
    assert ada.get("/console/").headers["content-security-policy"] != ada.get("/console/").headers["content-security-policy"], (
        "a nonce is new"
    )
    api = ada.get("/v1/me")
    assert api.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert api.status_code == 401, "a session is for pages, not for the interface"


def test_every_form_needs_its_token(server: ServerUnderTest, ada: Visitor) -> None:
    other = Visitor(server)
    other.sign_in("olga")
    forms = _routes("POST")
    assert "/console/sign-out" in forms
    for template in forms:
        for token in (None, "", "0" * 64, other.token()):
            fields = {} if token is None else {TOKEN_FIELD: token}
            reply = ada.post(_filled(template), fields | {"key": server.keys["olga"]})
            assert reply.status_code == 403, (template, token)
            assert "form-foreign" in reply.text
        foreign = ada.post(_filled(template), {TOKEN_FIELD: ada.token()}, headers={"Sec-Fetch-Site": "cross-site"})
        assert foreign.status_code == 403, template
        same_domain = ada.post(_filled(template), {TOKEN_FIELD: ada.token()}, headers={"Sec-Fetch-Site": "same-site"})
        assert same_domain.status_code == 403, template
    assert "ada" in ada.get("/console/").text, "still signed in"


def test_what_is_no_form_is_not_read(ada: Visitor) -> None:
    reply = ada.get("/console/")
    assert reply.status_code == 200
    sent = ada._sent("POST", "/console/sign-out", json={"form_token": ada.token()})
    assert sent.status_code == 422
    many = "&".join(f"a{i}=1" for i in range(FIELDS_MAX + 1))
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ada._sent("POST", "/console/sign-out", content=many.encode(), headers=kind).status_code == 422
    assert ada._sent("POST", "/console/sign-out", content=b"\xff\xfe=1", headers=kind).status_code in (403, 422)
    assert ada._sent("POST", "/console/sign-out", content=b"a=" + b"b" * 400_000, headers=kind).status_code == 413


def test_no_page_changes_anything_by_being_looked_at(server: ServerUnderTest, ada: Visitor) -> None:
    for method in ("PUT", "DELETE", "PATCH"):
        assert _routes(method) == []
    before = server.call("GET", "/v1/data-sets/{d}/history", by="aude").content
    token = PageQuestion("SELECT COUNT(*) AS n FROM visits", "0.5").token()
    looked = 0
    for name in ("ada", "olga", "aude"):
        visitor = Visitor(server)
        visitor.sign_in(name)
        for template in _routes("GET"):
            looked += visitor.get(_filled(template), params={"q": token, "sql": "SELECT COUNT(*) AS n FROM visits"}).status_code == 200
        assert "Sign out" in visitor.get("/console/").text
    assert looked >= 15
    assert server.call("GET", "/v1/data-sets/{d}/history", by="aude").content == before


def test_assets_are_the_package_s_and_nothing_else(ada: Visitor) -> None:
    page = ada.get("/console/").text
    addresses = set(re.findall(r'(?:href|src)="(/console/assets/[^"]+)"', page))
    assert len(addresses) >= 2
    for address in addresses:
        reply = ada.get(address)
        assert reply.status_code == 200
        assert "immutable" in reply.headers["cache-control"]
    base = next(iter(addresses)).rpartition("/")[0]
    for name in ("..%2frendering.py", "rendering.py", "..", "%2e%2e/templates/base.html", "nothing.css"):
        assert ada.get(f"{base}/{name}").status_code == 404
    assert ada.get(base.rpartition("/")[0] + "/0000/console.css").status_code == 404


def test_pages_of_others_look_like_pages_that_are_not_there(server: ServerUnderTest) -> None:
    nemo = Visitor(server)
    nemo.sign_in("nemo")
    there, absent = nemo.get("/console/d/{d}"), nemo.get("/console/d/other")
    assert there.status_code == absent.status_code == 404
    nonce = re.compile("nonce-[^']+")
    assert there.text == absent.text
    assert nonce.sub("", there.headers["content-security-policy"]) == nonce.sub("", absent.headers["content-security-policy"])
    assert "You have no role" in nemo.get("/console/").text
