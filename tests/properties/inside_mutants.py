"""Deliberate bugs in groups within units. Each must be seen by the suite named: see ``relation_mutants`` for what the suites are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lapwing.contribution import relations as planned_relations
from lapwing.kernel import stability
from lapwing.kernel.ir import JoinKind, PerUnit, Relation, SemiJoin, UnitAggregateKind
from lapwing.kernel.window_columns import WindowColumn
from lapwing.render import norms, relations
from lapwing.sql import nested_groups, set_operations, unit_values
from lapwing.sql.rows import names, per_unit
from lapwing.sql.scalars.same_as import same_as
from lapwing.sql.scalars.scope import UnitPending
from tests.properties.relation_mutants import Mutant

_PER_UNIT_SQL = relations._per_unit
_PER_UNIT_SHAPE = stability._per_unit
_RENDER = relations.render_relation
_LIMITED = planned_relations.limited
_NAMED = nested_groups._named
_SAME_AS = same_as
_CHOSEN = per_unit._chosen


def _without_the_unit(relation: PerUnit, facts: Any, dialect: Any) -> str:
    """Units that agree in the keys share a row, which the least of them owns."""
    sql = _PER_UNIT_SQL(relation, facts, dialect)
    if not relation.keys:
        return sql
    head, _, tail = sql.rpartition(" GROUP BY ")
    return f"{head.replace('SELECT t._unit', 'SELECT MIN(t._unit) AS _unit', 1)} GROUP BY {tail.removeprefix('t._unit, ')}"


def _one_row(columns: Any, keys: Any, shape: stability.Shape) -> stability.Shape:
    return replace(_PER_UNIT_SHAPE(columns, keys, shape), rows_per_unit=1)


def _cap_not_carried(relation: Relation, rows: int, facts: Any) -> Relation:
    return relation if isinstance(relation, PerUnit) else _LIMITED(relation, rows, facts)


def _without_groups(relation: Relation, facts: Any, dialect: Any, *, rows: bool = False) -> str:
    """Every row stays, with its keys."""
    sql = _RENDER(relation, facts, dialect, rows=rows)
    return sql.rpartition(" GROUP BY ")[0] if isinstance(relation, PerUnit) and relation.keys and not relation.columns else sql


def _keys_exchanged(scalars: Any, node: Any, expressions: Any) -> int | None:
    number = _SAME_AS(scalars, node, expressions)
    return None if number is None else len(expressions) - 1 - number


def _least_chosen(aggregates: Any, reader: Any, kept: Any) -> WindowColumn:
    column: WindowColumn = _CHOSEN(aggregates, reader, kept)
    return replace(column, order=tuple(replace(key, descending=False) for key in column.order))


def _rows_as_distinct(aggregates: Any, scalars: Any, value: Any, kept: Any, measured: Any) -> Any:
    return measured(value.node, UnitAggregateKind.COUNT, value.expression)


def _of_the_unit(right: Any, on: Any, kind: Any, columns: Any) -> Any:
    return UnitPending(right, (), kind, columns)


def _only_with_value(right: Any, on: Any, kind: Any, columns: Any) -> Any:
    return UnitPending(right, on, JoinKind.INNER, columns)


MUTANTS: tuple[Mutant, ...] = (
    Mutant("unit dropped from the inner GROUP BY", ((relations, "_per_unit", _without_the_unit),), "oracle"),
    Mutant("rows of groups within units counted as one", ((stability, "_per_unit", _one_row),), "oracle"),
    Mutant(
        "DISTINCT rendered without it",
        ((relations, "render_relation", _without_groups), (norms, "render_relation", _without_groups)),
        "limit",
    ),
    Mutant("last key of the inner GROUP BY forgotten", ((nested_groups, "_named", lambda keys: _NAMED(keys[:1])),), "limit"),
    Mutant("keys of the inner GROUP BY forgotten", ((nested_groups, "_named", lambda keys: ()),), "limit"),
    Mutant("one key of the inner GROUP BY taken for another", ((per_unit, "same_as", _keys_exchanged),), "limit"),
    Mutant("any column taken for one unit's own", ((names.BindCatalog, "is_owned", lambda self, column: column is not None),), "limit"),
    Mutant("EXCEPT read as INTERSECT", ((set_operations, "SemiJoin", lambda a, b, on, negated: SemiJoin(a, b, on, False)),), "limit"),
    Mutant("EXCEPT by the unit alone", ((set_operations, "SemiJoin", lambda a, b, on, negated: SemiJoin(a, b, (), negated)),), "limit"),
    Mutant("ARG_MAX read as ARG_MIN", ((per_unit, "_chosen", _least_chosen),), "limit"),
    Mutant("every row chosen", ((per_unit, "Filter", lambda source, predicate: source),), "limit"),
    Mutant("rows counted as distinct values", ((per_unit, "_count_distinct", _rows_as_distinct),), "limit"),
    Mutant("distinct values counted with NULL", ((per_unit, "Case", lambda branches, otherwise: branches[0][1]),), "limit"),
    Mutant("a count of nothing is NULL", ((unit_values, "call", lambda function, *values: values[0]),), "limit"),
    Mutant("values of a key taken for those of the unit", ((unit_values, "UnitPending", _of_the_unit),), "limit"),
    Mutant("rows without a value left out", ((unit_values, "UnitPending", _only_with_value),), "limit"),
    Mutant("a limit on rows not carried into groups", ((planned_relations, "limited", _cap_not_carried),), "lowering"),
)
