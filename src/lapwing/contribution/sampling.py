"""Sampling of units for norm histograms: on large tables, measuring all units would take much time for little gain.

A histogram of norms groups all rows by unit, which takes about as long as the plan it serves. About ten thousand units show equally well
where a cap belongs, so large tables are sampled. Their size comes from bought statistics or declarations, never from the rows, and
does not depend on the price: a histogram bought at one price serves at others.
"""

from __future__ import annotations

from collections.abc import Mapping

from lapwing.contribution.relations import contributions_of, having_any, kept_of, tables_of
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Relation

ROWS_TO_SAMPLE = 1_000_000
"""Tables that are predicted to have fewer rows are not sampled: their histogram takes little time."""
UNITS_IN_SAMPLE = 50_000
"""The least predicted number of sampled units that the statement uses. With fewer than about fifty times the
standard deviation of a bin's noise, the bound on the clipping bias is too low; this many are ten times that at epsilon 0.3."""
FEWER_THAN_PREDICTED = 4
"""Factor by which a filter may keep fewer rows than its text predicts."""
ONE_IN_MOST = 8
"""Smallest sample: reading it takes less than a fifth of the time of the plan it serves."""


def one_in_of(source: Relation, facts: Facts, contributions: Mapping[str, Contributions], units: int | None) -> int:
    """The sampling rate of the norms of a relation, one unit in this many: 1 if it is small or its size is not public."""
    if units is None and any(table not in contributions for table in tables_of(source)):
        return 1
    public = contributions_of(source, facts, contributions, units)
    if public.rows() < ROWS_TO_SAMPLE:
        return 1
    kept = kept_of(source, facts)
    in_statement = public.units() * having_any(public, kept if kept >= 1.0 else kept / FEWER_THAN_PREDICTED)
    one_in = 1
    while one_in < ONE_IN_MOST and in_statement >= 2 * one_in * UNITS_IN_SAMPLE:
        one_in *= 2
    return one_in
