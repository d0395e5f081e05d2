"""One connection to a server that keeps what it commits, opened again when it is lost.

Nothing here depends on a session: no prepared statements, no session settings, no locks beyond a statement. So a pooler that gives each
statement another server connection (pgbouncer, transaction mode) changes nothing. The search path is pinned when a connection is opened,
and nothing rests on that: what is sent with :meth:`Connection.ask` names the schema of everything in it and has no operators, and
:meth:`Connection.look` pins the path inside its transaction.

After a lost connection it is unknown whether the last statement was carried out. Statements that may safely be sent twice (each carries a
key of its own that the function looks for) are sent again until an answer arrives or the time is up; any other is not.
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
"""How long a statement is tried again after its connection was lost."""
REPLY_SECONDS = 60.0
"""How long one reply is waited for; longer than the server waits for a lock. A server whose synchronous standby is gone never replies."""
NOTICE_SECONDS = 5.0
"""After how long a wait is reported."""
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
"""What a server says, and no other code, when it stops waiting for a standby and calls the commit done."""
_log = logging.getLogger(__name__)
_PERMANENT = (
    (r'database "[^\n]*" does not exist', "there is no such database on the server"),
    (
        r"authentication failed|no password supplied|no pg_hba\.conf entry|role \"[^\n]*\" does not exist|not permitted to log in",
        "the server does not let this role in",
    ),
    (
        r"definition of service|invalid connection option|invalid URI|missing \"=\" after|unterminated quoted",
        "the connection string is wrong",
    ),
)
"""What a server that is only starting, stopping or failing over never says, in what servers and libpq say in English."""
_NO_RIGHT_TO_CONNECT = "permission denied for database"
"""Said in the same way; libpq gives no SQLSTATE before there is a session."""

ANCHORS_HINT = "all machines share one directory of anchors; if one is lost for good, two owners say so with `lapwing ledger anchor-lost`"

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
        """``standby``: for reading alone, so that a standby will do, and a server whose settings would not keep a change."""
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
        return self._tried(lambda connection: self._result(connection, statement, parameters), again=again)

    def look(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement that only reads, with a role that may read tables; sent again when its reply was lost."""

        def look_once(connection: psycopg.Connection[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
            with _reading(connection):
                return self._result(connection, statement, parameters)

        return self._tried(look_once, again=True)

    def _tried(self, act: Callable[[psycopg.Connection[tuple[Any, ...]]], list[tuple[Any, ...]]], *, again: bool) -> list[tuple[Any, ...]]:
        import psycopg

        deadline = time.monotonic() + self._retry_seconds
        with self._lock:
            if not self._used:
                raise LedgerError("ledger-disconnected", "this use of the ledger has ended", hint="open the ledger again")
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
                        message = "the connection broke before the reply came; the change may have been made or not"
                        raise LedgerError("reply-lost", message, hint="look at the history first") from error
                    if time.monotonic() > deadline:
                        raise _unreachable("it did not answer in time") from error

    def _result(
        self, connection: psycopg.Connection[tuple[Any, ...]], statement: str, parameters: Sequence[object]
    ) -> list[tuple[Any, ...]]:
        self._warned = False
        with patience(connection.fileno(), notice_seconds=NOTICE_SECONDS, reply_seconds=self._reply_seconds):
            cursor = connection.execute(statement.encode(), parameters)
        if self._warned:
            # An operator who cancels the wait for a standby turns it into a warning: the change is made, and not where it has to be.
            raise _not_durable()
        return cursor.fetchall() if cursor.description else []

    def read(self, act: Callable[[psycopg.Connection[tuple[Any, ...]]], None]) -> None:
        """Several reads of one state of the database: one transaction that takes no lock and can change nothing."""
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
                "ledger-format", "the schema of the ledger is missing or of another version", hint="run `lapwing ledger install`"
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
    """Why it makes no sense to try again; empty if it may."""
    import psycopg

    if isinstance(error, psycopg.ProgrammingError):
        return "the connection string is wrong"
    return next((reason for pattern, reason in _PERMANENT if re.search(pattern, str(error))), "")


def _translated(error: psycopg.Error) -> LedgerError:
    """What the server said, as one of our codes. Its text is left out: it may quote a row."""
    match error.sqlstate:
        case "LW001":
            return _not_durable()
        case "LW002":
            return LedgerError("ledger-missing", "there is no ledger of this source in the database")
        case "LW003":
            return LedgerError("anchor-missing", "the anchors given here are not those of the ledger", hint=ANCHORS_HINT)
        case "42501":
            return right_missing()
        case "55P03":
            return LedgerError("ledger-busy", "the ledger was held by others for too long; nothing was changed", hint="try again")
        case "LW009" | "23514" | "23505" | "23502" | "23503":
            return LedgerError("ledger-rule", "a change would have broken a rule of the ledger and was not made")
        case _:
            return _unreachable()


def right_missing(owners: str = "") -> LedgerError:
    """The error for a role that lacks a right; ``owners`` is the role that has it, where it is an owner's."""
    member = f", a member of {owners}" if owners else ""
    hint = f"owners' acts need the connection of an owner{member}: set LAPWING_DATABASE to it"
    return LedgerError("ledger-role", "the role of this connection may not do that in the ledger's database", hint=hint)


def _unreachable(reason: str = "") -> LedgerError:
    because = f": {reason}" if reason else ""
    return LedgerError("ledger-unreachable", f"the database of the ledger cannot be used{because}", hint="see the server's log")


def _not_durable() -> LedgerError:
    hint = "fsync, full_page_writes and synchronous_commit must be on, and the isolation level read committed"
    return LedgerError("ledger-not-durable", "the server would not keep what it commits", hint=hint)
