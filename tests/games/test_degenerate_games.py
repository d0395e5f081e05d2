"""Games that are none: what would be certified wrongly is stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pytest

from lapwing.errors import LapwingError
from lapwing.games.certification import certify
from lapwing.games.commitment import expected_gap, is_truthful_share, largest_cost_gap
from lapwing.games.equilibria import is_equilibrium, pure_equilibria, regret
from lapwing.games.exponentials import ExactNumber, SumOfExponentials, rational
from lapwing.games.facility import FacilityLocation
from lapwing.games.report import GameRefuted, PrivateFor

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Listed:
    """A mechanism that is a list of weights for each report of one person."""

    outcomes: tuple[str, ...]
    by_report: Mapping[str, tuple[Fraction, ...]] = field(hash=False)
    name: str = "listed"

    def weights(self, reports: Sequence[str]) -> tuple[SumOfExponentials, ...]:
        return tuple(rational(weight) for weight in self.by_report[reports[0]])

    def honest(self, type_: str, others: Sequence[str]) -> tuple[Fraction, ...]:
        return (Fraction(0),) * len(self.outcomes)

    def lying(self, type_: str, report: str, others: Sequence[str]) -> tuple[Fraction, ...]:
        return self.honest(type_, others)

    def objective(self, reports: Sequence[str]) -> tuple[Fraction, ...]:
        return self.honest(reports[0], ())


WEIGHTS = {
    "a": (Fraction(100), Fraction(800), Fraction(100)),
    "b": (Fraction(100), Fraction(1), Fraction(899)),
}


def _code(act: Callable[[], object]) -> str:
    with pytest.raises(LapwingError) as stopped:
        act()
    return stopped.value.code


def test_an_outcome_that_is_listed_twice_is_no_outcome() -> None:
    """The chance of the first of the two does not change, and was shown for both: a factor of 9 was certified as one of 1."""
    assert _code(lambda: certify(Listed(("x", "x", "y"), WEIGHTS), ("a", "b"), 1)) == "game-invalid"
    merged = {report: (first + second, third) for report, (first, second, third) in WEIGHTS.items()}
    found = certify(Listed(("x", "y"), merged), ("a", "b"), 1)
    assert found.law_ratio == Fraction(899, 100)
    assert isinstance(found.check(PrivateFor(Fraction(2))), GameRefuted)


def test_payoffs_are_exact_and_somebody_plays() -> None:
    nothing = float("nan")
    payoffs: list[Callable[[int, tuple[str, ...]], object]] = [
        lambda player, profile: nothing if profile == ("swerve",) else 0,
        lambda player, profile: float("inf"),
        lambda player, profile: 0.1 + 0.2,
        lambda player, profile: True,
    ]
    for payoff in payoffs:
        assert _code(lambda payoff=payoff: is_equilibrium(payoff, [("stay", "swerve")], ("stay",))) == "number-invalid"  # type: ignore[misc]
    assert _code(lambda: regret(lambda player, profile: Fraction(0), [], ())) == "game-invalid"
    assert _code(lambda: list(pure_equilibria(lambda player, profile: Fraction(0), []))) == "game-invalid"
    assert list(pure_equilibria(lambda player, profile: Fraction(0), [("stay",), ()])) == [], "somebody who can do nothing"


def test_a_share_is_one() -> None:
    gain = ExactNumber.of(Fraction(1, 10))
    assert is_truthful_share(HALF, gap=HALF, gain=gain)
    for share in (Fraction(2), Fraction(-1)):
        assert _code(lambda share=share: is_truthful_share(share, gap=HALF, gain=gain)) == "game-invalid"  # type: ignore[misc]


def test_a_gap_is_between_types() -> None:
    street = FacilityLocation([Fraction(0), Fraction(1)], facilities=1, epsilon=Fraction(1))
    for gap in (expected_gap, largest_cost_gap):
        for types in ((), (Fraction(0),), (Fraction(0), Fraction(0))):
            assert _code(lambda gap=gap, types=types: gap(street, types)) == "game-invalid"  # type: ignore[misc]
