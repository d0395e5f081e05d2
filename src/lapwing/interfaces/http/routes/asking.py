"""Routes for analysts: declarations, prices, questions, history."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response

from lapwing.answers.answer import Answer
from lapwing.answers.display.budget import epsilon_of_cost
from lapwing.asking import ask as answering
from lapwing.asking.answer_bytes import budget_fields, cost_fields
from lapwing.asking.replay_terms import asked_before
from lapwing.curator.curator import Entry
from lapwing.curator.newest_blocks import newest_blocks
from lapwing.data_set import DataSet
from lapwing.errors import CallRefused, LedgerError, Refused
from lapwing.interfaces.http import formats
from lapwing.interfaces.http.access import AppState, AuthorizedRequest, app_state_of, identified, to
from lapwing.interfaces.http.identity.rights import Act, Identity
from lapwing.interfaces.http.shapes import AskedBody, Number, ReceiptBody, Wish, replies
from lapwing.owner.ledger_entries import entry_fields
from lapwing.owner.policies import own_terms, request_share
from lapwing.receipts import check, receipt_fields, receipt_value

HISTORY_LOOKED_THROUGH = 10_000
"""Newest entries that are searched for the caller's own."""
LOOK_AGAIN_SECONDS = 2
router = APIRouter(prefix="/v1", tags=["asking"])
ANSWERS: dict[int | str, dict[str, Any]] = {200: {"description": "the answer", "content": {name: {} for name in formats.FORMATS}}}
LATER: dict[int | str, dict[str, Any]] = {202: {"description": "still being answered: repeat the request with the same Idempotency-Key"}}
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=100,
        pattern=r"^[A-Za-z0-9._~:-]+$",
        description="Names this request: if it is sent again with the same name, it is charged once and gives the same answer.",
    ),
]


@router.get("/me", responses=replies())
def me(
    identity: Annotated[Identity, Depends(identified)], app_state: Annotated[AppState, Depends(app_state_of)], request: Request
) -> dict[str, Any]:
    """The caller's name and roles."""
    request.state.act = "me"
    seen = [name for name in sorted(app_state.desk.served) if identity.may(Act.SEE, name)]
    return {"name": identity.name, "data_sets": {name: [role.value for role in identity.roles(name)] for name in seen}}


@router.get("/data-sets", responses=replies())
async def data_sets(
    identity: Annotated[Identity, Depends(identified)], app_state: Annotated[AppState, Depends(app_state_of)], request: Request
) -> dict[str, Any]:
    """The data sets that the caller may see."""
    request.state.act = "list"
    return {"data_sets": [name for name in sorted(app_state.desk.served) if identity.may(Act.SEE, name)]}


@router.get("/data-sets/{data_set}", responses=replies())
async def described(call: Annotated[AuthorizedRequest, Depends(to(Act.SEE))]) -> dict[str, Any]:
    """The data set's tables, the unit that it protects, its budget, and whether charges are signed."""

    def work(opened: DataSet) -> dict[str, Any]:
        declared = opened.curator.declaration.dataset
        return {
            "data_set": declared.id,
            "description": declared.description,
            "unit": declared.unit,
            "tables": list(opened.tables),
            "version": opened.curator.facts.version,
            "receipts": opened.curator.place.keys is not None,
            "budget": opened.budget.to_dict(),
            "roles": [role.value for role in call.identity.roles(declared.id)],
        }

    return await call.run(work)


@router.get("/data-sets/{data_set}/tables/{table}", responses=replies())
async def table(table: str, call: Annotated[AuthorizedRequest, Depends(to(Act.SEE))]) -> dict[str, Any]:
    """The declarations of a table's columns."""
    answer = await call.run(lambda opened: opened.describe(table))
    return {"table": table, "columns": answer.to_dict()}


@router.post("/data-sets/{data_set}/explain", responses=replies())
async def explain(question: AskedBody, call: Annotated[AuthorizedRequest, Depends(to(Act.EXPLAIN))]) -> dict[str, Any]:
    """What a statement would cost and how accurate it would be. Free; no row is read."""

    def work(opened: DataSet) -> dict[str, Any]:
        explained = answering.explain(opened.curator, question.request(call.identity.name))
        lines = [list(line) for line in explained.lines]
        return {"lines": lines, "cost": cost_fields(explained.cost), "values": explained.to_dict(), "text": str(explained)}

    return await call.run(work)


@router.post("/data-sets/{data_set}/ask", responses=replies(402, 406, 409, 423) | ANSWERS | LATER, response_class=Response)
async def ask(
    question: AskedBody, call: Annotated[AuthorizedRequest, Depends(to(Act.ASK))], request: Request, idempotency_key: Key = None
) -> Response:
    """Answer a statement and charge for it; a repeated statement is free.

    An answer that read rows is sent at a moment that public facts determine. If it takes longer than the server waits, the reply is 202:
    send the same request again, with the same Idempotency-Key, to get the answer when it is ready.
    """
    form = form_of(request)
    key = secrets.token_hex(16) if idempotency_key is None else idempotency_key
    answer = await asked(question, call, key)
    if answer is None:
        return later(key)
    body = await asyncio.to_thread(formats.FORMATS[form], answer)
    return Response(body, media_type=form, headers={"Idempotency-Key": key})


@router.post("/data-sets/{data_set}/replay", responses=replies(402, 406, 409, 423) | ANSWERS, response_class=Response)
async def replay(question: AskedBody, call: Annotated[AuthorizedRequest, Depends(to(Act.ASK))], request: Request) -> Response:
    """The answer to a statement that was answered before; ``not-answered-before`` if it would cost something."""
    form = form_of(request)
    answer = await replayed(question, call)
    return Response(await asyncio.to_thread(formats.FORMATS[form], answer), media_type=form)


async def asked(question: AskedBody, call: AuthorizedRequest, key: str) -> Answer | None:
    """The answer to a statement; None if it is not ready yet: ask again with the same key."""
    try:
        same = (call.identity.name, key, question.model_dump_json())
        return await call.run(lambda opened: answering.ask(opened.curator, question.request(call.identity.name, key)), name=same)
    except TimeoutError:
        return None
    except Refused as error:
        if error.code != "request-in-progress":
            raise
        return None


async def replayed(question: AskedBody, call: AuthorizedRequest) -> Answer:
    """The answer to a statement that was answered before."""

    return await call.run(lambda opened: answering.replay(opened.curator, question.request(call.identity.name)))


@router.get("/data-sets/{data_set}/budget", responses=replies())
async def budget(call: Annotated[AuthorizedRequest, Depends(to(Act.SEE))]) -> dict[str, Any]:
    """The data set's budget and spending, and the caller's own share if one is set.

    With blocks of time, also what is left in the newest of them, and when the next one closes.
    """

    def work(opened: DataSet) -> dict[str, Any]:
        view = opened.budget
        told = view.to_dict() | {"own": own_terms(opened.curator, call.identity.name), "exact": budget_fields(view)}
        return told if view.blocks is None else told | {"blocks": told["blocks"] | newest_blocks(opened.curator)}

    return await call.run(work)


@router.get("/data-sets/{data_set}/history", responses=replies())
async def history(
    call: Annotated[AuthorizedRequest, Depends(to(Act.OWN_HISTORY))], limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> dict[str, Any]:
    """Newest entries of the ledger: all for owners and auditors, the caller's own for analysts. ``epsilons`` are of single entries."""

    def fields(opened: DataSet) -> dict[str, Any]:
        view, entries = opened.budget, _entries(opened, call, limit)
        unit = view.to_dict()["loss_unit"]
        return {
            "entries": [entry_fields(entry, unit) for entry in entries],
            "epsilons": [epsilon_of_cost(view.budget, entry.cost) for entry in entries],
        }

    return await call.run(fields)


@router.get("/data-sets/{data_set}/history/{charge}", responses=replies())
async def asked_with(charge: Number, call: Annotated[AuthorizedRequest, Depends(to(Act.OWN_HISTORY))]) -> dict[str, Any]:
    """The statement of a charge and its terms, which replay it while it is stored; for an older one, the epsilons that it may have had."""

    def work(opened: DataSet) -> dict[str, Any]:
        found = asked_before(opened.curator, _entries(opened, call, HISTORY_LOOKED_THROUGH), charge)
        if found is None:
            raise CallRefused("not-found", "there is no such charge of a statement, or you may not see it")
        terms = {} if found.terms is None else {"terms": asdict(found.terms)}
        return {"charge": charge, "sql": found.sql, "epsilons": list(found.epsilons), **terms}

    return await call.run(work)


@router.get("/data-sets/{data_set}/receipts/{charge}", responses=replies())
async def receipt(charge: Number, call: Annotated[AuthorizedRequest, Depends(to(Act.OWN_HISTORY))]) -> dict[str, Any]:
    """The signed receipt of a charge: analysts see their own, owners and auditors anybody's."""

    def work(opened: DataSet) -> dict[str, Any]:
        try:
            found = opened.curator.receipt_of_charge(charge)
        except LedgerError as error:
            if error.code != "receipt-missing":
                raise
            found = None
        may_any = call.identity.may(Act.ANY_RECEIPT, call.served.data_set_id)
        if found is None or (not may_any and found.statement.analyst != call.identity.name):
            raise CallRefused("receipt-missing", "there is no such charge, or you may not see it, or charges are not signed here")
        return {"receipt": receipt_fields(found)}

    return await call.run(work)


@router.post("/data-sets/{data_set}/receipts/check", responses=replies(409))
async def check_receipt(sent: ReceiptBody, call: Annotated[AuthorizedRequest, Depends(to(Act.OWN_HISTORY))]) -> dict[str, Any]:
    """Whether a receipt was signed with a key of this data set; ``receipt-invalid`` if it was not, or was changed."""

    def work(opened: DataSet) -> dict[str, Any]:
        keys = opened.curator.place.keys
        if keys is None:
            raise CallRefused("receipt-missing", "charges of this data set are not signed")
        try:
            found = receipt_value(sent.receipt)
            check(found, keys)
        except LedgerError as error:
            if error.code != "receipt-invalid":
                raise
            raise CallRefused("receipt-invalid", error.message, hint=error.hint) from error
        return {
            "genuine": True,
            "of_this_data_set": found.statement.source_id == opened.curator.declaration.dataset.id,
            "says": receipt_fields(found),
        }

    return await call.run(work)


@router.post("/data-sets/{data_set}/requests", status_code=201, responses=replies(409))
async def request_more(wish: Wish, call: Annotated[AuthorizedRequest, Depends(to(Act.REQUEST))]) -> dict[str, Any]:
    """Ask the owners for a larger share of the budget."""
    name = call.identity.name
    number = await call.run(lambda opened: request_share(opened.curator, name, wish.share, reason=wish.reason))
    return {"proposal": number}


def _entries(opened: DataSet, call: AuthorizedRequest, limit: int) -> list[Entry]:
    """The newest entries that the caller may see."""
    if call.identity.may(Act.ALL_HISTORY, call.served.data_set_id):
        return list(opened.history(limit=limit))
    return [entry for entry in opened.history(limit=HISTORY_LOOKED_THROUGH) if entry.analyst == call.identity.name][:limit]


def form_of(request: Request) -> str:
    """The format to send an answer in; ``not-acceptable`` if there is none."""
    form = formats.chosen(request.headers.get("accept"))
    if form is None:
        raise CallRefused("not-acceptable", f"answers are sent as {', '.join(formats.FORMATS)}")
    return form


def later(key: str) -> Response:
    """The reply that asks the client to send the same request again."""
    headers = {"Idempotency-Key": key, "Retry-After": str(LOOK_AGAIN_SECONDS)}
    return JSONResponse({"state": "in progress", "idempotency_key": key}, status_code=202, headers=headers)
