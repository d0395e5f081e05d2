"""The method for a synthetic table, chosen from public facts before the charge: sizes, number of rows, price.

There are two methods. *Pairs*: all pairs of columns are measured and a mixture explains them. *Independent*: each column is measured alone,
at several times the precision, and dependences are ignored. Which one is more accurate depends on the share of noise in the pairs, and that
is known before: a pair's table is a vector that adds up to the number of rows, and noise is one of the expected length

    deviation * sqrt(cells)

The mean over pairs of this length, as a share of the number of rows, decides. Above ``NOISE_MAX`` dependences drown in it. Below, the less
noise there is, the less is spent on columns by themselves, since pairs tell them as well. (The predicted distance of a pair to its noisy
table, cells * E|noise| / (2 rows), decides worse: tables with very many cells have most of them empty, and a mixture does not fit those.)
The figures behind the rule are in docs/explanation/synthetic-tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from lapwing.errors import Refused
from lapwing.prices import Family

NOISE_MAX = 0.24
"""Columns are measured alone where the noise of pairs is longer than this share of the rows."""

ONES_SHARE_MIN, ONES_SHARE_MAX, ONES_NOISE = 0.1, 0.5, 0.1
"""Of the price, for the columns by themselves, where pairs are measured: the most from noise of length ``ONES_NOISE`` on."""


class SyntheticMethod(StrEnum):
    """The method for a synthetic table."""

    AUTO = "auto"
    PAIRS = "pairs"
    INDEPENDENT = "independent"


@dataclass(frozen=True, slots=True)
class SyntheticPlan:
    """A method, and each table's share of the loss (tables by their axes, ascending).

    ``noise``: how long that of a pair would be if pairs had the whole price, as a share of the rows. None if the method was given and the
    number of rows is not known.
    """

    method: SyntheticMethod
    shares: dict[tuple[int, ...], float]
    noise: float | None


def chosen(
    sizes: Sequence[int], *, loss: float, rows: float | None, family: Family, method: SyntheticMethod = SyntheticMethod.AUTO
) -> SyntheticPlan:
    """The method for a synthetic table of columns with these numbers of bins.

    ``loss``: the price of the release if a row changes one cell of each table by one (rho for Gaussian noise, epsilon for Laplace).
    ``rows``: their declared or bought number; never counted here.
    """
    pairs = pair_shares(sizes, family)
    noise = None if rows is None or not pairs else _noise(sizes, pairs, loss=loss, family=family) / max(rows, 1.0)
    if method is SyntheticMethod.AUTO:
        if rows is None:
            raise Refused(
                "release-rows-unknown",
                'method = "auto" depends on the number of rows, which is not known',
                hint='declare the number of units, buy statistics, or name a method: "pairs" or "independent"',
            )
        method = SyntheticMethod.PAIRS if noise is not None and noise <= NOISE_MAX else SyntheticMethod.INDEPENDENT
    ones: dict[tuple[int, ...], float] = {(axis,): 1.0 / len(sizes) for axis in range(len(sizes))}
    if method is SyntheticMethod.INDEPENDENT or not pairs:
        return SyntheticPlan(SyntheticMethod.INDEPENDENT, ones, noise)
    alone = ones_share(noise)
    shares = {table: alone * share for table, share in ones.items()} | {table: (1 - alone) * share for table, share in pairs.items()}
    return SyntheticPlan(SyntheticMethod.PAIRS, shares, noise)


def ones_share(noise: float | None) -> float:
    """The share of the price for single columns, given pairs with noise of this length; small if it is unknown."""
    return ONES_SHARE_MIN + (ONES_SHARE_MAX - ONES_SHARE_MIN) * min(1.0, (noise or 0.0) / ONES_NOISE)


def pair_shares(sizes: Sequence[int], family: Family) -> dict[tuple[int, ...], float]:
    """Shares of all pairs that make the sum of all cells' mean absolute errors least.

    A share s makes deviations proportional to s^(-1/2) under Gaussian noise and to 1/s under Laplace noise; with Lagrange, the shares are
    proportional to cells^(2/3) and to cells^(1/2).
    """
    power = 2 / 3 if family is Family.GAUSSIAN else 1 / 2
    weights = {(a, b): float(sizes[a] * sizes[b]) ** power for a, b in combinations(range(len(sizes)), 2)}
    whole = sum(weights.values())
    return {table: weight / whole for table, weight in weights.items()}


def deviation(share: float, *, loss: float, family: Family) -> float:
    """Of the noise of a cell, for the continuous law."""
    return 1 / math.sqrt(2 * loss * share) if family is Family.GAUSSIAN else math.sqrt(2) / (loss * share)


def _noise(sizes: Sequence[int], pairs: dict[tuple[int, ...], float], *, loss: float, family: Family) -> float:
    """The length of a pair's noise, in the mean over pairs."""
    lengths = [math.sqrt(sizes[a] * sizes[b]) * deviation(share, loss=loss, family=family) for (a, b), share in pairs.items()]
    return sum(lengths) / len(lengths)
