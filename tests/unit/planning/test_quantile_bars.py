"""Limits on rows for quantiles, and what is measured for their error bars."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.answers.quantile_bars import quantile_intervals
from lapwing.contribution.row_sample import RankError, RowSample, best_limit
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.kernel.accounting import Account, charge_loss
from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain, TextDomain
from lapwing.kernel.expressions import Column, Expression
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Scan
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.quantile_tree import AtShare, QuantileTree
from lapwing.kernel.release import ChosenQuantiles, NoisyColumn, NoisyTable
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_query
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.planning.quantile_bars import rows_to_be_shown
from lapwing.planning.quantile_errors import rank_errors, rows_needed, spread_errors
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.statements import Aggregate, AggregateKind, PrivateQuery

HEAVY = Contributions(tuple((2.0**i, 20_000 * 2 ** (-1.2 * i)) for i in range(8)))
LIMITS = [float(limit) for limit in range(1, 129)]
COLUMNS: dict[str, Domain] = {
    "region": TextDomain(("a", "b"), False),
    "age": IntegerDomain(0, 120, False),
    "cost": RealDomain(Fraction(0), Fraction(500), True, 100),
}
PRICES = (Fraction(1, 10_000), Fraction(1, 400), Fraction(1, 25))
"""About those of epsilon 0.1, 0.5 and 2."""


def planned(
    *aggregates: Aggregate,
    key: Expression | None = None,
    price: Fraction = PRICES[1],
    rules: int = 2,
    rows_per_unit: int = 128,
    cells_max: int = 1_000,
) -> PlannedStatement:
    table = TableFacts(COLUMNS, rows_per_unit, 10**6)
    facts = Facts("planning", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"t": table}, {}, planning_rules=rules)
    query = PrivateQuery(Scan("t", rows_per_unit), () if key is None else (("k", key),), aggregates)
    limits, finder, delta = GroupLimits(cells_max, 100), GroupFinder(evaluate), Fraction(1, 10**7)
    return plan_query(query, facts, Price(price, delta), contributions={"t": HEAVY}, units=None, limits=limits, finder=finder)


def quantile(share: Fraction = Fraction(1, 2), column: str = "age") -> Aggregate:
    return Aggregate(AggregateKind.QUANTILE_CONT, Column(column), share=share)


def test_all_rows_are_a_sample_without_error() -> None:
    sample = RowSample.of(HEAVY, 128, computed=True)
    assert (sample.rows, sample.altered) == (HEAVY.units(), 0.0)
    assert sample.random_error(0.5, 10.0) == pytest.approx(0) and sample.bias(0.5) == pytest.approx(0)


def test_a_lower_limit_leaves_active_units_less_weight() -> None:
    biases = [RowSample.of(HEAVY, limit).bias(0.5) for limit in (1, 4, 16, 64, 128)]
    assert biases == sorted(biases, reverse=True) and biases[0] > 0.05
    assert RowSample.of(HEAVY, 1, computed=True).bias(0.5) > RowSample.of(HEAVY, 1).bias(0.5) + 0.1


def test_units_with_as_many_rows_each_may_have_one() -> None:
    even = RowSample.of(Contributions(((8.0, 1_000.0),)), 1)
    assert even.rows == pytest.approx(1_000) and even.moved == pytest.approx(0) and even.spread == pytest.approx(7 / 8)


def test_noise_is_for_few_rows_and_lost_rows_are_for_many() -> None:
    def limit(ranks: float) -> float:
        return best_limit(HEAVY, LIMITS, [RankError(0.5, ranks)], kept=1.0, cells=1.0, computed=False)

    limits = [limit(ranks) for ranks in (1e-6, 1.0, 30.0, 50_000.0)]
    assert limits == sorted(limits, reverse=True) and limits[0] > 100 and limits[-1] <= 2


@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("key", [None, Column("region")])
def test_sides_and_the_count_are_paid_from_the_same_price(price: Fraction, key: Expression | None) -> None:
    plan = planned(quantile(), quantile(Fraction(9, 10)), key=key, price=price)
    (query,) = plan.certified.queries
    assert [vector.vector.name for vector in query.vectors] == ["n0"]
    assert [item.quantiles.name for item in query.quantiles] == ["s0", "s0b", "s0a"]
    assert 0.98 * charge_loss(price) < plan.certified.cost.loss <= charge_loss(price)
    below, above = (item.mechanism.targets for item in query.quantiles[1:])
    assert any(isinstance(target, AtShare) and target.share < Fraction(1, 2) for target in below)
    assert any(isinstance(target, AtShare) and target.share > Fraction(9, 10) for target in above)


def test_rules_of_earlier_versions_measure_nothing_beside_quantiles() -> None:
    old = planned(quantile(), rules=1)
    (query,) = old.certified.queries
    assert not query.vectors and len(query.quantiles) == 1 and old.only.bars is None


def test_values_that_are_counted_are_not_counted_again() -> None:
    (query,) = planned(Aggregate(AggregateKind.COUNT), quantile(), rows_per_unit=1).certified.queries
    assert [vector.vector.name for vector in query.vectors] == ["v0"]


@pytest.mark.parametrize("key", [None, Column("region")])
def test_counts_and_quantiles_of_many_rows_have_a_bound_each(key: Expression | None) -> None:
    plan = planned(Aggregate(AggregateKind.COUNT), quantile(), key=key)
    counts, quantiles = plan.certified.queries
    assert plan.only.number == 0 and plan.only.quantiles is not None and plan.only.of_quantiles.number == 1
    assert [vector.vector.name for vector in counts.vectors] == ["v0"] and not counts.quantiles
    assert [vector.vector.name for vector in quantiles.vectors] == ["n0"] and len(quantiles.quantiles) == 3
    assert quantiles.shape.rows_per_unit < plan.only.choice.limit
    assert 0.98 * charge_loss(PRICES[1]) < plan.certified.cost.loss <= charge_loss(PRICES[1])


def test_quantiles_of_discovered_groups_and_of_earlier_versions_stay_beside_counts() -> None:
    for plan in (planned(Aggregate(AggregateKind.COUNT), quantile(), key=Column("age"), cells_max=10), planned(quantile(), rules=1)):
        (_,) = plan.certified.queries
        assert plan.only.quantiles is None and plan.only.of_quantiles is plan.only


def test_errors_where_values_are_spread_are_below_the_bound_for_all() -> None:
    mechanism = QuantileTree(0, 10**6, (AtShare(Fraction(1, 2)),), 1, Neighbours.UNBOUNDED, Fraction(20))
    sure = Fraction(95, 100)
    assert 3 * 10 < spread_errors(mechanism, confidence=sure)[0] < rank_errors(mechanism, confidence=sure, rows_max=10**6)[0]
    few = replace(mechanism, upper=1)
    assert spread_errors(few, confidence=sure)[0] <= rank_errors(few, confidence=sure, rows_max=10**6)[0]


def test_a_quantile_near_an_end_needs_more_rows() -> None:
    assert rows_needed(Fraction(10), AtShare(Fraction(99, 100))) == 1_001
    assert rows_needed(Fraction(10), AtShare(Fraction(1, 2))) == 21


def test_bars_end_at_the_nearest_side_that_is_far_enough() -> None:
    plan = planned(quantile(), key=Column("region"))
    (query,), part = plan.certified.queries, plan.only
    assert part.bars is not None
    recipe = part.recipes[0]
    assert isinstance(recipe, QuantileMeasure)
    needed = rows_to_be_shown(part.bars, query, recipe.quantiles, recipe.target)
    laws = {item.vector.name: item.vector.law for item in query.vectors}
    counts = (100 * math.ceil(needed), 1)
    chosen = []
    for item in query.quantiles:
        places = [float(target.share) for target in item.mechanism.targets if isinstance(target, AtShare)]
        chosen.append(ChosenQuantiles(item.quantiles.name, tuple((round(240 * place),) * 2 for place in places), item.step))
    column = NoisyColumn("n0", counts, laws["n0"], Fraction(1), Fraction(0))
    table = NoisyTable(("k",), (("a",), ("b",)), (column,), None, 10**6, tuple(chosen))
    many, one = quantile_intervals(recipe, part, table, query, confidence=Fraction(95, 100), terms=1)
    assert many is not None and 40 < many.lo < 60 < many.hi < 80, "of a group with many rows the bar is short"
    assert one is not None and (one.lo, one.hi) == (0.0, 120.0), "of one row nothing is known"
