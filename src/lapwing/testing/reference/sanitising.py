"""What preparation must store for one raw value, whatever type the source gave it.

The rules: NaN, infinities and what cannot be read as the declared type become NULL; numbers are clamped to the declared ends and put on the
grid, halves up; dates outside the declared range become NULL, because a clamped date would be a false one; text outside a declared list
becomes ``other`` or NULL; keys are never clamped. Text is read as a number the way engines read it: spaces around it and single
underscores between digits are ignored.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TypeAlias, assert_never

from lapwing.catalog import TableDecl
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    RealDomain,
    TextDomain,
    TimestampDomain,
    grid_integer,
)
from lapwing.testing.reference.calendar_parts import DAY_MICROSECONDS
from lapwing.testing.reference.evaluation import Stored, half_up


@dataclass(frozen=True, slots=True)
class RawDay:
    """A date of the source in days since 1970-01-01; it may lie outside Python's calendar."""

    days: int


@dataclass(frozen=True, slots=True)
class RawMoment:
    """A timestamp of the source in microseconds since 1970-01-01; it may lie outside Python's calendar."""

    microseconds: int


Raw: TypeAlias = bool | int | float | Decimal | str | bytes | RawDay | RawMoment | datetime.time | list[int] | dict[str, int] | None
"""A value of a source: Python's own types, except for dates."""

DAY_INFINITE = 2**31 - 1
MOMENT_INFINITE = 2**63 - 1
"""The stored numbers that stand for infinity (and, negated, for minus infinity)."""

_SPACES = " \t\n\v\f\r"
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_NUMBER = re.compile(rf"[+-]?(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"([0-9]{1,4})-([0-9]{1,2})-([0-9]{1,2})(?:[ T]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{1,6}))?)?")
_TRUE, _FALSE = frozenset(["true", "t", "yes", "y", "1"]), frozenset(["false", "f", "no", "n", "0"])


class Unmodelled(Exception):
    """The text an engine makes of such a value is its own affair; only the domain is promised."""


def sanitise(value: Raw, domain: Domain, other: str | None = None) -> Stored:
    """The stored value: inside ``domain`` or None. A real is its grid integer, dates are days, timestamps microseconds."""
    match domain:
        case IntegerDomain(lo, hi):
            if isinstance(value, int):
                return min(max(int(value), lo), hi)
            number = _finite(value)
            return None if number is None else min(max(half_up(number), lo), hi)
        case RealDomain(lo, hi, steps=int(steps)):
            number = _finite(value)
            if number is None:
                return None
            inside = min(max(number, float(lo)), float(hi))
            return min(max(half_up(inside * float(steps)), grid_integer(lo, steps)), grid_integer(hi, steps))
        case RealDomain():
            raise ValueError("a real column has a grid")
        case BooleanDomain():
            return _boolean(value)
        case DateDomain(lo, hi):
            moment = _moment(value)
            return None if moment is None or not lo <= moment // DAY_MICROSECONDS <= hi else moment // DAY_MICROSECONDS
        case TimestampDomain(lo, hi):
            moment = _moment(value)
            return None if moment is None or not lo <= moment <= hi else moment
        case KeyDomain(text=True):
            return _text(value)
        case KeyDomain():
            return _whole(value)
        case TextDomain(None):
            return _text(value)
        case TextDomain(values):
            return _listed(value, values or (), other)
        case _:
            assert_never(domain)


def unit_of(value: Raw, domain: Domain) -> Stored:
    """The unit (or link) that a raw value names: bounds and lists do not apply, because clamping would merge two units."""
    is_text = isinstance(domain, TextDomain) or (isinstance(domain, KeyDomain) and domain.text)
    return _text(value) if is_text else _whole(value)


def prepared_rows(table: TableDecl, columns: Mapping[str, Domain], raw_rows: Iterable[Mapping[str, Raw]]) -> list[dict[str, Stored]]:
    """The prepared rows of a table that holds its own unit, before the limit of rows per unit; raw rows are keyed by source column.

    Rows without a unit, and rows with NULL in a column declared without NULL, are left out.
    """
    unit = table.column(table.unit.end.column)
    rows = []
    for raw in raw_rows:
        if unit_of(raw[unit.source_name], unit.domain) is None:
            continue
        row = {column.name: sanitise(raw[column.source_name], columns[column.name], column.other) for column in table.columns}
        if all(row[name] is not None or domain.nullable for name, domain in columns.items()):
            rows.append(row)
    return rows


def _finite(value: Raw) -> float | None:
    """The value as a finite double."""
    match value:
        case bool() | int() | float() | Decimal():
            number = float(value)
        case str():
            trimmed = value.strip(_SPACES)
            if not _NUMBER.fullmatch(trimmed):
                return None
            number = float(trimmed)
        case _:
            return None
    return number if math.isfinite(number) else None


def _boolean(value: Raw) -> bool | None:
    match value:
        case bool() | int() | float() | Decimal():
            return bool(value)
        case str():
            folded = value.lower()
            return True if folded in _TRUE else False if folded in _FALSE else None
        case _:
            return None


def _whole(value: Raw) -> int | None:
    """The value as a 64-bit integer; what does not fit is NULL."""
    match value:
        case bool() | int():
            number = int(value)
        case float():
            if not math.isfinite(value):
                return None
            number = round(value)
        case Decimal():
            number = int(value.to_integral_value(ROUND_HALF_UP))
        case str():
            trimmed = value.strip(_SPACES)
            if not _NUMBER.fullmatch(trimmed):
                return None
            number = int(Decimal(trimmed).to_integral_value(ROUND_HALF_UP))
        case _:
            return None
    return number if -(2**63) <= number < 2**63 else None


def _moment(value: Raw) -> int | None:
    """The value as microseconds; infinite ones are NULL."""
    match value:
        case RawDay(days):
            return None if abs(days) >= DAY_INFINITE else days * DAY_MICROSECONDS
        case RawMoment(microseconds):
            return None if abs(microseconds) >= MOMENT_INFINITE else microseconds
        case str():
            found = _DATE.fullmatch(value.strip(_SPACES))
            if found is None:
                return None
            year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
            try:
                moment = datetime.datetime(year, month, day, hour, minute, second, int((found[7] or "").ljust(6, "0")))
            except ValueError:
                return None
            return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
        case _:
            return None


def _text(value: Raw) -> str | None:
    match value:
        case None:
            return None
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case bytes():
            return "".join(chr(byte) if 32 <= byte < 127 and byte not in b"\\'\"" else f"\\x{byte:02X}" for byte in value)
        case _:
            raise Unmodelled


def _listed(value: Raw, values: tuple[str, ...], other: str | None) -> str | None:
    """Text outside the list is ``other`` or NULL. The text of a value that is no text, truth, integer or bytes is taken to be outside."""
    try:
        text = _text(value)
    except Unmodelled:
        return other
    return text if text is None or text in values else other
