"""Audits of the kernel's mechanisms, each on the neighbours that are most informative under its exact law.

``sharper`` makes a mechanism reveal a given factor more than its charge. An audit that catches this shows that audits can detect mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, assert_never

import numpy as np

from lapwing.audit.auditor import CONFIDENCE, Audit, audit_draws
from lapwing.audit.claims import Approximate, Claim, Concentrated, Floats, Gaussian, claim_of, evidence
from lapwing.audit.events import Score
from lapwing.audit.plans import log_ratio
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.numbers import sqrt_upper
from lapwing.mechanisms.above_threshold import AboveThreshold, SparseVector, above_threshold_for
from lapwing.mechanisms.additive import GaussianMechanism, LaplaceMechanism, gaussian_for, geometric, laplace_for
from lapwing.mechanisms.calibration import gaussian_delta
from lapwing.mechanisms.draw import Drawable, draw_many
from lapwing.mechanisms.key_set import KeySet, key_set_for
from lapwing.mechanisms.noisy_max import NoisyMax, noisy_max_for
from lapwing.mechanisms.quantiles import QuantileSelection, SelectionRule, quantile_selection_for
from lapwing.mechanisms.response import RandomisedResponse, response_for
from lapwing.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, exponential_for, permute_and_flip_for
from lapwing.mechanisms.top_k import TopK, top_k_for
from lapwing.theory.gaussian import discrete_mu_squared

RUNS_AT_ONCE = 50_000
"""Runs drawn in one call: a million at once would hold gigabytes of Python integers."""


ONE_SIDED = 1e6
"""Log ratio of an output that only one side can produce."""


@dataclass(frozen=True, slots=True)
class AuditedMechanism:
    """A mechanism with a pair of neighbours and its claim."""

    name: str
    family: str
    mechanism: Drawable
    left: Any
    right: Any
    claim: Claim
    decay: Fraction | None = None
    """The scale at which the exact law is evaluated to score outputs. None if it is not: additive noise has a score in closed form, for
    the others it is estimated from runs."""

    def score(self) -> Score[Any] | None:
        """The log likelihood ratio by the exact law, near the mechanism's own scale: any score is sound, a good one has more power."""
        if isinstance(self.mechanism, LaplaceMechanism | GaussianMechanism):
            return _additive_score(self.mechanism.noise(), self.left, self.right)
        if self.decay is None:
            return None
        law: Any = getattr(self.mechanism, "law", None)
        left, right = (law(value, decay=self.decay) for value in (self.left, self.right))
        ratios = {output: _log_odds(right.get(output, 0), left.get(output, 0)) for output in left.keys() | right.keys()}
        return lambda outputs: np.array([ratios.get(output, 0.0) for output in outputs])


def _additive_score(noise: Law, left: Any, right: Any) -> Score[Any]:
    """The score for one or several values, each with its own noise."""
    exact = [np.atleast_1d(np.array(value, dtype=np.float64)) for value in (left, right)]

    def score(outputs: Sequence[Any]) -> Floats:
        noisy = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
        summed: Floats = log_ratio(noise, noisy, left=exact[0], right=exact[1]).sum(axis=1)
        return summed

    return score


def _log_odds(towards: Fraction | int, against: Fraction | int) -> float:
    if not against:
        return ONE_SIDED
    return math.log(towards / against) if towards else -ONE_SIDED


def runs_of(mechanism: Drawable, value: Any, runs: int) -> list[Any]:
    """The outputs of ``runs`` runs, all charged, on an account with rho and delta, where every mechanism can be charged."""
    one = mechanism.event().cost(Account.APPROXIMATE)
    outputs: list[Any] = []
    for start in range(0, runs, RUNS_AT_ONCE):
        times = min(RUNS_AT_ONCE, runs - start)
        charged = Cost(loss=one.loss * times, delta=one.delta * times)
        outputs += draw_many(mechanism, value, times=times, account=Account.APPROXIMATE, charged=charged)
    return outputs


def audit_case(
    case: AuditedMechanism, *, samples: int, tests: int | None = None, confidence: Fraction = CONFIDENCE, run: Drawable | None = None
) -> Audit:
    """Audit the claim of the mechanism; with ``run``, run that mechanism in its place."""
    mechanism = case.mechanism if run is None else run
    score = case.score()
    return audit_draws(
        lambda value, runs: runs_of(mechanism, value, runs),
        [(case.left, case.right)],
        case.claim,
        samples=samples,
        tests=tests,
        confidence=confidence,
        choosing=Fraction(1, 2) if score is None else Fraction(1, 10),
        score=None if score is None else (lambda _pair: score),
    )


def _over(scale: Fraction, factor: Fraction) -> Fraction:
    """The scale divided by the factor, rounded to a float."""
    return Fraction(float(scale / factor))


def sharper(mechanism: Drawable, factor: Fraction) -> Drawable:
    """The same mechanism with ``factor`` times the epsilon (for Gaussian noise, the mu); only the scale changes."""
    match mechanism:
        case (
            LaplaceMechanism() | GaussianMechanism() | ExponentialMechanism() | PermuteAndFlip() | NoisyMax() | TopK() | QuantileSelection()
        ):
            return replace(mechanism, scale=_over(mechanism.scale, factor))
        case RandomisedResponse():
            epsilon = mechanism.event().epsilon
            assert epsilon is not None  # randomised response has one
            return response_for(epsilon=epsilon * factor, categories=mechanism.categories)
        case AboveThreshold():
            threshold, query = _over(mechanism.scale_threshold, factor), _over(mechanism.scale_query, factor)
            return replace(mechanism, scale_threshold=threshold, scale_query=query)
        case SparseVector():
            above = sharper(mechanism.above, factor)
            assert isinstance(above, AboveThreshold)
            return replace(mechanism, above=above)
        case KeySet():
            return replace(mechanism, noise=_sharper_law(mechanism.noise, factor))
        case never:
            assert_never(never)


def _sharper_law(law: Law, factor: Fraction) -> Law:
    match law:
        case DiscreteLaplace():
            return DiscreteLaplace(_over(law.scale, factor))
        case DiscreteGaussian():
            return DiscreteGaussian(_over(law.scale, factor))
        case never:
            assert_never(never)


def best_evidence(claim: Claim, left: Mapping[Any, Fraction], right: Mapping[Any, Fraction], *, runs: int, deviations: float) -> float:
    """The parameter that an audit with ``runs`` measuring runs can expect to refute, given both laws, in the better direction."""
    names = list(left.keys() | right.keys())
    laws = [np.array([float(law.get(name, 0)) for name in names]) for law in (left, right)]
    best = 0.0
    for against, towards in (laws, laws[::-1]):
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-towards / against)
        p, q = np.cumsum(towards[order]), np.cumsum(against[order])
        low, high = (side + sign * deviations * _spread(side, runs) for side, sign in ((p, -1.0), (q, 1.0)))
        best = max(best, float(evidence(claim, p=np.clip(low, 0.0, 1.0), q=np.clip(high + deviations**2 / runs, 1e-300, 1.0)).max()))
    return best


def _spread(share: Floats, runs: int) -> Floats:
    return np.sqrt(np.clip(share * (1.0 - share), 0.0, None) / runs)


def most_telling(
    name: str,
    family: str,
    mechanism: Any,
    pairs: Iterable[tuple[Any, Any]],
    *,
    scale: Fraction,
    claim: Claim | None = None,
    runs: int = 100_000,
) -> AuditedMechanism:
    """The case with the neighbours on which the exact law predicts the strongest evidence."""
    claimed = claim or claim_of(mechanism.event())
    decay = Fraction(math.exp(-1.0 / float(scale))).limit_denominator(256)

    def strength(pair: tuple[Any, Any]) -> float:
        laws = [mechanism.law(value, decay=decay) for value in pair]
        return best_evidence(claimed, *laws, runs=runs, deviations=4.0)

    left, right = max(pairs, key=strength)
    return AuditedMechanism(name, family, mechanism, left, right, claimed, decay)


EPSILON = Fraction(2)
"""The charge of the audited mechanisms, except for additive noise (1) and rho (the value at which an audit has most power)."""
MU = Fraction(3, 2)
SHIFT = 80


def _curve(mechanism: GaussianMechanism) -> Gaussian:
    """The mu that is proved for discrete noise, up to a factor on probabilities that is negligible for an audit."""
    return Gaussian(sqrt_upper(discrete_mu_squared(sensitivity_squared=mechanism.l2_squared, sigma_squared=mechanism.scale**2)))


def additive_cases() -> list[AuditedMechanism]:
    """Laplace, geometric and Gaussian noise."""
    laplace, vector = laplace_for(epsilon=Fraction(1), l1=1), laplace_for(epsilon=Fraction(1), l1=5)
    clamped = geometric(alpha=Fraction(1, 2), clamp=(-1, 2))
    # A large scale, where the curve that is proved for discrete noise is close to that of the normal law.
    gaussian, pairwise = gaussian_for(rho=MU**2 / 2, l2_squared=SHIFT**2), gaussian_for(rho=MU**2 / 2, l2_squared=2 * SHIFT**2)
    noise = DiscreteGaussian(gaussian.scale)
    at_one = Approximate(Fraction(1), gaussian_delta(noise, sensitivity=SHIFT, epsilon=Fraction(1)))
    return [
        AuditedMechanism("Laplace", "Laplace", laplace, 0, 1, claim_of(laplace.event())),
        AuditedMechanism("Laplace, rho", "Laplace", laplace, 0, 1, claim_of(laplace.event(), concentrated=True)),
        AuditedMechanism("Laplace, two values", "Laplace", vector, (0, 0), (2, 3), claim_of(vector.event())),
        AuditedMechanism("geometric, clamped", "Laplace", clamped, 0, 1, claim_of(clamped.event())),
        AuditedMechanism("Gaussian, rho", "Gaussian", gaussian, 0, SHIFT, claim_of(gaussian.event())),
        AuditedMechanism("Gaussian, curve", "Gaussian", gaussian, 0, SHIFT, _curve(gaussian)),
        AuditedMechanism("Gaussian, delta at epsilon 1", "Gaussian", gaussian, 0, SHIFT, at_one),
        AuditedMechanism("Gaussian, two values", "Gaussian", pairwise, (0, 0), (SHIFT, -SHIFT), _curve(pairwise)),
    ]


def response_cases() -> list[AuditedMechanism]:
    """Randomised response."""
    two, four = (response_for(epsilon=EPSILON, categories=categories) for categories in (2, 4))
    return [
        AuditedMechanism("randomised response", "response", two, 0, 1, claim_of(two.event())),
        AuditedMechanism("randomised response, rho", "response", two, 0, 1, claim_of(two.event(), concentrated=True)),
        AuditedMechanism("randomised response, four answers", "response", four, 0, 3, claim_of(four.event())),
        AuditedMechanism("randomised response, three people", "response", four, (0, 1, 2), (0, 3, 2), claim_of(four.event())),
    ]


def selection_cases() -> list[AuditedMechanism]:
    """One of several candidates by score, several of them, and a quantile."""
    moves = [((0, -gap, -gap, -gap), (-2, 2 - gap, 2 - gap, 2 - gap)) for gap in range(16)]
    counts = [((0, -gap, -gap, -gap), (0, 2 - gap, 2 - gap, 2 - gap)) for gap in range(16)]
    two = [((0, 0, -gap, -gap), (-2, -2, 2 - gap, 2 - gap)) for gap in range(16)]
    pure = Account.PURE
    exponential = exponential_for(pure, loss=EPSILON, score_sensitivity=2, candidates=4)
    monotone = exponential_for(pure, loss=EPSILON, score_sensitivity=2, candidates=4, monotone=True)
    flip = permute_and_flip_for(pure, loss=EPSILON, score_sensitivity=2, candidates=4)
    noisy = noisy_max_for(pure, loss=EPSILON, score_sensitivity=2, candidates=4)
    top = top_k_for(pure, loss=EPSILON, k=2, score_sensitivity=2, candidates=4)
    rows = [((1,) * n + (9,) * (20 - n), (1,) * (n - 1) + (9,) * (20 - n)) for n in range(1, 20)]
    quantile = quantile_selection_for(
        pure, loss=EPSILON, candidates=tuple(range(0, 11, 2)), quantile=Fraction(1, 2), rows_per_unit=1, neighbours=Neighbours.UNBOUNDED
    )
    replaced = quantile_selection_for(
        pure,
        loss=EPSILON,
        candidates=tuple(range(0, 11, 2)),
        quantile=Fraction(1, 2),
        rows_per_unit=1,
        neighbours=Neighbours.BOUNDED,
        rule=SelectionRule.PERMUTE_AND_FLIP,
    )
    swaps = [((1,) * n + (9,) * (20 - n), (1,) * (n - 1) + (9,) * (21 - n)) for n in range(1, 20)]
    return [
        most_telling("exponential mechanism", "selection", exponential, moves, scale=exponential.scale),
        most_telling("exponential mechanism, monotone", "selection", monotone, counts, scale=monotone.scale),
        most_telling(
            "exponential mechanism, rho",
            "selection",
            exponential,
            moves,
            scale=exponential.scale,
            claim=claim_of(exponential.event(), concentrated=True),
        ),
        most_telling("permute-and-flip", "selection", flip, moves, scale=flip.scale),
        most_telling("permute-and-flip, rho", "selection", flip, moves, scale=flip.scale, claim=claim_of(flip.event(), concentrated=True)),
        most_telling("report noisy max", "selection", noisy, moves, scale=noisy.scale),
        most_telling("top k", "selection", top, two, scale=top.scale),
        most_telling("median by selection, unbounded", "selection", quantile, rows, scale=quantile.scale),
        most_telling("median by permute-and-flip, bounded", "selection", replaced, swaps, scale=replaced.scale),
    ]


def threshold_cases() -> list[AuditedMechanism]:
    """Above threshold, sparse vector, key sets."""
    streams = [((low,) * k + (last,), (low + 1,) * k + (last - 1,)) for k in (4, 8, 12) for low in (-2, -1, 0) for last in (0, 1, 2, 3)]
    above = above_threshold_for(epsilon=EPSILON, sensitivity=1, threshold=0)
    rising = above_threshold_for(epsilon=EPSILON, sensitivity=1, threshold=0, monotone=True)
    risen = [((low,) * k, (low + 1,) * k) for k in (1, 4, 8, 12) for low in (-4, -3, -2, -1, 0)]
    sparse = SparseVector(above_threshold_for(epsilon=EPSILON / 2, sensitivity=1, threshold=0), starts=2)
    noise, normal = DiscreteLaplace(Fraction(1)), DiscreteGaussian(Fraction(1))
    alone, both = (key_set_for(law, groups_per_unit=1, delta=Fraction(1, 20)) for law in (noise, normal))
    several = key_set_for(noise, groups_per_unit=3, delta=Fraction(1, 10), neighbours=Neighbours.BOUNDED)
    rarely = key_set_for(noise, groups_per_unit=1, delta=Fraction(1, 1000))
    near = rarely.threshold - 1
    return [
        most_telling("above threshold", "threshold", above, streams, scale=above.scale_query),
        most_telling("above threshold, monotone", "threshold", rising, risen, scale=rising.scale_query),
        most_telling("sparse vector", "threshold", sparse, streams[::3], scale=sparse.above.scale_query),
        AuditedMechanism("key set, a key of one unit", "threshold", alone, (5, 1), (5, 0), claim_of(alone.event())),
        AuditedMechanism("key set, shared key", "threshold", rarely, (near,), (near + 1,), claim_of(rarely.event())),
        AuditedMechanism("key set, Gaussian", "threshold", both, (both.threshold, 1), (both.threshold - 1, 1), claim_of(both.event())),
        AuditedMechanism("key set, replaced unit", "threshold", several, (1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1), claim_of(several.event())),
    ]


@cache
def cases() -> tuple[AuditedMechanism, ...]:
    """Every mechanism of the kernel. The search for the most informative neighbours runs once."""
    return (*additive_cases(), *response_cases(), *selection_cases(), *threshold_cases())


def flip_charged_as_exponential() -> AuditedMechanism:
    """A known mistake: permute-and-flip charged rho = epsilon^2/8, which is right for the exponential mechanism only."""
    flip = permute_and_flip_for(Account.PURE, loss=EPSILON, score_sensitivity=2, candidates=4)
    wrong = Concentrated(EPSILON**2 / 8)
    moves = [((0, -gap, -gap, -gap), (-2, 2 - gap, 2 - gap, 2 - gap)) for gap in range(16)]
    return most_telling("permute-and-flip charged as exponential", "selection", flip, moves, scale=flip.scale, claim=wrong)


def mistakes(factor: Fraction) -> list[tuple[AuditedMechanism, Drawable]]:
    """For each family, a case whose neighbours attain the claim, and a mechanism that reveals ``factor`` times as much; and the flip."""
    audited = ("Laplace", "Gaussian, curve", "randomised response", "permute-and-flip", "key set, shared key")
    flip = flip_charged_as_exponential()
    return [*((case, sharper(case.mechanism, factor)) for case in cases() if case.name in audited), (flip, flip.mechanism)]
