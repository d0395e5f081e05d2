"""Tokens of a real OpenID provider: discovered, checked with its published keys, and refused where they are for somebody else."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2 as httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from lapwing.interfaces.http.configuration import ConsoleSettings, Provider, ServerConfiguration
from lapwing.interfaces.http.identity import tokens as tokens_module
from lapwing.interfaces.http.identity.provider_sign_in import BACK, ProviderSignIn, provider_sign_in
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.interfaces.http.identity.tokens import Issuer, Tokens
from tests.console.visitor import Visitor
from tests.server.process import free_port
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: openid provider")
HERE = Path(__file__).parent / "provider"
SECRET = "a-secret-of-a-test"
START_SECONDS = 30
CONSOLE = "http://127.0.0.1:8765"
"""Where people reach the console, as the provider knows it."""


@dataclass
class RealProvider:
    """The provider, where it is, and the keys it signs with."""

    directory: Path
    port: int
    process: subprocess.Popen[str] | None = None
    keys: list[dict[str, object]] = field(default_factory=list)

    @property
    def issuer(self) -> str:
        """Its name."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, key_id: str) -> None:
        """Start it, or start it again, with a new key of this name."""
        self.stop()
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.keys = [{**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key)), "kid": key_id, "use": "sig", "alg": "RS256"}]
        settings = {
            "issuer": self.issuer,
            "port": self.port,
            "clients": [["ada", SECRET], ["nemo", SECRET]],
            "jwks": {"keys": self.keys},
            "person": "ada",
            "redirects": [f"{CONSOLE}{BACK}"],
        }
        (self.directory / "settings.json").write_text(json.dumps(settings))
        self.process = subprocess.Popen(
            ["node", "provider.mjs", "settings.json"], cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        assert "listening" in self.process.stdout.readline()

    def stop(self) -> None:
        """End its process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def token(self, client: str, audience: str) -> str:
        """A token of a program, for an audience."""
        body = urllib.parse.urlencode({"grant_type": "client_credentials", "resource": f"urn:{audience}"}).encode()
        shown = base64.b64encode(f"{client}:{SECRET}".encode()).decode()
        asked = urllib.request.Request(f"{self.issuer}/token", data=body, headers={"Authorization": f"Basic {shown}"})
        with urllib.request.urlopen(asked, timeout=START_SECONDS) as reply:
            return str(json.loads(reply.read())["access_token"])


@contextmanager
def _installed(directory: Path) -> Iterator[RealProvider]:
    for name in ("provider.mjs", "package.json"):
        shutil.copy(HERE / name, directory / name)
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], cwd=directory, check=True, capture_output=True, timeout=300
    )
    provider = RealProvider(directory, free_port())
    try:
        provider.start("first")
        yield provider
    finally:
        provider.stop()


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealProvider]:
    """The provider, installed and running."""
    with _installed(tmp_path_factory.mktemp("provider")) as running:
        yield running


@pytest.fixture
def signing(server: ServerUnderTest, provider: RealProvider, monkeypatch: pytest.MonkeyPatch) -> ProviderSignIn:
    """The console of the server as a client of the provider."""
    configuration = ServerConfiguration(
        oidc=Provider(issuer=provider.issuer, audience="lapwing", client_id="console"), console=ConsoleSettings(url=CONSOLE)
    )
    found = provider_sign_in(configuration, server.app_state.identities.wire_secret())
    assert found is not None
    monkeypatch.setattr(server.app_state, "provider", found)
    return found


def _at_the_provider(address: str) -> str:
    """What the provider makes of a browser that is sent to it: where it is sent back to."""
    with httpx.Client(follow_redirects=False) as browser:
        while not address.startswith(CONSOLE):
            reply = browser.get(address)
            assert reply.status_code in (302, 303), reply.text
            address = urllib.parse.urljoin(address, reply.headers["location"])
    return address.removeprefix(CONSOLE)


def test_people_sign_in_at_the_provider(server: ServerUnderTest, signing: ProviderSignIn) -> None:
    server.app_state.identities.grant("group:staff", Grant(Role.AUDITOR, "*"))
    person = Visitor(server)
    page = person.get(f"/console/d/{server.data_set}").headers["location"]
    assert "Sign in with your organisation" in person.get(page).text
    before = dict(person.cookies)
    sent = person.get(f"/console/sign-in/provider?next=/console/d/{server.data_set}")
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(sent.headers["location"]).query))
    assert (asked["code_challenge_method"], asked["response_type"], asked["client_id"]) == ("S256", "code", signing.client_id)
    back = _at_the_provider(sent.headers["location"])
    stranger = Visitor(server)
    assert stranger.get(back).status_code == 401, "what came back is good in the browser alone that asked"
    done = person.get(back)
    assert (done.status_code, done.headers["location"]) == (303, f"/console/d/{server.data_set}"), done.text
    assert person.cookies["lapwing"] != before["lapwing"]
    seen = person.get("/console/d/{d}")
    assert seen.status_code == 200
    assert ">ada</span>" in seen.text
    assert f"/console/d/{server.data_set}/ledger" in seen.text, "by the group that the provider names"
    assert person.get(back).status_code == 401, "and once"
    server.app_state.identities.withdraw("group:staff", Grant(Role.AUDITOR, "*"))
    assert f"/console/d/{server.data_set}/ledger" not in person.get("/console/d/{d}").text


def test_a_reply_that_nobody_asked_for_signs_nobody_in(server: ServerUnderTest, signing: ProviderSignIn) -> None:
    person = Visitor(server)
    sent = person.get("/console/sign-in/provider?next=https://evil.example")
    back = _at_the_provider(sent.headers["location"])
    code = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(back).query))["code"]
    kept = person.cookies["lapwing-signing"]
    assert signing.finish(kept, "another state", code) is None
    assert signing.finish(kept[:-1] + ("0" if kept[-1] != "0" else "1"), "", code) is None
    assert signing.finish("", "", code) is None
    for query in ("", "?error=access_denied", "?code=x&state=y", f"?code={code}&state=y"):
        reply = person.get(f"/console/sign-in/back{query}")
        assert reply.status_code == 401
        assert "did not confirm who you are" in reply.text
    other = Visitor(server, dict(person.cookies))
    done = other.get(back)
    assert done.headers["location"] == "/console/", "no other host, whatever was wanted"


def test_without_a_provider_there_is_no_way_to_it(server: ServerUnderTest) -> None:
    for path in ("/console/sign-in/provider", "/console/sign-in/back?code=x&state=y"):
        assert Visitor(server).get(path).status_code == 404
    assert "organisation" not in Visitor(server).get("/console/sign-in").text


def test_tokens_of_a_real_provider(server: ServerUnderTest, provider: RealProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.app_state, "tokens", Tokens(Issuer(provider.issuer, "lapwing")))
    good = provider.token("ada", "lapwing")
    me = server.call("GET", "/v1/me", token=good)
    assert (me.status_code, me.json()["name"]) == (200, "ada")
    assert server.call("GET", "/v1/data-sets/{d}/budget", token=good).status_code == 200
    assert server.call("GET", "/v1/data-sets/{d}/budget", token=provider.token("nemo", "lapwing")).status_code == 404
    assert server.call("GET", "/v1/me", token=provider.token("ada", "another")).status_code == 401
    monkeypatch.setattr(tokens_module, "UNKNOWN_KEY_SECONDS", 0.2)
    provider.start("second")
    new = provider.token("ada", "lapwing")
    time.sleep(0.3)
    assert server.call("GET", "/v1/me", token=new).status_code == 200
    assert server.call("GET", "/v1/me", token=good).status_code == 401, "its key is no longer published"
    provider.stop()
    assert server.call("GET", "/v1/me", token=new).status_code == 200, "keys are kept for a while"
