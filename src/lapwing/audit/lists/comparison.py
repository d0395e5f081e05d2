"""Compares the rows of an answer with negligible noise with the rows of a bare engine.

Every row of bare SQL must occur once, with the same values. Rows that only Lapwing returns are declared groups without rows: their
measures are 0 or NULL. If the first sort column holds numbers or dates, rows must be in its order; texts are not checked, because servers
sort them by their own collation.

Limits of the comparison: undeclared groups are discovered on an account with delta, which hides groups of few units, and selected values
in them (MIN, MAX, medians) keep an error of some ranks at any epsilon. Their other values are compared. Without delta, selected values are
exact in the limit, except for quantiles between two rows, which may be any value between them.

Ties: the order of rows with equal sort keys is undefined, so LIMIT may pick different rows. If the picked rows differ, their sort keys must
still be equal, and all rows are compared without LIMIT.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from lapwing.statements import ComputedOutput, KeyOutput, QuantileOutput, Statement

TOLERANCE = 1e-4
"""Two numbers are equal if they differ by less than this share of the larger: some noise remains at any epsilon."""
SLACK = 5e-3
"""If more noise remains: the allowed error of a value that is not a count, as a share of the largest value of its column."""
_LIMIT = re.compile(r"\s+(?:LIMIT \d+(?: OFFSET \d+)?|FETCH (?:FIRST|NEXT) \d+ ROWS? ONLY)$", re.IGNORECASE)

Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The roles of the columns of an answer, by index: keys of groups, columns computed from others, selected values, and the first sort
    key."""

    keys: frozenset[int] = frozenset()
    computed: frozenset[int] = frozenset()
    selected: frozenset[int] = frozenset()
    sorted_by: int | None = None


def columns_of(statement: Statement) -> AnswerColumns:
    """The columns of the answer to a statement."""
    outputs, order = statement.post.outputs, statement.post.order_by
    computed = {i for i, output in enumerate(outputs) if isinstance(output.derivation, ComputedOutput)}
    selected = {i for i, output in enumerate(outputs) if isinstance(output.derivation, QuantileOutput)}
    keys = frozenset(i for i, output in enumerate(outputs) if isinstance(output.derivation, KeyOutput))
    by = [i for i, output in enumerate(outputs) if order and re.search(rf"(?<![\w.]){re.escape(output.sql)}(?!\w)", order[0])]
    return AnswerColumns(keys, frozenset(computed - selected), frozenset(selected), by[0] if len(by) == 1 else None)


def without_limit(sql: str) -> str:
    """A statement without its final LIMIT."""
    return _LIMIT.sub("", sql)


def rows_of(table: pa.Table) -> list[Row]:
    """Rows of a table, with values in a form common to the clients of all engines."""
    return [comparable_row(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def comparable_row(row: Sequence[Any]) -> Row:
    """A row with values in a form common to the clients of all engines."""
    return tuple(map(comparable, row))


def comparable(value: Any) -> Any:
    """A value in a form common to the clients of all engines: numbers as floats, dates as midnight of that day."""
    match value:
        case bool() | None | str():
            return value
        case int() | float() | Decimal():
            return float(value)
        case datetime.datetime():
            return value.replace(tzinfo=None)
        case datetime.date():
            return datetime.datetime(value.year, value.month, value.day)
        case _:
            return str(value)


def difference(ours: Sequence[Row], theirs: Sequence[Row], *, columns: AnswerColumns, slack: Sequence[float] | None = None) -> str:
    """The first difference, or an empty text: our rows must include each of theirs once, in order, and others only as empty groups."""
    left = dict(enumerate(ours))
    for row in theirs:
        match = next((i for i, other in left.items() if _same_row(other, row, slack)), None)
        if match is None:
            return f"{len(theirs) - len(ours) + len(left)} of {len(theirs)} rows of bare SQL are not there or differ"
        del left[match]
    if left and not columns.keys and not columns.computed:
        return f"{len(left)} rows too many"
    if not all(_is_empty(row, columns, slack) for row in left.values()):
        return "groups without rows hold something"
    found = [row for i, row in enumerate(ours) if i not in left]
    return "" if sorted_alike(found, theirs, columns=columns, slack=slack) else "rows are in another order"


def sorted_alike(ours: Sequence[Row], theirs: Sequence[Row], *, columns: AnswerColumns, slack: Sequence[float] | None = None) -> bool:
    """Whether both have equally many rows, with the same values row by row in the first sort column."""
    by = columns.sorted_by
    if by is None or any(isinstance(row[by], str) for row in theirs):
        return True
    allowed = slack[by] if slack else None
    return len(ours) == len(theirs) and all(_same(a[by], b[by], allowed) for a, b in zip(ours, theirs, strict=True))


def discovered(ours: Sequence[Row], theirs: Sequence[Row], *, columns: AnswerColumns) -> tuple[list[Row], list[Row]]:
    """The comparable part of an answer with undeclared groups: the groups that are shown, without their selected values."""
    keys = {tuple(row[key] for key in sorted(columns.keys)) for row in ours}
    there = [row for row in theirs if tuple(row[key] for key in sorted(columns.keys)) in keys]
    return [_unselected(row, columns) for row in ours], [_unselected(row, columns) for row in there]


def _unselected(row: Row, columns: AnswerColumns) -> Row:
    return tuple(None if i in columns.selected else value for i, value in enumerate(row))


def slack_of(theirs: Sequence[Row]) -> list[float]:
    """The allowed error of each column if some noise remains; below 1 for counts."""
    return [_slack(column) for column in zip(*theirs, strict=True)]


def _slack(column: Sequence[Any]) -> float:
    numbers = [value for value in column if isinstance(value, float)]
    return 0.1 if all(number.is_integer() for number in numbers) else SLACK * max(map(abs, numbers))


def _is_empty(row: Row, columns: AnswerColumns, slack: Sequence[float] | None) -> bool:
    """Whether a row can be that of an empty group.

    Computed columns can then have any value; if there are only computed columns beside the keys, at least one of them must be 0 or NULL.
    """
    nothing = [value is None or (isinstance(value, float) and abs(value) <= (slack[i] if slack else 0.5)) for i, value in enumerate(row)]
    measured = [empty for i, empty in enumerate(nothing) if i not in columns.keys and i not in columns.computed]
    if measured or not columns.computed:
        return all(measured)
    return any(nothing[i] for i in columns.computed)


def _same_row(ours: Row, theirs: Row, slack: Sequence[float] | None) -> bool:
    return len(ours) == len(theirs) and all(
        _same(a, b, slack[i] if slack else None) for i, (a, b) in enumerate(zip(ours, theirs, strict=True))
    )


def _same(ours: Any, theirs: Any, allowed: float | None) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if allowed is not None:
            return abs(ours - theirs) <= allowed
        return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=1e-6)
    return type(ours) is type(theirs) and bool(ours == theirs)
