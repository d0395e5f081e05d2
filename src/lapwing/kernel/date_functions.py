"""Domain rules of the functions of dates and timestamps; see ``functions`` for what every rule guarantees."""

from __future__ import annotations

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.domains import DateDomain, Domain, IntegerDomain, TimestampDomain
from lapwing.kernel.expressions import Expression, Function, Literal
from lapwing.kernel.rules import Rule, require_count, wrong_kinds

DATE_PARTS: dict[Function, tuple[int, int]] = {
    Function.QUARTER: (1, 4),
    Function.MONTH: (1, 12),
    Function.DAY: (1, 31),
    Function.DAY_OF_WEEK: (0, 6),
    Function.DAY_OF_YEAR: (1, 366),
    Function.WEEK: (1, 53),
    Function.HOUR: (0, 23),
    Function.MINUTE: (0, 59),
    Function.SECOND: (0, 59),
}
"""Least and greatest value of every part of a date but the years."""
TIME_PARTS = frozenset({Function.HOUR, Function.MINUTE, Function.SECOND})
"""Parts that only a timestamp has."""
TRUNCATIONS: dict[Function, str] = {
    Function.TRUNCATE_YEAR: "year",
    Function.TRUNCATE_QUARTER: "quarter",
    Function.TRUNCATE_MONTH: "month",
    Function.TRUNCATE_WEEK: "week",
    Function.TRUNCATE_DAY: "day",
}
"""The part of a date to whose start each truncation goes back."""
TIME_TRUNCATIONS: dict[Function, tuple[str, int]] = {
    Function.TRUNCATE_HOUR: ("hour", 3_600_000_000),
    Function.TRUNCATE_MINUTE: ("minute", 60_000_000),
}
"""The part of a day to whose start each truncation of a timestamp goes back, and its microseconds."""
MONTHS_MAX = 12 * 9_999
"""Most months that can be added: no more lie between two dates of the calendar."""


def days_of(domain: Domain) -> tuple[int, int]:
    """First and last day of a domain of dates or timestamps, or refuse."""
    match domain:
        case DateDomain(lo, hi):
            return lo, hi
        case TimestampDomain(lo, hi):
            return lo // calendar.DAY_MICROSECONDS, hi // calendar.DAY_MICROSECONDS
        case _:
            raise wrong_kinds("a date function", (domain,))


def _date_part(function: Function) -> Rule:
    """A year between those of the ends (both calendars' years are monotone); any other part in its calendar range."""

    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        require_count(function, domains, 1)
        lo, hi = days_of(domains[0])
        if function in TIME_PARTS and not isinstance(domains[0], TimestampDomain):
            raise wrong_kinds(function.value, domains)
        if function is Function.YEAR:
            return IntegerDomain(calendar.to_date(lo).year, calendar.to_date(hi).year, domains[0].nullable)
        if function is Function.ISO_YEAR:
            return IntegerDomain(calendar.to_date(lo).isocalendar().year, calendar.to_date(hi).isocalendar().year, domains[0].nullable)
        return IntegerDomain(*DATE_PARTS[function], domains[0].nullable)

    return rule


def _truncate(function: Function) -> Rule:
    """Truncation is monotone, so the ends are truncated; a date stays a date and a timestamp a timestamp."""

    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        require_count(function, domains, 1)
        lo, hi = (calendar.truncate_days(day, TRUNCATIONS[function]) for day in days_of(domains[0]))
        if isinstance(domains[0], DateDomain):
            return DateDomain(lo, hi, domains[0].nullable)
        return TimestampDomain(lo * calendar.DAY_MICROSECONDS, hi * calendar.DAY_MICROSECONDS, domains[0].nullable)

    return rule


def _truncate_time(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        require_count(function, domains, 1)
        domain, (_name, size) = domains[0], TIME_TRUNCATIONS[function]
        if not isinstance(domain, TimestampDomain):
            raise wrong_kinds(function.value, domains)
        return TimestampDomain(domain.lo // size * size, domain.hi // size * size, domain.nullable)

    return rule


def _day_number(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    """The day as days since 1970-01-01: exact and monotone."""
    require_count(Function.DAY_NUMBER, domains, 1)
    return IntegerDomain(*days_of(domains[0]), domains[0].nullable)


def _microseconds(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    """The moment as microseconds since 1970-01-01. All moments of the calendar are below 2^59, so within 62 bits."""
    require_count(Function.MICROSECONDS, domains, 1)
    if not isinstance(domains[0], TimestampDomain):
        raise wrong_kinds(Function.MICROSECONDS.value, domains)
    return IntegerDomain(domains[0].lo, domains[0].hi, domains[0].nullable)


def _outside() -> Refused:
    hint = "narrow it with LEAST and GREATEST"
    return Refused("range-too-wide", "a date could leave the years 1 to 9999", hint=hint)


def _date_of(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    """The date of a day number, the inverse of ``DAY_NUMBER``; refused unless every number is a day of the calendar."""
    require_count(Function.DATE_OF, domains, 1)
    if not isinstance(domains[0], IntegerDomain):
        raise wrong_kinds(Function.DATE_OF.value, domains)
    if domains[0].lo < calendar.DAYS_MIN or domains[0].hi > calendar.DAYS_MAX:
        raise _outside()
    return DateDomain(domains[0].lo, domains[0].hi, domains[0].nullable)


def _timestamp_of(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    """The moment of a number of microseconds, the inverse of ``MICROSECONDS``; refused outside the calendar."""
    require_count(Function.TIMESTAMP_OF, domains, 1)
    if not isinstance(domains[0], IntegerDomain):
        raise wrong_kinds(Function.TIMESTAMP_OF.value, domains)
    first, last = calendar.DAYS_MIN * calendar.DAY_MICROSECONDS, (calendar.DAYS_MAX + 1) * calendar.DAY_MICROSECONDS - 1
    if domains[0].lo < first or domains[0].hi > last:
        raise _outside()
    return TimestampDomain(domains[0].lo, domains[0].hi, domains[0].nullable)


def _add_months(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    """The day that many months later, or the last day of that month if the month is too short; the time of day stays.

    Monotone in the day, hence the ends for dates. Of two moments a day apart the later may land on the same day at an earlier hour, so for
    a timestamp only the day is bounded.
    """
    require_count(Function.ADD_MONTHS, domains, 2)
    months = arguments[1].value if isinstance(arguments[1], Literal) and isinstance(domains[1], IntegerDomain) else None
    if not isinstance(months, int) or abs(months) > MONTHS_MAX:
        raise Refused("wrong-arguments", "months are added as a constant whole number")
    moved = [calendar.add_months(day, months) for day in days_of(domains[0])]
    lo, hi = moved
    if lo is None or hi is None:
        raise _outside()
    if isinstance(domains[0], DateDomain):
        return DateDomain(lo, hi, domains[0].nullable)
    return TimestampDomain(lo * calendar.DAY_MICROSECONDS, (hi + 1) * calendar.DAY_MICROSECONDS - 1, domains[0].nullable)


DATE_RULES: dict[Function, Rule] = {
    **{function: _date_part(function) for function in (Function.YEAR, Function.ISO_YEAR, *DATE_PARTS)},
    **{function: _truncate(function) for function in TRUNCATIONS},
    **{function: _truncate_time(function) for function in TIME_TRUNCATIONS},
    Function.DAY_NUMBER: _day_number,
    Function.MICROSECONDS: _microseconds,
    Function.DATE_OF: _date_of,
    Function.TIMESTAMP_OF: _timestamp_of,
    Function.ADD_MONTHS: _add_months,
}
