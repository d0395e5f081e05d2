"""Deliberate bugs in joins, subqueries, one row per unit, unions and their rendering. Each must be seen by one of the suites of relations.

``oracle``: a neighbour moves a vector further than claimed. ``limit``: an answer is not what the bare engine says. ``refusals``: what must
be refused is not. ``sizes``: a relation has more rows than claimed. ``lowering``: a limit on rows is not kept. Bugs of the binder cannot
leak, because the kernel keeps every relation within its units; they give wrong answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lapwing.contribution import relations as planned_relations
from lapwing.kernel import shapes, stability
from lapwing.kernel.ir import Filter, JoinKind, PerUnit, Relation, SemiJoin, Union, UnitJoin
from lapwing.render import norms, relations
from lapwing.sql import queries, unions
from lapwing.sql.rows import joins, pairs, per_unit, subqueries
from lapwing.sql.rows import names as environment
from lapwing.sql.scalars.scope import Scope, SemiPending

Patch = tuple[object, str, Any]


@dataclass(frozen=True)
class Mutant:
    """A bug: what is replaced, and the suite that must see it."""

    name: str
    patches: tuple[Patch, ...]
    suite: str


_RENDER = relations.render_relation
_UNIT_JOIN_SQL = relations._unit_join
_UNIT_JOIN = shapes.joined
_UNION = shapes.united
_LIMITED = planned_relations.limited
_RIGHT_CONDITIONS = joins.Joins._right_conditions
_IN_PUBLIC = subqueries.Subqueries.in_public


def _rendering(change: Callable[[Relation], Relation]) -> tuple[Patch, ...]:
    """Another relation is rendered than the one that was certified."""

    def rendered(relation: Relation, facts: Any, dialect: Any, *, rows: bool = False) -> str:
        return _RENDER(change(relation), facts, dialect, rows=rows)

    return ((relations, "render_relation", rendered), (norms, "render_relation", rendered))


def _left_as_inner(relation: Relation) -> Relation:
    return replace(relation, kind=JoinKind.INNER) if isinstance(relation, UnitJoin) else relation


def _never_negated(relation: Relation) -> Relation:
    return replace(relation, negated=False) if isinstance(relation, SemiJoin) else relation


def _semi_without_columns(relation: Relation) -> Relation:
    return replace(relation, on=()) if isinstance(relation, SemiJoin) else relation


def _join_without_columns(relation: Relation) -> Relation:
    return replace(relation, on=()) if isinstance(relation, UnitJoin) else relation


def _first_part(relation: Relation) -> Relation:
    return relation.sources[0] if isinstance(relation, Union) else relation


def _twice(relation: Relation, facts: Any, dialect: Any, *, rows: bool = False) -> str:
    """One row per unit becomes two."""
    sql = _RENDER(relation, facts, dialect, rows=rows)
    return f"{sql} UNION ALL {sql}" if isinstance(relation, PerUnit) else sql


def _exists_as_join(relation: Relation, facts: Any, dialect: Any, *, rows: bool = False) -> str:
    """A semi-join that repeats a row for every match."""
    if isinstance(relation, SemiJoin) and not relation.negated and not rows:
        return _UNIT_JOIN_SQL(UnitJoin(relation.source, relation.other, relation.on, ()), facts, dialect)
    return _RENDER(relation, facts, dialect, rows=rows)


def _both(function: Callable[..., str]) -> tuple[Patch, ...]:
    return ((relations, "render_relation", function), (norms, "render_relation", function))


def _left_side_only(join: UnitJoin, left: stability.Shape, right: stability.Shape) -> stability.Shape:
    return replace(_UNIT_JOIN(join, left, right), rows_per_unit=left.rows_per_unit)


def _widest_part(shapes: tuple[stability.Shape, ...]) -> stability.Shape:
    return replace(_UNION(shapes), rows_per_unit=max(shape.rows_per_unit for shape in shapes))


def _smaller_side(join: UnitJoin, left: stability.Shape, right: stability.Shape) -> stability.Shape:
    return replace(_UNIT_JOIN(join, left, right), rows_max=min(left.rows_max, right.rows_max))


def _lonely_rows_forgotten(join: UnitJoin, left: stability.Shape, right: stability.Shape) -> stability.Shape:
    return _UNIT_JOIN(replace(join, kind=JoinKind.INNER), left, right)


def _not_negated(other: Any, on: Any, negated: bool, *pairs: Any) -> Any:
    return SemiPending(other, on, False, *pairs)


def _unlinked(other: Any, on: Any, negated: bool, *pairs: Any) -> Any:
    return SemiPending(other, (), negated, *pairs)


def _without_pairs(relation: Relation) -> Relation:
    return replace(relation, where=None) if isinstance(relation, UnitJoin | SemiJoin) else relation


def _pairs_kept_afterwards(relation: Relation) -> Relation:
    """A LEFT JOIN whose condition on pairs is a filter, which leaves out rows without a partner."""
    if not isinstance(relation, UnitJoin) or relation.where is None:
        return relation
    return Filter(replace(relation, where=None), relation.where)


def _outer_first(self: Any, column: str, table: Any) -> list[str]:
    return (self.outside.lookup(column, table) if self.outside else []) or Scope.lookup(self, column, table)


def _no_requirement(self: Any, node: Any) -> None:
    return None


def _any_link(links: Any, left: str, right: str) -> bool:
    return True


def _right_conditions_dropped(self: Any, relation: Any, right: Any, others: Any) -> Any:
    return relation, _RIGHT_CONDITIONS(self, relation, right, others)[1]


def _public_never_negated(self: Any, scalars: Any, value: Any, query: Any, called: Any, *, negated: bool) -> None:
    _IN_PUBLIC(self, scalars, value, query, called, negated=False)


def _limited_below(relation: Relation, rows: int, facts: Any) -> Relation:
    """Every join is lowered on one side only, so that its product stays too large."""
    if isinstance(relation, UnitJoin):
        return replace(relation, left=_LIMITED(relation.left, rows, facts), right=relation.right)
    return _LIMITED(relation, rows, facts)


def _read_kind(session: Any, reader: Any, *, crossing: bool = False) -> JoinKind:
    reader.word("side")
    reader.word("kind")
    return JoinKind.INNER


MUTANTS: tuple[Mutant, ...] = (
    # what the kernel and the renderer do
    Mutant("equality of units dropped", ((relations, "unit_equality", lambda left, right: "TRUE"),), "oracle"),
    Mutant("one row per unit rendered twice", _both(_twice), "oracle"),
    Mutant("EXISTS rendered as a join", _both(_exists_as_join), "oracle"),
    Mutant("fan-out of a join not counted", ((stability, "joined", _left_side_only),), "oracle"),
    Mutant("union counts its widest part", ((stability, "united", _widest_part),), "oracle"),
    Mutant("LEFT JOIN rendered as JOIN", _rendering(_left_as_inner), "limit"),
    Mutant("NOT EXISTS rendered without NOT", _rendering(_never_negated), "limit"),
    Mutant("EXISTS on the unit alone, its columns forgotten", _rendering(_semi_without_columns), "limit"),
    Mutant("join on the unit alone, its columns forgotten", _rendering(_join_without_columns), "limit"),
    Mutant("union without its second part", _rendering(_first_part), "limit"),
    Mutant("conditions on pairs of rows dropped", _rendering(_without_pairs), "limit"),
    Mutant("condition on pairs of a LEFT JOIN applied to the whole", _rendering(_pairs_kept_afterwards), "limit"),
    # what the binder does
    Mutant("LEFT JOIN read as JOIN", ((joins, "join_kind", _read_kind),), "limit"),
    Mutant("NOT IN and NOT EXISTS read without NOT", ((subqueries, "SemiPending", _not_negated),), "limit"),
    Mutant("IN along a key read as IN of the unit", ((subqueries, "SemiPending", _unlinked),), "limit"),
    Mutant("union of rows with its first part twice", ((unions, "Union", lambda parts: Union((parts[0],) * len(parts))),), "limit"),
    Mutant("HAVING of one row per unit dropped", ((queries, "Filter", lambda source, predicate: source),), "limit"),
    Mutant("FILTER of one row per unit dropped", ((per_unit, "where_kept", lambda value, kept: value.expression),), "limit"),
    Mutant("ON of a LEFT JOIN about its right side dropped", ((joins.Joins, "_right_conditions", _right_conditions_dropped),), "limit"),
    Mutant("names inside EXISTS taken for those outside", ((pairs._PairScope, "lookup", _outer_first),), "limit"),
    Mutant("NOT IN of a public table without NOT", ((subqueries.Subqueries, "in_public", _public_never_negated),), "limit"),
    # what has to be refused
    Mutant("joins that are not along the unit", ((joins.Links, "require", _no_requirement),), "refusals"),
    Mutant(
        "every equality taken for a declared key", ((environment.BindCatalog, "along_key", lambda self, left, right: True),), "refusals"
    ),
    Mutant("IN of any column", ((subqueries, "_may_link", _any_link), (joins.Links, "require", _no_requirement)), "refusals"),
    # what is claimed about sizes
    Mutant("rows of a join bounded by its smaller side", ((stability, "joined", _smaller_side),), "sizes"),
    Mutant("lonely rows of a LEFT JOIN forgotten", ((stability, "joined", _lonely_rows_forgotten),), "sizes"),
    Mutant("one side of a join not lowered", ((planned_relations, "limited", _limited_below),), "lowering"),
)
