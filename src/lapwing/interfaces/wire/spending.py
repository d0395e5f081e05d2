"""How much of the budget the wire may spend: a share for each session and each day, because tools send statements by themselves.

The cost of a charge is taken from both shares before the charge, so that concurrent questions cannot exceed them together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lapwing.answers.answer import Answer
from lapwing.curator.cost_estimate import CostEstimate, Hold, also_on_charge
from lapwing.data_set import DataSet
from lapwing.errors import BudgetRefused
from lapwing.interfaces.http.call_notes import CallNotes

_ROUNDING = 1e-9


@dataclass(slots=True)
class DailySpending:
    """What each person spent on the wire today, as a share of a data set's budget, in one worker."""

    most: float
    _day: str = ""
    _spent: dict[tuple[str, str], float] = field(default_factory=dict)
    _gate: threading.Lock = field(default_factory=threading.Lock)

    def take(self, who: str, data_set: str, share: float) -> bool:
        """Take this share if it is left today; returns whether it was."""
        with self._gate:
            today = datetime.now(UTC).date().isoformat()
            if today != self._day:
                self._day, self._spent = today, {}
            spent = self._spent.get((who, data_set), 0.0) + share
            if spent > self.most + _ROUNDING:
                return False
            self._spent[who, data_set] = spent
            return True

    def give_back(self, who: str, data_set: str, share: float) -> None:
        """Return a share that was not spent."""
        with self._gate:
            self._spent[who, data_set] = max(self._spent.get((who, data_set), 0.0) - share, 0.0)


@dataclass(slots=True)
class SessionSpending:
    """What one session has spent and may spend."""

    who: str
    data_set: str
    most: float
    daily: DailySpending
    so_far: float = 0.0
    _gate: threading.Lock = field(default_factory=threading.Lock)

    def limited(self, work: Callable[[DataSet], Answer], notes: CallNotes) -> Callable[[DataSet], Answer]:
        """The same work, limited to what the shares can pay; free answers stay free. ``notes`` records its charges."""

        def watched(data_set: DataSet) -> Answer:
            total = data_set.curator.ledger.balance().budget.loss_total
            taken: list[tuple[float, int]] = []

            def take(charge: CostEstimate) -> Hold:
                share = charge.loss / total if total else 1.0
                self._take(share)
                taken.append((share, len(notes.charges)))
                return _at_once

            try:
                with also_on_charge(take):
                    return work(data_set)
            finally:
                for share, charges_before in taken:
                    if len(notes.charges) <= charges_before:  # it was never charged
                        self._give_back(share)

        return watched

    def _take(self, share: float) -> None:
        with self._gate:
            if self.so_far + share > self.most + _ROUNDING:
                hint = "connect again, or ask the operator to raise [wire] session_share; answers that were paid for stay free"
                raise BudgetRefused(
                    "wire-limit", f"this session would spend more than its share of the budget ({self.most:.0%})", hint=hint
                )
            if not self.daily.take(self.who, self.data_set, share):
                hint = "continue tomorrow, or ask the operator to raise [wire] day_share; answers that were paid for stay free"
                message = f"this would exceed your share of the budget for a day on the wire ({self.daily.most:.0%})"
                raise BudgetRefused("wire-limit", message, hint=hint)
            self.so_far += share

    def _give_back(self, share: float) -> None:
        with self._gate:
            self.so_far -= share
            self.daily.give_back(self.who, self.data_set, share)


def _at_once() -> None:
    pass
