"""The application of a worker process: HTTP, and beside it the console and the wire, as they are configured.

The office is opened before the application begins its life, so that what is wrong with it reaches the supervisor as an error of ours.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from lapwing.interfaces.console.mounting import add_console
from lapwing.interfaces.http.access import AppState
from lapwing.interfaces.http.api import application
from lapwing.interfaces.http.configuration import ServerConfiguration
from lapwing.interfaces.http.run import configured_worker, open_office


def without_wire() -> FastAPI:
    """HTTP and the console."""
    configuration, home = configured_worker()
    opened = open_office(configuration, home)
    return application(lambda: opened, pages=_pages(configuration))


def with_wire() -> FastAPI:
    """HTTP, the console and PostgreSQL's protocol."""
    from lapwing.interfaces.wire.run import wired

    configuration, home = configured_worker()
    opened = open_office(configuration, home)

    @asynccontextmanager
    async def beside(office: AppState) -> AsyncIterator[None]:
        async with wired(office, home):
            yield

    return application(lambda: opened, beside, _pages(configuration))


def _pages(configuration: ServerConfiguration) -> Callable[[FastAPI], None] | None:
    return add_console if configuration.console.shown else None
