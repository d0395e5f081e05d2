"""The reply to the caller for any error, and its log entry."""

from __future__ import annotations

import logging

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from lapwing.errors import CallRefused, LapwingError, PreparationError
from lapwing.interfaces.http.problems import shown

_log = logging.getLogger("lapwing.server")


def seen_of(request: Request, error: Exception) -> LapwingError:
    """The error in the form that the caller may see. Of an unexpected error only the type is logged, because its text may hold a value."""
    own = _own(error)
    if getattr(request.state, "too_large", False):
        own = CallRefused("body-too-large", "the request body is longer than this server accepts")
    if own is None:
        route = getattr(request.scope.get("route"), "path", "unknown")  # not the path, which the caller chooses
        _log.error("%s in %s", type(error).__name__, route)
    is_owner = getattr(request.state, "is_owner", False)
    seen = shown(error if own is None else own, to_owner=is_owner)
    # Why a preparation was refused may depend on rows: only the owner sees it, not counts, traces or the log.
    request.state.code = shown(seen, to_owner=is_owner and not isinstance(seen, PreparationError)).code
    return seen


def _own(error: Exception) -> LapwingError | None:
    """A known error as one of Lapwing's own; None for others."""
    match error:
        case LapwingError():
            return error
        case RequestValidationError():
            sent = [one for one in error.errors() if one["loc"][0] != "path"]
            if not sent:
                return _of_status(404)
            first = sent[0]
            where = ".".join(str(part) for part in first["loc"])
            return CallRefused("body-invalid", f"{where}: {first['msg']}"[:500])
        case HTTPException():
            return _of_status(error.status_code)
        case ClientDisconnect():
            return CallRefused("body-invalid", "the body did not arrive")
        case TimeoutError():
            return CallRefused("busy", "this takes longer than the server waits for an answer", hint="ask again in a moment")
        case _:
            return None


def _of_status(status: int) -> CallRefused:
    """What the web framework itself refuses."""
    if status == 404:
        return CallRefused("not-found", "there is nothing at this address")
    if status == 405:
        return CallRefused("method-not-allowed", "this address does not support this method")
    return CallRefused("body-invalid", "the body cannot be read")
