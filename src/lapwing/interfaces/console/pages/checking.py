"""Pages of auditors: every entry of the ledger, the verification of receipts, and the spending report."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Depends, Query
from fastapi.responses import Response

from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.console.page_routes import pages
from lapwing.interfaces.console.visits import DataSetVisit, visiting_to
from lapwing.interfaces.http.failures import seen_of
from lapwing.interfaces.http.identity.rights import Act
from lapwing.interfaces.http.problems import status_of
from lapwing.interfaces.http.routes import asking, owning
from lapwing.interfaces.http.shapes import Number, ReceiptBody

router = pages()
PAGE_LENGTH = 200


@router.get("/d/{data_set}/ledger")
async def ledger(
    visit: Annotated[DataSetVisit, Depends(visiting_to(Act.ALL_HISTORY))],
    limit: Annotated[int, Query(ge=1, le=1_000)] = PAGE_LENGTH,
) -> Response:
    """The newest entries of all analysts."""
    reply = await asking.history(visit.call, limit)
    described = await asking.described(visit.call)
    unit = described["budget"]["loss_unit"]
    rows = [entry | {"amount": entry[unit], "epsilon": epsilon} for entry, epsilon in zip(reply["entries"], reply["epsilons"], strict=True)]
    more = min(limit * 5, 1_000) if len(rows) == limit and limit < 1_000 else None
    return visit.page("ledger.html", rows=rows, unit=unit, more=more, signs=described["receipts"])


@router.get("/d/{data_set}/report")
async def report(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.ALL_HISTORY))]) -> Response:
    """Who spent how much, and whether the entries add up to what the ledger says."""
    return visit.page("report.html", report=await owning.report(visit.call))


@router.get("/d/{data_set}/receipts")
async def receipts(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.OWN_HISTORY))]) -> Response:
    """A form to verify a receipt."""
    return await _receipts_page(visit)


@router.post("/d/{data_set}/receipts")
async def check_receipt(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.OWN_HISTORY))]) -> Response:
    """Whether a receipt was signed here, and what it says."""
    text = visit.form.get("receipt", "")
    checked: dict[str, Any] | None = None
    problem: LapwingError | None = None
    try:
        if not text.strip():
            raise CallRefused("receipt-invalid", "there is no receipt", hint="paste the content of a receipt file")
        checked = await asking.check_receipt(ReceiptBody(receipt=text[:20_000]), visit.call)
    except LapwingError as error:
        problem = seen_of(visit.request, error)
    return await _receipts_page(visit, text=text, checked=checked, problem=problem)


@router.get("/d/{data_set}/receipts/{charge}")
async def receipt(charge: Number, visit: Annotated[DataSetVisit, Depends(visiting_to(Act.OWN_HISTORY))]) -> Response:
    """The receipt of a charge, checked with the server's keys."""
    found = (await asking.receipt(charge, visit.call))["receipt"]
    checked = await asking.check_receipt(ReceiptBody(receipt=receipt_json(found)), visit.call)
    return await _receipts_page(visit, text=receipt_json(found), checked=checked)


async def _receipts_page(
    visit: DataSetVisit, *, text: str = "", checked: dict[str, Any] | None = None, problem: LapwingError | None = None
) -> Response:
    status, signs = 200 if problem is None else status_of(problem), (await asking.described(visit.call))["receipts"]
    return visit.page("receipts.html", status=status, text=text, checked=checked, problem=problem, signs=signs)


def receipt_json(fields: dict[str, Any]) -> str:
    """A receipt as stored in a file."""
    return json.dumps(fields, sort_keys=True, indent=2)
