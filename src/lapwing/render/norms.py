"""Units by the norm of their cells, in SQL: squares are added and compared in whole numbers, so every engine finds the same bin."""

from __future__ import annotations

from dataclasses import replace

from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Relation, UnitNorms
from lapwing.kernel.stability import shape_of
from lapwing.render.cells import CellInputs, cells_of, row_value
from lapwing.render.dialect import Dialect
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.render.relations import UNIT, render_relation


def render_source(source: Relation | UnitNorms, facts: Facts, dialect: Dialect, *, rows: bool = False) -> str:
    """A SELECT giving the unit and the columns of what a query aggregates."""
    if not isinstance(source, UnitNorms):
        return render_relation(source, facts, dialect, rows=rows)
    columns = shape_of(source.source, facts).columns
    scope = VisibleColumns(columns, "t", dialect)
    listed = [f"t.{UNIT}", *(f"{render_expression(key, scope)} AS k{i}" for i, (_, key) in enumerate(source.keys))]
    value = row_value(source.measure, scope)
    listed += [] if value is None else [f"{value} AS x0"]
    sampled = dialect if source.one_in == 1 else _sampling(source.one_in, facts, dialect)
    inner = f"SELECT {', '.join(listed)} FROM ({render_relation(source.source, facts, sampled)}) t"
    cell = CellInputs(source.source, columns, dialect).cell("i.x0", source.measure, 0)
    cells = cells_of(inner, [f"k{i}" for i in range(len(source.keys))], [f"{cell} AS c0"])
    square = dialect.total(f"CAST(c.c0 AS {dialect.wide_integer}) * c.c0")
    squares = f"SELECT c.{UNIT}, {square} AS q FROM ({cells}) c GROUP BY c.{UNIT}"
    bin_of_unit = f"CAST({norm_bin('u.q', source.squared_edges, dialect)} AS {dialect.integer})"
    return f"SELECT u.{UNIT}, {bin_of_unit} AS {dialect.quoted(source.name)} FROM ({squares}) u{dialect.fence}"


def _sampling(one_in: int, facts: Facts, dialect: Dialect) -> Dialect:
    """The dialect, with the units of the sample alone in every private table: relations are unit-local, so theirs are the same rows."""

    def sample(rows: str) -> str:
        return f"(SELECT * FROM {rows} w WHERE {sample_predicate(dialect.unit_hash(f'w.{UNIT}'), one_in)})"

    return replace(
        dialect,
        table=lambda name: sample(dialect.table(name)) if name in facts.tables else dialect.table(name),
        blocks=lambda name, blocks: sample(dialect.scanned(name, blocks)),
    )


def sample_predicate(hashed: str, one_in: int) -> str:
    """Whether a unit is in the sample, by its hash."""
    return f"{hashed} % {one_in} = 0"


def norm_bin(square: str, squared_edges: tuple[int, ...], dialect: Dialect) -> str:
    """How many edges are below the square."""
    branches = [f"WHEN {square} <= CAST({edge} AS {dialect.wide_integer}) THEN {number}" for number, edge in enumerate(squared_edges)]
    return f"CASE {' '.join(branches)} ELSE {len(squared_edges)} END"
