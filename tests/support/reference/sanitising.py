"""What preparation must store for one raw value, whatever type the source gave it.

The rules: NaN, infinities and what cannot be read as the declared type become NULL; numbers are clamped to the declared ends and put on the
grid, halves up; dates outside the declared range become NULL, because a clamped date would be a false one; text outside a declared list
becomes ``other`` or NULL; keys are never clamped. Text follows one grammar, with nothing taken off around it: numbers in decimal with an
optional exponent, dates as YYYY-MM-DD, moments as YYYY-MM-DD HH:MM:SS, truths as true or false in any case, 1 or 0. What no row of a source
type can be read as is refused before any row is read: see ``lapwing.engines.reading.readable``.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias, assert_never

from lapwing.catalog import TableDecl, UnitPath
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
from tests.support.reference.calendar_parts import DAY_MICROSECONDS
from tests.support.reference.evaluation import Stored, half_up


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

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?")


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
            moment = _moment(value, _DAY)
            return None if moment is None or not lo <= moment // DAY_MICROSECONDS <= hi else moment // DAY_MICROSECONDS
        case TimestampDomain(lo, hi):
            moment = _moment(value, _MOMENT)
            return None if moment is None or not lo <= moment <= hi else moment
        case KeyDomain(text=True):
            return _short(_text(value))
        case KeyDomain():
            return _whole(value)
        case TextDomain(None):
            return _short(_text(value))
        case TextDomain(values):
            return _listed(value, values or (), other)
        case _:
            assert_never(domain)


def unit_of(value: Raw, domain: Domain) -> Stored:
    """The unit (or link) that a raw value names: bounds and lists do not apply, because clamping would merge two units."""
    is_text = isinstance(domain, TextDomain) or (isinstance(domain, KeyDomain) and domain.text)
    return _short(_text(value)) if is_text else _whole(value)


def prepared_rows(table: TableDecl, columns: Mapping[str, Domain], raw_rows: Iterable[Mapping[str, Raw]]) -> list[dict[str, Stored]]:
    """The prepared rows of a table that holds its own unit, before the limit of rows per unit; raw rows are keyed by source column.

    Rows without a unit, and rows with NULL in a column declared without NULL, are left out.
    """
    assert isinstance(table.unit, UnitPath)
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
            if len(value) > 100 or not _NUMBER.fullmatch(value):
                return None
            number = float(value)
        case None:
            return None
        case _:
            raise TypeError("a source of this type is refused")
    return number if math.isfinite(number) else None


def _boolean(value: Raw) -> bool | None:
    match value:
        case bool() | int():
            return bool(value)
        case Decimal() if _is_whole(value):
            return bool(value)
        case str():
            return {"true": True, "1": True, "false": False, "0": False}.get(value.lower()) if value.isascii() else None
        case None:
            return None
        case _:
            raise TypeError("a source of this type is refused")


def _whole(value: Raw) -> int | None:
    """The value as a 64-bit integer; what is not one, or not written as one is, is NULL."""
    match value:
        case int():
            number = value
        case Decimal():
            if not value.is_finite() or value != value.to_integral_value():
                return None
            number = int(value)
        case float():
            if not math.isfinite(value) or abs(value) > 2**53 or value != math.floor(value):
                return None
            number = int(value)
        case str():
            if not _WHOLE.fullmatch(value):
                return None
            number = int(value)
        case None:
            return None
        case _:
            raise TypeError("a source of this type is refused")
    return number if -(2**63) <= number < 2**63 else None


def _is_whole(value: Decimal) -> bool:
    """Whether the value has no place for a fraction: such a source holds whole numbers."""
    return value.as_tuple().exponent == 0


def _moment(value: Raw, grammar: re.Pattern[str]) -> int | None:
    """The value as microseconds; infinite ones are NULL."""
    match value:
        case RawDay(days):
            return None if abs(days) >= DAY_INFINITE else days * DAY_MICROSECONDS
        case RawMoment(microseconds):
            return None if abs(microseconds) >= MOMENT_INFINITE else microseconds
        case str():
            try:
                moment = datetime.datetime.fromisoformat(_six_digits(value)) if grammar.fullmatch(value) else None
            except ValueError:
                return None
            return None if moment is None else (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
        case None:
            return None
        case _:
            raise TypeError("a source of this type is refused")


def _six_digits(moment: str) -> str:
    """A fraction of a second to six digits: Python reads three or six."""
    whole, point, fraction = moment.partition(".")
    return whole + point + fraction.ljust(6, "0") if point else whole


def _text(value: Raw) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal() if _is_whole(value):
            return str(int(value))
        case _:
            raise TypeError("a source of this type is refused")


def _short(text: str | None) -> str | None:
    """Text of at most 1,024 bytes; a longer one is NULL."""
    return text if text is not None and len(text.encode("utf-8", "surrogatepass")) <= 1_024 else None


def _listed(value: Raw, values: tuple[str, ...], other: str | None) -> str | None:
    """Text outside the list is ``other`` or NULL."""
    text = _text(value)
    return text if text is None or text in values else other
