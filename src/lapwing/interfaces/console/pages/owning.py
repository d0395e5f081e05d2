"""Pages of owners: see spending, decide proposals, investigate incidents, prepare versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any

from fastapi import Depends
from fastapi.responses import Response, StreamingResponse
from markupsafe import Markup

from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.console.charts.shares import share_bars
from lapwing.interfaces.console.examples import first_questions, quoted_name
from lapwing.interfaces.console.navigation import data_set_path
from lapwing.interfaces.console.page_routes import pages
from lapwing.interfaces.console.prices import DEVIATIONS_AT_95
from lapwing.interfaces.console.visits import DataSetVisit, visiting_to
from lapwing.interfaces.http.identity.rights import Act
from lapwing.interfaces.http.routes import asking, owning
from lapwing.interfaces.http.shapes import Admission, AskedBody, Decision, PreparationBody, ProposalBody

router = pages()
WEEKS_SHOWN = 26
TYPICAL = ("0.05", "0.1", "0.2", "0.5")
"""Epsilons of one question for which the page shows how many questions are left."""
ENTRIES_LOOKED_THROUGH = 1_000
PREPARATION = "owner"
"""The ledger's name for the buyer of what preparation pays for."""


@router.get("/d/{data_set}/spending")
async def spending(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.ALL_HISTORY))]) -> Response:
    """Spending by analyst and by week, and how far the remaining budget goes."""
    report = await owning.report(visit.call)
    entries = (await asking.history(visit.call, ENTRIES_LOOKED_THROUGH))["entries"]
    unit, total = report["loss_unit"], float(report["budget"]["loss"]["total"])
    people = [(_person(one["analyst"]), _share(one[unit], total)) for one in report["by_analyst"]]
    weeks = _by_week(entries, unit, total)
    left = await _questions_left(visit, report["budget"])
    return visit.page(
        "spending.html",
        report=report,
        budget=report["budget"],
        by_person=_bars([one for one in people if one[1]], "Spent by each analyst, as a share of the budget", "people"),
        by_week=_bars(weeks, "Spent in each week, as a share of the budget", "weeks"),
        left=left,
        has_all=report["complete"] and len(entries) < ENTRIES_LOOKED_THROUGH,
    )


def _person(analyst: str | None) -> str:
    return "preparation" if analyst in (None, PREPARATION) else analyst


def _share(amount: str, total: float) -> float:
    return float(amount) / total if total else 0.0


def _bars(shares: Sequence[tuple[str, float]], title: str, name: str) -> Markup | None:
    return Markup(share_bars(shares, title=title, name=name)) if shares else None


def _by_week(entries: Sequence[Mapping[str, Any]], unit: str, total: float) -> list[tuple[str, float]]:
    """Weeks in which something was spent, oldest first."""
    weeks: dict[str, float] = {}
    for entry in reversed(entries):
        year, week, _ = date.fromisoformat(entry["at"][:10]).isocalendar()
        share = _share(entry[unit], total)
        if share:
            weeks[f"{year}, week {week}"] = weeks.get(f"{year}, week {week}", 0.0) + share
    return list(weeks.items())[-WEEKS_SHOWN:]


async def _questions_left(visit: DataSetVisit, budget: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How many counts of a whole table the remaining budget pays for, at some prices; empty if nothing can be priced."""
    if not visit.identity.may(Act.EXPLAIN, visit.call.served.data_set_id):
        return []
    try:
        table = (await asking.described(visit.call))["tables"][0]
        quoted = quoted_name(table)
        told = [
            (price, (await asking.explain(AskedBody(sql=f"SELECT COUNT(*) AS n FROM {quoted}", epsilon=price), visit.call))["values"])
            for price in TYPICAL
        ]
    except (LapwingError, IndexError):
        return []
    rest = 1 - budget["share_spent"]
    return [
        {
            "epsilon": price,
            "table": table,
            "half_width": DEVIATIONS_AT_95 * values["predicted_error"]["n"],
            "share": values["share_of_budget"],
            "count": int(rest / values["share_of_budget"]),
        }
        for price, values in told
        if values["share_of_budget"] > 0
    ]


@router.get("/d/{data_set}/access")
async def access(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.SEE_TERMS))]) -> Response:
    """Who may ask on what terms, and which proposals wait for a second person."""
    return await _access_page(visit)


async def _access_page(visit: DataSetVisit, *, problem: LapwingError | None = None) -> Response:
    name = visit.call.served.data_set_id
    status = 200 if problem is None else 409
    needed = await owning.owner_role_needed(visit.call, "ledger status")
    if needed is not None:
        return visit.page("access.html", status=status, needed=needed, problem=problem, may_decide=visit.identity.may(Act.DECIDE, name))
    terms = await owning.terms(visit.call)
    total = float(terms["budget"]["loss"]["total"])
    analysts = [
        {**one, "limit": None if one["total"] is None else _share(one["total"], total), "used": _share(one["spent"], total)}
        for one in terms.get("analysts", ())
        if one["analyst"] != PREPARATION
    ]
    waiting = [one for one in terms.get("proposals", ()) if one["state"] == "open"]
    done = [one for one in terms.get("proposals", ()) if one["state"] != "open"]
    return visit.page(
        "access.html",
        status=status,
        needed=None,
        terms=terms,
        analysts=analysts,
        waiting=waiting,
        done=done,
        problem=problem,
        may_decide=visit.identity.may(Act.DECIDE, name),
        may_admit=visit.identity.may(Act.ADMIT, name),
        may_propose=visit.identity.may(Act.PROPOSE, name),
    )


@router.post("/d/{data_set}/access/proposals/{number}")
async def decide(number: int, visit: Annotated[DataSetVisit, Depends(visiting_to(Act.DECIDE))]) -> Response:
    """Approve another person's request or proposal and carry it out, or reject it."""
    decision = Decision(reason=_text(visit, "reason"))
    act = owning.approve if visit.form.get("decision") == "approve" else owning.deny
    try:
        await act(number, decision, visit.call)
    except LapwingError as error:
        return await _access_page(visit, problem=error)
    return _to(visit, "access")


@router.post("/d/{data_set}/access/propose")
async def propose(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.PROPOSE))]) -> Response:
    """Propose another budget, for a second person to approve."""
    what = "ceiling" if visit.form.get("what") == "ceiling" else "budget"
    try:
        body = ProposalBody(what=what, epsilon=_text(visit, "epsilon", 100), reason=_text(visit, "reason"))
        await owning.propose(body, visit.call)
    except LapwingError as error:
        return await _access_page(visit, problem=error)
    return _to(visit, "access")


@router.post("/d/{data_set}/access/analysts")
async def admit(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.ADMIT))]) -> Response:
    """Admit an analyst for a share of the budget, or suspend one."""
    analyst, reason = _text(visit, "analyst", 200), _text(visit, "reason")
    try:
        if not analyst:
            raise CallRefused("body-invalid", "enter the name of the analyst")
        if visit.form.get("decision") == "suspend":
            await owning.suspend(analyst, Decision(reason=reason), visit.call)
        else:
            await owning.admit(analyst, Admission(share=_percent(visit.form.get("share", "")), reason=reason), visit.call)
    except LapwingError as error:
        return await _access_page(visit, problem=error)
    return _to(visit, "access")


def _percent(written: str) -> float | None:
    """A share of the budget from percent; an empty field changes nothing."""
    if not written.strip():
        return None
    try:
        share = float(written.strip().rstrip("%")) / 100
    except ValueError:
        raise CallRefused("body-invalid", "the share must be a percentage") from None
    if not 0 < share <= 1:
        raise CallRefused("body-invalid", "the share must be above 0 and at most 100 percent")
    return share


@router.get("/d/{data_set}/incidents")
async def incidents(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.SEE_INCIDENTS))]) -> Response:
    """Whether the data set is closed, why, and what to do."""
    told = await owning.incidents(visit.call)
    may_reopen = visit.identity.may(Act.REOPEN, visit.call.served.data_set_id)
    needed = await owning.owner_role_needed(visit.call, "reopen", "REASON") if may_reopen and told["closed"] else None
    return visit.page("incidents.html", closed=told["closed"], listed=told["entries"], may_reopen=may_reopen, needed=needed)


@router.post("/d/{data_set}/incidents/reopen")
async def reopen(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.REOPEN))]) -> Response:
    """Let analysts ask again."""
    reason = _text(visit, "reason")
    if not reason:
        raise CallRefused("body-invalid", "write what was found and why it is safe to reopen", hint="the ledger keeps the reason")
    await owning.reopen(Decision(reason=reason), visit.call)
    return _to(visit, "incidents")


@router.get("/d/{data_set}/versions")
async def versions(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.SEE))]) -> Response:
    """The stored versions, what preparation left out, and a form to prepare another."""
    kept = (await owning.versions(visit.call))["versions"]
    name = visit.call.served.data_set_id
    may_prepare = visit.identity.may(Act.PREPARE, name)
    losses: dict[int, list[dict[str, Any]]] = {}
    if visit.identity.may(Act.SEE_LOSSES, name):
        newest = kept[-1] if kept else 0
        for number in (newest, newest + 1):  # the next one has a report if its preparation was stopped
            try:
                losses[number] = (await owning.losses(number, visit.call))["losses"]
            except LapwingError:
                continue  # the version was prepared before there were reports
    first = await first_questions(visit.call) if kept and visit.identity.may(Act.ASK, name) else []
    needed = await owning.owner_role_needed(visit.call, "prepare") if may_prepare else None
    return visit.page("versions.html", versions=list(reversed(kept)), losses=losses, may_prepare=may_prepare, first=first, needed=needed)


@router.post("/d/{data_set}/versions")
async def prepare(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.PREPARE))]) -> Response:
    """Write a new version; a script receives the progress, a browser without scripts waits."""
    body = PreparationBody(accept_losses=visit.form.get("accept_losses") == "yes")
    reply = await owning.prepare(body, visit.call, visit.request)
    return reply if isinstance(reply, StreamingResponse) else _to(visit, "versions")


@router.post("/d/{data_set}/versions/{number}/retire")
async def retire(number: int, visit: Annotated[DataSetVisit, Depends(visiting_to(Act.RETIRE))]) -> Response:
    """Delete the rows of a version."""
    await owning.retire(number, visit.call)
    return _to(visit, "versions")


def _text(visit: DataSetVisit, name: str, most: int = 1_000) -> str:
    return visit.form.get(name, "").strip()[:most]


def _to(visit: DataSetVisit, page: str) -> Response:
    return visit.go(data_set_path(visit.call.served.data_set_id, page))
