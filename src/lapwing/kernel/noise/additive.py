"""Noise that is added: a draw of the discrete Laplace or discrete Gaussian law for each integer of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

import numpy as np

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import Law, Sampler, loss
from lapwing.kernel.noise.reference import opendp_loss, opendp_noise_added
from lapwing.kernel.noise.vectors import draw_noise
from lapwing.kernel.numbers import require_exact

VALUE_MAX = 2**62
"""Largest size of a value that noise is added to: half the range of the 64-bit integers it is added in."""


def add_noise(
    law: Law,
    values: Sequence[int],
    *,
    account: Account,
    l1: int,
    l2_squared: int,
    charged: Fraction,
    sampler: Sampler = Sampler.LAPWING,
) -> list[int]:
    """The values, each with its own independent draw of the law added.

    Pre: between neighbours ``values`` moves by at most ``l1`` in L1 norm and ``l2_squared`` in squared L2 norm, and ``charged`` (epsilon on
    a pure account, rho on an approximate one) is already in the ledger. Post: the result is ``charged``-private.

    What the noise costs is computed here once more and compared with ``charged`` before anything is drawn; where OpenDP draws, its own map
    is too. If either is more, ``noise-undercharged`` is raised. A value above ``VALUE_MAX`` in size is refused with ``value-too-large``.
    """
    require_exact(charged)
    if l1 > VALUE_MAX or l2_squared > VALUE_MAX**2:
        raise LapwingError("sensitivity-invalid", "a sensitivity is too large for the sampler")
    cost = loss(law, account, l1=l1, l2_squared=l2_squared)
    if sampler is Sampler.OPENDP:
        cost = max(cost, opendp_loss(law, account, l1=l1, l2_squared=l2_squared))
    if cost > charged:
        raise LapwingError("noise-undercharged", "the noise would cost more than was charged for it")
    # type() and not isinstance(): a bool is no integer here
    if not set(map(type, values)) <= {int}:
        raise LapwingError("value-invalid", "noise is added to integers only")
    if not values:
        return []
    if min(values) < -VALUE_MAX or max(values) > VALUE_MAX:
        raise LapwingError("value-too-large", "a value is too large for noise to be added to it")
    match sampler:
        case Sampler.LAPWING:
            noisy: list[int] = (np.array(values, dtype=np.int64) + draw_noise(law, len(values))).tolist()
            return noisy
        case Sampler.OPENDP:
            return opendp_noise_added(law, values)
        case never:
            assert_never(never)
