"""One connection to a server that keeps what it commits, opened again when it is lost.

Nothing here depends on a session: no prepared statements, no session settings, no locks beyond a statement. So a pooler that gives each
statement another server connection (pgbouncer, transaction mode) changes nothing.

After a lost connection nobody knows whether the last statement was carried out. Statements that may safely be sent twice (each carries a
key of its own that the function looks for) are sent again until an answer arrives or the time is up; any other is not.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lapwing.errors import LedgerError

if TYPE_CHECKING:
    import psycopg

RETRY_SECONDS = 30.0
"""How long a statement is tried again after its connection was lost."""
CONNECT_SECONDS = 10
SERVER_VERSION_MIN = 140000
"""PostgreSQL 14."""

_DURABLE = frozenset({"on", "remote_apply"})
_SETTINGS = (
    "SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),"
    " current_setting('default_transaction_isolation'), current_setting('server_encoding'),"
    " current_setting('server_version_num')::int, pg_is_in_recovery()"
)

_abandoned: list[object] = []
"""Connections inherited over a fork. They are kept so that this process never closes what belongs to its parent."""


def require_extra() -> None:
    """The libraries of the extra are there."""
    if any(importlib.util.find_spec(name) is None for name in ("psycopg", "alembic", "cryptography")):
        raise LedgerError("extra-missing", "the ledger on PostgreSQL needs more libraries", hint="pip install 'lapwing[postgres]'")


def without_password(dsn: str) -> str:
    """A connection string as it may be written down."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    return make_conninfo("", **{key: value for key, value in conninfo_to_dict(dsn).items() if key not in {"password", "sslpassword"}})


class Connection:
    """A connection for one process; threads take turns. The server's settings are checked each time it is opened."""

    __slots__ = ("_connection", "_dsn", "_lock", "_pid", "_retry_seconds", "_schema_version", "_used")

    def __init__(self, dsn: str, *, schema_version: str, retry_seconds: float = RETRY_SECONDS) -> None:
        self._dsn = dsn
        self._schema_version = schema_version
        self._retry_seconds = retry_seconds
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._used = True

    def close(self) -> None:
        """Never to be used again."""
        with self._lock:
            self._used = False
            self._drop()

    def abandon(self) -> None:
        """In a forked child: keep what belongs to the parent, so that this process neither uses nor closes it.

        Takes no lock: a thread of the parent may hold it, and that thread is not here. What this process opened itself it closes.
        """
        if self._pid == os.getpid():
            self.close()
        else:
            _abandoned.append(self._connection)

    def ask(self, statement: str, parameters: Sequence[object] = (), *, again: bool) -> list[tuple[Any, ...]]:
        """The rows of one statement, which is one transaction and has been committed when this returns.

        ``again``: it may be carried out twice, so it is sent again when its reply was lost. Otherwise a lost reply is ``reply-lost``: the
        statement may have been carried out or not.
        """
        import psycopg

        deadline = time.monotonic() + self._retry_seconds
        with self._lock:
            if not self._used:
                raise LedgerError("ledger-disconnected", "this use of the ledger has ended", hint="open the ledger again")
            while True:
                connection = self._opened(deadline)
                try:
                    return self._result(connection, statement, parameters)
                except psycopg.Error as error:
                    lost = bool(connection.closed) or isinstance(error, psycopg.errors.ReadOnlySqlTransaction)
                    if not lost:
                        raise _translated(error) from error
                    self._drop()
                    if not again:
                        message = "the connection broke before the reply came; the change may have been made or not"
                        raise LedgerError("reply-lost", message, hint="look at the history first") from error
                    if time.monotonic() > deadline:
                        raise _unreachable() from error

    def _result(
        self, connection: psycopg.Connection[tuple[Any, ...]], statement: str, parameters: Sequence[object]
    ) -> list[tuple[Any, ...]]:
        cursor = connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    def read(self, act: Callable[[psycopg.Connection[tuple[Any, ...]]], None]) -> None:
        """Several reads of one state of the database: one transaction that takes no lock and can change nothing."""
        import psycopg

        with self._lock:
            connection = self._opened(time.monotonic() + self._retry_seconds)
            try:
                with connection.transaction():
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                    act(connection)
            except psycopg.Error as error:
                if connection.closed:
                    self._drop()
                raise _translated(error) from error

    def _opened(self, deadline: float) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        if os.getpid() != self._pid:
            raise LedgerError("ledger-disconnected", "this connection belongs to another process", hint="open the ledger again")
        pause_seconds = 0.02
        while self._connection is None:
            try:
                self._connection = self._connect()
            except psycopg.Error as error:
                # A server that starts, stops or fails over refuses for a while.
                if time.monotonic() > deadline:
                    raise _unreachable() from error
                time.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, 1.0)
        return self._connection

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        connection = psycopg.connect(
            self._dsn,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=CONNECT_SECONDS,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=20_000,
        )
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        import psycopg

        row = connection.execute(_SETTINGS).fetchone()
        assert row is not None
        fsync, pages, commit, isolation, encoding, version, standby = row
        if standby:
            raise psycopg.OperationalError("a standby, for now")  # tried again: a failover may be under way
        if version < SERVER_VERSION_MIN or encoding != "UTF8":
            raise LedgerError("ledger-format", "the ledger needs PostgreSQL 14 or newer and a database in UTF8")
        if fsync != "on" or pages != "on" or commit not in _DURABLE or isolation != "read committed":
            raise _not_durable()
        try:
            found = connection.execute("SELECT version_num FROM lapwing.alembic_version").fetchall()
        except psycopg.errors.UndefinedTable:
            found = []
        if found != [(self._schema_version,)]:
            raise LedgerError(
                "ledger-format", "the schema of the ledger is missing or of another version", hint="run `lapwing ledger install`"
            )

    def _drop(self) -> None:
        if self._connection is not None and self._pid == os.getpid():
            self._connection.close()
        self._connection = None


def _translated(error: psycopg.Error) -> LedgerError:
    """What the server said, as one of our codes. Its text is left out: it may quote a row."""
    match error.sqlstate:
        case "LW001":
            return _not_durable()
        case "LW002":
            return LedgerError("ledger-missing", "there is no ledger of this source in the database")
        case "55P03":
            return LedgerError("ledger-busy", "the ledger was held by others for too long; nothing was changed", hint="try again")
        case "LW009" | "23514" | "23505" | "23502" | "23503":
            return LedgerError("ledger-rule", "a change would have broken a rule of the ledger and was not made")
        case _:
            return _unreachable()


def _unreachable() -> LedgerError:
    return LedgerError("ledger-unreachable", "the database of the ledger cannot be used", hint="see the server's log")


def _not_durable() -> LedgerError:
    hint = "fsync, full_page_writes and synchronous_commit must be on, and the isolation level read committed"
    return LedgerError("ledger-not-durable", "the server would not keep what it commits", hint=hint)
