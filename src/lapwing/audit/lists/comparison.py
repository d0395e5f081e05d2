"""How rows of an answer without noise to speak of are compared with those of a bare engine.

Every row that bare SQL gives must be there once, with the same values. Rows that only Lapwing gives are declared groups without rows:
their measures are 0 or NULL. Rows must come in the order that the first sorted column asks for, where that is a column of numbers
or dates; texts are left out, because servers sort them by their own collation.

What cannot be compared: groups that are not declared are discovered on an account with delta, where those of few units stay hidden, and
what is selected in them (MIN, MAX, medians) keeps an error of some ranks at any epsilon. Their other values are compared. Without delta,
what is selected is exact in the limit, but for quantiles between two rows, which may be any value between them.

Ties: the order of rows with equal sort keys is undefined, so LIMIT may pick others among equals. Where picked rows
differ, the values they are sorted by must still be the same, and all rows are compared without LIMIT.
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
"""Two numbers are equal when they differ by less than this share of the larger: some noise is left at any epsilon."""
SLACK = 5e-3
"""Where more noise is left: how far a value that is no count may be off, as a part of the largest of its column."""
_LIMIT = re.compile(r"\s+(?:LIMIT \d+(?: OFFSET \d+)?|FETCH (?:FIRST|NEXT) \d+ ROWS? ONLY)$", re.IGNORECASE)

Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The roles of the columns of an answer, by number: keys of groups, what is computed from others, quantiles, and what sorts it
    first."""

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
    """A statement without the LIMIT at its end."""
    return _LIMIT.sub("", sql)


def rows_of(table: pa.Table) -> list[Row]:
    """Rows of a table, whatever its columns are called, with values in the form that clients of all engines share."""
    return [comparable_row(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def comparable_row(row: Sequence[Any]) -> Row:
    """A row with values in the form that clients of all engines share."""
    return tuple(map(comparable, row))


def comparable(value: Any) -> Any:
    """A value in the form that clients of all engines share: numbers as floats, dates as the midnight they start at."""
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
    """The difference in our rows, or an empty text: each of theirs must be there once, in their order, and others must hold nothing."""
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
    """Whether as many rows come with the same values, one after the other, in the column that sorts them first."""
    by = columns.sorted_by
    if by is None or any(isinstance(row[by], str) for row in theirs):
        return True
    allowed = slack[by] if slack else None
    return len(ours) == len(theirs) and all(_same(a[by], b[by], allowed) for a, b in zip(ours, theirs, strict=True))


def discovered(ours: Sequence[Row], theirs: Sequence[Row], *, columns: AnswerColumns) -> tuple[list[Row], list[Row]]:
    """What can be compared where groups are not declared: those that are shown, and of them all that is not selected."""
    keys = {tuple(row[key] for key in sorted(columns.keys)) for row in ours}
    there = [row for row in theirs if tuple(row[key] for key in sorted(columns.keys)) in keys]
    return [_unselected(row, columns) for row in ours], [_unselected(row, columns) for row in there]


def _unselected(row: Row, columns: AnswerColumns) -> Row:
    return tuple(None if i in columns.selected else value for i, value in enumerate(row))


def slack_of(theirs: Sequence[Row]) -> list[float]:
    """How far values of each column may be off where some noise is left: counts not at all."""
    return [_slack(column) for column in zip(*theirs, strict=True)]


def _slack(column: Sequence[Any]) -> float:
    numbers = [value for value in column if isinstance(value, float)]
    return 0.1 if all(number.is_integer() for number in numbers) else SLACK * max(map(abs, numbers))


def _is_empty(row: Row, columns: AnswerColumns, slack: Sequence[float] | None) -> bool:
    """Whether a row can be that of a group that holds nothing.

    What is computed from other columns can be anything then; where that is all there is beside keys, one value at least is 0 or NULL.
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
