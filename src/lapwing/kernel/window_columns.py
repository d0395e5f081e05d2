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
    """How far a COUNT, SUM, MIN or MAX reaches from the first row of the partition on."""

    ALL = "all"
    """To the last row."""
    PEERS = "peers"
    """To the last row that the order does not tell from this one."""
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

    Where the place of a row matters, rows that ``order`` does not tell apart are told apart by all columns of the source, in turn; rows
    that are equal in these are the same row twice. ``offset`` is for LAG and LEAD, ``reach`` for COUNT, SUM, MIN and MAX.
    """

    kind: WindowKind
    value: Expression | None
    partition: tuple[Expression, ...] = ()
    order: tuple[OrderKey, ...] = ()
    offset: int = 1
    reach: Reach = Reach.ALL
