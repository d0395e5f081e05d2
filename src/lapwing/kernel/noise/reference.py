"""The samplers of OpenDP, for owners who choose them, and as the reference for our own. Imported when first used."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, assert_never

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.numbers import float_at_least, sqrt_upper


def opendp_noise_added(law: Law, values: Sequence[int]) -> list[int]:
    """The values, each with a draw of the law added; results are saturated to 64 bits, which is post-processing."""
    noisy: list[int] = _measurement(law)(list(values))
    return noisy


def opendp_loss(law: Law, account: Account, *, l1: int, l2_squared: int) -> Fraction:
    """The cost by OpenDP's own map, in the account's terms."""
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


def require_opendp() -> None:
    """Stop (code ``sampler-missing``) if OpenDP is requested and not installed."""
    if importlib.util.find_spec("opendp") is None:
        raise LapwingError("sampler-missing", "the sampler needs a library that is not installed", hint="pip install 'lapwing[opendp]'")


def opendp_library() -> Any:
    """The OpenDP module, imported and configured."""
    require_opendp()
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


@lru_cache(maxsize=256)
def _measurement(law: Law) -> Any:
    """OpenDP's mechanism for this law on vectors of 64-bit integers (``T=int`` would mean 32 bits)."""
    dp = opendp_library()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    match law:
        case DiscreteLaplace():
            return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(law.scale), MO="MaxDivergence")
        case DiscreteGaussian():
            return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(law.scale), MO="ZeroConcentratedDivergence")
        case never:
            assert_never(never)
