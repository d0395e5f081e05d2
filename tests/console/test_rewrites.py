"""What a refused statement could be instead: made of what was typed, in a time that grows with the text and not with its square."""

from __future__ import annotations

import time

import pytest

from lapwing.errors import Refused, Span
from lapwing.interfaces.console.rewrites import rewrites

ROWS = Refused("rows-not-aggregates", "rows are not told")
LONG = 30_000


@pytest.mark.parametrize(
    ("sql", "instead"),
    [
        ("  SELECT sex, region FROM patients ; ", "SELECT sex, region, COUNT(*) AS n FROM patients GROUP BY sex, region"),
        ("select sex from patients where smoker\n limit 3", "SELECT sex, COUNT(*) AS n from patients where smoker GROUP BY sex"),
        ("SELECT * FROM patients\nORDER BY sex;", "SELECT COUNT(*) AS n FROM patients"),
        ("SELECT * FROM patients AS x", "SELECT COUNT(*) AS n FROM patients AS x"),
    ],
)
def test_rows_are_counted_instead(sql: str, instead: str) -> None:
    assert [rewrite.sql for rewrite in rewrites(sql, ROWS)] == [instead]


@pytest.mark.parametrize(
    ("sql", "instead"),
    [
        ("SELECT sex, COUNT(*) FROM patients;", "SELECT sex, COUNT(*) FROM patients GROUP BY sex"),
        ("SELECT sex, COUNT(*) FROM patients\nORDER BY 1", "SELECT sex, COUNT(*) FROM patients GROUP BY sex\nORDER BY 1"),
        ("SELECT sex, COUNT(*) FROM patients GROUP BY region", "SELECT sex, COUNT(*) FROM patients GROUP BY sex, region"),
    ],
)
def test_a_key_that_is_missing_is_added(sql: str, instead: str) -> None:
    error = Refused("not-grouped", "it is no key", hint="add it to GROUP BY", span=Span(7, 10, 1, 8))
    assert [rewrite.sql for rewrite in rewrites(sql, error)] == [instead]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sex FROM patients" + " " * LONG + "x",
        "SELECT * FROM patients" + " ;" * (LONG // 2) + "x",
        "SELECT sex" + " " * LONG + "x FROM patients",
        "SELECT " + "sex , " * (LONG // 6) + "! FROM patients",
        "SELECT sex FROM patients WHERE" + " GROUP  " * (LONG // 8) + "x",
        "SELECT sex FROM patients" + "\n \t" * (LONG // 3) + "LIMITED",
    ],
    ids=["spaces", "semicolons", "before", "names", "halves", "nearly"],
)
def test_a_long_text_is_looked_at_quickly(sql: str) -> None:
    """All pages of a worker wait meanwhile. With patterns that look back, the first of these took a day."""
    began = time.perf_counter()
    list(rewrites(sql, ROWS))
    list(rewrites(sql, Refused("not-grouped", "it is no key", hint="add it to GROUP BY", span=Span(7, 10, 1, 8))))
    assert time.perf_counter() - began < 2
