"""A digital-goods auction: the seller can make as many copies as there are buyers, and chooses one price.

Each person reports what the good is worth to them. The seller chooses a price from a public list with the exponential mechanism: the score
of a price is its revenue, ``price * (number of reports of at least the price)``. Then everybody sees the price and may buy, whatever they
reported; so a report matters only through the price (McSherry and Talwar 2007, section 5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

from lapwing.errors import LapwingError
from lapwing.games.exponentials import SumOfExponentials
from lapwing.games.mechanism import ExponentialChoice
from lapwing.kernel.numbers import require_exact


class DigitalGoodsAuction:
    """Prices are public; types are valuations. One report replaced moves the revenue of a price by at most that price.

    With ``epsilon``: a price has weight ``exp(epsilon * revenue / (2 * highest price))``. With ``factor``: weight ``factor ** revenue``,
    for prices that are integers.
    """

    def __init__(self, prices: Sequence[Fraction], *, epsilon: Fraction | None = None, factor: Fraction | None = None) -> None:
        require_exact(*prices)
        if not prices or min(prices) < 0 or max(prices) == 0 or len(set(prices)) != len(prices):
            raise LapwingError("game-invalid", "the prices of an auction must be distinct and not negative, and not all 0")
        self.outcomes = tuple(Fraction(price) for price in prices)
        self.choice = ExponentialChoice(epsilon=epsilon, sensitivity=max(self.outcomes), factor=factor)
        self._worth: dict[Fraction, tuple[Fraction, ...]] = {}

    @cached_property
    def name(self) -> str:
        """The name of the mechanism in reports."""
        return f"auction of a digital good at {len(self.outcomes)} prices"

    def objective(self, reports: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The revenue of each price."""
        return tuple(price * sum(1 for report in reports if report >= price) for price in self.outcomes)

    def weights(self, reports: Sequence[Fraction]) -> tuple[SumOfExponentials, ...]:
        """The exponential mechanism over revenues."""
        return self.choice.weights(self.objective(reports))

    def honest(self, type_: Fraction, others: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The valuation less the price, or 0 if the price is higher."""
        if type_ not in self._worth:
            self._worth[type_] = tuple(max(Fraction(0), type_ - price) for price in self.outcomes)
        return self._worth[type_]

    def lying(self, type_: Fraction, report: Fraction, others: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The same: reports are not binding."""
        return self.honest(type_, others)
