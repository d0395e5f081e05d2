"""Columns that a window adds to each row, and how a condition on a row's number limits the rows of a unit.

Proofs: docs/proofs/unit-local.md, docs/proofs/rows-per-unit.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import BooleanDomain, Domain, IntegerDomain, KeyDomain, RealDomain, TextDomain, bounds, is_numeric, with_null
from lapwing.kernel.expression_domains import domain_of
from lapwing.kernel.expressions import Call, Column, Expression, Function, Literal, part_count
from lapwing.kernel.shapes import Shape, named
from lapwing.kernel.window_columns import WindowColumn, WindowKind

OFFSET_MAX = 10_000
"""Largest offset of LAG and LEAD."""

_NUMBERS = (WindowKind.ROW_NUMBER, WindowKind.RANK, WindowKind.DENSE_RANK)


def windowed(columns: tuple[tuple[str, WindowColumn], ...], shape: Shape) -> Shape:
    """Shape of the same rows with further columns."""
    added = named((*shape.columns.items(), *((name, _window_domain(column, shape)) for name, column in columns)))
    numbering = {name for name, column in columns if column.kind is WindowKind.ROW_NUMBER and not column.partition}
    parts = 1 + sum(_window_parts(column, shape) for _, column in columns)
    return replace(shape, columns=added, numbering=shape.numbering | numbering).after(parts)


def rows_passing(predicate: Expression, shape: Shape) -> int:
    """Most rows of one unit for which a condition can be true: no number of ``shape.numbering`` occurs twice in a unit."""
    return min((_values_passing(name, predicate, shape.rows_per_unit) for name in shape.numbering), default=shape.rows_per_unit)


def _values_passing(name: str, predicate: Expression, rows: int) -> int:
    """How many of the numbers from 1 to ``rows`` can meet a condition, judged by its plain comparisons."""
    lo, hi, most = 1, rows, rows
    for part in _conjuncts(predicate):
        match part:
            case Call(Function.EQUAL, (Column(found), Literal(int()))) if found == name:
                most = min(most, 1)
            case Call(Function.IN, (Column(found), *listed)) if found == name and all(isinstance(item, Literal) for item in listed):
                most = min(most, len(listed))
            case Call(Function.LESS_EQUAL, (Column(found), Literal(int() as value))) if found == name:
                hi = min(hi, value)
            case Call(Function.LESS, (Column(found), Literal(int() as value))) if found == name:
                hi = min(hi, value - 1)
            case Call(Function.GREATER_EQUAL, (Column(found), Literal(int() as value))) if found == name:
                lo = max(lo, value)
            case Call(Function.GREATER, (Column(found), Literal(int() as value))) if found == name:
                lo = max(lo, value + 1)
            case _:
                pass
    return max(1, min(most, hi - lo + 1))


def _conjuncts(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Call) and expression.function is Function.AND:
        for argument in expression.arguments:
            yield from _conjuncts(argument)
    else:
        yield expression


def _window_parts(column: WindowColumn, shape: Shape) -> int:
    """Parts computed for each row: what the window reads, and once for each comparison that sorting takes."""
    keys = [*column.partition, *(key.value for key in column.order)]
    sorting = max(1, shape.rows_per_unit.bit_length()) * (1 + len(keys) + len(shape.columns))
    return sorting + sum(part_count(value) for value in keys) + (0 if column.value is None else part_count(column.value))


def _window_domain(column: WindowColumn, shape: Shape) -> Domain:
    for value in (*column.partition, *(key.value for key in column.order)):
        domain_of(value, shape.columns)
    rows = shape.rows_per_unit
    if column.kind in _NUMBERS:
        if column.value is not None:
            raise Refused("wrong-arguments", f"{column.kind.value} takes no value")
        return IntegerDomain(1, rows, nullable=False)
    if column.value is None:
        if column.kind is not WindowKind.COUNT:
            raise Refused("wrong-arguments", f"{column.kind.value} needs a value")
        return IntegerDomain(0, rows, nullable=False)
    value_domain = domain_of(column.value, shape.columns)
    match column.kind:
        case WindowKind.COUNT:
            return IntegerDomain(0, rows, nullable=False)
        case WindowKind.LAG | WindowKind.LEAD:
            if not 0 <= column.offset <= OFFSET_MAX:
                raise Refused("wrong-arguments", f"LAG and LEAD look at most {OFFSET_MAX} rows away")
            return with_null(value_domain, True)
        case WindowKind.FIRST | WindowKind.LAST:
            return value_domain
        case WindowKind.MIN | WindowKind.MAX:
            if isinstance(value_domain, KeyDomain | TextDomain | BooleanDomain):
                raise Refused("type-mismatch", "MIN and MAX within a unit take numbers and dates")
            return value_domain
        case WindowKind.SUM:
            return unit_sum(value_domain, rows)
        case WindowKind.ROW_NUMBER | WindowKind.RANK | WindowKind.DENSE_RANK:
            raise AssertionError("numbers of rows have no value")
        case _:
            assert_never(column.kind)


def unit_sum(value: Domain, rows: int) -> Domain:
    """Domain of a sum over some of the rows of one unit."""
    if not is_numeric(value) or (isinstance(value, RealDomain) and value.steps is None):
        raise Refused("type-mismatch", "a per-unit SUM takes integers, or reals on a grid")
    lo, hi = bounds(value)
    lo, hi = min(lo, lo * rows), max(hi, hi * rows)
    if max(abs(lo), abs(hi)) * (getattr(value, "steps", None) or 1) >= 2**62:
        raise Refused("range-too-wide", "a per-unit SUM could exceed 62 bits", hint="lower the rows per unit")
    if isinstance(value, RealDomain):
        return RealDomain(lo, hi, value.nullable, value.steps)
    return IntegerDomain(int(lo), int(hi), value.nullable)
