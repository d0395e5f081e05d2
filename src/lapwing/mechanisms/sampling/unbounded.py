"""Discrete Laplace noise that never saturates, for mechanisms that compare noisy values instead of publishing them.

The sampler works in 64 bits and cuts larger draws off there. Where a noisy value is published that is post-processing; where noisy values
are compared it would change the law that was proved. So a draw that was cut off is continued: the law has no memory, and what lies beyond
any point is again geometric.

Proof: ``docs/proofs/above-threshold.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.noise.additive import add_noise

SAMPLER_MIN, SAMPLER_MAX = -(2**63), 2**63 - 1
"""Where the sampler cuts draws off."""


def laplace_noise(law: DiscreteLaplace, number: int, *, l1: int, epsilon_charged: Fraction) -> list[int]:
    """This many independent draws of the law, of any size.

    Pre: what the caller does with a draw reveals no more than a movement of the noise by ``l1`` costs, and ``epsilon_charged`` is paid for
    that. Both accountants of :func:`~lapwing.kernel.noise.additive.add_noise` are held to it.
    """

    def draws(count: int) -> list[int]:
        return add_noise(law, [0] * count, account=Account.PURE, l1=l1, l2_squared=0, charged=epsilon_charged)

    return [drawn_on(noise, low=SAMPLER_MIN, high=SAMPLER_MAX, again=lambda: draws(1)[0]) for noise in draws(number)]


def drawn_on(noise: int, *, low: int, high: int, again: Callable[[], int]) -> int:
    """A draw that was cut off to ``low`` and ``high`` (below and above 0), as it would be without the cut.

    ``again`` makes another independent draw of the same law, cut off likewise. A draw that is not negative is geometric, and so is the
    distance of a draw from any point that it lies beyond.
    """
    if low < noise < high:
        return noise
    beyond = 0
    while True:
        step = again()
        if step < 0:
            continue
        beyond += step
        if step < high:  # else it was itself cut off, and goes on
            return noise + beyond if noise >= high else noise - beyond
