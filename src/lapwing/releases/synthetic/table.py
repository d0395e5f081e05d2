"""From released tables to a synthetic one, as a function of the release alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.synopsis import MeasuredMarginal, Synopsis
from lapwing.releases.synthetic.mixture import Mixture, fitted, product_of
from lapwing.releases.synthetic.public_numbers import PublicNumbers
from lapwing.releases.synthetic.rows import table_of


def synthetic_table(axes: Sequence[Axis], measured: Sequence[MeasuredMarginal], digest: bytes, *, rows: int | None = None) -> pa.Table:
    """A table with a column for each axis and the release's estimate of the number of rows, or ``rows``.

    ``digest`` is that of the release: the same release makes the same table.
    """
    sizes = [axis.size for axis in axes]
    mixture = model_of(sizes, measured, digest)
    number = rows if rows is not None else round(_total(Synopsis(sizes, measured)))
    bins = mixture.rows(max(0, number), PublicNumbers(digest, "synthetic rows"))
    return table_of(axes, bins, PublicNumbers(digest, "values in spans"))


def model_of(sizes: Sequence[int], measured: Sequence[MeasuredMarginal], digest: bytes) -> Mixture:
    """The mixture that explains all pairs of the measured tables; independent columns where no pair was measured."""
    synopsis = Synopsis(sizes, measured)
    ones = [MeasuredMarginal((axis,), synopsis.marginal((axis,)), synopsis.cell_variance((axis,))) for axis in range(len(sizes))]
    pairs = {(a, b): _pair(a, b, measured) for a, b in combinations(range(len(sizes)), 2)}
    known = {axes: pair for axes, pair in pairs.items() if pair is not None}
    if not known:
        return product_of(ones)
    return fitted(sizes, known, ones, _total(synopsis), PublicNumbers(digest, "where the fit begins"))


def _total(synopsis: Synopsis) -> float:
    return float(synopsis.marginal(()))


def _pair(a: int, b: int, measured: Sequence[MeasuredMarginal]) -> MeasuredMarginal | None:
    """All measurements of a pair in one table: sums of the tables that hold it, with weights inverse to their variances."""
    whole, precision = np.zeros(()), 0.0
    for table in measured:
        if a not in table.axes or b not in table.axes:
            continue
        rest = tuple(place for place, axis in enumerate(table.axes) if axis not in (a, b))
        counts = np.asarray(table.counts, dtype=np.float64)
        weight = 1.0 / (table.variance * np.prod([counts.shape[place] for place in rest]))
        whole, precision = whole + weight * counts.sum(axis=rest), precision + weight
    return MeasuredMarginal((a, b), whole / precision, 1.0 / precision) if precision else None
