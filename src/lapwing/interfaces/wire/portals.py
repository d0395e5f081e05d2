"""What a session keeps: named statements, and portals, which are statements with their values and remaining rows."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from lapwing.errors import CallRefused
from lapwing.interfaces.wire.commands import Command
from lapwing.interfaces.wire.messages import FieldSpec
from lapwing.interfaces.wire.results import RowsToSend, StatementOutcome

KEPT_MAX = 1_000
"""How many statements, and how many portals, one session may keep."""
PERSON_BYTES_MAX = 32 * 2**20
"""Bytes that all sessions of one person may keep in one worker: statements, parameter values, rows."""
_THING_BYTES = 1_000
"""Bytes of a statement or a portal, besides its texts."""


class PortalMemory:
    """The storage in use by each person. Unreferenced results are not counted: nothing has to be released explicitly."""

    def __init__(self, most: int = PERSON_BYTES_MAX) -> None:
        self._most = most
        self._kept: Counter[str] = Counter()
        self._freed: deque[tuple[str, int]] = deque()

    def keep(self, who: str, thing: object, size: int) -> None:
        """Count an object until it is freed; ``wire-limit`` if the total is too large."""
        while self._freed:
            name, freed = self._freed.popleft()
            self._kept[name] -= freed
            if not self._kept[name]:
                del self._kept[name]
        if self._kept[who] + size > self._most:
            message = f"your sessions keep too much: together at most {self._most // 2**20} MiB of statements, cursors and rows"
            raise CallRefused("wire-limit", message, hint="CLOSE ALL, DEALLOCATE ALL, or read the remaining rows")
        self._kept[who] += size
        weakref.finalize(thing, self._freed.append, (who, size)).atexit = False


@dataclass(slots=True, eq=False, weakref_slot=True)
class PreparedStatement:
    """A parsed statement; ``command`` is None for an empty one."""

    command: Command | None
    text: str
    """The client's whole text, for error positions."""
    types: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    """Types that the client gave; 0 if it gave none."""
    described: tuple[FieldSpec, ...] | None = None
    """Columns that were already described: execution must return the same."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class PortalInUse:
    """A statement with its values, and its outcome so far."""

    statement: PreparedStatement
    values: Sequence[bytes | None] = ()
    forms: Sequence[int] = ()
    formats: Sequence[int] = ()
    """The formats of columns that the client requested."""
    hold: bool = False
    described: tuple[FieldSpec, ...] | None = None
    """The columns of this portal that were already described."""
    outcome: StatementOutcome | None = None
    at: int = 0


@dataclass(slots=True)
class NamedObjects:
    """The named statements and portals of one session."""

    who: str
    together: PortalMemory
    statements: dict[str, PreparedStatement] = field(default_factory=dict)
    portals: dict[str, PortalInUse] = field(default_factory=dict)

    def statement(self, name: str) -> PreparedStatement:
        """The statement of this name."""
        if name not in self.statements:
            raise CallRefused("wire-name", f"there is no prepared statement {name[:60]!r}")
        return self.statements[name]

    def portal(self, name: str) -> PortalInUse:
        """The portal or cursor of this name."""
        if name not in self.portals:
            raise CallRefused("wire-name", f"there is no cursor {name[:60]!r}")
        return self.portals[name]

    def keep_statement(self, name: str, statement: PreparedStatement) -> None:
        """Keep a statement; only the one without a name is replaced."""
        if name and name in self.statements:
            raise CallRefused("wire-name", f"the prepared statement {name[:60]!r} exists already")
        if len(self.statements) >= KEPT_MAX:
            raise CallRefused("wire-limit", "too many prepared statements", hint="DEALLOCATE ALL")
        self.together.keep(self.who, statement, _THING_BYTES + 2 * len(statement.text))
        self.statements[name] = statement

    def keep_portal(self, name: str, portal: PortalInUse) -> None:
        """Keep a portal; only the one without a name is replaced."""
        if name and name in self.portals:
            raise CallRefused("wire-name", f"the cursor {name[:60]!r} exists already")
        if len(self.portals) >= KEPT_MAX:
            raise CallRefused("wire-limit", "too many cursors", hint="CLOSE ALL")
        self.together.keep(self.who, portal, _THING_BYTES + sum(len(value or b"") for value in portal.values))
        self.portals[name] = portal

    def keep_rows(self, rows: RowsToSend) -> None:
        """Count rows until they are sent and freed."""
        self.together.keep(self.who, rows, rows.size)

    def end_transaction(self) -> None:
        """Portals end with the transaction, except for cursors WITH HOLD."""
        self.portals = {name: portal for name, portal in self.portals.items() if portal.hold}
