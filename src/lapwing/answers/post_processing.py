"""A scratch DuckDB that never sees protected rows: it evaluates public expressions and works on noisy tables.

It has no file, no network, no extension and no Python access, and its configuration is locked before the first statement.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import duckdb
import numpy as np
import pyarrow as pa

from lapwing.errors import Refused
from lapwing.kernel.domains import DateDomain, Domain, KeyDomain, Kind, RealDomain, kind_of
from lapwing.kernel.expressions import Expression, Value
from lapwing.kernel.stability import domain_of
from lapwing.planning.group_enumeration.groups import Combinations
from lapwing.planning.group_enumeration.listing import ListedValues
from lapwing.render.arrow_values import key_values
from lapwing.render.duckdb import DUCKDB
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.statements import ROW, CellMark, PostProcess

RUN = "_run"
"""The column that numbers the runs of post-processing."""
PUBLIC_SECONDS_MAX = 5.0
"""Time for a statement over public facts. Its tables are small, but joins of many are not."""
PUBLIC_ROWS_MAX = 1_000_000
"""Maximum rows of its answer."""
IDLE_MAX = 4
"""Cached connections: a process with hundreds of threads needs few at a time, and each takes megabytes."""
_idle: list[duckdb.DuckDBPyConnection] = []
Parameters = ParamSpec("Parameters")
Found = TypeVar("Found")


def _connection() -> duckdb.DuckDBPyConnection:
    """A locked connection to a database of its own."""
    connection = duckdb.connect(config={"threads": "1", "memory_limit": "512MB", "python_enable_replacements": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _connected(act: Callable[Concatenate[duckdb.DuckDBPyConnection, Parameters], Found]) -> Callable[Parameters, Found]:
    """The same with exclusive use of a connection."""

    @wraps(act)
    def borrowed(*arguments: Parameters.args, **named: Parameters.kwargs) -> Found:
        try:
            connection = _idle.pop()
        except IndexError:
            connection = _connection()
        is_clean = False
        try:
            found = act(connection, *arguments, **named)
            is_clean = True
            return found
        finally:  # after a failure the connection may hold tables of this statement
            if is_clean and len(_idle) < IDLE_MAX:
                _idle.append(connection)
            else:
                connection.close()

    return borrowed


_of_the_parent: list[duckdb.DuckDBPyConnection] = []


def _leave_to_the_parent() -> None:
    """After a fork the child lacks their threads, so they are neither used nor closed; closing one would end the process."""
    _of_the_parent.extend(_idle)
    _idle.clear()


os.register_at_fork(after_in_child=_leave_to_the_parent)


@_connected
def evaluate(connection: duckdb.DuckDBPyConnection, combinations: Combinations, limit: int) -> list[tuple[Value, ...]] | None:
    """Distinct values of keys over every combination of listed values that meets the conditions; by the engine's own functions."""
    keys, domains = combinations.keys, combinations.domains
    scope = VisibleColumns(domains, "t", DUCKDB)
    listed = [f"{render_expression(key, scope)} AS k{i}" for i, key in enumerate(keys)] or ["TRUE AS k0"]
    conditions = " AND ".join(f"({render_expression(condition, scope)})" for condition in combinations.conditions) or "TRUE"
    names = [f"block{number}" for number in range(len(combinations.blocks))]
    for name, block in zip(names, combinations.blocks, strict=True):
        arrays = [_enumerated(listing, domains[column]) for column, listing in zip(block.names, block.columns, strict=True)]
        connection.register(name, pa.table(arrays, names=list(block.names)))
    source = f"(SELECT * FROM {', '.join(names)}) AS t" if names else "(SELECT 1) AS t"
    try:
        sql = f"SELECT DISTINCT {', '.join(listed)} FROM {source} WHERE {conditions} LIMIT {limit + 1}"
        result = connection.sql(sql).to_arrow_table()
    finally:
        for name in names:
            connection.unregister(name)
    if result.num_rows > limit:
        return None
    columns = [key_values(result.column(i), domain_of(key, domains)) for i, key in enumerate(keys)]
    return [*zip(*columns, strict=True)] if columns else [()] * result.num_rows


@_connected
def values_on(
    connection: duckdb.DuckDBPyConnection,
    points: Mapping[str, Sequence[Value]],
    domains: Mapping[str, Domain],
    expressions: Sequence[Expression],
) -> list[pa.ChunkedArray]:
    """The value of each expression on every combination of points of all columns; the last column varies fastest.

    In the physical form of its domain: a real on a grid as its integer.
    """
    scope = VisibleColumns(domains, "t", DUCKDB)
    listed = [f"{render_expression(expression, scope)} AS e{i}" for i, expression in enumerate(expressions)]
    shape = tuple(len(values) for values in points.values())
    places = np.indices(shape, dtype=np.int64).reshape(len(shape), -1) if shape else np.zeros((0, 1), dtype=np.int64)
    arrays = [_physical(values, domains[name]).take(pa.array(at)) for (name, values), at in zip(points.items(), places, strict=True)]
    connection.register("points", pa.table([*arrays, pa.array(np.arange(places.shape[1]))], names=[*points, ROW]))
    try:
        result = connection.sql(f"SELECT {', '.join(listed)} FROM points AS t ORDER BY t.{ROW}").to_arrow_table()
    finally:
        connection.unregister("points")
    return list(result.columns)


def _enumerated(listing: ListedValues, domain: Domain) -> pa.Array:
    """All values of a listing as the engine stores the column."""
    if not isinstance(listing.values, range):
        return _physical([*listing.values, *((None,) if listing.null else ())], domain)
    whole = pa.array(np.arange(listing.values.start, listing.values.stop, dtype=np.int64))
    if listing.null:
        whole = pa.concat_arrays([whole, pa.nulls(1, pa.int64())])
    match domain:
        case DateDomain():
            return whole.cast(pa.int32()).cast(pa.date32())
        case _:
            return whole


def _physical(values: Sequence[Value], domain: Domain) -> pa.Array:
    """Values as the engine stores the column: grid reals as integers."""
    if isinstance(domain, RealDomain) and domain.steps is not None:
        steps = domain.steps
        return pa.array([None if value is None else int(Fraction(value) * steps) for value in values], pa.int64())
    if isinstance(domain, KeyDomain):
        return pa.array(values, pa.string())  # identifiers are carried along, never compared
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
class ProcessedTable:
    """The answer's table, for each of its rows the number of the noisy row it comes from, where there is one, and marks by column."""

    table: pa.Table
    rows: list[int] | None
    marks: dict[str, list[CellMark | None]]


@_connected
def post_process(connection: duckdb.DuckDBPyConnection, noisy: Sequence[pa.Table], post: PostProcess) -> ProcessedTable:
    """The statement over the noisy tables."""
    names = [f"q{number}" for number in range(len(noisy))]
    for name, table in zip(names, noisy, strict=True):
        connection.register(name, table.append_column(ROW, pa.array(range(table.num_rows), pa.int64())))
    try:
        result = connection.sql(post.sql(numbered=True, marked=post.marked)).to_arrow_table()
    except duckdb.Error as error:
        # Only noisy values are at stake here; still, an engine's error text is not shown.
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
    return ProcessedTable(table, None if result.num_columns == listed else [int(row) for row in result.column(listed).to_pylist()], marks)


@_connected
def post_process_runs(connection: duckdb.DuckDBPyConnection, noisy: Sequence[pa.Table], post: PostProcess, *, runs: int) -> pa.Table:
    """The same for many runs at once: every table has the columns ``_run``, from 0 on, and ``_row``. So has the result, in front.

    One statement that does all runs side by side: each sees its own rows under the names of the tables. Its columns c0, c1, .. are the
    outputs, and the last is the number of the noisy row where there is one. Refuses (``post-processing``) what the engine cannot do that
    way.
    """
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


@_connected
def query_public(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table], sql: str) -> pa.Table:
    """The answer of a SELECT over tables of public facts, within ``PUBLIC_SECONDS_MAX``; or ``Refused``."""
    for name, table in tables.items():
        connection.register(name, table)
    watch = threading.Timer(PUBLIC_SECONDS_MAX, connection.interrupt)
    watch.start()
    try:
        return connection.sql(sql).limit(PUBLIC_ROWS_MAX).to_arrow_table()
    except duckdb.Error as error:
        hint = "SHOW TABLES"
        raise Refused("post-processing", "the tables that describe the data set have no answer to this", hint=hint) from error
    finally:
        watch.cancel()
        watch.join()  # so that it does not interrupt a later statement
        for name in tables:
            connection.unregister(name)
