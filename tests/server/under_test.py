"""A server in this process, over a data set of its own, with one person for each role and a provider that signs tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.testclient import TestClient

from lapwing.data_set import open as open_data_set
from lapwing.interfaces.console.mounting import add_console
from lapwing.interfaces.http.access import AppState
from lapwing.interfaces.http.api import application, nothing_beside
from lapwing.interfaces.http.configuration import (
    ListenTo,
    MomentSettings,
    NamedDatabase,
    NewDataSettings,
    Provider,
    Served,
    ServerConfiguration,
    ServerLimits,
    TraceSettings,
    WireSettings,
)
from lapwing.interfaces.http.data_set_pool import DataSetPool
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.interfaces.http.identity.tokens import Tokens
from lapwing.interfaces.http.new_data_sets import NewDataSets
from lapwing.interfaces.http.run import open_app_state

ISSUER = "http://127.0.0.1:1/issuer"
AUDIENCE = "lapwing"
PEOPLE = {"ada": Role.ANALYST, "olga": Role.OWNER, "otto": Role.OWNER, "aude": Role.AUDITOR, "ops": Role.OPERATOR}
"""Who has which role on every data set; ``nemo`` has a key and no role."""


@dataclass
class Signer:
    """A provider of tokens: its keys by name, which it can change."""

    keys: dict[str, rsa.RSAPrivateKey] = field(default_factory=lambda: {"first": _new_key()})

    def rotate(self, name: str) -> None:
        """Sign with a new key from now on; the old ones are forgotten."""
        self.keys = {name: _new_key()}

    def fetch(self, url: str) -> Any:
        """What the provider publishes."""
        if url.endswith("/.well-known/openid-configuration"):
            return {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks"}
        listed = [json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())) for key in self.keys.values()]
        return {"keys": [{**item, "kid": name, "use": "sig", "alg": "RS256"} for name, item in zip(self.keys, listed, strict=True)]}

    def token(self, name: str, **other: Any) -> str:
        """A token of this person; ``other`` claims replace the usual ones, and None leaves one out."""
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": name, "iat": now, "exp": now + 600, **other}
        key_id, key = next(iter(self.keys.items()))
        kept = {claim: value for claim, value in claims.items() if value is not None}
        return jwt.encode(kept, key, algorithm="RS256", headers={"kid": key_id})


@dataclass
class ServerUnderTest:
    """The server, who there is, and where it writes."""

    client: TestClient
    app_state: AppState
    home: Path
    data_set: str
    keys: dict[str, str]
    signer: Signer

    @classmethod
    @contextmanager
    def over(
        cls,
        write: Callable[[Path], object],
        home: Path,
        *,
        moments: MomentSettings | None = None,
        limits: ServerLimits | None = None,
        identities: str | None = None,
        traces: str | None = None,
        listen: ListenTo | None = None,
        wire: WireSettings | None = None,
        new_data: NewDataSettings | None = None,
        databases: list[NamedDatabase] | None = None,
        beside: Callable[[AppState], AbstractAsyncContextManager[None]] = nothing_beside,
    ) -> Iterator[ServerUnderTest]:
        """A server over the data set that ``write`` writes to a directory, with a home of its own."""
        write(home / "clinic")
        with open_data_set(home / "clinic", home=home / "ledgers") as data_set:
            data_set.prepare()
            name = data_set.curator.declaration.dataset.id
        configuration = ServerConfiguration(
            server=listen or ListenTo(identities=identities),
            limits=limits or ServerLimits(requests_per_second=10_000.0, burst=100_000, failures_per_minute=100_000),
            moments=moments or MomentSettings(base_seconds=0.01),
            traces=TraceSettings(endpoint=traces),
            oidc=Provider(issuer=ISSUER, audience=AUDIENCE),
            wire=wire,
            new_data=new_data or NewDataSettings(),
            data_set=[Served(catalogue="clinic")],
            database=databases or [],
        )
        signer = Signer()

        def opened() -> AppState:
            app_state = open_app_state(replace_data_sets(configuration), home)
            new_data = NewDataSets(configuration.new_data, home, configuration.database)
            desk = DataSetPool.open(
                configuration.data_set,
                configuration.limits,
                configuration.moments,
                directory=home,
                home=home / "ledgers",
                added=new_data.catalogues,
                counted=app_state.metrics.answered,
            )
            assert app_state.tokens is not None
            return replace(
                app_state, desk=desk, new_data=new_data, tokens=Tokens(app_state.tokens.issuer, signer.fetch), configuration=configuration
            )

        app = application(opened, beside, add_console)
        with TestClient(app, raise_server_exceptions=False) as client:
            app_state: AppState = app.state.app_state
            keys = {person: app_state.identities.new_key(person)[0] for person in (*PEOPLE, "nemo")}
            for person, role in PEOPLE.items():
                app_state.identities.grant(person, Grant(role, "*"))
            yield cls(client, app_state, home, name, keys, signer)

    def call(self, method: str, path: str, *, by: str | None = "ada", token: str | None = None, **other: Any) -> httpx.Response:
        """A request by this person, or with this token; ``{d}`` in the path is the data set."""
        headers = {**other.pop("headers", {})}
        shown = token if token is not None else None if by is None else self.keys[by]
        if shown is not None:
            headers["Authorization"] = f"Bearer {shown}"
        return self.client.request(method, path.replace("{d}", self.data_set), headers=headers, **other)

    def ask(self, sql: str, *, by: str = "ada", headers: dict[str, str] | None = None, **terms: Any) -> httpx.Response:
        """Ask a statement."""
        return self.call("POST", "/v1/data-sets/{d}/ask", by=by, headers=headers or {}, json={"sql": sql, **terms})


def replace_data_sets(configuration: ServerConfiguration) -> ServerConfiguration:
    """The same without data sets: they are opened with a home of their own."""
    return configuration.model_copy(update={"data_set": []})


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)
