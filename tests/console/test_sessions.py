"""Signing in and out: sessions that no other site, no fixed cookie and no revoked key can use."""

from __future__ import annotations

import html
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from lapwing.interfaces.console.signing_in import own_page
from lapwing.interfaces.http.configuration import ListenTo
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.interfaces.http.identity.sessions import SignedIn
from lapwing.interfaces.http.rates import Rates
from tests.console.visitor import Visitor, forms_of
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("console: sessions")


def test_a_key_signs_in_and_the_session_is_good_until_it_is_ended(server: ServerUnderTest) -> None:
    ada = Visitor(server)
    away = ada.get("/console/d/{d}")
    assert away.status_code == 303
    assert away.headers["location"] == f"/console/sign-in?next=%2Fconsole%2Fd%2F{server.data_set}"
    ada.sign_in("ada")
    assert "ada" in ada.get("/console/").text
    held = dict(ada.cookies)
    assert ada.submit("/console/", "/console/sign-out").status_code == 303
    again = Visitor(server, held)
    assert again.get("/console/").status_code == 303, "what the browser held is worth nothing after signing out"


def test_after_signing_in_one_is_where_one_wanted_to_be(server: ServerUnderTest) -> None:
    ada = Visitor(server)
    page = ada.get("/console/d/{d}").headers["location"]
    reply = ada.submit(page, "/console/sign-in", key=server.keys["ada"])
    assert reply.headers["location"] == f"/console/d/{server.data_set}"
    assert ada.get("/console/sign-in").status_code == 303, "who is signed in goes on"


@pytest.mark.parametrize(
    "elsewhere",
    [
        *("https://evil.example/", "//evil.example/console/", "/\\evil.example", "javascript:alert(1)", "/console/\r\nSet-Cookie: x=1"),
        *("/v1/me", "", "/consolex", "\t//evil.example", "/console/\\..\\", "http:/console/", "/console/<script>"),
    ],
)
def test_no_redirect_leads_elsewhere(server: ServerUnderTest, elsewhere: str) -> None:
    assert own_page(elsewhere) == "/console/"
    ada = Visitor(server)
    reply = ada.submit("/console/sign-in", "/console/sign-in", key=server.keys["ada"], next=elsewhere)
    assert (reply.status_code, reply.headers["location"]) == (303, "/console/")


@pytest.mark.parametrize("key", ["", "lw_", "lw_0000000000000000_" + "A" * 43, "rubbish", "lw_ä", "x" * 5_000])
def test_a_wrong_key_signs_nobody_in(server: ServerUnderTest, key: str) -> None:
    nobody = Visitor(server)
    reply = nobody.submit("/console/sign-in", "/console/sign-in", key=key)
    assert reply.status_code == 401
    assert "This key is not valid" in reply.text
    assert len(key) < 6 or key not in reply.text
    assert nobody.get("/console/").status_code == 303


def test_a_good_key_signs_in_whatever_its_address_did(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.app_state, "failures", Rates(0.01, 2))
    for key, expected in (("", 401), ("", 401), ("", 401), ("rubbish", 401), ("lw_no", 401), ("rubbish", 429)):
        assert Visitor(server).submit("/console/sign-in", "/console/sign-in", key=key).status_code == expected
    ada = Visitor(server)
    ada.sign_in("ada")
    assert "ada" in ada.get("/console/").text


def test_a_token_of_the_provider_is_no_key(server: ServerUnderTest) -> None:
    assert Visitor(server).submit("/console/sign-in", "/console/sign-in", key=server.signer.token("ada")).status_code == 401


def test_a_cookie_that_was_there_before_signing_in_is_nobodys_afterwards(server: ServerUnderTest) -> None:
    fixed = "A" * 43
    victim = Visitor(server, {"lapwing": fixed})
    victim.sign_in("ada")
    assert victim.cookies["lapwing"] != fixed
    assert Visitor(server, {"lapwing": fixed}).get("/console/").status_code == 303
    before = dict(victim.cookies)
    victim.post("/console/sign-in", {"form_token": victim.token(), "key": server.keys["olga"]})
    assert victim.cookies != before, "each signing in gives a new session"
    assert "olga" in victim.get("/console/").text
    assert Visitor(server, before).get("/console/").status_code == 303


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(server: ServerUnderTest) -> None:
    reply = Visitor(server).get("/console/sign-in")
    said = reply.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=lax" in said
    assert "path=/" in said
    assert "domain" not in said


def test_over_tls_the_cookie_is_for_this_host_and_tls_alone(tmp_path: Path) -> None:
    from lapwing.demo import write_demo

    listen = ListenTo(behind_proxy=True)
    with ServerUnderTest.over(lambda directory: write_demo(directory, patients=50), tmp_path, listen=listen) as behind:
        visitor = Visitor(behind)
        said = visitor.get("/console/sign-in").headers["set-cookie"]
        assert said.startswith("__Host-lapwing=")
        assert "Secure" in said
        visitor.sign_in("ada")
        assert visitor.get("/console/").status_code == 200


def test_what_is_withdrawn_or_revoked_is_gone_at_once(server: ServerUnderTest) -> None:
    identities = server.app_state.identities
    identities.grant("brief", Grant(Role.ANALYST, server.data_set))
    server.keys["brief"], entry = identities.new_key("brief")
    brief = Visitor(server)
    brief.sign_in("brief")
    assert brief.get("/console/d/{d}").status_code == 200
    identities.withdraw("brief", Grant(Role.ANALYST, server.data_set))
    assert brief.get("/console/d/{d}").status_code == 404
    identities.revoke(entry.key_id)
    assert brief.get("/console/d/{d}").status_code == 303


def test_a_session_ends_by_itself_and_all_end_with_a_restore(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'identities.db'}"
    sessions = Identities(url).sessions
    kept, over = sessions.begin(SignedIn("ada", groups=("staff",)), hours=1), sessions.begin(SignedIn("ada"), hours=-1)
    assert sessions.find(kept, idle_minutes=10) == SignedIn("ada", "", ("staff",))
    assert sessions.find(over, idle_minutes=10) is None
    assert sessions.find("", idle_minutes=10) is None
    long_ago = (datetime.now(UTC) - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    with sa.create_engine(url).begin() as connection:
        connection.execute(sa.text("UPDATE lapwing_console_session SET seen_at = :at"), {"at": long_ago})
    assert sessions.find(kept, idle_minutes=4) is None
    assert sessions.find(kept, idle_minutes=6) is not None, "and that it was seen is written down"
    assert sessions.find(kept, idle_minutes=4) is not None
    stored = (tmp_path / "identities.db").read_bytes()
    assert kept.encode() not in stored
    other_worker = Identities(url)
    other_worker.mark_restored()
    assert sessions.find(kept, idle_minutes=60) is None


def test_signing_in_is_in_the_audit_log_and_no_key_is(server: ServerUnderTest) -> None:
    Visitor(server).sign_in("aude")
    Visitor(server).submit("/console/sign-in", "/console/sign-in", key="lw_wrong-key-of-somebody")
    text = server.app_state.configuration.audit_path(server.home).read_text()
    assert '"who": "aude", "credential": "key ' in text
    assert '"act": "sign-in", "data_set": "", "outcome": "unauthenticated"' in text
    assert server.keys["aude"] not in text
    assert "wrong-key" not in text


def test_a_statement_that_was_sent_after_the_session_ended_comes_back(server: ServerUnderTest) -> None:
    ada = Visitor(server)
    ada.sign_in("ada")
    form = forms_of(ada.get("/console/d/{d}/ask").text)[f"/console/d/{server.data_set}/ask"]
    ada.submit("/console/", "/console/sign-out")
    sql = "SELECT COUNT(*) AS n\nFROM visits WHERE minutes > 63"
    for page in ("ask", "price"):
        reply = ada.post(f"/console/d/{{d}}/{page}", form | {"sql": sql, "epsilon": "0.03"})
        assert reply.status_code == 303 and reply.headers["location"].startswith("/console/sign-in?")
        found = ada.submit(reply.headers["location"], "/console/sign-in", key=server.keys["ada"])
        text = ada.get(found.headers["location"]).text
        assert html.escape(sql) in text and 'value="0.03"' in text and "Ask for" in text
        ada.submit("/console/", "/console/sign-out")
    assert ada.post("/console/d/{d}/ask", {}, headers={"Content-Type": "text/plain"}).status_code == 401
