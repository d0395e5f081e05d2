"""Answers with many groups, days or series: the table comes in pages, the chart stays readable, and nobody is kept out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest

from lapwing.demo import write_demo
from lapwing.interfaces.console.pages.answers import ROWS_MAX
from lapwing.interfaces.console.questions import PageQuestion
from tests.console.visitor import Visitor
from tests.server.under_test import ServerUnderTest

MANY = "SELECT region, sex, birth_year, COUNT(*) AS n FROM patients WHERE birth_year > 2015 GROUP BY 1, 2, 3 ORDER BY n DESC"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Visitor, list[list[object]]]]:
    """Ada before a long answer, and its rows as a program gets them."""
    with ServerUnderTest.over(lambda directory: write_demo(directory, patients=400), tmp_path_factory.mktemp("long")) as server:
        ada = Visitor(server)
        ada.sign_in("ada")
        yield ada, server.ask(MANY, epsilon="0.2").json()["rows"]


def _page(ada: Visitor, number: int | str) -> str:
    reply = ada.get(f"/console/d/{{d}}/answer?q={PageQuestion(MANY, '0.2').token()}&part={number}")
    assert reply.status_code == 200
    return reply.text


def _keys(page: str) -> list[str]:
    return [row.split("</td>")[0].split(">")[-1] for row in page.split("<tbody>")[1].split("</tbody>")[0].split("<tr>")[1:]]


def test_the_pages_of_a_table_are_the_rows_in_their_order(asked: tuple[Visitor, list[list[object]]]) -> None:
    ada, rows = asked
    assert len(rows) > 2 * ROWS_MAX
    pages = [_page(ada, number + 1) for number in range(-(-len(rows) // ROWS_MAX))]
    assert [key for page in pages for key in _keys(page)] == [row[0] for row in rows]
    assert len(_keys(pages[0])) == ROWS_MAX
    assert f"Rows {ROWS_MAX + 1} to {2 * ROWS_MAX} of {len(rows)}" in pages[1]
    assert "part=3" in pages[1] and "part=1&" in pages[1], "links that need no script"
    assert ">Next<" not in pages[-1] and ">Previous<" not in pages[0]
    assert f"{len(rows) - 40:,} left out" in pages[0], "the chart says what it has no room for"


def test_a_page_that_is_not_there_is_the_last_one(asked: tuple[Visitor, list[list[object]]]) -> None:
    ada, rows = asked
    assert _keys(_page(ada, 10**6)) == [row[0] for row in rows[(len(rows) - 1) // ROWS_MAX * ROWS_MAX :]]
    for number in ("0", "-1", "x", "9" * 40):
        assert ada.get(f"/console/d/{{d}}/answer?q={PageQuestion(MANY, '0.2').token()}&part={number}").status_code == 422


def test_files_have_every_row(asked: tuple[Visitor, list[list[object]]]) -> None:
    ada, rows = asked
    files = {form: ada.get(f"/console/d/{{d}}/answer/{form}?q={PageQuestion(MANY, '0.2').token()}") for form in ("csv", "json", "parquet")}
    for form, file in files.items():
        assert file.headers["content-disposition"] == f'attachment; filename="answer.{form}"'
        assert f"answer/{form}?" in _page(ada, 1)
    assert [int(row["n"]) for row in csv.DictReader(io.StringIO(files["csv"].text))] == [row[3] for row in rows]
    assert json.loads(files["json"].content)["rows"] == rows
    table = pq.read_table(io.BytesIO(files["parquet"].content))
    assert table.column("n").to_pylist() == [row[3] for row in rows]
    assert {"n_lo", "n_hi", "n_mark"} <= set(table.column_names)
