"""Budgets of blocks of time as text: what the blocks have spent, and what one person loses over a year."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

PLURALS = {"day": "days", "week": "weeks", "month": "months"}
NO_CAP = "no cap"


@dataclass(frozen=True, slots=True)
class BlocksView:
    """The blocks of a data set, from the ledger and the newest version. All of it is public."""

    every: str
    """Their period: day, week or month."""
    first: datetime.date | None
    """The first day of the first block that holds rows; None if no block is closed."""
    last: datetime.date | None
    """The last day of the last closed block."""
    spending: int
    """How many blocks have spent anything."""
    most: float
    """The largest part of its budget that any block has spent."""
    standing: float
    """The part that the tables without time have spent of theirs."""
    person_year: float
    """The most epsilon that one person has lost over a year."""
    person_cap: float | None
    """The owner's cap on that; None if there is none."""
    place: str = "the newest block"
    """Which blocks the spending beside it is of."""

    def lines(self) -> list[tuple[str, str]]:
        """Pairs of a name and a text, for printing."""
        closed = "none has closed yet" if self.first is None else f"{self.first} to {self.last} are closed"
        many = f"{self.spending:,} of them {'has' if self.spending == 1 else 'have'} spent, the most {self.most:.2%} of its budget"
        return [
            ("blocks", f"{PLURALS[self.every]}, each with this budget; {closed}; {many if self.spending else 'none has spent anything'}"),
            ("standing", f"{self.standing:.2%} is spent of the budget of tables without time, which is never renewed"),
            ("person-year", self.person_text),
        ]

    @property
    def person_text(self) -> str:
        """What one person has lost over a year, and the cap."""
        cap = NO_CAP if self.person_cap is None else f"the cap is {self.person_cap:g}"
        return f"epsilon {self.person_year:.3g} is the most that one person has lost over a year; {cap}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "every": self.every,
            "first": None if self.first is None else self.first.isoformat(),
            "last": None if self.last is None else self.last.isoformat(),
            "spending": self.spending,
            "most_spent": self.most,
            "standing_spent": self.standing,
            "person_year_epsilon": self.person_year,
            "person_cap": self.person_cap,
            "place": self.place,
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> BlocksView:
        """Inverse of :meth:`to_dict`."""
        first, last = (None if fields[end] is None else datetime.date.fromisoformat(fields[end]) for end in ("first", "last"))
        shares = fields["most_spent"], fields["standing_spent"], fields["person_year_epsilon"], fields["person_cap"]
        return cls(fields["every"], first, last, fields["spending"], *shares, fields["place"])
