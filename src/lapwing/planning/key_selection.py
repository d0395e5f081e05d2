"""Partition selection: groups that are not known beforehand are found by their number of units, or by weights spread over a unit's groups.

Where a unit has one group both are the same, and counting is a scan without a step per unit. Where it can have several, a unit that counts
1 in each needs noise as large as if all units had as many groups; one that spreads its weight needs the noise of a single group and
keeps all of its groups.
"""

from __future__ import annotations

from dataclasses import replace

from lapwing.kernel.certify import groups_per_unit
from lapwing.kernel.domains import INTEGER_LIMIT
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import DiscoveredGroups, DistinctCount, Query
from lapwing.kernel.unit_norms import source_shape

SPREAD_BITS = 16
"""Weights are in 2^-16: rounding a weight down takes less than a 200th of it from a unit with 100,000 groups."""


def with_spread_weights(query: Query, facts: Facts) -> Query:
    """The query with its groups, if it discovers them, found by the better method."""
    if not isinstance(query.groups, DiscoveredGroups):
        return query
    return replace(query, groups=replace(query.groups, spread_bits=spread_bits(query, facts)))


def spread_bits(query: Query, facts: Facts) -> int | None:
    """The grid of the weights by which the groups of this query are found; None where units are counted."""
    shape = source_shape(query.source, facts)
    one_group = groups_per_unit(query, shape, None) == 1
    if one_group or any(isinstance(vector.measure, DistinctCount) for vector in query.vectors):
        return None
    return max(0, min(SPREAD_BITS, INTEGER_LIMIT.bit_length() - 1 - shape.rows_max.bit_length()))
