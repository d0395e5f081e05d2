"""What a session keeps: statements under names, and portals, which are statements with their values and the rows that are left."""

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
"""Statements, and portals, that one session may keep."""
PERSON_BYTES_MAX = 32 * 2**20
"""What all sessions of one person may keep in one worker: statements, values of parameters, rows."""
_THING_BYTES = 1_000
"""Of a statement or a portal, beside its texts."""


class PortalMemory:
    """The storage in use by each person. Unreferenced results are not counted: nothing has to be released explicitly."""

    def __init__(self, most: int = PERSON_BYTES_MAX) -> None:
        self._most = most
        self._kept: Counter[str] = Counter()
        self._freed: deque[tuple[str, int]] = deque()

    def keep(self, who: str, thing: object, size: int) -> None:
        """Count a thing until it is gone; ``wire-limit`` where that is too much."""
        while self._freed:
            name, freed = self._freed.popleft()
            self._kept[name] -= freed
            if not self._kept[name]:
                del self._kept[name]
        if self._kept[who] + size > self._most:
            message = f"your sessions keep too much: together at most {self._most // 2**20} MiB of statements, cursors and rows"
            raise CallRefused("wire-limit", message, hint="CLOSE ALL, DEALLOCATE ALL, or read the rows that were asked for")
        self._kept[who] += size
        weakref.finalize(thing, self._freed.append, (who, size)).atexit = False


@dataclass(slots=True, eq=False, weakref_slot=True)
class PreparedStatement:
    """A statement that was read; ``command`` is None for an empty one."""

    command: Command | None
    text: str
    """All that the client sent, to point into."""
    types: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    """Types as the client said them; 0 where it said none."""
    described: tuple[FieldSpec, ...] | None = None
    """Columns that were already described: execution must return the same."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class PortalInUse:
    """A statement with its values, and what came of it so far."""

    statement: PreparedStatement
    values: Sequence[bytes | None] = ()
    forms: Sequence[int] = ()
    formats: Sequence[int] = ()
    """How columns are wanted, as the client said it."""
    hold: bool = False
    described: tuple[FieldSpec, ...] | None = None
    """The same, of this portal."""
    outcome: StatementOutcome | None = None
    at: int = 0


@dataclass(slots=True)
class NamedObjects:
    """By their names, of one session."""

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
            raise CallRefused("wire-name", f"there is already a prepared statement {name[:60]!r}")
        if len(self.statements) >= KEPT_MAX:
            raise CallRefused("wire-limit", "too many prepared statements", hint="DEALLOCATE ALL")
        self.together.keep(self.who, statement, _THING_BYTES + 2 * len(statement.text))
        self.statements[name] = statement

    def keep_portal(self, name: str, portal: PortalInUse) -> None:
        """Keep a portal; only the one without a name is replaced."""
        if name and name in self.portals:
            raise CallRefused("wire-name", f"there is already a cursor {name[:60]!r}")
        if len(self.portals) >= KEPT_MAX:
            raise CallRefused("wire-limit", "too many cursors", hint="CLOSE ALL")
        self.together.keep(self.who, portal, _THING_BYTES + sum(len(value or b"") for value in portal.values))
        self.portals[name] = portal

    def keep_rows(self, rows: RowsToSend) -> None:
        """Count rows until they are sent and forgotten."""
        self.together.keep(self.who, rows, rows.size)

    def end_transaction(self) -> None:
        """Portals end with the transaction, except for cursors WITH HOLD."""
        self.portals = {name: portal for name, portal in self.portals.items() if portal.hold}
