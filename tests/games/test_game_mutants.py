"""Every planted mistake is seen by the comparison with the oracle, and wrong gaps by what the enumeration says of their mixture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

from lapwing.games import CommitmentMixture, FacilityLocation, GameRefuted, LiesGainAtMost, certify, expected_gap, least_share
from lapwing.games.commitment import _costs
from tests.games import oracle, subjects
from tests.games.mutants import MUTANTS

WANTED: dict[str, oracle.Figures] = {name: by_hand() for name, (_, by_hand) in subjects.SUBJECTS.items()}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_mistake_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    seen = []
    for subject, (library, _) in subjects.SUBJECTS.items():
        try:
            found = subjects.figures_of(library())
        except Exception:  # a mistake may also break the enumeration
            seen.append(subject)
            continue
        if not subjects.alike(found, WANTED[subject]):
            seen.append(subject)
        if seen:
            break
    assert seen


SPOTS = tuple(Fraction(spot, 5) for spot in range(6))
GAME = FacilityLocation(SPOTS, facilities=2, epsilon=Fraction(1))


def _mean(costs: Sequence[Fraction]) -> Fraction:
    return sum(costs, Fraction(0)) / len(costs)


WRONG_GAPS: dict[str, Callable[[], Fraction]] = {
    "the largest cost, not the least": lambda: max(_mean(_costs(GAME, t, lie)) for t in SPOTS for lie in SPOTS if t != lie),
    "of the ends of the street only": lambda: _mean(_costs(GAME, SPOTS[0], SPOTS[-1])),
    "the largest over outcomes, taken for the mean": lambda: min(max(_costs(GAME, t, lie)) for t in SPOTS for lie in SPOTS if t != lie),
    "the sum over outcomes": lambda: expected_gap(GAME, SPOTS).amount * len(GAME.outcomes),
}


@pytest.mark.parametrize("name", WRONG_GAPS)
def test_a_wrong_gap_makes_a_share_that_is_refuted(name: str) -> None:
    """A share computed from a gap that is too large lets a lie gain, and the enumeration finds the lie."""
    gain = certify(GAME, SPOTS, 3).largest_gain
    right, wrong = expected_gap(GAME, SPOTS).amount, WRONG_GAPS[name]()
    assert wrong > right
    share = least_share(gap=wrong, gain=gain).bounds()[1]
    verdict = certify(CommitmentMixture(GAME, share=share), SPOTS, 3).check(LiesGainAtMost(Fraction(0)))
    assert isinstance(verdict, GameRefuted)
