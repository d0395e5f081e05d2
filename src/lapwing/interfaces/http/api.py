"""The HTTP interface as one application: routes, the middleware, and errors as problem details."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import lapwing
from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.http.access import AppState, address_of, app_state_of, identified
from lapwing.interfaces.http.call_notes import CallNotes
from lapwing.interfaces.http.connections import CONNECTED
from lapwing.interfaces.http.failures import seen_of
from lapwing.interfaces.http.identity.rights import Act, Identity
from lapwing.interfaces.http.operation.metrics import method_name
from lapwing.interfaces.http.operation.traces import RepliedCall
from lapwing.interfaces.http.problems import MEDIA_TYPE, problem, status_of
from lapwing.interfaces.http.routes import asking, declaring, owning, releasing
from lapwing.interfaces.http.shapes import replies

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
_TLS_ALONE = (b"strict-transport-security", b"max-age=31536000")
"""Tells browsers that reached the server over TLS to use TLS for a year."""
RETRY_AFTER_SECONDS = 1


@asynccontextmanager
async def nothing_beside(_: AppState) -> AsyncIterator[None]:
    """Runs only HTTP."""
    yield


def application(
    open_app_state: Callable[[], AppState],
    beside: Callable[[AppState], AbstractAsyncContextManager[None]] = nothing_beside,
    pages: Callable[[FastAPI], None] | None = None,
) -> FastAPI:
    """The application of one worker; it opens its data sets when it starts and closes them when it stops.

    ``beside`` is another interface to the same state, in the same worker. ``pages`` adds routes for people.
    """

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        app.state.app_state = open_app_state()
        try:
            async with beside(app.state.app_state):
                yield {CONNECTED: app.state.app_state.metrics.connected}
        finally:
            app.state.app_state.close()

    app = FastAPI(
        title="Lapwing",
        version=lapwing.__version__,
        description="Private answers over data that stays where it is, paid from a durable budget.",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.include_router(asking.router)
    app.include_router(releasing.router)
    app.include_router(owning.router)
    app.include_router(declaring.router)
    app.add_api_route("/health/live", _live, methods=["GET"], tags=["operation"])
    app.add_api_route("/health/ready", _ready, methods=["GET"], tags=["operation"], responses=replies())
    app.add_api_route("/metrics", _metrics, methods=["GET"], tags=["operation"], responses=replies(), response_class=PlainTextResponse)
    if pages is not None:
        pages(app)
    app.add_exception_handler(Exception, _failed)
    app.add_exception_handler(LapwingError, _failed)
    app.add_exception_handler(TimeoutError, _failed)
    app.add_exception_handler(HTTPException, _failed)
    app.add_exception_handler(RequestValidationError, _failed)
    app.add_middleware(RequestMiddleware)
    return app


async def _live() -> dict[str, str]:
    """The process answers."""
    return {"state": "live"}


async def _ready(app_state: Annotated[AppState, Depends(app_state_of)]) -> dict[str, str]:
    """The process can answer questions: all of its external dependencies respond."""
    down = await app_state.outside.down(app_state.desk, app_state.identities)
    if down:
        raise LapwingError("unavailable", f"not ready: {' and '.join(down)} cannot be reached")
    return {"state": "ready"}


async def _metrics(
    identity: Annotated[Identity, Depends(identified)], app_state: Annotated[AppState, Depends(app_state_of)], request: Request
) -> PlainTextResponse:
    """Counts for operators, as Prometheus reads them."""
    request.state.act = Act.METRICS.value
    if not app_state.configuration.server.metrics:
        raise CallRefused("not-found", "metrics are switched off")
    if not identity.may_anywhere(Act.METRICS):
        raise CallRefused("forbidden", "only operators of every data set may read metrics")
    data_sets, gauges = await app_state.outside.gauges(app_state.desk)
    return PlainTextResponse(await asyncio.to_thread(app_state.metrics.text, data_sets, gauges))


async def _failed(request: Request, error: Exception) -> Response:
    """Any error as a reply with problem details."""
    seen = seen_of(request, error)
    status = status_of(seen)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Retry-After": str(RETRY_AFTER_SECONDS)} if status in (429, 503) else {}
    return JSONResponse(problem(seen, status), status_code=status, media_type=MEDIA_TYPE, headers=headers)


class RequestMiddleware:
    """Gives each request a number, a body limit, reply headers, a line in the audit log, a span and a count."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        app_state: AppState = scope["app"].state.app_state
        number, state, status, started = secrets.token_hex(8), scope.setdefault("state", {}), [500], [False]
        counted = [False]

        def caller() -> dict[str, str]:
            """What the audit log records about the caller, as far as it is known yet."""
            said = {"who": state.get("who", ""), "credential": state.get("credential", ""), "data_set": state.get("data_set", "")[:200]}
            return {**said, "act": state.get("act", f"{method} {_route(scope)}"), "request": number}

        method = method_name(scope["method"])
        notes, began = state.setdefault("notes", CallNotes(lambda: app_state.audit.begin(**caller()))), time.time_ns()
        limit = _Limited(receive, app_state.configuration.limits.body_bytes_max, state)

        def count() -> None:
            """Count the reply before its end is sent: whoever has read a reply finds it in the next scrape."""
            if not counted[0]:
                counted[0] = True
                app_state.metrics.replied(method, _route(scope), status[0], state.get("code"))

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                count()
            if message["type"] == "http.response.start":
                status[0], started[0] = message["status"], True
                said = {name.lower() for name, _ in message["headers"]}  # a page sets its own content security policy
                wanted = (*_HEADERS, _TLS_ALONE) if scope["scheme"] == "https" else _HEADERS
                added = [header for header in wanted if header[0] not in said]
                message = {**message, "headers": [*message["headers"], *added, (b"x-request-id", number.encode())]}
            await send(message)

        try:
            await self.app(scope, limit.receive, reply)
        except Exception as error:
            # Handled here: the ASGI server would log the text of the error, which may hold a value.
            failed = await _failed(Request(scope), error)
            if not started[0]:
                await failed(scope, receive, reply)
        finally:
            count()
            route = _route(scope)
            if not route.startswith("/health") and not state.get("is_file_of_pages"):  # these are the same for everybody
                said, seen = caller(), state.get("seen_data_set", "")
                call = RepliedCall(method, route, status[0], state.get("code"), said["act"], seen, number, began, time.time_ns())
                app_state.traces.replied(call, notes)
                outcome = state.get("code") or str(status[0])
                app_state.audit.write(**said, outcome=outcome, charges=notes.charges, address=address_of(Request(scope)))


def _route(scope: Scope) -> str:
    """The route, not the path, which the caller chooses."""
    return getattr(scope.get("route"), "path", "unknown")


class _Limited:
    """Receives a body, and raises an error if it is too long."""

    def __init__(self, receive: Receive, most: int, state: dict[str, Any]) -> None:
        self._receive = receive
        self._left = most
        self._state = state

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self._state["too_large"] = True  # the reader of the body may replace the error
            raise CallRefused("body-too-large", "the request body is longer than this server accepts")
        return message
