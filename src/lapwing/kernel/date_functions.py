"""Domain rules of the functions of dates and timestamps; see ``functions`` for what every rule guarantees."""

from __future__ import annotations

from lapwing.kernel import calendar
from lapwing.kernel.domains import DateDomain, Domain, IntegerDomain, TimestampDomain
from lapwing.kernel.expressions import Expression, Function
from lapwing.kernel.rules import Rule, require_count, wrong_kinds

DATE_PARTS: dict[Function, tuple[int, int]] = {
    Function.QUARTER: (1, 4),
    Function.MONTH: (1, 12),
    Function.DAY: (1, 31),
    Function.DAY_OF_WEEK: (0, 6),
    Function.HOUR: (0, 23),
    Function.MINUTE: (0, 59),
}
"""Least and greatest value of every part of a date but the year."""
TRUNCATIONS: dict[Function, str] = {
    Function.TRUNCATE_YEAR: "year",
    Function.TRUNCATE_QUARTER: "quarter",
    Function.TRUNCATE_MONTH: "month",
    Function.TRUNCATE_WEEK: "week",
    Function.TRUNCATE_DAY: "day",
}
"""The part of a date that each truncation goes back to the start of."""


def _days(domain: Domain) -> tuple[int, int]:
    match domain:
        case DateDomain(lo, hi):
            return lo, hi
        case TimestampDomain(lo, hi):
            return lo // calendar.DAY_MICROSECONDS, hi // calendar.DAY_MICROSECONDS
        case _:
            raise wrong_kinds("a date function", (domain,))


def date_part(function: Function) -> Rule:
    """A year between those of the ends; any other part in its calendar range."""

    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        require_count(function, domains, 1)
        lo, hi = _days(domains[0])
        if function in (Function.HOUR, Function.MINUTE) and not isinstance(domains[0], TimestampDomain):
            raise wrong_kinds(function.value, domains)
        if function is Function.YEAR:
            return IntegerDomain(calendar.to_date(lo).year, calendar.to_date(hi).year, domains[0].nullable)
        return IntegerDomain(*DATE_PARTS[function], domains[0].nullable)

    return rule


def truncate(function: Function) -> Rule:
    """Truncation is monotone, so the ends are truncated; a date stays a date and a timestamp a timestamp."""

    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        require_count(function, domains, 1)
        lo, hi = (calendar.truncate_days(day, TRUNCATIONS[function]) for day in _days(domains[0]))
        if isinstance(domains[0], DateDomain):
            return DateDomain(lo, hi, domains[0].nullable)
        return TimestampDomain(lo * calendar.DAY_MICROSECONDS, hi * calendar.DAY_MICROSECONDS, domains[0].nullable)

    return rule
