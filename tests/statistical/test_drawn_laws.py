"""Draws of our own sampler against the laws, from outside: chi-squared over cells of about equal chance, and over what is left by 64.

Each comparison raises a false alarm with probability at most 1e-6. That the law is exact is checked without drawing, in
tests/unit/kernel/test_drawing_noise.py; here are the draws that a user gets, a hundred million of each law in ``soak``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.noise.vectors import draw_noise
from tests.support.sizes import size

FALSE_ALARM = 1e-6
PART = 1_000_000
CELLS = 200
LEFT_BY = 64
SCALES = (Fraction(1, 2), Fraction(float.fromhex("0x1.d333333333333p2")), Fraction(1000), Fraction(10**6), Fraction(10**12))
LAWS: tuple[Law, ...] = tuple(make(scale) for make in (DiscreteLaplace, DiscreteGaussian) for scale in SCALES)


def tail(law: Law, t: int) -> float:
    """``P[Z >= t]``, for ``t >= 1``: closed, summed, or (from sigma 128, where that errs by less than 10^-5 of it) the normal law's."""
    scale = float(law.scale)
    if isinstance(law, DiscreteLaplace):
        return math.exp(-t / scale) / (1 + math.exp(-1 / scale))
    if scale > 128:
        return float(stats.norm.sf((t - 0.5) / scale))
    weights = [math.exp(-((z / scale) ** 2) / 2) for z in range(math.ceil(40 * scale) + t + 2)]
    return math.fsum(weights[t:]) / (2 * math.fsum(weights) - 1)


def cuts(law: Law, number: int) -> npt.NDArray[np.int64]:
    """Where cells of about equal chance begin, none expected less than 25 times; symmetric."""
    scale = float(law.scale)
    share = max(1 / CELLS, 25 / number)
    positive: list[int] = []
    while True:
        wanted = (tail(law, positive[-1]) if positive else 0.5) - share
        if wanted < share:
            break
        far = -math.log(2 * wanted) * scale if isinstance(law, DiscreteLaplace) else stats.norm.isf(wanted) * scale
        cut = max(math.ceil(far), positive[-1] + 1 if positive else 1)
        if tail(law, cut) < share:
            break
        positive.append(cut)
    return np.array([*(1 - cut for cut in reversed(positive)), *positive], dtype=np.int64)


def expected_cells(law: Law, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The chance of each cell."""
    beyond = [tail(law, edge) if edge >= 1 else 1 - tail(law, 1 - edge) for edge in edges.tolist()]
    return -np.diff([1.0, *beyond, 0.0])


def expected_left(law: Law) -> npt.NDArray[np.float64]:
    """The chance of each remainder by 64, for scales of 1000 and more."""
    if isinstance(law, DiscreteGaussian):
        return np.full(LEFT_BY, 1 / LEFT_BY)  # to within exp(-2 pi^2 sigma^2 / 64^2)
    scale = float(law.scale)
    left = np.arange(LEFT_BY)
    weights: npt.NDArray[np.float64] = np.exp(-left / scale) + np.exp((left - LEFT_BY) / scale)
    weights[0] = 1 + math.exp(-LEFT_BY / scale)
    weights /= weights.sum()
    return weights


def p_value(observed: npt.NDArray[np.int64], chances: npt.NDArray[np.float64]) -> float:
    expected = observed.sum() * chances
    return float(stats.chi2.sf(float(((observed - expected) ** 2 / expected).sum()), len(expected) - 1))


def counted(law: Law, edges: npt.NDArray[np.int64], number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """How many draws fall into each cell, and how many leave each remainder."""
    cells, left = np.zeros(len(edges) + 1, dtype=np.int64), np.zeros(LEFT_BY, dtype=np.int64)
    for start in range(0, number, PART):
        drawn = draw_noise(law, min(PART, number - start))
        cells += np.bincount(np.searchsorted(edges, drawn, side="right"), minlength=len(edges) + 1)
        left += np.bincount(drawn & (LEFT_BY - 1), minlength=LEFT_BY)
    return cells, left


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_the_law(law: Law) -> None:
    number = size("draws of noise")
    edges = cuts(law, number)
    assert len(edges) >= (CELLS // 2 if law.scale >= 1000 else 2)
    cells, left = counted(law, edges, number)
    assert p_value(cells, expected_cells(law, edges)) > FALSE_ALARM / 2
    if law.scale >= 1000:
        assert p_value(left, expected_left(law)) > FALSE_ALARM / 2


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_another_law_would_be_seen(law: Law) -> None:
    """A scale 5 % larger, which 300,000 draws tell apart; and draws that are even."""
    other = type(law)(Fraction(float(law.scale) * 1.05))
    edges = cuts(law, 300_000)
    cells, _ = counted(other, edges, 300_000)
    assert p_value(cells, expected_cells(law, edges)) < FALSE_ALARM
    if law.scale >= 1000:
        even = np.bincount(draw_noise(law, 100_000) // 2 * 2 & (LEFT_BY - 1), minlength=LEFT_BY)
        assert p_value(even, expected_left(law)) < FALSE_ALARM
