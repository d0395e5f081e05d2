"""What a row adds to a measure, and what the rows of a unit in one group add: cells, in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain, grid_integer
from lapwing.kernel.expressions import Column
from lapwing.kernel.ir import (
    DistinctCount,
    Filter,
    GridSum,
    Measure,
    PerUnit,
    Project,
    PublicJoin,
    Relation,
    RowCount,
    Scan,
    SemiJoin,
    Union,
    UnitCount,
    UnitJoin,
    UnitNorms,
    UnitWindow,
)
from lapwing.kernel.row_ranges import grid_bounds
from lapwing.kernel.stability import domain_of
from lapwing.render.dialect import Dialect
from lapwing.render.expressions import VisibleColumns, as_double, clamped, gridded, render_expression
from lapwing.render.relations import UNIT


@dataclass(frozen=True, slots=True)
class CellInputs:
    """Rows of a relation, of which a query or a norm makes cells."""

    source: Relation | UnitNorms
    columns: Mapping[str, Domain]
    dialect: Dialect

    def integers(self, value: str, measure: GridSum) -> str:
        """SQL of the bounded integer that one row adds to a sum; NULL for a row that adds nothing."""
        lo, hi = grid_bounds(measure)
        domain = domain_of(measure.value, self.columns)
        if _is_physical(domain, measure):
            # Only a stored column, which preparation clamped, is added as it is; a computed one is clamped whatever its interval says.
            inside = isinstance(domain, IntegerDomain) and lo <= domain.lo and domain.hi <= hi
            if isinstance(domain, RealDomain) and domain.steps is not None:
                inside = lo <= grid_integer(domain.lo, domain.steps) and grid_integer(domain.hi, domain.steps) <= hi
            stored = isinstance(measure.value, Column) and is_stored(measure.value.name, self.source)
            bounded = value if inside and stored else f"(CASE WHEN {value} IS NULL THEN NULL ELSE {clamped(value, lo=lo, hi=hi)} END)"
        else:
            bounded = gridded(value, steps=measure.steps, lo=lo, hi=hi, dialect=self.dialect)
        return f"({bounded} - {measure.offset})" if measure.offset else bounded

    def cell(self, value: str, measure: Measure, shift: int) -> str:
        """SQL of what the rows of a unit in one group add to a measure, multiplied by 2^shift; ``value`` is what rows carry for it."""
        scale = f" * {2**shift}" if shift else ""
        match measure:
            case RowCount(where):
                return ("COUNT(*)" if where is None else f"COUNT(CASE WHEN {value} = 1 THEN 1 END)") + scale
            case UnitCount(where):
                return ("1" if where is None else f"MAX(CASE WHEN {value} = 1 THEN 1 ELSE 0 END)") + scale
            case GridSum():
                return f"COALESCE(CAST(SUM({self.integers(value, measure)}) AS {self.dialect.integer}), 0)" + scale
            case DistinctCount():
                raise AssertionError("certification allows distinct counts with ranked bounding only")
            case _:
                assert_never(measure)


def cells_of(rows: str, keys: Sequence[str], columns: Sequence[str]) -> str:
    """One row per unit and group of rows that have a unit and keys."""
    grouping = ", ".join([f"i.{UNIT}", *(f"i.{key}" for key in keys)])
    return f"SELECT {', '.join([grouping, *columns])} FROM ({rows}) i GROUP BY {grouping}"


def is_stored(column: str, relation: Relation | UnitNorms) -> bool:
    """Whether a column comes from a prepared table as it stands there."""
    match relation:
        case Scan():
            return True
        case Filter(source) | SemiJoin(source):
            return is_stored(column, source)
        case PublicJoin(source, columns=added):
            return column in {name for name, _ in added} or is_stored(column, source)
        case Project(source, columns):
            return any(name == column and isinstance(value, Column) and is_stored(value.name, source) for name, value in columns)
        case UnitJoin(left, right, columns=added):
            taken = dict(added)
            return is_stored(taken[column], right) if column in taken else is_stored(column, left)
        case UnitWindow(source, columns=added):
            return column not in {name for name, _ in added} and is_stored(column, source)
        case Union(sources):
            return all(is_stored(column, source) for source in sources)
        case PerUnit() | UnitNorms():
            return False
        case _:
            assert_never(relation)


def row_value(measure: Measure, scope: VisibleColumns) -> str | None:
    """SQL of what the input carries for a measure: the value of a sum, the distinct value, or a condition as 1 / 0."""
    match measure:
        case RowCount(None) | UnitCount(None):
            return None
        case RowCount(where) | UnitCount(where) if where is not None:
            return f"CASE WHEN {render_expression(where, scope)} THEN 1 ELSE 0 END"
        case DistinctCount(value):
            return render_expression(value, scope)
        case GridSum():
            if _is_physical(scope.domains.of(measure.value), measure):
                return render_expression(measure.value, scope)
            return as_double(measure.value, scope)
        case _:
            raise AssertionError("unreachable")


def _is_physical(domain: Domain, measure: GridSum) -> bool:
    """Whether the value is already an integer on the grid of the sum."""
    if isinstance(domain, IntegerDomain):
        return measure.steps == 1
    return isinstance(domain, RealDomain) and domain.steps == measure.steps
