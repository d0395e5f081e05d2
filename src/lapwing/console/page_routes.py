"""Routes of pages: an error is a page too, and whoever is not signed in is sent to sign in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.routing import APIRoute

from lapwing.console.navigation import ROOT
from lapwing.console.rendering import rendered
from lapwing.server.failures import seen_of
from lapwing.server.problems import status_of

FRAGMENT = "x-fragment"
"""Header of a request by a script, which wants a part of a page."""


class PageRoute(APIRoute):
    """A route whose errors are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with errors turned into pages."""
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:
                return failure_page(request, error)

        return shown


def pages() -> APIRouter:
    """A router for pages; they are no part of the description of the HTTP interface."""
    return APIRouter(prefix=ROOT, route_class=PageRoute, include_in_schema=False)


def failure_page(request: Request, error: Exception) -> Response:
    """What is told of an error, as a page or, to a script, as a part of one."""
    seen = seen_of(request, error)
    status = status_of(seen)
    is_fragment = FRAGMENT in request.headers
    if status == 401 and request.method == "GET" and not is_fragment:
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{ROOT}/sign-in?{urlencode({'next': wanted})}", status_code=303)
    return rendered(request, "problem_part.html" if is_fragment else "problem.html", status=status, problem=seen)
