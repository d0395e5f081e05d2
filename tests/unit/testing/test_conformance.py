"""The project's own list: complete, run for real, and judged by a comparison that can fail."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lapwing.client.answer import Answer
from lapwing.testing.conformance import Outcome, Score, comparable, difference, listed_statements, missed, run_list
from tests.meta.tree import DOCS
from tests.unit.cli.support import run

PAGE = DOCS / "reference" / "conformance.md"
LISTED = listed_statements()


def test_the_list_is_complete_and_in_order() -> None:
    names = [listed.name for listed in LISTED]
    assert names == [f"c{i:02}" for i in range(1, 59)] + [f"r{i:02}" for i in range(1, 22)]
    assert all(listed.sql and not listed.sql.endswith(";") and listed.title for listed in LISTED)
    assert len({listed.sql for listed in LISTED}) == len(LISTED)


def test_the_page_shows_the_list() -> None:
    rows = re.findall(r"^\| `([cr]\d\d)` \| ([^|]+) \| `(.+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(listed.name, listed.title, listed.sql.replace("|", "\\|")) for listed in LISTED]


@pytest.mark.slow
def test_the_command_runs_the_list(tmp_path: Path) -> None:
    ran = run("conformance", "--format", "json", home=tmp_path)
    assert json.loads(ran.out) == {"answered": 58, "refused": 21, "failed": []}
    assert ran.status == 0


def test_failures_are_counted_and_named() -> None:
    outcomes = tuple(Outcome(listed, listed.name not in ("c05", "r03"), "", 0.0) for listed in LISTED)
    assert Score(outcomes).to_dict() == {"answered": 57, "refused": 20, "failed": ["c05", "r03"]}


def test_only_what_is_named_is_run(tmp_path: Path) -> None:
    found = list(run_list(tmp_path, names=["c01", "c58", "r13"]))
    assert [(outcome.listed.name, outcome.passed, outcome.detail) for outcome in found] == [
        ("c01", True, ""),
        ("c58", True, ""),
        ("r13", True, "statement-unsupported"),
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "keys", "wrong"),
    [
        ([("a", 1.0), ("b", 0.0)], [("a", 1.0)], {0}, ""),
        ([("a", 1.0), ("b", None)], [("a", 1.0)], {0}, ""),
        ([("b", 2.0), ("a", 1.0)], [("a", 1.00001), ("b", 2.0)], {0}, ""),
        ([("a", 1.0)], [("a", 1.0), ("b", 2.0)], {0}, "1 of 2"),
        ([("a", 1.0), ("b", 3.0)], [("a", 1.0), ("b", 2.0)], {0}, "1 of 2"),
        ([("a", 1.0), ("b", 7.0)], [("a", 1.0)], {0}, "groups without rows hold something"),
        ([(1.0,), (2.0,)], [(1.0,)], set(), "1 rows too many"),
        ([(None,)], [(0.0,)], set(), "1 of 1"),
        ([("1",)], [(1.0,)], set(), "1 of 1"),
        ([(1.0,)], [(1.0,), (1.0,)], set(), "1 of 2"),
    ],
)
def test_rows_are_compared(ours: Sequence[tuple[Any, ...]], theirs: Sequence[tuple[Any, ...]], keys: set[int], wrong: str) -> None:
    found = difference(ours, theirs, keys=keys)
    assert found.startswith(wrong) and bool(found) == bool(wrong)


def test_values_are_brought_to_one_form() -> None:
    assert comparable(3) == comparable(Decimal("3.0")) == 3.0
    assert comparable(datetime.date(2025, 1, 1)) == comparable(datetime.datetime(2025, 1, 1)) != comparable(datetime.date(2025, 1, 2))
    assert comparable(True) is True and comparable(None) is None and comparable("x") == "x"


def test_an_accuracy_that_was_not_reached_is_noticed() -> None:
    import pyarrow as pa

    from lapwing.catalog import Settings
    from lapwing.kernel.intervals import Interval
    from lapwing.sql.words import Question, read_words

    def judged(sql: str, half: float) -> bool:
        words = read_words(sql, settings=Settings())
        assert isinstance(words, Question)
        answer = Answer.__new__(Answer)
        answer.table, answer.intervals = pa.table({"n": [100.0]}), {"n": [Interval(100 - half, 100 + half)]}
        return missed(answer, words)

    assert not judged("SELECT 1 WITH PRIVACY (error = '5%')", 4.9) and judged("SELECT 1 WITH PRIVACY (error = '5%')", 5.1)
    assert not judged("SELECT 1 WITH PRIVACY (error = 9)", 8.9) and judged("SELECT 1 WITH PRIVACY (error = 9)", 9.1)
    assert not judged("SELECT 1 WITH PRIVACY (epsilon = 1)", 50)
