"""From a bound statement to a certified plan: recipes, grids, and a cost that never exceeds the price."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.audit.runs import prepare_in_duckdb
from lapwing.audit.worlds import declare, random_world
from lapwing.catalog import Settings
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account, charge_delta, charge_loss
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import GridSum, Grouped, PublicJoin, Ranked, RowCount, Scan
from lapwing.kernel.stability import shape_of
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.measures import AverageMeasure, CountMeasure, SumMeasure, measured
from lapwing.planning.plan import plan_query
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.sql import bind
from lapwing.statements import Statement
from tests.support.sql_queries import SqlQueries

UNIT_COLUMNS = {"people": "person_id", "visits": "person_id"}
LIMITS = GroupLimits(1_000_000, 1_000)


@lru_cache
def facts(account: Account, relation: str = "unbounded") -> Facts:
    delta = "0" if account is Account.PURE else '"2^-30"'
    with TemporaryDirectory() as scratch:
        snapshot = prepare_in_duckdb(declare(random_world(random.Random(0)), Path(scratch) / "w", neighbours=relation, delta=delta))
        snapshot.close()
    return snapshot.facts


def bound(sql: str, account: Account = Account.APPROXIMATE) -> Statement:
    return bind(sql, facts(account), settings=Settings(), unit_columns=UNIT_COLUMNS)


def planned(
    sql: str,
    account: Account = Account.APPROXIMATE,
    *,
    relation: str = "unbounded",
    price: Price | None = None,
    contributions: Contributions | None = None,
) -> PlannedStatement:
    known = facts(account, relation)
    statement = bind(sql, known, settings=Settings(), unit_columns=UNIT_COLUMNS)
    bought = {} if contributions is None else dict.fromkeys(known.tables, contributions)
    default = Price(Fraction(1, 10), Fraction(1, 10**9) if account is Account.APPROXIMATE else Fraction(0))
    return plan_query(
        statement.private, known, price or default, contributions=bought, units=None, limits=LIMITS, finder=GroupFinder(evaluate)
    )


def test_equal_measures_are_measured_once() -> None:
    sql = "SELECT AVG(cost) AS a, SUM(late) AS b, COUNT(cost) AS c, AVG(cost) * 2 AS d, COUNT(*) AS e, SUM(late) + 1 AS f FROM visits"
    private = bound(sql).private
    found = measured(private.aggregates, shape_of(private.source, facts(Account.APPROXIMATE)))
    assert len(private.aggregates) == 4 and len(found.measures) == 4
    average, total, count, rows = found.recipes
    assert (
        isinstance(average, AverageMeasure)
        and isinstance(total, SumMeasure)
        and isinstance(count, CountMeasure)
        and isinstance(rows, CountMeasure)
    )
    assert average.count == count.vector, "the count of an average is the count of its values"
    assert total.whole and found.has_average


def test_sums_live_on_the_grid_of_their_column_and_averages_around_its_middle() -> None:
    plan = planned("SELECT SUM(cost) AS a, AVG(late) AS b, AVG(change) AS c, SUM(cost * 1.5) AS d FROM visits").certified.plan
    measures = [vector.measure for vector in plan.queries[0].vectors]
    sums = [measure for measure in measures if isinstance(measure, GridSum)]
    cost, late, change, computed = sums
    assert (cost.steps, cost.offset) == (100, 0) and (cost.lower, cost.upper) == (Fraction(0), Fraction(500))
    assert (late.steps, late.offset) == (1, 75), "values from 50 to 100: a row moves the sum by 25 at most"
    assert (change.steps, change.offset) == (2, 0), "already centred"
    assert computed.steps == 10**6
    assert sum(isinstance(measure, RowCount) for measure in measures) == 2


def test_a_ranked_plan_lowers_the_scan_under_its_joins_and_filters() -> None:
    few = Contributions(((1.0, 1_000.0),))
    sql = "SELECT COUNT(*) AS n FROM visits v JOIN clinics c ON c.clinic = v.clinic"
    source = planned(sql, contributions=few).certified.plan.queries[0].source
    assert isinstance(source, PublicJoin) and source.source == Scan("visits", 1)


@pytest.mark.parametrize("account", list(Account))
@pytest.mark.parametrize("relation", ["unbounded", "bounded"])
def test_the_cost_is_the_price_and_never_more(account: Account, relation: str) -> None:
    """Whatever is asked: the certified cost is at most the price, and little of the price is wasted."""
    queries = SqlQueries(facts(account, relation), UNIT_COLUMNS, seed=9)
    rng = random.Random(3)
    checked = 0
    while checked < 60:
        delta = Fraction(1, 10**9) if account is Account.APPROXIMATE else Fraction(0)
        price = Price(Fraction(rng.choice((1, 5, 77, 1_000)), rng.choice((10, 1_000, 10**5))), delta)
        try:
            found = planned(queries.statement().text, account, relation=relation, price=price)
        except Refused:
            continue
        if found.measured is None:  # no row can meet its conditions
            continue
        cost = found.certified.cost
        assert cost.loss <= charge_loss(price.loss)
        assert cost.delta <= charge_delta(price.delta)
        assert (cost.delta > 0) == (not found.only.known)
        assert cost.loss >= charge_loss(price.loss) * 0.99 or _smallest_noise(found)
        checked += 1


def _smallest_noise(found: PlannedStatement) -> bool:
    """Whether some vector cannot be moved at all, so that its share buys nothing."""
    return any(vector.sensitivity.l1 == 0 for vector in found.certified.queries[0].vectors)


def test_groups_of_a_computed_real_are_never_chosen_among() -> None:
    """The certifier would refuse the plan: 0.0 and -0.0 are one group but two texts."""
    many = Contributions(((11.0, 1_000.0),))
    for key, expected in (("change * 2", Ranked), ("change", Grouped)):
        sql = f"SELECT {key} AS k, COUNT(*) AS n FROM visits WHERE day = '2024-07-07' GROUP BY k"
        query = planned(sql, Account.PURE, contributions=many).certified.plan.queries[0]
        assert isinstance(query.bounding, expected), key
