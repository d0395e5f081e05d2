"""Authentication and authorization: the dependencies of every route."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from lapwing.data_set import DataSet
from lapwing.errors import CallRefused
from lapwing.interfaces.http.call_notes import CallNotes
from lapwing.interfaces.http.configuration import ServerConfiguration
from lapwing.interfaces.http.data_set_pool import DataSetPool, ServedDataSet
from lapwing.interfaces.http.identity.identities import GROUP_MARK, Identities
from lapwing.interfaces.http.identity.provider_sign_in import ProviderSignIn
from lapwing.interfaces.http.identity.rights import Act, Identity
from lapwing.interfaces.http.identity.tokens import Tokens
from lapwing.interfaces.http.new_data_sets import NewDataSets
from lapwing.interfaces.http.operation.audit_log import AuditLog
from lapwing.interfaces.http.operation.dependencies import Dependencies
from lapwing.interfaces.http.operation.metrics import Metrics
from lapwing.interfaces.http.operation.traces import Tracing
from lapwing.interfaces.http.rates import Rates, sender
from lapwing.ledger.limits import require_name

KEY_PREFIX = "lw_"
Result = TypeVar("Result")
_bearer = HTTPBearer(auto_error=False, description="An API key of this server, or a token of its OpenID provider.")


@dataclass(slots=True)
class AppState:
    """The state that the routes of one worker share."""

    configuration: ServerConfiguration
    desk: DataSetPool
    new_data: NewDataSets
    identities: Identities
    tokens: Tokens | None
    audit: AuditLog
    rates: Rates
    failures: Rates
    metrics: Metrics
    traces: Tracing
    provider: ProviderSignIn | None = None
    """The provider at which people sign in to the console, besides API keys."""
    outside: Dependencies = field(default_factory=Dependencies)

    def close(self) -> None:
        """Close everything; running requests come first."""
        self.desk.close()
        self.identities.close()
        self.audit.close()
        self.traces.close()
        self.metrics.close()


@dataclass(frozen=True, slots=True)
class AuthorizedRequest:
    """An authorized call: the caller and the data set."""

    identity: Identity
    served: ServedDataSet
    app_state: AppState
    notes: CallNotes

    async def run(self, work: Callable[[DataSet], Result], *, name: Hashable = None) -> Result:
        """The result of ``work``, run for the caller."""
        return await self.served.run(work, self.notes, name=name, person=self.identity.name)


def app_state_of(request: Request) -> AppState:
    """The state that the routes share."""
    app_state = request.app.state.app_state
    assert isinstance(app_state, AppState)
    return app_state


def identified(
    request: Request,
    app_state: Annotated[AppState, Depends(app_state_of)],
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Identity:
    """The caller; ``unauthenticated`` if unknown.

    A valid credential is accepted however many wrong ones came from its address: others may share the address, and nobody guesses 256 bits.
    """
    found = None if given is None else _identity(app_state, given.credentials)
    if found is None:
        if given is not None:
            count_failure(app_state, address_of(request))
        raise CallRefused("unauthenticated", "no valid API key or token was given", hint="send 'Authorization: Bearer <key>'")
    return recognised(request, app_state, found)


def recognised(request: Request, app_state: AppState, identity: Identity) -> Identity:
    """Record the authenticated caller for the audit log, and limit the caller's rate."""
    request.state.who, request.state.credential = identity.name, identity.credential
    wait = app_state.rates.seconds_to_wait(identity.name)
    if wait:
        raise too_many(wait)
    connection = getattr(request.state, "connection", None)
    if connection is not None:  # uvicorn sets it
        connection.is_known()
    return identity


def address_of(request: Request) -> str:
    """The address of the caller, or the one that a trusted proxy reports."""
    return request.client.host if request.client is not None else ""


def count_failure(app_state: AppState, address: str) -> None:
    """Record a wrong credential: an address with too many must wait. Requests without one are not counted."""
    wait = app_state.failures.seconds_to_wait(sender(address))
    if wait:
        raise too_many(wait)


def too_many(seconds: float) -> CallRefused:
    """The refusal that asks the caller to wait."""
    return CallRefused("too-many-requests", f"too many requests; wait {math.ceil(seconds)} s", hint="wait, then send requests more slowly")


def _identity(app_state: AppState, credential: str) -> Identity | None:
    if credential.startswith(KEY_PREFIX):
        return app_state.identities.of_key(credential)
    holder = None if app_state.tokens is None else app_state.tokens.holder(credential)
    if holder is None or holder.name.startswith(GROUP_MARK):
        return None
    require_name(holder.name)
    assert app_state.tokens is not None
    grants = app_state.identities.granted_to(holder.name, holder.groups)
    return Identity(holder.name, grants, f"token of {app_state.tokens.issuer.url}")


def to(act: Act, who: Callable[..., Identity] = identified) -> Callable[..., AuthorizedRequest]:
    """The dependency of a route that does this with a data set: a caller without a role on it gets the same error as for a missing one.

    ``who`` is the dependency that authenticates the caller.
    """

    def called(
        data_set: str,
        request: Request,
        app_state: Annotated[AppState, Depends(app_state_of)],
        identity: Identity = Depends(who),  # noqa: B008  (annotations are evaluated where local names are unknown)
    ) -> AuthorizedRequest:
        request.state.act, request.state.data_set = act.value, data_set
        served = app_state.desk.of(data_set)
        if served is None or not identity.may(Act.SEE, data_set):
            raise CallRefused("not-found", "there is no such data set, or you may not see it")
        request.state.seen_data_set = data_set
        if not identity.may(act, data_set):
            raise CallRefused("forbidden", f"none of your roles on this data set allows {act.value!r}")
        request.state.is_owner = identity.may(Act.PREPARE, data_set)
        return AuthorizedRequest(identity, served, app_state, request.state.notes)

    return called
