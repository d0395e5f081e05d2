"""Columns made of a window: of the rows of the same unit that are equal in some values, in an order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lapwing.kernel.expressions import Expression


class WindowKind(Enum):
    """What a window column holds: of the rows of the same unit and partition, in an order."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    LAG = "lag"
    LEAD = "lead"
    FIRST = "first_value"
    LAST = "last_value"
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


class Reach(Enum):
    """The end of the frame of COUNT, SUM, MIN or MAX, which starts at the first row of the partition."""

    ALL = "all"
    """To the last row."""
    PEERS = "peers"
    """To the last row that ties with this one in the order."""
    ROW = "row"
    """To this row."""


@dataclass(frozen=True, slots=True)
class OrderKey:
    """What a window is ordered by."""

    value: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class WindowColumn:
    """A value from the rows of the same unit that are equal in ``partition``.

    Where the position of a row matters, all columns of the source, in turn, break ties of ``order``; rows
    that are still equal are duplicates. ``offset`` is for LAG and LEAD, ``reach`` for COUNT, SUM, MIN and MAX.
    """

    kind: WindowKind
    value: Expression | None
    partition: tuple[Expression, ...] = ()
    order: tuple[OrderKey, ...] = ()
    offset: int = 1
    reach: Reach = Reach.ALL
