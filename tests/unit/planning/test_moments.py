"""Moments as they are measured: each once, on grids that cannot overflow, with the least that one row can matter."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import GridSum, Ranked, RowCount
from lapwing.kernel.neighbours import Neighbours
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.planning.variances import Moments
from lapwing.sql import bind

COLUMNS: dict[str, Domain] = {
    "cost": RealDomain(Fraction(0), Fraction(5_000), True, 100),
    "minutes": IntegerDomain(0, 480, False),
    "tiny": RealDomain(Fraction(0), Fraction(1, 10**6), False, 10**9),
    "huge": IntegerDomain(-(2**30), 2**30, False),
    "flag": IntegerDomain(0, 1, False),
}


def planned(listed: str, *, neighbours: Neighbours = Neighbours.UNBOUNDED, rows_max: int = 10_000_000) -> PlannedStatement:
    facts = Facts("moments", 1, neighbours, Account.APPROXIMATE, {"t": TableFacts(COLUMNS, 20, rows_max)}, {})
    statement = bind(f"SELECT {listed} FROM t", facts, settings=Settings(), unit_columns={})
    limits = GroupLimits(1_000, 1_000)
    price = Price(Fraction(1, 10), Fraction(1, 2**40))
    return plan_statement(statement.privates, facts, price, contributions={}, units=None, limits=limits, finder=GroupFinder(evaluate))


def query(listed: str, *, neighbours: Neighbours = Neighbours.UNBOUNDED, rows_max: int = 10_000_000) -> CertifiedQuery:
    return planned(listed, neighbours=neighbours, rows_max=rows_max).certified.queries[0]


@pytest.mark.parametrize(
    ("listed", "vectors"),
    [
        ("VAR_SAMP(cost), STDDEV(cost), VAR_POP(cost), AVG(cost), COUNT(cost)", 3),
        ("VAR_SAMP(minutes), COUNT(*), AVG(minutes)", 3),
        ("COVAR_POP(minutes, flag)", 4),
        ("CORR(minutes, flag), COVAR_SAMP(flag, minutes), REGR_SLOPE(minutes, flag), REGR_R2(flag, minutes), VAR_POP(flag)", 6),
        ("REGR_SLOPE(minutes, flag), REGR_INTERCEPT(minutes, flag), REGR_COUNT(minutes, flag), REGR_AVGX(minutes, flag)", 5),
    ],
)
def test_moments_that_aggregates_share_are_measured_once(listed: str, vectors: int) -> None:
    assert len(query(listed).vectors) == vectors


def test_one_row_matters_by_half_of_its_square_and_by_its_distance_from_the_middle() -> None:
    count, total, square = query("VAR_POP(minutes)").vectors
    k = count.sensitivity.l1
    assert total.sensitivity.l1 == 240 * k
    assert square.sensitivity.l1 == 240 * 240 // 2 * k
    assert square.step == 1 and square.rounding == 0, "squares of integers are integers"


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("rows_max", [1_000, 10_000_000, 10**9])
@pytest.mark.parametrize("listed", ["VAR_POP(huge)", "CORR(huge, tiny)", "STDDEV(tiny)", "REGR_SLOPE(cost, huge)", "COVAR_POP(tiny, tiny)"])
def test_no_range_overflows_and_no_grid_is_too_coarse(listed: str, rows_max: int, neighbours: Neighbours) -> None:
    for certified in query(listed, neighbours=neighbours, rows_max=rows_max).vectors:
        measure = certified.vector.measure
        if isinstance(measure, GridSum) and certified.rounding:
            most = max(abs(measure.lower), abs(measure.upper))
            assert certified.rounding <= most / 1_000, "a row is rounded by less than a thousandth of the largest value"


def test_a_filter_costs_no_more_noise() -> None:
    for aggregate in ("AVG(cost)", "SUM(cost)", "VAR_SAMP(cost)", "CORR(cost, minutes)"):
        plain, filtered = query(aggregate).vectors, query(f"{aggregate} FILTER (WHERE flag = 1)").vectors
        assert [v.vector.law for v in plain] == [v.vector.law for v in filtered]
        assert [v.step for v in plain] == [v.step for v in filtered]


def test_pairs_with_a_null_are_left_out_of_every_moment() -> None:
    found = planned("CORR(cost, minutes)")
    (recipe,) = found.only.recipes
    assert isinstance(recipe, Moments) and recipe.x is not None and recipe.product is not None
    measures = {v.vector.name: v.vector.measure for v in found.certified.queries[0].vectors}
    plain = {v.vector.measure for v in query("AVG(minutes), COUNT(*)").vectors}
    assert measures[recipe.x.mean.vector] not in plain, "minutes are added up only where there is a cost"
    assert measures[recipe.count] != RowCount(None)


def test_moments_are_bounded_by_rows_so_that_ratios_keep_their_meaning() -> None:
    assert isinstance(query("VAR_SAMP(cost), COUNT(*)").query.bounding, Ranked)


def test_the_cost_is_the_price_and_never_more() -> None:
    certified = planned("CORR(cost, minutes), VAR_SAMP(cost) FILTER (WHERE flag = 1)").certified
    spent = sum(vector.loss for vector in certified.queries[0].vectors)
    assert Fraction(999, 10_000) < spent <= Fraction(1, 10)
