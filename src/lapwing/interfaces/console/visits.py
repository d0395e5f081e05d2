"""Authentication and authorization of page visits: the session cookie, a token in every form, and the usual rights.

A page depends on :func:`visiting`, or on ``visiting_to(act)`` if it is about a data set. These refuse any request except a GET unless it
carries the token of the visitor's own session, so no page can forget the check.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse, Response

from lapwing.errors import CallRefused
from lapwing.interfaces.console.rendering import rendered
from lapwing.interfaces.http.access import AppState, AuthorizedRequest, app_state_of, recognised, to
from lapwing.interfaces.http.identity.rights import Act, Identity
from lapwing.interfaces.http.identity.sessions import SignedIn

TOKEN_FIELD = "form_token"
FIELDS_MAX = 4_000
_SAFE = ("GET", "HEAD")


@dataclass(frozen=True)
class Visit:
    """A request of a signed-in user for a page or with a form."""

    request: Request
    app_state: AppState
    identity: Identity
    form: Mapping[str, str]
    """Fields that were sent, each once; none on a GET."""

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """The page rendered from a template."""
        token = form_token(self.app_state, cookie_of(self.request, self.app_state))
        return rendered(self.request, template, status=status, identity=self.identity, token=token, **values)

    def go(self, path: str) -> Response:
        """Redirect the browser, with a GET."""
        return RedirectResponse(path, status_code=303)


@dataclass(frozen=True)
class DataSetVisit(Visit):
    """A visit to a page of a data set, by a user with the right for it. ``call`` is the argument of the HTTP interface's routes."""

    call: AuthorizedRequest

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """The page rendered from a template, with the navigation of the data set."""
        return super().page(template, status=status, data_set=self.call.served.data_set_id, **values)


def is_secure(app_state: AppState) -> bool:
    """Whether browsers reach this server over TLS."""
    server, url = app_state.configuration.server, app_state.configuration.console.url or ""
    return server.certificate is not None or server.behind_proxy or url.startswith("https://")


def cookie_name(app_state: AppState, kind: str = "") -> str:
    """The name of a cookie. Its prefix makes browsers accept it only from this host and only over TLS."""
    return ("__Host-lapwing" if is_secure(app_state) else "lapwing") + kind


def cookie_of(request: Request, app_state: AppState) -> str:
    """The browser's cookie; empty if there is none."""
    return request.cookies.get(cookie_name(app_state), "")


def set_cookie(response: Response, app_state: AppState, value: str, *, name: str = "") -> None:
    """Set a cookie that scripts cannot read and that is not sent with requests from other sites."""
    response.set_cookie(cookie_name(app_state, name), value, path="/", httponly=True, samesite="lax", secure=is_secure(app_state))


def new_cookie() -> str:
    """A cookie for visitors who are not signed in: their forms have a token too."""
    return secrets.token_urlsafe(32)


def form_token(app_state: AppState, cookie: str) -> str:
    """The form token for this cookie: it is derived from the cookie, and no one else can compute it."""
    secret = app_state.identities.wire_secret()
    return hmac.digest(secret, b"a form of the console for " + cookie.encode("utf-8", "surrogatepass"), "sha256").hex()


def identity_in(app_state: AppState, session: SignedIn) -> Identity | None:
    """The identity of a session with its current rights; None if its key is no longer valid."""
    if session.key_id:
        return app_state.identities.of_key_id(session.key_id)
    return Identity(session.name, app_state.identities.granted_to(session.name, session.groups), "console, by the OpenID provider")


def signed_in(request: Request, app_state: Annotated[AppState, Depends(app_state_of)]) -> Identity:
    """The signed-in visitor; ``unauthenticated`` if there is none."""
    value = cookie_of(request, app_state)
    session = app_state.identities.sessions.find(value, idle_minutes=app_state.configuration.console.idle_minutes) if value else None
    identity = None if session is None else identity_in(app_state, session)
    if identity is None:
        raise CallRefused("unauthenticated", "you are not signed in, or the session has ended", hint="sign in")
    return recognised(request, app_state, identity)


async def sent_form(request: Request) -> Mapping[str, str]:
    """The fields of a form; if a field is sent twice, the last value."""
    if request.method in _SAFE:
        return {}
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise CallRefused("body-invalid", "this is not a form")
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX))
    except ValueError as error:
        raise CallRefused("body-invalid", "the form cannot be read") from error


def require_own_form(request: Request, app_state: AppState, form: Mapping[str, str]) -> None:
    """Refuse a request that was not sent from one of this visitor's pages."""
    if request.method in _SAFE:
        return
    cookie = cookie_of(request, app_state)
    # The browser reports where a request comes from; a site that shares our domain is also foreign.
    foreign = request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    right = hmac.compare_digest(form_token(app_state, cookie).encode(), form.get(TOKEN_FIELD, "").encode())
    if foreign or not cookie or not right:
        message = "the form was not sent from one of your pages, or you have signed in again since"
        raise CallRefused("form-foreign", message, hint="load the page again")


def visiting(
    request: Request,
    app_state: Annotated[AppState, Depends(app_state_of)],
    identity: Annotated[Identity, Depends(signed_in)],
    form: Annotated[Mapping[str, str], Depends(sent_form)],
) -> Visit:
    """The dependency of a page that is not about a data set."""
    require_own_form(request, app_state, form)
    return Visit(request, app_state, identity, form)


def visiting_to(act: Act) -> Callable[..., DataSetVisit]:
    """The dependency of a page that does this with a data set."""

    def visited(
        visit: Annotated[Visit, Depends(visiting)],
        call: AuthorizedRequest = Depends(to(act, signed_in)),  # noqa: B008  (annotations are evaluated where ``act`` is unknown)
    ) -> DataSetVisit:
        return DataSetVisit(visit.request, visit.app_state, visit.identity, visit.form, call)

    return visited
