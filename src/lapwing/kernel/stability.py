"""Columns and rows per unit of every relation, derived from the plan and the facts alone.

Guarantee (both neighbour relations): for any data, a relation holds at most ``rows_per_unit`` rows of any one unit and at most
``rows_max`` rows in all, its rows lie in ``columns``, and the rows of a unit depend on that unit's rows and public tables only.
Proofs: docs/proofs/unit-local.md, docs/proofs/rows-per-unit.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import BooleanDomain, Domain, IntegerDomain, KeyDomain, RealDomain, TextDomain
from lapwing.kernel.expression_domains import domain_of, require_boolean
from lapwing.kernel.expressions import Column, Expression, part_count
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import (
    Blocks,
    Filter,
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
from lapwing.kernel.shapes import Shape, column_domain, half_joined, joined, named, publicly_joined, united
from lapwing.kernel.unit_windows import rows_passing, unit_sum, windowed

__all__ = ["Shape", "domain_of", "shape_of"]


def shape_of(relation: Relation, facts: Facts) -> Shape:
    """Shape of a relation, or refuse."""
    match relation:
        case Scan():
            return _scan(relation, facts)
        case Filter(source, predicate):
            shape = shape_of(source, facts)
            require_boolean(domain_of(predicate, shape.columns), "a filter")
            return replace(shape.after(part_count(predicate)), rows_per_unit=rows_passing(predicate, shape))
        case Project(source, columns):
            shape = shape_of(source, facts)
            listed = named((name, domain_of(value, shape.columns)) for name, value in columns)
            kept = frozenset(name for name, value in columns if isinstance(value, Column) and value.name in shape.numbering)
            return replace(shape, columns=listed, numbering=kept).after(1 + sum(part_count(value) for _, value in columns))
        case PublicJoin(source, table, on):
            shape = shape_of(source, facts)
            joined_shape = publicly_joined(relation, shape, domain_of(on, shape.columns), facts.public_table(table))
            return joined_shape.after(1 + part_count(on))
        case UnitJoin(left, right):
            pairs = joined(relation, shape_of(left, facts), shape_of(right, facts))
            return pairs if relation.where is None else pairs.after(_pair_condition(relation.where, pairs.columns))
        case SemiJoin(source, other):
            shape, others = shape_of(source, facts), shape_of(other, facts)
            seen = named((*shape.columns.items(), *((name, column_domain(column, others)) for name, column in relation.columns)))
            parts = 0 if relation.where is None else _pair_condition(relation.where, seen)
            return half_joined(relation.on, shape, others, parts)
        case Union(sources):
            return united(tuple(shape_of(source, facts) for source in sources))
        case PerUnit(source, columns, keys):
            return _per_unit(columns, keys, shape_of(source, facts))
        case UnitWindow(source, columns):
            return windowed(columns, shape_of(source, facts))
        case _:
            assert_never(relation)


def _pair_condition(condition: Expression, columns: Mapping[str, Domain]) -> int:
    """How many parts a condition on pairs of rows has, or refuse."""
    require_boolean(domain_of(condition, columns), "a condition of a join")
    return part_count(condition)


def _scan(scan: Scan, facts: Facts) -> Shape:
    known, rows = facts.table(scan.table), scan.rows_per_unit
    if not 1 <= rows <= known.rows_per_unit_max:
        raise Refused("rows-per-unit", f"rows per unit of {scan.table!r} must be from 1 to {known.rows_per_unit_max}")
    rows_max, one_block, columns = known.rows_max, True, known.columns
    if scan.blocks is not None:
        _require_closed(scan.table, scan.blocks, known)
        rows_max *= scan.blocks.number
        one_block = scan.blocks_per_unit == 1
        rows *= scan.blocks_per_unit
        columns = known.columns_within(scan.blocks)
    elif known.blocks is not None:
        raise Refused("blocks-missing", f"of {scan.table!r}, a plan names the blocks that it reads")
    return Shape(named(columns.items()), rows, rows_max, weighable=one_block, widest=rows, work=rows)


def _require_closed(table: str, blocks: Blocks, known: TableFacts) -> None:
    """Refuse blocks that are not all closed, those of a table without blocks, and rows from before a correction."""
    closed = known.blocks
    if closed is None:
        raise Refused("blocks-missing", f"the table {table!r} has no blocks")
    if not closed[0] <= blocks.first <= blocks.last <= closed[1]:
        raise Refused("blocks-open", f"of {table!r}, blocks {closed[0]} to {closed[1]} are closed")
    if blocks != known.blocks_between(blocks.first, blocks.last, apart=blocks.apart):
        raise Refused("blocks-corrected", f"a plan names the corrections of the blocks of {table!r} that it reads")


def _per_unit(columns: tuple[tuple[str, UnitAggregate], ...], keys: tuple[tuple[str, Expression], ...], shape: Shape) -> Shape:
    by_key = [(name, _unit_key(value, shape)) for name, value in keys]
    listed = named([*by_key, *((name, _unit_aggregate(aggregate, shape)) for name, aggregate in columns)])
    parts = 1 + sum(1 if aggregate.value is None else part_count(aggregate.value) for _, aggregate in columns)
    parts += sum(part_count(value) for _, value in keys)
    # Each row holds at least one row of its unit, and no two hold the same one.
    rows = shape.rows_per_unit if keys else 1
    return Shape(listed, rows, shape.rows_max, weighable=False, widest=shape.widest, work=shape.after(parts).work)


def _unit_key(value: Expression, shape: Shape) -> Domain:
    """The domain of a key. Doubles are refused: 0 and -0 are one group, and which of them is shown would be the engine's choice."""
    domain = domain_of(value, shape.columns)
    if isinstance(domain, RealDomain) and domain.steps is None:
        raise Refused("type-mismatch", "rows of a unit are not grouped by real numbers", hint="round them to integers first")
    return domain


def _unit_aggregate(aggregate: UnitAggregate, shape: Shape) -> Domain:
    rows = shape.rows_per_unit
    if aggregate.value is None:
        if aggregate.kind is not UnitAggregateKind.COUNT:
            raise Refused("wrong-arguments", f"{aggregate.kind.value} needs a value")
        return IntegerDomain(0, rows, nullable=False)
    value = domain_of(aggregate.value, shape.columns)
    match aggregate.kind:
        case UnitAggregateKind.COUNT:
            return IntegerDomain(0, rows, nullable=False)
        case UnitAggregateKind.ANY:
            require_boolean(value, "the argument of a per-unit ANY")
            return BooleanDomain(value.nullable)
        case UnitAggregateKind.MIN | UnitAggregateKind.MAX:
            if isinstance(value, KeyDomain | TextDomain | BooleanDomain):
                raise Refused("type-mismatch", "per-unit MIN and MAX take numbers and dates")
            return value
        case UnitAggregateKind.SUM:
            return unit_sum(value, rows)
        case _:
            assert_never(aggregate.kind)
