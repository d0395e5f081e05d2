"""Every statement of the lecture notes, decided; and, next to each, statements that are nearly the same and false."""

from __future__ import annotations

import re

import pytest

from tests.theory.theorems.page import PAGE, rendered
from tests.theory.theorems.registry import STATEMENTS
from tests.theory.theorems.statement import Statement

WRONG = [(item, change) for item in STATEMENTS for change in item.wrong]


@pytest.mark.parametrize("item", STATEMENTS, ids=lambda item: item.name)
def test_the_statement_holds(item: Statement) -> None:
    assert item.check() is True


@pytest.mark.parametrize(("item", "change"), WRONG, ids=[f"{item.name}: {change}" for item, change in WRONG])
def test_a_statement_that_is_nearly_the_same_is_seen_to_be_false(item: Statement, change: str) -> None:
    assert item.check(**item.wrong[change]) is False


def test_the_page_lists_every_statement() -> None:
    assert PAGE.read_text(encoding="utf-8") == rendered(), "run: python -m tests.theory.theorems.page"


def test_names_and_sentences_are_each_there_once() -> None:
    assert len({item.name for item in STATEMENTS}) == len(STATEMENTS) == len({item.says for item in STATEMENTS})
    assert all(item.wrong for item in STATEMENTS)


@pytest.mark.parametrize("item", STATEMENTS, ids=lambda item: item.name)
def test_a_statement_says_where_it_comes_from(item: Statement) -> None:
    notes, _, people = item.source.partition(";")
    assert re.match(r"notes [1-5], ", notes)
    assert all(re.search(r"^notes [1-5], | \d{4}(, .*)?$|^Warner 1965", part.strip()) for part in people.split("; ") if part)
