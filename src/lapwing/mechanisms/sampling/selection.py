"""Drawing a selection: Gumbel noise (the exponential mechanism, top-k), exponential noise (permute-and-flip), Laplace noise (noisy max).

OpenDP compares noisy scores to as many bits as the comparison needs, so the draw has exactly the stated law, without ties or overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, assert_never

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.noise.additive import VALUE_MAX, add_noise
from lapwing.kernel.noise.reference import opendp_library
from lapwing.kernel.numbers import require_exact, sqrt_upper
from lapwing.mechanisms.noisy_max import NoisyMax
from lapwing.mechanisms.quantiles import QuantileSelection
from lapwing.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, require_scores
from lapwing.mechanisms.top_k import TopK

OneOfMany: TypeAlias = ExponentialMechanism | PermuteAndFlip | NoisyMax
"""The mechanisms that select one candidate by its score."""


def draw_selection(mechanism: OneOfMany, scores: Sequence[int], *, times: int = 1, account: Account, charged: Fraction) -> list[int]:
    """Indices of candidates, drawn independently from ``mechanism.law`` of these scores at the mechanism's own scale.

    Pre: between neighbours the scores move as the mechanism's parameters say, and ``charged`` (epsilon on a pure account, rho on an
    approximate one) is already in the ledger for each of the ``times``. Post: each index is ``charged``-private.

    Two accountants must agree before anything is drawn: the mechanism's event and the sampler's map, each at most ``charged``; otherwise
    this raises ``noise-undercharged``. Scores above ``VALUE_MAX`` in size raise ``value-too-large``.
    """
    exact = _checked(scores, candidates=mechanism.candidates)
    match mechanism:
        case ExponentialMechanism() | PermuteAndFlip():
            _require_charged(mechanism, account, charged)
            select = _measurement(mechanism)
            return [select(exact) for _ in range(times)]
        case NoisyMax():
            # The price of the index is that of one Laplace draw moved by ``movement``.
            law, l1 = DiscreteLaplace(mechanism.scale), mechanism.movement
            noisy = add_noise(law, exact * times, account=account, l1=l1, l2_squared=l1**2, charged=charged)
            return [_first_largest(noisy[start : start + len(exact)]) for start in range(0, len(noisy), len(exact))]
        case never:
            assert_never(never)


def _first_largest(noisy: list[int]) -> int:
    return noisy.index(max(noisy))  # ties go to the lowest index


def draw_top_k(mechanism: TopK, scores: Sequence[int], *, times: int = 1, account: Account, charged: Fraction) -> list[tuple[int, ...]]:
    """Lists of k indices, best first, each drawn from ``mechanism.law`` of these scores. Pre, post and refusals as above."""
    exact = _checked(scores, candidates=mechanism.candidates)
    _require_charged(mechanism, account, charged)
    select = _measurement(mechanism)
    return [tuple(select(exact)) for _ in range(times)]


def draw_quantile(mechanism: QuantileSelection, rows: Sequence[int], *, times: int = 1, account: Account, charged: Fraction) -> list[int]:
    """Candidate values, each drawn from ``mechanism.law`` of these rows. Pre, post and refusals as above."""
    scores = mechanism.scores(mechanism.counts(rows))
    indices = draw_selection(mechanism.selection(), scores, times=times, account=account, charged=charged)
    return [mechanism.candidates[index] for index in indices]


def _checked(scores: Sequence[int], *, candidates: int) -> list[int]:
    exact = require_scores(scores, candidates=candidates)
    if any(not -VALUE_MAX <= score <= VALUE_MAX for score in exact):
        raise LapwingError("value-too-large", "a score is too large to draw a selection")
    return exact


def _require_charged(mechanism: ExponentialMechanism | PermuteAndFlip | TopK, account: Account, charged: Fraction) -> None:
    require_exact(charged)
    if mechanism.event().loss(account) > charged or _mapped_loss(mechanism, account) > charged:
        raise LapwingError("noise-undercharged", "the selection would cost more than was charged")


def _mapped_loss(mechanism: ExponentialMechanism | PermuteAndFlip | TopK, account: Account) -> Fraction:
    """The cost by the sampler's own map, in the account's terms.

    For exponential noise the map returns epsilon. For Gumbel noise it returns rho, and as k rounds of an epsilon each have
    ``rho = k epsilon^2 / 8``, the sum of the epsilons is the root of ``8 k rho``.
    """
    rounds = mechanism.k if isinstance(mechanism, TopK) else 1
    mapped = Fraction(_measurement(mechanism).map(mechanism.score_sensitivity))
    match account:
        case Account.PURE:
            return mapped if isinstance(mechanism, PermuteAndFlip) else sqrt_upper(8 * rounds * mapped)
        case Account.APPROXIMATE:
            return mapped**2 / 2 if isinstance(mechanism, PermuteAndFlip) else mapped
        case never:
            assert_never(never)


@lru_cache(maxsize=256)
def _measurement(mechanism: ExponentialMechanism | PermuteAndFlip | TopK) -> Any:
    """OpenDP's selection on vectors of 64-bit integers, whose neighbours are measured by the largest move of any score."""
    dp = opendp_library()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    metric = dp.linf_distance(T="i64", monotonic=mechanism.monotone)
    scale = float(mechanism.scale)
    match mechanism:
        case ExponentialMechanism():
            return dp.m.make_noisy_max(domain, metric, dp.zero_concentrated_divergence(), scale=scale)
        case PermuteAndFlip():
            return dp.m.make_noisy_max(domain, metric, dp.max_divergence(), scale=scale)
        case TopK():
            return dp.m.make_noisy_top_k(domain, metric, dp.zero_concentrated_divergence(), k=mechanism.k, scale=scale)
        case never:
            assert_never(never)
