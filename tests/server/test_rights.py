"""Every role at every route, with API keys and with tokens: exactly what the table says, and nothing that is not in it."""

from __future__ import annotations

from typing import Any

import pytest

from lapwing.interfaces.http.identity.rights import EVERY, RIGHTS, Act, Grant, Identity, Role
from tests.server.under_test import PEOPLE, ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: rights")

QUESTION = {"sql": "SELECT COUNT(*) AS n FROM patients", "epsilon": "0.01"}
RELEASE = {"name": "people", "wanted": [{"kind": "marginals", "columns": ["sex"]}], "epsilon": "0.01"}
ROUTES: dict[tuple[str, str], tuple[Act | None, Any]] = {
    ("GET", "/v1/me"): (None, None),
    ("GET", "/v1/data-sets"): (None, None),
    ("GET", "/v1/data-sets/{data_set}"): (Act.SEE, None),
    ("GET", "/v1/data-sets/{data_set}/tables/{table}"): (Act.SEE, None),
    ("POST", "/v1/data-sets/{data_set}/explain"): (Act.EXPLAIN, QUESTION),
    ("POST", "/v1/data-sets/{data_set}/ask"): (Act.ASK, QUESTION),
    ("POST", "/v1/data-sets/{data_set}/replay"): (Act.ASK, QUESTION),
    ("POST", "/v1/data-sets/{data_set}/releases/plan"): (Act.EXPLAIN, RELEASE),
    ("POST", "/v1/data-sets/{data_set}/releases"): (Act.ASK, RELEASE),
    ("GET", "/v1/data-sets/{data_set}/releases"): (Act.ASK, None),
    ("GET", "/v1/data-sets/{data_set}/releases/{name}"): (Act.ASK, None),
    ("POST", "/v1/data-sets/{data_set}/releases/{name}/query"): (Act.ASK, {"sql": "SELECT COUNT(*) AS n FROM patients"}),
    ("GET", "/v1/data-sets/{data_set}/budget"): (Act.SEE, None),
    ("GET", "/v1/data-sets/{data_set}/history"): (Act.OWN_HISTORY, None),
    ("GET", "/v1/data-sets/{data_set}/history/{charge}"): (Act.OWN_HISTORY, None),
    ("GET", "/v1/data-sets/{data_set}/receipts/{charge}"): (Act.OWN_HISTORY, None),
    ("POST", "/v1/data-sets/{data_set}/receipts/check"): (Act.OWN_HISTORY, {"receipt": "{}"}),
    ("POST", "/v1/data-sets/{data_set}/requests"): (Act.REQUEST, {"share": 0.5}),
    ("GET", "/v1/data-sets/{data_set}/terms"): (Act.SEE_TERMS, None),
    ("PUT", "/v1/data-sets/{data_set}/limits"): (Act.ADMIT, {"answers_shared": True}),
    ("GET", "/v1/data-sets/{data_set}/report"): (Act.ALL_HISTORY, None),
    ("PUT", "/v1/data-sets/{data_set}/analysts/{analyst}"): (Act.ADMIT, {}),
    ("POST", "/v1/data-sets/{data_set}/analysts/{analyst}/suspend"): (Act.ADMIT, {}),
    ("POST", "/v1/data-sets/{data_set}/proposals"): (Act.PROPOSE, {"what": "budget", "epsilon": 1}),
    ("POST", "/v1/data-sets/{data_set}/proposals/{number}/approve"): (Act.DECIDE, {}),
    ("POST", "/v1/data-sets/{data_set}/proposals/{number}/deny"): (Act.DECIDE, {}),
    ("GET", "/v1/data-sets/{data_set}/versions"): (Act.SEE, None),
    ("POST", "/v1/data-sets/{data_set}/versions"): (Act.PREPARE, {}),
    ("POST", "/v1/data-sets/{data_set}/versions/{number}/retire"): (Act.RETIRE, {}),
    ("GET", "/v1/data-sets/{data_set}/versions/{number}/losses"): (Act.SEE_LOSSES, None),
    ("GET", "/v1/data-sets/{data_set}/incidents"): (Act.SEE_INCIDENTS, None),
    ("POST", "/v1/data-sets/{data_set}/reopen"): (Act.REOPEN, {}),
    ("GET", "/metrics"): (Act.METRICS, None),
    ("GET", "/v1/sources"): (Act.DECLARE, None),
    ("GET", "/v1/sources/columns"): (Act.DECLARE, None),
    ("GET", "/v1/sources/tables"): (Act.DECLARE, None),
    ("POST", "/v1/data-sets"): (Act.DECLARE, {}),
}
"""What a route does, and a body for it. Those without an act are open to whoever is known."""
NEEDS_A_DATABASE = ("approve", "limits", "deny", "requests", "proposals", "{analyst}", "suspend")
"""What a local ledger cannot do."""
OPEN = {("GET", "/health/live"), ("GET", "/health/ready")}
ALLOWED = {
    Role.ANALYST: {"see", "explain", "ask", "own-history", "request"},
    Role.OWNER: {
        *{"see", "explain", "own-history", "all-history", "see-terms", "propose", "decide", "admit"},
        *{"prepare", "retire", "see-losses", "see-incidents", "reopen", "any-receipt", "declare"},
    },
    Role.AUDITOR: {"see", "own-history", "all-history", "see-terms", "see-incidents", "any-receipt"},
    Role.OPERATOR: {"see", "see-incidents", "metrics"},
}
"""Said once more, in plain words, so that a change of the table is a change of this test too."""


def test_the_table_says_what_is_meant() -> None:
    assert {role: {act.value for act in acts} for role, acts in RIGHTS.items()} == ALLOWED


def test_every_route_is_in_the_matrix(server: ServerUnderTest) -> None:
    described = server.client.get("/v1/openapi.json").json()["paths"]
    assert {(method.upper(), path) for path, methods in described.items() for method in methods} == set(ROUTES) | OPEN


def _path(template: str) -> str:
    for name, value in {"data_set": "{d}", "table": "visits", "name": "people", "charge": "1", "number": "99", "analyst": "ada"}.items():
        template = template.replace("{" + name + "}", value)
    return template


@pytest.mark.parametrize("by_token", [False, True], ids=["key", "token"])
@pytest.mark.parametrize("name", [*PEOPLE, "nemo"])
def test_every_role_at_every_route(server: ServerUnderTest, name: str, by_token: bool) -> None:
    token = server.signer.token(name) if by_token else None
    for (method, template), (act, body) in ROUTES.items():
        if act is Act.PREPARE and name in ("olga", "otto"):
            continue  # that it may is shown where it is done
        reply = server.call(method, _path(template), by=name, token=token, json=body)
        may = act is None or (name != "nemo" and act.value in ALLOWED[PEOPLE[name]])
        assert (reply.status_code not in (401, 403)) == may or name == "nemo", (method, template, reply.text)
        if name == "nemo" and act is not None:
            assert (reply.status_code, reply.json()["code"]) in ((404, "not-found"), (403, "forbidden")), (method, template)
        elif not may:
            assert reply.json()["code"] == "forbidden"
        else:
            assert reply.status_code < 500 or template.endswith(NEEDS_A_DATABASE), (method, template, reply.text)


@pytest.mark.parametrize("shown", [None, "", "lw_0000000000000000_" + "A" * 43, "rubbish", "a.b.c"])
def test_whoever_is_not_known_gets_nowhere(server: ServerUnderTest, shown: str | None) -> None:
    for method, template in ROUTES:
        headers = {} if shown is None else {"Authorization": f"Bearer {shown}"}
        reply = server.call(method, _path(template), by=None, headers=headers, json={})
        assert reply.status_code == 401, (method, template)
        assert reply.json()["code"] == "unauthenticated"
        assert reply.headers["www-authenticate"] == "Bearer"


def test_a_data_set_that_is_not_there_looks_like_one_that_may_not_be_seen(server: ServerUnderTest) -> None:
    there = server.call("GET", "/v1/data-sets/{d}", by="nemo")
    absent = server.call("GET", "/v1/data-sets/other", by="nemo")
    assert (there.status_code, there.content) == (absent.status_code, absent.content)
    assert there.status_code == 404


def test_grants_are_for_the_data_set_they_name() -> None:
    identity = Identity("ada", frozenset({Grant(Role.ANALYST, "one")}), "")
    assert identity.may(Act.ASK, "one")
    assert not identity.may(Act.ASK, "two")
    assert not identity.may_anywhere(Act.ASK)
    assert Identity("ada", frozenset({Grant(Role.ANALYST, EVERY)}), "").may(Act.ASK, "two")


def test_a_key_may_be_narrower_than_its_person(server: ServerUnderTest) -> None:
    identities = server.app_state.identities
    identities.grant("ada", Grant(Role.OWNER, "elsewhere"))
    other, _ = identities.new_key("ada", data_set="elsewhere")
    assert server.call("GET", "/v1/data-sets/{d}", token=other).status_code == 404
    owner_only, _ = identities.new_key("ada", role=Role.OWNER)
    assert server.call("GET", "/v1/data-sets/{d}", token=owner_only).status_code == 404
    here, _ = identities.new_key("ada", data_set=server.data_set, role=Role.ANALYST)
    assert server.call("GET", "/v1/data-sets/{d}", token=here).json()["roles"] == ["analyst"]


def test_what_is_withdrawn_is_gone_at_once(server: ServerUnderTest) -> None:
    identities = server.app_state.identities
    identities.grant("brief", Grant(Role.ANALYST, server.data_set))
    key, entry = identities.new_key("brief")
    assert server.call("GET", "/v1/data-sets/{d}", token=key).status_code == 200
    assert identities.withdraw("brief", Grant(Role.ANALYST, server.data_set))
    assert server.call("GET", "/v1/data-sets/{d}", token=key).status_code == 404
    assert identities.revoke(entry.key_id)
    assert not identities.revoke(entry.key_id)
    assert server.call("GET", "/v1/data-sets/{d}", token=key).status_code == 401
