"""Profiles that preparation buys: which, what they serve, and what versions without them do."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import pytest

from lapwing.contribution.dominance import most_beyond, rows_needed, table_within
from lapwing.contribution.histograms import histogram_of, name_of, norms_of, norms_of_rows
from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from lapwing.kernel.accounting import LOSS_UNITS, Account
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain, TextDomain
from lapwing.kernel.expressions import Column, not_null
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import (
    Filter,
    GridSum,
    KnownGroups,
    PerUnit,
    Plan,
    Relation,
    RowCount,
    Scan,
    UnitAggregate,
    UnitAggregateKind,
    UnitCount,
    UnitJoin,
    UnitNorms,
)
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.release import NoisyColumn, NoisyTable, Released
from lapwing.kernel.stability import shape_of
from lapwing.planning.profiles import PROFILES_MAX, profile_figures, profile_plan, profiles_of

COLUMNS: dict[str, Domain] = {
    "cost": RealDomain(Fraction(0), Fraction(5000), nullable=True, steps=100),
    "minutes": IntegerDomain(0, 480, nullable=False),
    "hour": IntegerDomain(0, 23),
    "region": TextDomain(values=("north", "south")),
}
TABLE = TableFacts(COLUMNS, rows_per_unit_max=40, rows_max=10**6)
ONE_ROW = TableFacts({"born": IntegerDomain(1900, 2020)}, rows_per_unit_max=1, rows_max=10**5)
FACTS = Facts("shop", 3, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"visits": TABLE, "people": ONE_ROW}, {}, planning_rules=2)
BEFORE = replace(FACTS, planning_rules=1)
VISITS = Scan("visits", 40)
COST = GridSum(Column("cost"), Fraction(0), Fraction(5000), 100)
MINUTES = GridSum(Column("minutes"), Fraction(0), Fraction(480), 1)


def norms(measure: RowCount | UnitCount | GridSum, *, cells: int | None = None, facts: Facts = FACTS) -> UnitNorms:
    return norms_of(VISITS, (), measure, shape_of(VISITS, facts), cells=cells, rules=facts.planning_rules)


def released(plan: Plan) -> Released:
    """Some release of a plan: bins that fall by a third."""
    tables = []
    for query in plan.queries:
        assert isinstance(query.groups, KnownGroups)
        groups = query.groups.groups
        values = tuple(int(9_000 * 0.66**place) for place in range(len(groups)))
        column = NoisyColumn("units", values, DiscreteGaussian(Fraction(9)), Fraction(1), Fraction(0))
        tables.append(NoisyTable(("bin",), groups, (column,), None, 10**6))
    return Released("digest", tuple(tables))


def test_rows_and_each_measure_are_profiled_for_what_one_histogram_cost() -> None:
    plan = profile_plan("visits", FACTS, loss=Fraction(1, 100))
    measured = [query.source.measure for query in plan.queries if isinstance(query.source, UnitNorms)]
    assert measured == [COST, RowCount(not_null(Column("cost"))), MINUTES], "an hour is a key"
    assert len(plan.queries) == 4
    assert 0.99 / 100 < Fraction(certify(plan, FACTS).cost.loss, LOSS_UNITS) <= Fraction(1, 100)


def test_a_table_of_many_columns_has_a_few_profiles() -> None:
    wide = replace(TABLE, columns={f"c{number}": IntegerDomain(0, 10**6, nullable=False) for number in range(40)})
    plan = profile_plan("visits", replace(FACTS, tables={"visits": wide}), loss=Fraction(1, 100))
    assert len(plan.queries) == PROFILES_MAX


def figures() -> dict[str, object]:
    """As they are kept: through JSON."""
    found = profile_figures("visits", FACTS, released(profile_plan("visits", FACTS, loss=Fraction(1, 100))))
    kept: dict[str, object] = json.loads(json.dumps(found))
    return kept


def test_profiles_are_found_by_the_norms_of_a_statement() -> None:
    found = profiles_of({"visits": figures()}, FACTS)
    assert set(found) == {name_of(norms(measure)) for measure in (RowCount(), COST, RowCount(not_null(Column("cost"))), MINUTES)}
    rows = found[name_of(norms_of_rows(VISITS, FACTS))]
    assert rows.edges[-1] == 40.0 and rows.whole == 1 and rows.deviation == pytest.approx(9.0)
    cost = next(query.source for query in profile_plan("visits", FACTS, loss=Fraction(1)).queries[1:])
    assert isinstance(cost, UnitNorms)
    again = histogram_of(cost, released(profile_plan("visits", FACTS, loss=Fraction(1))).tables[1], FACTS)
    assert asdict(found[name_of(norms(COST))]) == asdict(again)


def test_a_profile_serves_its_own_version_alone() -> None:
    assert profiles_of({"visits": figures()}, replace(FACTS, version=4)) == {}
    assert profiles_of({"visits": {"edges": [1, 2], "noisy": [5, 6], "deviation": 2.0}}, FACTS) == {}, "bought before there were profiles"


@pytest.mark.parametrize(("cells", "squares"), [(28, (1, 2, 4, 8, 16, 28)), (2, (1, 2)), (1, (1,)), (64, (1, 2, 4, 8, 16, 32, 40))])
def test_a_count_of_units_has_no_norm_beyond_its_groups(cells: int, squares: tuple[int, ...]) -> None:
    assert norms(UnitCount(), cells=cells).squared_edges == squares
    wanted = norms(UnitCount(), cells=cells)
    column = NoisyColumn("units", tuple(range(len(squares))), DiscreteGaussian(Fraction(9)), Fraction(1), Fraction(0))
    table = NoisyTable(("bin",), tuple((place,) for place in range(len(squares))), (column,), None, 10**6)
    assert fitted_norms(histogram_of(wanted, table, FACTS)).largest == pytest.approx(math.sqrt(min(cells, 40)))


def test_versions_prepared_before_ask_for_the_norms_they_bought() -> None:
    assert norms(UnitCount(), cells=28, facts=BEFORE).squared_edges == (1, 2, 4, 8, 16, 32)
    assert norms(RowCount(), facts=BEFORE) == norms(RowCount()) and norms(COST, facts=BEFORE) == norms(COST)


COUNTED = (("n", UnitAggregate(UnitAggregateKind.COUNT, None)),)
PEOPLE = Scan("people", 1)


@pytest.mark.parametrize(
    ("relation", "is_within"),
    [
        (VISITS, True),
        (Filter(VISITS, not_null(Column("cost"))), True),
        (UnitJoin(VISITS, PEOPLE, (), (("born", "born"),)), True),
        (UnitJoin(VISITS, VISITS, (), (("again", "cost"),)), False),
        (PerUnit(VISITS, COUNTED), False),
        (Scan("visits", 7), False),
    ],
)
def test_rows_are_assigned_to_a_table_only_one_to_one(relation: Relation, is_within: bool) -> None:
    assert (table_within(relation, FACTS) == VISITS) is is_within


def test_rows_that_a_norm_takes() -> None:
    shape = shape_of(VISITS, FACTS)
    assert rows_needed(RowCount(), [3.0], shape) == [3.0]
    assert rows_needed(UnitCount(), [3.0], shape) == [9.0]
    assert rows_needed(MINUTES, [960.0], shape) == [2.0]
    assert rows_needed(COST, [500_000.0], shape) == [1.0], "in grid integers"


def fitted(noisy: list[float], deviation: float, edges: list[float]) -> ContributionModel:
    return fitted_norms(NormHistogram(tuple(edges), tuple(noisy), deviation, whole=1))


def test_a_tail_that_the_profile_rules_out_loses_its_weight() -> None:
    """A thousand units of one or two rows, and nobody with more than eight: a coarse histogram cannot say that, the profile can."""
    edges = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 200.0]
    true = [6_000.0, 2_000.0, 600.0, 250.0, 100.0, 40.0, *[0.0] * 10]
    draws = np.random.default_rng(5)
    profile = fitted([units + float(draws.normal(0, 4)) for units in true], 4.0, edges)
    coarse = fitted([units + float(draws.normal(0, 150)) for units in true], 150.0, edges)
    within = coarse.within(most_beyond(profile, edges[:-1]))
    assert within.above(16.0) < coarse.above(16.0) / 2
    assert within.excess_upper(8.0, beyond=0.05) < coarse.excess_upper(8.0, beyond=0.05) / 2
    assert within.chances.sum() == pytest.approx(1.0) and np.all(within.expected >= -1e-9)


def test_a_profile_with_longer_vectors_than_the_statement_changes_nothing() -> None:
    edges = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0]
    few = fitted([6_000.0, 2_000.0, 600.0, 250.0, 100.0, 40.0, 15.0, 5.0, 1.0, 0.0], 30.0, edges)
    many = fitted([9_000.0] * 10, 30.0, edges)
    assert few.within(most_beyond(many, edges[:-1])).expected == pytest.approx(few.expected)


def test_only_the_profiles_that_fit_are_bought() -> None:
    """Every profile keeps the rows of a unit. Before, preparation itself was refused where these were too many for all profiles."""
    bought = []
    for size in (FACTS.limits.size, 70_000):
        facts = replace(FACTS, limits=replace(FACTS.limits, size=size))
        plan = profile_plan("visits", facts, loss=Fraction(1))
        certify(plan, facts)
        bought.append(len(plan.queries))
    assert 1 < bought[1] < bought[0]


def test_units_that_a_condition_leaves_without_rows_are_in_no_bin() -> None:
    """They were in the first bin: the tail was fitted from there, and bars of FILTER held the truth 2 times in 14."""
    where = RowCount(not_null(Column("cost")))
    assert norms(where).squared_edges[:3] == (0, 1, 2) and norms(where, facts=BEFORE).squared_edges[:2] == (1, 2)
    counts = (11_000, 900, 500, 300, 250, 180, 120, 90, 60, 40, 20, 10)
    of_filter = _histogram(norms(where), counts)
    of_where = _histogram(norms(RowCount()), counts[1:])
    assert of_filter == of_where and not of_filter.mixed


def _histogram(measured: UnitNorms, counts: tuple[int, ...]) -> NormHistogram:
    column = NoisyColumn("units", counts[: len(measured.squared_edges) + 1], DiscreteGaussian(Fraction(9)), Fraction(1), Fraction(0))
    groups = tuple((place,) for place in range(len(column.values)))
    return histogram_of(measured, NoisyTable(("bin",), groups, (column,), None, 10**6), FACTS)
