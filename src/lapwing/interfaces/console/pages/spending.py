"""Pages about spending: the user's own questions, the budget, and requests for a larger share."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Depends
from fastapi.responses import Response
from markupsafe import Markup
from pydantic import ValidationError

from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.console.charts.block_strip import block_strip, runs_of
from lapwing.interfaces.console.navigation import data_set_path
from lapwing.interfaces.console.page_routes import pages
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.console.visits import DataSetVisit, visiting_to
from lapwing.interfaces.http.failures import seen_of
from lapwing.interfaces.http.identity.rights import Act
from lapwing.interfaces.http.problems import status_of
from lapwing.interfaces.http.routes import asking
from lapwing.interfaces.http.shapes import Number, Wish

router = pages()
ENTRIES_MAX = 500
_STATEMENT = re.compile(r"\s*(select|with|\()", re.IGNORECASE)
_NORMS = re.compile(r"norms [0-9a-f]+: ")
"""The prefix of the ledger's detail for a charge that bought norms to choose bounds."""


@router.get("/d/{data_set}/history")
async def history(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.OWN_HISTORY))]) -> Response:
    """A user's questions and charges, newest first; each question links to its answer."""
    reply = await asking.history(visit.call, ENTRIES_MAX)
    own = [
        _asked(entry, epsilon)
        for entry, epsilon in zip(reply["entries"], reply["epsilons"], strict=True)
        if entry["kind"] == "reserve" and entry["analyst"] == visit.identity.name
    ]
    ended = {entry["charge"]: entry["kind"] for entry in reply["entries"] if entry["kind"] in ("commit", "forfeit", "release")}
    may_ask, signs = visit.identity.may(Act.ASK, visit.call.served.data_set_id), (await asking.described(visit.call))["receipts"]
    return visit.page("history.html", own=own, ended=ended, may_ask=may_ask, signs=signs)


def _asked(entry: dict[str, Any], epsilon: float) -> dict[str, Any]:
    """A charge as a user's question; only statements link to an answer."""
    detail = _NORMS.sub("", entry["detail"], count=1)
    fields = {"at": entry["at"], "charge": entry["charge"], "epsilon": epsilon, "detail": detail}
    of_norms = detail != entry["detail"]
    return fields | {"is_of_norms": of_norms, "is_statement": not of_norms and _STATEMENT.match(detail) is not None}


@router.get("/d/{data_set}/history/{charge}")
async def asked_again(charge: Number, visit: Annotated[DataSetVisit, Depends(visiting_to(Act.ASK))]) -> Response:
    """Redirect to the answer that a charge paid for, by trying the prices that may lead to it."""
    asked = await asking.asked_with(charge, visit.call)
    likely = [PageQuestion(asked["sql"], epsilon) for epsilon in asked["epsilons"]] or [PageQuestion(asked["sql"])]
    if likely[0].says_price:
        likely = [PageQuestion(asked["sql"])]
    found = likely[0]
    for question in likely:
        try:
            await asking.replayed(question.body(), visit.call)
        except LapwingError:
            continue
        found = question
        break
    return visit.go(data_set_path(visit.call.served.data_set_id, "answer", q=found.token()))


@router.get("/d/{data_set}/budget")
async def budget(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.SEE))], requested: bool = False) -> Response:
    """What is spent of the data set's budget and of the user's own share."""
    return await _budget_page(visit, requested=requested)


@router.post("/d/{data_set}/requests")
async def request_more(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.REQUEST))]) -> Response:
    """Ask the owners for a larger share."""
    try:
        wish = Wish(share=float(visit.form.get("percent", "")) / 100, reason=visit.form.get("reason", ""))
    except (ValidationError, ValueError):
        wrong = CallRefused("body-invalid", "the share must be above 0 and at most 100 percent", hint="enter a number such as 25")
        return await _budget_page(visit, problem=wrong, status=422)
    try:
        await asking.request_more(wish, visit.call)
    except LapwingError as error:
        seen = seen_of(visit.request, error)
        return await _budget_page(visit, problem=seen, status=status_of(seen))
    return visit.go(data_set_path(visit.call.served.data_set_id, "budget", requested="true"))


async def _budget_page(visit: DataSetVisit, *, requested: bool = False, problem: LapwingError | None = None, status: int = 200) -> Response:
    view = await asking.budget(visit.call)
    own, unit = view["own"], view["loss_unit"]
    share = None
    if own is not None and own["total"] is not None:
        total, spent = float(own["total"]), float(own["spent"])
        share = {"spent": spent / total if total else 1.0, "of_all": total / float(view["loss"]["total"]), "unit": unit}
    may_request = visit.identity.may(Act.REQUEST, visit.call.served.data_set_id)
    blocks = view.get("blocks")
    return visit.page(
        "budget.html",
        status=status,
        budget=view,
        strip=Markup(block_strip(blocks["newest"], every=blocks["every"], name="blocks")) if blocks and blocks["newest"] else None,
        runs=runs_of(blocks["newest"]) if blocks else [],
        own=own,
        share=share,
        requested=requested,
        problem=problem,
        may_request=may_request,
        percent=visit.form.get("percent", ""),
        reason=visit.form.get("reason", ""),
    )
