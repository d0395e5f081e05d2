"""SQL of the weight by which a unit finds groups: floor(2^bits / sqrt(d)) in each of its d groups.

A double proposes the weight w; what counts is the integer check ``d * w * w <= 4^bits`` alone, which says that the squares of a unit's
weights add up to at most 4^bits, and that no weight is above the exact one. Proof: docs/proofs/key-weights.md.
"""

from __future__ import annotations

from lapwing.render.dialect import Dialect, double_literal

NUMBER_OF_GROUPS = "COUNT(*) AS d"
"""Over the cells of one unit, one of which it has in each of its groups."""


def weight_at_most(groups: str, bits: int, dialect: Dialect) -> str:
    """floor(sqrt(4^bits / groups)), proposed by a double; only ``checked_weight`` is trusted."""
    share = f"{double_literal(float(4**bits), dialect.double)} / CAST({groups} AS {dialect.double})"
    return f"CAST(floor(sqrt({share})) AS {dialect.integer})"


def checked_weight(groups: str, weight: str, bits: int) -> str:
    """The weight, or 0 where the integer check fails."""
    return f"CASE WHEN {weight_check(groups, weight, bits)} THEN {weight} ELSE 0 END"


def weight_check(groups: str, weight: str, bits: int) -> str:
    """The integer check that finding groups by weight rests on."""
    return f"{groups} * {weight} * {weight} <= {4**bits}"
