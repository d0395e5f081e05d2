"""What a call records while it is answered, for the audit log and for traces. It holds only public facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lapwing.errors import CallRefused


def _no_line() -> None:
    raise CallRefused("audit-unwritable", "this call must not charge")


@dataclass(slots=True)
class CallNotes:
    """The answering thread fills it; it is read after the reply was sent."""

    write_begun: Callable[[], None] = _no_line
    """Writes the audit-log line that must precede a charge; its errors are passed on."""
    charges: list[int] = field(default_factory=list)
    """Ids of the charges that the answer is based on, made by this call or earlier."""
    holds: list[tuple[int, int]] = field(default_factory=list)
    """The time of each charge, and the public moment until which its outcome was withheld; nanoseconds since 1970."""
    _is_begun: bool = False

    def before_charge(self) -> None:
        """Write that line, once per call."""
        if not self._is_begun:
            self.write_begun()
            self._is_begun = True
