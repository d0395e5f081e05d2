"""A server as the guide sets it up, whose role in the ledger's database is a curator's: what owners do is refused as what it is, with the
command that does it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.routing import APIRoute

from lapwing.data_set import DataSet
from lapwing.data_set import open as open_data_set
from lapwing.errors import LedgerError
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.interfaces.http.routes.owning import router
from lapwing.interfaces.wire.refusals import state_of
from lapwing.owner.policies import admit_share, standing
from lapwing.owner.spending_report import spending_report
from tests.console.visitor import Visitor, forms_of
from tests.ledger.cluster import APP_ROLE, CURATOR_ROLE, ROLES, Cluster
from tests.ledger.wired import new_wired
from tests.server.fleet import url_of
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: owner's role")
COUNT = {"sql": "SELECT COUNT(*) AS n FROM patients", "epsilon": "0.05"}
Done = Callable[[dict[str, Any], dict[str, Any]], bool]
"""Whether an act was done, from the terms and the spending report that an owner sees."""


@dataclass
class Guided:
    """A server with the curators' connection, and an owner beside it with one of their own."""

    server: ServerUnderTest
    cluster: Cluster
    database: str

    def own(self) -> dict[str, str]:
        """What an owner has in the environment."""
        return {"LAPWING_DATABASE": self.cluster.dsn(self.database), "LAPWING_HOME": str(self.server.home / "ledgers")}

    def opened(self) -> DataSet:
        """The data set as an owner opens it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LAPWING_DATABASE", self.own()["LAPWING_DATABASE"])
            return open_data_set(self.server.home / "clinic", home=self.server.home / "ledgers")

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the ledger says, to an owner."""
        with self.opened() as opened:
            terms = standing(opened.curator)[0] | {"versions": list(opened.curator.engine.versions())}
            return terms, spending_report(opened.curator)

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Type a command where the catalogue is, as an owner; ``lapwing`` is the program of these sources."""
        script = f'lapwing() {{ "$PYTHON" -m lapwing.interfaces.cli "$@"; }}\n{command}'
        variables = os.environ | self.own() | {"PYTHON": sys.executable}
        return subprocess.run(
            ["sh", "-c", script], cwd=self.server.home / "clinic", env=variables, capture_output=True, text=True, timeout=120
        )


@pytest.fixture(scope="module")
def guided(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guided]:
    """Two versions, an analyst who waits for two decisions, and a data set that is closed."""
    home, database = tmp_path_factory.mktemp("guided"), shared_cluster.new_database()
    identities = url_of(shared_cluster.dsn(shared_cluster.new_database(), role="postgres"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAPWING_DATABASE", shared_cluster.dsn(database))  # the owner's, to prepare
        curators = shared_cluster.dsn(database, role=CURATOR_ROLE)
        with ServerUnderTest.over(lambda _: new_wired(home, curators), home, identities=identities) as server:
            patch.delenv("LAPWING_DATABASE")
            found = Guided(server, shared_cluster, database)
            with found.opened() as opened:
                opened.prepare()
                for name in ("ada", "bo"):
                    admit_share(opened.curator, name, None, by="olga", reason="")
                opened.curator.ledger.close("inventory")
            for share in (0.25, 0.75):
                assert server.call("POST", "/v1/data-sets/{d}/requests", json={"share": share}).status_code == 201
            yield found


def _analyst(terms: dict[str, Any], name: str) -> dict[str, Any]:
    return next((one for one in terms["analysts"] if one["analyst"] == name), {})


def _proposals(terms: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {one["number"]: one for one in terms["proposals"]}


def _is_half(terms: dict[str, Any]) -> bool:
    return float(_analyst(terms, "cy").get("total") or 0) == pytest.approx(float(terms["budget"]["loss"]["total"]) / 2)


ACTS: list[tuple[str, str, dict[str, Any] | None, str, Done]] = [
    ("GET", "terms", None, "lapwing ledger status", lambda terms, report: True),
    (
        *("PUT", "limits", {"answers_shared": False, "reason": "each pays"}, "lapwing ledger limit --not-shared --reason 'each pays'"),
        lambda terms, report: terms["limits"]["answers_shared"] is False,
    ),
    ("PUT", "analysts/cy", {"share": 0.5}, "lapwing ledger admit --budget 50% cy", lambda terms, report: _is_half(terms)),
    (
        *("PUT", "analysts/-dee", {"reason": "it's `hers`"}, """lapwing ledger admit --reason 'it'"'"'s `hers`' -- -dee"""),
        lambda terms, report: _analyst(terms, "-dee").get("suspended") is False,
    ),
    (
        *("POST", "analysts/bo/suspend", {"reason": "left"}, "lapwing ledger suspend --reason left bo"),
        lambda terms, report: _analyst(terms, "bo")["suspended"] is True,
    ),
    (
        *("POST", "proposals", {"what": "budget", "epsilon": "2.5"}, "lapwing ledger propose budget --epsilon 2.5"),
        lambda terms, report: "epsilon 2.5" in [one["to"] for one in terms["proposals"]],
    ),
    ("POST", "proposals/1/approve", {}, "lapwing ledger approve 1", lambda terms, report: _proposals(terms)[1]["state"] == "approved"),
    ("POST", "proposals/2/deny", {}, "lapwing ledger deny 2", lambda terms, report: _proposals(terms)[2]["state"] == "denied"),
    (
        "POST",
        "versions",
        {"accept_losses": True, "new_version": True},
        "lapwing prepare --accept-losses --new-version",
        lambda terms, report: 3 in terms["versions"],
    ),
    ("POST", "versions/1/retire", None, "lapwing retire 1", lambda terms, report: 1 not in terms["versions"]),
    ("POST", "reopen", {"reason": "it was found"}, "lapwing reopen 'it was found'", lambda terms, report: not terms["closed"]),
]
"""Every act of owners on a data set, the command that the refusal names, and whether it was done."""


@pytest.mark.parametrize(("method", "path", "body", "command", "is_done"), ACTS, ids=[f"{act[0]} {act[1]}" for act in ACTS])
def test_an_owners_act_is_refused_with_the_command_that_does_it(
    guided: Guided, method: str, path: str, body: dict[str, Any] | None, command: str, is_done: Done
) -> None:
    before = guided.state()
    reply = guided.server.call(method, f"/v1/data-sets/{{d}}/{path}", by="olga", json=body)
    problem = reply.json()
    assert (reply.status_code, problem["code"]) == (409, "owner-role-needed"), reply.text
    assert "retry-after" not in reply.headers
    assert ROLES.owners in problem["hint"] and guided.server.data_set in problem["hint"] and "LAPWING_DATABASE" in problem["hint"]
    assert str(guided.cluster.home) not in reply.text and str(guided.server.home) not in reply.text
    assert guided.state() == before, "nothing is done by halves"
    assert path == "terms" or not is_done(*before)
    told = re.search(r"`(lapwing .*)`", problem["hint"])
    assert told is not None and told[1] == command
    ran = guided.type(told[1])
    assert ran.returncode == 0, ran.stderr
    assert is_done(*guided.state())


def test_all_that_owners_do_is_tried_here() -> None:
    """A new act of owners joins the list above, or is known to need no right of the ledger's owners."""
    known = {"/report", "/versions", "/versions/{number}/losses", "/incidents"}
    tried = {(method, re.sub(r"^analysts/[^/]+", "analysts/{analyst}", re.sub(r"\d", "{number}", path))) for method, path, *_ in ACTS}
    listed = [route for route in router.routes if isinstance(route, APIRoute)]
    routes = {(method, route.path.partition("{data_set}")[2]) for route in listed for method in route.methods or ()}
    assert {(method, f"/{path}") for method, path in tried} | {("GET", path) for path in known} == routes


def test_a_preparation_that_tells_how_far_it_is_refuses_before_it_begins(guided: Guided) -> None:
    reply = guided.server.call("POST", "/v1/data-sets/{d}/versions", by="olga", json={}, headers={"Accept": "text/event-stream"})
    assert (reply.status_code, reply.headers["content-type"]) == (409, "application/problem+json")


def test_an_auditor_is_told_how_terms_are_seen(guided: Guided) -> None:
    reply = guided.server.call("GET", "/v1/data-sets/{d}/terms", by="aude")
    assert (reply.status_code, reply.json()["code"]) == (409, "owner-role-needed")


def test_whoever_may_not_is_told_that_and_no_role_of_the_database(guided: Guided) -> None:
    for person in ("ada", "aude", "ops"):
        reply = guided.server.call("POST", "/v1/data-sets/{d}/reopen", by=person, json={"reason": "mine"})
        assert (reply.status_code, reply.json()["code"]) == (403, "forbidden")
        assert ROLES.owners not in reply.text


def test_pages_show_the_command_in_place_of_a_button(guided: Guided) -> None:
    with guided.opened() as opened:
        opened.curator.ledger.close("once more")
    olga = Visitor(guided.server)
    olga.sign_in("olga")
    for page, commands in (
        ("access", [f"lapwing ledger {word}" for word in ("status", "admit", "suspend", "propose", "approve", "deny")]),
        ("incidents", ["lapwing reopen"]),
        ("versions", ["lapwing prepare", "lapwing retire 2"]),
    ):
        shown = olga.get(f"/console/d/{{d}}/{page}")
        assert shown.status_code == 200, page
        assert ROLES.owners in shown.text and all(command in shown.text for command in commands), page
        assert list(forms_of(shown.text)) == ["/console/sign-out"], page
    for page, fields in (
        ("access/analysts", {"analyst": "eve"}),
        ("access/analysts", {"analyst": "ada", "decision": "suspend"}),
        ("access/proposals/1", {"decision": "approve"}),
        ("access/propose", {"epsilon": "2"}),
        ("incidents/reopen", {"reason": "an old page"}),
        ("versions", {}),
        ("versions/2/retire", {}),
    ):
        sent = olga.post(f"/console/d/{{d}}/{page}", {"form_token": olga.token(), **fields})
        assert sent.status_code == 409 and "owner-role-needed" in sent.text and "lapwing " in sent.text, page
    aude = Visitor(guided.server)
    aude.sign_in("aude")
    seen = aude.get("/console/d/{d}/access")
    assert seen.status_code == 200 and "lapwing ledger status" in seen.text and "lapwing ledger admit" not in seen.text


def test_a_right_that_was_lost_is_no_reason_to_come_again(guided: Guided) -> None:
    with guided.opened() as opened:
        opened.curator.reopen("for this test")
        admit_share(opened.curator, "bea", None, by="olga", reason="")
    guided.server.app_state.identities.grant("bea", Grant(Role.ANALYST, "*"))
    guided.server.keys["bea"] = guided.server.app_state.identities.new_key("bea")[0]
    rights = "ALL ROUTINES IN SCHEMA lapwing"
    with guided.cluster.superuser(guided.database) as superuser:
        superuser.execute(f"REVOKE EXECUTE ON {rights} FROM {ROLES.curators}".encode())
        try:
            refused = guided.server.call("POST", "/v1/data-sets/{d}/ask", by="bea", json=COUNT)
        finally:
            superuser.execute(f"GRANT EXECUTE ON {rights} TO {ROLES.curators}".encode())
    assert (refused.status_code, refused.json()["code"]) == (500, "ledger-role"), refused.text
    assert "retry-after" not in refused.headers and "lapwing ledger install" in refused.json()["hint"]
    assert state_of(LedgerError(refused.json()["code"], "")) == "XX000", "on the wire too: 57P03 is tried again by drivers"
    assert guided.server.call("POST", "/v1/data-sets/{d}/ask", by="bea", json=COUNT).status_code == 200, "and no incident closed it"


def test_a_right_that_was_lost_in_the_database_of_identities(guided: Guided, monkeypatch: pytest.MonkeyPatch) -> None:
    database = guided.cluster.new_database()
    ours = Identities(url_of(guided.cluster.dsn(database, role="lapwing_owner")))
    monkeypatch.setattr(guided.server.app_state, "identities", ours)
    key, _ = ours.new_key("ada")
    assert guided.server.call("GET", "/v1/me", token=key).status_code == 200
    with guided.cluster.superuser(database) as superuser:
        superuser.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM lapwing_owner")
    reply = guided.server.call("GET", "/v1/me", token=key)
    assert (reply.status_code, reply.json()["code"]) == (500, "identities-role")
    assert "retry-after" not in reply.headers
    ours.close()


def test_a_server_with_an_owners_connection_does_them(guided: Guided, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody prefers it so."""
    monkeypatch.setenv("LAPWING_DATABASE", guided.cluster.dsn(guided.database, role=APP_ROLE))
    served = guided.server.app_state.desk.served[guided.server.data_set]
    assert served.close_if_idle()
    try:
        assert guided.server.call("PUT", "/v1/data-sets/{d}/analysts/fay", by="olga", json={}).status_code == 200
    finally:
        monkeypatch.delenv("LAPWING_DATABASE")
        assert served.close_if_idle()
