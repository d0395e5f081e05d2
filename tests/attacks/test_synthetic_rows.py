"""Attacks on synthetic rows: who is in the table, and what one row says, are told no better than the price of the release allows.

Synthetic rows are a function of noisy tables, so whatever can be done with them can be done with the tables. The attacker knows all other
rows, may draw as many synthetic rows as they like (that is free), and looks for one outlier. Beside each attack stands the same one on a
release of a price that protects nobody, where it succeeds: an attack that never works would prove nothing.

Each statistical test fails by chance with at most 1e-6.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from lapwing.kernel.accounting import Account
from lapwing.kernel.noise.vectors import draw_noise
from lapwing.prices import Family, law_for
from lapwing.releases.marginals.synopsis import MeasuredMarginal
from lapwing.releases.synthetic.method import SyntheticMethod, chosen
from lapwing.releases.synthetic.public_numbers import PublicNumbers
from lapwing.releases.synthetic.table import model_of
from tests.support.sizes import size

RUNS = size("attacks on synthetic rows, releases")
RISK = 1e-6
SIZES = (4, 3, 5, 2, 4)
TARGET = np.array([3, 2, 4, 1, 3])
SECRET = 2
"""The column of the target that is guessed: five values, each as likely."""
DRAWN = 4_000
PROTECTING, REVEALING = Fraction(1, 20), Fraction(100)
"""Rho: of a release that protects, and of one that does not."""


def _others() -> npt.NDArray[np.int64]:
    """Everybody else, who never has the last value of a column."""
    generator = np.random.default_rng(7)
    return np.stack([generator.integers(0, bins - 1, 60) for bins in SIZES], 1)


def _released(rows: npt.NDArray[np.int64], rho: Fraction, method: SyntheticMethod, run: int) -> npt.NDArray[np.int64]:
    """Synthetic rows of a fresh release."""
    plan = chosen(SIZES, loss=float(rho), rows=len(rows), family=Family.GAUSSIAN, method=method)
    measured = []
    for axes, share in plan.shares.items():
        shape = [SIZES[axis] for axis in axes]
        place = np.ravel_multi_index([rows[:, axis] for axis in axes], shape)
        exact = np.bincount(place, minlength=math.prod(shape)).reshape(shape)
        law = law_for(Account.APPROXIMATE, loss=rho * Fraction(share), l1=1, l2_squared=1, family=Family.GAUSSIAN)
        measured.append(MeasuredMarginal(axes, exact + draw_noise(law, exact.size).reshape(shape), max(float(law.scale) ** 2, 0.01)))
    digest = str(run).encode()
    return model_of(SIZES, measured, digest).rows(DRAWN, PublicNumbers(digest, "rows"))


def _likeness(made: npt.NDArray[np.int64], target: npt.NDArray[np.int64]) -> float:
    """How many pairs of values the rows have in common with the target."""
    alike = made == target
    return float(sum((alike[:, a] & alike[:, b]).mean() for a, b in combinations(range(len(SIZES)), 2)) + alike.mean())


def _advantage(rho: Fraction, method: SyntheticMethod) -> tuple[float, float]:
    """Rates of "the target is there" if it is, at least, and if it is not, at most. The threshold is chosen on runs of its own."""
    with_target, without = np.concatenate([_others(), TARGET[None, :]]), _others()
    scores = [[_likeness(_released(rows, rho, method, run), TARGET) for run in range(RUNS)] for rows in (with_target, without)]
    half = RUNS // 2
    threshold = _threshold(scores[0][:half], scores[1][:half])
    hits, alarms = (sum(score >= threshold for score in world[half:]) for world in scores)
    tested = RUNS - half
    hit_rate = float(stats.beta.ppf(RISK / 2, hits, tested - hits + 1)) if hits else 0.0
    alarm_rate = float(stats.beta.isf(RISK / 2, alarms + 1, tested - alarms)) if alarms < tested else 1.0
    return hit_rate, alarm_rate


def _threshold(inside: list[float], outside: list[float]) -> float:
    """Midway between two scores, where the rates of both worlds differ most."""
    ordered = sorted({*inside, *outside})
    between = [(one + other) / 2 for one, other in pairwise(ordered)] or ordered
    return max(between, key=lambda cut: sum(score >= cut for score in inside) - sum(score >= cut for score in outside))


def _power_max(alarm_rate: float, rho: Fraction) -> float:
    """Of the best test between Gaussians sqrt(2 rho) deviations apart, which is what one row changes in all tables together."""
    if not 0 < alarm_rate < 1:
        return alarm_rate
    return NormalDist().cdf(NormalDist().inv_cdf(alarm_rate) + math.sqrt(2 * rho))


METHODS = (SyntheticMethod.PAIRS, SyntheticMethod.INDEPENDENT)


@pytest.mark.parametrize("method", METHODS)
def test_membership_is_told_no_better_than_the_price_allows(method: SyntheticMethod) -> None:
    hit_rate, alarm_rate = _advantage(PROTECTING, method)
    assert hit_rate <= _power_max(alarm_rate, PROTECTING)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_test_of_membership_passes_the_bound_where_nothing_protects(method: SyntheticMethod) -> None:
    hit_rate, alarm_rate = _advantage(REVEALING, method)
    assert hit_rate > _power_max(alarm_rate, PROTECTING)


def _guessed(rho: Fraction) -> float:
    """How often the secret value is guessed, at least, by whoever knows everything else."""
    right = 0
    for run in range(RUNS):
        secret = run % SIZES[SECRET]
        candidates = [np.where(np.arange(len(SIZES)) == SECRET, value, TARGET) for value in range(SIZES[SECRET])]
        made = _released(np.concatenate([_others(), candidates[secret][None, :]]), rho, SyntheticMethod.PAIRS, run)
        right += int(np.argmax([_likeness(made, candidate) - _expected(candidate) for candidate in candidates])) == secret
    return float(stats.beta.ppf(RISK, right, RUNS - right + 1)) if right else 0.0


def _expected(candidate: npt.NDArray[np.int64]) -> float:
    """What the others have in common with the candidate."""
    return _likeness(_others(), candidate)


def _right_max(rho: Fraction) -> float:
    """One of five by chance, and the total variation between two values of the secret: two cells differ in each table, so sqrt(4 rho)."""
    return 1 / SIZES[SECRET] + 2 * NormalDist().cdf(math.sqrt(4 * rho) / 2) - 1


def test_a_row_is_reconstructed_no_better_than_the_price_allows() -> None:
    assert _guessed(PROTECTING) <= _right_max(PROTECTING)


def test_the_same_reconstruction_passes_the_bound_where_nothing_protects() -> None:
    assert _guessed(REVEALING) > _right_max(PROTECTING)


def test_bounds_are_those_of_gaussians() -> None:
    """Nothing paid, nothing told; and the bound of the membership test is below one."""
    assert [_power_max(rate, Fraction(0)) for rate in (0.0, 0.25, 1.0)] == pytest.approx([0, 0.25, 1])
    assert _power_max(0.05, PROTECTING) < 0.1 + 0.05
    assert _right_max(Fraction(0)) == pytest.approx(0.2)
