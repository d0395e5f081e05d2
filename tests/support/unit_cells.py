"""What each unit adds to each group, a second time, in plain Python over prepared rows: cells, norms and clipped vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lapwing.kernel.expressions import Expression
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    DistinctCount,
    Filter,
    GridSum,
    JoinKind,
    Measure,
    PublicJoin,
    Relation,
    RowCount,
    Scan,
    UnitCount,
    UnitJoin,
    UnitNorms,
)
from lapwing.kernel.stability import shape_of
from tests.support.reference import Row, evaluate, grid_sum

Group = tuple[Any, ...]
Cells = dict[Any, dict[Group, int]]
"""By unit and group."""


@dataclass(frozen=True, slots=True)
class RankedRow:
    """A prepared row."""

    unit: Any
    rank: int
    row: Row


@dataclass(frozen=True, slots=True)
class PreparedTables:
    """All prepared rows by table, and the rows of public tables by their key."""

    facts: Facts
    private: Mapping[str, list[RankedRow]]
    public: Mapping[str, Mapping[Any, Row]]

    def rows_of(self, relation: Relation) -> Iterator[tuple[Any, Row]]:
        """Rows of a relation with their units. Only what norms are tested over."""
        match relation:
            case Scan(table, rows):
                yield from ((found.unit, found.row) for found in self.private[table] if found.rank <= rows)
            case Filter(source, predicate):
                columns = shape_of(source, self.facts).columns
                yield from ((unit, row) for unit, row in self.rows_of(source) if evaluate(predicate, row, columns) is True)
            case PublicJoin(source, table, on, added, JoinKind.LEFT):
                columns = shape_of(source, self.facts).columns
                for unit, row in self.rows_of(source):
                    found = self.public[table].get(evaluate(on, row, columns), {})
                    yield unit, {**row, **{name: found.get(column) for name, column in added}}
            case UnitJoin(left, right, on, added, JoinKind.INNER):
                others = list(self.rows_of(right))
                for unit, row in self.rows_of(left):
                    for other_unit, other in others:
                        if unit == other_unit and all(row[a] is not None and row[a] == other[b] for a, b in on):
                            yield unit, {**row, **{name: other[column] for name, column in added}}
            case _:
                raise AssertionError(f"no reference for {type(relation).__name__}")

    def cells(self, source: Relation, keys: tuple[tuple[str, Expression], ...], measure: Measure) -> Cells:
        """What every unit that has a row adds to every group that it has a row in."""
        columns = shape_of(source, self.facts).columns
        found: dict[Any, dict[Group, list[Row]]] = {}
        for unit, row in self.rows_of(source):
            group = tuple(evaluate(key, row, columns) for _, key in keys)
            found.setdefault(unit, {}).setdefault(group, []).append(row)

        def cell(rows: list[Row]) -> int:
            match measure:
                case RowCount(where) | UnitCount(where):
                    counted = [row for row in rows if where is None or evaluate(where, row, columns) is True]
                    return len(counted) if isinstance(measure, RowCount) else int(bool(counted))
                case GridSum():
                    return grid_sum(measure, rows, columns)
                case DistinctCount():
                    raise AssertionError("units share distinct values")

        return {unit: {group: cell(rows) for group, rows in groups.items()} for unit, groups in found.items()}

    def squares(self, norms: UnitNorms) -> list[int]:
        """The squared norm of every unit."""
        return [sum(cell * cell for cell in groups.values()) for groups in self.cells(norms.source, norms.keys, norms.measure).values()]


def histogram(squares: list[int], squared_edges: tuple[int, ...]) -> dict[Group, int]:
    """Units by the number of edges that are below their square."""
    found: dict[Group, int] = {}
    for square in squares:
        group = (sum(edge < square for edge in squared_edges),)
        found[group] = found.get(group, 0) + 1
    return found


def clipped(cells: Cells, *, bits: int, cap: int, alike: tuple[Cells, int] | None = None) -> dict[Group, int]:
    """The sum over units of their vectors, on a grid finer by 2^bits, each scaled to length at most the cap.

    ``alike``: cells of another vector, and its cap; the smaller of both factors is taken.
    """
    found: dict[Group, int] = {}
    for unit, groups in cells.items():
        factors = [_factor(groups, bits=bits, cap=cap)]
        factors += [] if alike is None else [_factor(alike[0][unit], bits=bits, cap=alike[1])]
        factor = min(factors)
        for group, cell in groups.items():
            share = abs(cell << bits) * factor.numerator // factor.denominator
            found[group] = found.get(group, 0) + (share if cell >= 0 else -share)
    return found


def _factor(groups: dict[Group, int], *, bits: int, cap: int) -> Fraction:
    """What a unit's vector is multiplied by before it is cut to whole numbers."""
    square = sum((cell << bits) ** 2 for cell in groups.values())
    return Fraction(1) if square <= cap * cap else Fraction(cap, math.ceil(math.sqrt(float(square)) * 1.000000000001) + 1)
