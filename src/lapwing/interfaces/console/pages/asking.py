"""The editor: it shows the price during typing, and charges only a price that was on the screen."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from fastapi.responses import Response

from lapwing.errors import LapwingError, Refused, Span
from lapwing.interfaces.console.examples import example
from lapwing.interfaces.console.navigation import data_set_path
from lapwing.interfaces.console.page_routes import FRAGMENT, pages
from lapwing.interfaces.console.prices import PriceView, price_view
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.console.rewrites import Rewrite, rewrites
from lapwing.interfaces.console.visits import DataSetVisit, visiting_to
from lapwing.interfaces.http.failures import seen_of
from lapwing.interfaces.http.identity.rights import Act
from lapwing.interfaces.http.problems import status_of
from lapwing.interfaces.http.routes import asking
from lapwing.interfaces.http.statement_words import statement_words

router = pages()
REWRITES_MAX = 2
EXCERPT_WIDTH = 34
"""Characters of a line that are shown around the position of a refusal."""
_REQUEST = re.compile(r"[A-Za-z0-9]{1,64}")


@dataclass(frozen=True, slots=True)
class Quote:
    """A statement's price before it is asked, or why there is none."""

    question: PageQuestion
    price: PriceView | None = None
    refusal: LapwingError | None = None
    excerpt: str = ""
    """The line of the refusal, with carets under the position."""
    rewritten: tuple[Rewrite, ...] = ()

    @property
    def span(self) -> str:
        """The position of a refusal, for the editor to mark."""
        return "" if self.refusal is None or self.refusal.span is None else f"{self.refusal.span.start} {self.refusal.span.end}"


@router.get("/d/{data_set}/ask")
async def editor(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.EXPLAIN))], q: str = "") -> Response:
    """The editor, with the question in the address, if any."""
    question = PageQuestion.of_token(q) if q else None
    return await editor_page(visit, question, None if question is None else await quote(visit, question))


@router.post("/d/{data_set}/price")
async def price(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.EXPLAIN))]) -> Response:
    """The price of what was typed: for a script only that part of the page, otherwise the whole page."""
    question = PageQuestion.of_form(visit.form)
    if FRAGMENT not in visit.request.headers:
        return await editor_page(visit, question, await quote(visit, question))
    known = await quote(visit, question) if question.sql.strip() else None
    return visit.page("price.html", told=known, may_ask=visit.identity.may(Act.ASK, visit.call.served.data_set_id))


@router.post("/d/{data_set}/ask")
async def ask(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.ASK))]) -> Response:
    """Pay if the price is the one that was on the screen; then redirect to the answer, which has its own address."""
    question = PageQuestion.of_form(visit.form)
    known = await quote(visit, question)
    if known.price is None or visit.form.get("seen", "") != known.price.seen:
        return await editor_page(visit, question, known, status=409, unseen=known.price is not None)
    if known.price.is_large and visit.form.get("meant", "") != known.price.seen:
        return await editor_page(visit, question, known, status=409, unmeant=True)
    address = data_set_path(visit.call.served.data_set_id, "answer", q=question.token())
    request = visit.form.get("request", "")
    try:
        found = await asking.asked(question.body(), visit.call, request if _REQUEST.fullmatch(request) else secrets.token_hex(16))
    except Refused as error:
        return await editor_page(visit, question, _refused(visit, question, error), status=status_of(error))
    return visit.go(address if found is not None else f"{address}&wait=1")


async def editor_page(
    visit: DataSetVisit,
    question: PageQuestion | None,
    known: Quote | None,
    *,
    status: int = 200,
    unseen: bool = False,
    unmeant: bool = False,
) -> Response:
    """The page of the editor. It contains a request name, so that a form that is sent twice is charged once."""
    described = await asking.described(visit.call)
    schema = {name: await _columns(visit, name) for name in described["tables"]}
    return visit.page(
        "ask.html",
        status=status,
        question=question or PageQuestion(""),
        told=known,
        unseen=unseen,
        unmeant=unmeant,
        described=described,
        schema=schema,
        example="" if question is not None and question.sql else await example(visit.call, described["tables"]),
        words=statement_words(),
        may_ask=visit.identity.may(Act.ASK, visit.call.served.data_set_id),
        request_name=secrets.token_hex(16),
    )


async def quote(visit: DataSetVisit, question: PageQuestion) -> Quote:
    """The price of a question, or why it would be refused, with rewrites that would be answered."""
    try:
        return Quote(question, price_view(await asking.explain(question.body(), visit.call)))
    except LapwingError as error:
        known = _refused(visit, question, error)
    found: list[Rewrite] = []
    for candidate in rewrites(question.sql, known.refusal) if known.refusal is not None else ():
        if await priced(visit, PageQuestion(candidate.sql, question.epsilon)) is not None:
            found.append(candidate)
    return Quote(question, None, known.refusal, known.excerpt, tuple(found[:REWRITES_MAX]))


async def priced(visit: DataSetVisit, question: PageQuestion) -> PriceView | None:
    """The price of a question; None if it would be refused."""
    try:
        return price_view(await asking.explain(question.body(), visit.call))
    except LapwingError:
        return None


def _refused(visit: DataSetVisit, question: PageQuestion, error: LapwingError) -> Quote:
    seen = seen_of(visit.request, error)
    return Quote(question, None, seen, "" if seen.span is None else _excerpt(question.sql, seen.span))


def _excerpt(sql: str, span: Span) -> str:
    """The part of the line around a position, short enough for a phone, with carets under it."""
    begins = sql.rfind("\n", 0, span.start) + 1
    line, at = sql[begins:].split("\n", 1)[0].expandtabs(1), span.start - begins
    first = max(0, min(at - EXCERPT_WIDTH // 3, len(line) - EXCERPT_WIDTH))
    piece = "".join(character if character.isprintable() else " " for character in line[first : first + EXCERPT_WIDTH])
    before = ("…" if first else "", "…" if first + EXCERPT_WIDTH < len(line) else "")
    length = max(1, min(span.end - span.start, first + len(piece) - at))
    return f"{before[0]}{piece}{before[1]}\n{' ' * (at - first + len(before[0]))}{'^' * length}"


async def _columns(visit: DataSetVisit, table: str) -> list[str]:
    """Names of a table's columns, for completion."""
    reply: dict[str, Any] = await asking.table(table, visit.call)
    return [row[0] for row in reply["columns"]["rows"]]
