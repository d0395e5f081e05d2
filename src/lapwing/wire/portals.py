"""What a session keeps: statements under names, and portals, which are statements with their values and the rows that are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lapwing.errors import CallRefused
from lapwing.wire.commands import Command
from lapwing.wire.messages import FieldSpec
from lapwing.wire.results import StatementOutcome

KEPT_MAX = 1_000
"""Statements, and portals, that one session may keep."""


@dataclass(slots=True)
class KeptStatement:
    """A statement that was read; ``command`` is None for an empty one."""

    command: Command | None
    text: str
    """All that the client sent, to point into."""
    types: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    """Types as the client said them; 0 where it said none."""
    described: tuple[FieldSpec, ...] | None = None
    """Columns that were told already: whatever runs it must give them."""


@dataclass(slots=True)
class PortalInUse:
    """A statement with its values, and what came of it so far."""

    statement: KeptStatement
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
class KeptThings:
    """By their names."""

    statements: dict[str, KeptStatement] = field(default_factory=dict)
    portals: dict[str, PortalInUse] = field(default_factory=dict)

    def statement(self, name: str) -> KeptStatement:
        """The statement of this name."""
        if name not in self.statements:
            raise CallRefused("wire-name", f"there is no prepared statement {name[:60]!r}")
        return self.statements[name]

    def portal(self, name: str) -> PortalInUse:
        """The portal or cursor of this name."""
        if name not in self.portals:
            raise CallRefused("wire-name", f"there is no cursor {name[:60]!r}")
        return self.portals[name]

    def keep_statement(self, name: str, statement: KeptStatement) -> None:
        """Keep a statement; only the one without a name is replaced."""
        if name and name in self.statements:
            raise CallRefused("wire-name", f"there is already a prepared statement {name[:60]!r}")
        if len(self.statements) >= KEPT_MAX:
            raise CallRefused("wire-limit", "too many prepared statements", hint="DEALLOCATE ALL")
        self.statements[name] = statement

    def keep_portal(self, name: str, portal: PortalInUse) -> None:
        """Keep a portal; only the one without a name is replaced."""
        if name and name in self.portals:
            raise CallRefused("wire-name", f"there is already a cursor {name[:60]!r}")
        if len(self.portals) >= KEPT_MAX:
            raise CallRefused("wire-limit", "too many cursors", hint="CLOSE ALL")
        self.portals[name] = portal

    def end_transaction(self) -> None:
        """Portals end with the transaction, except for cursors WITH HOLD."""
        self.portals = {name: portal for name, portal in self.portals.items() if portal.hold}
