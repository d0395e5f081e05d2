"""Adds the console to an application."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from lapwing.errors import CallRefused
from lapwing.interfaces.console import assets, signing_in
from lapwing.interfaces.console.navigation import ROOT
from lapwing.interfaces.console.page_routes import pages
from lapwing.interfaces.console.pages import answers, asking, checking, data_sets, declaring, owning, plain_words, spending

ROUTERS = (
    signing_in.router,
    data_sets.router,
    asking.router,
    answers.router,
    spending.router,
    checking.router,
    owning.router,
    declaring.router,
    plain_words.router,
)
"""Routers of pages; :func:`add_console` adds a last one for all other addresses."""


def add_console(app: FastAPI) -> None:
    """Add the pages, and redirects to them from the server's root."""
    app.include_router(assets.router, include_in_schema=False)
    for router in ROUTERS:
        app.include_router(router)
    nowhere = pages()
    nowhere.add_api_route("/{elsewhere:path}", _not_there, methods=["GET"])
    app.include_router(nowhere)
    for path in ("/", ROOT):
        app.add_api_route(path, _to_the_console, methods=["GET"], include_in_schema=False)


async def _to_the_console(request: Request) -> Response:
    request.state.act = "console"
    return RedirectResponse(f"{ROOT}/", status_code=303)


async def _not_there(request: Request) -> Response:
    request.state.act = "console"
    raise CallRefused("not-found", "there is nothing at this address")
