"""Sign-in with an API key or at the OpenID provider, and sign-out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse, Response

from lapwing.errors import CallRefused
from lapwing.interfaces.console.navigation import ROOT
from lapwing.interfaces.console.page_routes import pages
from lapwing.interfaces.console.rendering import rendered
from lapwing.interfaces.console.visits import (
    Visit,
    cookie_name,
    cookie_of,
    form_token,
    identity_in,
    new_cookie,
    require_own_form,
    sent_form,
    set_cookie,
    visiting,
)
from lapwing.interfaces.http.access import AppState, address_of, app_state_of, count_failure
from lapwing.interfaces.http.identity.identities import GROUP_MARK
from lapwing.interfaces.http.identity.sessions import SignedIn

router = pages()
_OWN_PAGE = re.compile(rf"{ROOT}/[A-Za-z0-9._~/?=&%+-]*")
_SIGNING = "-signing"
"""The suffix of the cookie with the values that the provider's reply is checked against."""


def own_page(wanted: str) -> str:
    """Where to go after signing in: a page of the console, never another host."""
    return wanted if _OWN_PAGE.fullmatch(wanted) else f"{ROOT}/"


@router.get("/sign-in")
def sign_in_page(request: Request, app_state: Annotated[AppState, Depends(app_state_of)]) -> Response:
    """The form. Users who are already signed in are redirected."""
    request.state.act = "sign-in"
    wanted, value = own_page(request.query_params.get("next", "")), cookie_of(request, app_state)
    session = app_state.identities.sessions.find(value, idle_minutes=app_state.configuration.console.idle_minutes) if value else None
    if session is not None and identity_in(app_state, session) is not None:
        return RedirectResponse(wanted, status_code=303)
    return _form(request, app_state, wanted)


@router.post("/sign-in")
def sign_in(
    request: Request, app_state: Annotated[AppState, Depends(app_state_of)], form: Annotated[Mapping[str, str], Depends(sent_form)]
) -> Response:
    """Begin a session for a valid key. An earlier session of the browser becomes invalid."""
    request.state.act = "sign-in"
    require_own_form(request, app_state, form)
    key, wanted = form.get("key", "").strip(), own_page(form.get("next", ""))
    identity = app_state.identities.of_key(key)
    if identity is None:
        if key:
            count_failure(app_state, address_of(request))
        request.state.code = "unauthenticated"
        return _form(request, app_state, wanted, status=401, wrong=True)
    request.state.who, request.state.credential = identity.name, identity.credential
    return begun(request, app_state, SignedIn(identity.name, key_id=identity.credential.removeprefix("key ")), wanted)


@router.get("/sign-in/provider")
def to_the_provider(request: Request, app_state: Annotated[AppState, Depends(app_state_of)], next: str = "") -> Response:
    """Redirect to the OpenID provider. The values to check its reply against stay in this browser."""
    request.state.act = "sign-in"
    if app_state.provider is None:
        raise CallRefused("not-found", "there is nothing at this address")
    address, kept = app_state.provider.begin(own_page(next))
    response = RedirectResponse(address, status_code=303)
    set_cookie(response, app_state, kept, name=_SIGNING)
    return response


@router.get("/sign-in/back")
def back_from_the_provider(
    request: Request, app_state: Annotated[AppState, Depends(app_state_of)], state: str = "", code: str = "", error: str = ""
) -> Response:
    """Begin a session for the user named by the provider, if this browser started the login."""
    request.state.act = "sign-in"
    if app_state.provider is None:
        raise CallRefused("not-found", "there is nothing at this address")
    kept = request.cookies.get(cookie_name(app_state, _SIGNING), "")
    found = None if error or not code else app_state.provider.finish(kept, state, code)
    if found is None or found[0].name.startswith(GROUP_MARK):
        if code:
            count_failure(app_state, address_of(request))
        request.state.code = "unauthenticated"
        return _form(request, app_state, f"{ROOT}/", status=401, unknown=True)
    who, wanted = found
    request.state.who, request.state.credential = who.name, "console, by the OpenID provider"
    response = begun(request, app_state, who, own_page(wanted))
    set_cookie(response, app_state, "", name=_SIGNING)
    return response


@router.post("/sign-out")
def sign_out(visit: Annotated[Visit, Depends(visiting)]) -> Response:
    """End the session, in every worker."""
    visit.request.state.act = "sign-out"
    visit.app_state.identities.sessions.end(cookie_of(visit.request, visit.app_state))
    response = visit.go(f"{ROOT}/sign-in")
    set_cookie(response, visit.app_state, new_cookie())
    return response


def begun(request: Request, app_state: AppState, who: SignedIn, wanted: str) -> Response:
    """Begin a new session with a new cookie, and redirect to the requested page."""
    sessions, before = app_state.identities.sessions, cookie_of(request, app_state)
    if before:
        sessions.end(before)
    response = RedirectResponse(wanted, status_code=303)
    set_cookie(response, app_state, sessions.begin(who, hours=app_state.configuration.console.session_hours))
    return response


def _form(request: Request, app_state: AppState, wanted: str, *, status: int = 200, wrong: bool = False, unknown: bool = False) -> Response:
    held = cookie_of(request, app_state)
    cookie = held or new_cookie()
    values: dict[str, Any] = {"wanted": wanted, "wrong": wrong, "unknown": unknown, "has_provider": app_state.provider is not None}
    response = rendered(request, "sign_in.html", status=status, token=form_token(app_state, cookie), **values)
    if not held:
        set_cookie(response, app_state, cookie)
    return response
