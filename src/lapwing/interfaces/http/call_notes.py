"""What is noted of a call while it is answered, for the audit log and for traces. Every word of it is a public fact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lapwing.errors import CallRefused


def _no_line() -> None:
    raise CallRefused("audit-unwritable", "this call is not one that is charged")


@dataclass(slots=True)
class CallNotes:
    """Filled by the thread that answers, read when the reply has left."""

    write_begun: Callable[[], None] = _no_line
    """Writes the line of the audit log without which nothing is charged; what it raises is raised."""
    charges: list[int] = field(default_factory=list)
    """Numbers of the charges that the answer rests on: made by this call, or found."""
    holds: list[tuple[int, int]] = field(default_factory=list)
    """When something was charged, and the public moment until which its outcome was held back; nanoseconds since 1970."""
    _is_begun: bool = False

    def before_charge(self) -> None:
        """Once for a call, whatever it is charged for."""
        if not self._is_begun:
            self.write_begun()
            self._is_begun = True
