"""Several parts in one release: one charge, one name; each part at least as good as if it had been bought alone for its share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import lapwing
from lapwing import Marginals, RangeTree, SyntheticTable
from lapwing.errors import Refused
from lapwing.releases.report import release_html
from lapwing.releases.request import ReleaseRequest
from tests.support.rich_clinic import exact_rows, prepare_rich_clinic

EXACT = "100000000"
PEOPLE = Marginals("sex", "region", ways=2)
YEARS = RangeTree("birth_year", by="sex")
ROWS = SyntheticTable("smoker", "sex", "birth_year", method="pairs", bins={"birth_year": 10})
ALL = (PEOPLE, YEARS, ROWS)
QUESTIONS = [
    "SELECT region, COUNT(*) AS n FROM patients WHERE sex = 'f' GROUP BY region",
    "SELECT sex, COUNT(*) AS n FROM patients WHERE birth_year BETWEEN 1961 AND 1987 GROUP BY sex",
    "SELECT COUNT(*) AS n FROM patients WHERE smoker AND birth_year >= 1980",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_rich_clinic(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module")
def clinic(place: Path) -> Iterator[lapwing.DataSet]:
    with lapwing.open(place / "clinic", home=place / "home") as data_set:
        yield data_set


def bar(release: lapwing.Release, sql: str) -> float:
    found = release.query(sql).intervals["n"][0]
    assert found is not None
    return found.hi - found.lo


def test_all_parts_are_one_charge_and_answer_their_own_questions(clinic: lapwing.DataSet, place: Path) -> None:
    before = {entry.charge_id for entry in clinic.history(limit=1_000)}
    bought = clinic.release(*ALL, name="exact", epsilon=EXACT).run()
    assert len({entry.charge_id for entry in clinic.history(limit=1_000)} - before) == 1
    assert bought.kind == "marginals, tree, synthetic" and bought.columns == ("sex", "region", "birth_year", "smoker")
    for sql in QUESTIONS:
        answer = bought.query(sql)
        found = sorted([tuple(row.values()) for row in answer.table.to_pylist() if row["n"]], key=str)
        assert found == sorted(exact_rows(place, sql), key=str), sql


def test_the_explanation_shows_how_the_price_is_divided(clinic: lapwing.DataSet) -> None:
    plan = clinic.release(*ALL, name="split", epsilon=1, shares=[2, 1, 1])
    explained = plan.explain()
    parts = re.findall(r"(?m)^(\d)\. ([a-z ,]+): ([\d.]+)% of the price \(rho ([\d.e-]+)\)$", explained)
    assert [(number, what, share) for number, what, share, _ in parts] == [
        ("1", "marginals", "50"),
        ("2", "tree of ranges", "25"),
        ("3", "synthetic table, by pairs", "25"),
    ]
    assert sum(float(rho) for *_, rho in parts) == pytest.approx(float(str(plan.cost.rho)), rel=1e-2)
    assert explained.startswith("release split: 3 parts, of patients\nmeasured: ") and "under one charge" in explained


def test_a_part_is_as_good_as_if_it_were_bought_alone(clinic: lapwing.DataSet) -> None:
    together = clinic.release(*ALL, name="together", epsilon="0.9").run()
    alone = [clinic.release(part, name="alone", epsilon="0.5", table="patients").run() for part in ALL]  # less than a third of its rho
    for part, sql in zip(alone, QUESTIONS, strict=True):
        assert bar(together, sql) <= bar(part, sql), sql
    both = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"
    assert bar(together, both) < bar(alone[0], both) * 0.95, "what is measured for the synthetic table serves the marginals too"


def test_it_is_found_opened_and_reused_as_it_was_bought(clinic: lapwing.DataSet, tmp_path: Path) -> None:
    bought = clinic.release(*ALL, name="kept", epsilon="0.7", shares=["1", "0.5", "2"]).run()
    again = clinic.release(*ALL, name="kept", epsilon="0.7", shares=["1", "0.5", "2"])
    assert again.cost.free
    opened = lapwing.open_release(lapwing.save_release(bought, tmp_path / "kept.lapwing"))
    for other in (clinic.release_named("kept"), opened, again.run()):
        assert other.terms.tables == bought.terms.tables
        assert other.table(rows=50).equals(bought.table(rows=50))
        for sql in QUESTIONS:
            assert other.query(sql).to_arrow().equals(bought.query(sql).to_arrow())
    for sql in QUESTIONS:
        assert clinic.ask(sql, epsilon="0.001").cost.free, "the section that has it serves"


def test_synthetic_rows_are_of_the_part_that_wants_them(clinic: lapwing.DataSet) -> None:
    bought = clinic.release(*ALL, name="rows", epsilon=20).run()
    assert bought.is_synthetic and set(bought.table().column_names) == {"sex", "birth_year", "smoker"}
    assert abs(bought.table().num_rows - 2_000) < 50
    page = release_html(bought)
    assert page.count("<svg") == 6 and "birth_year, in nodes of 16" in page and "sex × region" in page and "not good for" in page
    assert "<h3>sex, from the marginals</h3>" in page and "<h3>sex, from the tree of birth_year</h3>" in page


def test_what_no_part_has_is_refused_with_all_reasons(clinic: lapwing.DataSet) -> None:
    bought = clinic.release(*ALL, name="kept", epsilon="0.7", shares=["1", "0.5", "2"]).run()
    with pytest.raises(Refused) as refusal:
        bought.query("SELECT COUNT(*) AS n FROM patients WHERE region = 'northam' AND birth_year = 1981")
    assert refusal.value.code == "release-not-covered" and "; the column 'region' is not part of the release" in str(refusal.value)


@pytest.mark.parametrize(
    ("wanted", "shares"),
    [
        ((), ()),
        ((PEOPLE,) * 17, ()),
        ((PEOPLE, YEARS), (1,)),
        ((PEOPLE, YEARS), (1, 0)),
        ((Marginals("birth_year", ways=1), ROWS), ()),
        ((Marginals("birth_year", ways=1, bins={"birth_year": 5}), ROWS), ()),
    ],
)
def test_parts_that_do_not_go_together_are_refused(clinic: lapwing.DataSet, wanted: tuple[Marginals, ...], shares: tuple[int, ...]) -> None:
    with pytest.raises(Refused) as refusal:
        clinic.release(*wanted, name="no", shares=shares)
    assert refusal.value.code == "release-parts"


@pytest.mark.parametrize("rows", [-1, 100_000_001])
def test_so_many_synthetic_rows_are_refused(clinic: lapwing.DataSet, rows: int) -> None:
    bought = clinic.release(*ALL, name="kept", epsilon="0.7", shares=["1", "0.5", "2"]).run()
    with pytest.raises(Refused) as refusal:
        bought.table(rows=rows)
    assert refusal.value.code == "release-rows"


def test_a_request_of_several_parts_is_read_back_from_its_text() -> None:
    for request in (ReleaseRequest("n", "t", ALL, 3), ReleaseRequest("n", "t", ALL, 3, (Fraction(1), Fraction(1, 2), Fraction(2)))):
        assert ReleaseRequest.of_text(request.text()) == request
    old = 'release n {"table":"t","columns":["a","b"],"bins":{},"rows":1,"kind":"marginals","ways":2}'
    assert ReleaseRequest.of_text(old) == ReleaseRequest("n", "t", (Marginals("a", "b"),)), "texts of releases of one part stay readable"
