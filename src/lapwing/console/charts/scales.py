"""From values to places: numbers and times on a line, and the round numbers and dates written beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from lapwing.answers.number_format import figure

_DAYS = (1, 2, 7, 14)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
_SECONDS = (1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 43_200)


@dataclass(frozen=True, slots=True)
class Scale:
    """A line of numbers from ``low`` to ``high`` on the screen between two places."""

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        """Where a value is; one beyond the line is a little beyond its end, where it is cut off."""
        share = (value - self.low) / (self.high - self.low)
        return self.begin + min(max(share, -0.1), 1.1) * (self.end - self.begin)


@dataclass(frozen=True, slots=True)
class Tick:
    """A value with what is written beside it."""

    at: float
    label: str


def reach(ends: list[float], *, from_zero: bool) -> tuple[float, float]:
    """The least and the most that a scale has to show; never nothing."""
    finite = [end for end in ends if math.isfinite(end)] + ([0.0] if from_zero else [])
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if low == high:
        room = abs(low) * 0.1 or 1.0
        low, high = low - (0 if from_zero and low >= 0 else room), high + room
    room = 0.04 * (high - low)
    return (low if from_zero and low == 0 else low - room), (high if from_zero and high == 0 else high + room)


def number_ticks(low: float, high: float, *, most: int) -> list[Tick]:
    """Round numbers between two, no more than this many."""
    step = _step((high - low) / max(most, 1))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [Tick(at * step, figure(at * step, digits=6)) for at in range(first, last + 1)]


def _step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def moment_number(value: date | datetime) -> float:
    """A date or a time as seconds; times without a zone are taken as they stand."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return value.replace(tzinfo=UTC).timestamp() if value.tzinfo is None else value.timestamp()


def time_ticks(first: date | datetime, last: date | datetime, *, most: int) -> list[Tick]:
    """Round dates or times from the first to the last, no more than this many (two at least)."""
    begin, end = moment_number(first), moment_number(last)
    for seconds in _SECONDS if isinstance(first, datetime) and end - begin < 86_400 * most / 2 else ():
        if (end - begin) / seconds <= most:
            return _of_clock(begin, end, seconds)
    for days in _DAYS:
        if (end - begin) / 86_400 / days <= most:
            return _of_days(begin, end, days)
    for months in _MONTHS:
        ticks = _of_months(_day(begin), _day(end), months)
        if len(ticks) <= max(most, 2):
            return ticks
    return _of_months(_day(begin), _day(end), 12 * 1000)


def _day(seconds: float) -> date:
    return (datetime(1970, 1, 1) + timedelta(seconds=seconds)).date()


def _of_clock(begin: float, end: float, step: int) -> list[Tick]:
    moments = range(math.ceil(begin / step) * step, math.floor(end) + 1, step)
    form = "%H:%M" if step >= 60 else "%H:%M:%S"
    return [Tick(at, (datetime(1970, 1, 1) + timedelta(seconds=at)).strftime(form)) for at in moments]


def _of_days(begin: float, end: float, days: int) -> list[Tick]:
    ticks: list[Tick] = []
    at = math.ceil(begin / 86_400)
    while at * 86_400 <= end:
        day = _day(at * 86_400)
        ticks.append(Tick(at * 86_400, f"{day.day} {day:%b}" + (f" {day.year}" if not ticks else "")))
        at += days
    return ticks


def _of_months(first: date, last: date, step: int) -> list[Tick]:
    month = first.year * 12 + first.month - 1
    month += (first.day > 1) + 0
    month = -(-month // step) * step
    ticks: list[Tick] = []
    while month <= last.year * 12 + last.month - 1:
        day = date(month // 12, month % 12 + 1, 1)
        label = str(day.year) if step % 12 == 0 else f"{day:%b} {day.year}" if not ticks or day.month == 1 else f"{day:%b}"
        ticks.append(Tick(moment_number(day), label))
        month += step
    return ticks
