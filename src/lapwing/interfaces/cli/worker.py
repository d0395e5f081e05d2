"""The application of a worker process: HTTP, and beside it the console and the wire, as they are configured.

The state is opened before the application starts, so that its problems reach the supervisor as Lapwing's own errors.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from lapwing.interfaces.console.mounting import add_console
from lapwing.interfaces.http.access import AppState
from lapwing.interfaces.http.api import application
from lapwing.interfaces.http.configuration import ServerConfiguration
from lapwing.interfaces.http.run import configured_worker, open_app_state


def without_wire() -> FastAPI:
    """The application with HTTP and the console."""
    configuration, home = configured_worker()
    opened = open_app_state(configuration, home)
    return application(lambda: opened, pages=_pages(configuration))


def with_wire() -> FastAPI:
    """The application with HTTP, the console and PostgreSQL's protocol."""
    from lapwing.interfaces.wire.run import wired

    configuration, home = configured_worker()
    opened = open_app_state(configuration, home)

    @asynccontextmanager
    async def beside(app_state: AppState) -> AsyncIterator[None]:
        async with wired(app_state, home):
            yield

    return application(lambda: opened, beside, _pages(configuration))


def _pages(configuration: ServerConfiguration) -> Callable[[FastAPI], None] | None:
    return add_console if configuration.console.shown else None
