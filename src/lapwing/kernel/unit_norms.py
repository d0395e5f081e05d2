"""Units by the norm of what they add: the source of the histogram that bounds are chosen from.

Each unit has one row, its bin. So a count of rows by bin moves by at most 1 in one cell with a unit, like any other
relation of one row per unit. Proof: docs/proofs/unit-norms.md.
"""

from __future__ import annotations

from lapwing.errors import Refused
from lapwing.kernel.domains import INTEGER_LIMIT, IntegerDomain, Kind, RealDomain, kind_of
from lapwing.kernel.expression_domains import domain_of
from lapwing.kernel.expressions import Expression, part_count
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import DistinctCount, GridSum, Measure, Relation, RowCount, UnitCount, UnitNorms
from lapwing.kernel.row_ranges import row_range
from lapwing.kernel.shapes import Shape, named
from lapwing.kernel.stability import shape_of

EDGES_MAX = 256
"""Maximum number of edges: one less than the number of bins."""
PARTS_OF_A_CELL = 4
"""A row is read and added to its cell, a cell is squared and added up: as if each row were a cell of its own."""
ONE_IN_MAX = 65_536
"""Smallest share of units that a sample takes."""
PARTS_OF_A_SAMPLE = 4
"""The work charged for deciding whether a row's unit is in the sample, for each row that a relation reads."""


def source_shape(source: Relation | UnitNorms, facts: Facts) -> Shape:
    """Shape of what a query aggregates, or refuse."""
    return _norms_shape(source, facts) if isinstance(source, UnitNorms) else shape_of(source, facts)


def value_of(measure: Measure) -> Expression | None:
    """The expression that a measure computes on each row, where there is one."""
    match measure:
        case RowCount(where) | UnitCount(where):
            return where
        case GridSum(value) | DistinctCount(value):
            return value


def _norms_shape(norms: UnitNorms, facts: Facts) -> Shape:
    """One row per unit; its bin is a whole number from 0 to the number of edges."""
    shape = shape_of(norms.source, facts)
    for name, key in norms.keys:
        domain = domain_of(key, shape.columns)
        if kind_of(domain) is Kind.KEY:
            raise Refused("groups-by-unit", f"no answer has groups by the identifier {name!r}, so units have no norm over them")
        if isinstance(domain, RealDomain) and domain.steps is None:
            # 0.0 and -0.0 may be one group or two: a norm would depend on the engine.
            raise Refused("groups-by-real", f"the norm of a unit cannot be taken over groups of the computed real number {name!r}")
    if isinstance(norms.measure, DistinctCount):
        raise Refused("measure-unsupported", "there is no norm of distinct values: units share them")
    row, _, _ = row_range(norms.measure, shape.columns)
    if row.magnitude * shape.rows_per_unit >= INTEGER_LIMIT:
        raise Refused("range-too-wide", "what one unit adds to a group could exceed 62 bits", hint="a coarser grid")
    edges = norms.squared_edges
    if not 1 <= len(edges) <= EDGES_MAX or edges[0] < 0 or list(edges) != sorted(set(edges)) or edges[-1] >= INTEGER_LIMIT**2:
        raise Refused("norm-edges", f"the squared edges of norms are from 1 to {EDGES_MAX} different whole numbers in order, below 2^124")
    if not 1 <= norms.one_in <= ONE_IN_MAX:
        raise Refused("norm-sample", f"a sample takes one unit in 1 to {ONE_IN_MAX:,}")
    value = value_of(norms.measure)
    parts = PARTS_OF_A_CELL + sum(part_count(key) for _, key in norms.keys) + (0 if value is None else part_count(value))
    columns = named([(norms.name, IntegerDomain(0, len(edges), nullable=False))])
    work = (shape.work if norms.one_in == 1 else (1 + PARTS_OF_A_SAMPLE) * shape.work) + shape.rows_per_unit * parts + len(edges)
    return Shape(columns, 1, shape.rows_max, weighable=False, widest=shape.widest, work=work)
