"""One connection to a server that makes commits durable, reopened when it is lost.

Nothing here depends on a session: no prepared statements, no session settings, no locks beyond a statement. So a pooler that gives each
statement another server connection (pgbouncer, transaction mode) changes nothing. The search path is pinned when a connection is opened,
but nothing depends on that: a statement of :meth:`Connection.ask` qualifies every name with its schema and uses no operators, and
:meth:`Connection.look` pins the path inside its transaction.

After a lost connection it is unknown whether the last statement was executed. Statements that are safe to repeat (each carries its own
key, for which the function looks) are sent again until a reply arrives or the time is up; other statements are not.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lapwing.errors import LedgerError
from lapwing.ledger.postgres.patience import patience
from lapwing.ledger.postgres.routines import SEARCH_PATH

if TYPE_CHECKING:
    import psycopg

RETRY_SECONDS = 30.0
"""How long to retry a statement after its connection was lost."""
REPLY_SECONDS = 60.0
"""How long to wait for one reply: longer than the server waits for a lock. Without its synchronous standby, a server never replies."""
NOTICE_SECONDS = 5.0
"""How long a wait lasts before it is logged."""
CONNECT_SECONDS = 10
SERVER_VERSION_MIN = 140000
"""PostgreSQL 14."""

_DURABLE = frozenset({"on", "remote_apply"})
_SETTINGS = (
    "SELECT pg_catalog.current_setting('fsync'), pg_catalog.current_setting('full_page_writes'),"
    " pg_catalog.current_setting('synchronous_commit'), pg_catalog.current_setting('default_transaction_isolation'),"
    " pg_catalog.current_setting('server_encoding'), pg_catalog.current_setting('server_version_num')::pg_catalog.int4,"
    " pg_catalog.pg_is_in_recovery()"
)
_WARNING = "01000"
"""The code of the warning that a server sends only when it stops waiting for a standby and reports the commit as done."""
_log = logging.getLogger(__name__)
_PERMANENT = (
    (r'database "[^\n]*" does not exist', "there is no such database on the server"),
    (
        r"authentication failed|no password supplied|no pg_hba\.conf entry|role \"[^\n]*\" does not exist|not permitted to log in",
        "the server refused the login of this role",
    ),
    (
        r"definition of service|invalid connection option|invalid URI|missing \"=\" after|unterminated quoted",
        "the connection string is invalid",
    ),
)
"""English error texts of servers and libpq that a server never sends only because it is starting, stopping or failing over."""
_NO_RIGHT_TO_CONNECT = "permission denied for database"
"""Also matched by its text; libpq gives no SQLSTATE before there is a session."""

ANCHORS_HINT = "all machines must use the same anchors; if one is lost for good, two owners confirm it with `lapwing ledger anchor-lost`"

_abandoned: list[object] = []
"""Connections inherited across a fork. They are kept so that this process never closes what belongs to its parent."""


def require_extra() -> None:
    """Refuse (``extra-missing``) if the libraries of the extra are not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("psycopg", "alembic", "cryptography")):
        raise LedgerError("extra-missing", "the ledger on PostgreSQL needs additional libraries", hint="pip install 'lapwing[postgres]'")


def without_password(dsn: str) -> str:
    """A connection string that is safe to display."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    return make_conninfo("", **{key: value for key, value in conninfo_to_dict(dsn).items() if key not in {"password", "sslpassword"}})


class Connection:
    """A connection for one process; threads take turns. The server's settings are checked each time it is opened."""

    __slots__ = (
        "_connection",
        "_dsn",
        "_lock",
        "_pid",
        "_reply_seconds",
        "_retry_seconds",
        "_schema_version",
        "_standby",
        "_used",
        "_warned",
    )

    def __init__(
        self,
        dsn: str,
        *,
        schema_version: str,
        retry_seconds: float = RETRY_SECONDS,
        reply_seconds: float = REPLY_SECONDS,
        standby: bool = False,
    ) -> None:
        """``standby``: for reading only, so that a standby is accepted, and a server without durable settings."""
        self._dsn = dsn
        self._standby = standby
        self._warned = False
        self._schema_version = schema_version
        self._retry_seconds = retry_seconds
        self._reply_seconds = reply_seconds
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._used = True

    def close(self) -> None:
        """Close the connection for good."""
        with self._lock:
            self._used = False
            self._drop()

    def abandon(self) -> None:
        """In a forked child: keep the parent's connection, so that this process neither uses nor closes it.

        Takes no lock: a thread of the parent may hold it, and that thread does not exist here. Closes what this process opened itself.
        """
        if self._pid == os.getpid():
            self.close()
        else:
            _abandoned.append(self._connection)

    def ask(self, statement: str, parameters: Sequence[object] = (), *, again: bool) -> list[tuple[Any, ...]]:
        """The rows of one statement, which is one transaction and is committed when this returns.

        ``again``: the statement may be executed twice, so it is sent again if its reply is lost. Otherwise a lost reply is ``reply-lost``:
        the statement may or may not have been executed.
        """
        return self._tried(lambda connection: self._result(connection, statement, parameters), again=again)

    def look(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement that only reads, for a role that may read tables; sent again if its reply is lost."""

        def look_once(connection: psycopg.Connection[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
            with _reading(connection):
                return self._result(connection, statement, parameters)

        return self._tried(look_once, again=True)

    def _tried(self, act: Callable[[psycopg.Connection[tuple[Any, ...]]], list[tuple[Any, ...]]], *, again: bool) -> list[tuple[Any, ...]]:
        import psycopg

        deadline = time.monotonic() + self._retry_seconds
        with self._lock:
            if not self._used:
                raise LedgerError("ledger-disconnected", "this connection to the ledger is closed", hint="open the ledger again")
            while True:
                connection = self._opened(deadline)
                try:
                    return act(connection)
                except psycopg.Error as error:
                    lost = bool(connection.closed) or isinstance(error, psycopg.errors.ReadOnlySqlTransaction)
                    if not lost:
                        raise _translated(error) from error
                    self._drop()
                    if not again:
                        message = "the connection broke before the reply arrived; the change may or may not have been made"
                        raise LedgerError("reply-lost", message, hint="check the history before you repeat it") from error
                    if time.monotonic() > deadline:
                        raise _unreachable("it did not answer in time") from error

    def _result(
        self, connection: psycopg.Connection[tuple[Any, ...]], statement: str, parameters: Sequence[object]
    ) -> list[tuple[Any, ...]]:
        self._warned = False
        with patience(connection.fileno(), notice_seconds=NOTICE_SECONDS, reply_seconds=self._reply_seconds):
            cursor = connection.execute(statement.encode(), parameters)
        if self._warned:
            # If an operator cancels the wait for a standby, the server only warns: the change is made, but not on the standby.
            raise _not_durable()
        return cursor.fetchall() if cursor.description else []

    def read(self, act: Callable[[psycopg.Connection[tuple[Any, ...]]], None]) -> None:
        """Run several reads on one state of the database: one transaction that takes no lock and can change nothing."""
        import psycopg

        with self._lock:
            connection = self._opened(time.monotonic() + self._retry_seconds)
            try:
                with _reading(connection):
                    act(connection)
            except psycopg.Error as error:
                if connection.closed:
                    self._drop()
                raise _translated(error) from error

    def _opened(self, deadline: float) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        if os.getpid() != self._pid:
            raise LedgerError("ledger-disconnected", "this connection belongs to another process", hint="open the ledger again")
        pause_seconds, said_at = 0.02, time.monotonic() + NOTICE_SECONDS
        while self._connection is None:
            try:
                self._connection = self._connect()
            except psycopg.errors.InsufficientPrivilege as error:
                raise _translated(error) from error
            except psycopg.Error as error:
                if re.search(_NO_RIGHT_TO_CONNECT, str(error)):
                    raise right_missing() from error
                reason = _permanent_reason(error)
                if reason:
                    raise _unreachable(reason) from error
                # A server that starts, stops or fails over refuses for a while.
                if time.monotonic() > deadline:
                    raise _unreachable("it could not be reached in time") from error
                if time.monotonic() > said_at:
                    _log.warning("the database of the ledger cannot be reached; trying for up to %.0f seconds", self._retry_seconds)
                    said_at = deadline + NOTICE_SECONDS
                time.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, 1.0)
        return self._connection

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        connection = psycopg.connect(
            self._dsn,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=min(CONNECT_SECONDS, math.ceil(self._reply_seconds)),
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=20_000,
        )
        try:
            connection.execute(f"SET search_path = {SEARCH_PATH}".encode())
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        connection.add_notice_handler(self._take_notice)
        return connection

    def _take_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        self._warned |= notice.sqlstate == _WARNING

    def _check(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        import psycopg

        row = connection.execute(_SETTINGS).fetchone()
        assert row is not None
        fsync, pages, commit, isolation, encoding, version, standby = row
        if standby and not self._standby:
            raise psycopg.OperationalError("a standby, for now")  # tried again: a failover may be under way
        if version < SERVER_VERSION_MIN or encoding != "UTF8":
            raise LedgerError("ledger-format", "the ledger needs PostgreSQL 14 or newer and a database in UTF8")
        if not self._standby and (fsync != "on" or pages != "on" or commit not in _DURABLE or isolation != "read committed"):
            raise _not_durable()
        try:
            versions = connection.execute("SELECT version_num FROM lapwing.alembic_version").fetchall()
        except psycopg.errors.UndefinedTable:
            versions = []
        if versions != [(self._schema_version,)]:
            raise LedgerError(
                "ledger-format", "the schema of the ledger is missing or has another version", hint="run `lapwing ledger install`"
            )

    def _drop(self) -> None:
        if self._connection is not None and self._pid == os.getpid():
            self._connection.close()
        self._connection = None


@contextmanager
def _reading(connection: psycopg.Connection[tuple[Any, ...]]) -> Iterator[None]:
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute(f"SET LOCAL search_path = {SEARCH_PATH}".encode())
        yield


def _permanent_reason(error: psycopg.Error) -> str:
    """Why a retry is useless; empty if a retry may help."""
    import psycopg

    if isinstance(error, psycopg.ProgrammingError):
        return "the connection string is invalid"
    return next((reason for pattern, reason in _PERMANENT if re.search(pattern, str(error))), "")


def _translated(error: psycopg.Error) -> LedgerError:
    """The server's error as a Lapwing error, without the server's text, which may quote a row."""
    match error.sqlstate:
        case "LW001":
            return _not_durable()
        case "LW002":
            return LedgerError("ledger-missing", "this source has no ledger in the database")
        case "LW003":
            return LedgerError("anchor-missing", "the anchors given here do not belong to the ledger", hint=ANCHORS_HINT)
        case "42501":
            return right_missing()
        case "55P03":
            return LedgerError("ledger-busy", "others locked the ledger for too long; nothing was changed", hint="try again")
        case "LW009" | "23514" | "23505" | "23502" | "23503":
            return LedgerError("ledger-rule", "a change was rejected because it would break a rule of the ledger")
        case _:
            return _unreachable()


def right_missing(owners: str = "") -> LedgerError:
    """The error for a role that lacks a right; ``owners`` is the role of owners, if the right is theirs."""
    member = f", a member of {owners}" if owners else ""
    hint = f"owner operations need the connection of an owner{member}: set LAPWING_DATABASE to it"
    return LedgerError("ledger-role", "the role of this connection may not do that in the ledger's database", hint=hint)


def _unreachable(reason: str = "") -> LedgerError:
    because = f": {reason}" if reason else ""
    return LedgerError("ledger-unreachable", f"the database of the ledger cannot be used{because}", hint="see the server's log")


def _not_durable() -> LedgerError:
    hint = "turn on fsync, full_page_writes and synchronous_commit, and set the isolation level to read committed"
    return LedgerError("ledger-not-durable", "the server does not make commits durable", hint=hint)
