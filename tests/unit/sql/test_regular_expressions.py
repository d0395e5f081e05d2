"""Regular expressions find what RE2 finds, in time that grows with the text and no faster."""

from __future__ import annotations

import random

import duckdb
import pytest

from lapwing.sql.scalars.regular_expressions import Unreadable, compiled

ATOMS = ("a", "b", "c", "-", ".", "[ab]", "[^a]", r"\d", r"\w", "1", "[a-c1]", "^", "$", r"\.", "é")
SIGNS = ("*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{1,}")


def made(choose: random.Random, depth: int) -> str:
    kind = choose.random()
    if depth == 0 or kind < 0.45:
        return choose.choice(ATOMS)
    if kind < 0.6:
        return made(choose, depth - 1) + made(choose, depth - 1)
    if kind < 0.85:
        return f"({made(choose, depth - 1)}|{made(choose, depth - 1)})"
    return f"(?:{made(choose, depth - 1)}){choose.choice(SIGNS)}"


def nothing_spent(_: int) -> None:
    """Work is not counted."""


def test_matches_are_those_of_re2() -> None:
    choose, engine, compared = random.Random(5), duckdb.connect(), 0
    while compared < 800:
        pattern, text = made(choose, 4), "".join(choose.choice("abc-1 .é") for _ in range(choose.randint(0, 8)))
        try:
            program = compiled(pattern)
        except Unreadable:
            continue
        spans = program.search(text, 0, full=False, spend=nothing_spent)
        whole = program.search(text, 0, full=True, spend=nothing_spent)
        part = "" if spans is None else text[spans[0] : spans[1]]
        sql = "SELECT regexp_matches($t, $p), regexp_full_match($t, $p), regexp_extract($t, $p)"
        assert (spans is not None, whole is not None, part) == engine.execute(sql, {"t": text, "p": pattern}).fetchone(), (pattern, text)
        compared += 1


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a|a|a)+b", "a{1,9}a{1,9}$", "([a-z]+)*x"])
def test_no_pattern_takes_more_than_its_length_for_each_character(pattern: str) -> None:
    work: list[int] = []
    for length in (100, 1_000):
        spent: list[int] = []
        compiled(pattern).search("a" * length + "!", 0, full=False, spend=spent.append)
        work.append(sum(spent))
    assert work[1] <= 11 * work[0]


@pytest.mark.parametrize("pattern", ["(", ")", "a**", "(?=a)", "[a", "[z-a]", r"\b", "a{3,2}", "a{999}", "a" * 501, "(a*)*", "\\", "[[a]]"])
def test_what_is_not_matched_here_is_refused(pattern: str) -> None:
    with pytest.raises(Unreadable):
        compiled(pattern)
