"""What the planner picks, and that what it picks is paid for."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.first_count import measure
from benchmarks.visits import write_visits

from lapwing.answers.post_processing import evaluate
from lapwing.contribution.bounding import BoundingInputs, BoundingKind, choose
from lapwing.contribution.rows_per_unit import Contributions, assumed, bin_edges, fitted, histogram_plan
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account, charge_loss
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain, TextDomain
from lapwing.kernel.expressions import Column, Expression
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Clipped, DiscoveredGroups, Follow, Ranked, Scan
from lapwing.kernel.neighbours import Neighbours
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.key_selection import SPREAD_BITS
from lapwing.planning.plan import plan_query
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.statements import Aggregate, AggregateKind, PrivateQuery

HEAVY = Contributions(tuple((2.0**i, 100_000 * 2 ** (-1.2 * i)) for i in range(11)))


def _situation(**changes: object) -> BoundingInputs:
    values: dict[str, object] = {
        "contributions": HEAVY,
        "rows_per_unit_max": 1_000,
        "kept": 1.0,
        "cells": 50,
        "account": Account.APPROXIMATE,
        "loss_per_vector": 0.01,
        "has_average": False,
        "units_only": False,
    }
    return BoundingInputs(**{**values, **changes})  # type: ignore[arg-type]


def test_wide_scans_are_ranked_and_selective_filters_bounded_after() -> None:
    assert choose(_situation()).kind is BoundingKind.RANKED
    month, day = choose(_situation(kept=1 / 12)), choose(_situation(kept=1 / 365))
    assert (month.kind, day.kind) == (BoundingKind.CLIPPED, BoundingKind.CLIPPED)
    assert day.limit < month.limit


def test_what_the_account_and_the_statement_allow() -> None:
    assert choose(_situation(kept=1 / 365, account=Account.PURE, loss_per_vector=0.1)).kind is BoundingKind.GROUPED
    assert choose(_situation(kept=1 / 365, account=Account.PURE, loss_per_vector=0.1, has_average=True)).kind is BoundingKind.RANKED
    assert choose(_situation(kept=1 / 365, cells=None)).kind is BoundingKind.CLIPPED
    assert choose(_situation(kept=1 / 365, cells=None, units_only=True)).kind is BoundingKind.GROUPED
    one_row = choose(_situation(rows_per_unit_max=1, kept=1 / 365))
    assert (one_row.kind, one_row.limit, one_row.truncation) == (BoundingKind.RANKED, 1.0, 0.0)


def test_more_budget_allows_more_rows() -> None:
    limits = [choose(_situation(loss_per_vector=loss)).limit for loss in (1e-5, 1e-3, 1e-1, 1e9)]
    assert limits == sorted(limits) and limits[0] < 0.1 * limits[-1]


def test_a_heavy_tail_is_seen_beyond_the_last_significant_bin() -> None:
    """Units with more than x rows = 50,000 * x^-1.2, and noise that hides every bin above about 200 rows."""
    edges = bin_edges(5_000)
    ends = [0, *edges]
    above = [50_000.0 if x == 0 else 50_000.0 * (x + 1) ** -1.2 for x in ends]
    counts = [above[i] - above[i + 1] for i in range(len(edges))]
    counts[-1] += above[-1]
    noisy = [count + sign * 30 for count, sign in zip(counts, [1, -1] * len(counts), strict=False)]
    found = fitted(edges, noisy, 40.0)
    true_excess = sum(max(math.sqrt((low + 1) * high) - 500, 0) * c for low, high, c in zip(ends, edges, counts, strict=False))
    assert 0.4 * true_excess < found.excess(500) < 2.5 * true_excess


def test_a_sharp_end_is_not_continued_by_a_heavy_tail() -> None:
    """Units with 1 to 25 rows, as many of each: bins above are empty, and together they say that nobody has more."""
    edges = bin_edges(5_000)
    ends = [0, *edges]
    counts = [300.0 * max(min(high, 25) - low, 0) for low, high in pairwise(ends)]
    noisy = [count + sign * 8 for count, sign in zip(counts, [1, -1] * len(counts), strict=False)]
    found = fitted(edges, noisy, 12.0)
    assert 0.9 * 300 * 25 * 13 < found.rows() < 1.15 * 300 * 25 * 13
    assert found.excess(50) < 0.02 * found.rows()


def test_bins_without_noise_are_taken_as_they_are() -> None:
    edges = bin_edges(8)
    assert fitted(edges, [100.0] * len(edges), 0.0).units() == pytest.approx(100 * len(edges), rel=0.05)


def test_units_of_one_row_each_are_as_many_as_were_counted() -> None:
    assert fitted(bin_edges(1), [1_000.0], 12.0).rows() == pytest.approx(1_000, rel=0.01)


def test_bins_reach_the_cap_and_never_pass_it() -> None:
    for cap in (1, 2, 3, 4, 5, 17, 1_000):
        edges = bin_edges(cap)
        assert edges[-1] == cap and list(edges) == sorted(set(edges))


COLUMNS: dict[str, Domain] = {
    "region": TextDomain(("a", "b"), False),
    "name": TextDomain(None),
    "age": IntegerDomain(0, 120),
    "cost": RealDomain(Fraction(0), Fraction(500), True, 100),
}


def _facts(account: Account) -> Facts:
    return Facts("planning", 1, Neighbours.UNBOUNDED, account, {"t": TableFacts(COLUMNS, 100, 100_000)}, {})


def _planned(account: Account, key: Expression | None, *aggregates: Aggregate, price: Fraction = Fraction(1, 100)) -> PlannedStatement:
    query = PrivateQuery(Scan("t", 100), () if key is None else (("k", key),), aggregates)
    delta = Fraction(0) if account is Account.PURE else Fraction(1, 10**9)
    contributions = {"t": assumed(rows_per_unit_max=100, rows_max=100_000, units=5_000)}
    return plan_query(
        query,
        _facts(account),
        Price(price, delta),
        contributions=contributions,
        units=None,
        limits=GroupLimits(1_000, 100),
        finder=GroupFinder(evaluate),
    )


@pytest.mark.parametrize("account", list(Account))
@pytest.mark.parametrize("price", [Fraction(1, 10**6), Fraction(1, 100), Fraction(3)])
def test_a_plan_never_costs_more_than_its_price(account: Account, price: Fraction) -> None:
    cost = Column("cost")
    asked = (
        Aggregate(AggregateKind.COUNT),
        Aggregate(AggregateKind.SUM, cost),
        Aggregate(AggregateKind.AVG, cost),
        Aggregate(AggregateKind.COUNT_UNITS),
    )
    for key in (None, Column("region"), Column("age")):
        certified = _planned(account, key, *asked, price=price).certified
        assert certified.cost.loss <= charge_loss(price)
        assert certified.cost.loss >= 0.98 * charge_loss(price), "what is asked is also spent on accuracy"


def test_undeclared_keys_are_discovered_or_refused() -> None:
    planned = _planned(Account.APPROXIMATE, Column("name"), Aggregate(AggregateKind.COUNT))
    query = planned.certified.plan.queries[0]
    assert isinstance(query.groups, DiscoveredGroups) and isinstance(query.bounding, Clipped)
    assert query.groups.spread_bits == SPREAD_BITS
    with pytest.raises(Refused, match="keys-need-delta"):
        _planned(Account.PURE, Column("name"), Aggregate(AggregateKind.COUNT))


def test_equal_measures_are_measured_once() -> None:
    planned = _planned(Account.APPROXIMATE, None, *(Aggregate(kind, Column("cost")) for kind in (AggregateKind.AVG, AggregateKind.COUNT)))
    assert len(planned.certified.plan.queries[0].vectors) == 2, "AVG and COUNT share their count"


def test_a_clipped_average_scales_sum_and_count_alike() -> None:
    planned = _planned(Account.APPROXIMATE, Column("region"), Aggregate(AggregateKind.AVG, Column("cost")), price=Fraction(1, 10**5))
    query = planned.certified.plan.queries[0]
    if isinstance(query.bounding, Clipped):
        assert any(isinstance(vector.bound, Follow) for vector in query.vectors)
    else:
        assert isinstance(query.bounding, Ranked)


@pytest.mark.parametrize("account", list(Account))
def test_the_histogram_moves_by_one_per_unit(account: Account) -> None:
    certified = certify(histogram_plan("t", _facts(account), loss=Fraction(1, 100)), _facts(account))
    sensitivity = certified.queries[0].vectors[0].sensitivity
    assert (sensitivity.l1, sensitivity.l2_squared, sensitivity.linf) == (1, 1, 1)
    assert certified.cost.loss <= charge_loss(Fraction(1, 100))


def test_a_count_of_heavy_tailed_rows_loses_less_than_a_third_of_what_others_lose(tmp_path: Path) -> None:
    """100,000 rows, epsilon 1 with statistics: root mean square of three total errors below 15 % (others: 45 %)."""
    write_visits(tmp_path / "visits.parquet", rows=100_000)
    errors = [measure(tmp_path / f"run{i}", tmp_path / "visits.parquet", delta="0", rows=100_000)[0] for i in range(3)]
    assert math.sqrt(sum(error**2 for error in errors) / 3) <= 15_000
