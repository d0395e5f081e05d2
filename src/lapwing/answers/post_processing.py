"""A scratch DuckDB that never sees protected rows: it evaluates public expressions and works on noisy tables.

It has no file, no network, no extension and no Python access, and its configuration is locked before the first statement.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import duckdb
import pyarrow as pa

from lapwing.errors import Refused
from lapwing.kernel.domains import Domain, Kind, RealDomain, kind_of
from lapwing.kernel.expressions import Expression, Value
from lapwing.kernel.stability import domain_of
from lapwing.render.arrow_values import key_values
from lapwing.render.duckdb import DUCKDB
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.statements import ROW, CellMark, PostProcess

RUN = "_run"
"""The column that numbers the runs of post-processing."""
_local = threading.local()


def _connection() -> duckdb.DuckDBPyConnection:
    """One locked connection per thread."""
    connection: duckdb.DuckDBPyConnection | None = getattr(_local, "connection", None)
    if connection is None:
        connection = duckdb.connect(config={"threads": "1", "memory_limit": "512MB", "python_enable_replacements": "false"})
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        _local.connection = connection
    return connection


def evaluate(expression: Expression, columns: Mapping[str, Domain], listed: Mapping[str, tuple[Value, ...]]) -> tuple[Value, ...]:
    """Distinct values of an expression over every combination of the listed column values, NULL last; by the engine's own functions."""
    connection = _connection()
    names = list(listed)
    arrays = [_physical([row[i] for row in product(*listed.values())], columns[name]) for i, name in enumerate(names)]
    connection.register("enumerated", pa.table(arrays, names=names) if names else pa.table({"_": [0]}))
    sql = render_expression(expression, VisibleColumns(columns, "t", DUCKDB))
    try:
        result = connection.sql(f"SELECT DISTINCT {sql} AS v FROM enumerated t").to_arrow_table()
    finally:
        connection.unregister("enumerated")
    values = key_values(result.column(0), domain_of(expression, columns))
    present = sorted((value for value in values if value is not None), key=lambda value: (str(type(value)), value))
    return (*present, None) if None in values else tuple(present)


def _physical(values: Sequence[Value], domain: Domain) -> pa.Array:
    """Values as the engine stores the column: grid reals as integers."""
    if isinstance(domain, RealDomain) and domain.steps is not None:
        steps = domain.steps
        return pa.array([None if value is None else int(Fraction(value) * steps) for value in values], pa.int64())
    return typed_array(values, kind_of(domain))


def typed_array(values: Sequence[Value | float], kind: Kind) -> pa.Array:
    """Key values as an Arrow column of their SQL type."""
    match kind:
        case Kind.DATE:
            return pa.array(values, pa.int32()).cast(pa.date32())
        case Kind.TIMESTAMP:
            return pa.array(values, pa.int64()).cast(pa.timestamp("us"))
        case Kind.BOOLEAN:
            return pa.array(values, pa.bool_())
        case Kind.INTEGER | Kind.KEY:
            return pa.array(values, pa.int64())
        case Kind.REAL:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        case Kind.TEXT:
            return pa.array(values, pa.string())


@dataclass(frozen=True, slots=True)
class Processed:
    """The answer's table, for each of its rows the number of the noisy row it comes from, where there is one, and marks by column."""

    table: pa.Table
    rows: list[int] | None
    marks: dict[str, list[CellMark | None]]


def post_process(noisy: Sequence[pa.Table], post: PostProcess) -> Processed:
    """All that is done with noisy tables."""
    connection = _connection()
    names = [f"q{number}" for number in range(len(noisy))]
    for name, table in zip(names, noisy, strict=True):
        connection.register(name, table.append_column(ROW, pa.array(range(table.num_rows), pa.int64())))
    try:
        result = connection.sql(post.sql(numbered=True, marked=post.marked)).to_arrow_table()
    except duckdb.Error as error:
        # Only noisy values are at stake here; still, the text of an engine is not ours to show.
        raise Refused("post-processing", "the expressions over the noisy answer cannot be computed") from error
    finally:
        for name in names:
            connection.unregister(name)
    columns = [result.column(i) for i in range(len(post.outputs))]
    table = pa.table(columns, names=[output.name for output in post.outputs])
    by_code = {mark.code: mark for mark in CellMark}
    marks = {
        post.outputs[i].name: [by_code.get(code) for code in result.column(len(post.outputs) + place).to_pylist()]
        for place, i in enumerate(post.marked)
    }
    listed = len(post.outputs) + len(post.marked)
    return Processed(table, None if result.num_columns == listed else [int(row) for row in result.column(listed).to_pylist()], marks)


def post_process_runs(noisy: Sequence[pa.Table], post: PostProcess, *, runs: int) -> pa.Table:
    """The same for many runs at once: every table has the columns ``_run``, from 0 on, and ``_row``. So has the result, in front.

    One statement that does all runs side by side: each sees its own rows under the names of the tables. Its columns c0, c1, .. are the
    outputs, and the last is the number of the noisy row where there is one. Refuses (``post-processing``) what the engine cannot do that
    way.
    """
    connection = _connection()
    names = [f"q{number}" for number in range(len(noisy))]
    for name, table in zip(names, noisy, strict=True):
        connection.register(f"{name}_runs", table)
    own = ", ".join(f"{name} AS (SELECT * FROM {name}_runs WHERE {name}_runs.{RUN} = r.{RUN})" for name in names)
    every = f"(SELECT CAST(range AS BIGINT) AS {RUN} FROM range({runs})) AS r"
    try:
        return connection.sql(f"SELECT r.{RUN}, x.* FROM {every}, LATERAL (WITH {own} {post.sql(numbered=True)}) AS x").to_arrow_table()
    except duckdb.Error as error:
        raise Refused("post-processing", "the expressions over the noisy answer cannot be computed for many runs") from error
    finally:
        for name in names:
            connection.unregister(f"{name}_runs")
