"""Abandoned questions: whether they are charged, and their outcome."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from lapwing.answers.answer import Answer
from lapwing.curator.cost_estimate import CostEstimate, Hold
from lapwing.errors import CallRefused
from lapwing.interfaces.http.call_notes import CallNotes
from lapwing.interfaces.http.problems import shown

NOTHING_CHARGED = "nothing was charged"
_AGAIN = "asking it again is free"


@dataclass(slots=True)
class RunningRequest:
    """A question that runs in the pool, independent of its client."""

    notes: CallNotes
    finished: Future[Answer] = field(default_factory=Future)
    told: bool = False
    """Whether the session was told that it continues."""
    _gate: threading.Lock = field(default_factory=threading.Lock)
    _is_left: bool = False
    _begun_to_charge: bool = False

    def before_charge(self, _: CostEstimate) -> Hold:
        """An abandoned question is not charged, unless a part of it already was: then all of it is charged, so that there is an answer."""
        with self._gate:
            if self._is_left and not self._begun_to_charge:
                raise CallRefused("wire-cancelled", "the question was cancelled before it was charged")
            self._begun_to_charge = True
        return _at_once

    def leave(self) -> None:
        """Mark it as abandoned."""
        with self._gate:
            self._is_left = True

    def charge(self) -> str:
        """What is known about its charge."""
        if self.finished.done():
            error = self.finished.exception()
            if error is None:
                return f"it is answered: {self.finished.result().summary()}; {_AGAIN}"
            if not self.notes.charges:
                return NOTHING_CHARGED
        if self.notes.charges:
            return f"it is charged (charge {', '.join(map(str, self.notes.charges))}); once it is answered, {_AGAIN}"
        if not self._begun_to_charge:
            return NOTHING_CHARGED
        return "it may still be charged: the next statement of this session reports it, and once it is answered, asking it again is free"

    def outcome(self) -> str:
        """Its outcome, reported with a later statement."""
        if not self.finished.done():
            return f"an interrupted statement continues: {self.charge()}"
        error = self.finished.exception()
        if isinstance(error, Exception) and self.notes.charges:
            return f"an interrupted statement failed ({shown(error, to_owner=False).code}): {self.charge()}"
        return f"an interrupted statement: {self.charge()}"


def _at_once() -> None:
    pass
