"""What the gate draws is the law that the mechanism states: chi-squared, on ten or twenty thousand runs of each.

Each comparison raises a false alarm with probability at most 1e-6. The law is rational at a rational decay; here it is taken at the float
nearest to ``exp(-1 / scale)``, which no number of runs we can make tells apart from it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

import pytest
from scipy import stats

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.laws import SCALE_MAX, DiscreteGaussian, DiscreteLaplace
from lapwing.mechanisms.above_threshold import AboveThreshold, SparseVector
from lapwing.mechanisms.additive import GaussianMechanism, LaplaceMechanism
from lapwing.mechanisms.draw import SparseSession, draw, draw_many
from lapwing.mechanisms.key_set import KeySet
from lapwing.mechanisms.response import RandomisedResponse, response_for, two_coin
from lapwing.mechanisms.sampling import response as response_noise
from tests.support.promises import coverage

FALSE_ALARM = 1e-6
APPROXIMATE = Account.APPROXIMATE
PLENTY = Cost(loss=10**24, delta=10**36)
ABOVE = AboveThreshold(1, 2, Fraction(1), Fraction(2))


def decay_of(scale: Fraction) -> Fraction:
    """``exp(-1 / scale)``, to 16 digits."""
    return Fraction(math.exp(-1 / scale))


def p_value(law: Mapping[Any, Fraction], outputs: list[Any]) -> float:
    """Of these outputs under this law; cells are expected at least 25 times, rare outputs share one, an impossible one has p-value 0."""
    seen: Counter[Hashable] = Counter(outputs)
    if seen.keys() - law.keys():
        return 0.0
    cells = sorted((len(outputs) * float(chance), seen[output]) for output, chance in law.items())
    while cells[0][0] < 25:
        (expected, observed), (expected_next, observed_next) = cells[:2]
        cells = sorted([(expected + expected_next, observed + observed_next), *cells[2:]])
    statistic = sum((observed - expected) ** 2 / expected for expected, observed in cells)
    return float(stats.chi2.sf(statistic, len(cells) - 1))


CASES: list[tuple[Any, Any, Fraction, int]] = [
    (LaplaceMechanism(Fraction(3), 1, clamp=(0, 12)), 4, Fraction(3), 20_000),
    (LaplaceMechanism(Fraction(3, 2), 1, clamp=(-1, 2)), (0, 5), Fraction(3, 2), 20_000),
    (two_coin(), 1, Fraction(1), 20_000),
    (RandomisedResponse(5, Fraction(3, 8)), 3, Fraction(1), 20_000),
    (RandomisedResponse(3, Fraction(1, 2)), (2, 0), Fraction(1), 10_000),
    (ABOVE, (0, 2, 1, 4), Fraction(2), 20_000),
    (AboveThreshold(1, 2, Fraction(2), Fraction(1), monotone=True), (0, 2, 1), Fraction(2), 20_000),
    (SparseVector(ABOVE, 2), (0, 2, 1, 4), Fraction(2), 20_000),
    (KeySet(DiscreteLaplace(Fraction(2)), 1, 4), (3, 0, 5, 1), Fraction(2), 20_000),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "value", "common_scale", "runs"), CASES, ids=[str(case[0]) for case in CASES])
def test_the_gate_draws_the_stated_law(mechanism: Any, value: Any, common_scale: Fraction, runs: int) -> None:
    outputs = draw_many(mechanism, value, times=runs, account=APPROXIMATE, charged=PLENTY)
    law = mechanism.law(value, decay=decay_of(common_scale))
    assert len(outputs) == runs
    assert p_value(law, outputs) > FALSE_ALARM
    # the comparison can fail: the law of a value one further on, or of another answer
    other = mechanism.law(_moved(value), decay=decay_of(common_scale))
    assert p_value(other, outputs) < FALSE_ALARM


def _moved(value: Any) -> Any:
    return tuple(_moved(item) for item in value) if isinstance(value, tuple) else value - 1 if value else 1


@pytest.mark.slow
def test_single_draws_and_a_session_have_the_same_law() -> None:
    """``draw`` and ``SparseSession`` against the exact law, 1,000 runs each."""
    stream, sparse = (0, 2, 1, 4), SparseVector(ABOVE, 2)
    law = sparse.law(stream, decay=decay_of(Fraction(2)))
    drawn = [draw(sparse, stream, account=APPROXIMATE, charged=PLENTY) for _ in range(1_000)]
    asked = [_asked(SparseSession(sparse, account=APPROXIMATE, charged=PLENTY), stream) for _ in range(1_000)]
    assert p_value(law, drawn) > FALSE_ALARM
    assert p_value(law, asked) > FALSE_ALARM


def _asked(session: SparseSession, stream: tuple[int, ...]) -> tuple[int, ...]:
    said: list[int] = []
    for index, item in enumerate(stream):
        if not session.ended and session.ask(item):
            said.append(index)
    return tuple(said)


def test_a_session_ends_and_keeps_its_threshold_to_itself() -> None:
    sparse = SparseVector(AboveThreshold(1, 10, Fraction(1), Fraction(2)), 2)
    session = SparseSession(sparse, account=Account.PURE, charged=sparse.event().cost(Account.PURE))
    # 1,000 away from the threshold noise of these scales does not matter, but for a probability below 1e-100
    assert [session.ask(-1_000), session.ask(1_000), session.ask(-1_000)] == [False, True, False]
    assert repr(session) == "SparseSession(starts_left=1)"
    assert session.ask(1_000) and session.ended
    with pytest.raises(Refused) as refusal:
        session.ask(1_000)
    assert refusal.value.code == "session-ended"
    assert not hasattr(session, "__dict__")


def test_values_of_any_size_are_compared() -> None:
    sparse = SparseVector(AboveThreshold(1, 0, SCALE_MAX, SCALE_MAX), 2)
    assert draw(sparse, (-(10**40), 10**40, -(10**40), 10**40), account=APPROXIMATE, charged=PLENTY) == (1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("response", [two_coin(), RandomisedResponse(4, Fraction(5, 8))], ids=str)
def test_intervals_of_real_answers_cover(response: RandomisedResponse) -> None:
    """Of 50 people each, 90 % intervals: each answer by itself."""
    people = (0,) * 30 + (1,) * 15 + (response.categories - 1,) * 5
    truly = [people.count(category) for category in range(response.categories)]
    promise = coverage("intervals of real answers")
    surveys = draw_many(response, people, times=promise.answers, account=APPROXIMATE, charged=PLENTY)
    held = [0] * response.categories
    for said in surveys:
        intervals = response.interval([said.count(category) for category in range(response.categories)], confidence=Fraction(9, 10))
        for category, (low, high) in enumerate(intervals):
            held[category] += low <= truly[category] <= high
    for number in held:
        promise.require(number, of=len(surveys))


PRICED: list[tuple[Any, Any, Account]] = [
    (LaplaceMechanism(Fraction(3), 2), 4, Account.PURE),
    (LaplaceMechanism(Fraction(3), 2), (4, 5), APPROXIMATE),
    (GaussianMechanism(Fraction(3), 2), 4, APPROXIMATE),
    (two_coin(), 1, Account.PURE),
    (two_coin(), (1, 0), APPROXIMATE),
    (ABOVE, (1, 2), Account.PURE),
    (SparseVector(ABOVE, 3), (1, 2), APPROXIMATE),
    (KeySet(DiscreteLaplace(Fraction(2)), 1, 20), (1, 2), APPROXIMATE),
    (KeySet(DiscreteGaussian(Fraction(2)), 1, 20), (1, 2), APPROXIMATE),
]


@pytest.mark.parametrize(("mechanism", "value", "account"), PRICED, ids=[f"{case[0]}-{case[2].value}" for case in PRICED])
def test_one_unit_less_than_the_price_draws_nothing(mechanism: Any, value: Any, account: Account) -> None:
    price = mechanism.event().cost(account)
    draw(mechanism, value, account=account, charged=price)
    assert len(draw_many(mechanism, value, times=3, account=account, charged=Cost(loss=3 * price.loss, delta=3 * price.delta))) == 3
    short = [Cost(loss=price.loss - 1, delta=price.delta)]
    if price.delta:
        short.append(Cost(loss=price.loss, delta=price.delta - 1))
    for charged in short:
        with pytest.raises(LapwingError) as refusal:
            draw(mechanism, value, account=account, charged=charged)
        assert refusal.value.code == "noise-undercharged"
        with pytest.raises(LapwingError) as refusal:
            draw_many(mechanism, value, times=2, account=account, charged=charged + price)
        assert refusal.value.code == "noise-undercharged"


def test_a_mechanism_that_needs_delta_is_not_drawn_on_a_pure_account() -> None:
    for mechanism in (GaussianMechanism(Fraction(3), 2), KeySet(DiscreteLaplace(Fraction(2)), 1, 20)):
        with pytest.raises(Refused) as refusal:
            draw(mechanism, (4,), account=Account.PURE, charged=PLENTY)
        assert refusal.value.code == "event-needs-delta"
    with pytest.raises(Refused) as wrong:
        draw_many(two_coin(), 1, times=-1, account=Account.PURE, charged=PLENTY)
    assert wrong.value.code == "mechanism-invalid"


def test_the_sampler_of_responses_never_claims_more_than_the_event() -> None:
    """Its own map, in floats, against ours, over truths from near chance to near certainty."""
    for categories in (2, 3, 7, 100, 4096):
        for epsilon in (Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(4), Fraction(15), Fraction(30)):
            response = response_for(epsilon=epsilon, categories=categories)
            ours, theirs = response.event().epsilon, Fraction(response_noise._measurement(categories, float(response.truth)).map(1))
            assert ours is not None and theirs <= ours <= theirs * (1 + Fraction(1, 10**5))
            with pytest.raises(LapwingError) as refusal:
                response_noise.respond([0], categories=categories, truth=response.truth, epsilon_charged=theirs - Fraction(1, 10**9))
            assert refusal.value.code == "noise-undercharged"
