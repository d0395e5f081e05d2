"""Facility location: what the exponential mechanism lets a lie gain, and the mixture that lets it gain nothing."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from lapwing.errors import LapwingError
from lapwing.games import (
    CommitmentMixture,
    ExactNumber,
    FacilityLocation,
    GameHolds,
    GameRefuted,
    GameReport,
    LiesGainAtMost,
    LiesLose,
    PrivateFor,
    certify,
    commitment_mechanism,
    expected_gap,
    is_truthful_share,
    largest_cost_gap,
    least_share,
)

SPOTS = tuple(Fraction(spot, 5) for spot in range(6))
FIGURES = {Fraction(1, 5): "0.00012", Fraction(1): "0.00073"}


@cache
def alone(epsilon: Fraction) -> GameReport[Fraction, tuple[Fraction, ...]]:
    return certify(FacilityLocation(SPOTS, facilities=2, epsilon=epsilon), SPOTS, 5)


@pytest.mark.parametrize("epsilon", FIGURES, ids=str)
def test_alone_it_lets_a_lie_gain_a_little(epsilon: Fraction) -> None:
    found = alone(epsilon)
    figure = Fraction(FIGURES[epsilon])
    assert figure - Fraction(5, 10**6) <= found.largest_gain <= figure + Fraction(5, 10**6)
    assert isinstance(found.check(LiesGainAtMost(Fraction(0))), GameRefuted)
    assert isinstance(found.check(PrivateFor(epsilon)), GameHolds)
    assert isinstance(found.check(LiesGainAtMost(2 * epsilon)), GameHolds)


@pytest.mark.parametrize(("epsilon", "share"), [(Fraction(1, 5), Fraction(1, 10)), (Fraction(1), Fraction(1, 2))], ids=str)
def test_mixed_no_lie_gains(epsilon: Fraction, share: Fraction) -> None:
    game = FacilityLocation(SPOTS, facilities=2, epsilon=epsilon)
    gap = expected_gap(game, SPOTS).amount
    assert is_truthful_share(share, gap=gap, gain=alone(epsilon).largest_gain)
    found = certify(CommitmentMixture(game, share=share), SPOTS, 5)
    assert found.largest_gain == 0 and found.largest_gain.fraction == 0
    assert isinstance(found.check(LiesGainAtMost(Fraction(0))), GameHolds)
    assert isinstance(found.check(LiesLose()), GameHolds)


def test_a_share_that_is_too_small_is_refuted() -> None:
    game = FacilityLocation(SPOTS, facilities=2, epsilon=Fraction(1))
    share = Fraction(1, 100)
    assert not is_truthful_share(share, gap=expected_gap(game, SPOTS).amount, gain=alone(Fraction(1)).largest_gain)
    verdict = certify(CommitmentMixture(game, share=share), SPOTS, 5).check(LiesGainAtMost(Fraction(0)))
    assert isinstance(verdict, GameRefuted) and "(0, 1/5), held to the report" in str(verdict)


def test_the_least_share_is_the_least_that_the_condition_allows() -> None:
    gain, gap = alone(Fraction(1)).largest_gain, Fraction(1, 75)
    low, high = least_share(gap=gap, gain=gain).bounds()
    assert is_truthful_share(high, gap=gap, gain=gain) and not is_truthful_share(low, gap=gap, gain=gain)
    assert Fraction(52, 1000) < low < high < Fraction(53, 1000)
    assert least_share(gap=gap, gain=ExactNumber.of(0)) == 0


def test_gaps() -> None:
    """Neighbours on the street: only where both spots are built do they part, which is one pair of fifteen, and costs a fifth."""
    game = FacilityLocation(SPOTS, facilities=2, epsilon=Fraction(1))
    expected, largest = expected_gap(game, SPOTS), largest_cost_gap(game, SPOTS)
    assert (expected.amount, expected.truth, expected.lie) == (Fraction(1, 75), SPOTS[0], SPOTS[1])
    assert largest.amount == Fraction(1, 5)
    assert expected.amount >= largest.amount / len(game.outcomes)


def test_the_commitment_mechanism_alone_is_strictly_truthful_and_ignores_people() -> None:
    game = FacilityLocation(SPOTS, facilities=2, epsilon=Fraction(1))
    found = certify(commitment_mechanism(game), SPOTS, 3)
    assert isinstance(found.check(LiesLose()), GameHolds) and found.law_ratio == 1
    assert found.best_lie.gain == -expected_gap(game, SPOTS).amount
    assert found.loss > certify(game, SPOTS, 3).loss


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 3), Fraction(1)], ids=str)
def test_people_are_held_with_the_stated_chance_whatever_they_report(share: Fraction) -> None:
    mixture = CommitmentMixture(FacilityLocation(SPOTS, facilities=2, epsilon=Fraction(2)), share=share)
    for reports in [(SPOTS[0],) * 3, (SPOTS[0], SPOTS[3], SPOTS[5])]:
        weights = mixture.weights(reports)
        whole = ExactNumber(sum(weights[1:], weights[0]))
        held = ExactNumber(sum(weights[16:], weights[15]))
        assert held / whole == share


def test_laws_that_are_fractions() -> None:
    """Spots 0, 1, 2 and one facility; two people at the ends: all three spots serve them equally well."""
    spots = tuple(Fraction(spot) for spot in range(3))
    game = FacilityLocation(spots, facilities=1, factor=Fraction(2))
    found = certify(game, spots, 2)
    assert found.largest_gain.fraction is not None
    assert set(game.objective((spots[0], spots[2]))) == {1}
    assert [weight.terms for weight in game.weights((spots[0], spots[0]))] == [{0: 16}, {0: 4}, {0: 1}]


@pytest.mark.parametrize(
    "act",
    [
        lambda: CommitmentMixture(FacilityLocation(SPOTS, facilities=1, epsilon=Fraction(1)), share=Fraction(2)),
        lambda: least_share(gap=Fraction(0), gain=ExactNumber.of(1)),
        lambda: least_share(gap=Fraction(1), gain=ExactNumber.of(-1)),
    ],
)
def test_what_makes_no_sense_is_stopped(act: object) -> None:
    assert callable(act)
    with pytest.raises(LapwingError) as error:
        act()
    assert error.value.code == "game-invalid"
