"""A statement goes down through the layers, from the interface to asking and its parts, never up again; its text is tokenised once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sqlglot.dialects.dialect import Dialect

import lapwing
from lapwing.audit.lists.conformance import listed_statements
from lapwing.catalog import Settings
from lapwing.data_set import DataSet
from lapwing.demo.write import write_demo
from lapwing.sql.text.privacy_words import Question, read_words

SOURCE = Path(lapwing.__file__).parent
ABOVE = ("interfaces", "audit", "demo", "data_set.py", "owner")
"""Packages and modules above asking."""
COUNT = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
TEXTS = (
    COUNT,
    f"{COUNT} WITH PRIVACY (epsilon = 0.1, confidence = 0.9);",
    f"EXPLAIN PRIVACY {COUNT}",
    f"EXPLAIN PRIVACY {COUNT} WITH PRIVACY (error = 100)",
    f"{COUNT} WITH PRIVACY (error = 1000)",
    "WITH privacy AS (SELECT region FROM patients) SELECT COUNT(*) AS n FROM privacy",
)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataSet]:
    directory = tmp_path_factory.mktemp("one-way")
    write_demo(directory / "clinic", patients=300)
    with lapwing.open(directory / "clinic", home=directory / "home") as data:
        data.prepare(accept_losses=True)
        yield data


def files_entered(act: Callable[[], object]) -> list[str]:
    """The files of ours that are entered while something runs, in order, one entry for each stay."""
    entered: list[str] = []

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(f"{SOURCE}/"):
            name = file[len(f"{SOURCE}/") :]
            if not entered or entered[-1] != name:
                entered.append(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return entered


@pytest.mark.parametrize("text", TEXTS)
def test_no_package_above_asking_is_entered_again(clinic: DataSet, text: str) -> None:
    entered = files_entered(lambda: clinic.ask(text, dialect="postgres"))
    reached = next(number for number, name in enumerate(entered) if name.startswith(("asking/", "curator/")))
    assert entered[:reached] == ["data_set.py"]
    assert [name for name in entered[reached:] if name.partition("/")[0] in ABOVE] == []
    assert {name.partition("/")[0] for name in entered[reached:]} >= {"answers", "asking", "kernel", "ledger", "planning", "sql"}


def test_a_stay_above_would_be_seen(clinic: DataSet) -> None:
    entered = files_entered(lambda: (clinic.ask(COUNT), clinic.check()))
    assert "data_set.py" in entered[1:]


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_is_split_into_tokens_once(clinic: DataSet, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    split: list[str] = []
    tokenize = Dialect.tokenize

    def counted(self: Dialect, sql: str) -> Any:
        split.append(sql)
        return tokenize(self, sql)

    monkeypatch.setattr(Dialect, "tokenize", counted)
    monkeypatch.setattr(clinic.curator, "released_before", lambda _is_same, **_more: ())  # earlier texts are split too, each for itself
    clinic.ask(text)
    assert len([sql for sql in split if "SELECT" in sql]) == 1


def test_tokens_read_with_the_clause_are_those_of_the_statement_alone() -> None:
    compared = 0
    for listed in (one for one in listed_statements() if "PRIVACY" not in one.sql.upper()):
        for ending in (" WITH PRIVACY (epsilon = 1)", "\n-- why\nWITH PRIVACY (error = '5%', confidence = 0.9) /* so */ ;"):
            words = read_words(listed.sql.rstrip("; \n") + ending, settings=Settings())
            assert isinstance(words, Question) and words.tokens is not None
            alone = Dialect.get_or_raise("duckdb").tokenize(words.statement)
            assert [_told(token) for token in words.tokens] == [_told(token) for token in alone]
            compared += 1
    assert compared > 100


def _told(token: Any) -> tuple[Any, ...]:
    return token.token_type, token.text, token.line, token.col, token.start, token.end
