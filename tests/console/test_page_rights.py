"""Every role at every page: what the table of rights says, as at the routes of the HTTP interface."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from fastapi.routing import APIRoute

from lapwing.interfaces.console.mounting import ROUTERS
from lapwing.interfaces.console.navigation import ENTRIES, NavigationEntry, data_set_path, navigation
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.http.identity.rights import Act
from tests.console.visitor import Visitor
from tests.server.test_rights import ALLOWED
from tests.server.under_test import PEOPLE, ServerUnderTest

pytestmark = pytest.mark.xdist_group("console: rights")

QUESTION = {"sql": "SELECT COUNT(*) AS n FROM patients", "epsilon": "0.01"}
TOKEN = PageQuestion(**QUESTION).token()
PAGES: dict[tuple[str, str], tuple[Act | None, dict[str, str]]] = {
    ("GET", "/console/"): (None, {}),
    ("GET", "/console/d/{data_set}"): (Act.SEE, {}),
    ("GET", "/console/d/{data_set}/ask"): (Act.EXPLAIN, {}),
    ("POST", "/console/d/{data_set}/price"): (Act.EXPLAIN, QUESTION),
    ("POST", "/console/d/{data_set}/ask"): (Act.ASK, QUESTION),
    ("GET", "/console/d/{data_set}/answer"): (Act.ASK, {"q": TOKEN}),
    ("GET", "/console/d/{data_set}/answer/{form}"): (Act.ASK, {"q": TOKEN}),
    ("GET", "/console/d/{data_set}/history"): (Act.OWN_HISTORY, {}),
    ("GET", "/console/d/{data_set}/history/{charge}"): (Act.ASK, {}),
    ("GET", "/console/d/{data_set}/budget"): (Act.SEE, {}),
    ("POST", "/console/d/{data_set}/requests"): (Act.REQUEST, {"percent": "200"}),
    ("GET", "/console/d/{data_set}/ledger"): (Act.ALL_HISTORY, {}),
    ("GET", "/console/d/{data_set}/report"): (Act.ALL_HISTORY, {}),
    ("GET", "/console/d/{data_set}/receipts"): (Act.OWN_HISTORY, {}),
    ("POST", "/console/d/{data_set}/receipts"): (Act.OWN_HISTORY, {"receipt": "{}"}),
    ("GET", "/console/d/{data_set}/receipts/{charge}"): (Act.OWN_HISTORY, {}),
    ("GET", "/console/d/{data_set}/spending"): (Act.ALL_HISTORY, {}),
    ("GET", "/console/d/{data_set}/access"): (Act.SEE_TERMS, {}),
    ("POST", "/console/d/{data_set}/access/proposals/{number}"): (Act.DECIDE, {"decision": "approve"}),
    ("POST", "/console/d/{data_set}/access/propose"): (Act.PROPOSE, {"epsilon": "1"}),
    ("POST", "/console/d/{data_set}/access/analysts"): (Act.ADMIT, {"analyst": "ada", "share": "10"}),
    ("GET", "/console/d/{data_set}/incidents"): (Act.SEE_INCIDENTS, {}),
    ("POST", "/console/d/{data_set}/incidents/reopen"): (Act.REOPEN, {"reason": "looked"}),
    ("GET", "/console/d/{data_set}/versions"): (Act.SEE, {}),
    ("POST", "/console/d/{data_set}/versions"): (Act.PREPARE, {}),
    ("POST", "/console/d/{data_set}/versions/{number}/retire"): (Act.RETIRE, {}),
    ("GET", "/console/new"): (Act.DECLARE, {}),
    ("POST", "/console/new"): (Act.DECLARE, {"step": "file"}),
    ("GET", "/console/words"): (None, {}),
}
"""What a page does, and what it takes: fields of a form, or of the address. Those without an act are open to whoever is signed in."""
OPEN = {("GET", "/console/sign-in"), ("POST", "/console/sign-in"), ("POST", "/console/sign-out")}
OPEN |= {("GET", "/console/sign-in/provider"), ("GET", "/console/sign-in/back")}
"""Tried where signing in is."""


def _routes() -> list[APIRoute]:
    return [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def test_every_page_is_in_the_matrix() -> None:
    assert {(method, route.path) for route in _routes() for method in route.methods or ()} == set(PAGES) | OPEN


def _path(template: str) -> str:
    for name, value in {"data_set": "{d}", "charge": "1", "number": "99", "analyst": "ada", "form": "csv"}.items():
        template = template.replace("{" + name + "}", value)
    return template


@pytest.mark.parametrize("name", [*PEOPLE, "nemo"])
def test_every_role_at_every_page(server: ServerUnderTest, name: str) -> None:
    visitor = Visitor(server)
    visitor.sign_in(name)
    token = visitor.token()
    for (method, template), (act, fields) in PAGES.items():
        reply = (
            visitor.get(_path(template), params=fields)
            if method == "GET"
            else visitor.post(_path(template), {"form_token": token} | fields)
        )
        may = act is None or (name != "nemo" and act.value in ALLOWED[PEOPLE[name]])
        if name == "nemo" and act is not None:
            assert reply.status_code == (403 if act is Act.DECLARE else 404), (method, template)
        elif may:
            assert reply.status_code < 500 and reply.status_code not in (401, 403), (method, template, reply.status_code, reply.text)
        else:
            assert reply.status_code == 403, (method, template)
            assert "forbidden" in reply.text


def test_nobody_sees_a_page_without_signing_in(server: ServerUnderTest) -> None:
    for method, template in PAGES:
        visitor = Visitor(server, {"lapwing": "B" * 43})
        if method == "GET":
            reply = visitor.get(_path(template), params=PAGES[method, template][1])
            assert reply.status_code == 303, template
            assert reply.headers["location"].startswith("/console/sign-in?next=")
        else:
            assert visitor.post(_path(template), {}).status_code == 401


def _navigation(text: str) -> list[list[str]]:
    """Addresses in each row of the navigation of a page."""
    rows = re.findall(r'<nav class="tabs.*?</nav>', text, re.DOTALL)
    return [re.findall(r'href="([^"]+)"', row) for row in rows]


def _addresses(server: ServerUnderTest, entries: Iterable[NavigationEntry]) -> set[str]:
    return {data_set_path(server.data_set, entry.path) for entry in entries}


@pytest.mark.parametrize("name", PEOPLE)
def test_the_navigation_leads_to_where_one_may_go_and_nowhere_else(server: ServerUnderTest, name: str) -> None:
    visitor = Visitor(server)
    visitor.sign_in(name)
    rows = _navigation(visitor.get("/console/d/{d}").text)
    led = {address for part in rows[0] for row in _navigation(visitor.get(part).text) for address in row}
    allowed = [entry for entry in ENTRIES if entry.act.value in ALLOWED[PEOPLE[name]]]
    assert led == _addresses(server, allowed)
    for address in led:
        assert visitor.get(address).status_code == 200, address


def test_many_pages_are_in_four_groups_and_few_in_one_row(server: ServerUnderTest) -> None:
    visitor = Visitor(server)
    visitor.sign_in("olga")
    for page, inside in (("", {"", "versions"}), ("/spending", {"budget", "spending", "access"})):
        groups, below = _navigation(visitor.get(f"/console/d/{{d}}{page}").text)
        assert len(groups) == 4
        assert set(below) == {data_set_path(server.data_set, path) for path in inside}
    text = visitor.get("/console/d/{d}/spending").text
    assert text.count('aria-current="true"') == text.count('aria-current="page"') == 1
    analyst = Visitor(server)
    analyst.sign_in("ada")
    assert len(_navigation(analyst.get("/console/d/{d}").text)) == 1


def test_an_answer_is_found_where_one_asks(server: ServerUnderTest) -> None:
    rows = navigation(ENTRIES, server.data_set, data_set_path(server.data_set, "answer/csv"))
    assert [link.label for row in rows for link in row if link.is_current] == ["Ask", "Ask"]
    assert [link.label for link in rows[0]] == ["Data", "Ask", "Budget", "Check"]
