"""Routes for owners and auditors: prepare, decide, reopen after an incident; see terms, losses and incidents."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from lapwing.asking.options import exact_number
from lapwing.curator.curator import EntryKind
from lapwing.data_set import DataSet
from lapwing.errors import CallRefused
from lapwing.interfaces.http import progress_events
from lapwing.interfaces.http.access import AuthorizedRequest, to
from lapwing.interfaces.http.identity.rights import Act
from lapwing.interfaces.http.progress_events import Step
from lapwing.interfaces.http.shapes import Admission, Decision, LimitsBody, Number, PreparationBody, ProposalBody, replies
from lapwing.ledger.connect import role_to_decide
from lapwing.owner.policies import Policies, admit_share, policies, standing
from lapwing.owner.spending_report import spending_report

INCIDENTS_LOOKED_THROUGH = 10_000
_INCIDENTS = frozenset({EntryKind.CLOSE, EntryKind.REOPEN, EntryKind.FORFEIT})
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "progress events", "content": {progress_events.MEDIA_TYPE: {}}},
    201: {"description": "the number of the version", "content": {"application/json": {}}},
}
router = APIRouter(prefix="/v1/data-sets/{data_set}", tags=["owning"])
Name = Annotated[str, Path(min_length=1, max_length=200)]
Result = TypeVar("Result")


@router.get("/terms", responses=replies(409))
async def terms(call: Annotated[AuthorizedRequest, Depends(to(Act.SEE_TERMS))]) -> dict[str, Any]:
    """Where the ledger is, who may ask on what terms, and which proposals wait for a second person."""
    await _require_owner(call, "ledger status")
    return await call.run(lambda opened: standing(opened.curator)[0])


@router.put("/limits", responses=replies(409))
async def set_limits(wanted: LimitsBody, call: Annotated[AuthorizedRequest, Depends(to(Act.ADMIT))]) -> dict[str, Any]:
    """Set whether stored answers are free for everybody who may ask, or only for the analyst who paid."""
    await _require_owner(call, f"ledger limit {'--shared' if wanted.answers_shared else '--not-shared'}", reason=wanted.reason)

    def set_on(admin: Policies) -> bool:
        return admin.set_limits(
            statement_loss=lambda limit: limit,
            day_loss=lambda limit: limit,
            shared=wanted.answers_shared,
            lost_workers=None,
            lost_seconds=None,
            by=call.identity.name,
            reason=wanted.reason,
        )

    return {"answers_shared": wanted.answers_shared, "changed": await _decided(call, set_on)}


@router.get("/report", responses=replies())
async def report(call: Annotated[AuthorizedRequest, Depends(to(Act.ALL_HISTORY))]) -> dict[str, Any]:
    """What each analyst spent: every sum can be recomputed from the history, and each charge has its receipt."""
    return await call.run(lambda opened: spending_report(opened.curator))


@router.put("/analysts/{analyst}", responses=replies(409))
async def admit(analyst: Name, admission: Admission, call: Annotated[AuthorizedRequest, Depends(to(Act.ADMIT))]) -> dict[str, Any]:
    """Admit an analyst, or change the analyst's share. The ledger refuses analysts whom no owner has admitted."""
    by, share, reason = call.identity.name, admission.share, admission.reason
    percent = "" if share is None else f"{100 * share:.10f}".rstrip("0").rstrip(".") + "%"
    await _require_owner(call, "ledger admit", analyst, budget=percent, reason=reason)
    await call.run(lambda opened: admit_share(opened.curator, analyst, share, by=by, reason=reason))
    return {"analyst": analyst, "state": "admitted"}


@router.post("/analysts/{analyst}/suspend", responses=replies(409))
async def suspend(analyst: Name, decision: Decision, call: Annotated[AuthorizedRequest, Depends(to(Act.ADMIT))]) -> dict[str, Any]:
    """Stop an analyst from asking until admitted again."""
    await _require_owner(call, "ledger suspend", analyst, reason=decision.reason)
    await _decided(call, lambda admin: admin.suspend(analyst, by=call.identity.name, reason=decision.reason))
    return {"analyst": analyst, "state": "suspended"}


@router.post("/proposals", status_code=201, responses=replies(409))
async def propose(proposed: ProposalBody, call: Annotated[AuthorizedRequest, Depends(to(Act.PROPOSE))]) -> dict[str, Any]:
    """Propose another budget or ceiling; a second owner must approve it."""
    epsilon, by, reason = exact_number(proposed.epsilon, "epsilon"), call.identity.name, proposed.reason
    await _require_owner(call, f"ledger propose {proposed.what}", epsilon=str(proposed.epsilon), reason=reason)
    if proposed.what == "budget":
        number = await _decided(call, lambda admin: admin.propose_budget(epsilon, by=by, reason=reason))
    else:
        number = await _decided(call, lambda admin: admin.propose_ceiling(epsilon, by=by, reason=reason))
    return {"proposal": number}


@router.post("/proposals/{number}/approve", responses=replies(409))
async def approve(number: Number, decision: Decision, call: Annotated[AuthorizedRequest, Depends(to(Act.DECIDE))]) -> dict[str, Any]:
    """Approve somebody else's proposal or request, and carry it out."""
    await _require_owner(call, "ledger approve", str(number), reason=decision.reason)
    await _decided(call, lambda admin: admin.approve(number, by=call.identity.name, reason=decision.reason))
    return {"proposal": number, "state": "carried out"}


@router.post("/proposals/{number}/deny", responses=replies(409))
async def deny(number: Number, decision: Decision, call: Annotated[AuthorizedRequest, Depends(to(Act.DECIDE))]) -> dict[str, Any]:
    """Reject a proposal."""
    await _require_owner(call, "ledger deny", str(number), reason=decision.reason)
    await _decided(call, lambda admin: admin.deny(number, by=call.identity.name, reason=decision.reason))
    return {"proposal": number, "state": "denied"}


@router.get("/versions", responses=replies())
async def versions(call: Annotated[AuthorizedRequest, Depends(to(Act.SEE))]) -> dict[str, Any]:
    """Versions that are kept, oldest first."""
    return {"versions": await call.run(lambda opened: list(opened.curator.engine.versions()))}


@router.post("/versions", status_code=201, responses=replies(409) | _EVENTS)
async def prepare(wanted: PreparationBody, call: Annotated[AuthorizedRequest, Depends(to(Act.PREPARE))], request: Request) -> Response:
    """Write a new version from the sources. Requests meanwhile are answered from the previous version.

    If only the budget, defaults or descriptions of the catalogue changed, they are applied and the version stays: the reply has its number.
    ``new_version`` makes a new one anyway, and ``profiles`` makes one and buys its profiles anew.

    With ``Accept: text/event-stream`` the reply reports progress: an event ``progress`` for each table, then ``done`` or ``problem``. Only
    owners may see how long tables take to read.
    """
    named = ("append", "accept_losses", "new_version", "profiles")
    flags = "".join(f" --{flag.replace('_', '-')}" for flag in named if getattr(wanted, flag))
    await _require_owner(call, f"prepare{flags}", override=wanted.override)

    def work(step: Step) -> dict[str, Any]:
        with call.served.apart(call.notes) as opened:
            call.app_state.new_data.require_confined(opened.curator.declaration)
            version = opened.curator.prepare(
                progress=step,
                override=wanted.override,
                append=wanted.append,
                accept_losses=wanted.accept_losses,
                new_version=wanted.new_version,
                correct=wanted.correct,
                profiles=wanted.profiles,
            )
        return {"version": version}

    if progress_events.MEDIA_TYPE in request.headers.get("accept", ""):
        return StreamingResponse(progress_events.events(work), media_type=progress_events.MEDIA_TYPE)
    return JSONResponse(await asyncio.to_thread(work, lambda _what, _done, _total: None), status_code=201)


@router.post("/versions/{number}/retire", responses=replies(409))
async def retire(number: Number, call: Annotated[AuthorizedRequest, Depends(to(Act.RETIRE))]) -> dict[str, Any]:
    """Delete the rows of a version; its charges stay."""
    await _require_owner(call, "retire", str(number))

    def work() -> None:
        with call.served.apart(call.notes) as opened:
            opened.curator.retire(number)

    await asyncio.to_thread(work)
    return {"version": number, "state": "retired"}


@router.get("/versions/{number}/losses", responses=replies(409))
async def losses(number: Number, call: Annotated[AuthorizedRequest, Depends(to(Act.SEE_LOSSES))]) -> dict[str, Any]:
    """What a preparation left out and changed: exact numbers, only for owners."""
    return {"losses": await call.run(lambda opened: opened.curator.losses(number))}


@router.get("/incidents", responses=replies())
async def incidents(call: Annotated[AuthorizedRequest, Depends(to(Act.SEE_INCIDENTS))]) -> dict[str, Any]:
    """Whether the data set is closed, and the entries that closed it, reopened it or forfeited a charge."""

    def work(opened: DataSet) -> dict[str, Any]:
        entries = [entry for entry in opened.history(limit=INCIDENTS_LOOKED_THROUGH) if entry.kind in _INCIDENTS]
        listed = [{"id": entry.entry_id, "at": entry.at, "kind": entry.kind.value, "detail": entry.detail} for entry in entries]
        return {"closed": opened.curator.balance().closed, "entries": listed}

    return await call.run(work)


@router.post("/reopen", responses=replies(409))
async def reopen(decision: Decision, call: Annotated[AuthorizedRequest, Depends(to(Act.REOPEN))]) -> dict[str, Any]:
    """Let analysts ask again after an incident."""
    await _require_owner(call, "reopen", decision.reason or "REASON")
    reason = f"{call.identity.name}: {decision.reason}"
    await call.run(lambda opened: opened.curator.reopen(reason))
    return {"closed": False}


async def owner_role_needed(call: AuthorizedRequest, command: str, *words: str, **options: str) -> CallRefused | None:
    """The refusal if the server's role may not do this, with the command that an owner can type instead; None if it may.

    If the ledger is in a database, the server's role there need not be an owner's: then an attacker who controls the server, or has an
    owner's API key, cannot decide. ``words`` and ``options`` are the command's; empty options are left out.
    """
    role = await call.run(lambda opened: role_to_decide(opened.curator.place))
    if role is None:
        return None
    given = [piece for name, value in options.items() if value for piece in (f"--{name}", value)]
    dashes = ["--"] if any(word.startswith("-") for word in words) else []
    typed = shlex.join(["lapwing", *command.split(), *given, *dashes, *words])
    where = f"where the catalogue of {call.served.data_set_id} is, with LAPWING_DATABASE set to their own connection"
    hint = f"a member of the role {role} runs, {where}: `{typed}`"
    return CallRefused("owner-role-needed", "the server's role in the ledger's database may not act as an owner", hint=hint)


async def _require_owner(call: AuthorizedRequest, command: str, *words: str, **options: str) -> None:
    """Refuse what the server's role may not do, before anything is done."""
    needed = await owner_role_needed(call, command, *words, **options)
    if needed is not None:
        raise needed


async def _decided(call: AuthorizedRequest, act: Callable[[Policies], Result]) -> Result:
    """The result of an act on the policies of a data set; ``ledger-local`` if its ledger has no policies."""

    def work(opened: DataSet) -> Result:
        with policies(opened.curator) as admin:
            return act(admin)

    return await call.run(work)
