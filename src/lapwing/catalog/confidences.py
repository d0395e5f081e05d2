"""Which confidences error bars can be asked for; the same rule for defaults, statements and releases."""

from __future__ import annotations

from fractions import Fraction

CONFIDENCE_MAX = 1 - Fraction(1, 10**9)
"""The most that an answer can be asked for: error bars are computed with floats, which cannot tell more from 1."""
NOT_ASKED = "a confidence lies between 0 and 1, and is 0.999999999 at most"


def can_be_asked(confidence: Fraction | float) -> bool:
    """Whether error bars of this confidence can be made."""
    return 0 < confidence <= CONFIDENCE_MAX
