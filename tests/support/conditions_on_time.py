"""Random conditions on a column of dates or timestamps, and random statements over two tables of events, in DuckDB's SQL."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lapwing.kernel.block_calendar import Period, block_of_day
from lapwing.kernel.calendar import to_days

FIRST, LAST = datetime.date(2023, 11, 20), datetime.date(2024, 4, 10)
DAYS = [FIRST + datetime.timedelta(days=number) for number in range((LAST - FIRST).days + 1)]
MOMENTS = (datetime.time.min, datetime.time(12, 30), datetime.time.max)
COMPARISONS = ("<", "<=", ">", ">=", "=")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
PARTS = ("day", "month", "year", "dow", "week")
UNITS = ("week", "month", "quarter", "year")


@dataclass
class Conditions:
    """A source of conditions on a column, whose constants it remembers: what happens at an end is seen in rows at that end alone."""

    rng: random.Random
    column: str
    timed: bool
    constants: list[datetime.datetime] = field(default_factory=list)
    number: str = "n"
    """A column of numbers beside it."""
    days: Sequence[datetime.date] = tuple(DAYS)

    def interval(self) -> str:
        """Comparisons joined by AND: the times that meet them are one stretch of time."""
        return " AND ".join(self._comparison() for _ in range(self.rng.choice([1, 1, 2, 3])))

    def any(self, depth: int = 2) -> str:
        """Any condition."""
        choice = self.rng.random()
        if depth == 0 or choice < 0.4:
            return self._simple()
        if choice < 0.5:
            return f"NOT ({self.any(depth - 1)})"
        if choice < 0.55:
            return f"(CASE WHEN {self.any(depth - 1)} THEN {self.any(0)} ELSE {self.any(0)} END)"
        word = self.rng.choice(["AND", "OR", "OR"])
        return f"({self.any(depth - 1)} {word} {self.any(depth - 1)})"

    def _comparison(self) -> str:
        choice = self.rng.random()
        if choice < 0.15:
            return f"{self.column} BETWEEN {self.constant()} AND {self.constant(late=True)}"
        sign, left, right = self.rng.choice(COMPARISONS), self.column, self.constant()
        if choice < 0.3:
            unit = self.rng.choice(UNITS)
            left, right = f"CAST(DATE_TRUNC('{unit}', {self.column}) AS DATE)", self.date(start_of=unit)
        elif choice < 0.5:
            left, right = f"CAST({self.column} AS DATE)", self.date()
        return f"{left} {sign} {right}" if self.rng.random() < 0.7 else f"{right} {MIRRORED[sign]} {left}"

    def _simple(self) -> str:
        column, choose = self.column, self.rng.choice
        sign = choose((*COMPARISONS, "<>"))
        kinds: list[Callable[[], str]] = [
            self._comparison,
            self._comparison,
            self._comparison,
            lambda: f"{column} {choose(['', 'NOT '])}IN ({', '.join(self.constant() for _ in range(choose([1, 2, 3])))})",
            lambda: f"{column} NOT BETWEEN {self.constant()} AND {self.constant(late=True)}",
            lambda: f"{column} <> {self.constant()}",
            lambda: f"EXTRACT({choose(PARTS)} FROM {column}) {sign} {choose([0, 1, 5, 12, 28, *self.years()])}",
            lambda: f"{column} IS {choose(['', 'NOT '])}NULL",
            lambda: f"CAST({column} AS DATE) + INTERVAL {choose([1, 40])} DAY {sign} {self.date()}",
            lambda: f"DATE_DIFF('day', {self.date()}, CAST({column} AS DATE)) {sign} {choose([-30, 0, 1, 7])}",
            lambda: f"COALESCE({column}, {self.constant()}) {sign} {self.constant()}",
            lambda: f"{self.number} {sign} {choose([0, 5, 9])}",
        ]
        return choose(kinds)()

    def years(self) -> tuple[int, int]:
        """The first and the last year."""
        return self.days[0].year, self.days[-1].year

    def constant(self, *, late: bool = False) -> str:
        """A constant of the column's own type, now and then beyond its ends."""
        day = self._day(late=late)
        if not self.timed:
            return f"DATE '{day}'"
        moment = datetime.datetime.combine(day, self.rng.choice(MOMENTS))
        self.constants.append(moment)
        return f"TIMESTAMP '{moment}'"

    def date(self, *, start_of: str | None = None) -> str:
        """A date, for a while at the start of a period."""
        day = self._day()
        if start_of is not None and self.rng.random() < 0.8:
            starts = {"week": day - datetime.timedelta(days=day.weekday()), "month": day.replace(day=1)}
            starts |= {"quarter": day.replace(month=day.month - (day.month - 1) % 3, day=1), "year": day.replace(month=1, day=1)}
            day = starts[start_of]
        return f"DATE '{day}'"

    def _day(self, *, late: bool = False) -> datetime.date:
        number = len(self.days)
        low, high = (number // 2, number + number // 15) if late else (-(number // 15), number + number // 15)
        return self.days[0] + datetime.timedelta(days=self.rng.randint(low, high))

    def times(self) -> list[datetime.datetime] | list[datetime.date]:
        """All days or, of timestamps, moments of all days, and those around the constants."""
        if not self.timed:
            return DAYS
        step = datetime.timedelta(microseconds=1)
        around = [constant + places * step for constant in self.constants for places in (-1, 0, 1)]
        found = [*(datetime.datetime.combine(day, time) for day in DAYS for time in MOMENTS), *around]
        return sorted({time for time in found if FIRST <= time.date() <= LAST})


def blocks_of(times: Iterable[datetime.date], every: Period) -> set[int]:
    """The blocks that these dates or moments are in."""
    return {block_of_day(to_days(time.date() if isinstance(time, datetime.datetime) else time), every) for time in times}


def statement_of_two(rng: random.Random) -> str:
    """A count over events and orders, each named once, under random conditions on their dates."""
    of_events, of_orders = (Conditions(rng, name, timed=False) for name in ("e.day", "o.day"))
    on_events, on_orders = of_events.any(1).replace("n ", "e.n "), of_orders.any(1).replace("n ", "o.n ")
    interval, of_both = of_orders.interval(), of_events.interval()
    same = rng.choice(["e.person = o.person", "e.person = o.person AND e.day = o.day", "e.person = o.person AND o.day >= e.day"])
    is_there = rng.choice(["", "NOT "])
    return rng.choice(
        [
            f"SELECT COUNT(*) FROM events e JOIN orders o ON {same} WHERE {on_events} AND {on_orders}",
            f"SELECT COUNT(*) FROM events e JOIN orders o ON {same} AND {interval} WHERE {on_events}",
            f"SELECT COUNT(*) FROM events e LEFT JOIN orders o ON {same} AND {interval} WHERE {on_events}",
            f"SELECT COUNT(*) FROM events e LEFT JOIN orders o ON {same} AND {of_both}",
            f"SELECT COUNT(*) FROM events e LEFT JOIN orders o ON {same} WHERE {on_events} AND {interval}",
            f"SELECT COUNT(*) FROM events e LEFT JOIN orders o ON {same} WHERE {on_events} AND o.day IS NULL",
            f"SELECT COUNT(*) FROM events e WHERE {is_there}EXISTS (SELECT 1 FROM orders o WHERE {same} AND {interval}) AND {on_events}",
            f"SELECT COUNT(*) FROM events e WHERE {on_events} AND e.person {is_there}IN (SELECT o.person FROM orders o WHERE {on_orders})",
            f"SELECT COUNT(*) FROM (SELECT e.day, e.n FROM events e UNION ALL SELECT o.day, o.n FROM orders o) e WHERE {on_events}",
            f"SELECT COUNT(*) FROM (SELECT e.person, e.day, COUNT(*) AS n FROM events e GROUP BY e.person, e.day) e WHERE {on_events}",
            "SELECT COUNT(*) FROM (SELECT e.day, e.n, ROW_NUMBER() OVER (PARTITION BY e.person ORDER BY e.day, e.n) AS r FROM events e) e"
            f" WHERE r <= {rng.choice([1, 2, 4])} AND {of_both.replace('e.day', 'day')}",
        ]
    )
