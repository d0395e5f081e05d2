"""What an owner answers about columns, and what becomes of it: kinds that fit the types of the source, words with commas, full columns."""

from __future__ import annotations

import csv
import html
import re
import tomllib
from collections.abc import Iterator
from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.demo import write_demo
from lapwing.interfaces.http.configuration import NewDataSettings
from tests.console.visitor import Visitor
from tests.server.under_test import ServerUnderTest

WORDS = ["Washington, D.C.", 'the "Hill"', " leading blank", "plain", '"all in quotes"']
TYPED = """Washington, D.C.\r
the "Hill"\r
" leading blank"\r
  plain  \r
\r
\"\"\"all in quotes\"\"\"\r
plain"""


@pytest.fixture(scope="module")
def olga(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """An owner before a server with a CSV file and a Parquet file whose columns hold times."""
    home = tmp_path_factory.mktemp("declared")
    (home / "files").mkdir()
    first = datetime(2024, 3, 1, 12, 30)
    for name in ("loans.csv", "late.csv"):  # a file is of one data set
        with (home / "files" / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["Reader", "Taken", "City"])
            writer.writerows([number, first + timedelta(hours=number), WORDS[number % len(WORDS)]] for number in range(60))
    days = [date(2024, 1, 1) + timedelta(number) for number in range(60)]
    moments = pa.array([first + timedelta(hours=number) for number in range(60)], pa.timestamp("us"))
    pq.write_table(pa.table({"reader": range(60), "seen": moments, "day": days}), home / "files" / "typed.parquet")
    settings = NewDataSettings(sources="files")
    with ServerUnderTest.over(lambda directory: write_demo(directory, patients=50), home, new_data=settings) as server:
        visitor = Visitor(server)
        visitor.sign_in("olga")
        yield visitor


def _said(name: str, file: str, **columns: dict[str, str]) -> dict[str, str]:
    """The answers to all questions about one file, by what is said of each column."""
    table = file.partition(".")[0]
    said = {f"take:file:{file}": "yes", "whose": f"{table}.reader", "unit": "reader", "most": "1", "name": name, "epsilon": "2"}
    for column, fields in columns.items():
        said |= {f"{field}-{table}-{column}": value for field, value in fields.items()}
    return said


def _sent(visitor: Visitor, said: dict[str, str], step: str) -> tuple[int, str]:
    reply = visitor.post("/console/new", {**said, "form_token": visitor.token(), "step": step, "go": "next"})
    return reply.status_code, html.unescape(reply.text)


TIMES = {"kind": "moment", "least": "2024-01-01", "most-of": "2024-12-31"}
CITY = {"kind": "list", "words": TYPED}


def test_the_kind_that_a_type_says_is_proposed(olga: Visitor) -> None:
    status, page = _sent(olga, _said("typed", "typed.parquet"), "who")
    assert status == 200
    proposed = re.findall(r'name="kind-typed-(\w+)">.*?value="([\w-]+)" selected', page, re.DOTALL)
    assert proposed == [("seen", "moment"), ("day", "date")]


def test_a_kind_that_the_type_cannot_be_is_refused_where_it_was_said(olga: Visitor) -> None:
    said = _said("typed", "typed.parquet", seen={"kind": "yes-no"}, day={"kind": "skip"})
    status, page = _sent(olga, said, "values")
    assert status == 409 and 'name="step" value="values"' in page
    assert "typed.seen: a column that holds timestamps cannot be read as boolean" in page
    assert olga.server.call("GET", "/v1/data-sets/typed", by="olga").status_code == 404


def test_words_stand_on_lines_and_keep_their_commas(olga: Visitor) -> None:
    said = _said("cities", "loans.csv", taken=TIMES, city=CITY)
    assert _sent(olga, said, "check")[0] == 303
    written = tomllib.loads((olga.server.home / "catalogues" / "cities" / "lapwing.toml").read_text())
    columns = written["tables"]["loans"]["columns"]
    assert columns["city"]["values"] == WORDS
    assert columns["taken"]["min"] == datetime(2024, 1, 1)
    assert columns["taken"]["max"] == datetime(2024, 12, 31, 23, 59, 59, 999_999)
    # Back and on again, the field holds what was typed.
    reply = olga.post("/console/new", {**said, "form_token": olga.token(), "step": "much", "go": "back"})
    field = re.search(r'<textarea name="words-loans-city".*?>\n(.*?)</textarea>', reply.text, re.DOTALL)
    assert field is not None and html.unescape(field[1]).splitlines() == TYPED.splitlines()
    assert olga.server.call("POST", "/v1/data-sets/cities/versions", by="olga", json={}).status_code == 201
    assert olga.server.call("GET", "/v1/data-sets/cities/versions/1/losses", by="olga").json() == {"losses": []}


def test_words_with_commas_on_one_line_are_not_taken_for_one(olga: Visitor) -> None:
    for words, status in (("north, south", 409), ('"north, south"', 200)):
        said = _said("commas", "loans.csv", taken={"kind": "skip"}, city={"kind": "list", "words": words})
        assert _sent(olga, said, "values")[0] == status, words


def test_a_column_that_would_be_empty_stops_the_preparation_before_anything_is_charged(olga: Visitor) -> None:
    taken = TIMES | {"kind": "date"}
    assert _sent(olga, _said("emptied", "late.csv", taken=taken, city=CITY), "check")[0] == 303
    reply = olga.post("/console/d/emptied/versions", {"form_token": olga.token()})
    worry = "than half of the values of late.taken would become NULL"
    assert reply.status_code == 409 and worry in reply.text and "rows-lost" in reply.text
    page = olga.get("/console/d/emptied/versions").text
    assert "Version 1 is not prepared" in page and worry in page
    assert re.search(r"<code>taken</code>: 60 could not be read, NULL now <strong[^>]*>most of the column</strong>", page)
    assert olga.server.call("GET", "/v1/data-sets/emptied/versions", by="olga").json() == {"versions": []}
    ada = Visitor(olga.server)
    ada.sign_in("ada")
    assert worry not in ada.get("/console/d/emptied/versions").text
    accepted = olga.post("/console/d/emptied/versions", {"form_token": olga.token(), "accept_losses": "yes"})
    assert accepted.status_code == 303
    page = olga.get("/console/d/emptied/versions").text
    assert "is not prepared" not in page and "most of the column" in page
