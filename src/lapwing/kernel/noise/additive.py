"""Noise that is added: a draw of the discrete Laplace or discrete Gaussian law for each integer of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, assert_never

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law, loss
from lapwing.kernel.numbers import float_at_least, require_exact, sqrt_upper

VALUE_MAX = 2**62
"""Largest size of a value that noise is added to: half the range of the 64-bit integers it is added in."""


def add_noise(law: Law, values: Sequence[int], *, account: Account, l1: int, l2_squared: int, charged: Fraction) -> list[int]:
    """The values, each with its own independent draw of the law added.

    Pre: between neighbours ``values`` moves by at most ``l1`` in L1 norm and ``l2_squared`` in squared L2 norm, and ``charged`` (epsilon on
    a pure account, rho on an approximate one) is already in the ledger. Post: the result is ``charged``-private.

    Two accountants must agree before anything is drawn: our own ``loss`` and the sampler's map, each at most ``charged``; otherwise
    refused with ``noise-undercharged``. A value above ``VALUE_MAX`` in size is refused with ``value-too-large``.
    """
    require_exact(charged)
    if loss(law, account, l1=l1, l2_squared=l2_squared) > charged or _mapped_loss(law, account, l1=l1, l2_squared=l2_squared) > charged:
        raise LapwingError("noise-undercharged", "the noise would cost more than was charged for it")
    exact = list(values)
    for value in exact:
        if type(value) is not int:
            raise LapwingError("value-invalid", "noise is added to integers only")
        if not -VALUE_MAX <= value <= VALUE_MAX:
            raise LapwingError("value-too-large", "a value is too large for noise to be added to it")
    if not exact:
        return []
    noisy: list[int] = _measurement(law)(exact)
    return noisy


def _mapped_loss(law: Law, account: Account, *, l1: int, l2_squared: int) -> Fraction:
    """The cost by the sampler's own map, in the account's terms."""
    if l1 > VALUE_MAX or l2_squared > VALUE_MAX**2:
        raise LapwingError("sensitivity-invalid", "a sensitivity is too large for the sampler")
    match law:
        case DiscreteLaplace():
            epsilon = Fraction(_measurement(law).map(l1))
            match account:
                case Account.PURE:
                    return epsilon
                case Account.APPROXIMATE:
                    return epsilon**2 / 2
                case never:
                    assert_never(never)
        case DiscreteGaussian():
            return Fraction(_measurement(law).map(float_at_least(sqrt_upper(Fraction(l2_squared)))))
        case never_law:
            assert_never(never_law)


@lru_cache(maxsize=256)
def _measurement(law: Law) -> Any:
    """OpenDP's mechanism for this law on vectors of 64-bit integers (``T=int`` would mean 32 bits)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    match law:
        case DiscreteLaplace():
            return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(law.scale), MO="MaxDivergence")
        case DiscreteGaussian():
            return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(law.scale), MO="ZeroConcentratedDivergence")
        case never:
            assert_never(never)
