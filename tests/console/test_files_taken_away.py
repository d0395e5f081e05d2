"""A file that is taken away from a page is opened by a program that runs formulas: no text of a row or of a colleague may become one."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.interfaces.console.questions import PageQuestion
from tests.console.visitor import Visitor
from tests.server.under_test import ServerUnderTest

HOSTILE = ('=HYPERLINK("http://x")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "plain", "-12.5", "it's = text")
CATALOGUE = """
format = 1
[dataset]
id = "sheets"
unit = "person"
[budget]
epsilon = 100
delta = "2^-10"
ceiling = { epsilon = 100 }
[tables.t]
source = "t.csv"
unit = "id"
one_row_per_unit = true
rows_max = 100000
[tables.t.columns]
id = { type = "key", of = "integer" }
word = { type = "text" }
"""


def write_sheet(directory: Path) -> None:
    directory.mkdir(parents=True)
    (directory / "lapwing.toml").write_text(CATALOGUE, encoding="utf-8")
    with (directory / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "word"])
        writer.writerows((number, HOSTILE[number % len(HOSTILE)]) for number in range(len(HOSTILE) * 60))


@pytest.fixture(scope="module")
def sheets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    with ServerUnderTest.over(write_sheet, tmp_path_factory.mktemp("sheets")) as under_test:
        yield under_test


def test_no_text_becomes_a_formula(sheets: ServerUnderTest) -> None:
    question = PageQuestion('SELECT word, COUNT(*) AS "=1+1", COUNT(*) - 100000 AS less FROM t GROUP BY word', "20")
    ada = Visitor(sheets)
    ada.sign_in("ada")
    body = {"sql": question.sql, "epsilon": question.epsilon}
    asked = sheets.client.post(f"/v1/data-sets/{sheets.data_set}/ask", json=body, headers={"Authorization": f"Bearer {sheets.keys['ada']}"})
    assert asked.status_code == 200, asked.text
    words = [row[0] for row in asked.json()["rows"]]
    assert set(words) >= set(HOSTILE), "programs get the very words"
    file = ada.get("/console/d/{d}/answer/csv?q=" + question.token())
    assert file.status_code == 200
    header, *rows = csv.reader(io.StringIO(file.text, newline=""))
    cells = [*header, *(cell for row in rows for cell in row)]
    assert [cell for cell in cells if cell[:1] in tuple("=+@\t\r\n")] == []
    assert [cell for cell in cells if cell[:1] == "-" and not _is_number(cell)] == []
    assert {row[0].removeprefix("'") for row in rows} >= set(HOSTILE)
    assert {row[0] for row in rows} >= {"plain", "-12.5", "it's = text"}, "what is no formula is as it was"
    assert all(float(row[header.index("less")]) < 0 for row in rows), "numbers stay numbers"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
