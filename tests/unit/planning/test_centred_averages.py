"""Averages from sums of distances from the average of the whole table: the centre, the caps, the plan and its bars. Seeds are fixed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from lapwing.answers.clipping_bias import centred_reaching
from lapwing.answers.intervals import Interval
from lapwing.answers.post_processing import evaluate
from lapwing.catalog.settings import Settings
from lapwing.contribution.histograms import name_of, norms_of
from lapwing.contribution.model import ContributionModel, Floats, NormHistogram, fitted_norms
from lapwing.kernel.accounting import LOSS_UNITS, Account
from lapwing.kernel.domains import Domain, IntegerDomain, TextDomain
from lapwing.kernel.expressions import Column
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Cap, GridSum, Measure, RowCount, Scan, UnitNorms
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.stability import shape_of
from lapwing.planning.centres import Centre, centres_of
from lapwing.planning.drafts import PlanningFacts
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.measures import AverageMeasure
from lapwing.planning.plan import DraftedStatement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.sql import bind
from lapwing.statements import PrivateQuery

COLUMNS: dict[str, Domain] = {
    "minutes": IntegerDomain(0, 480, nullable=False),
    "region": TextDomain(values=("north", "south"), nullable=False),
}
TABLE = TableFacts(COLUMNS, rows_per_unit_max=100, rows_max=10**6)
FACTS = Facts("shop", 3, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"visits": TABLE}, {}, planning_rules=2)
VISITS = Scan("visits", 100)
MINUTES = GridSum(Column("minutes"), Fraction(0), Fraction(480), 1)
LIMITS = GroupLimits(10_000, 10_000)
UNITS, MEAN = 20_000, 30.0


def units() -> tuple[Floats, Floats]:
    """Rows of each unit, and the sum of its values, which are 30 on average."""
    draws = np.random.default_rng(3)
    rows = np.minimum(draws.geometric(0.2, UNITS), 100)
    return rows.astype(float), np.array([draws.gamma(2.0 * count, MEAN / 2.0) for count in rows])


ROWS, SUMS = units()


def histogram(norms: Floats, measure: Measure, deviation: float) -> NormHistogram:
    """As it might be bought."""
    wanted = norms_of(VISITS, (), measure, shape_of(VISITS, FACTS), rules=2)
    edges = [math.sqrt(edge) for edge in wanted.squared_edges if edge]
    largest = 100.0 if isinstance(measure, RowCount) else 480.0 * 100
    counted, _ = np.histogram(norms, [-1.0, *edges, max(largest, edges[-1] * 1.01)])
    noisy = counted + np.random.default_rng(5).normal(0.0, deviation, len(counted))
    return NormHistogram((*edges, max(largest, edges[-1] * 1.01)), tuple(noisy), deviation, whole=isinstance(measure, RowCount))


def profiles(facts: Facts = FACTS) -> dict[str, NormHistogram]:
    of = ((RowCount(), ROWS), (MINUTES, SUMS))
    return {
        name_of(norms_of(VISITS, (), measure, shape_of(VISITS, facts), rules=2)): histogram(norms, measure, 9.0) for measure, norms in of
    }


def query_of(sql: str, facts: Facts = FACTS) -> PrivateQuery:
    (query,) = bind(sql, facts, settings=Settings(), unit_columns={}).privates
    return query


def planned(sql: str, facts: Facts, *, known: bool = True, epsilon: str = "0.01") -> PlannedStatement:
    """As it is planned once the wanted norms are bought: all of them those of the distances or of the rows."""
    with_profiles = PlanningFacts(facts, {}, None, LIMITS, profiles(facts) if known else {})
    statement = DraftedStatement.of([query_of(sql, facts)], with_profiles, GroupFinder(evaluate))
    price = Price(Fraction(epsilon), Fraction(0))
    return statement.plan(price, {norms: bought(norms) for norms in statement.plan(price, {}).wanted})


def bought(norms: UnitNorms) -> ContributionModel:
    of = norms.measure
    distances = np.abs(SUMS - of.offset * ROWS) if isinstance(of, GridSum) else ROWS
    return fitted_norms(histogram(distances, of, 20.0))


def centre(sql: str, facts: Facts = FACTS, *, known: Mapping[str, NormHistogram] | None = None) -> Centre | None:
    with_profiles = PlanningFacts(facts, {}, None, LIMITS, profiles() if known is None else known)
    (draft,) = DraftedStatement.of([query_of(sql, facts)], with_profiles, GroupFinder(evaluate)).drafts
    return next(iter(draft.centres.values()), None)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(minutes) AS a FROM visits",
        "SELECT region, AVG(minutes) AS a FROM visits WHERE minutes > 5 GROUP BY region",
        "SELECT AVG(minutes) FILTER (WHERE region = 'north') AS a FROM visits",
        "SELECT AVG(m) AS a FROM (SELECT minutes AS m FROM visits) AS v",
    ],
)
def test_sums_are_centred_near_the_average_of_the_table(sql: str) -> None:
    found = centre(sql)
    assert found is not None and found.bounds and found.at == pytest.approx(MEAN, rel=0.15)


def test_without_a_profile_of_the_column_nothing_is_centred() -> None:
    assert centre("SELECT AVG(minutes + 1) AS a FROM visits") is None
    assert centre("SELECT AVG(minutes) AS a FROM visits", known={}) is None
    assert centre("SELECT AVG(minutes) AS a FROM visits", replace(FACTS, planning_rules=1)) is None


def test_values_that_may_be_negative_are_not_centred() -> None:
    """Sums that cancel do not show the average, and fewer rows may have a larger sum."""
    facts = replace(FACTS, tables={"visits": replace(TABLE, columns={"minutes": IntegerDomain(-480, 480, nullable=False)})})
    shape = shape_of(VISITS, facts)
    of_sums = name_of(norms_of(VISITS, (), replace(MINUTES, lower=Fraction(-480)), shape, rules=2))
    known = {**profiles(), of_sums: histogram(SUMS, MINUTES, 9.0)}
    query = query_of("SELECT AVG(minutes) AS a FROM visits", facts)
    (draft,) = DraftedStatement.of([query], PlanningFacts(facts, {}, None, LIMITS, known), GroupFinder(evaluate)).drafts
    assert centres_of(draft.needed, query.source, facts, known) == {}


@pytest.mark.parametrize("groups", [False, True])
def test_the_profiles_bound_how_many_distances_are_long(groups: bool) -> None:
    """Over two groups, a unit's vector of distances is at most the root of two times the longer of both."""
    found = centre("SELECT AVG(minutes) AS a FROM visits")
    assert found is not None
    norms = [50.0, 200.0, 800.0]
    long = np.abs(SUMS - found.at * ROWS)[:, None] > np.array(norms)
    assert np.all(found.units_beyond(norms, groups=groups) >= long.sum(axis=0))
    assert found.units_beyond([800.0], groups=groups)[0] < UNITS / 20


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(
    ("account", "sql"),
    [
        (Account.PURE, "SELECT AVG(minutes) AS a FROM visits WHERE region = 'north'"),
        (Account.APPROXIMATE, "SELECT AVG(minutes) AS a FROM visits WHERE region = 'north'"),
        (Account.APPROXIMATE, "SELECT region, COUNT(*) AS n, AVG(minutes) AS a FROM visits GROUP BY region"),
    ],
)
def test_centred_averages_are_certified_within_their_price(account: Account, sql: str, neighbours: Neighbours) -> None:
    facts = replace(FACTS, account=account, neighbours=neighbours)
    found = planned(sql, facts)
    (recipe,) = [recipe for recipe in found.only.recipes if isinstance(recipe, AverageMeasure)]
    assert recipe.offset == pytest.approx(MEAN, rel=0.15) and found.only.centred == {recipe.total: recipe.count}
    assert Fraction(found.certified.cost.loss, LOSS_UNITS) <= Fraction("0.01")
    bounds = {item.vector.name: item.vector.bound for item in found.certified.queries[0].vectors}
    total, count = bounds[recipe.total], bounds[recipe.count]
    assert isinstance(total, Cap) and isinstance(count, Cap) and (total.alike, count.alike) == (recipe.count, recipe.total)
    assert len(bounds) == (3 if "COUNT" in sql else 2), "a count that is shown has a cap of its own"


def test_an_average_of_the_whole_table_takes_its_bounds_from_profiles_as_they_are() -> None:
    found = planned("SELECT AVG(minutes) AS a FROM visits", FACTS)
    assert not found.only.centred and found.only.cuts


def test_a_centred_average_has_less_noise_than_one_of_sums() -> None:
    sql = "SELECT region, AVG(minutes) AS a FROM visits GROUP BY region"
    by_profiles, without = planned(sql, FACTS), planned(sql, FACTS, known=False)

    def noise(found: PlannedStatement) -> float:
        (recipe,) = found.only.recipes
        assert isinstance(recipe, AverageMeasure)
        cuts = found.only.cuts
        kept = cuts[recipe.count].choice.total * (1.0 - cuts[recipe.count].choice.lost)
        return cuts[recipe.total].choice.noise / kept

    assert noise(by_profiles) < noise(without) / 1.5


def test_a_larger_price_has_a_shorter_predicted_bar() -> None:
    sql = "SELECT region, AVG(minutes) AS a FROM visits GROUP BY region"
    caps = []
    for epsilon in ("0.0002", "0.002", "0.02", "0.2"):
        part = planned(sql, FACTS, epsilon=epsilon).only
        (recipe,) = part.recipes
        assert isinstance(recipe, AverageMeasure)
        total, count = part.cuts[recipe.total].choice, part.cuts[recipe.count].choice
        caps.append((total.noise / count.total, total.lost_upper, count.lost_upper))
    assert all(before[0] > after[0] and before[2] >= after[2] for before, after in pairwise(caps))


def test_bars_reach_to_rows_of_another_average_and_to_missing_distances() -> None:
    """Distances are missing above rather than below where values are of one sign."""
    noise = Interval(-1.0, 1.0)
    reaching = centred_reaching(noise, rows=0.1, size=40.0, distance=2.0, either_way=False)
    assert (reaching.lo, reaching.hi) == pytest.approx((-1.0 - 1.0 - 0.8, 1.0 + 1.0 + 1.6))
    reaching = centred_reaching(noise, rows=0.1, size=40.0, distance=2.0, either_way=True)
    assert (reaching.lo, reaching.hi) == pytest.approx((-3.6, 3.6))
