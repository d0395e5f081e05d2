"""What is said of an average before it is paid for: close to the error bars that come with it, and from public facts alone."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing

PEOPLE, TOWNS = 12_000, ["ash", "birch", "cedar", "dune"]
CATALOGUE = """
format = 1
[dataset]
id = "people"
unit = "person"
{units}
[budget]
epsilon = 20
[tables.people]
source = "people.parquet"
unit = "person"
one_row_per_unit = true
[tables.people.columns]
person = {{ type = "key" }}
town = {{ type = "text", values = ["ash", "birch", "cedar", "dune"], null = false }}
street = {{ type = "text" }}
wage = {{ type = "integer", min = 0, max = 1000 }}
"""
BY_TOWN = "SELECT town, AVG(wage) AS wage FROM people GROUP BY town"
SAID = re.compile(r"wage: about ±([\d.,]+) at 95% for (?:a group of )?([\d,]+) rows(?:, ±([\d.,]+) for ([\d,]+))?")


def _people(directory: Path, *, units: str) -> Path:
    directory.mkdir()
    numbers = range(PEOPLE)
    columns = {"town": [TOWNS[number % 4] for number in numbers], "street": [f"s{number % 6}" for number in numbers]}
    pq.write_table(
        pa.table({"person": numbers, **columns, "wage": [100 + number % 300 for number in numbers]}), directory / "people.parquet"
    )
    (directory / "lapwing.toml").write_text(CATALOGUE.format(units=units), encoding="utf-8")
    return directory


def _numbers(line: str) -> list[float]:
    found = SAID.fullmatch(line)
    assert found is not None, line
    return [float(part.replace(",", "")) for part in found.groups() if part is not None]


@pytest.mark.parametrize(("sql", "rows"), [(BY_TOWN, 3_000), (BY_TOWN.replace(" GROUP BY town", "").replace("town, ", ""), 12_000)])
def test_an_average_is_predicted_from_the_declared_number_of_units(tmp_path: Path, sql: str, rows: int) -> None:
    with lapwing.open(_people(tmp_path / "d", units=f"units = {PEOPLE}"), home=tmp_path / "home") as data_set:
        data_set.prepare()
        explained = data_set.explain(sql, epsilon="0.5")
        bar, said_rows = _numbers(dict(explained.lines)["average"])
        assert said_rows == rows
        answer = data_set.ask(sql, epsilon="0.5").to_dict()
        widths = [(high - low) / 2 for low, high in answer["intervals"]["wage"]]
        assert 0.6 < bar / median(widths) < 1.7, (bar, widths)
        assert explained.to_dict()["predicted_error"]["wage"] == pytest.approx(bar / 1.96, rel=0.1)


def test_without_a_public_size_round_ones_are_told(tmp_path: Path) -> None:
    with lapwing.open(_people(tmp_path / "d", units=""), home=tmp_path / "home") as data_set:
        data_set.prepare()
        bars = {}
        for epsilon in ("0.5", "2"):
            explained = data_set.explain(BY_TOWN, epsilon=epsilon)
            bar, rows, other, more = _numbers(dict(explained.lines)["average"])
            assert more == 10 * rows and bar == pytest.approx(10 * other, rel=0.1)
            assert bar <= 500 < 10 * bar  # at the first of them, and not at a tenth of it, something is left to see
            assert "wage" not in explained.to_dict()["predicted_error"]  # nothing that could be traded for a price
            bars[epsilon] = bar * rows
        assert bars["0.5"] > 2 * bars["2"]
        found = data_set.explain(BY_TOWN.replace("town", "street"), epsilon="0.5")
        assert SAID.fullmatch(dict(found.lines)["average"])


def test_what_is_said_before_does_not_depend_on_rows(tmp_path: Path) -> None:
    said = []
    for name, people in (("many", PEOPLE), ("few", 40)):
        directory = _people(tmp_path / name, units="units = 12000")
        table = pq.read_table(directory / "people.parquet")
        pq.write_table(table.slice(0, people), directory / "people.parquet")
        with lapwing.open(directory, home=tmp_path / f"home-{name}") as data_set:
            data_set.prepare()
            said.append(str(data_set.explain(BY_TOWN, epsilon="0.5")))
    assert said[0] == said[1]
    assert "average" in said[0]


@pytest.mark.parametrize("units", ["", f"units = {PEOPLE}"])
def test_an_average_without_noise_has_an_error_too(tmp_path: Path, units: str) -> None:
    """At a price so large that the law of its sum has none."""
    with lapwing.open(_people(tmp_path / "d", units=units), home=tmp_path / "home") as data_set:
        data_set.prepare()
        lines = data_set.explain(BY_TOWN, epsilon=10**9).lines
    assert ("noise", "sum for wage: gaussian, ±0 at 95%") in lines, lines
    assert {0.0} == {*_numbers(dict(lines)["average"])[::2]}, lines
