"""What is drawn for quantiles is the exact law, the coins are what they say, and errors in ranks keep to their bound.

Each comparison with a law raises a false alarm with probability at most 1e-6.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest
from scipy import stats

from lapwing.kernel import rank_line
from lapwing.kernel.accounting import Account
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.noise.bernoulli import coin_exp, coin_two_over_e, heads
from lapwing.kernel.noise.quantile_tree import badness, draw_flipped, draw_nearest, draw_quantiles
from lapwing.kernel.quantile_tree import AtShare, FromGreatest, FromLeast, QuantileTree, Target
from lapwing.kernel.rank_line import Candidates, Cut, CutCandidates, Segment, ValueCandidates
from lapwing.mechanisms.selection import PermuteAndFlip
from lapwing.planning.quantile_errors import rank_errors, tree_scale
from tests.support.power import Together
from tests.support.promises import watched
from tests.support.sizes import size
from tests.unit.kernel.quantile_laws import choices, line_of, log_law

FALSE_ALARM = 1e-6
RUNS = size("draws of quantiles")
ROWS = (2, 2, 2, 5, 9, 9, 11)


def chi_squared(found: Counter[int], chances: list[float], runs: int) -> float:
    """The p-value; cells that are expected less than 5 times are put together."""
    observed, expected, rest = [], [], [0.0, 0.0]
    for index, chance in enumerate(chances):
        if chance * runs >= 5:
            observed.append(float(found[index]))
            expected.append(chance * runs)
        else:
            rest = [rest[0] + found[index], rest[1] + chance * runs]
    if rest[1] > 0:
        observed.append(rest[0])
        expected.append(rest[1])
    statistic = sum((a - b) ** 2 / b for a, b in zip(observed, expected, strict=True))
    return float(stats.chi2.sf(statistic, len(observed) - 1))


@pytest.mark.parametrize(
    ("coin", "chance"),
    [
        (lambda: coin_exp(Fraction(0)), 1.0),
        (lambda: coin_exp(Fraction(1, 3)), math.exp(-1 / 3)),
        (lambda: coin_exp(Fraction(1)), math.exp(-1)),
        (lambda: coin_exp(Fraction(9, 4)), math.exp(-9 / 4)),
        (coin_two_over_e, 2 / math.e),
    ],
    ids=["0", "1/3", "1", "9/4", "2/e"],
)
def test_a_coin_has_its_chance(coin: Callable[[], bool], chance: float) -> None:
    heads = sum(coin() for _ in range(RUNS))
    assert stats.binomtest(heads, RUNS, chance).pvalue > FALSE_ALARM / 10


@pytest.mark.parametrize(("coins", "halvings"), [(5, 1), (7, 2), (40, 4), (3, 0), (0, 2)])
def test_as_many_coins_fall_as_a_binomial_law_says(coins: int, halvings: int) -> None:
    found = Counter(heads(coins, halvings) for _ in range(RUNS))
    law = [float(stats.binom.pmf(number, coins, 0.5**halvings)) for number in range(coins + 1)]
    assert chi_squared(found, law, RUNS) > FALSE_ALARM / 10 if halvings and coins else found[coins] == RUNS


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(40)], ids=str)
@pytest.mark.parametrize("kind", [ValueCandidates, CutCandidates])
def test_a_candidate_is_drawn_from_the_exact_law(
    monkeypatch: pytest.MonkeyPatch, kind: Callable[[Segment], Candidates], scale: Fraction
) -> None:
    monkeypatch.setattr(rank_line, "SHARES", 3)
    line = line_of(ROWS, lower=0, upper=12)
    for part in (Segment.whole(line), Segment.between(line, Cut(2, 1), Cut(9, 2))):
        candidates, level = kind(part), Fraction(17, 5)
        found = Counter(draw_nearest(candidates, level, scale) for _ in range(RUNS))
        assert chi_squared(found, [math.exp(chance) for chance in choices(candidates, level, scale)], RUNS) > FALSE_ALARM / 10


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(40)], ids=str)
def test_on_a_pure_account_a_value_is_drawn_by_permute_and_flip(scale: Fraction) -> None:
    values, level = ValueCandidates(Segment.whole(line_of(ROWS, lower=0, upper=12))), Fraction(17, 5)
    # in units of 1 / 60 all badnesses here are integers
    scores = [-int(badness(values, index, level) * 60) for index in range(values.size)]
    assert all(score * Fraction(-1, 60) == badness(values, index, level) for index, score in enumerate(scores))
    law = PermuteAndFlip(60 * scale, 1, values.size).law(scores, decay=Fraction(math.exp(-1 / float(60 * scale))))
    found = Counter(draw_flipped(values, level, scale) for _ in range(RUNS))
    assert chi_squared(found, [float(law[index]) for index in range(values.size)], RUNS) > FALSE_ALARM / 10


def test_a_whole_tree_is_drawn_from_the_exact_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_line, "SHARES", 2)
    targets: tuple[Target, ...] = (FromLeast(2), AtShare(Fraction(1, 2)), AtShare(Fraction(3, 4)))
    mechanism = QuantileTree(0, 5, targets, 1, Neighbours.UNBOUNDED, Fraction(1))
    rows, charged = (1, 1, 3, 4, 4, 5), Fraction(1)
    law: dict[tuple[int, ...], float] = {}
    for outcome, chance in log_law(mechanism, rows).items():
        values = {number: item.value if isinstance(item, Cut) else item for number, item in outcome}
        key = tuple(values[number] for number in range(3))
        law[key] = law.get(key, 0.0) + math.exp(chance)
    listed = sorted(law)
    line = line_of(rows, lower=0, upper=5)
    drawn = (draw_quantiles(mechanism, line, account=Account.APPROXIMATE, charged=charged) for _ in range(RUNS))
    found = Counter(listed.index(chosen) for chosen in drawn)
    assert chi_squared(found, [law[key] for key in listed], RUNS) > FALSE_ALARM / 10


@pytest.mark.parametrize("ties", [1, 500], ids=["few ties", "many ties"])
def test_ranks_are_as_close_as_promised(ties: int) -> None:
    rows = sorted(math.floor(math.exp(index / 400)) // ties for index in range(5_000))
    targets: tuple[Target, ...] = (
        FromLeast(40),
        AtShare(Fraction(1, 4)),
        AtShare(Fraction(1, 2)),
        AtShare(Fraction(9, 10)),
        FromGreatest(40),
    )
    scale = tree_scale(Account.PURE, loss=Fraction(2), targets=targets, rows_per_unit=1, neighbours=Neighbours.UNBOUNDED, alone=False)
    mechanism = QuantileTree(0, 400_000, targets, 1, Neighbours.UNBOUNDED, scale)
    sure = Fraction(9, 10)
    bounds = rank_errors(mechanism, confidence=sure, rows_max=5_000)
    asked = [39, 4_999 / 4, 4_999 / 2, 4_999 * 0.9, 4_960]
    line = line_of(rows, lower=0, upper=400_000)

    def near() -> list[bool]:
        found = []
        for number, value in enumerate(draw_quantiles(mechanism, line, account=Account.PURE, charged=Fraction(2))):
            low, high = bisect_left(rows, value), bisect_right(rows, value) - 1
            found.append(max(low - asked[number], asked[number] - high, 0) <= bounds[number])
        return found

    drawn = Together(near)
    for number in range(len(targets)):
        watched("ranks of quantiles").require(drawn.place(number))
    assert all(bound < 2_000 for bound in bounds)  # and the promise says something
