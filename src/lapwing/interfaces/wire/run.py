"""Starts the wire beside HTTP."""

from __future__ import annotations

import asyncio
import hmac
import logging
import shlex
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from lapwing.curator.catalogue_name import catalogue_name
from lapwing.data_set import open as open_data_set
from lapwing.errors import LapwingError
from lapwing.interfaces.http.access import AppState
from lapwing.interfaces.http.configuration import ServerConfiguration, WireSettings
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.problems import shown
from lapwing.interfaces.wire.declared import declared_tables
from lapwing.interfaces.wire.listener import Listener
from lapwing.interfaces.wire.refusals import ShadowError
from lapwing.interfaces.wire.shadow.database import address_of, make_shadow, shadow_name, what_is_missing
from lapwing.interfaces.wire.shadow.link import ShadowAddress, ShadowLink

SHADOW_SECONDS = 2.0
"""How long a health check waits for the shadow."""
_NOT_MADE = frozenset({"3D000", "28000", "28P01"})
_log = logging.getLogger("lapwing.wire")


def wire_settings(configuration: ServerConfiguration) -> WireSettings:
    """The configuration of the wire; ``server-configuration`` if there is none."""
    if configuration.wire is None:
        raise LapwingError(
            "server-configuration", "there is no [wire] in the configuration", hint="add [wire] with shadow = 'postgresql://...'"
        )
    return configuration.wire


def shadow_password(secret: bytes) -> str:
    """The password of the shadow's role: the same for all replicas, which share the secret."""
    return hmac.digest(secret, b"password of the shadow's role", "sha256").hex()


def make_shadows(configuration: ServerConfiguration, home: Path) -> None:
    """Create or update the shadow of every data set, and report what is missing: once here, not in every worker."""
    wire, identities = wire_settings(configuration), Identities(configuration.identities_url(home))
    password = shadow_password(identities.wire_secret())
    identities.close()
    later = configuration.new_data.sources is not None or bool(configuration.database)
    for item in configuration.data_set:
        try:
            with open_data_set(home / item.catalogue) as data_set:
                name, tables = data_set.curator.declaration.dataset.id, declared_tables(data_set)
        except LapwingError as error:  # it affects only this data set: the others are served
            later = True
            _log.warning("%s", _not_on_the_wire(home / item.catalogue, error))
            continue
        make_shadow(wire.shadow, database=shadow_name(wire.shadow_prefix, name), role=wire.role, password=password, tables=tables)
    for missing in what_is_missing(wire.shadow, later=later):
        _log.warning("%s", missing)


def _not_on_the_wire(catalogue: Path, error: LapwingError) -> str:
    """Names the data set, the reason and the remedy; after it, the listener serves the data set at the next connection."""
    said, then = f"data set {catalogue_name(catalogue)} is not on the wire", "It joins without a restart"
    if error.code == "not-prepared":
        return f"{said}: it has no prepared version. {then} after: lapwing -C {shlex.quote(str(catalogue.resolve()))} prepare"
    return f"{said}: {shown(error, to_owner=True)}. {then} once that is fixed."


def look_at_shadow(app_state: AppState, settings: WireSettings, password: str) -> None:
    """Log in to the shadow of a data set as sessions do, or fail; runs its own event loop."""
    name = next(iter(app_state.desk.served), None)
    if name is None:
        return  # no session is possible
    address = address_of(settings.shadow, database=shadow_name(settings.shadow_prefix, name), role=settings.role, password=password)
    try:
        asyncio.run(asyncio.wait_for(_logged_in(address), SHADOW_SECONDS))
    except ShadowError as error:
        # A shadow may be made only for its first session: until then the server reports a missing database or role, so it is reachable.
        if error.code not in _NOT_MADE:
            raise


async def _logged_in(address: ShadowAddress) -> None:
    (await ShadowLink.open(address)).close()


@asynccontextmanager
async def wired(app_state: AppState, home: Path) -> AsyncIterator[int]:
    """Run the wire of one worker, beside its other interfaces; yields the port."""
    secret = app_state.identities.wire_secret()
    settings, server = wire_settings(app_state.configuration), app_state.configuration.server
    encryption = None
    if server.certificate is not None and server.key is not None:
        encryption = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        encryption.minimum_version = ssl.TLSVersion.TLSv1_2
        encryption.load_cert_chain(home / server.certificate, home / server.key)
    password = shadow_password(secret)
    app_state.outside.shadow = partial(look_at_shadow, app_state, settings, password)
    async with Listener(app_state, settings, encryption, secret, password).listening() as port:
        yield port
