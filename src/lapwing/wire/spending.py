"""How much of the budget the wire may spend by itself: a share for each session and each day, against tools that explore on their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lapwing.answers.answer import Answer
from lapwing.client.dataset import DataSet
from lapwing.curator.public_work import Hold, PublicWork, also_told_before_charges
from lapwing.errors import BudgetRefused


@dataclass(slots=True)
class DailySpending:
    """What each person spent on the wire today, as a share of a data set's budget, in one worker."""

    most: float
    _day: str = ""
    _spent: dict[tuple[str, str], float] = field(default_factory=dict)
    _gate: threading.Lock = field(default_factory=threading.Lock)

    def spent(self, who: str, data_set: str) -> float:
        """The share so far."""
        with self._gate:
            self._turn()
            return self._spent.get((who, data_set), 0.0)

    def add(self, who: str, data_set: str, share: float) -> None:
        """Something was paid."""
        with self._gate:
            self._turn()
            self._spent[who, data_set] = self._spent.get((who, data_set), 0.0) + share

    def _turn(self) -> None:
        today = datetime.now(UTC).date().isoformat()
        if today != self._day:
            self._day, self._spent = today, {}


@dataclass(slots=True)
class SessionSpending:
    """What one session spent, and what it may."""

    who: str
    data_set: str
    most: float
    daily: DailySpending
    so_far: float = 0.0

    def limited(self, work: Callable[[DataSet], Answer]) -> Callable[[DataSet], Answer]:
        """The same work, which is charged for nothing once the shares are used up; what is free stays free."""

        def watched(data_set: DataSet) -> Answer:
            with also_told_before_charges(self._check):
                answer = work(data_set)
            self._count(answer)
            return answer

        return watched

    def _check(self, _: PublicWork) -> Hold:
        if self.so_far >= self.most:
            hint = "connect again, or have [wire] session_share raised; answers that were paid for stay free"
            raise BudgetRefused("wire-limit", f"this session has spent its share of the budget ({self.most:.0%})", hint=hint)
        if self.daily.spent(self.who, self.data_set) >= self.daily.most:
            hint = "go on tomorrow, or have [wire] day_share raised; answers that were paid for stay free"
            raise BudgetRefused("wire-limit", f"the share of the budget for a day on the wire is spent ({self.daily.most:.0%})", hint=hint)
        return _at_once

    def _count(self, answer: Answer) -> None:
        if answer.cost.free:
            return
        total = float(answer.remaining.to_dict()["loss"]["total"])
        share = (answer.cost.epsilon if answer.cost.rho is None else float(answer.cost.rho)) / total if total else 1.0
        self.so_far += share
        self.daily.add(self.who, self.data_set, share)


def _at_once() -> None:
    pass
