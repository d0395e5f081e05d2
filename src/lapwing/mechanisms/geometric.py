"""The two-sided geometric law at a rational decay: exact masses and tails.

It is the discrete Laplace law of scale ``1 / ln(1 / decay)``; the closed forms are those of ``docs/proofs/discrete-laplace.md``.
"""

from __future__ import annotations

from fractions import Fraction

OUTPUTS_MAX = 2**20
"""Most outputs of an exact law."""


def mass(z: int, *, decay: Fraction) -> Fraction:
    """``P[Z = z]``, exactly."""
    return (1 - decay) / (1 + decay) * decay ** abs(z)


def tail(t: int, *, decay: Fraction) -> Fraction:
    """``P[Z >= t]``, exactly, for every integer ``t``."""
    return decay**t / (1 + decay) if t >= 0 else 1 - decay ** (1 - t) / (1 + decay)
