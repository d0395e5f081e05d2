"""Sessions on a PostgreSQL server, in which the meaning of a statement does not depend on the server's settings.

Every statement runs in a transaction of ours whose settings are local to it, so nothing depends on the session before and nothing is left
behind: a pooler in transaction mode changes nothing. Names of functions, types and operators are looked up in ``pg_catalog`` alone (and in
the session's own temporary schema last, where no one else can write), so nothing planted in a schema that others can write to is called.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from lapwing.catalog import Settings
from lapwing.errors import PreparationError

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

OWNER_VARIABLE = "LAPWING_POSTGRES_OWNER"
"""Environment variable: the changes to the connection for preparation, such as ``user=clinic_owner``; none unless it is set."""
CONNECT_SECONDS = 10
SERVER_VERSION_MIN = 140000
"""PostgreSQL 14: EXTRACT is exact from there on."""
_TIMEOUT_MILLISECONDS_MAX = 2**31 - 1
_FIXED = {
    "search_path": "pg_catalog, pg_temp",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "lc_numeric": "C",
    "lc_time": "C",
    # A policy for rows would make the rows depend on who asks: a table that has one raises instead of being read in part.
    "row_security": "off",
    # Compiling costs more than it gains on the statements measured here (docs/decisions/0013).
    "jit": "off",
    # Rows are compared by hashing, independent of the server's row estimates: comparing all pairs, one unit's few rows would be met with
    # every row of a table, and how long a statement takes would tell whether they are there (docs/proofs/unit-work.md).
    "enable_nestloop": "off",
    "enable_mergejoin": "off",
}


def connect(conninfo: str) -> Connection:
    """A new connection, to a server that can be used."""
    if importlib.util.find_spec("psycopg") is None:
        raise PreparationError("engine-missing", "the engine on PostgreSQL needs more libraries", hint="install lapwing[postgres]")
    import psycopg
    from psycopg.types.string import StrDumper

    try:
        connection = psycopg.connect(conninfo, autocommit=True, prepare_threshold=None, connect_timeout=CONNECT_SECONDS)
    except psycopg.Error as error:
        raise PreparationError("engine-unreachable", f"the server cannot be reached: {error}") from error
    # As text, not as a constant of unknown type: then a statement may leave a parameter unused.
    connection.adapters.register_dumper(str, StrDumper)
    encoding = connection.info.parameter_status("server_encoding")
    if connection.info.server_version < SERVER_VERSION_MIN or encoding != "UTF8":
        connection.close()
        raise PreparationError("engine-version", "the engine needs PostgreSQL 14 or newer and a database in UTF8")
    return connection


@contextmanager
def transaction(connection: Connection, settings: Settings, *, read_only: bool) -> Iterator[Connection]:
    """One snapshot of the database over all statements inside, with all settings that change a meaning fixed; committed at the end."""
    milliseconds = min(settings.query_timeout_seconds * 1000, _TIMEOUT_MILLISECONDS_MAX)
    fixed = {
        **_FIXED,
        "statement_timeout": str(milliseconds if read_only else 0),
        "work_mem": f"{_work_kilobytes(settings)}kB",
        "client_encoding": "UTF8",
    }
    with connection.transaction():
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, {'READ ONLY' if read_only else 'READ WRITE'}".encode())
        calls = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in fixed.items())
        connection.execute(f"SELECT {calls}".replace("set_config", "pg_catalog.set_config").encode())
        yield connection


def _work_kilobytes(settings: Settings) -> int:
    """Memory of one step of a plan. A plan has a few steps, each perhaps in a few processes: an eighth of what the engine may use."""
    return max(min(settings.memory_limit_bytes // 8 // 1024, 2**21 - 1), 64)


def ask(connection: Connection, statement: str, parameters: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """The rows of one statement with numbered parameters ($1, ...)."""
    import psycopg

    with psycopg.RawCursor(connection) as cursor:
        cursor.execute(statement.encode(), list(parameters) or None)
        return cursor.fetchall() if cursor.description else []


def merged(conninfo: str, changes: str) -> str:
    """A connection string in which ``changes`` override what was there."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    given = {name: value for name, value in conninfo_to_dict(changes).items() if value is not None}
    return make_conninfo(conninfo, **given)
