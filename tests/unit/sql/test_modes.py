"""MODE: counts of every value in every group are measured as an answer of their own, and the largest is chosen."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import lapwing as lw
from lapwing.demo import write_demo
from lapwing.errors import Refused
from tests.unit.sql.clinic import bound


def test_the_counts_are_a_query_of_their_own() -> None:
    """Nothing else is measured than what GROUP BY with the value would measure."""
    statement = bound("SELECT region, MODE(sex) FILTER (WHERE smoker) FROM patients WHERE birth_year > 1950 GROUP BY region")
    asked, counts = statement.privates
    (same,) = bound("SELECT region, sex, COUNT(*) FROM patients WHERE birth_year > 1950 GROUP BY region, sex").privates
    assert not asked.aggregates
    assert counts.keys == same.keys and counts.aggregates == same.aggregates
    assert counts.source != same.source, "the FILTER is a condition on its rows"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("groups-by-unit", "SELECT MODE(patient_id) FROM visits"),
        ("groups-by-unit", "SELECT clinic_id, MODE(visit_id) FROM visits GROUP BY clinic_id"),
        ("key-constant", "SELECT MODE(1) FROM visits"),
        ("groups-unsupported", "SELECT region, MODE(sex) FROM patients GROUP BY ROLLUP (region)"),
        ("aggregate-misplaced", "SELECT COUNT(*) FROM (SELECT patient_id, MODE(code) AS m FROM visits GROUP BY patient_id) AS t"),
    ],
)
def test_refused(code: str, text: str) -> None:
    with pytest.raises(Refused) as caught:
        bound(text)
    assert caught.value.code == code


def test_it_is_the_most_frequent_value(tmp_path: Path) -> None:
    """With hardly any noise no value of the group is more frequent than the one that is shown."""
    write_demo(tmp_path / "clinic", patients=400)
    catalogue = tmp_path / "clinic" / "lapwing.toml"
    text = catalogue.read_text(encoding="utf-8")
    text = text.replace("\nepsilon = 3 ", "\nepsilon = 10_000_000 ").replace(
        "ceiling = { epsilon = 6 }", "ceiling = { epsilon = 10_000_000 }"
    )
    catalogue.write_text(text, encoding="utf-8")
    patients = f"'{tmp_path}/clinic/patients.parquet'"
    with lw.open(tmp_path / "clinic", home=tmp_path / "home") as data_set:
        data_set.prepare()
        by_region = "SELECT region, MODE(sex) AS m, MODE(smoker) FILTER (WHERE sex = 'f') AS s FROM patients GROUP BY region"
        answer = data_set.ask(by_region, epsilon=100_000)
        (whole,) = data_set.ask("SELECT MODE(region) AS m FROM patients", epsilon=100_000).table.to_pylist()
    bare = duckdb.connect()
    for column, value, where in (("m", "sex", "TRUE"), ("s", "smoker", "sex = 'f'")):
        found = bare.execute(
            f"SELECT region, {value}, COUNT(*) FROM {patients} WHERE {where} AND {value} IS NOT NULL GROUP BY ALL"
        ).fetchall()
        for row in answer.table.to_pylist():
            counts = {one: many for region, one, many in found if region == row["region"]}
            assert (row[column] is None and not counts) or counts[row[column]] == max(counts.values()), (column, row, counts)
    counts = dict(bare.execute(f"SELECT region, COUNT(*) FROM {patients} WHERE region IS NOT NULL GROUP BY region").fetchall())
    assert counts[whole["m"]] == max(counts.values())
