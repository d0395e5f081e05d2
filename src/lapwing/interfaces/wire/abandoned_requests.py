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
_AGAIN = "asking the same again is free"


@dataclass(slots=True)
class RunningRequest:
    """A question from its start in the pool to its end, independent of its client."""

    notes: CallNotes
    finished: Future[Answer] = field(default_factory=Future)
    told: bool = False
    """That it goes on."""
    _gate: threading.Lock = field(default_factory=threading.Lock)
    _is_left: bool = False
    _begun_to_charge: bool = False

    def before_charge(self, _: CostEstimate) -> Hold:
        """An abandoned question is not charged, unless a part of it has been: then all of it is, so that there is an answer."""
        with self._gate:
            if self._is_left and not self._begun_to_charge:
                raise CallRefused("wire-cancelled", "the question was broken off before it was charged")
            self._begun_to_charge = True
        return _at_once

    def leave(self) -> None:
        """Mark it as abandoned."""
        with self._gate:
            self._is_left = True

    def charge(self) -> str:
        """What is known of its charge."""
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
        return "it may still be charged: the next statement of this session tells, and once it is answered, asking the same again is free"

    def outcome(self) -> str:
        """What came of it, for a statement later on."""
        if not self.finished.done():
            return f"a statement that was broken off goes on: {self.charge()}"
        error = self.finished.exception()
        if isinstance(error, Exception) and self.notes.charges:
            return f"a statement that was broken off failed ({shown(error, to_owner=False).code}): {self.charge()}"
        return f"of a statement that was broken off: {self.charge()}"


def _at_once() -> None:
    pass
