"""What preparation bought serves statements about whole tables: nothing is bought twice, and each version has its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from lapwing.answers.table_totals import totals_of
from lapwing.catalog.facts import PLANNING_RULES
from lapwing.curator.curator import Curator
from lapwing.curator.statistics import tables_without_profiles
from lapwing.data_set import DataSet
from lapwing.demo import write_demo

COUNT = "SELECT COUNT(*) AS n FROM visits"
AVERAGE = "SELECT AVG(cost) AS a FROM visits"


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[DataSet]:
    write_demo(tmp_path / "clinic", patients=3_000)
    catalogue = tmp_path / "clinic" / "lapwing.toml"
    text = catalogue.read_text(encoding="utf-8").replace("{ epsilon = 6 }", "{ epsilon = 60 }")
    catalogue.write_text(text.replace("\nepsilon = 3 ", "\nepsilon = 50 "), encoding="utf-8")
    with Curator(tmp_path / "clinic", home=tmp_path / "home") as curator:
        curator.prepare()
        yield DataSet(curator)


def charges(data: DataSet) -> list[str]:
    """What was charged, the newest first."""
    return [entry.detail for entry in data.history(limit=50) if entry.kind.value == "reserve"]


def test_all_profiles_of_a_table_are_one_charge(clinic: DataSet) -> None:
    assert len(charges(clinic)) == 2, "visits and prescriptions"
    assert all("statistics: rows per unit of" in line for line in charges(clinic))
    assert 0.04 < clinic.curator.budget().share_spent <= 0.05


@pytest.mark.parametrize("sql", [COUNT, "SELECT SUM(cost) AS s FROM visits", "SELECT SUM(v.minutes) AS s FROM visits AS v", AVERAGE])
def test_statements_about_a_whole_table_buy_no_norms(clinic: DataSet, sql: str) -> None:
    explained, before = clinic.explain(sql, epsilon="0.5"), len(charges(clinic))
    assert "norms" not in dict(explained.lines)
    answer = clinic.ask(sql, epsilon="0.5")
    assert len(charges(clinic)) == before + 1 and any("the error bars reach to it" in note for note in answer.notes)
    assert clinic.ask(sql, epsilon="0.5").cost.free


def test_a_count_beside_a_quantile_has_the_bound_of_a_count(clinic: DataSet) -> None:
    explained = dict(clinic.explain("SELECT COUNT(*) AS n, MEDIAN(cost) AS m FROM visits", epsilon="0.5").lines)
    assert explained["bounding"].startswith("quantiles: ranked"), "the last of two"
    mixed = clinic.ask("SELECT COUNT(*) AS n, MEDIAN(cost) AS m FROM visits", epsilon="0.5")
    assert not any("statement of their own" in note for note in mixed.notes)
    assert any("the error bars reach to it" in note for note in mixed.notes)


def test_a_count_beside_a_quantile_of_discovered_groups_says_that_it_is_better_alone(clinic: DataSet) -> None:
    """Both share the bound that suits the quantile: the count lacks many rows, and its bar does not reach to them."""
    mixed = clinic.ask("SELECT drug, COUNT(*) AS n, MEDIAN(dose_mg) AS m FROM prescriptions GROUP BY drug", epsilon="0.5")
    assert any(note.endswith("in a statement of their own, and the bars of the other columns do") for note in mixed.notes)
    for column in ("COUNT(*)", "MEDIAN(dose_mg)"):
        alone = clinic.ask(f"SELECT drug, {column} AS v FROM prescriptions GROUP BY drug", epsilon="0.5")
        assert not any("statement of their own" in note for note in alone.notes)


@pytest.mark.parametrize("sql", [f"{COUNT} WHERE minutes > 30", "SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY clinic_id"])
def test_other_statements_buy_their_own(clinic: DataSet, sql: str) -> None:
    assert "10% of it first buys" in dict(clinic.explain(sql, epsilon="0.5").lines)["norms"]
    before = len(charges(clinic))
    clinic.ask(sql, epsilon="0.5")
    assert len(charges(clinic)) == before + 2


def test_a_price_that_buys_much_better_norms_buys_them(clinic: DataSet) -> None:
    assert "norms" not in dict(clinic.explain(AVERAGE, epsilon="0.5").lines)
    assert "norms" in dict(clinic.explain(AVERAGE, epsilon="30").lines)


def test_an_accuracy_is_reached_by_norms_of_its_own_and_free_again(clinic: DataSet) -> None:
    """A price is solved for from norms that are bought for it; a profile is of one precision, whatever is asked."""
    sql = f"{COUNT} WITH PRIVACY (error = 4000)"
    first = clinic.ask(sql)
    (bar,), value = first.intervals["n"], first.table["n"][0].as_py()
    assert bar is not None
    is_reached = max(bar.hi - value, value - bar.lo) <= 4000
    assert is_reached != any("came out longer than asked for" in note for note in first.notes)
    again = clinic.ask(sql)
    assert not is_reached or (again.cost.free and again.table == first.table and again.intervals == first.intervals)


def test_a_quantile_beside_a_count_is_planned_by_rows(clinic: DataSet) -> None:
    answer = clinic.ask("SELECT COUNT(*) AS n, MEDIAN(minutes) AS m FROM visits", epsilon="1")
    assert answer.table["m"][0].as_py() is not None and answer.table["n"][0].as_py() > 0


def test_another_version_has_other_rows(clinic: DataSet) -> None:
    clinic.prepare(new_version=True)
    assert clinic.curator.profiles() == {} and clinic.curator.contributions()
    assert "norms" in dict(clinic.explain(COUNT, epsilon="0.5").lines)


def test_totals_of_units_are_bounded_by_norms_of_their_own(clinic: DataSet) -> None:
    sql = "SELECT AVG(total) AS a FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) AS q"
    assert "10% of it first buys" in dict(clinic.explain(sql, epsilon="0.5").lines)["norms"]
    answer, before = clinic.ask(sql, epsilon="0.5"), len(charges(clinic))
    (bar,) = answer.intervals["a"]
    path = clinic.curator.path.parent / "visits.parquet"
    ((truth,),) = duckdb.execute(f"SELECT SUM(cost) / COUNT(DISTINCT patient_id) FROM '{path}'").fetchall()
    assert bar is not None and bar.lo <= truth <= bar.hi < 5 * truth
    clinic.ask(sql, epsilon="0.4")
    assert len(charges(clinic)) == before + 1, "the same norms serve another price"


def test_bars_and_values_stay_within_the_units_of_the_version(clinic: DataSet) -> None:
    most = totals_of(clinic.curator.state.statistics(), clinic.curator.facts)["visits"]
    assert 2_500 < most.units < 4_500 < most.rows
    by_group = "SELECT clinic_id, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY clinic_id"
    answer = clinic.ask(by_group, epsilon="0.002")
    values, bars = answer.table["n"].to_pylist(), answer.intervals["n"]
    assert all(bar is not None and 0 <= bar.lo <= value <= bar.hi <= most.units for value, bar in zip(values, bars, strict=True))
    total = clinic.ask(f"SELECT SUM(n) AS s FROM ({by_group}) AS q", epsilon="0.002").table["s"][0].as_py()
    assert total != sum(values), "sums are of what was released"
    clinic.prepare(new_version=True)
    assert totals_of(clinic.curator.state.statistics(), clinic.curator.facts) == {}


def test_a_version_keeps_its_planning_rules(clinic: DataSet, tmp_path: Path) -> None:
    clinic.close()
    with Curator(tmp_path / "clinic", home=tmp_path / "home") as again:
        assert again.facts.planning_rules == PLANNING_RULES and again.profiles()


def test_profiles_are_bought_anew_only_where_the_owner_says_so(clinic: DataSet) -> None:
    before = clinic.curator.budget().share_spent
    clinic.prepare(new_version=True)
    assert tables_without_profiles(clinic.curator) == ["visits", "prescriptions"] and clinic.curator.budget().share_spent == before
    clinic.prepare(profiles=True)
    assert clinic.curator.latest() == 3 and tables_without_profiles(clinic.curator) == []
    assert 0.04 < clinic.curator.budget().share_spent - before <= 0.05
    assert "norms" not in dict(clinic.explain(COUNT, epsilon="0.5").lines)


def test_statistics_from_before_there_were_profiles_stay_until_profiles_are_asked_for(clinic: DataSet) -> None:
    old = {
        table: {name: kept[name] for name in ("edges", "noisy", "deviation")} for table, kept in clinic.curator.state.statistics().items()
    }
    clinic.curator.state.save_statistics(old)
    assert clinic.curator.profiles() == {} and clinic.curator.contributions()
    assert tables_without_profiles(clinic.curator) == ["visits", "prescriptions"]
    clinic.prepare(profiles=True)
    assert clinic.curator.profiles()
