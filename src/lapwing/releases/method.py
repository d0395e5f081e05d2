"""Which way a synthetic table is made, decided from public facts before anything is paid: sizes, number of rows, price.

Two ways. *Pairs*: all pairs of columns are measured and a mixture explains them. *Independent*: each column is measured alone, which leaves
a price more than ten times as high for each, and dependences are given up. Which one is nearer to the truth depends on how much of the
pairs is noise, and that is known before: the expected total variation between a pair's table and its noisy one is

    cells * E|noise| / (2 rows)

If its mean over all pairs is above ``PREDICTED_MAX``, the pairs are too noisy to be of use. The figures behind the rule are in
docs/explanation/synthetic-tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from lapwing.errors import Refused
from lapwing.kernel.laws import Family

PREDICTED_MAX = 1.5
"""Above this predicted error of pairs, columns are measured alone."""

ONES_SHARE_MIN, ONES_SHARE_MAX = 0.1, 0.5
"""Of the price, for the columns by themselves, where pairs are measured: the noisier the pairs, the more."""


class SyntheticMethod(StrEnum):
    """How a synthetic table is made."""

    AUTO = "auto"
    PAIRS = "pairs"
    INDEPENDENT = "independent"


@dataclass(frozen=True, slots=True)
class SyntheticPlan:
    """A way, which share of the loss each table gets (tables by their axes, ascending), and the error it was chosen by.

    ``predicted`` is None where it was not needed: the way was named, and the number of rows is not known.
    """

    method: SyntheticMethod
    shares: dict[tuple[int, ...], float]
    predicted: float | None


def chosen(
    sizes: Sequence[int], *, loss: float, rows: float | None, family: Family, method: SyntheticMethod = SyntheticMethod.AUTO
) -> SyntheticPlan:
    """The way to a synthetic table of columns with these numbers of bins.

    ``loss``: what the release may cost where a row changes one cell of each table by one (rho for Gaussian noise, epsilon for Laplace).
    ``rows``: how many there are, as declared or as bought before; never counted here.
    """
    pairs = pair_shares(sizes, family)
    predicted = None if rows is None or not pairs else _predicted(sizes, pairs, loss=loss, rows=rows, family=family)
    if method is SyntheticMethod.AUTO:
        if rows is None:
            raise Refused(
                "release-rows-unknown",
                'method = "auto" chooses by how many rows there are, and that is not known',
                hint='declare the number of units, buy statistics, or name a method: "pairs" or "independent"',
            )
        method = SyntheticMethod.PAIRS if predicted is not None and predicted <= PREDICTED_MAX else SyntheticMethod.INDEPENDENT
    ones: dict[tuple[int, ...], float] = {(axis,): 1.0 / len(sizes) for axis in range(len(sizes))}
    if method is SyntheticMethod.INDEPENDENT or not pairs:
        return SyntheticPlan(SyntheticMethod.INDEPENDENT, ones, predicted)
    alone = ones_share(predicted)
    shares = {table: alone * share for table, share in ones.items()} | {table: (1 - alone) * share for table, share in pairs.items()}
    return SyntheticPlan(SyntheticMethod.PAIRS, shares, predicted)


def ones_share(predicted: float | None) -> float:
    """Of the price, what columns by themselves get beside pairs of this predicted error; little where it is not known."""
    return ONES_SHARE_MIN + (ONES_SHARE_MAX - ONES_SHARE_MIN) * min(1.0, predicted or 0.0)


def pair_shares(sizes: Sequence[int], family: Family) -> dict[tuple[int, ...], float]:
    """Shares of all pairs that make the sum of all cells' mean absolute errors least.

    A share s makes deviations proportional to s^(-1/2) under Gaussian noise and to 1/s under Laplace noise; with Lagrange, the shares are
    proportional to cells^(2/3) and to cells^(1/2).
    """
    power = 2 / 3 if family is Family.GAUSSIAN else 1 / 2
    weights = {(a, b): float(sizes[a] * sizes[b]) ** power for a, b in combinations(range(len(sizes)), 2)}
    whole = sum(weights.values())
    return {table: weight / whole for table, weight in weights.items()}


def mean_absolute_noise(share: float, *, loss: float, family: Family) -> float:
    """E|noise| of a cell, for the continuous law."""
    return math.sqrt(2 / math.pi) / math.sqrt(2 * loss * share) if family is Family.GAUSSIAN else 1 / (loss * share)


def _predicted(sizes: Sequence[int], pairs: dict[tuple[int, ...], float], *, loss: float, rows: float, family: Family) -> float:
    """The expected total variation between a pair and its noisy table, in the mean over pairs."""
    errors = [
        sizes[a] * sizes[b] * mean_absolute_noise(share, loss=loss, family=family) / (2 * max(rows, 1.0)) for (a, b), share in pairs.items()
    ]
    return sum(errors) / len(errors)
