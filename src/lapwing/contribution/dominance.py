"""Dominance: a unit's norm in a statement is at most a function of its rows in one table, which preparation profiled.

So the statement has at most as many units above a norm as the profile has above the rows that this norm takes. Proof:
docs/proofs/dominance.md. It affects accuracy only: what the kernel certifies does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lapwing.contribution.model import ContributionModel, Floats
from lapwing.kernel.expressions import Case, Column, Literal
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Filter, GridSum, Measure, Project, PublicJoin, Relation, Scan, SemiJoin, UnitCount, UnitJoin
from lapwing.kernel.row_ranges import row_range
from lapwing.kernel.stability import Shape, shape_of

ENVELOPE_BEYOND = 1e-3
"""Probability that a profile has more units above a number of rows than its upper bound says."""
ENVELOPES_KEPT = 64
"""Number of cached envelopes: many plans of one statement use the same."""


def table_within(relation: Relation, facts: Facts) -> Scan | None:
    """The scan to whose rows those of the relation can be assigned one to one, each to one of the same unit; None if there is none."""
    match relation:
        case Scan(table, rows):
            return relation if rows == facts.table(table).rows_per_unit_max else None
        case Filter(source) | Project(source) | PublicJoin(source) | SemiJoin(source):
            return table_within(source, facts)
        case UnitJoin(left, right) if shape_of(right, facts).rows_per_unit == 1:
            return table_within(left, facts)
        case _:
            return None


def column_within(relation: Relation, measure: Measure) -> str | None:
    """The column of ``table_within`` whose values a sum adds up, or of some rows and 0 of the others; None if there is none."""
    value = measure.value if isinstance(measure, GridSum) else None
    if isinstance(value, Case) and len(value.branches) == 1 and isinstance(value.otherwise, Literal) and not value.otherwise.value:
        value = value.branches[0][1]
    return _column_of(relation, value.name) if isinstance(value, Column) else None


def _column_of(relation: Relation, name: str) -> str | None:
    match relation:
        case Scan():
            return name
        case Filter(source) | SemiJoin(source):
            return _column_of(source, name)
        case Project(source, columns):
            value = dict(columns).get(name)
            return _column_of(source, value.name) if isinstance(value, Column) else None
        case PublicJoin(source=left, columns=added) | UnitJoin(left=left, columns=added):
            return None if name in dict(added) else _column_of(left, name)
        case _:
            return None


def rows_needed(measure: Measure, norms: Sequence[float], shape: Shape) -> list[float]:
    """The number of rows of which a unit has more if its vector is longer than each of these norms.

    A unit in d groups has the norm sqrt(d) where units are counted; otherwise the norm is at most the sum of the sizes of its rows.
    """
    if isinstance(measure, UnitCount):
        return [norm**2 for norm in norms]
    row, _, _ = row_range(measure, shape.columns)
    size = max(row.magnitude, 1) if isinstance(measure, GridSum) else 1
    return [norm / size for norm in norms]


def most_beyond(profile: ContributionModel, sizes: Sequence[float]) -> Floats:
    """The most units that a profile has above each of these sizes, but for a chance of ``ENVELOPE_BEYOND``."""
    return np.minimum.accumulate(profile.upper(profile.beyond_caps(sizes, 0), beyond=ENVELOPE_BEYOND))


def dominated(
    fit: ContributionModel, profile: ContributionModel, needed: Sequence[float], *, parts: int | None = None
) -> ContributionModel:
    """The fit of a statement's norms below a profile: above each edge it has at most the units with more than what this edge needs.

    If all that was profiled is added up in ``parts`` groups, no vector is shorter than the profiled norm over the root of their number:
    then it also has at least the units with more than that many times as much.
    """
    return fit.within(*_envelope(profile, tuple(needed), parts))


@lru_cache(maxsize=ENVELOPES_KEPT)
def _envelope(profile: ContributionModel, needed: tuple[float, ...], parts: int | None) -> tuple[Floats, Floats | None]:
    """How many units there are at most above each edge, and at least."""
    most = most_beyond(profile, needed)
    if parts is None:
        return most, None
    surely = profile.beyond_caps([math.sqrt(parts) * each for each in needed], 0)
    lower = 2.0 * (surely @ profile.expected) - profile.upper(surely, beyond=ENVELOPE_BEYOND)
    return most, np.maximum(lower, 0.0)
