"""A private set of keys: the exact law, and that its odds and delta hold together on every small relation of units and keys."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.thresholds import threshold_delta
from lapwing.mechanisms.key_set import KeySet, key_set_for
from tests.unit.mechanisms.ratios import excess

HALF = Fraction(1, 2)
LAPLACE = DiscreteLaplace(Fraction(1))


def test_a_law_written_out() -> None:
    """Decay 1/2, threshold 3: a key of 2 units needs Z >= 1, which is 1/3; of 3 units Z >= 0, 2/3; of none, never."""
    law = KeySet(LAPLACE, 1, 3).law((2, 0, 3), decay=HALF)
    third = Fraction(1, 3)
    assert law == {
        frozenset(): 2 * third * third,
        frozenset({0}): third * third,
        frozenset({2}): 2 * third * 2 * third,
        frozenset({0, 2}): third * 2 * third,
    }


def unit_choices(keys: int, groups_per_unit: int) -> list[tuple[int, ...]]:
    """All sets of at most so many keys that one unit may carry, as 0/1 vectors."""
    return [carried for carried in itertools.product((0, 1), repeat=keys) if sum(carried) <= groups_per_unit]


def worst_excess(mechanism: KeySet, *, odds: Fraction, decay: Fraction) -> Fraction:
    """The least delta at these odds over all data of at most two other units on two keys, and all neighbours."""
    choices = unit_choices(2, mechanism.groups_per_unit)
    worst = Fraction(0)
    for others in itertools.product(range(3), repeat=2):
        for one, other in itertools.product(choices, repeat=2):
            if mechanism.neighbours is Neighbours.UNBOUNDED and any(other):
                continue
            here, there = (tuple(map(int.__add__, others, carried)) for carried in (one, other))
            laws = (mechanism.law(here, decay=decay), mechanism.law(there, decay=decay))
            worst = max(worst, excess(*laws, odds=odds))
    return worst


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("groups_per_unit", [1, 2])
@pytest.mark.parametrize("threshold", [2, 3, 6])
@pytest.mark.parametrize("decay", [HALF, Fraction(2, 3)])
def test_odds_and_delta_hold_together(neighbours: Neighbours, groups_per_unit: int, threshold: int, decay: Fraction) -> None:
    mechanism = KeySet(LAPLACE, groups_per_unit, threshold, neighbours)
    claimed = mechanism.delta_at(decay=decay)
    found = worst_excess(mechanism, odds=mechanism.odds(decay=decay), decay=decay)
    assert found <= claimed
    if neighbours is Neighbours.UNBOUNDED or groups_per_unit == 1:
        assert found == claimed  # a unit whose keys are all its own


def test_a_delta_that_forgets_the_unit_itself_is_wrong() -> None:
    """``P[Z >= T]`` instead of ``P[Z >= T - 1]``, and the delta of one key for a unit of two: both are exceeded."""
    mechanism = KeySet(LAPLACE, 2, 4)
    found = worst_excess(mechanism, odds=mechanism.odds(decay=HALF), decay=HALF)
    assert found > KeySet(LAPLACE, 2, 5).delta_at(decay=HALF)
    assert found > KeySet(LAPLACE, 1, 4).delta_at(decay=HALF)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(20)])
def test_events(scale: Fraction) -> None:
    for law, epsilon_expected in ((DiscreteLaplace(scale), 3 / scale), (DiscreteGaussian(scale), None)):
        mechanism = key_set_for(law, groups_per_unit=3, delta=Fraction(1, 10**6))
        event = mechanism.event()
        assert event.delta == threshold_delta(law, groups_per_unit=3, threshold=mechanism.threshold) <= Fraction(1, 10**6)
        assert KeySet(law, 3, mechanism.threshold - 1).event().delta > Fraction(1, 10**6)
        rho_expected = (3 / scale) ** 2 / 2 if epsilon_expected else 3 / (2 * scale**2)
        assert event.rho is not None and 1 < event.rho / rho_expected < 1 + Fraction(1, 10**9)
        assert (event.epsilon is None) == (epsilon_expected is None)
        if event.epsilon is not None and epsilon_expected is not None:
            assert 1 < event.epsilon / epsilon_expected < 1 + Fraction(1, 10**9)
        bounded = KeySet(law, 3, mechanism.threshold, Neighbours.BOUNDED).event()
        assert bounded.rho is not None and bounded.rho == event.rho * (4 if epsilon_expected else 2)
        assert bounded.delta == event.delta
        if epsilon_expected is not None:
            at_scale = mechanism.delta_at(decay=Fraction(math.exp(-1 / scale)))
            assert math.isclose(at_scale, event.delta, rel_tol=1e-9)


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(2)), DiscreteLaplace(Fraction(20))], ids=str)
@pytest.mark.parametrize("confidence", [HALF, Fraction(9, 10), Fraction(999, 1000)])
def test_a_key_of_so_many_units_is_shown(law: DiscreteLaplace, confidence: Fraction) -> None:
    mechanism = key_set_for(law, groups_per_unit=2, delta=Fraction(1, 10**6))
    units, decay = mechanism.error(confidence=confidence), Fraction(math.exp(-1 / law.scale))
    assert mechanism.shown(units, decay=decay) >= confidence > mechanism.shown(units - 1, decay=decay)


def _code(call: Callable[[], object]) -> str:
    with pytest.raises(LapwingError) as refusal:
        call()
    return refusal.value.code


def test_refusals() -> None:
    a_float: Any = 1.0
    assert _code(lambda: KeySet(LAPLACE, 0, 3)) == "groups-invalid"
    assert _code(lambda: KeySet(LAPLACE, 1, a_float)) == "mechanism-invalid"
    assert _code(lambda: KeySet(LAPLACE, 1, 3).law((-1,), decay=HALF)) == "value-invalid"
    assert _code(lambda: KeySet(LAPLACE, 1, 3).law((a_float,), decay=HALF)) == "value-invalid"
    assert _code(lambda: KeySet(LAPLACE, 1, 3).law((1,) * 30, decay=HALF)) == "law-unavailable"
    assert _code(lambda: KeySet(LAPLACE, 1, 3).law((1,), decay=a_float)) == "decay-invalid"
    gaussian = KeySet(DiscreteGaussian(Fraction(1)), 1, 3)
    assert _code(lambda: gaussian.law((1,), decay=HALF)) == "law-unavailable"
    assert _code(lambda: gaussian.odds(decay=HALF)) == "law-unavailable"
    assert _code(lambda: KeySet(LAPLACE, 1, 3).event().cost(Account.PURE)) == "event-needs-delta"
    assert _code(lambda: key_set_for(LAPLACE, groups_per_unit=1, delta=Fraction(0))) == "threshold-needs-delta"
    assert _code(lambda: KeySet(DiscreteLaplace(Fraction(1, 2**20)), 1, -5)) == "mechanism-invalid"
