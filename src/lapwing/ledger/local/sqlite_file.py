"""One SQLite file, opened so that a completed COMMIT is on disk and a damaged file is refused.

Choices and reasons (in detail: ``docs/explanation/local-ledger.md``):

- rollback journal (``journal_mode=DELETE``) with ``synchronous=EXTRA``: the transaction ends when the journal is unlinked, and EXTRA
  also syncs the directory, so that the unlinking survives a power cut. Everything is then in one file.
- ``BEGIN IMMEDIATE`` for every transaction that may write: what it reads cannot change before it commits.
- only SQLite opens the file in this process: closing any other descriptor of it would drop SQLite's locks (a rule of POSIX locks).
- no transaction is in progress when the process forks, and a child never uses its parent's connection.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lapwing.errors import LedgerError

BUSY_TIMEOUT_SECONDS = 30
"""How long a transaction waits for another process before it fails without writing anything."""

_SYNCHRONOUS_EXTRA = 3
_SQLITE_VERSION_MIN = (3, 37, 0)


class _ForkGate:
    """Lets transactions of all threads run, but none while the process forks; a fork waits until they have ended."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = self._forks = 0
        self._own = threading.local()

    @property
    def _depth(self) -> int:
        """The nesting depth of this thread's transactions."""
        return getattr(self._own, "depth", 0)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        depth = self._depth
        if depth == 0:  # a nested transaction does not wait: the fork waits for the outer one
            with self._changed:
                self._changed.wait_for(lambda: self._forks == 0)
                self._running += 1
        self._own.depth = depth + 1
        try:
            yield
        finally:
            self._own.depth = depth
            if depth == 0:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

    def close(self) -> None:
        self._changed.acquire()
        self._forks += 1
        self._changed.wait_for(lambda: self._running == min(self._depth, 1))

    def open(self) -> None:
        self._forks -= 1
        self._changed.notify_all()
        self._changed.release()

    def open_in_child(self) -> None:
        """In the child only this thread exists; the waiting threads do not."""
        self._changed = threading.Condition()
        self._running, self._forks = min(self._depth, 1), 0


_fork_gate = _ForkGate()
os.register_at_fork(before=_fork_gate.close, after_in_parent=_fork_gate.open, after_in_child=_fork_gate.open_in_child)
_locks: dict[Path, threading.RLock] = {}


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Lock a file for one thread of this process, and against forks. Always lock the registry before a ledger.

    Each file has its own lock: a read of a ledger does not wait for other ledgers, nor for the registry.
    """
    with _fork_gate.transaction(), _locks.setdefault(path, threading.RLock()):
        yield


_abandoned: list[sqlite3.Connection] = []
"""Connections inherited over a fork. They are kept so that this process never closes what belongs to its parent."""


@dataclass(frozen=True, slots=True)
class Format:
    """What kind of file this is, and what must be in it."""

    name: str
    """For messages."""
    application_id: int
    version: int
    schema: str
    earlier: Format | None = None
    """The previous version, if opening a file of that version upgrades it."""
    upgrade: Callable[[sqlite3.Connection], None] | None = None
    """Upgrades such a file to this version, inside a transaction."""


class Database:
    """A connection to one file, for one process. Made by :func:`create_database` and :func:`open_database`."""

    __slots__ = ("_connection", "_identity", "_name", "_pid", "path")

    def __init__(self, path: Path, name: str, connection: sqlite3.Connection, identity: tuple[int, int]) -> None:
        self.path = path
        self._name = name
        self._connection: sqlite3.Connection | None = connection
        self._identity = identity
        self._pid = os.getpid()

    @property
    def is_usable(self) -> bool:
        """Whether this process opened it, and has not closed it."""
        return self._connection is not None and self._pid == os.getpid()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from its first moment. It commits at the end, and rolls back on any exception.

        When this returns normally the changes are durable and in the file that is now at ``path``.
        """
        with self._exclusive() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the file and changes nothing."""
        with self._exclusive() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                _roll_back(connection)

    def close(self) -> None:
        """Close the file. After a fork the child only drops its reference; the parent closes the connection."""
        with exclusive(self.path):
            connection, self._connection = self._connection, None
            if connection is None:
                return
            if self._pid == os.getpid():
                connection.close()
            else:
                _abandoned.append(connection)

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[sqlite3.Connection]:
        with exclusive(self.path), _translated(self._name):
            if self._connection is None or not self.is_usable:
                raise LedgerError("ledger-disconnected", f"this connection to the {self._name} is closed", hint="open it again")
            self._require_same_file()
            yield self._connection
            self._require_same_file()

    def _require_same_file(self) -> None:
        """Refuse to write into a file that was moved or replaced while it was open: the write would be lost."""
        if _identity(self.path) != self._identity:
            raise LedgerError(
                "ledger-replaced", f"the file of the {self._name} was moved or replaced while it was in use", hint="open it again"
            )


def create_database(path: Path, form: Format, fill: Callable[[sqlite3.Connection], None]) -> Database:
    """Create the file, durably and in one transaction, with the schema and what ``fill`` writes; only this user may read or write it."""
    _require_sqlite()
    path = path.resolve()
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        hint = "open it, or choose another path"
        raise LedgerError("ledger-exists", f"a file already exists where the {form.name} would be created", hint=hint) from None
    except OSError as error:
        raise LedgerError("ledger-unreachable", f"the file of the {form.name} cannot be created") from error
    try:
        database = _connect(path, form)
        with database.write() as connection:
            for statement in statements(form.schema):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {form.application_id}")
            connection.execute(f"PRAGMA user_version = {form.version}")
            fill(connection)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    _sync_directory(path.parent)
    return database


def open_database(path: Path, form: Format) -> Database:
    """Open an existing file; refuse one that is missing, unsafe, of another format or damaged."""
    _require_sqlite()
    path = path.resolve()
    _require_private(path, form)
    database = _connect(path, form)
    try:
        _upgrade(database, form)
        with database.read() as connection:
            _require_format(connection, form)
            _require_sound(connection, form.name, form.schema)
    except BaseException:
        database.close()
        raise
    return database


def database_bytes(path: Path, form: Format) -> bytes:
    """A consistent copy of an undamaged file, even while others use it."""
    database = open_database(path, form)
    try:
        with database.read() as connection:
            return connection.serialize()
    finally:
        database.close()


def _require_sqlite() -> None:
    if sqlite3.sqlite_version_info < _SQLITE_VERSION_MIN:
        raise LedgerError("sqlite-too-old", "the ledger needs SQLite 3.37 or newer", hint="use a Python built with a newer SQLite")


def _require_private(path: Path, form: Format) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise LedgerError("ledger-missing", f"there is no {form.name} at the given path") from None
    except OSError as error:
        raise LedgerError("ledger-unreachable", f"the file of the {form.name} cannot be reached") from error
    if not stat.S_ISREG(status.st_mode):
        raise LedgerError("ledger-unreachable", f"the {form.name} is not a regular file")
    if status.st_nlink > 1:
        # Two names give two journals, and a crash under one name is not repaired under the other.
        raise LedgerError("ledger-linked", f"the file of the {form.name} has a second name (a hard link)", hint="remove the other name")
    if stat.S_IMODE(status.st_mode) & 0o077:
        hint = "find out who could have changed it, then set its mode to 600"
        raise LedgerError("ledger-permissions", f"users other than its owner may use the file of the {form.name}", hint=hint)


def _connect(path: Path, form: Format) -> Database:
    """Connect, and check that the settings on which durability depends are in force."""
    identity = _identity(path)
    with _translated(form.name):
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
            for setting in (
                "synchronous = EXTRA",
                "fullfsync = ON",
                "foreign_keys = ON",
                "recursive_triggers = ON",
                "trusted_schema = OFF",
                "cell_size_check = ON",
                "mmap_size = 0",
            ):
                connection.execute(f"PRAGMA {setting}")
            in_force = (
                mode,
                connection.execute("PRAGMA synchronous").fetchone()[0],
                connection.execute("PRAGMA foreign_keys").fetchone()[0],
                connection.execute("PRAGMA recursive_triggers").fetchone()[0],
            )
        except BaseException:
            connection.close()
            raise
    if in_force != ("delete", _SYNCHRONOUS_EXTRA, 1, 1) or _identity(path) != identity or identity is None:
        connection.close()
        raise LedgerError("ledger-unreachable", f"the {form.name} cannot be opened with the settings that make it durable")
    return Database(path, form.name, connection, identity)


def _upgrade(database: Database, form: Format) -> None:
    """Upgrade an undamaged file of an earlier version, one version at a time, each in one transaction."""
    if form.earlier is None or form.upgrade is None:
        return
    _upgrade(database, form.earlier)
    with database.read() as connection:
        if not _is_earlier(connection, form):
            return
    with database.write() as connection:
        if _is_earlier(connection, form):  # another process may have upgraded it already
            _require_sound(connection, form.name, form.earlier.schema)
            form.upgrade(connection)
            connection.execute(f"PRAGMA user_version = {form.version}")


def _is_earlier(connection: sqlite3.Connection, form: Format) -> bool:
    marks = connection.execute("PRAGMA application_id").fetchone()[0], connection.execute("PRAGMA user_version").fetchone()[0]
    return marks == (form.application_id, form.version - 1)


def _require_format(connection: sqlite3.Connection, form: Format) -> None:
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application_id != form.application_id:
        raise LedgerError("ledger-format", f"the file is not a {form.name} of Lapwing")
    if version > form.version:
        raise LedgerError("ledger-format", f"the {form.name} was written by a newer Lapwing", hint="use that version or a later one")
    if version < form.version:
        raise LedgerError(
            "ledger-format", f"the {form.name} has an older format that this Lapwing does not read", hint="use an older version of Lapwing"
        )


def _require_sound(connection: sqlite3.Connection, name: str, expected: str) -> None:
    """Refuse a file with damaged pages, or with a table, constraint or trigger added, changed or removed."""
    checked = connection.execute("PRAGMA integrity_check(1)").fetchall()
    schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    if checked != [("ok",)] or set(schema) != _expected_schema(expected):
        raise _damaged(name)


@lru_cache(maxsize=8)
def _expected_schema(schema: str) -> frozenset[tuple[str, str, str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in statements(schema):
            connection.execute(statement)
        return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))


def statements(schema: str) -> Iterator[str]:
    """The statements of a schema one by one: ``executescript`` would commit the transaction it runs in."""
    pending = ""
    for line in schema.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""


def _roll_back(connection: sqlite3.Connection) -> None:
    # A failed rollback leaves the transaction open; the next BEGIN then fails, so nothing is served from it.
    with contextlib.suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextlib.contextmanager
def _translated(name: str) -> Iterator[None]:
    """Translate SQLite's errors into Lapwing's. SQLite's text stays in the chain of causes; it names tables and rules, never a row."""
    try:
        yield
    except UnicodeDecodeError as error:
        # SQLite quotes damaged schema text in its message, and the driver fails to read the message. The text itself is not kept.
        raise _damaged(name) from UnicodeError(error.reason)
    except sqlite3.Error as error:
        # The driver reports text that is not UTF-8 without a code: Lapwing never writes such text.
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise LedgerError("ledger-busy", f"another process locked the {name} for too long", hint="try again") from error
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                raise _damaged(name) from error
            case sqlite3.SQLITE_CONSTRAINT:
                raise LedgerError("ledger-rule", f"a change was rejected because it would break a rule of the {name}") from error
            case _:
                raise LedgerError("ledger-unreachable", f"the {name} cannot be read or written") from error


def _damaged(name: str) -> LedgerError:
    return LedgerError("ledger-damaged", f"the file of the {name} is damaged", hint="restore a backup, then open it with an override")


def _identity(path: Path) -> tuple[int, int] | None:
    """The identity of the file at the path now. ``stat`` opens nothing, so it cannot disturb SQLite's locks."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _sync_directory(directory: Path) -> None:
    """Make the directory entry of a new file durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
