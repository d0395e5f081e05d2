"""Whether norms are measured on a sample of units: where a table is so large that all of them would take much time for little.

A histogram of norms groups all rows by unit, which takes about as long as the plan it serves. Some ten thousand units say as much about
where a cap belongs, so large tables are sampled. How large they are is taken from what was bought or declared, never from the rows, and
does not depend on the price: a histogram bought at one price serves at others.
"""

from __future__ import annotations

from collections.abc import Mapping

from lapwing.contribution.relations import contributions_of, having_any, kept_of, tables_of
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Relation

ROWS_TO_SAMPLE = 1_000_000
"""Tables that are predicted to have fewer rows are not sampled: their histogram takes little time anyway."""
UNITS_IN_SAMPLE = 50_000
"""A sample is predicted to have at least so many units of those that the statement is about. Where it has fewer than some fifty times the
standard deviation of a bin's noise, what is cut off is bounded too low; this many are ten times that at epsilon 0.3."""
FEWER_THAN_PREDICTED = 4
"""A filter may keep so many times fewer rows than is predicted from its text."""
ONE_IN_MOST = 8
"""Smallest sample: what is left takes less time than a fifth of the plan it serves."""


def one_in_of(source: Relation, facts: Facts, contributions: Mapping[str, Contributions], units: int | None) -> int:
    """Norms of a relation are measured on one unit in so many: 1 where it is small, or nothing public says how large it is."""
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
