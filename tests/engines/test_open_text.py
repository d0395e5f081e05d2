"""Functions of open text over hostile texts: no text raises, DuckDB's own give the same, and time grows with the length and no faster."""

from __future__ import annotations

import time

import duckdb
import pyarrow as pa
import pytest

from lapwing.kernel.domains import OPEN_TEXT_BYTES
from lapwing.kernel.expressions import Function
from lapwing.render.duckdb import DUCKDB
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.render.letters import changed, lower, upper
from tests.support.open_texts import BYTES_MAX, COLUMNS, EXPRESSIONS, expression, texts
from tests.support.sizes import size

ROWS = size("hostile texts")
SCOPE = VisibleColumns(COLUMNS, "t", DUCKDB)


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("texts", pa.table({"s": pa.array(texts(1, ROWS), pa.string())}))
    return connection


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_every_function_is_the_engines_own_on_hostile_texts(engine: duckdb.DuckDBPyConnection, text: str) -> None:
    rendered = render_expression(expression(text), SCOPE)
    compared, differing = engine.execute(
        f"SELECT COUNT(*), COUNT(*) FILTER (WHERE ours IS DISTINCT FROM own) FROM (SELECT {rendered} AS ours, {text} AS own FROM texts t)"
    ).fetchall()[0]
    assert (compared, differing) == (ROWS, 0)


def test_letters_in_another_case_take_up_half_as_much_again_at_most() -> None:
    letters = {chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF}
    assert "".join(sorted(letter for letter in letters if lower(letter) != letter)) == changed(Function.LOWER)[0]
    assert "".join(sorted(letter for letter in letters if upper(letter) != letter)) == changed(Function.UPPER)[0]
    for letter in (*changed(Function.LOWER)[0], *changed(Function.UPPER)[0]):
        forms = {letter}
        while more := {change(form) for form in forms for change in (lower, upper)} - forms:
            forms |= more
        assert all(len(form) == 1 and 2 * len(form.encode()) <= 3 * len(letter.encode()) for form in forms), letter
    assert OPEN_TEXT_BYTES == BYTES_MAX


@pytest.mark.parametrize("text", ["s LIKE '%a%b%c%'", "s ILIKE 'a%b%c'", "SPLIT_PART(s, 'a', 5)", "REGEXP_MATCHES(s, 'ab|ba|bb$')"])
def test_time_grows_with_the_length_and_no_faster(text: str) -> None:
    rendered = render_expression(expression(text), SCOPE)

    def seconds(length: int) -> float:
        connection = duckdb.connect(config={"threads": 1})
        connection.execute(f"CREATE TABLE texts AS SELECT repeat('a', {length}) || i AS s FROM range(4000) r(i)")
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            connection.execute(f"SELECT COUNT({rendered}) FROM texts t").fetchall()
            best = min(best, time.process_time() - started)
        return best

    assert seconds(960) < 40 * seconds(60) + 0.1, "16 times as long"
