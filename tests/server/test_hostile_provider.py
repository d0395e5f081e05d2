"""An identity provider that is broken or hostile: huge, slow, elsewhere, rubbish. Nobody comes in, and nothing else is read or held up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lapwing.errors import LapwingError
from lapwing.interfaces.http.identity import tokens as tokens_module
from lapwing.interfaces.http.identity.tokens import Issuer, Tokens, fetch_json
from tests.server.under_test import AUDIENCE, ISSUER, ServerUnderTest, Signer

pytestmark = pytest.mark.xdist_group("server: tokens")
Reply = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def _provider(replies: dict[str, Reply]) -> Iterator[tuple[str, list[str]]]:
    """A provider on this machine that replies so at these paths; its address, and what it was asked."""
    asked: list[str] = []

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            replies.get(self.path, _json({}))(self)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    listening.daemon_threads = True
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_address[1]}", asked
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def _json(value: object) -> Reply:
    def reply(to: BaseHTTPRequestHandler) -> None:
        to.send_response(200)
        to.end_headers()
        to.wfile.write(json.dumps(value).encode())

    return reply


def _moved(where: str) -> Reply:
    def reply(to: BaseHTTPRequestHandler) -> None:
        to.send_response(302)
        to.send_header("Location", where)
        to.end_headers()

    return reply


def _huge(to: BaseHTTPRequestHandler) -> None:
    to.send_response(200)
    to.end_headers()
    try:
        for _ in range(64):
            to.wfile.write(b"[" * 2**16)
    except OSError:
        return  # nobody listens any more


def _slow(to: BaseHTTPRequestHandler) -> None:
    to.send_response(200)
    to.end_headers()
    try:
        for _ in range(100):
            to.wfile.write(b" ")
            to.wfile.flush()
            time.sleep(0.1)
    except OSError:
        return


def _deep(to: BaseHTTPRequestHandler) -> None:
    to.send_response(200)
    to.end_headers()
    to.wfile.write(b"[" * 500_000)


CONFIGURATION = "/.well-known/openid-configuration"


@pytest.mark.parametrize("reply", [_huge, _slow, _deep, _json([]), _json({"keys": 3}), _json({"keys": [3, {"kid": "a", "kty": "RSA"}]})])
def test_keys_that_are_huge_slow_or_rubbish_let_nobody_in(reply: Reply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "_FETCH_SECONDS", 1)
    replies: dict[str, Reply] = {"/jwks": reply}
    with _provider(replies) as (url, _):
        replies[CONFIGURATION] = _json({"issuer": url, "jwks_uri": f"{url}/jwks"})
        tokens = Tokens(Issuer(url, AUDIENCE))
        begun = time.monotonic()
        try:
            assert tokens.holder(Signer().token("ada")) is None
        except LapwingError as error:
            assert error.code == "issuer-unreachable"
        assert time.monotonic() - begun < 5


def test_a_provider_leads_nowhere_else() -> None:
    """Neither by a redirect nor by what its discovery names: no file, no other protocol, nothing unencrypted, nothing on this machine."""
    replies: dict[str, Reply] = {}
    with _provider({"/secret": _json({"keys": []})}) as (inside, asked), _provider(replies) as (url, _):
        replies["/jwks"] = _moved(f"{inside}/secret")
        for where in (f"{url}/jwks", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://169.254.169.254/latest/meta-data", "data:,{}", ""):
            replies[CONFIGURATION] = _json({"issuer": url, "jwks_uri": where})
            with pytest.raises(LapwingError) as refused:
                Tokens(Issuer(url, AUDIENCE)).holder(Signer().token("ada"))
            assert refused.value.code == "issuer-unreachable", where
        assert asked == []
        elsewhere = {"issuer": "https://login.example.org", "jwks_uri": f"{inside}/secret"}
        with pytest.raises(LapwingError):
            Tokens(Issuer("https://login.example.org", AUDIENCE), lambda _: elsewhere).holder(Signer().token("ada"))
        assert asked == [], "a provider elsewhere does not make us ask our own machine"
    for address in ("file:///etc/hostname", "http://example.org/"):
        with pytest.raises(ValueError, match="neither https nor on this machine"):
            fetch_json(address)


def test_a_provider_that_fails_is_not_asked_by_every_token_and_holds_up_nobody_who_is_known() -> None:
    signer, asked = Signer(), []
    failing = threading.Event()
    waiting = threading.Event()

    def fetch(url: str) -> object:
        asked.append(url)
        if failing.is_set():
            waiting.wait(10)
            raise OSError
        return signer.fetch(url)

    tokens = Tokens(Issuer(ISSUER, AUDIENCE), fetch)
    known = signer.token("ada")
    assert tokens.holder(known) is not None
    tokens._fetched -= tokens_module.UNKNOWN_KEY_SECONDS + 1
    failing.set()
    other = Signer()
    other.rotate("unknown")
    errors: list[str] = []

    def stranger() -> None:
        try:
            tokens.holder(other.token("eve"))
        except LapwingError as error:
            errors.append(error.code)

    threads = [threading.Thread(target=stranger) for _ in range(5)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    assert tokens.holder(known) is not None
    assert time.monotonic() - begun < 2, "whoever has a known key does not wait"
    waiting.set()
    for thread in threads:
        thread.join()
    assert errors == ["issuer-unreachable"] * 5
    assert len(asked) == 3, "once by discovery and keys, and once by the first stranger"


def test_callers_are_told_no_more_than_that_it_cannot_be_answered(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: str) -> object:
        raise OSError("connect to 10.1.2.3 failed")

    monkeypatch.setattr(server.app_state, "tokens", Tokens(Issuer(ISSUER, AUDIENCE), away))
    reply = server.call("GET", "/v1/me", token=server.signer.token("ada"))
    assert reply.status_code == 503
    assert "10.1.2.3" not in reply.text
