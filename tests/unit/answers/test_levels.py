"""Sub-totals are sums of the released groups, level by level, or are measured apart."""

from __future__ import annotations

from pathlib import Path

import pytest

import lapwing as lw
from lapwing.answers.subtotals import levels_of
from lapwing.demo import write_demo


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> lw.DataSet:
    directory: Path = tmp_path_factory.mktemp("levels")
    write_demo(directory / "clinic", patients=500)
    opened = lw.open(directory / "clinic", home=directory / "home")
    opened.prepare()
    return opened


def test_groups_of_one_level_with_unequally_many_members_are_told_apart() -> None:
    found = levels_of([("a", 1), ("a", 2), ("b", 1), (None, 1)], [(0,), ()], keys=2)
    assert [(level.kept, level.groups, level.members) for level in found] == [
        ((0,), (("a", None),), ((0, 1),)),
        ((0,), (("b", None), (None, None)), ((2,), (3,))),
        ((), ((None, None),), ((0, 1, 2, 3),)),
    ]
    assert levels_of([], [(0,), ()], keys=1) == []


def test_totals_of_few_groups_are_the_sums_of_what_is_released_and_cost_nothing_more(clinic: lw.DataSet) -> None:
    rolled = clinic.ask("SELECT sex, ROUND(COUNT(*)) AS n FROM patients GROUP BY ROLLUP (sex)", epsilon="0.25")
    *groups, total = (row["n"] for row in rolled.table.to_pylist())
    assert len(groups) == 3 and total == sum(groups)
    assert not any("apart" in note for note in rolled.notes)
    plain = clinic.explain("SELECT sex, COUNT(*) FROM patients GROUP BY sex", epsilon="0.25")
    assert plain.cost.rho == rolled.cost.rho


def test_totals_of_many_groups_are_measured_apart_for_the_same_price_and_the_answer_says_so(clinic: lw.DataSet) -> None:
    text = "SELECT region, sex, ROUND(COUNT(*)) AS n, GROUPING(region, sex) AS g FROM patients GROUP BY ROLLUP (region, sex)"
    rolled = clinic.ask(text, epsilon="0.25")
    rows = [tuple(row.values()) for row in rolled.table.to_pylist()]
    leaves = {(region, sex): n for region, sex, n, g in rows if g == 0}
    regions = {region: n for region, _, n, g in rows if g == 1}
    assert len(leaves) == 60 and len(regions) == 20 and len(rows) == 81
    # Three groups are as well added up; sixty are not.
    assert all(n == sum(value for (where, _), value in leaves.items() if where == region) for region, n in regions.items())
    assert any("totals are measured apart" in note for note in rolled.notes)
    plain = clinic.explain("SELECT region, sex, COUNT(*) FROM patients GROUP BY region, sex", epsilon="0.25")
    assert plain.cost.rho == pytest.approx(rolled.cost.rho)
    explained = clinic.explain(text.replace("ROUND(COUNT(*))", "COUNT(*)"), epsilon="0.25").to_dict()
    (total,) = explained["totals_apart"]
    assert total["keys"] == [] and total["groups"] == 1
    assert total["predicted_error"]["n"] == pytest.approx(2 * explained["predicted_error"]["n"], rel=0.01)  # a fifth against four fifths


def test_the_error_bar_of_a_total_is_that_of_independent_noises_or_of_its_own(clinic: lw.DataSet) -> None:
    answer = clinic.ask(
        "SELECT region, sex, COUNT(*) AS n, COUNT(*) * COUNT(*) / COUNT(*) AS again, GROUPING(region, sex) AS g FROM patients"
        " GROUP BY CUBE (region, sex)",
        epsilon=1,
    )
    halves: dict[int, set[int]] = {}
    rows = answer.table.to_pylist()
    for row, interval in zip(rows, answer.intervals["n"], strict=True):
        assert interval is not None and interval.lo <= row["n"] <= interval.hi
        # Bars are cut at 0, never at the upper end: no group can have as many rows as the table may.
        halves.setdefault(row["g"], set()).add(round(interval.hi - row["n"]))
    assert all(len(widths) == 1 for widths in halves.values())
    leaf, by_region, by_sex, total = (halves[g].pop() for g in (0, 1, 2, 3))
    assert abs(by_region - leaf * 3**0.5) <= 3
    # Two levels are measured apart, each for a third of what the groups get.
    for apart in (by_sex, total):
        assert abs(apart - leaf * 3**0.5) <= 3
    # What is computed anew from redrawn noise has about the same error bar.
    redrawn = answer.intervals["again"][-1]
    assert rows[-1]["g"] == 3 and redrawn is not None and redrawn.hi - redrawn.lo == pytest.approx(2 * total, rel=0.2)


def test_averages_of_totals_come_from_sums_not_from_averages(clinic: lw.DataSet) -> None:
    answer = clinic.ask(
        "SELECT sex, AVG(birth_year) AS a, SUM(birth_year) AS s, COUNT(birth_year) AS n FROM patients GROUP BY ROLLUP (sex)",
        epsilon=1,
    )
    total = answer.table.to_pylist()[-1]
    assert total["sex"] is None and 1920 <= total["a"] <= 2020
    assert answer.intervals["a"][-1] is not None and answer.intervals["a"][-1].lo <= total["a"] <= answer.intervals["a"][-1].hi
