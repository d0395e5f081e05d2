"""Draws shared by the statistical tests, because each takes seconds: noisy counts of keys that one unit alone carries."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law, loss
from lapwing.kernel.noise.additive import add_noise

MILLION = 1_000_000
MILLION_LAWS: tuple[Law, ...] = (DiscreteLaplace(Fraction(2)), DiscreteGaussian(Fraction(5, 2)))
"""The laws that a million draws are made of."""


@lru_cache
def noisy_ones(law: Law) -> list[int]:
    """1 plus noise: a million times for ``MILLION_LAWS``, a hundred thousand times for others."""
    number = MILLION if law in MILLION_LAWS else MILLION // 10
    cost = loss(law, Account.APPROXIMATE, l1=1, l2_squared=1)
    return add_noise(law, [1] * number, account=Account.APPROXIMATE, l1=1, l2_squared=1, charged=cost)


def noise_of(law: Law) -> npt.NDArray[np.int64]:
    """The noise in ``noisy_ones``."""
    return np.asarray(noisy_ones(law), dtype=np.int64) - 1
