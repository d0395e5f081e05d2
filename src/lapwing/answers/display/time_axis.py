"""The keys of an answer that are times, and their labels: days and hours, months and years, and months of any year."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from itertools import pairwise
from typing import Any

from lapwing.answers.display.number_format import cell_text

_DAYS = (1, 2, 7, 14)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 12_000)
_SECONDS = (1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 43_200)
_TEXT = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?")
_YEAR_NAME, _MONTH_NAME = (re.compile(rf"(?<![a-z]){word}(?![a-z])", re.IGNORECASE) for word in ("year", "month"))
_LIKELY_YEARS = range(1900, 2101)
"""Whole numbers in a row, all of them among these, are years whatever the name of their column."""


class TimeStep(Enum):
    """The kind of the values of a key."""

    MOMENT = "moment"
    MONTH = "month"
    YEAR = "year"
    MONTH_OF_YEAR = "month of any year"


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Keys of an answer that are times."""

    keys: tuple[str, ...]
    at: Sequence[date | None]
    """The time of each row; a month without a year is one of 2000."""
    step: TimeStep


@dataclass(frozen=True, slots=True)
class Tick:
    """A value with its label."""

    at: float
    label: str


def time_axis(columns: Mapping[str, Sequence[Any]]) -> TimeAxis | None:
    """The one key that is a time, or a year and a month together; None if there is none or several."""
    found = [TimeAxis((name,), *moments) for name, values in columns.items() if (moments := _moments(name, values)) is not None]
    years, months = (next((axis for axis in found if axis.step is step), None) for step in (TimeStep.YEAR, TimeStep.MONTH_OF_YEAR))
    if len(found) == 2 and years is not None and months is not None:
        pairs = zip(years.at, months.at, strict=True)
        both = [None if year is None or month is None else date(year.year, month.month, 1) for year, month in pairs]
        return TimeAxis(tuple(axis.keys[0] for axis in found), both, TimeStep.MONTH)
    return found[0] if len(found) == 1 else None


def key_texts(name: str, values: Sequence[Any]) -> list[str]:
    """How the values of a key are written in a chart: days that all begin a month as months."""
    moments = _moments(name, values)
    forms = {TimeStep.YEAR: "%Y", TimeStep.MONTH: "%Y-%m", TimeStep.MONTH_OF_YEAR: "%b"}
    if moments is None or moments[1] not in forms:
        return [cell_text(value) for value in values]
    return [cell_text(None) if at is None else at.strftime(forms[moments[1]]) for at in moments[0]]


def _moments(name: str, values: Sequence[Any]) -> tuple[Sequence[date | None], TimeStep] | None:
    """Each value as a date or a time, where the key is one that has several."""
    known = {value for value in values if value is not None}
    if len(known) < 2:
        return None
    if all(isinstance(value, date) for value in known):
        return values, _step_of(known)
    if all(isinstance(value, str) for value in known):
        dates = {value: _date_of_text(value) for value in known}
        lengths = {len(value) for value in known}
        if None in dates.values() or len(lengths) > 1:
            return None
        return [dates.get(value) for value in values], TimeStep.MONTH if lengths == {7} else TimeStep.MOMENT
    if any(type(value) is not int for value in known):
        return None
    if _are_years(name, known):
        return [None if value is None else date(value, 1, 1) for value in values], TimeStep.YEAR
    if _MONTH_NAME.search(name) and known <= set(range(1, 13)):
        return [None if value is None else date(2000, value, 1) for value in values], TimeStep.MONTH_OF_YEAR
    return None


def _step_of(known: set[date]) -> TimeStep:
    if not all(value.day == 1 and (not isinstance(value, datetime) or value.time() == time()) for value in known):
        return TimeStep.MOMENT
    return TimeStep.YEAR if all(value.month == 1 for value in known) else TimeStep.MONTH


def _date_of_text(text: str) -> date | None:
    found = _TEXT.fullmatch(text)
    try:
        return None if found is None else date(int(found[1]), int(found[2]), int(found[3] or 1))
    except ValueError:
        return None


def _are_years(name: str, known: set[int]) -> bool:
    if _YEAR_NAME.search(name):
        return min(known) >= 1_000 and max(known) <= 9_999
    return len(known) > 2 and known <= set(_LIKELY_YEARS) and all(b - a == 1 for a, b in pairwise(sorted(known)))


def moment_number(value: date | datetime) -> float:
    """A date or a time as seconds; times without a zone count as UTC."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return value.replace(tzinfo=UTC).timestamp() if value.tzinfo is None else value.timestamp()


def moment_of(seconds: float) -> datetime:
    """The time of a number of seconds."""
    return datetime(1970, 1, 1) + timedelta(seconds=seconds)


def time_ticks(first: date, last: date, *, most: int, step: TimeStep = TimeStep.MOMENT) -> list[Tick]:
    """Round dates or times from the first to the last, no more than this many (two at least), and none between two steps."""
    begin, end = moment_number(first), moment_number(last)
    if step is TimeStep.MOMENT:
        for seconds in _SECONDS if isinstance(first, datetime) and end - begin < 86_400 * most / 2 else ():
            if (end - begin) / seconds <= most:
                return _of_clock(begin, end, seconds)
        for days in _DAYS:
            if (end - begin) / 86_400 / days <= most:
                return _of_days(begin, end, days)
    ticks: list[Tick] = []
    for months in _MONTHS if step is not TimeStep.YEAR else (months for months in _MONTHS if months % 12 == 0):
        ticks = _of_months(moment_of(begin), moment_of(end), months, with_years=step is not TimeStep.MONTH_OF_YEAR)
        if len(ticks) <= max(most, 2):
            break
    return ticks


def _of_clock(begin: float, end: float, step: int) -> list[Tick]:
    moments = range(math.ceil(begin / step) * step, math.floor(end) + 1, step)
    form = "%H:%M" if step >= 60 else "%H:%M:%S"
    return [Tick(at, moment_of(at).strftime(form)) for at in moments]


def _of_days(begin: float, end: float, days: int) -> list[Tick]:
    ticks: list[Tick] = []
    at = math.ceil(begin / 86_400)
    while at * 86_400 <= end:
        day = moment_of(at * 86_400)
        ticks.append(Tick(at * 86_400, f"{day.day} {day:%b}" + (f" {day.year}" if not ticks else "")))
        at += days
    return ticks


def _of_months(first: date, last: date, step: int, *, with_years: bool) -> list[Tick]:
    month = first.year * 12 + first.month - 1 + (first.day > 1)
    month = -(-month // step) * step
    ticks: list[Tick] = []
    while month <= last.year * 12 + last.month - 1:
        day = date(month // 12, month % 12 + 1, 1)
        is_first = with_years and (not ticks or day.month == 1)
        label = str(day.year) if step % 12 == 0 else f"{day:%b} {day.year}" if is_first else f"{day:%b}"
        ticks.append(Tick(moment_number(day), label))
        month += step
    return ticks
