"""What a large price buys: bins so precise that no unit hides above them, and answers without needless bars."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.answers.intervals import ratio_interval
from lapwing.contribution.dominance import column_within, dominated
from lapwing.contribution.model import NormHistogram, fitted_norms
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, IntegerDomain, Kind, RealDomain
from lapwing.kernel.expressions import Case, Column, Expression, Literal, not_null
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Filter, GridSum, Measure, Project, RowCount, Scan
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.stability import shape_of
from lapwing.planning.measures import CountMeasure, Measured, SumMeasure
from lapwing.planning.vector_bounds import QueryToBound, wanted_norms

EDGES = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 50.0)
SINGLE = (5_000.0, *[0.0] * 11)
COLUMNS: dict[str, Domain] = {"cost": RealDomain(Fraction(0), Fraction(5000), nullable=True, steps=100), "minutes": IntegerDomain(0, 480)}
FACTS = Facts("shop", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"visits": TableFacts(COLUMNS, 50, 10**6)}, {}, planning_rules=2)
VISITS = Scan("visits", 50)
COST = GridSum(Column("cost"), Fraction(0), Fraction(5000), 100)


@pytest.mark.parametrize(("deviation", "longest"), [(30.0, 50.0), (0.6, 50.0), (0.4, 1.0), (0.1, 1.0)])
def test_no_unit_hides_in_bins_that_would_show_it(deviation: float, longest: float) -> None:
    histogram = NormHistogram(EDGES, SINGLE, deviation, whole=1)
    assert histogram.unseen() == fitted_norms(histogram).unseen == longest


def test_a_bin_that_may_hold_a_unit_and_a_sample_allow_for_one() -> None:
    with_one = (5_000.0, *[0.0] * 8, 1.0, 0.0, 0.0)
    assert NormHistogram(EDGES, with_one, 0.3, whole=1).unseen() == 32.0
    assert NormHistogram(EDGES, SINGLE, 0.3, one_in=2, whole=1).unseen() == 50.0, "half of the units are not in it"


def wanted(measure: Measure, *, unit_noise: float, rules: int = 2) -> int:
    recipe = SumMeasure("v0", whole=False) if isinstance(measure, GridSum) else CountMeasure("v0")
    shape = shape_of(VISITS, FACTS)
    query = QueryToBound(VISITS, (), shape, Measured({"v0": measure}, (recipe,)), 1, Account.APPROXIMATE, rules=rules)
    return len(wanted_norms(query, unit_noise=unit_noise, norms_noise=1.0))


def test_a_sum_has_norms_until_the_noise_of_all_its_range_is_below_a_step() -> None:
    """Noise that hides a tenth of a row is nothing to a count of rows; a sum that hides 50 rows of 5,000 has far more than it needs."""
    assert wanted(RowCount(), unit_noise=0.01) == 1 and wanted(RowCount(), unit_noise=0.001) == 0
    assert wanted(COST, unit_noise=0.001) == 1 and wanted(COST, unit_noise=1e-9) == 0
    assert wanted(COST, unit_noise=0.001, rules=1) == 0


@pytest.mark.parametrize(
    ("value", "column"),
    [
        (Column("cost"), "cost"),
        (Case(((not_null(Column("minutes")), Column("cost")),), Literal(None, Kind.REAL)), "cost"),
        (Case(((not_null(Column("minutes")), Column("cost")),), Literal(Fraction(7), Kind.REAL)), None),
        (Case(((not_null(Column("minutes")), Literal(Fraction(7), Kind.REAL)),), Literal(None, Kind.REAL)), None),
    ],
)
def test_the_column_that_a_sum_adds_up(value: Expression, column: str | None) -> None:
    assert column_within(Filter(VISITS, not_null(Column("minutes"))), GridSum(value, Fraction(0), Fraction(5000), 100)) == column


def test_a_projected_column_is_followed_to_its_table() -> None:
    renamed = Project(VISITS, (("paid", Column("cost")), ("cost", Literal(Fraction(1), Kind.REAL))))
    assert column_within(renamed, GridSum(Column("paid"), Fraction(0), Fraction(5000), 100)) == "cost"
    assert column_within(renamed, COST) is None and column_within(VISITS, RowCount()) is None


def test_groups_of_all_that_was_profiled_have_no_shorter_norms_than_even_parts() -> None:
    """1,524 units have more than 12 rows: in four groups as many have norms above 6, though a coarse histogram shows nothing of it."""
    units = (0.0, 0.0, 0.0, 100.0, 400.0, 1_000.0, 1_500.0, 1_000.0, 400.0, 100.0, 20.0, 0.0)
    profile = fitted_norms(NormHistogram(EDGES, units, 10.0, whole=1))
    coarse = fitted_norms(NormHistogram(EDGES, (0.0,) * 12, 20_000.0, whole=2))
    assert not coarse.seen
    above, below = dominated(coarse, profile, list(EDGES[:-1])), dominated(coarse, profile, list(EDGES[:-1]), parts=4)
    assert 1_200.0 < below.above(6.0) < 4_500.0 and above.above(6.0) < 400.0
    assert below.above(24.0) < 200.0


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(1, 16)), DiscreteLaplace(Fraction(1, 64))], ids=str)
def test_a_count_without_noise_adds_nothing_to_the_bar_of_an_average(law: Law) -> None:
    """Values of -24,000 to 24,000 steps: half a row more or less would move the average of 300 rows by 40 steps."""

    def length(*, exact_counts: bool) -> float:
        given = {"total": -6_900_000.0, "count": 300.0, "sum_law": law, "count_law": law, "lo": -24_000.0, "hi": 24_000.0}
        value, bar = ratio_interval(**given, confidence=0.95, exact_counts=exact_counts)  # type: ignore[arg-type]
        assert bar.lo <= value <= bar.hi
        return bar.hi - bar.lo

    assert length(exact_counts=False) > 70.0 and length(exact_counts=True) < 0.01


def test_a_count_with_noise_is_as_before() -> None:
    law = DiscreteGaussian(Fraction(3))
    both = [
        ratio_interval(total=9_000.0, count=300.0, sum_law=law, count_law=law, confidence=0.95, lo=0.0, hi=100.0, exact_counts=exact)
        for exact in (False, True)
    ]
    assert both[0] == both[1]
