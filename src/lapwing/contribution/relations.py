"""Public properties of a relation: its tables, rows per unit, the share its filters keep; and the relation with fewer rows per unit.

Estimates affect accuracy only: every plan made from them is certified.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from lapwing.contribution.rows_per_unit import Contributions, assumed
from lapwing.contribution.selectivity import UNKNOWN, kept_share
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Filter, PerUnit, Project, PublicJoin, Relation, Scan, SemiJoin, Union, UnitJoin, UnitWindow
from lapwing.kernel.stability import shape_of


def limited(relation: Relation, rows: int, facts: Facts) -> Relation:
    """The relation with scans lowered so that a unit has at most ``rows`` rows in it; unchanged if it already has no more."""
    shape = shape_of(relation, facts)
    if rows >= shape.rows_per_unit:
        return relation
    match relation:
        case Scan():
            # Of several blocks it keeps the row of each, at least: the limit holds within a block.
            return replace(relation, rows_per_unit=max(1, rows // relation.blocks_per_unit))
        case Filter(source, predicate):
            return Filter(limited(source, rows, facts), predicate)
        case Project(source, columns):
            return Project(limited(source, rows, facts), columns)
        case PublicJoin(source) | SemiJoin(source):
            return replace(relation, source=limited(source, rows, facts))
        case UnitJoin(left, right):
            k_left, k_right = (shape_of(side, facts).rows_per_unit for side in (left, right))
            # A side with few rows per unit keeps them; where both have many, both are lowered alike.
            few = min(k_left, k_right, max(1, math.isqrt(rows)))
            to_left, to_right = (rows // few, few) if k_right <= k_left else (few, rows // few)
            return replace(relation, left=limited(left, max(1, to_left), facts), right=limited(right, max(1, to_right), facts))
        case Union(sources):
            return Union(tuple(limited(source, max(1, rows // len(sources)), facts) for source in sources))
        case PerUnit(source):
            # Without keys it has one row of a unit, and is never reached here.
            return replace(relation, source=limited(source, rows, facts))
        case UnitWindow():
            # A window over fewer rows would give other values: its rows stay, and a unit's contribution is bounded afterwards.
            return relation
        case _:
            assert_never(relation)


def fans_out(relation: Relation, facts: Facts) -> bool:
    """Whether rows of a unit are joined to several other rows of it or compared with them: lowering scans would lose most pairs."""
    match relation:
        case Scan():
            return False
        case PerUnit(source, _, keys):
            return bool(keys) and fans_out(source, facts)
        case UnitWindow():
            return True
        case Filter(source) | Project(source) | PublicJoin(source) | SemiJoin(source):
            return fans_out(source, facts)
        case UnitJoin(left, right):
            both = min(shape_of(side, facts).rows_per_unit for side in (left, right)) > 1
            return both or fans_out(left, facts) or fans_out(right, facts)
        case Union(sources):
            return any(fans_out(source, facts) for source in sources)
        case _:
            assert_never(relation)


def keeps_rows(relation: Relation) -> bool:
    """Whether the rows come from a window, so that none may be left out below it."""
    match relation:
        case UnitWindow():
            return True
        case Scan():
            return False
        case PerUnit(source, _, keys):
            return bool(keys) and keeps_rows(source)
        case Filter(source) | Project(source) | PublicJoin(source) | SemiJoin(source):
            return keeps_rows(source)
        case UnitJoin(left, right):
            return keeps_rows(left) or keeps_rows(right)
        case Union(sources):
            return any(keeps_rows(source) for source in sources)
        case _:
            assert_never(relation)


def computes_rows(relation: Relation) -> bool:
    """Whether its rows are computed from several rows of a unit, so that a limit on these changes their values."""
    match relation:
        case PerUnit(_, _, keys):
            return bool(keys)
        case Scan() | UnitWindow():
            return False
        case Filter(source) | Project(source) | PublicJoin(source) | SemiJoin(source):
            return computes_rows(source)
        case UnitJoin(left, right):
            return computes_rows(left) or computes_rows(right)
        case Union(sources):
            return any(computes_rows(source) for source in sources)
        case _:
            assert_never(relation)


def tables_of(relation: Relation) -> tuple[str, ...]:
    """The tables whose rows make up the relation's; those behind conditions and per-unit rows do not count."""
    match relation:
        case Scan(table):
            return (table,)
        case Filter(source) | Project(source) | PublicJoin(source) | PerUnit(source) | SemiJoin(source) | UnitWindow(source):
            return tables_of(source)
        case UnitJoin(left, right):
            return (*tables_of(left), *(() if isinstance(right, PerUnit) and not right.keys else tables_of(right)))
        case Union(sources):
            return tuple(table for source in sources for table in tables_of(source))
        case _:
            assert_never(relation)


def contributions_of(relation: Relation, facts: Facts, known: Mapping[str, Contributions], units: int | None) -> Contributions:
    """Known rows per unit: those of the table with most of them; more for a union, fewer units after a condition on units."""

    match relation:
        case Scan(table, _, blocks):
            if table in known:
                return known[table]
            declared, per_unit, number = facts.table(table), relation.blocks_per_unit, 1 if blocks is None else blocks.number
            return assumed(rows_per_unit_max=declared.rows_per_unit_max * per_unit, rows_max=declared.rows_max * number, units=units)
        case Filter(source) | Project(source) | PublicJoin(source) | PerUnit(source) | UnitWindow(source):
            return contributions_of(source, facts, known, units)
        case UnitJoin(left, right):
            # Joined along a key, the side with more rows per unit decides; a side of one row per unit adds none.
            many = [side for side in (left, right) if shape_of(side, facts).rows_per_unit > 1] or [left]
            return max((contributions_of(side, facts, known, units) for side in many), key=Contributions.rows)
        case SemiJoin(source, other, on, negated):
            all_units = contributions_of(source, facts, known, units)
            if on or relation.where is not None:
                return all_units
            has = having_any(contributions_of(other, facts, known, units), kept_of(other, facts))
            return all_units.thinned(1 - has if negated else has)
        case Union(sources):
            parts = [contributions_of(source, facts, known, units) for source in sources]
            largest = max(parts, key=Contributions.rows)
            return largest.scaled(sum(part.rows() for part in parts) / max(largest.rows(), 1.0))
        case _:
            assert_never(relation)


def having_any(contributions: Contributions, kept: float) -> float:
    """Share of units that have a row left when each row passes with probability ``kept``."""
    everyone = contributions.units()
    if everyone <= 0:
        return 1.0
    with_rows: float = sum(units * (1 - (1 - min(kept, 1.0)) ** rows) for rows, units in contributions.bins)
    return with_rows / everyone


def kept_of(relation: Relation, facts: Facts) -> float:
    """Share of rows that all filters of the relation keep."""
    match relation:
        case Filter(source, predicate):
            return max(kept_share(predicate, shape_of(source, facts).columns), 1e-9) * kept_of(source, facts)
        case Project(source) | PublicJoin(source) | PerUnit(source) | UnitWindow(source):
            return kept_of(source, facts)
        case SemiJoin(source, _, on):
            # A condition on units leaves whole units out, which contributions say; one on more than the unit leaves out rows.
            return kept_of(source, facts) * (UNKNOWN if on or relation.where is not None else 1.0)
        case UnitJoin(left, right):
            return kept_of(left, facts) * kept_of(right, facts)
        case Scan() | Union():
            return 1.0
        case _:
            assert_never(relation)
