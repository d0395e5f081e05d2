"""Routes of pages: errors are pages too, and visitors who are not signed in are redirected to the sign-in page."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.routing import APIRoute

from lapwing.errors import LapwingError
from lapwing.interfaces.console.navigation import ROOT
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.console.rendering import rendered
from lapwing.interfaces.console.visits import sent_form
from lapwing.interfaces.http.failures import seen_of
from lapwing.interfaces.http.problems import status_of

FRAGMENT = "x-fragment"
"""The header of a script's request for a part of a page."""
_ASKED = re.compile(rf"({ROOT}/d/[^/]+)/(?:ask|price)")


class PageRoute(APIRoute):
    """A route whose errors are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with errors turned into pages."""
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:
                return await failure_page(request, error)

        return shown


def pages() -> APIRouter:
    """A router for pages; they are not in the description of the HTTP interface."""
    return APIRouter(prefix=ROOT, route_class=PageRoute, include_in_schema=False)


async def failure_page(request: Request, error: Exception) -> Response:
    """An error as a page or, for a script, as a part of one."""
    seen = seen_of(request, error)
    status = status_of(seen)
    is_fragment = FRAGMENT in request.headers
    wanted = await _wanted(request) if status == 401 and not is_fragment else None
    if wanted is not None:
        return RedirectResponse(f"{ROOT}/sign-in?{urlencode({'next': wanted})}", status_code=303)
    return rendered(request, "problem_part.html" if is_fragment else "problem.html", status=status, problem=seen)


async def _wanted(request: Request) -> str | None:
    """The page to return to after signing in: the requested one, or the editor with the statement that was sent."""
    if request.method == "GET":
        return request.url.path + (f"?{request.url.query}" if request.url.query else "")
    asked = _ASKED.fullmatch(request.url.path)
    try:
        return None if asked is None else f"{asked[1]}/ask?q={PageQuestion.of_form(await sent_form(request)).token()}"
    except LapwingError:
        return None  # not a form, or a statement too long for an address
