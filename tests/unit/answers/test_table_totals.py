"""The statistics of a version bound the units and rows of its tables, and so what is displayed."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.answers.shown_values import PossibleOutputs, shown
from lapwing.answers.table_totals import BEYOND, TableTotals, bar_confidence, totals_of
from lapwing.answers.value_bounds import Bounds, PossibleAggregates
from lapwing.kernel.facts import Facts
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace
from lapwing.spread import variance
from tests.unit.answers.test_shown_values import CONFIDENCE, Asked, asked, column

EDGES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 30)
UNITS = (400, 150, 90, 60, 50, 30, 20, 10, 5, 1)
"""Units by bin."""


def facts_of(one: Asked, *, rules: int = 2, version: int = 1) -> Facts:
    """The facts of a statement's version under these rules."""
    return replace(one.planned.facts, planning_rules=rules, version=version)


def kept(noisy: tuple[float, ...] = UNITS, *, deviation: float = 0.0, laplace: bool = False, version: int = 1) -> dict[str, Any]:
    """Kept figures of a table."""
    return {
        "edges": list(EDGES[: len(noisy)]),
        "noisy": list(noisy),
        "deviation": deviation,
        "version": version,
        "profiles": {"a": {"laplace": laplace}},
    }


def test_without_noise_the_ends_are_the_units_and_the_rows_that_their_bins_allow() -> None:
    one = asked("SELECT COUNT(*) AS n FROM t")
    assert totals_of({"t": kept()}, facts_of(one)) == {"t": TableTotals(sum(UNITS), sum(map(math.prod, zip(UNITS, EDGES, strict=True))))}


def test_only_statistics_of_this_version_under_the_new_rules_count() -> None:
    facts = facts_of(asked("SELECT COUNT(*) AS n FROM t"))
    assert totals_of({"t": kept(version=2)}, facts) == {}
    assert totals_of({"t": {key: value for key, value in kept().items() if key != "version"}}, facts) == {}
    assert totals_of({"t": kept()}, replace(facts, planning_rules=1)) == {}


@pytest.mark.parametrize(
    "law",
    [DiscreteGaussian(Fraction(30)), DiscreteLaplace(Fraction(25)), DiscreteGaussian(Fraction(1, 2)), DiscreteLaplace(Fraction(1, 2))],
)
def test_ends_hold_and_are_not_far_above(law: DiscreteGaussian | DiscreteLaplace) -> None:
    """With a chance of failure of 10^-5 for both ends together, one failure in 1,000 draws has a chance of 1 %."""
    draws, facts, deviation = np.random.default_rng(6), facts_of(asked("SELECT COUNT(*) AS n FROM t")), math.sqrt(variance(law))
    is_laplace, scale = isinstance(law, DiscreteLaplace), float(law.scale)
    rows = sum(map(math.prod, zip(UNITS, EDGES, strict=True)))
    failures, above = 0, []
    for _ in range(1_000):
        if is_laplace:
            p = 1 - math.exp(-1 / scale)
            noise = draws.geometric(p, len(UNITS)) - draws.geometric(p, len(UNITS))
        else:
            noise = np.round(draws.normal(0, scale, len(UNITS)))
        figures = kept(tuple(float(value) for value in np.array(UNITS) + noise), deviation=deviation, laplace=is_laplace)
        found = totals_of({"t": figures}, facts)["t"]
        failures += found.units < sum(UNITS) or found.rows < rows
        above.append(found.units - sum(UNITS))
    assert failures <= 1
    assert np.mean(above) <= 7 * max(deviation, 1.0) * math.sqrt(len(UNITS)) + 1


def test_bars_make_room_for_the_chance_of_the_ends() -> None:
    assert bar_confidence(Fraction(95, 100)) == Fraction(95, 100) + BEYOND
    assert bar_confidence(1 - BEYOND) is None
    one = asked("SELECT COUNT(*) AS n, AVG(cost) AS a FROM t")
    totals = {"t": TableTotals(20, 50)}
    by_both = PossibleOutputs.of(one.statement, one.planned.facts, units=None, totals=totals, confidence=CONFIDENCE)
    assert by_both.confidence == CONFIDENCE + BEYOND and by_both.values == by_both.bars == (Bounds(Fraction(0), Fraction(20)), Bounds())
    for sure, longer in ((1 - BEYOND, True), (CONFIDENCE, False)):
        cut = PossibleOutputs.of(one.statement, one.planned.facts, units=None, totals=totals, confidence=sure, longer=longer)
        assert cut.confidence == sure and cut.values == by_both.values and cut.bars[0].hi == 1_000
    average = asked("SELECT AVG(cost) AS a FROM t")
    alone = PossibleOutputs.of(average.statement, average.planned.facts, units=None, totals=totals, confidence=CONFIDENCE)
    assert alone.confidence == CONFIDENCE, "nothing is cut, so nothing is made longer"


@pytest.mark.parametrize(
    ("aggregate", "most"),
    [("COUNT(*)", 40), ("COUNT(DISTINCT person)", 40), ("SUM(cost)", 500 * 40), ("COUNT(DISTINCT sex)", 3), ("2 * COUNT(*)", 80)],
)
def test_groups_are_shown_within_the_totals_of_the_table(aggregate: str, most: int) -> None:
    one = asked(f"SELECT g, {aggregate} AS x FROM t GROUP BY g")
    totals = {"t": TableTotals(40, 50)}  # each unit has one row here, so its units bound the rows as well
    possible = PossibleOutputs.of(one.statement, one.planned.facts, units=None, totals=totals, confidence=CONFIDENCE)
    before, declared = one.answers(one.released(10.0**6, 1))
    found = shown(before, one.statement, one.planned.facts, possible).assembled
    values = column(found, "x")
    assert max(values) == most and min(values) == min(column(before, "x"))
    for bar, value in zip(found.intervals["x"], values, strict=True):
        assert bar is not None and 0 <= bar.lo <= value <= bar.hi <= most
    assert (max(column(declared.assembled, "x")) > most) == (aggregate != "COUNT(DISTINCT sex)")


def test_joined_tables_have_no_more_units_than_either() -> None:
    one = asked("SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.person = b.person")
    found = PossibleAggregates.of(one.planned.facts, None, {"t": TableTotals(20, 50)})
    assert found.units_in(one.statement.privates[0].source) == 20
