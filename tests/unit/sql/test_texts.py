"""Functions of text agree with the engine that defines them, on values chosen to differ."""

from __future__ import annotations

import itertools
from fractions import Fraction

import duckdb
import pytest

from lapwing.render import letters
from lapwing.sql.scalars import text_values

TEXTS = [
    "",
    "a",
    "hello",
    "Hello World",
    "  padded\t ",
    "\u00a0nbsp\u00a0",
    "a%b_c",
    "straße",
    "\u0130stanbul",
    "e\u0301a",
    "J10",
    "ab\nab",
]


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def test_letter_case_of_every_character(engine: duckdb.DuckDBPyConnection) -> None:
    characters = [chr(i) for i in range(1, 0x1FFFF) if not 0xD800 <= i <= 0xDFFF]
    rows = engine.execute("SELECT c, upper(c), lower(c) FROM (SELECT unnest(?) AS c)", [characters]).fetchall()
    assert len(rows) == len(characters)
    assert [c for c, up, low in rows if letters.upper(c) != up or letters.lower(c) != low] == []


def test_substrings(engine: duckdb.DuckDBPyConnection) -> None:
    numbers = range(-8, 9)
    for text, start in itertools.product(TEXTS, numbers):
        expected = engine.execute("SELECT substring(?, ?)", [text, start]).fetchone()
        assert expected == (text_values.substring(text, start, None),)
    for text, start, length in itertools.product(["hello", "e\u0301a"], numbers, numbers):
        expected = engine.execute("SELECT substring(?, ?, ?)", [text, start, length]).fetchone()
        assert expected == (text_values.substring(text, start, length),), (text, start, length)


def test_ends_and_spaces(engine: duckdb.DuckDBPyConnection) -> None:
    for text in TEXTS:
        for count in range(-6, 7):
            expected = engine.execute("SELECT left(?, ?), right(?, ?)", [text, count, text, count]).fetchone()
            assert expected == (text_values.left(text, count), text_values.right(text, count)), (text, count)
        expected = engine.execute("SELECT trim(?), ltrim(?), rtrim(?), length(?)", [text] * 4).fetchone()
        assert expected == (
            text_values.trimmed(text, ""),
            text_values.trimmed(text, "LEADING"),
            text_values.trimmed(text, "TRAILING"),
            len(text),
        )


def test_like(engine: duckdb.DuckDBPyConnection) -> None:
    patterns = {"".join(pieces) for size in range(5) for pieces in itertools.product(["%", "_", "a", "b"], repeat=size)}
    texts = {"".join(letters) for size in range(5) for letters in itertools.product("ab\n", repeat=size)}
    pairs = [(text, pattern) for text in sorted(texts) for pattern in sorted(patterns)]
    query = "SELECT t LIKE p FROM (SELECT unnest(?) AS t, unnest(?) AS p)"
    expected = [row[0] for row in engine.execute(query, [[t for t, _ in pairs], [p for _, p in pairs]]).fetchall()]
    compiled = {pattern: text_values.Pattern.read(pattern, None) for pattern in patterns}
    wrong = [(t, p) for (t, p), fits in zip(pairs, expected, strict=True) if compiled[p].matches(t) is not fits]  # type: ignore[union-attr]
    assert wrong == []


def test_like_with_an_escape_character(engine: duckdb.DuckDBPyConnection) -> None:
    for text, pattern in itertools.product(["a%b", "a_b", "axb", "a!b", "a%"], ["a!%b", "a!_b", "a!!b", "%!%", "a!xb"]):
        expected = engine.execute("SELECT ? LIKE ? ESCAPE '!'", [text, pattern]).fetchone()
        read = text_values.Pattern.read(pattern, "!")
        assert read is not None and expected == (read.matches(text),), (text, pattern)
    assert text_values.Pattern.read("a!", "!") is None


def test_numbers_in_text(engine: duckdb.DuckDBPyConnection) -> None:
    numbers = ["7", "+7", "-7", " 7 ", "007", "1.5", "2.5", "-2.5", "-0.4", ".5", "5.", "1e3", "1E-1", "12e-1"]
    for text in (*numbers, "", " ", "x", "7x", "1 2", "--1", "."):
        expected = engine.execute("SELECT TRY_CAST(? AS BIGINT), TRY_CAST(? AS DOUBLE)", [text, text]).fetchone()
        real = text_values.number(text)
        assert expected == (text_values.whole_number(text), None if real is None else float(real)), text


def test_numbers_that_are_not_plain_are_none() -> None:
    """An engine reads some of these; what is no plain decimal number is NULL here, which is said in the reference."""
    assert [text_values.number(text) for text in ("nan", "inf", "0x10", "1_000", "1e9999", "\u0663")] == [None] * 6
    assert text_values.number("1e300") == Fraction(10) ** 300
