"""A tree of ranges as a user has it: planned, bought, asked for ranges and spans of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import lapwing
from lapwing import RangeTree
from lapwing.errors import Refused
from lapwing.kernel.domains import IntegerDomain
from lapwing.releases.report import release_html
from lapwing.releases.request import ReleaseRequest
from lapwing.releases.tree.axes import leaf_width, tree_axes
from lapwing.releases.tree.range_tree import tree_widths
from tests.support.rich_clinic import exact_rows, prepare_rich_clinic

EXACT = "100000000"
YEARS = RangeTree("birth_year", by="sex")
INCOMES = RangeTree("income", bins=100)
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM patients",
    "SELECT COUNT(*) AS n FROM patients WHERE birth_year BETWEEN 1961 AND 1987",
    "SELECT sex, COUNT(*) AS n FROM patients WHERE birth_year > 1981 GROUP BY sex",
    "SELECT birth_year // 10 AS decade, COUNT(*) AS n FROM patients GROUP BY decade",
    "SELECT sex, birth_year // 25 AS span, COUNT(*) AS n FROM patients WHERE birth_year % 2 = 0 GROUP BY sex, span",
    "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex",
    "SELECT SUM(birth_year) AS n FROM patients WHERE sex = 'f'",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_rich_clinic(tmp_path_factory.mktemp("ranges"))


@pytest.fixture(scope="module")
def clinic(place: Path) -> Iterator[lapwing.DataSet]:
    with lapwing.open(place / "clinic", home=place / "home") as data_set:
        yield data_set


def truth(place: Path, sql: str) -> list[tuple[object, ...]]:
    return sorted(exact_rows(place, sql), key=str)


def test_without_noise_that_counts_free_answers_are_the_bare_engines(clinic: lapwing.DataSet, place: Path) -> None:
    bought = clinic.release(YEARS, name="exact", epsilon=EXACT).run()
    for sql in QUESTIONS:
        found = sorted([tuple(row.values()) for row in bought.query(sql).table.to_pylist() if row["n"]], key=str)
        assert found == [row for row in truth(place, sql) if row[-1]], sql


def test_null_is_counted_beside_the_tree(clinic: lapwing.DataSet, place: Path) -> None:
    bought = clinic.release(INCOMES, name="money", epsilon=EXACT).run()
    edge = float(bought.sections[0].axes[-1].spans()[40][0])
    for sql in ("SELECT COUNT(*) AS n FROM patients WHERE income IS NULL", f"SELECT COUNT(*) AS n FROM patients WHERE income < {edge}"):
        assert bought.query(sql).table.to_pylist() == [{"n": truth(place, sql)[0][0]}]
    plan = clinic.release(INCOMES, name="money", epsilon=EXACT).explain()
    assert "income (100 leaves, and NULL)" in plan and "bought before" in plan
    assert truth(place, QUESTIONS[0])[0][0] == bought.query(QUESTIONS[0]).table["n"][0].as_py()


def test_a_tree_is_explained_bought_once_and_found_again(clinic: lapwing.DataSet, tmp_path: Path) -> None:
    plan = clinic.release(YEARS, name="years", epsilon="0.5")
    explained = plan.explain()
    assert "birth_year (101 leaves), for each sex (3 bins)" in explained and "levels: 1, 2, 7, 26, 101 nodes" in explained
    ranges = {int(n): (float(a), float(b)) for n, a, b in re.findall(r"(?m)^  (\d+) lea\w+: ([\d.]+) \(([\d.]+)\)$", explained)}
    assert ranges[1][0] > ranges[1][1] and ranges[50][0] < ranges[50][1] / 2, "long ranges are what a tree is for"
    bought = plan.run()
    assert (bought.kind, bought.columns, bought.is_synthetic) == ("tree", ("sex", "birth_year"), False)
    found, opened = clinic.release_named("years"), lapwing.open_release(lapwing.save_release(bought, tmp_path / "years.lapwing"))
    for other in (found, opened, clinic.release(YEARS, name="years", epsilon="0.5").run()):
        assert other.terms.tables == bought.terms.tables
        for sql in QUESTIONS:
            assert other.query(sql).to_arrow().equals(bought.query(sql).to_arrow())
    assert [one.kind for one in clinic.releases() if one.name == "years"] == ["tree"]


MEDIANS = [
    "SELECT MEDIAN(birth_year) AS n FROM patients",
    "SELECT sex, quantile_disc(birth_year, 0.25) AS n FROM patients GROUP BY sex",
    "SELECT sex, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY birth_year) AS n FROM patients WHERE birth_year > 1950 GROUP BY sex",
    "SELECT birth_year // 25 AS span, MEDIAN(birth_year) FILTER (WHERE sex = 'f') AS n FROM patients GROUP BY span",
]


def test_quantiles_are_read_off_with_intervals(clinic: lapwing.DataSet, place: Path) -> None:
    years, money = clinic.release(YEARS, name="years", epsilon="2").run(), clinic.release(INCOMES, name="money", epsilon="2").run()
    with duckdb.connect() as exact:
        exact.execute(f"CREATE VIEW patients AS FROM '{place / 'clinic' / 'patients.parquet'}'")
        for release, sql in [*((years, sql) for sql in MEDIANS), (money, "SELECT MEDIAN(income) AS n FROM patients")]:
            answer = release.query(sql, confidence=0.9999)
            truth = {row[:-1]: row[-1] for row in exact.execute(sql).fetchall()}
            for row, bar in zip(answer.table.to_pylist(), answer.intervals["n"], strict=True):
                *key, value = row.values()
                assert (bar is None) == (value is None), "withheld where there is nothing but noise"
                assert bar is None or (bar.lo <= truth[tuple(key)] <= bar.hi and bar.lo <= value <= bar.hi), (sql, row)
            assert any(bar is not None and bar.hi - bar.lo < 40_000 for bar in answer.intervals["n"])


def test_quantiles_serve_where_they_are_at_least_as_good_in_ranks(clinic: lapwing.DataSet) -> None:
    clinic.release(YEARS, name="years", epsilon="2").run()
    clinic.release(INCOMES, name="money", epsilon="2").run()
    served = clinic.ask(MEDIANS[0], epsilon="0.05")
    assert served.cost.free and served.intervals["n"][0] is not None
    assert re.search(r"noise +within [\d.,]+ ranks at 95%", str(clinic.explain(MEDIANS[0], epsilon="0.05")))
    assert clinic.explain(MEDIANS[0], epsilon="0.05").to_dict()["served_by"] in {"years", "exact", "bars"}
    spans = "SELECT MEDIAN(income) AS n FROM patients"
    assert not clinic.explain(spans, epsilon="0.05").cost.free, "leaves of several values do not stand for single ones by themselves"
    assert clinic.explain(spans, epsilon="0.05", reuse="only").cost.free


def test_error_bars_are_as_planned(clinic: lapwing.DataSet) -> None:
    plan = clinic.release(RangeTree("birth_year"), name="bars", epsilon="0.5")
    half = float(re.findall(r"(?m)^  50 leaves: ([\d.]+)", plan.explain())[0])
    bar = plan.run().query("SELECT COUNT(*) AS n FROM patients WHERE birth_year BETWEEN 1940 AND 1989").intervals["n"][0]
    assert bar is not None and (bar.hi - bar.lo) / 2 == pytest.approx(half, rel=0.3)


def test_the_page_and_synthetic_rows_are_of_leaves(clinic: lapwing.DataSet) -> None:
    bought = clinic.release(YEARS, name="years", epsilon="0.5").run()
    page = release_html(bought)
    assert page.count("<svg") == 2 and "birth_year, in nodes of 16" in page and "birth_year, in leaves" in page
    rows = bought.table(rows=500)
    assert rows.column_names == ["sex", "birth_year"] and rows.num_rows == 500


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT MEDIAN(birth_year + 1) AS n FROM patients", "a tree has only quantiles of its own column"),
        ("SELECT MAX(birth_year) AS n FROM patients", "MAX"),
        ("SELECT quantile_cont(birth_year, 1) AS n FROM patients", "greatest value"),
        ("SELECT MEDIAN(birth_year) AS n FROM patients WHERE smoker", "'smoker' is not part of the release"),
        ("SELECT COUNT(*) AS n FROM patients WHERE smoker", "'smoker' is not part of the release"),
    ],
)
def test_what_a_tree_does_not_answer_is_refused(clinic: lapwing.DataSet, sql: str, reason: str) -> None:
    bought = clinic.release(YEARS, name="years", epsilon="0.5").run()
    with pytest.raises(Refused, match=reason) as refusal:
        bought.query(sql)
    assert refusal.value.code == "release-not-covered" and not bought.covers(sql)


@pytest.mark.parametrize(
    ("code", "column", "options"),
    [
        ("release-branch", "birth_year", {"branch": 1}),
        ("release-branch", "birth_year", {"branch": 65}),
        ("release-columns", "birth_year", {"by": "birth_year"}),
        ("release-columns", "birth_year", {"bins": {"sex": 2}}),
        ("release-ways", "birth_year", {"by": ("sex", "region", "smoker", "vaccinated")}),
        ("unknown-column", "nonsense", {}),
        ("axis-needs-bins", "income", {}),
        ("axis-bins", "income", {"bins": 5_000}),
        ("axis-bins", "region", {}),
        ("axis-bins", "sex", {"by": "smoker"}),
        ("axis-unknown", "patient_id", {}),
    ],
)
def test_what_is_no_tree_is_refused(clinic: lapwing.DataSet, code: str, column: str, options: dict[str, object]) -> None:
    with pytest.raises(Refused) as refusal:
        clinic.release(RangeTree(column, **options), name="no", table="patients")  # type: ignore[arg-type]
    assert refusal.value.code == code


def test_levels_have_limits() -> None:
    domain = IntegerDomain(0, 5_000, False)
    with pytest.raises(Refused, match="more branches") as refusal:
        tree_axes("x", domain, branch=4, bins=None)
    assert refusal.value.code == "axis-bins"
    axes = tree_axes("x", domain, branch=16, bins=None)
    assert [leaf_width(axis, axes[-1]) for axis in axes] == list(tree_widths(5_001, branch=16))


def test_a_request_is_read_back_from_its_text() -> None:
    for wanted in (YEARS, INCOMES, RangeTree("x", ["a", "b"], branch=8, bins={"x": ["0.5", 7], "a": 3})):
        request = ReleaseRequest("n", "t", (wanted,), 3)
        assert ReleaseRequest.of_text(request.text()) == request
