"""``lapwing release`` in the terminal: plan, buy, ask, write files; and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.unit.cli.conftest import Clinic
from tests.unit.cli.support import ROOT, run

ASKED = ("people", "sex", "smoker", "birth_year=10", "--epsilon", "0.2")


@pytest.fixture(scope="module")
def released(clinic: Clinic) -> Clinic:
    ran = clinic.run("release", "run", *ASKED)
    assert ran.status == 0, ran.err
    assert ran.out.startswith("Released people: ")
    return clinic


def test_the_price_is_shown_first_and_paid_once(released: Clinic) -> None:
    planned = released.run("release", "plan", *ASKED)
    assert planned.status == 0 and "price: nothing, it was bought before" in planned.out
    other = released.run("release", "plan", "others", "sex", "region", "--synthetic", "--method", "pairs", "--epsilon", "0.2")
    assert other.status == 0 and "synthetic table, by pairs" in other.out and "price: epsilon 0.2" in other.out
    again = released.run("release", "run", *ASKED)
    assert again.status == 0 and "free: it was bought before" in again.out
    listed = released.run("release", "list")
    assert listed.status == 0 and listed.out.count("people") == 1 and "sex, smoker, birth_year" in listed.out


def test_it_is_asked_from_the_ledger_and_from_a_file(released: Clinic, tmp_path: Path) -> None:
    sql, file = "SELECT smoker, COUNT(*) AS n FROM patients GROUP BY smoker", tmp_path / "people.lapwing"
    assert released.run("release", "save", "people", str(file)).status == 0
    answers = {
        released.run("release", "query", "people", sql, "--format", "csv").out,
        run("-C", tmp_path / "nowhere", "release", "query", str(file), sql, "--format", "csv", home=tmp_path / "home").out,
    }
    assert len(answers) == 1 and "n_lo" in answers.pop()
    assert released.run("release", "report", str(file), str(tmp_path / "page.html")).status == 0
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
    for ending in ("parquet", "csv"):
        made = released.run("release", "table", str(file), str(tmp_path / f"rows.{ending}"), "--rows", "50")
        assert made.status == 0 and "Wrote 50 synthetic rows" in made.out
    assert pq.read_table(tmp_path / "rows.parquet").column_names == ["sex", "smoker", "birth_year"]
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8").count("\n") == 51


def test_ranges_of_a_column_are_a_tree(released: Clinic) -> None:
    asked = ("years", "birth_year=50", "--tree", "--by", "sex", "--by", "smoker", "--epsilon", "0.2")
    planned = released.run("release", "plan", *asked)
    assert planned.status == 0 and "birth_year (50 leaves), for each sex (3 bins), for each smoker (3 bins)" in planned.out
    assert released.run("release", "run", *asked).status == 0
    answer = released.run("release", "query", "years", "SELECT COUNT(*) AS n FROM patients WHERE smoker AND birth_year < 1920")
    assert answer.status == 0 and "free" in answer.out
    assert "tree" in released.run("release", "list").out


def test_several_parts_are_one_release(released: Clinic) -> None:
    asked = (
        "board",
        "sex",
        "region",
        "--with",
        "birth_year=50 --tree --by sex --branch 8",
        "--with",
        "sex smoker --synthetic --method pairs",
    )
    planned = released.run("release", "plan", *asked, "--share", "2", "--share", "1", "--share", "1", "--epsilon", "0.2")
    assert planned.status == 0 and "1. marginals: 50% of the price" in planned.out and "levels: 1, 7, 50 nodes" in planned.out
    assert "3. synthetic table, by " in planned.out
    ran = released.run("release", "run", *asked, "--epsilon", "0.2")
    assert ran.status == 0 and "cost epsilon 0.2" in ran.out
    assert "marginals, tree, synthetic" in released.run("release", "list").out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("plan", "x", "sex=many"), 2, "is neither a column nor column=bins"),
        (("plan", "x", "sex", "region", "--tree"), 2, "--tree takes one column"),
        (("plan", "x", "sex", "--with", "--tree"), 2, "the further part '--tree' cannot be read"),
        (("plan", "x", "sex", "--with", "sex --method magic"), 2, "cannot be read"),
        (("plan", "x", "sex", "--share", "1", "--share", "1"), 3, "[release-parts]"),
        (("plan", "x", "region", "--tree"), 3, "[axis-bins]"),
        (("plan", "x", "nonsense"), 3, "[release-table]"),
        (("plan", "x", "income"), 3, "[axis-needs-bins]"),
        (("query", "never", "SELECT 1"), 3, "[release-unknown]"),
        (("query", "people", "SELECT COUNT(*) AS n FROM patients WHERE vaccinated"), 3, "[release-not-covered]"),
        (("table", "people", "rows.txt"), 2, "must be a new file"),
        (("report", "people", str(ROOT / "README.md")), 2, "already exists"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_what_cannot_be_is_said(released: Clinic, words: tuple[str, ...], status: int, said: str) -> None:
    ran = released.run("release", *words)
    assert (ran.status, said in ran.err) == (status, True), ran.err


def test_every_option_is_in_the_reference(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    described = page.partition("## `lapwing release`")[2].partition("\n## ")[0]
    names = ["plan", "run", "list", "query", "table", "report", "save"]
    for name in names:
        shown = run("release", name, "--help", home=tmp_path).out
        assert f"`lapwing release {name}" in described
        options = {word.strip(",:") for line in shown.splitlines() for word in line.split()[:2] if word.startswith("--")} - {"--help"}
        assert [option for option in options if f"`{option}" not in described] == [], name
