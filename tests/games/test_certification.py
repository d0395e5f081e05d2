"""What `certify` finds is what an independent enumeration finds, and its witnesses can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from lapwing.errors import LapwingError, Refused
from lapwing.games import (
    DigitalGoodsAuction,
    FacilityLocation,
    GameHolds,
    GameRefuted,
    LiesGainAtMost,
    LiesLose,
    LiesMultiplyBy,
    LosesAtMost,
    PrivateFor,
    SumOfExponentials,
    certify,
)
from lapwing.games.exponentials import rational
from lapwing.games.mechanism import ExponentialChoice, ReportMechanism
from tests.games.subjects import SUBJECTS, alike, figures_of

HALF = Fraction(1, 2)


class Vote:
    """Two candidates; a vote for one moves both scores when it is replaced, which is what the 2 in the exponent is for."""

    name = "vote"
    outcomes = (0, 1)
    buffer: list[Fraction]

    def __init__(self, choice: ExponentialChoice, dislike: Fraction = Fraction(0)) -> None:
        self.choice = choice
        self.dislike = dislike

    def weights(self, reports: Sequence[int]) -> Sequence[SumOfExponentials]:
        return self.choice.weights([Fraction(list(reports).count(candidate)) for candidate in self.outcomes])

    def honest(self, type_: int, others: Sequence[int]) -> Sequence[Fraction]:
        return [Fraction(1) if candidate == type_ else -self.dislike for candidate in self.outcomes]

    def lying(self, type_: int, report: int, others: Sequence[int]) -> Sequence[Fraction]:
        return self.honest(type_, others)

    def objective(self, reports: Sequence[int]) -> Sequence[Fraction]:
        return [Fraction(list(reports).count(candidate)) for candidate in self.outcomes]


class Fixed(Vote):
    """Weights by the number of votes for candidate 1."""

    def __init__(self, table: dict[int, tuple[int, int]]) -> None:
        super().__init__(ExponentialChoice(epsilon=Fraction(0)))
        self.table = table

    def weights(self, reports: Sequence[int]) -> Sequence[SumOfExponentials]:
        return [rational(weight) for weight in self.table[sum(reports)]]


@pytest.mark.parametrize("name", SUBJECTS)
def test_figures_are_those_of_the_oracle(name: str) -> None:
    library, by_hand = SUBJECTS[name]
    assert alike(figures_of(library()), by_hand())


def test_a_game_whose_laws_are_fractions_is_decided_in_fractions() -> None:
    """Prices 1 and 2, weight 2^revenue, one other person. All sums here can be done on paper."""
    prices = (Fraction(1), Fraction(2))
    report = certify(DigitalGoodsAuction(prices, factor=Fraction(2)), prices, 2)
    lie = report.best_lie
    # The other says 1. Truth 2: revenues 2 and 2, price 1 half the time, utility 1. Lie 1: revenues 2 and 0, price 1 four times in five.
    assert (lie.others, lie.liars, lie.reports) == (prices[:1], prices[1:], prices[:1])
    assert (lie.expected_honest.fraction, lie.expected_lying.fraction) == (HALF, Fraction(4, 5))
    # The other says 2. Truth 2: revenues 2 and 4, price 1 once in five; lie 1: half the time. The same gain, and a larger factor.
    assert report.largest_gain == Fraction(3, 10) and report.lie_ratio == Fraction(5, 2)
    assert report.worst_ratio is not None and report.worst_ratio.others == prices[1:] and report.worst_ratio.gain == Fraction(3, 10)
    assert report.law_ratio == Fraction(5, 2)
    # Both say 1: 2 can be had, and 4/5 of it is expected. (Both say 2: 4, and 18/5. The first of two equals is shown.)
    assert report.worst_loss.reports == (prices[0], prices[0]) and report.loss == Fraction(2, 5)
    assert report.profiles == 3


def test_the_witness_is_written_out() -> None:
    prices = (Fraction(1), Fraction(2))
    report = certify(DigitalGoodsAuction(prices, factor=Fraction(2)), prices, 2)
    verdict = report.check(LiesGainAtMost(Fraction(1, 4)))
    assert isinstance(verdict, GameRefuted)
    assert str(verdict).splitlines()[1:] == [
        "The others report (1). A person of type 2 reports 1.",
        "Honest, reports (1, 2):",
        "  outcome  chance  utility  product",
        "  1        1/2     1        1/2",
        "  sum                       1/2",
        "Lying, reports (1, 1):",
        "  outcome  chance  utility  product",
        "  1        4/5     1        4/5",
        "  sum                       4/5",
        "Gain: 3/10. Ratio: 8/5.",
    ]
    assert "holds" in str(report.check(LiesGainAtMost(Fraction(3, 10))))
    assert "further report" in str(report.check(PrivateFor(HALF)))
    assert "The best outcome is worth" in str(report.check(LosesAtMost(Fraction(0))))
    assert "largest change of a law   5/2" in str(report)


def test_claims_are_decided_at_the_boundary() -> None:
    """A claim of exactly what was found holds, and anything less is refuted, however little less."""
    prices = (HALF, Fraction(1))
    report = certify(DigitalGoodsAuction(prices, epsilon=Fraction(1)), prices, 2)
    gain = report.largest_gain
    low, high = gain.bounds()
    assert low < high and high - low < Fraction(1, 10**40)
    assert isinstance(report.check(LiesGainAtMost(high)), GameHolds) and isinstance(report.check(LiesGainAtMost(low)), GameRefuted)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_privacy_bounds_what_a_lie_multiplies(epsilon: Fraction) -> None:
    report = certify(Vote(ExponentialChoice(epsilon=epsilon)), (0, 1), 6)
    assert isinstance(report.check(PrivateFor(epsilon)), GameHolds)
    assert isinstance(report.check(LiesMultiplyBy(epsilon)), GameHolds)
    # Not by much: the vote needs more than half of epsilon, and half the sensitivity does not do.
    assert isinstance(report.check(PrivateFor(epsilon * 53 / 100)), GameRefuted)
    halved = certify(Vote(ExponentialChoice(epsilon=epsilon, sensitivity=HALF)), (0, 1), 6)
    assert isinstance(halved.check(PrivateFor(epsilon)), GameRefuted)


@pytest.mark.parametrize("liars", [1, 2, 3])
def test_liars_together_gain_a_factor_each(liars: int) -> None:
    """t liars: exp(t epsilon), and less is not enough for them."""
    report = certify(Vote(ExponentialChoice(epsilon=Fraction(1, 2))), (0, 1), 7, liars=liars)
    assert isinstance(report.check(PrivateFor(Fraction(1, 2))), GameHolds)
    alone = certify(Vote(ExponentialChoice(epsilon=Fraction(1, 2))), (0, 1), 7).law_ratio
    assert report.law_ratio is not None and alone is not None
    assert report.law_ratio > alone if liars > 1 else report.law_ratio == alone
    assert liars == 1 or "The liars are of types" in report.best_lie.by_hand()


def test_a_mechanism_that_ignores_reports_gains_and_loses_nothing() -> None:
    report = certify(Vote(ExponentialChoice(epsilon=Fraction(0))), (0, 1), 4)
    assert report.largest_gain == 0 and report.lie_ratio == 1 and report.law_ratio == 1
    assert isinstance(report.check(LiesGainAtMost(Fraction(0))), GameHolds)
    assert isinstance(report.check(LiesLose()), GameRefuted)
    assert report.loss == 2


def test_what_becomes_possible_by_a_lie_is_an_infinite_factor() -> None:
    never = Fixed({0: (1, 0), 1: (1, 0), 2: (1, 1)})
    report = certify(never, (0, 1), 2)
    assert report.law_ratio is None and isinstance(report.check(PrivateFor(Fraction(100))), GameRefuted)
    assert "Ratio: infinite" in report.worst_law.by_hand()
    # A person who likes 1 and votes 1 never gets it, unless the other does too; nothing to nothing counts as 1.
    backwards = Fixed({0: (1, 1), 1: (1, 0), 2: (1, 0)})
    report = certify(backwards, (0, 1), 2)
    assert report.lie_ratio is None and isinstance(report.check(LiesMultiplyBy(Fraction(100))), GameRefuted)
    assert report.worst_ratio is not None and "Ratio: infinite" in report.worst_ratio.by_hand()


def test_negative_utilities_have_no_factor() -> None:
    report = certify(Vote(ExponentialChoice(epsilon=Fraction(1)), dislike=Fraction(1)), (0, 1), 3)
    assert report.worst_ratio is None and "some utility is negative" in str(report)
    with pytest.raises(LapwingError) as error:
        _ = report.lie_ratio
    assert error.value.code == "game-invalid"
    assert report.largest_gain == 0


def test_a_list_that_is_used_again_is_read_again() -> None:
    class Reused(Vote):
        """Hands out the same list, with other numbers in it."""

        def honest(self, type_: int, others: Sequence[int]) -> Sequence[Fraction]:
            self.buffer[:] = super().honest(type_, others)
            return self.buffer

    reused, plain = Reused(ExponentialChoice(epsilon=Fraction(1))), Vote(ExponentialChoice(epsilon=Fraction(1)))
    reused.buffer = [Fraction(0), Fraction(0)]
    assert certify(reused, (0, 1), 3).lie_ratio == certify(plain, (0, 1), 3).lie_ratio
    assert certify(reused, (0, 1), 3).best_lie.gain == certify(plain, (0, 1), 3).best_lie.gain


def test_a_mechanism_is_what_has_the_methods() -> None:
    assert isinstance(Vote(ExponentialChoice(epsilon=HALF)), ReportMechanism)


class Wrong(Vote):
    """A mechanism with something missing."""

    def __init__(self, **methods: object) -> None:
        super().__init__(ExponentialChoice(epsilon=HALF))
        vars(self).update(methods)


def dictator(reports: Sequence[int]) -> list[SumOfExponentials]:
    """The first one decides."""
    return [rational(1 + reports[0]), rational(2 - reports[0])]


@pytest.mark.parametrize(
    "act",
    [
        lambda: certify(Vote(ExponentialChoice(epsilon=HALF)), (0,), 3),
        lambda: certify(Vote(ExponentialChoice(epsilon=HALF)), (0, 0, 1), 3),
        lambda: certify(Vote(ExponentialChoice(epsilon=HALF)), (0, 1), 0),
        lambda: certify(Vote(ExponentialChoice(epsilon=HALF)), (0, 1), 3, liars=4),
        lambda: certify(Wrong(outcomes=()), (0, 1), 3),
        lambda: certify(Wrong(weights=lambda reports: [rational(1)]), (0, 1), 3),
        lambda: certify(Wrong(weights=lambda reports: [rational(1), rational(-1)]), (0, 1), 3),
        lambda: certify(Wrong(weights=lambda reports: [rational(0), rational(0)]), (0, 1), 3),
        lambda: certify(Wrong(honest=lambda type_, others: [Fraction(1)]), (0, 1), 3),
        lambda: certify(Wrong(weights=dictator), (0, 1), 3),
        lambda: ExponentialChoice(),
        lambda: ExponentialChoice(epsilon=HALF, factor=HALF),
        lambda: ExponentialChoice(epsilon=-HALF),
        lambda: ExponentialChoice(epsilon=HALF, sensitivity=Fraction(0)),
        lambda: ExponentialChoice(factor=Fraction(2)).weights([HALF]),
        lambda: DigitalGoodsAuction([], epsilon=HALF),
        lambda: DigitalGoodsAuction([HALF, HALF], epsilon=HALF),
        lambda: FacilityLocation([HALF], facilities=1, epsilon=HALF),
        lambda: FacilityLocation([HALF, Fraction(1)], facilities=3, epsilon=HALF),
    ],
)
def test_what_is_no_game_is_stopped(act: object) -> None:
    assert callable(act)
    with pytest.raises(LapwingError) as error:
        act()
    assert error.value.code == "game-invalid"


def test_a_game_that_would_take_hours_is_refused() -> None:
    prices = [Fraction(price) for price in range(1, 31)]
    with pytest.raises(Refused) as error:
        certify(DigitalGoodsAuction(prices, epsilon=HALF), prices, 8)
    assert error.value.code == "game-too-large"


def test_floats_decide_nothing() -> None:
    with pytest.raises(LapwingError) as error:
        certify(Wrong(honest=lambda type_, others: [0.5, 0.5]), (0, 1), 2)
    assert error.value.code == "number-invalid"
