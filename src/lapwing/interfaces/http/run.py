"""Starts a listening server from a configuration, in one process or several."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

import uvicorn

from lapwing.interfaces.http.access import AppState
from lapwing.interfaces.http.configuration import CONFIGURATION_FILE, ServerConfiguration, read_configuration
from lapwing.interfaces.http.connections import ACCEPTED_AT_ONCE, BoundedHTTP, encryption, raise_open_files
from lapwing.interfaces.http.data_set_pool import DataSetPool
from lapwing.interfaces.http.environment import HOME_VARIABLE
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.provider_sign_in import provider_sign_in
from lapwing.interfaces.http.identity.tokens import Issuer, Tokens
from lapwing.interfaces.http.new_data_sets import NewDataSets
from lapwing.interfaces.http.operation.audit_log import AuditLog
from lapwing.interfaces.http.operation.metrics import COUNTS_DIRECTORY, Metrics
from lapwing.interfaces.http.operation.supervisor import START_FAILED, Supervisor
from lapwing.interfaces.http.operation.traces import traces_to
from lapwing.interfaces.http.operation.worker_counts import begin_anew
from lapwing.interfaces.http.private_files import require_private
from lapwing.interfaces.http.rates import Rates

SWITCH_SECONDS = 0.0001
"""How long a computing thread may block others: Python's default of 5 ms adds up over the steps of a short call."""


def open_app_state(configuration: ServerConfiguration, home: Path) -> AppState:
    """Open everything that a worker uses."""
    sys.setswitchinterval(SWITCH_SECONDS)
    limits, oidc = configuration.limits, configuration.oidc
    identities = Identities(configuration.identities_url(home))
    identities.require_accepted()
    tokens = None if oidc is None else Tokens(Issuer(oidc.issuer, oidc.audience, oidc.name_claim, oidc.groups_claim))
    new_data = NewDataSets(configuration.new_data, home, configuration.database)
    metrics = Metrics(home / COUNTS_DIRECTORY if configuration.server.metrics else None)
    return AppState(
        configuration,
        DataSetPool.open(
            configuration.data_set, limits, configuration.moments, directory=home, added=new_data.catalogues, counted=metrics.answered
        ),
        new_data,
        identities,
        tokens,
        AuditLog(configuration.audit_path(home), strangers_per_minute=limits.failures_per_minute),
        Rates(limits.requests_per_second, limits.burst),
        Rates(limits.failures_per_minute / 60, limits.failures_per_minute),
        metrics,
        traces_to(configuration.traces.endpoint),
        provider_sign_in(configuration, identities.wire_secret()),
    )


def configured_worker() -> tuple[ServerConfiguration, Path]:
    """The configuration of a worker process and the server's directory, found by an environment variable."""
    home = Path(os.environ[HOME_VARIABLE])
    return read_configuration(home / CONFIGURATION_FILE), home


def _require_identities(configuration: ServerConfiguration, home: Path) -> None:
    """Report problems with the database of identities once, not from every worker."""
    identities = Identities(configuration.identities_url(home))
    try:
        identities.require_accepted()
    finally:
        identities.close()


def serve(home: Path, factory: str) -> None:
    """Serve as configured in ``home`` until a stop signal; running requests finish.

    ``factory`` names the function that makes the application of a worker.
    """
    configuration = read_configuration(home / CONFIGURATION_FILE)
    configuration.require_safe()
    require_private(configuration.secret_files(home))
    _require_identities(configuration, home)
    os.environ[HOME_VARIABLE] = str(home.resolve())
    server = configuration.server
    tls = None if server.certificate is None or server.key is None else (home / server.certificate, home / server.key)
    if tls is not None:
        encryption(*tls)  # report its errors once at start, not to the first client
    raise_open_files()
    if server.metrics:
        begin_anew(home / COUNTS_DIRECTORY)
    config = uvicorn.Config(
        factory,
        factory=True,
        host=server.host,
        port=server.port,
        workers=server.workers,
        http=cast("type[asyncio.Protocol]", partial(BoundedHTTP, tls=tls)),
        ws="none",
        backlog=ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=configuration.limits.stop_seconds,
        access_log=False,
        server_header=False,
        log_level="error",  # warnings are about input from strangers
        proxy_headers=server.behind_proxy,
        forwarded_allow_ips=server.trusted_proxies,
    )
    if server.workers > 1:
        Supervisor(config, silent_seconds=configuration.limits.silent_seconds).run()
        return
    alone = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):
        alone.run()
    if not alone.started:
        sys.exit(START_FAILED)
