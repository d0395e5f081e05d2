"""Tokens of a real OpenID provider: discovered, checked with its published keys, and refused where they are for somebody else."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from lapwing.server import tokens as tokens_module
from lapwing.server.tokens import Issuer, Tokens
from tests.server.office import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: openid provider")
HERE = Path(__file__).parent / "provider"
SECRET = "a-secret-of-a-test"
START_SECONDS = 30


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
        settings = {"issuer": self.issuer, "port": self.port, "clients": [["ada", SECRET], ["nemo", SECRET]], "jwks": {"keys": self.keys}}
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
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    provider = RealProvider(directory, port)
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


def test_tokens_of_a_real_provider(server: ServerUnderTest, provider: RealProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.office, "tokens", Tokens(Issuer(provider.issuer, "lapwing")))
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
