"""Privacy claims of a mechanism, and the parameter that an event refutes.

An event is a set of outputs. If it happens with probability at least ``p`` on one data set and at most ``q`` on its neighbour, a claim
limits how far apart these may be. :func:`evidence` gives the largest parameter that ``p`` and ``q`` refute, in the claim's own measure; the
claim is refuted when that exceeds the parameter claimed. Every measure grows in ``p`` and falls in ``q`` while ``p > q``, so confidence
bounds may replace the probabilities. Proof: ``docs/proofs/audit.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from lapwing.errors import LapwingError
from lapwing.kernel.event import Event
from lapwing.kernel.numbers import require_exact

Floats: TypeAlias = npt.NDArray[np.float64]

_EXCESSES = np.geomspace(1e-3, 1e3, 160)
"""Orders tried for zCDP, minus 1. Each order gives a sound bound, so the grid affects only the power."""

_ROUNDING = 1.0 - 1e-9
"""Factor on every bound, to cover the rounding of logarithms."""


@dataclass(frozen=True, slots=True)
class Pure:
    """epsilon-differential privacy."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _require(self.epsilon)


@dataclass(frozen=True, slots=True)
class Approximate:
    """(epsilon, delta)-differential privacy."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _require(self.epsilon, delta=self.delta)


@dataclass(frozen=True, slots=True)
class Concentrated:
    """delta-approximate rho-zCDP; with ``delta`` 0, rho-zCDP."""

    rho: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        _require(self.rho, delta=self.delta)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Gaussian differential privacy: no easier to distinguish than N(0, 1) from N(mu, 1), the whole curve of (epsilon, delta) of the
    Gaussian mechanism.

    ``mu`` is the sensitivity over the standard deviation, one over the *noise multiplier*. The discrete Gaussian provably satisfies it
    at a slightly larger mu (:func:`lapwing.theory.gaussian.discrete_mu_squared`).
    """

    mu: Fraction

    def __post_init__(self) -> None:
        _require(self.mu)


Claim: TypeAlias = Pure | Approximate | Concentrated | Gaussian


def _require(parameter: Fraction, *, delta: Fraction = Fraction(0)) -> None:
    require_exact(parameter, delta)
    if parameter < 0 or not 0 <= delta < 1:
        raise LapwingError("audit-invalid", "the parameter of a claim must not be negative, and its delta must be at least 0 and below 1")


def claim_of(event: Event, *, concentrated: bool = False) -> Claim:
    """The claim of a mechanism's event: in epsilon, or in rho if it has no epsilon or if ``concentrated``."""
    if event.rho is not None and (concentrated or event.epsilon is None):
        return Concentrated(event.rho, event.delta)
    if event.epsilon is None:
        raise LapwingError("audit-invalid", "the event claims nothing that an audit could refute")
    return Approximate(event.epsilon, event.delta) if event.delta else Pure(event.epsilon)


def parameter_of(claim: Claim) -> Fraction:
    """The claimed parameter: epsilon, rho or mu."""
    match claim:
        case Pure(epsilon) | Approximate(epsilon, _):
            return epsilon
        case Concentrated(rho, _):
            return rho
        case Gaussian(mu):
            return mu
        case never:
            assert_never(never)


def measure_of(claim: Claim) -> str:
    """The name of the claimed parameter."""
    match claim:
        case Pure() | Approximate():
            return "epsilon"
        case Concentrated():
            return "rho"
        case Gaussian():
            return "mu"
        case never:
            assert_never(never)


def evidence(claim: Claim, *, p: Floats, q: Floats) -> Floats:
    """For each event, the largest parameter refuted, 0 where nothing is.

    Pre: the event has probability at least ``p`` on one data set and at most ``q > 0`` on the other.
    """
    strongest = np.zeros_like(p)
    match claim:
        case Pure():
            _log_ratio(strongest, p, q)
        case Approximate(_, delta):
            _log_ratio(strongest, p - float(delta), q)
        case Concentrated(_, delta):
            # given the event of probability 1 - delta in the definition
            _renyi(strongest, p - float(delta), q / (1.0 - float(delta)))
        case Gaussian():
            normal = NormalDist()
            for place in np.flatnonzero((p > q) & (p > 0.0) & (q < 1.0) & (p < 1.0)):
                strongest[place] = normal.inv_cdf(float(p[place])) - normal.inv_cdf(float(q[place]))
        case never:
            assert_never(never)
    return np.maximum(strongest, 0.0) * _ROUNDING


def _log_ratio(strongest: Floats, p: Floats, q: Floats) -> None:
    more = p > q
    strongest[more] = np.log(p[more] / q[more])


def _renyi(strongest: Floats, p: Floats, q: Floats) -> None:
    """Largest binary Renyi divergence over its order, ``D_a(Bern(p) || Bern(q)) / a``."""
    more = np.flatnonzero((p > q) & (q < 1.0))
    if not len(more):
        return
    order = 1.0 + _EXCESSES[:, None]
    top, below = np.minimum(p[more], 1.0), q[more]
    with np.errstate(divide="ignore"):
        hit = order * np.log(top) + (1.0 - order) * np.log(below)
        miss = order * np.log1p(-top) + (1.0 - order) * np.log1p(-below)
    strongest[more] = (np.logaddexp(hit, miss) / (order * _EXCESSES[:, None])).max(axis=0)
