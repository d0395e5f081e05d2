"""What is noted of a call while it is answered, for the audit log and for traces. Every word of it is a public fact."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class CallNotes:
    """Filled by the thread that answers, read when the reply has left."""

    charges: list[int] = field(default_factory=list)
    """Numbers of the charges that the answer rests on: made by this call, or found."""
    holds: list[tuple[int, int]] = field(default_factory=list)
    """When something was charged, and the public moment until which its outcome was held back; nanoseconds since 1970."""
