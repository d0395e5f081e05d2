"""Answers: replayed for free, as a chart and a table, or downloaded as files."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Depends, Query
from fastapi.responses import Response

from lapwing.answers.answer import Answer
from lapwing.answers.display.flat_table import flat_csv
from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.console.charts import ChartKind, chart_of, picture_of
from lapwing.interfaces.console.improving import suggestions
from lapwing.interfaces.console.notebooks import notebook
from lapwing.interfaces.console.page_routes import pages
from lapwing.interfaces.console.pages.asking import priced, quote
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.console.visits import DataSetVisit, visiting_to
from lapwing.interfaces.http.formats import FORMATS, JSON, PARQUET
from lapwing.interfaces.http.identity.rights import Act
from lapwing.interfaces.http.routes import asking

router = pages()
ROWS_MAX = 50
"""The rows of an answer on one page; links lead to the others, and files have all of them."""
PART_MAX = 10**6
_REPLAYED = "answered before on this version"
"""The beginning of a note that the page already shows in other words."""
WAIT_MAX = 300
"""How often a page checks for an answer in progress."""


@router.get("/d/{data_set}/answer")
async def answer(
    visit: Annotated[DataSetVisit, Depends(visiting_to(Act.ASK))],
    q: str,
    wait: Annotated[int, Query(ge=0, le=WAIT_MAX)] = 0,
    kind: ChartKind | None = None,
    value: Annotated[str | None, Query(max_length=200)] = None,
    part: Annotated[int, Query(ge=1, le=PART_MAX)] = 1,
) -> Response:
    """An answer that was paid for. Viewing it is free; this page never asks a new question."""
    question = PageQuestion.of_token(q)
    try:
        found = await asking.replayed(question.body(), visit.call)
    except LapwingError as error:
        if error.code != "not-answered-before":
            raise
        return visit.page("answer_missing.html", question=question, q=q, wait=wait, next_wait=min(wait + 1, WAIT_MAX) if wait else 0)
    known = await quote(visit, question)
    fields = await asyncio.to_thread(found.to_dict)
    better = [] if known.price is None else await suggestions(question, fields, known.price, lambda other: priced(visit, other))
    chart = await asyncio.to_thread(chart_of, found, kind=kind, value=value if value in found.intervals else None)
    return visit.page("answer.html", question=question, q=q, told=known, better=better, chart=chart, **_shown(found, fields, part))


@router.get("/d/{data_set}/answer/{form}")
async def answer_file(
    visit: Annotated[DataSetVisit, Depends(visiting_to(Act.ASK))],
    form: str,
    q: str,
    kind: ChartKind | None = None,
    value: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """An answer as a file; ``kind`` and ``value`` choose its chart."""
    if form not in _FILES:
        raise CallRefused("not-found", "an answer has no file of this type")
    question = PageQuestion.of_token(q)
    if form == "ipynb":
        content = notebook(str(visit.request.base_url), visit.call.served.data_set_id, question).encode()
    else:
        found = await asking.replayed(question.body(), visit.call)
        content = await asyncio.to_thread(_content, found, form, kind, value)
    headers = {"Content-Disposition": f'attachment; filename="answer.{form}"'}
    return Response(content, media_type=_FILES[form], headers=headers)


_FILES = {
    "csv": "text/csv; charset=utf-8",
    "ipynb": "application/x-ipynb+json",
    "json": JSON,
    "parquet": PARQUET,
    "svg": "image/svg+xml",
}
"""The types of files, with their media types."""


def _content(found: Answer, form: str, kind: ChartKind | None, value: str | None) -> bytes:
    match form:
        case "svg":
            return picture_of(found, kind=kind, value=value).encode()
        case "csv":
            return flat_csv(found.to_dict(), for_sheets=True).encode()
        case _:
            return FORMATS[_FILES[form]](found)


def _shown(found: Answer, fields: dict[str, Any], part: int) -> dict[str, Any]:
    """A part of the printed table: texts, which columns hold numbers or error bars, and which cells are doubtful."""
    headers, rows = found.cells()
    last = max(-(-len(rows) // ROWS_MAX), 1)
    part = min(part, last)
    some = slice((part - 1) * ROWS_MAX, part * ROWS_MAX)
    right, doubtful = found.right_aligned(), _doubtful(fields)
    columns = [{"name": name, "right": side, "is_bar": name.startswith("± ")} for name, side in zip(headers, right, strict=True)]
    return {
        "columns": columns,
        "rows": [list(zip(row, columns, marks, strict=True)) for row, marks in zip(rows[some], doubtful[some], strict=True)],
        "rows_total": len(rows),
        "first_row": some.start + 1,
        "part_number": part,
        "last_part": last,
        "footnotes": found.footnotes(),
        "notes": [note for note in found.notes if not note.startswith(_REPLAYED)],
        "receipt": found.receipt,
        "summary": found.summary(),
    }


def _doubtful(fields: dict[str, Any]) -> list[list[bool]]:
    """Which of the printed cells are marked, or are error bars of marked cells."""
    columns: list[list[bool]] = []
    for column in fields["columns"]:
        marks = [mark not in (None, "scaled") for mark in fields["marks"].get(column["name"], [None] * len(fields["rows"]))]
        columns += [marks] * (2 if column["name"] in fields["intervals"] else 1)
    return [list(row) for row in zip(*columns, strict=True)]
