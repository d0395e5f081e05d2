"""Connections to one worker: sessions of people, and strangers, who have not authenticated. Neither takes the other's slots."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lapwing.errors import CallRefused

STRANGERS_MAX = 200
"""Connections that have not logged in; a new one drops the oldest, and first of all one that sent nothing."""


@dataclass(slots=True)
class Connections:
    """Counts connections and refuses excess ones."""

    sessions_max: int
    sessions_per_person: int
    _strangers: dict[asyncio.Task[None], bool] = field(default_factory=dict)
    """Whether each has sent something, oldest first."""
    _people: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def stranger(self, task: asyncio.Task[None]) -> Iterator[None]:
        """A slot for a new connection."""
        if len(self._strangers) >= STRANGERS_MAX:
            dropped = next((one for one, said in self._strangers.items() if not said), next(iter(self._strangers)))
            del self._strangers[dropped]
            dropped.cancel()
        self._strangers[task] = False
        try:
            yield
        finally:
            self._strangers.pop(task, None)

    def heard(self, task: asyncio.Task[None]) -> None:
        """The connection has sent something."""
        if task in self._strangers:
            self._strangers[task] = True

    @contextmanager
    def session(self, who: str) -> Iterator[None]:
        """A slot for a session of this person; ``busy`` if there is none."""
        if self._people[who] >= self.sessions_per_person:
            raise CallRefused("busy", f"you have {self.sessions_per_person} sessions already", hint="close some of them")
        if self._people.total() >= self.sessions_max:
            raise CallRefused("busy", "too many sessions", hint="connect again in a moment")
        self._people[who] += 1
        try:
            yield
        finally:
            self._people[who] -= 1
            if not self._people[who]:
                del self._people[who]
