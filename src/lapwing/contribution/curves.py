"""The families of curves with which a model of norms continues its histogram: tails beyond the last significant bin, humps where none is.

Tails are log-log lines and parabolas open below, each with or without an accumulation at the largest norm possible; and tails like that of
the whole table, where preparation bought its norms, shortened by any factor.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

HALF_OCTAVE = math.log(2.0) / 2.0
"""The natural width of a bin; slopes and bends of curves are per bin of this width."""
BEYOND_THE_END = 24
"""Number of bins above the largest norm over which a curve is summed to find how many units would accumulate there."""
SLOPES = np.concatenate((np.arange(0.7, -1.4, -0.035), np.arange(-1.4, -3.3, -0.1)))
BENDS = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24])
FLATTEST = 0.25
"""Four bins above the last significant one, every curve falls at least this much from bin to bin."""
STRAIGHT = 0.5
"""Prior of a power law, relative to all bent curves."""
HEAPED = 3.0
"""Prior odds that units beyond the largest norm accumulate there rather than not existing."""
LIKE_ODDS = 0.5
"""Prior odds of all tails like that of a profile, relative to all other curves ..."""
LIKE_BINS = range(9)
"""... shortened by these numbers of half octaves, down to a sixteenth."""
LIKELY_LEAST = 0.5
"""A tail with fewer units than this in the last significant bin is not tried."""
PROFILE_PARTS = 3
"""Parts of equal probability of the curves of a profile."""

ROW_USUAL = 8.0
"""Prior without significant bins: units usually add an eighth of the largest value of one row, ..."""
ROWS_USUAL = 5.0
"""... at least five rows of 1, as of counts, ..."""
USUAL_BINS = 5.0
"""... give or take so many bins (a standard deviation), a factor of 5.7 ..."""
FEW_ROWS_BINS = 2.0
"""... and if most units significantly add nothing, so the others have few contributing rows, little more than the largest row."""
HUMP_BELOW = (0.04, 0.16, 1.0)
"""Bends of humps below their peak."""
HUMP_ABOVE = ((0.35, 0.0, 0.1), (0.52, 0.0, 0.1), (0.87, 0.0, 0.2), (0.0, 0.04, 0.1), (0.0, 0.16, 0.2), (0.0, 1.0, 0.3))
"""Slopes and bends of humps above their peak, with the prior of each."""


class FittedNorms(Protocol):
    """What these curves take of the model of a table's norms (``ContributionModel``)."""

    @property
    def expected(self) -> Floats:
        """Units by bin."""

    @property
    def tails(self) -> Floats:
        """The part of each curve, by bin."""

    @property
    def chances(self) -> Floats:
        """Of each curve."""

    def norms(self) -> Floats:
        """The usual norm in each bin."""

    def beyond_caps(self, caps: Sequence[float], power: int) -> Floats:
        """Of each bin, the part above each cap."""


def family(edges: tuple[float, ...], last: int, profile: FittedNorms | None) -> tuple[Floats, Floats, Floats]:
    """Every curve, 1 in bin ``last``; its accumulation at the end (0 or all beyond); the logarithm of its prior."""
    shapes, heaps, beforehand = falling(edges, last)
    if profile is None:
        return shapes, heaps, beforehand
    alike = tails_like(profile, np.asarray(edges), last)
    odds = math.log(LIKE_ODDS / max(len(alike), 1)) + float(np.logaddexp.reduce(beforehand))
    return (
        np.concatenate((shapes, alike)),
        np.append(heaps, np.zeros(len(alike))),
        np.append(beforehand, np.full(len(alike), odds)),
    )


@lru_cache(maxsize=256)
def falling(edges: tuple[float, ...], last: int) -> tuple[Floats, Floats, Floats]:
    """Lines and parabolas."""
    upper = np.asarray(edges)
    lower = np.concatenate(([upper[0] * math.exp(-2.0 * HALF_OCTAVE)], upper[:-1]))
    middle, width = np.log(upper * lower) / 2.0, np.log(upper / lower) / HALF_OCTAVE
    past = (math.log(upper[-1]) - middle[last]) / HALF_OCTAVE + 0.5 + np.arange(BEYOND_THE_END)
    slopes, bends = (grid.ravel() for grid in np.meshgrid(SLOPES, BENDS))
    falls = slopes - bends * 4.0 < -FLATTEST
    slopes, bends = slopes[falls], bends[falls]

    def curve(x: Floats) -> Floats:
        return np.exp(np.clip(np.outer(slopes, x) - np.outer(bends, x**2) / 2.0, -200.0, 50.0))

    shapes = curve((middle - middle[last]) / HALF_OCTAVE) * (width / width[last])
    heap = curve(past).sum(axis=1) / width[last]
    beforehand = np.log(np.where(bends == 0.0, STRAIGHT, (1.0 - STRAIGHT) / (len(BENDS) - 1)) * np.where(slopes > -1.4, 0.35, 0.3))
    return (
        np.concatenate((shapes, shapes)),
        np.concatenate((np.zeros_like(heap), heap)),
        np.concatenate((beforehand, beforehand + math.log(HEAPED))),
    )


def tails_like(profile: FittedNorms, edges: Floats, last: int) -> Floats:
    """The profile's units by bin with shortened norms, 1 in bin ``last``; factors by which hardly any unit is left there are left out.

    What the profile leaves to its curves is uncertain: it is taken as the mean of each third of them, from the shortest to the longest.
    """
    order = np.argsort(profile.tails @ profile.norms())
    third = np.minimum((np.cumsum(profile.chances[order]) * PROFILE_PARTS).astype(int), PROFILE_PARTS - 1)
    weights = profile.chances[order] * (third == np.arange(PROFILE_PARTS)[:, None])
    tails = (weights @ profile.tails[order]) / np.maximum(weights.sum(axis=1), 1e-300)[:, None]
    units = np.maximum(profile.expected - profile.chances @ profile.tails + tails, 0.0)
    longer = np.array([1.0, *edges[:-1]]) * np.exp(HALF_OCTAVE * np.array(LIKE_BINS))[:, None]
    above = (units @ profile.beyond_caps(longer.ravel().tolist(), 0).T).reshape(-1, len(edges))
    shapes = np.maximum(-np.diff(above, axis=1, append=0.0), 0.0)
    here = shapes[:, last : last + 1]
    return np.asarray((shapes / np.maximum(here, 1e-9))[here[:, 0] >= LIKELY_LEAST])


@lru_cache(maxsize=64)
def humps(edges: tuple[float, ...], row: float, sparse: bool) -> tuple[Floats, Floats]:
    """Humps of one unit each, with their peak in any bin, and the logarithm of each prior."""
    upper = np.asarray(edges)
    lower = np.concatenate(([upper[0] * math.exp(-HALF_OCTAVE)], upper[:-1]))
    middle, width = np.log(upper * lower) / 2.0 / HALF_OCTAVE, np.log(upper / lower) / HALF_OCTAVE
    from_row = middle - math.log(row) / HALF_OCTAVE
    usual = max(row / ROW_USUAL, 1.0 if sparse else ROWS_USUAL)
    beforehand = -(((middle - math.log(usual) / HALF_OCTAVE) / USUAL_BINS) ** 2) / 2.0
    if sparse:
        beforehand -= (np.maximum(from_row, 0.0) / FEW_ROWS_BINS) ** 2 / 2.0
    away = middle[None, :] - middle[:, None]
    shapes, logs = [], []
    for below, (slope, bend, weight) in itertools.product(HUMP_BELOW, HUMP_ABOVE):
        shape = np.exp(np.where(away < 0.0, -below * away**2 / 2.0, -slope * away - bend * away**2 / 2.0)) * width
        shapes.append(shape / shape.sum(axis=1, keepdims=True))
        logs.append(beforehand + math.log(weight))
    return np.concatenate(shapes), np.concatenate(logs)
