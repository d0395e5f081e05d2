"""Rows of a statement as an Arrow table, a batch of rows at a time: of a large result only one batch is ever held as Python objects."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa

from lapwing.engines.postgres.session import Connection
from lapwing.render.dialect import GROUP_SALT, RANKING_KEY
from lapwing.render.postgres import PARAMETERS

BATCH_ROWS = 10_000

_TYPES = {
    16: pa.bool_(),
    20: pa.int64(),
    21: pa.int64(),
    23: pa.int64(),
    25: pa.large_string(),
    701: pa.float64(),
    1082: pa.date32(),
    1114: pa.timestamp("us"),
    1700: pa.decimal128(38, 0),
}
"""Arrow types of the built-in types that a rendered statement can give; a NUMERIC is a sum of integers, below 2^126."""


def arrow_table(connection: Connection, statement: str, *, ranking_key: str, salt: str) -> pa.Table:
    """The rows of a rendered statement; both parameters are given whether it uses them or not."""
    import psycopg

    given = {RANKING_KEY: ranking_key, GROUP_SALT: salt}
    parameters = [given[name] for name in PARAMETERS]
    batches: list[list[pa.Array]] = []
    types: list[pa.DataType] = []
    with psycopg.RawCursor(connection) as cursor:
        rows = cursor.stream(statement.encode(), parameters, binary=True, size=_chunk_rows())
        while batch := list(islice(rows, BATCH_ROWS)):
            types = types or _types(cursor)
            batches.append([pa.array(column, kind) for column, kind in zip(zip(*batch, strict=True), types, strict=True)])
        if not types:  # the driver forgets the columns of a result without rows
            cursor.execute(f"SELECT * FROM ({statement}) e LIMIT 0".encode(), parameters)
            types = _types(cursor)
    columns = [pa.chunked_array([batch[i] for batch in batches], kind) for i, kind in enumerate(types)]
    return pa.table(columns, names=[f"c{i}" for i in range(len(types))])


def _chunk_rows() -> int:
    """Rows that the client library hands over at once: from version 17 on as many as are asked for, before that one."""
    from psycopg import pq

    return 1_000 if pq.version() >= 170000 else 1


def _types(cursor: object) -> list[pa.DataType]:
    description = getattr(cursor, "description", None) or []
    return [_TYPES[column.type_code] for column in description]
