"""The page of refusals: every code that a text alone can be refused with has an example, and the page shows what is printed today.

``LAPWING_WRITE_GOLDEN=1`` writes what is printed into the page.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fractions import Fraction

import pytest

from lapwing.answers.display.refusal_text import render_refusal
from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, Price
from lapwing.sql.text.privacy_words import Question, read_words
from lapwing.sql.text.refusals import span_in
from lapwing.statements import PostProcess, Statement
from tests.meta.codes import scan
from tests.meta.tree import DOCS, ROOT, SOURCE, python_files
from tests.unit.sql.clinic import FACTS, bound

PAGE = DOCS / "reference" / "refusals.md"
_ENTRY = re.compile(
    r"^## `(?P<code>[^`]+)`\n\n(?P<why>.+?)\n\n```sql\n(?P<sql>.*?)\n```\n\n```text\n(?P<shown>.*?)\n```\n", re.MULTILINE | re.DOTALL
)
WITHOUT_EXAMPLE = {
    "parser-compiled": "is about what is installed, not about a statement",
    "dialect-unknown": "an argument of a call, not a text",
    "blocks-open": "depends on the calendar: docs/how-to/blocks-of-time.md",
    "expression-too-deep": "too long to show",
    "list-too-long": "too long to show",
    "statement-too-large": "too long to show",
    "statement-too-long": "too long to show",
    "text-invalid": "a character that cannot be shown",
    "too-many-aggregates": "too long to show",
    "too-many-joins": "too long to show",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One example of the page."""

    code: str
    why: str
    sql: str
    shown: str


ENTRIES = [Entry(**found.groupdict()) for found in _ENTRY.finditer(PAGE.read_text(encoding="utf-8"))]


def refusal(text: str) -> Refused:
    """What a statement is refused with: while its words are read, while it is bound, or while it is planned."""
    statement = Statement(text, (), PostProcess(()))
    with pytest.raises(Refused) as caught:
        words = read_words(text, settings=Settings())
        assert isinstance(words, Question)
        statement = bound(words.statement)
        price = Price(Fraction(1, 100), Fraction(1, 10**9) if FACTS.account is Account.APPROXIMATE else Fraction(0))
        plan_statement(
            statement.privates, FACTS, price, contributions={}, units=None, limits=GroupLimits(10**6, 10**5), finder=GroupFinder(evaluate)
        )
    error = caught.value
    error.span = error.span or span_in(statement, error.code)
    return error


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.code)
def test_the_page_shows_what_is_printed(entry: Entry) -> None:
    error = refusal(entry.sql)
    assert error.code == entry.code
    printed = render_refusal(entry.sql, error)
    if os.environ.get("LAPWING_WRITE_GOLDEN"):
        PAGE.write_text(PAGE.read_text(encoding="utf-8").replace(entry.shown, printed), encoding="utf-8")
        return
    assert printed == entry.shown


def test_every_code_of_the_front_has_an_example_in_order() -> None:
    files = [path for path in python_files(SOURCE) if SOURCE / "sql" in path.parents]
    raised = set(scan({str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}).raised_as)
    codes = [entry.code for entry in ENTRIES]
    assert codes == sorted(set(codes))
    assert sorted(raised - set(codes) - set(WITHOUT_EXAMPLE)) == []
    assert PAGE.read_text(encoding="utf-8").count("\n## ") == len(ENTRIES), "an entry is not of the form the test reads"


def test_every_example_says_why() -> None:
    assert all(len(entry.why) >= 20 and entry.why.endswith((".", "?")) for entry in ENTRIES)
