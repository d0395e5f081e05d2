"""Deliberate bugs in groups within units. Each must be seen by the suite named: see ``relation_mutants`` for what the suites are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lapwing.kernel import stability
from lapwing.kernel.ir import PerUnit, Relation, SemiJoin
from lapwing.planning import relations as planned_relations
from lapwing.render import norms, relations
from lapwing.sql import inside, set_operations
from lapwing.sql.rows import names, per_unit
from lapwing.sql.scalars.same_as import same_as
from tests.properties.relation_mutants import Mutant

_PER_UNIT_SQL = relations._per_unit
_PER_UNIT_SHAPE = stability._per_unit
_RENDER = relations.render_relation
_LIMITED = planned_relations.limited
_NAMED = inside._named
_SAME_AS = same_as


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


MUTANTS: tuple[Mutant, ...] = (
    Mutant("unit dropped from the inner GROUP BY", ((relations, "_per_unit", _without_the_unit),), "oracle"),
    Mutant("rows of groups within units counted as one", ((stability, "_per_unit", _one_row),), "oracle"),
    Mutant(
        "DISTINCT rendered without it",
        ((relations, "render_relation", _without_groups), (norms, "render_relation", _without_groups)),
        "limit",
    ),
    Mutant("last key of the inner GROUP BY forgotten", ((inside, "_named", lambda keys: _NAMED(keys[:1])),), "limit"),
    Mutant("keys of the inner GROUP BY forgotten", ((inside, "_named", lambda keys: ()),), "limit"),
    Mutant("one key of the inner GROUP BY taken for another", ((per_unit, "same_as", _keys_exchanged),), "limit"),
    Mutant("any column taken for one unit's own", ((names.Known, "is_owned", lambda self, column: column is not None),), "limit"),
    Mutant("EXCEPT read as INTERSECT", ((set_operations, "SemiJoin", lambda a, b, on, negated: SemiJoin(a, b, on, False)),), "limit"),
    Mutant("EXCEPT by the unit alone", ((set_operations, "SemiJoin", lambda a, b, on, negated: SemiJoin(a, b, (), negated)),), "limit"),
    Mutant("a limit on rows not carried into groups", ((planned_relations, "limited", _cap_not_carried),), "lowering"),
)
