"""Relations to SQL: each becomes one SELECT with the unit, its columns and, when asked, the number of rows of its unit.

Every join, IN and EXISTS between private relations carries equality of units; that and ``rank <= k`` are the clauses the bounds rest on.
"""

from __future__ import annotations

from typing import assert_never

from lapwing.kernel.expressions import Column
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Blocks,
    Filter,
    JoinKind,
    PerUnit,
    Project,
    PublicJoin,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitAggregate,
    UnitAggregateKind,
    UnitJoin,
    UnitWindow,
)
from lapwing.kernel.stability import shape_of
from lapwing.render.dialect import Dialect
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.render.unit_windows import render_window

UNIT = "_unit"
RANK = "_rank"
ROWS = "_rows"
BLOCK = "_block"
KEY = "_key"


def render_relation(relation: Relation, facts: Facts, dialect: Dialect, *, rows: bool = False) -> str:
    """A SELECT giving ``_unit``, the columns of the relation in order and, with ``rows``, ``_rows``."""
    columns = shape_of(relation, facts).columns
    kept = [UNIT, *columns, *([ROWS] if rows else [])]
    match relation:
        case Scan(table, rows_per_unit, blocks):
            chosen = _list("t", kept, dialect)
            if blocks is not None and blocks.apart:
                chosen = f"{unit_of_block('t', dialect)} AS {UNIT}, {_list('t', kept[1:], dialect)}"
            within = "" if blocks is None else f" AND {block_predicate('t', blocks)}"
            return f"SELECT {chosen} FROM {dialect.scanned(table, blocks)} t WHERE {rank_predicate('t', rows_per_unit)}{within}"
        case Filter(source, predicate):
            condition = render_expression(predicate, _scope(source, facts, dialect))
            return f"SELECT {_list('t', kept, dialect)} FROM ({render_relation(source, facts, dialect, rows=rows)}) t WHERE {condition}"
        case Project(source, projected):
            scope = _scope(source, facts, dialect)
            listed = [f"t.{UNIT}", *(f"{render_expression(value, scope)} AS {dialect.quoted(name)}" for name, value in projected)]
            listed += [f"t.{ROWS}"] if rows else []
            computed = any(not isinstance(value, Column) for _, value in projected)
            inner = render_relation(source, facts, dialect, rows=rows)
            return f"SELECT {', '.join(listed)} FROM ({inner}) t{dialect.fence if computed else ''}"
        case PublicJoin():
            return _public_join(relation, facts, dialect, rows=rows)
        case UnitJoin():
            return _unit_join(relation, facts, dialect)
        case SemiJoin(source, other, on, negated):
            equal = [unit_equality("o", "t"), *_equalities(on, "t", "o", dialect)]
            condition = " AND ".join([*equal, *_pair_condition(relation, relation.source, relation.other, "o", facts, dialect)])
            exists = f"EXISTS (SELECT 1 FROM ({render_relation(other, facts, dialect)}) o WHERE {condition})"
            outer = render_relation(source, facts, dialect, rows=rows)
            return f"SELECT {_list('t', kept, dialect)} FROM ({outer}) t WHERE {'NOT ' if negated else ''}{exists}"
        case Union(sources):
            return " UNION ALL ".join(f"SELECT {_list('t', kept, dialect)} FROM ({render_relation(s, facts, dialect)}) t" for s in sources)
        case PerUnit():
            return _per_unit(relation, facts, dialect)
        case UnitWindow(source, windows):
            scope = _scope(source, facts, dialect)
            listed = [_list("t", [UNIT, *scope.columns], dialect)]
            listed += [f"{render_window(item, f't.{UNIT}', scope)} AS {dialect.quoted(name)}" for name, item in windows]
            listed += [f"t.{ROWS}"] if rows else []
            return f"SELECT {', '.join(listed)} FROM ({render_relation(source, facts, dialect, rows=rows)}) t{dialect.fence}"
        case _:
            assert_never(relation)


def rank_predicate(alias: str, rows_per_unit: int) -> str:
    """The row limit of a scan."""
    return f"{alias}.{RANK} <= {rows_per_unit}"


def block_predicate(alias: str, blocks: Blocks) -> str:
    """The limits of a scan of blocks of time."""
    return f"{alias}.{BLOCK} BETWEEN {blocks.first} AND {blocks.last}"


def unit_of_block(alias: str, dialect: Dialect) -> str:
    """A person within a block, as a unit. The number after the last bar is the block, so no two of them are equal."""
    return f"CAST({alias}.{UNIT} AS {dialect.text}) || '|' || CAST({alias}.{BLOCK} AS {dialect.text})"


def unit_equality(left: str, right: str) -> str:
    """The clause that keeps every join inside one unit."""
    return f"{left}.{UNIT} = {right}.{UNIT}"


def _scope(relation: Relation, facts: Facts, dialect: Dialect) -> VisibleColumns:
    return VisibleColumns(shape_of(relation, facts).columns, "t", dialect)


def _list(alias: str, names: list[str], dialect: Dialect) -> str:
    return ", ".join(f"{alias}.{name if name in (UNIT, ROWS) else dialect.quoted(name)}" for name in names)


def _renamed(alias: str, columns: tuple[tuple[str, str], ...], dialect: Dialect) -> list[str]:
    return [f"{alias}.{dialect.quoted(column)} AS {dialect.quoted(name)}" for name, column in columns]


def _equalities(on: tuple[tuple[str, str], ...], left: str, right: str, dialect: Dialect) -> list[str]:
    return [f"{left}.{dialect.quoted(a)} = {right}.{dialect.quoted(b)}" for a, b in on]


def _pair_condition(join: UnitJoin | SemiJoin, left: Relation, right: Relation, alias: str, facts: Facts, dialect: Dialect) -> list[str]:
    """What else must be true of two rows: columns of the left are read from ``t``, the named ones of the right from ``alias``."""
    if join.where is None:
        return []
    of_right = shape_of(right, facts).columns
    columns = {**shape_of(left, facts).columns, **{name: of_right[column] for name, column in join.columns}}
    elsewhere = {name: (alias, column) for name, column in join.columns}
    return [f"({render_expression(join.where, VisibleColumns(columns, 't', dialect, elsewhere))})"]


def _public_join(join: PublicJoin, facts: Facts, dialect: Dialect, *, rows: bool) -> str:
    source = shape_of(join.source, facts).columns
    listed = [
        _list("t", [UNIT, *source], dialect),
        *(f"p.{dialect.quoted(column)} AS {dialect.quoted(name)}" for name, column in join.columns),
    ]
    listed += [f"t.{ROWS}"] if rows else []
    on = render_expression(join.on, VisibleColumns(source, "t", dialect))
    key = dialect.quoted(facts.public_table(join.table).key)
    inner = render_relation(join.source, facts, dialect, rows=rows)
    return f"SELECT {', '.join(listed)} FROM ({inner}) t {_join_word(join.kind)} {dialect.table(join.table)} p ON {on} = p.{key}"


def _unit_join(join: UnitJoin, facts: Facts, dialect: Dialect) -> str:
    left = shape_of(join.left, facts).columns
    listed = [
        _list("t", [UNIT, *left], dialect),
        *(f"r.{dialect.quoted(column)} AS {dialect.quoted(name)}" for name, column in join.columns),
    ]
    equal = [unit_equality("t", "r"), *_equalities(join.on, "t", "r", dialect)]
    condition = " AND ".join([*equal, *_pair_condition(join, join.left, join.right, "r", facts, dialect)])
    inner, other = render_relation(join.left, facts, dialect), render_relation(join.right, facts, dialect)
    return f"SELECT {', '.join(listed)} FROM ({inner}) t {_join_word(join.kind)} ({other}) r ON {condition}"


def _per_unit(relation: PerUnit, facts: Facts, dialect: Dialect) -> str:
    inner, scope = render_relation(relation.source, facts, dialect), _scope(relation.source, facts, dialect)
    if relation.keys:
        keyed = (f"{render_expression(value, scope)} AS {KEY}{i}" for i, (_, value) in enumerate(relation.keys))
        inner = f"SELECT {', '.join([_list('t', [UNIT, *scope.columns], dialect), *keyed])} FROM ({inner}) t{dialect.fence}"
    keys = [f"t.{KEY}{i}" for i in range(len(relation.keys))]
    listed = [f"t.{UNIT}", *(f"{key} AS {dialect.quoted(name)}" for key, (name, _) in zip(keys, relation.keys, strict=True))]
    listed += [f"{_unit_aggregate(item, scope)} AS {dialect.quoted(name)}" for name, item in relation.columns]
    return f"SELECT {', '.join(listed)} FROM ({inner}) t GROUP BY {', '.join([f't.{UNIT}', *keys])}"


def _join_word(kind: JoinKind) -> str:
    return "LEFT JOIN" if kind is JoinKind.LEFT else "JOIN"


def _unit_aggregate(aggregate: UnitAggregate, scope: VisibleColumns) -> str:
    if aggregate.value is None:
        return "COUNT(*)"
    value = render_expression(aggregate.value, scope)
    match aggregate.kind:
        case UnitAggregateKind.COUNT:
            return f"COUNT({value})"
        case UnitAggregateKind.SUM:
            return f"CAST(SUM({value}) AS {scope.dialect.integer})"
        case UnitAggregateKind.MIN | UnitAggregateKind.MAX:
            return f"{aggregate.kind.name}({value})"
        case UnitAggregateKind.ANY:
            return f"bool_or({value})"
        case _:
            assert_never(aggregate.kind)
