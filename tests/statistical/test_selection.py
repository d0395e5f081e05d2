"""What the sampler draws for a selection is the exact law of the mechanism, and nothing is drawn that was not paid for.

The law is a rational function of the decay; here it is evaluated at ``exp(-1 / scale)`` to thirty digits, for the very scale that is drawn.
Each test that depends on chance raises a false alarm with probability at most 1e-6.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pytest
from scipy import stats

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.numbers import exp_upper
from lapwing.mechanisms.draw import Selection, draw, draw_many
from lapwing.mechanisms.noisy_max import NoisyMax
from lapwing.mechanisms.quantiles import QuantileSelection, SelectionRule
from lapwing.mechanisms.sampling import selection as noise
from lapwing.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from lapwing.mechanisms.top_k import TopK

FALSE_ALARM = 1e-6
RUNS = 20_000
SCALE = Fraction(float.fromhex("0x1.b333333333333p1"))
"""About 3.4, and no round number, so that a sampler that rounded it would be seen."""

SCORES = (0, 4, 4, 1, 7, 6)
ROWS = (0, 1, 1, 2, 5, 5, 5, 8, 9, 12)


def quantile(rule: SelectionRule) -> QuantileSelection:
    return QuantileSelection((1, 2, 5, 6, 9), Fraction(2, 3), 1, Neighbours.UNBOUNDED, SCALE, rule)


CASES: tuple[tuple[Selection, tuple[int, ...]], ...] = (
    (ExponentialMechanism(SCALE, 1, 6), SCORES),
    (PermuteAndFlip(SCALE, 1, 6), SCORES),
    (NoisyMax(SCALE, 1, 6), SCORES),
    (TopK(2, SCALE, 1, 6), SCORES),
    (quantile(SelectionRule.EXPONENTIAL), ROWS),
    (quantile(SelectionRule.PERMUTE_AND_FLIP), ROWS),
)
NAMES = ["exponential", "permute-and-flip", "noisy-max", "top-2", "quantile", "quantile-permute-and-flip"]


@lru_cache
def sample(case: int) -> Counter[Hashable]:
    """Many runs of a mechanism, each paid for."""
    mechanism, value = CASES[case]
    one = mechanism.event().cost(Account.PURE)
    outputs = draw_many(mechanism, value, times=RUNS, account=Account.PURE, charged=Cost(loss=RUNS * one.loss, delta=0))
    assert len(outputs) == RUNS
    return Counter(outputs)


def law_at(mechanism: Selection, value: Sequence[int], scale: Fraction) -> Mapping[Hashable, Fraction]:
    law: Mapping[Any, Fraction] = mechanism.law(value, decay=Fraction(round(exp_upper(-1 / scale) * 10**30), 10**30))
    return law


def p_value(observed: Counter[Hashable], law: Mapping[Hashable, Fraction]) -> float:
    """Of the chi-squared statistic; outputs that are expected fewer than 25 times share a cell."""
    assert set(observed) <= set(law)
    runs = observed.total()
    cells = [(runs * float(chance), observed[output]) for output, chance in law.items()]
    common = [cell for cell in cells if cell[0] >= 25]
    rare = [cell for cell in cells if cell[0] < 25]
    if rare:
        common.append((math.fsum(expected for expected, _ in rare), sum(seen for _, seen in rare)))
    statistic = math.fsum((seen - expected) ** 2 / expected for expected, seen in common)
    return float(stats.chi2.sf(statistic, len(common) - 1))


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES)), ids=NAMES)
def test_what_is_drawn_is_the_law(case: int) -> None:
    mechanism, value = CASES[case]
    assert p_value(sample(case), law_at(mechanism, value, SCALE)) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES)), ids=NAMES)
def test_a_wrong_scale_would_be_seen(case: int) -> None:
    """The check above can fail. (Missed with probability far below 1e-6.)"""
    mechanism, value = CASES[case]
    for factor in (Fraction(3, 4), Fraction(4, 3)):
        assert p_value(sample(case), law_at(mechanism, value, SCALE * factor)) < FALSE_ALARM


@pytest.mark.slow
def test_the_three_selections_would_not_pass_for_each_other() -> None:
    """On scores that tell them apart: in 10,000 runs each pair has a noncentrality of at least 388, so a miss is below 1e-30."""
    mechanisms = [kind(Fraction(1), 1, 3) for kind in (ExponentialMechanism, PermuteAndFlip, NoisyMax)]
    laws = [law_at(mechanism, (0, 0, 1), Fraction(1)) for mechanism in mechanisms]
    for drawn, mechanism in enumerate(mechanisms):
        cost = mechanism.event().loss(Account.PURE)
        outputs: Counter[Hashable] = Counter(noise.draw_selection(mechanism, (0, 0, 1), times=10_000, account=Account.PURE, charged=cost))
        for claimed, law in enumerate(laws):
            assert (p_value(outputs, law) > FALSE_ALARM / 3) == (drawn == claimed)


def random_mechanism(chance: random.Random) -> Selection:
    scale = Fraction(math.ldexp(chance.uniform(1.0, 2.0), chance.randrange(-20, 49)))
    sensitivity = chance.choice([1, 3, 2**53 + 1, 2**61, chance.randrange(1, 2**61), chance.randrange(1, 10**6)])
    monotone, candidates = chance.random() < 0.5, 12
    kind = chance.randrange(4)
    if kind == 3:
        return TopK(chance.randrange(1, 12), scale, sensitivity, candidates, monotone)
    return (ExponentialMechanism, PermuteAndFlip, NoisyMax)[kind](scale, sensitivity, candidates, monotone)


def run(mechanism: Selection, value: Sequence[int], *, account: Account, charged: Fraction) -> list[Any]:
    """Straight to the sampler, past the gate's own check."""
    if isinstance(mechanism, TopK):
        return list(noise.draw_top_k(mechanism, value, account=account, charged=charged))
    if isinstance(mechanism, QuantileSelection):
        return list(noise.draw_quantile(mechanism, value, account=account, charged=charged))
    return list(noise.draw_selection(mechanism, value, account=account, charged=charged))


def test_two_accountants_agree_before_anything_is_drawn() -> None:
    """Over random parameters, the sampler's own map never exceeds our event; and one part in 2^39 less is refused."""
    chance = random.Random(5)
    scores = [chance.randrange(-100, 100) for _ in range(12)]
    for _ in range(300):
        mechanism = random_mechanism(chance)
        for account in Account:
            cost = mechanism.event().loss(account)
            assert len(run(mechanism, scores, account=account, charged=cost)) == 1
            with pytest.raises(LapwingError) as refusal:
                run(mechanism, scores, account=account, charged=cost * (1 - Fraction(1, 2**39)))
            assert refusal.value.code == "noise-undercharged"


def test_the_sampler_knows_the_same_prices() -> None:
    """The map, without our margin: the same epsilon and rho to one part in 2^40, so neither accountant is idle."""
    for monotone in (False, True):
        for mechanism in (
            ExponentialMechanism(SCALE, 3, 5, monotone),
            PermuteAndFlip(SCALE, 3, 5, monotone),
            TopK(4, SCALE, 3, 5, monotone),
        ):
            for account in Account:
                ours = mechanism.event().loss(account)
                assert ours * (1 - Fraction(1, 2**39)) < noise._mapped_loss(mechanism, account) <= ours


def test_the_gate_refuses_what_is_not_paid() -> None:
    for mechanism, value in CASES:
        for account in Account:
            cost = mechanism.event().cost(account)
            with pytest.raises(LapwingError) as refusal:
                draw(mechanism, value, account=account, charged=Cost(loss=cost.loss - 1, delta=0))
            assert refusal.value.code == "noise-undercharged"


@pytest.mark.parametrize("case", range(4), ids=NAMES[:4])
def test_extremes(case: int) -> None:
    """The largest scores, and candidates so far apart that the choice is certain but for a probability below exp(-2^60)."""
    mechanism = CASES[case][0]
    cost = mechanism.event().loss(Account.PURE)
    scores = [-(2**62), 0, 2**61, -1, 2**62, -(2**62)]
    (output,) = run(mechanism, scores, account=Account.PURE, charged=cost)
    assert output == ((4, 2) if isinstance(mechanism, TopK) else 4)
    for wrong in (2**62 + 1, -(2**62) - 1):
        with pytest.raises(LapwingError) as refusal:
            run(mechanism, [*scores[:5], wrong], account=Account.PURE, charged=cost)
        assert refusal.value.code == "value-too-large"
        assert str(abs(wrong)) not in str(refusal.value)
    with pytest.raises(LapwingError) as refusal:
        run(mechanism, [1, 2], account=Account.PURE, charged=cost)
    assert refusal.value.code == "scores-invalid"


def test_the_least_scale_selects_the_best_and_equal_scores_share() -> None:
    """At the least scale the best wins but for exp(-2^20); among equals each index comes up (missed with probability below 1e-7)."""
    least = Fraction(1, 2**20)
    for kind in (ExponentialMechanism, PermuteAndFlip, NoisyMax):
        mechanism = kind(least, 1, 3)
        cost = mechanism.event().loss(Account.PURE)
        assert noise.draw_selection(mechanism, [5, 6, 4], times=20, account=Account.PURE, charged=cost) == [1] * 20
        wide = kind(Fraction(1), 1, 3)
        drawn = noise.draw_selection(wide, [6, 6, 6], times=100, account=Account.PURE, charged=wide.event().loss(Account.PURE))
        assert set(drawn) == {0, 1, 2}
