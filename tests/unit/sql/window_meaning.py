"""What windows within a unit mean, row by row in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cmp_to_key
from operator import itemgetter
from typing import Any, assert_never

from lapwing.kernel.domains import Domain
from lapwing.kernel.expressions import Column
from lapwing.kernel.window_columns import OrderKey, Reach, WindowColumn, WindowKind
from tests.support.reference import evaluator

UNIT = "_unit"
Row = dict[str, Any]


def windowed(rows: list[Row], columns: Mapping[str, Domain], windows: tuple[tuple[str, WindowColumn], ...]) -> list[Row]:
    """The rows with the columns of these windows."""
    made = [dict(row) for row in rows]
    for name, window in windows:
        parts: dict[Any, list[int]] = {}
        values = [evaluator(part, columns).value for part in window.partition]
        for number, row in enumerate(rows):
            parts.setdefault((row[UNIT], *(value(row) for value in values)), []).append(number)
        for part in parts.values():
            for number, value in _of_part(window, [rows[i] for i in part], columns):
                made[part[number]][name] = value
    return made


def _compared(key: OrderKey, value: Callable[[Row], Any]) -> Callable[[Row, Row], int]:
    def compare(left: Row, right: Row) -> int:
        one, two = value(left), value(right)
        if one is None or two is None:
            return ((one is not None) - (two is not None)) * (1 if key.nulls_first else -1)
        one, two = (side.encode() if isinstance(side, str) else side for side in (one, two))
        return ((one > two) - (one < two)) * (-1 if key.descending else 1)

    return compare


def _of_part(window: WindowColumn, rows: list[Row], columns: Mapping[str, Domain]) -> list[tuple[int, Any]]:
    keys = [_compared(key, evaluator(key.value, columns).value) for key in window.order]
    ties = [_compared(OrderKey(Column(name)), itemgetter(name)) for name in columns]

    def told_apart(left: int, right: int, by: list[Callable[[Row, Row], int]]) -> int:
        return next((found for compare in by if (found := compare(rows[left], rows[right])) != 0), 0)

    def compared(left: int, right: int) -> int:
        return told_apart(left, right, [*keys, *ties])

    order = sorted(range(len(rows)), key=cmp_to_key(compared))
    value = (lambda row: True) if window.value is None else evaluator(window.value, columns).value
    found = []
    for place, number in enumerate(order):
        last = len(order) - 1 if window.reach is Reach.ALL else place
        while window.reach is Reach.PEERS and last + 1 < len(order) and told_apart(number, order[last + 1], keys) == 0:
            last += 1
        first_peer = next(i for i, other in enumerate(order) if told_apart(number, other, keys) == 0)
        known = [one for other in order[: last + 1] if (one := value(rows[other])) is not None]
        found.append((number, _value(window, place, first_peer, order, known, lambda i: value(rows[order[i]]), keys, told_apart)))
    return found


def _value(
    window: WindowColumn,
    place: int,
    first_peer: int,
    order: list[int],
    known: list[Any],
    at: Callable[[int], Any],
    keys: list[Any],
    told_apart: Callable[..., int],
) -> Any:
    match window.kind:
        case WindowKind.ROW_NUMBER:
            return place + 1
        case WindowKind.RANK:
            return first_peer + 1
        case WindowKind.DENSE_RANK:
            return 1 + sum(1 for i in range(first_peer) if told_apart(order[i], order[i + 1], keys) != 0)
        case WindowKind.LAG:
            return at(place - window.offset) if place >= window.offset else None
        case WindowKind.LEAD:
            return at(place + window.offset) if place + window.offset < len(order) else None
        case WindowKind.FIRST:
            return at(0)
        case WindowKind.LAST:
            return at(len(order) - 1)
        case WindowKind.COUNT:
            return len(known)
        case WindowKind.SUM:
            return sum(known) if known else None
        case WindowKind.MIN:
            return min(known, default=None)
        case WindowKind.MAX:
            return max(known, default=None)
        case _:
            assert_never(window.kind)
