"""Simulated noise: fixed points distributed like the noise of a release, for error bars of computed outputs.

The points depend on nothing but their number: no randomness is drawn, none of the kernel's is used, and the same release always has the
same error bars. All of it is post-processing of public laws. Proof: docs/proofs/error-bars.md.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.spread import pmf

Floats: TypeAlias = npt.NDArray[np.float64]

POINTS = 2_048
"""Number of points: quantiles at 95 % then rest on 51 points on either side."""
DISCRETE_MAX = 16
"""Largest scale at which noise is treated as integers."""
_BASES = (2, 3, 5, 7, 11, 13)


def noise_points(law: Law, *, dimension: int, terms: int = 1) -> Floats:
    """``POINTS`` values spread like a sum of ``terms`` draws of the law; different dimensions (up to six) are spread like independent ones.

    One draw of a scale up to ``DISCRETE_MAX`` has its own law on the whole numbers, and above it the continuous law of that scale. A sum
    of several Laplace draws is spread like a Gaussian of the same variance: at 95 % its width is 4 % short for two draws, less for more.
    """
    if law.scale <= DISCRETE_MAX and terms == 1:
        return _whole(law, dimension)
    scale = float(law.scale)
    match law:
        case DiscreteGaussian():
            return normal_points(dimension) * (scale * math.sqrt(terms))
        case DiscreteLaplace() if terms == 1:
            return _laplace(dimension) * scale
        case DiscreteLaplace():
            return normal_points(dimension) * (scale * math.sqrt(2 * terms))
        case _:
            assert_never(law)


@lru_cache
def _halton(base: int) -> Floats:
    """The first points of van der Corput's sequence: the digits of 1, 2, 3, .. in this base, behind the point in reverse."""
    numbers = np.arange(1, POINTS + 1)
    points, weight = np.zeros(POINTS), 1.0
    while numbers.any():
        weight /= base
        points += weight * (numbers % base)
        numbers //= base
    return points


@lru_cache(maxsize=256)
def _whole(law: Law, dimension: int) -> Floats:
    """Quantiles of the law itself, from its probabilities added up."""
    reach = math.ceil(40 * law.scale) + 1
    below = np.cumsum([pmf(law, z) for z in range(-reach, reach + 1)])
    return np.asarray(np.searchsorted(below, _halton(_BASES[dimension]) * below[-1]) - reach, dtype=np.float64)


@lru_cache
def normal_points(dimension: int) -> Floats:
    law = NormalDist()
    return np.array([law.inv_cdf(float(u)) for u in _halton(_BASES[dimension])])


@lru_cache
def _laplace(dimension: int) -> Floats:
    uniform = _halton(_BASES[dimension])
    return np.array(np.where(uniform < 0.5, np.log(2 * uniform), -np.log(2 * (1 - uniform))))


def noise_by_place(law: Law, place: str, *, count: int) -> Floats:
    """``count`` whole numbers spread like draws of the law (the continuous one of its scale, rounded); always the same for one place.

    They come from a hash of the place: a fixed table that looks random, of as many dimensions as are needed. Never noise of a release.
    """
    words = np.frombuffer(hashlib.shake_256(place.encode()).digest(16 * count), dtype="<u8").reshape(2, count)
    first, second = (words >> 11) * 2.0**-53 + 2.0**-54  # inside (0, 1)
    match law:
        case DiscreteGaussian():
            return np.asarray(np.rint(float(law.scale) * np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)))
        case DiscreteLaplace():
            return np.asarray(np.rint(-float(law.scale) * np.log(first) * np.where(second < 0.5, -1.0, 1.0)))
        case _:
            assert_never(law)
