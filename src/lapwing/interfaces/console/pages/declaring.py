"""A first data set by questions: which tables, who is protected, how tables link to them, which values are public, which budget.

The form itself carries the answers, so nothing is stored before the last step, and every step works without a script. Names and types of
columns come from schemas; a proposal that comes from a name or from a database's keys says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends
from fastapi.responses import Response
from markupsafe import Markup

from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.console.charts.shares import share_bars
from lapwing.interfaces.console.navigation import data_set_path
from lapwing.interfaces.console.owner_answers import KINDS, ROW, OwnerAnswers
from lapwing.interfaces.console.page_routes import pages
from lapwing.interfaces.console.visits import TOKEN_FIELD, Visit, signed_in, visiting
from lapwing.interfaces.http.access import AppState
from lapwing.interfaces.http.routes import declaring

router = pages()
STEPS = {
    "file": "Files or tables",
    "who": "Who is protected",
    "links": "Links between tables",
    "values": "Which values",
    "much": "Budget",
    "check": "Check",
}
SUSPICION = 0.1
"""The prior used in the examples: one in ten."""
EPSILONS = ("0.5", "1", "2", "4")
_OWN = frozenset({TOKEN_FIELD, "step", "go"})
_FIELDS: dict[str, tuple[str, ...]] = {
    "file": ("take:",),
    "who": ("whose", "unit", "most"),
    "links": ("link-", "to-", "rows-"),
    "values": ("kind-", "least-", "most-of-", "words-"),
    "much": ("name", "description", "epsilon", "units"),
    "check": (),
}
"""The fields of each question: names, and prefixes of names."""


def highest(suspicion: float, epsilon: float) -> float:
    """The largest posterior of a suspicion after all answers: its odds grow at most by a factor of e to the epsilon."""
    odds = math.exp(epsilon) * suspicion / (1 - suspicion)
    return odds / (1 + odds)


@router.get("/new")
def begin(
    visit: Annotated[Visit, Depends(visiting)], app_state: Annotated[AppState, Depends(declaring.declaring_by(signed_in))]
) -> Response:
    """The first question."""
    return _page(visit, app_state, "file", {})


@router.post("/new")
def go_on(
    visit: Annotated[Visit, Depends(visiting)], app_state: Annotated[AppState, Depends(declaring.declaring_by(signed_in))]
) -> Response:
    """The next question, or the previous one; after the last one, write the catalogue."""
    at = visit.form.get("step", "")
    if at not in STEPS:
        raise CallRefused("body-invalid", "there is no such step")
    said = {name: value for name, value in visit.form.items() if name not in _OWN}
    answers = OwnerAnswers(app_state.new_data, said)
    if visit.form.get("go") == "back":
        return _page(visit, app_state, _neighbour(answers, at, -1), said)
    try:
        if at == "check":
            body = answers.body()
            declaring.declared(body, app_state)
            return visit.go(data_set_path(body.data_set, "versions"))
        _require_answered(app_state, at, answers)
    except LapwingError as error:
        return _page(visit, app_state, at, said, problem=error)
    return _page(visit, app_state, _neighbour(answers, at, 1), said)


def _neighbour(answers: OwnerAnswers, at: str, step: int) -> str:
    """The question after this one, or before it. A single table needs no links."""
    order = list(STEPS)
    place = max(order.index(at) + step, 0)
    if order[place] == "links" and not answers.others:
        place += step
    return order[place]


def _require_answered(app_state: AppState, at: str, answers: OwnerAnswers) -> None:
    """Refuse to continue before a question is answered; steps with enough answers also check them together."""
    if at == "file":
        _ = answers.tables
    elif at == "who":
        _ = answers.people, answers.unit
    elif at == "links":
        declaring.declared(answers.body(only_check=True, keys_alone=True), app_state)
    elif at in ("values", "much"):
        declaring.declared(answers.body(only_check=True), app_state)


def _page(visit: Visit, app_state: AppState, step: str, said: Mapping[str, str], *, problem: LapwingError | None = None) -> Response:
    answers = OwnerAnswers(app_state.new_data, said)
    shown: dict[str, Any] = {"said": said, "step": step, "steps": STEPS, "problem": problem, "answers": answers, "row": ROW}
    if step == "file":
        new_data = app_state.new_data
        databases = [_database(app_state, name) for name in new_data.databases()]
        shown |= {"files": new_data.files(), "folders": new_data.folders(), "databases": databases}
    elif step == "values":
        shown["kinds"] = KINDS
    elif step == "much":
        limits = [(f"epsilon {epsilon}", highest(SUSPICION, float(epsilon))) for epsilon in EPSILONS]
        shown["epsilons"] = [(epsilon, highest(SUSPICION, float(epsilon))) for epsilon in EPSILONS]
        shown["picture"] = Markup(share_bars(limits, title="What a prior of 10% can become", name="suspicion"))
    elif step == "check":
        shown["declared"] = declaring.declared(answers.body(only_check=True), app_state)
    shown["carried"] = {name: value for name, value in said.items() if not _is_of(step, name)}
    return visit.page("declare.html", status=200 if problem is None else 409, **shown)


def _database(app_state: AppState, name: str) -> tuple[str, list[str], LapwingError | None]:
    """A database with its tables, or with its error."""
    try:
        return name, app_state.new_data.tables(name).names, None
    except LapwingError as error:
        return name, [], error


def _is_of(step: str, field: str) -> bool:
    """Whether a field is one of this question's."""
    return any(field == name or (name[-1] in "-:" and field.startswith(name)) for name in _FIELDS[step])
