"""The configuration of the server: a TOML file, read once and strictly. Unknown keys are errors."""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lapwing.catalog.build import has_password
from lapwing.errors import LapwingError
from lapwing.interfaces.http.environment import with_environment
from lapwing.interfaces.python.transport import is_loopback, private_or_encrypted

CONFIGURATION_FILE = "lapwing-server.toml"
IDENTITIES_FILE = "identities.db"
AUDIT_FILE = "audit.jsonl"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ListenTo(_Strict):
    """``[server]``: where the server listens and what it stores."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8765
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    certificate: str | None = None
    key: str | None = None
    behind_proxy: bool = False
    """A proxy terminates TLS. Without one, and without a certificate, the server listens only on loopback."""
    trusted_proxies: list[str] = ["127.0.0.1", "::1"]
    """Addresses and networks of proxies that are trusted to report the caller's address and the use of TLS."""
    identities: str | None = None
    audit_log: str | None = None
    metrics: bool = True


class ServerLimits(_Strict):
    """``[limits]``: what one request, one identity and one data set may take."""

    body_bytes_max: Annotated[int, Field(ge=1_024, le=2**24)] = 262_144
    requests_per_second: Annotated[float, Field(gt=0, le=10_000)] = 20.0
    burst: Annotated[int, Field(ge=1, le=100_000)] = 60
    failures_per_minute: Annotated[int, Field(ge=1, le=100_000)] = 60
    """Wrong credentials from one address before it has to wait."""
    running_max: Annotated[int, Field(ge=1, le=256)] = 16
    """Statements of one data set that run at once, or whose answers wait for their moment, in each worker."""
    waiting_max: Annotated[int, Field(ge=0, le=10_000)] = 64
    """Statements of one data set that wait to run."""
    open_max: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Data sets that are open at once in each worker, each with a connection to its ledger. Beyond it, idle ones are closed."""
    wait_seconds: Annotated[float, Field(gt=0, le=600)] = 20.0
    """How long a request waits for an answer before the caller must poll."""
    stop_seconds: Annotated[int, Field(ge=1, le=3_600)] = 60
    """How long running requests may continue after a stop signal."""
    silent_seconds: Annotated[float, Field(ge=1, le=3_600)] = 30.0
    """A worker that does not respond for this long is killed and replaced. That forfeits its reservations, so pauses are tolerated."""


class MomentSettings(_Strict):
    """``[moments]``: when answers are sent."""

    public: bool = True
    """Answers that read rows are sent at moments that public facts determine."""
    base_seconds: Annotated[float, Field(gt=0, le=60)] = 0.25
    """The shortest delay; others are this times a power of two."""


class Provider(_Strict):
    """``[oidc]``: whose tokens are accepted."""

    issuer: str
    audience: str
    name_claim: str = "sub"
    groups_claim: str = "groups"
    client_id: str | None = None
    """The console's client id at the provider; with it and ``[console] url``, people sign in there."""
    client_secret: str | None = None
    """The console's secret, if the provider issued one; without it the console is a public client, with PKCE only."""


class TraceSettings(_Strict):
    """``[traces]``: where spans are sent."""

    endpoint: str | None = None
    """An OpenTelemetry collector, such as ``http://127.0.0.1:4318/v1/traces``; without one there are no traces."""


class ConsoleSettings(_Strict):
    """``[console]``: pages for people."""

    shown: bool = True
    url: str | None = None
    """The address that people use, such as ``https://curator.example``; the OpenID provider redirects to it."""
    session_hours: Annotated[float, Field(gt=0, le=168)] = 8.0
    idle_minutes: Annotated[float, Field(gt=0, le=10_080)] = 60.0
    """A session that is not used for this long ends."""


class NewDataSettings(_Strict):
    """``[new_data]``: data sets that owners of every data set declare through the server."""

    sources: str | None = None
    """The directory of files that may be declared; without it, no file can be."""
    catalogues: str = "catalogues"
    """The only directory for their catalogues and for what is prepared from them."""


class Served(_Strict):
    """``[[data_set]]``: a catalogue that is served."""

    catalogue: str
    answer_after: Annotated[float, Field(gt=0, le=3_600)] | None = None
    """Each answer that reads rows is sent this many seconds after the request, or after 2, 4, ... times as many."""


class NamedDatabase(_Strict):
    """``[[database]]``: a PostgreSQL database whose tables owners of every data set may declare, under a name that hides its address."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
    connection: Annotated[str, Field(min_length=1)]
    """A libpq connection string for the role that reads, without a password, as in catalogues."""
    schemas: list[str] | None = None
    """Schemas whose tables are shown; without it, all."""


class WireSettings(_Strict):
    """``[wire]``: the PostgreSQL wire, with the server's certificate."""

    shadow: str
    """A PostgreSQL server for the shadow databases, with a role that may create databases and roles."""
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 5433
    role: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,60}$")] = "lapwing_wire"
    shadow_prefix: Annotated[str, Field(pattern=r"^[a-z0-9_]{0,20}$")] = ""
    shadow_connections: Annotated[int, Field(ge=1, le=100)] = 4
    """Connections to each shadow, in each worker."""
    connections_max: Annotated[int, Field(ge=1, le=10_000)] = 300
    """Sessions of all people, in each worker."""
    sessions_per_person: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Sessions of one person, in each worker."""
    idle_seconds: Annotated[float, Field(gt=0, le=604_800)] = 3_600.0
    """A session that is idle for this long ends."""
    session_share: Annotated[float, Field(gt=0, le=1)] = 0.25
    """The share of the budget that one session may spend."""
    day_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The share of the budget that one person may spend on the wire in a day, in each worker."""


class ServerConfiguration(_Strict):
    """The whole configuration. Paths are relative to the directory of the file."""

    server: ListenTo = ListenTo()
    limits: ServerLimits = ServerLimits()
    moments: MomentSettings = MomentSettings()
    traces: TraceSettings = TraceSettings()
    oidc: Provider | None = None
    wire: WireSettings | None = None
    console: ConsoleSettings = ConsoleSettings()
    new_data: NewDataSettings = NewDataSettings()
    data_set: list[Served] = []
    database: list[NamedDatabase] = []

    def identities_url(self, home: Path) -> str:
        """The database of keys and grants: as configured, or a file in the server's own directory."""
        return self.server.identities or f"sqlite:///{(home / IDENTITIES_FILE).resolve()}"

    def secret_files(self, home: Path) -> list[Path]:
        """Files that only the server's own user, or a group of that user, may read."""
        url, key = self.identities_url(home), self.server.key
        identities = [Path(url.removeprefix("sqlite:///"))] if url.startswith("sqlite:///") else []
        return [home / CONFIGURATION_FILE, *identities, *([] if key is None else [home / key])]

    def audit_path(self, home: Path) -> Path:
        """Where the audit log is written."""
        return home / (self.server.audit_log or AUDIT_FILE)

    def require_safe(self) -> None:
        """Refuse to listen on public addresses without encryption."""
        encrypted = self.server.certificate is not None and self.server.key is not None
        message = "without TLS the server listens only on loopback: others on the network could read keys and answers"
        if not encrypted and not self.server.behind_proxy and not is_loopback(self.server.host):
            raise LapwingError("server-configuration", message, hint="name a certificate and its key, or set behind_proxy = true")
        if self.wire is not None and not encrypted and not is_loopback(self.wire.host):
            raise LapwingError("server-configuration", message, hint="name a certificate and its key in [server]; the wire uses them too")
        for proxy in self.server.trusted_proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError as error:
                raise LapwingError("server-configuration", f"trusted_proxies: {error}") from error
        if "trusted_proxies" in self.server.model_fields_set and not self.server.behind_proxy:
            raise LapwingError("server-configuration", "trusted_proxies needs a proxy", hint="set behind_proxy = true")
        if any(has_password(item.connection) for item in self.database):
            hint = "keep it in a password file (passfile, ~/.pgpass) or a service file"
            raise LapwingError("server-configuration", "the connection of a [[database]] must not hold a password", hint=hint)
        if len({item.name for item in self.database}) < len(self.database):
            raise LapwingError("server-configuration", "two [[database]] entries have the same name")
        if self.oidc is not None and not private_or_encrypted(self.oidc.issuer):
            raise LapwingError("server-configuration", "the issuer's address must begin with https://")
        if self.console.url is not None and not private_or_encrypted(self.console.url):
            raise LapwingError("server-configuration", "the console's address must begin with https://, or be on this machine")
        if self.oidc is not None and self.oidc.client_id is not None and self.console.url is None:
            message = "the provider needs an address to redirect people to"
            raise LapwingError("server-configuration", message, hint="set [console] url = 'https://...'")
        if self.traces.endpoint is not None and not private_or_encrypted(self.traces.endpoint):
            raise LapwingError("server-configuration", "the address for traces must begin with https://, or be on this machine")


SECTIONS: dict[str, type[BaseModel]] = {
    "server": ListenTo,
    "limits": ServerLimits,
    "moments": MomentSettings,
    "traces": TraceSettings,
    "oidc": Provider,
    "wire": WireSettings,
    "console": ConsoleSettings,
    "new_data": NewDataSettings,
}
"""Tables of the file whose keys environment variables can set."""


def read_configuration(path: Path, environment: Mapping[str, str] | None = None) -> ServerConfiguration:
    """The configuration from a file and the environment; ``server-configuration`` names the first wrong place."""
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LapwingError("server-configuration", f"{path.name} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LapwingError("server-configuration", f"{path.name} is not TOML: {error}") from error
    values = with_environment(values, SECTIONS, os.environ if environment is None else environment)
    try:
        return ServerConfiguration.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise LapwingError("server-configuration", f"{path.name}, {where}: {first['msg']}") from error
