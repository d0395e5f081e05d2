"""Columns of windows to SQL. Every window is partitioned by the unit; that is the clause the bounds rest on."""

from __future__ import annotations

from typing import assert_never

from lapwing.kernel.domains import KeyDomain, TextDomain
from lapwing.kernel.expressions import Column, Expression
from lapwing.kernel.window_columns import OrderKey, Reach, WindowColumn, WindowKind
from lapwing.render.expressions import VisibleColumns, render_expression

_BY_PLACE = frozenset({WindowKind.ROW_NUMBER, WindowKind.LAG, WindowKind.LEAD, WindowKind.FIRST, WindowKind.LAST})
"""What depends on the place of each single row, so that rows of one time must be told apart."""
_FROM_THE_FIRST = "BETWEEN UNBOUNDED PRECEDING AND"


def render_window(column: WindowColumn, unit: str, scope: VisibleColumns) -> str:
    """SQL of one column over rows of ``scope`` whose unit is called ``unit``."""
    order = window_order(column, scope)
    over = [f"PARTITION BY {', '.join(window_partition(column, unit, scope))}"]
    over += [f"ORDER BY {', '.join(order)}"] if order else []
    over += [frame] if (frame := _frame(column)) else []
    return _typed(column, f"{_function(column, scope)} OVER ({' '.join(over)})", scope)


def window_partition(column: WindowColumn, unit: str, scope: VisibleColumns) -> list[str]:
    """The unit, always, and what the window is parted by within it."""
    return [unit, *(render_expression(value, scope) for value in column.partition)]


def window_order(column: WindowColumn, scope: VisibleColumns) -> list[str]:
    """The terms of ORDER BY: where places matter, all columns of the row come last, so that only equal rows are left side by side."""
    keys = list(column.order)
    if column.kind in _BY_PLACE or column.reach is Reach.ROW:
        keys += tie_breakers(column, scope)
    return [_term(key, scope) for key in keys]


def tie_breakers(column: WindowColumn, scope: VisibleColumns) -> list[OrderKey]:
    """All columns of the row that the window is not parted or ordered by anyway."""
    named: set[Expression] = {*column.partition, *(key.value for key in column.order)}
    return [OrderKey(Column(name)) for name in scope.columns if Column(name) not in named]


def _term(key: OrderKey, scope: VisibleColumns) -> str:
    value = render_expression(key.value, scope)
    match scope.domains.of(key.value):
        case TextDomain() | KeyDomain(text=True):
            value = scope.dialect.bytewise(value)
        case _:
            pass
    return f"{value} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def _frame(column: WindowColumn) -> str:
    match column.kind:
        case WindowKind.ROW_NUMBER | WindowKind.RANK | WindowKind.DENSE_RANK | WindowKind.LAG | WindowKind.LEAD:
            return ""
        case WindowKind.FIRST | WindowKind.LAST:
            return f"ROWS {_FROM_THE_FIRST} UNBOUNDED FOLLOWING"
        case WindowKind.COUNT | WindowKind.SUM | WindowKind.MIN | WindowKind.MAX:
            match column.reach:
                case Reach.ALL:
                    return f"ROWS {_FROM_THE_FIRST} UNBOUNDED FOLLOWING"
                case Reach.PEERS:
                    return f"RANGE {_FROM_THE_FIRST} CURRENT ROW"
                case Reach.ROW:
                    return f"ROWS {_FROM_THE_FIRST} CURRENT ROW"
                case _:
                    assert_never(column.reach)
        case _:
            assert_never(column.kind)


def _function(column: WindowColumn, scope: VisibleColumns) -> str:
    value = "*" if column.value is None else render_expression(column.value, scope)
    match column.kind:
        case WindowKind.ROW_NUMBER | WindowKind.RANK | WindowKind.DENSE_RANK:
            return f"{column.kind.value}()"
        case WindowKind.LAG | WindowKind.LEAD:
            return f"{column.kind.value}({value}, {column.offset})"
        case WindowKind.FIRST | WindowKind.LAST | WindowKind.COUNT | WindowKind.SUM | WindowKind.MIN | WindowKind.MAX:
            return f"{column.kind.value}({value})"
        case _:
            assert_never(column.kind)


def _typed(column: WindowColumn, sql: str, scope: VisibleColumns) -> str:
    """Whole numbers as 64-bit integers, which some engines count in other types."""
    match column.kind:
        case WindowKind.ROW_NUMBER | WindowKind.RANK | WindowKind.DENSE_RANK | WindowKind.COUNT | WindowKind.SUM:
            return f"CAST({sql} AS {scope.dialect.integer})"
        case WindowKind.LAG | WindowKind.LEAD | WindowKind.FIRST | WindowKind.LAST | WindowKind.MIN | WindowKind.MAX:
            return sql
        case _:
            assert_never(column.kind)
