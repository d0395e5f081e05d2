"""Confidence bounds of Clopper and Pearson on a probability, from a number of hits, without SciPy.

The bound is the end of the set of probabilities that the number of hits does not contradict, so it holds at the stated rate for every
probability and every number of runs. The binomial tail is summed term by term with a bound on the omitted terms, a stated margin covers
the rounding error of its logarithm, and the bisection returns the end on the safe side. Proof: ``docs/proofs/audit.md``.
"""

from __future__ import annotations

import math

import numpy as np

from lapwing.errors import LapwingError

RUNS_MAX = 100_000_000
"""Most runs for which a bound is computed. Up to here the rounding of a binomial logarithm stays below ``_MARGIN``."""

_MARGIN = 1e-5
"""Relative error allowed in a tail: ``lgamma`` of 10^8 is below 2e9, so three of them round by less than 2e-6."""

_BISECTIONS = 100
_TERMS = 4096


def upper_bound(hits: int, runs: int, *, error: float) -> float:
    """A number that is at least the probability of a hit, except with a chance of at most ``error``.

    Pre: ``hits`` of ``runs`` independent runs were hits, and ``runs`` was fixed beforehand. Source: Clopper and Pearson 1934.
    """
    _require(hits, runs, error)
    if hits == runs:
        return 1.0
    low, high = hits / runs, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        # only a probability that is certainly excluded may become the upper end
        if tail_upper(hits, runs, middle) < error:
            high = middle
        else:
            low = middle
    return high


def lower_bound(hits: int, runs: int, *, error: float) -> float:
    """A number that is at most the probability of a hit, except with a chance of at most ``error``: the upper bound on misses."""
    return max(0.0, math.nextafter(1.0 - upper_bound(runs - hits, runs, error=error), 0.0))


def tail_upper(hits: int, runs: int, probability: float) -> float:
    """At least P[at most ``hits`` hits], where each of ``runs`` runs hits with this probability, which is at least ``hits / runs``.

    From ``hits`` downwards each term is smaller than the previous one, by decreasing factors, so the omitted terms are at most a geometric
    series.
    """
    if probability >= 1.0:
        return 1.0 if hits == runs else 0.0
    log_first = math.lgamma(runs + 1) - math.lgamma(hits + 1) - math.lgamma(runs - hits + 1)
    log_first += hits * math.log(probability) if hits else 0.0
    log_first += (runs - hits) * math.log1p(-probability)
    odds = (1.0 - probability) / probability
    total, last, start = 1.0, 1.0, hits
    while start > 0:
        taken = np.arange(start, max(start - _TERMS, 0), -1, dtype=np.float64)
        terms = last * np.cumprod(taken / (runs - taken + 1.0) * odds)
        total, last, start = total + float(terms.sum()), float(terms[-1]), start - len(taken)
        if start == 0:
            break
        factor = start / (runs - start + 1.0) * odds
        if factor < 1.0 and last * factor / (1.0 - factor) < total * 1e-9:
            total += last * factor / (1.0 - factor)
            break
    return min(1.0, math.exp(log_first) * total * (1.0 + _MARGIN))


def _require(hits: int, runs: int, error: float) -> None:
    if not (type(hits) is int and type(runs) is int and 1 <= runs <= RUNS_MAX and 0 <= hits <= runs):
        raise LapwingError("audit-invalid", f"a bound needs 1 to {RUNS_MAX} runs, and no more hits than runs")
    if not 0.0 < error < 1.0:
        raise LapwingError("audit-invalid", "the error probability of a bound must be between 0 and 1")
