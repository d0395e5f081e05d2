"""Laplace or Gaussian noise in an account that is a union of filters."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings
from lapwing.kernel.accounting import LOSS_UNITS, Account, Cost, admits, budget_for
from lapwing.kernel.facts import Facts
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.noise_choice import loss_of_price, pure_facts, pure_share, relative_error, with_better_noise
from lapwing.planning.plan import plan_query
from lapwing.planning.planned import PlannedStatement, Price
from lapwing.spread import variance
from lapwing.sql import bind
from tests.unit.planning.test_plans import LIMITS, UNIT_COLUMNS, facts

BUDGET = budget_for(epsilon=Fraction(1), delta=Fraction(1, 10**8), order=32)
FACTS = replace(facts(Account.APPROXIMATE), order=32)
COUNT = "SELECT COUNT(*) AS n FROM people"
MANY = "SELECT COUNT(*) AS n, SUM(cost) AS s, AVG(late) AS a, MEDIAN(cost) AS m FROM visits"


def at_share(share: Fraction | int) -> Price:
    return Price(Fraction(math.floor(BUDGET.loss_total * share), LOSS_UNITS), Fraction(1, 10**10))


def plan(sql: str, known: Facts, price: Price) -> PlannedStatement:
    statement = bind(sql, FACTS, settings=Settings(), unit_columns=UNIT_COLUMNS)
    return plan_query(statement.private, known, price, contributions={}, units=None, limits=LIMITS, finder=GroupFinder(evaluate))


def chosen(sql: str, share: Fraction | int, *, spent: Cost | None = None, bought: frozenset[str] = frozenset()) -> PlannedStatement:
    return with_better_noise(
        lambda known, price: plan(sql, known, price),
        FACTS,
        at_share(share),
        scale=BUDGET,
        budget=BUDGET,
        spent=Cost.zero() if spent is None else spent,
        was_bought=lambda digest: digest in bought,
    )


def is_laplace(planned: PlannedStatement) -> bool:
    laws = {type(vector.vector.law) for query in planned.certified.queries for vector in query.vectors}
    assert len(laws) == 1 and laws <= {DiscreteLaplace, DiscreteGaussian}
    assert (planned.certified.cost.pure is not None) == (laws == {DiscreteLaplace})
    return laws == {DiscreteLaplace}


def test_one_question_has_a_quarter_of_the_noise() -> None:
    found, gaussian = chosen(COUNT, 1), plan(COUNT, FACTS, at_share(1))
    assert is_laplace(found) and not is_laplace(gaussian)
    deviations = [math.sqrt(variance(planned.certified.queries[0].vectors[0].vector.law)) for planned in (gaussian, found)]
    assert 3.8 < deviations[0] / deviations[1] < 4.2
    assert admits(BUDGET, spent=Cost.zero(), cost=found.certified.cost)


@pytest.mark.parametrize(("questions", "laplace"), [(1, True), (5, True), (12, True), (20, False), (100, False)])
def test_laplace_serves_few_questions_and_gaussian_noise_many(questions: int, laplace: bool) -> None:
    assert is_laplace(chosen(COUNT, Fraction(1, questions))) is laplace


@pytest.mark.parametrize("measure", ["COUNT(*)", "SUM(cost)"])
def test_groups_that_norms_can_bound_have_gaussian_noise_unless_much_would_be_lost(measure: str) -> None:
    """Norms bound groups with Gaussian noise only, and what is predicted without them is an upper end of what they will give."""
    sql = f"SELECT clinic, {measure} AS v FROM visits GROUP BY clinic"
    found = chosen(sql, 1)
    assert found.wanted and not is_laplace(found)
    assert relative_error(found, plan(sql, pure_facts(FACTS), Price(pure_share(BUDGET, at_share(1).loss), Fraction(0)))) > 1
    spent = Cost(loss=BUDGET.loss_total // 2, delta=0, pure=LOSS_UNITS // 10)
    assert is_laplace(chosen(sql, Fraction(1, 4), spent=spent))


@pytest.mark.parametrize("sql", [COUNT, MANY, "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic"])
@pytest.mark.parametrize("share", [1, Fraction(1, 3), Fraction(1, 50)])
def test_no_plan_takes_more_than_its_share(sql: str, share: Fraction | int) -> None:
    planned = chosen(sql, share)
    cost = planned.certified.cost
    assert planned.facts == FACTS == planned.certified.facts
    if is_laplace(planned):
        assert cost.pure is not None and BUDGET.pure_total is not None and cost.pure <= BUDGET.pure_total * share
        again = with_better_noise(
            lambda known, price: plan(sql, known, price),
            FACTS,
            Price(Fraction(loss_of_price(BUDGET, cost), LOSS_UNITS), Fraction(1, 10**10)),
            scale=BUDGET,
            budget=BUDGET,
            spent=Cost.zero(),
            was_bought=lambda digest: False,
        )
        assert abs(relative_error(again, planned) - 1) < 1e-6
    else:
        assert cost.loss <= at_share(share).loss * LOSS_UNITS and loss_of_price(BUDGET, cost) == cost.loss


def test_plans_that_measure_different_numbers_of_vectors_are_compared() -> None:
    many, one = plan(MANY, FACTS, at_share(1)), plan(COUNT, FACTS, at_share(1))
    assert relative_error(many, one) > 1 > relative_error(one, many) > 0


def test_a_closed_pure_side_leaves_gaussian_noise() -> None:
    assert not is_laplace(chosen(COUNT, Fraction(1, 5), spent=Cost(loss=1, delta=0)))
    nearly = Cost(loss=10, delta=0, pure=LOSS_UNITS - 1)
    assert not is_laplace(chosen(COUNT, Fraction(1, 5), spent=nearly))


def test_what_only_laplace_noise_can_pay_has_it() -> None:
    spent = Cost(loss=BUDGET.loss_total, delta=0, pure=LOSS_UNITS // 2)
    assert is_laplace(chosen(COUNT, Fraction(1, 100), spent=spent))


def test_the_pure_side_is_not_closed_for_a_small_question_when_much_would_be_lost() -> None:
    spent = Cost(loss=BUDGET.loss_total // 2, delta=0, pure=LOSS_UNITS // 4)
    assert is_laplace(chosen(COUNT, Fraction(1, 100), spent=spent))
    even = Cost(loss=BUDGET.loss_total // 4, delta=0, pure=LOSS_UNITS // 4)
    assert not is_laplace(chosen(COUNT, Fraction(1, 100), spent=even))


def test_what_was_answered_before_is_asked_again_as_it_was() -> None:
    laplace, gaussian = chosen(COUNT, Fraction(1, 5)), plan(COUNT, FACTS, at_share(Fraction(1, 5)))
    closed = Cost(loss=1, delta=0)
    assert chosen(COUNT, Fraction(1, 5), spent=closed, bought=frozenset({laplace.certified.digest})) == laplace
    assert chosen(COUNT, Fraction(1, 5), bought=frozenset({gaussian.certified.digest})) == gaussian


def test_discovered_keys_have_no_pure_epsilon() -> None:
    found = chosen("SELECT drug, COUNT(*) AS n FROM drugs GROUP BY drug", Fraction(1, 2))
    assert found.certified.queries[0].keys is not None and found.certified.cost.pure is None


def test_an_account_without_an_order_is_planned_as_before() -> None:
    known, budget = facts(Account.APPROXIMATE), budget_for(epsilon=Fraction(1), delta=Fraction(1, 10**8))
    price = Price(Fraction(budget.loss_total, LOSS_UNITS), Fraction(1, 10**10))
    found = with_better_noise(
        lambda facts, price: plan(COUNT, facts, price),
        known,
        price,
        scale=budget,
        budget=budget,
        spent=Cost.zero(),
        was_bought=lambda digest: False,
    )
    assert found == plan(COUNT, known, price) and not is_laplace(found)


def test_the_epsilon_of_a_share_is_whole_units_and_at_least_one() -> None:
    assert pure_share(BUDGET, Fraction(BUDGET.loss_total, LOSS_UNITS)) == 1
    assert pure_share(BUDGET, Fraction(1, LOSS_UNITS * 10**6)) == Fraction(1, LOSS_UNITS)
