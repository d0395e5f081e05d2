"""The interface of a mechanism.

A mechanism is a frozen record of *public* parameters. It never holds data: the exact value (scores, counts, one person's answer) is an
argument. All inputs are integers, so every law but the Gaussian's is a rational function of one number, ``decay = exp(-1 / scale)``. The
law can therefore be evaluated exactly at any rational decay, which is the law of the same mechanism at the scale ``1 / ln(1 / decay)``.
This lets :mod:`lapwing.theory` verify epsilon to the last digit: ``exp(epsilon)`` is a power of the decay.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Protocol, TypeVar

from lapwing.errors import LapwingError
from lapwing.kernel.event import Event

Value_contra = TypeVar("Value_contra", contravariant=True)
Output = TypeVar("Output", bound=Hashable)


class Mechanism(Protocol[Value_contra, Output]):
    """What every mechanism states about itself, without data or with data that the caller holds. Implementations are frozen records."""

    def event(self) -> Event:
        """The cost of one run."""
        ...

    def law(self, value: Value_contra, *, decay: Fraction) -> Mapping[Output, Fraction]:
        """The exact law of the output on this input, were ``exp(-1 / scale)`` equal to ``decay``; probabilities are positive and sum to 1.

        Mechanisms with infinitely many outputs need a clamp on their output for this, which is one of their parameters.
        """
        ...

    def odds(self, *, decay: Fraction) -> Fraction:
        """The claimed ``exp(epsilon)`` at this decay, exactly."""
        ...

    def error(self, *, confidence: Fraction) -> int:
        """A bound on the error (documented by each mechanism: distance of a value, or loss of score) that holds with this confidence."""
        ...


def require_decay(decay: Fraction) -> None:
    """Raise ``decay-invalid`` unless some scale has this ``exp(-1 / scale)``: laws are evaluated at fractions between 0 and 1."""
    # type() and not isinstance(): a float would make the law a float, and a comparison of laws a comparison of floats
    if type(decay) is not Fraction or not 0 < decay < 1:
        raise LapwingError("decay-invalid", "a decay must be a fraction above 0 and below 1")
