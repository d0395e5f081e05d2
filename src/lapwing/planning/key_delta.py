"""The part of the delta for keys that one statement may use: the same share as its share of the loss.

The threshold that keys have to reach falls as their delta grows, so a statement gets as much as possible without using that of others.
Shares of the loss add up to at most 1, so the delta lasts as long as the loss. The share is of the ceiling, which a raised budget does not
change: the same statement has the same plan, and is found again, as long as the promise stays.
"""

from __future__ import annotations

import math
from fractions import Fraction

from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Budget


def delta_for_keys(ceiling: Budget, loss: Fraction) -> Fraction:
    """The delta for keys of a statement that asks for this loss: whole ledger units, at least one where there is any, and at most all."""
    share = min(loss * LOSS_UNITS / ceiling.loss_total, Fraction(1))
    units = max(math.floor(ceiling.delta_total * share), min(ceiling.delta_total, 1))
    return Fraction(units, DELTA_UNITS)
