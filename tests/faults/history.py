"""What clients of a ledger saw, written down before and after every step of the protocol.

An event is one line, appended with one system call. A process that is killed takes nothing back that it has written: the bytes are with the
kernel by then, which is not killed. (No sync: nothing here survives a power cut, nor needs to.) A kill can cut the line that is just being
written; every line begins with a line feed of its own, so that a cut one spoils no other, and is left out when the file is read.

The order of the lines is an order in which the events can have happened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class What(StrEnum):
    """What a client did or heard."""

    ASKED = "asked"
    """It is about to call ``reserve``."""
    PERMIT = "permit"
    """``reserve`` returned a permit."""
    RUNNING = "running"
    """It is about to read data under the permit."""
    RAN = "ran"
    """It has the answer, and is about to call ``commit``."""
    SENT = "sent"
    """The answer went to the analyst, after ``commit`` returned or because ``reserve`` or ``find`` returned it as stored."""
    REFUSED = "refused"
    """A call ended in a decision: nothing was or will be done for this request by this client."""
    LOST = "lost"
    """A call ended without telling what came of it."""
    FORFEITED = "forfeited"
    """``forfeit`` returned."""
    STOPPED = "stopped"
    """It is about to be killed or stopped, at the step that ``code`` names; to read a history by, the oracle ignores it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line. ``digest``, ``loss`` and ``delta`` are those of the request, in every event about it."""

    what: What
    source_id: str
    analyst: str
    key: str
    digest: str
    loss: int
    delta: int
    client: int = 0
    """Process number."""
    charge_id: int = 0
    answer: str = ""
    """SHA-256 of the answer."""
    code: str = ""


Write = Callable[[Event], None]


def writer(path: Path) -> Write:
    """Appends events to a file that several processes may write at once."""
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)

    def write(event: Event) -> None:
        line = f"\n{json.dumps(asdict(event), separators=(',', ':'))}\n".encode()
        assert os.write(descriptor, line) == len(line)

    return write


def read(path: Path) -> list[Event]:
    """All events of a file, without those lines that a kill cut short."""
    events = []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        if line.startswith(b"{") and line.endswith(b"}"):
            fields = json.loads(line)
            events.append(Event(**{**fields, "what": What(fields["what"])}))
    return events
