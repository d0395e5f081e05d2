"""Messy sources as a user meets them: prepared, asked and compared with bare DuckDB on the very files.

What preparation left out and changed is in the owner's report, which is compared with the files; everything else must be inside the error
bars, as often as they say, also what bounds cut off. Every answer is drawn afresh (``benchmarks.reliability.repeated``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.reliability.repeated import make_repeatable

import lapwing
from lapwing.data_set import DataSet
from tests.support.messy_sources import BEYOND, NEVER, ROWS_PER_UNIT_MAX, truth_of_club, truth_of_meters, write_club, write_meters
from tests.support.promises import watched
from tests.support.ranking_keys import write_ranking_key
from tests.support.raw_truth import CLUB, EPSILON, METERS, CoveredAnswers
from tests.support.sizes import size
from tests.unit.cli.support import run


@pytest.fixture(scope="module")
def club(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, DataSet]]:
    """Declared, checked and prepared on the command line, then opened to be asked again and again."""
    directory = tmp_path_factory.mktemp("club")
    write_club(directory, members=size("messy sources, members"))
    write_ranking_key(directory, "messy club")
    home = directory / "home"
    assert run("-C", directory, "check", home=home).status == 0
    prepared = run("-C", directory, "prepare", "--accept-losses", home=home)
    assert prepared.status == 0, prepared.err
    with lapwing.open(directory, home=home) as data:
        make_repeatable(data.curator)
        yield directory, data


def test_a_draft_names_every_file_and_column(tmp_path: Path) -> None:
    write_club(tmp_path, members=10)
    (tmp_path / "lapwing.toml").unlink()
    sources = [tmp_path / "members/*.csv", tmp_path / "visits/*/*/*.parquet", tmp_path / "bought.csv", tmp_path / "halls.csv"]
    made = run("-C", tmp_path, "init", *sources, home=tmp_path / "home")
    assert made.status == 0, made.err
    text = (tmp_path / "lapwing.toml").read_text(encoding="utf-8")
    for word in ("Member No", "Home city", "Born", "Paid", "came", "remark", "article", "district"):
        assert word in text


def test_the_owners_report_accounts_for_every_row_of_the_files(club: tuple[Path, DataSet]) -> None:
    directory, _ = club
    bare = truth_of_club(directory)
    report = json.loads((directory / ".lapwing" / "v000001.report.json").read_text(encoding="utf-8"))
    tables = {table["table"]: table for table in report["tables"]}
    for name, table in tables.items():
        ((kept,),) = bare.execute(f"SELECT COUNT(*) FROM {name}").fetchall()
        assert table["kept"] == kept, name
    assert (tables["visits"]["no_unit"], tables["visits"]["no_parent"]) == (25, 40)
    assert tables["visits"]["beyond_cap"] == (BEYOND - 1) * ROWS_PER_UNIT_MAX
    assert tables["members"]["no_unit"] == 5


def test_error_bars_cover_the_truth_of_the_files(club: tuple[Path, DataSet]) -> None:
    directory, data = club
    answers = CoveredAnswers(data, truth_of_club(directory), CLUB)
    watched("bars of messy files").require(answers, rounds=size("messy sources, rounds"), told=answers.worst)


def test_what_is_cut_off_or_hidden_is_said(club: tuple[Path, DataSet]) -> None:
    _, data = club
    counted = data.ask("SELECT COUNT(*) AS n FROM visits", epsilon=EPSILON)
    assert any("above the bound" in note and "the error bars reach to it" in note for note in counted.notes)
    discovered = data.ask("SELECT remark, COUNT(*) AS n FROM visits GROUP BY remark", epsilon=EPSILON)
    assert any("may be hidden" in note for note in discovered.notes)
    median = data.ask("SELECT kind, MEDIAN(amount) AS q FROM visits GROUP BY kind", epsilon=EPSILON)
    assert any("quantiles are of" in note and "error bars allow for those left out" in note for note in median.notes)


def test_declared_groups_are_shown_and_undeclared_ones_are_of_the_files(club: tuple[Path, DataSet]) -> None:
    directory, data = club
    bare = truth_of_club(directory)
    cities = data.ask("SELECT city, COUNT(*) AS n FROM members GROUP BY city", epsilon=EPSILON).table["city"].to_pylist()
    assert NEVER in cities and None in cities and len(cities) == len(set(cities)) == 9
    remarks = data.ask("SELECT remark, COUNT(*) AS n FROM visits GROUP BY remark", epsilon=EPSILON).table["remark"].to_pylist()
    real = {remark for (remark,) in bare.execute("SELECT DISTINCT remark FROM visits").fetchall()}
    assert set(remarks) <= real and len(remarks) == len(set(remarks))


def test_rows_as_units_too(tmp_path: Path) -> None:
    write_meters(tmp_path, rows=size("messy sources, members"))
    write_ranking_key(tmp_path, "messy meters")
    with lapwing.open(tmp_path, home=tmp_path / "home") as data:
        data.prepare()
        make_repeatable(data.curator)
        answers = CoveredAnswers(data, truth_of_meters(tmp_path), METERS)
        watched("bars of messy rows").require(answers, rounds=size("messy rows, rounds"), told=answers.worst)
