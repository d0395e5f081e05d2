"""Functions of dates that are called by name; each is a composition of the kernel's closed list.

Dates as text (STRFTIME, TO_CHAR) are public look-ups: the range of a date is declared, so the days, months or years in it can be listed.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

from sqlglot import exp

from lapwing.kernel import calendar
from lapwing.kernel.domains import DateDomain, Kind, TimestampDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars import date_arithmetic, dates, durations
from lapwing.sql.scalars.named_function import Bind, Composer, FunctionReference, NamedFunction
from lapwing.sql.scalars.text_tables import CASES_MAX
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text import constants

_GROUP = "dates"
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

Write = Callable[[datetime.date], str]
_STRFTIME: dict[str, tuple[str, Write]] = {
    "%Y": ("year", lambda day: f"{day.year:04}"),
    "%y": ("year", lambda day: f"{day.year % 100:02}"),
    "%m": ("month", lambda day: f"{day.month:02}"),
    "%-m": ("month", lambda day: str(day.month)),
    "%b": ("month", lambda day: _MONTHS[day.month - 1][:3]),
    "%B": ("month", lambda day: _MONTHS[day.month - 1]),
    "%d": ("day", lambda day: f"{day.day:02}"),
    "%-d": ("day", lambda day: str(day.day)),
    "%a": ("day", lambda day: _DAYS[day.isoweekday() % 7][:3]),
    "%A": ("day", lambda day: _DAYS[day.isoweekday() % 7]),
    "%w": ("day", lambda day: str(day.isoweekday() % 7)),
    "%j": ("day", lambda day: f"{(day - day.replace(month=1, day=1)).days + 1:03}"),
    "%%": ("year", lambda _: "%"),
}
"""Directives of STRFTIME: the longest period on which each is constant, and the text."""
_TO_CHAR: dict[str, tuple[str, Write]] = {
    "YYYY": _STRFTIME["%Y"],
    "YY": _STRFTIME["%y"],
    "MM": _STRFTIME["%m"],
    "DD": _STRFTIME["%d"],
    "Q": ("quarter", lambda day: str((day.month + 2) // 3)),
    "Mon": _STRFTIME["%b"],
    "FMMonth": _STRFTIME["%B"],
    "Dy": _STRFTIME["%a"],
    "FMDay": _STRFTIME["%A"],
    "DDD": _STRFTIME["%j"],
}
"""Patterns of TO_CHAR, which PostgreSQL pads to nine letters without FM."""
_STRFTIME_TOKEN = re.compile(r"%-?[A-Za-z%]|[^%]")
_TO_CHAR_TOKEN = re.compile(r"YYYY|YY|MM|DDD|DD|Q|Mon|FMMonth|Dy|FMDay|[-/ .,:_]|\"[^\"]*\"")
_READ = {"YYYY": r"\d{4}", "MM": r"\d{2}", "DD": r"\d{2}", "HH24": r"\d{2}", "MI": r"\d{2}", "SS": r"\d{2}", "MS": r"\d{3}", "US": r"\d{6}"}
"""Patterns of TO_DATE and TO_TIMESTAMP, with what they read."""
_READ_TOKEN = re.compile(r"YYYY|MM|DD|HH24|MI|SS|MS|US|[-/ .:_]")
_FINENESS = ("year", "quarter", "month", "day")


def _written(composer: Composer, nodes: tuple[exp.Expr, ...], tokens: re.Pattern[str], known: dict[str, tuple[str, Write]]) -> Typed:
    """The text of a date by a pattern: a look-up over the periods of the declared range on which it is constant."""
    value, pattern = composer.bind(nodes[0]), composer.constant_text(nodes[1])
    parts = tokens.findall(pattern)
    if "".join(parts) != pattern or any(token.startswith("%") and token not in known for token in parts):
        hint = f"known: {' '.join(known)} and characters between them"
        raise composer.scalars.session.refuse("date-part-unsupported", "this pattern of a date is not supported", node=nodes[1], hint=hint)
    value = dates.as_date(composer.scalars, composer.node, value)
    if not isinstance(value.domain, DateDomain):
        raise composer.scalars.session.refuse("type-mismatch", f"a date is needed here, not a {value.kind.value}", node=nodes[0])
    used = [known[token] for token in parts if token in known]
    finest = max((_FINENESS.index(period) for period, _ in used), default=0)
    starts = _starts(value.domain, _FINENESS[finest])
    if starts is None:
        message, hint = f"the dates here give more than {CASES_MAX} texts", "narrow the range with LEAST and GREATEST, or use DATE_TRUNC"
        raise composer.scalars.session.refuse("statement-too-large", message, node=composer.node, hint=hint)
    texts = ["".join(known[token][1](day) if token in known else token.strip('"') for token in parts) for day in starts]
    return composer.null_with(value, _chosen(composer, value, starts, texts))


def _chosen(composer: Composer, value: Typed, starts: list[datetime.date], texts: list[str]) -> Typed:
    """The text of the period that contains the date, by bisection: an engine then compares a date ten times, not a thousand."""
    if len(texts) == 1:
        return composer.text(texts[0])
    half = len(texts) // 2
    later = composer.scalars.constant(composer.node, Literal(calendar.to_days(starts[half]), Kind.DATE))
    first, second = (_chosen(composer, value, starts[part], texts[part]) for part in (slice(half), slice(half, None)))
    return composer.case([(composer.call(Function.LESS, value, later), first)], second)


def _starts(domain: DateDomain, period: str) -> list[datetime.date] | None:
    """The first day of every period in the range, in order; None where there are too many."""
    starts: list[datetime.date] = []
    day = domain.lo
    while day <= domain.hi:
        first = calendar.to_date(calendar.truncate_days(day, period))
        starts.append(first)
        if len(starts) > CASES_MAX:
            return None
        following = calendar.to_days(first) + 1 if period == "day" else None
        if following is None:
            following = calendar.add_months(calendar.to_days(first), date_arithmetic.MONTHS[period])
        if following is None:  # the end of the calendar
            break
        day = following
    return starts


def _strftime(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    return _written(composer, nodes, _STRFTIME_TOKEN, _STRFTIME)


def _to_char(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    return _written(composer, nodes, _TO_CHAR_TOKEN, _TO_CHAR)


def _read(composer: Composer, nodes: tuple[exp.Expr, ...], known: dict[str, str]) -> dict[str, str]:
    """The parts of a constant text, read by a pattern, by their names."""
    text, pattern = composer.constant_text(nodes[0]), composer.constant_text(nodes[1]).upper()
    words = _READ_TOKEN.findall(pattern)
    parts = [word for word in words if word in _READ]
    if (
        "".join(words) != pattern
        or not set(parts) <= known.keys()
        or len(set(parts)) < len(parts)
        or not {"YYYY", "MM", "DD"} <= set(parts)
    ):
        hint = f"known: {' '.join(known)}, each once, with YYYY, MM and DD among them"
        raise composer.scalars.session.refuse("date-part-unsupported", "this pattern of a date is not supported", node=nodes[1], hint=hint)
    match = re.fullmatch("".join(f"(?P<{word}>{known[word]})" if word in known else re.escape(word) for word in words), text, re.ASCII)
    if match is None:
        hint = "the text must have all parts of the pattern, with the same numbers of digits"
        raise composer.scalars.session.refuse("date-unreadable", "the text does not match this pattern", node=nodes[0], hint=hint)
    return match.groupdict()


def _to_date(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    read = _read(composer, nodes, {part: digits for part, digits in _READ.items() if part in ("YYYY", "MM", "DD")})
    written = f"{read['YYYY']}-{read['MM']}-{read['DD']}"
    return composer.scalars.constant(composer.node, constants.date(written, composer.scalars.session, nodes[0]))


def _to_timestamp(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    read = {"HH24": "00", "MI": "00", "SS": "00"} | _read(composer, nodes, _READ)
    written = f"{read['YYYY']}-{read['MM']}-{read['DD']} {read['HH24']}:{read['MI']}:{read['SS']}.{read.get('US') or read.get('MS') or '0'}"
    return composer.scalars.constant(composer.node, constants.timestamp(written, composer.scalars.session, nodes[0]))


def _named(part: Function, first: int, names: tuple[str, ...]) -> Bind:
    """The name of a part, which is a number from ``first`` on."""

    def bind(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
        number = composer.call(part, composer.bind(nodes[0]))
        branches = [
            (composer.call(Function.EQUAL, number, composer.integer(first + i)), composer.text(name)) for i, name in enumerate(names)
        ]
        return composer.case(branches, None) if number.domain.nullable else composer.case(branches[:-1], branches[-1][1])

    return bind


def _part(part: str) -> Bind:
    return lambda composer, nodes: durations.part_of(composer.scalars, composer.node, part, nodes[0])


def _date_part(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    return durations.part_of(composer.scalars, composer.node, dates.unit(composer.scalars, nodes[0]), nodes[1])


def _last_day(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    day = dates.as_date(composer.scalars, composer.node, composer.bind(nodes[0]))
    following = composer.call(Function.ADD_MONTHS, composer.call(Function.TRUNCATE_MONTH, day), composer.integer(1))
    return date_arithmetic.days_later(composer.scalars, composer.node, following, Function.SUBTRACT, composer.integer(1))


def _date_diff(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    unit = dates.unit(composer.scalars, nodes[0])
    known = date_arithmetic.MONTHS.keys() | date_arithmetic.DAYS.keys() | date_arithmetic.MICROSECONDS.keys()
    if unit not in known:
        hint = f"known parts: {', '.join(sorted(known))}"
        raise composer.scalars.session.refuse("date-part-unsupported", "dates cannot be counted in this unit", node=nodes[0], hint=hint)
    start, end = composer.bind(nodes[1]), composer.bind(nodes[2])
    start, end = composer.scalars.in_kind_of(start, end), composer.scalars.in_kind_of(end, start)
    for side, node in ((start, nodes[1]), (end, nodes[2])):
        if not isinstance(side.domain, DateDomain | TimestampDomain):
            raise composer.scalars.session.refuse("type-mismatch", f"a date is needed here, not a {side.kind.value}", node=node)
    return date_arithmetic.difference(composer.scalars, composer.node, unit, start, end)


def _entry(
    names: str,
    arguments: str,
    count: int,
    bind: Bind,
    means: str,
    *,
    gives: str = "integer",
    total: str = "every date has one",
    differs: str = "",
    checked: tuple[str | tuple[str, str], ...],
    samples: tuple[str, ...],
) -> NamedFunction:
    meaning = FunctionReference(
        tuple(names.split()), arguments, _GROUP, gives, means, total=total, differs=differs, checked=checked, samples=samples
    )
    return NamedFunction(meaning, count, count, bind)


_CONSTANT = "the text is a constant, read once"
_TABLE = "a public look-up over the declared range, at most 1000 texts"
NAMED: tuple[NamedFunction, ...] = (
    _entry(
        "DATE_PART DATEPART",
        "'part', d",
        2,
        _date_part,
        "a part of a date; see below",
        gives="integer (real for epoch)",
        checked=("date_part('isoyear', day)", "datepart('decade', day)", "date_part('epoch', day)", "date_part('epoch', started)"),
        samples=("DATE_PART('doy', {date})", "DATE_PART('epoch', {timestamp})"),
    ),
    _entry(
        "WEEK WEEKOFYEAR",
        "d",
        1,
        _part("week"),
        "week of the ISO year, 1 to 53",
        checked=("WEEK(day)", "WEEKOFYEAR(started)"),
        samples=("WEEK({date})",),
    ),
    _entry(
        "ISODOW",
        "d",
        1,
        _part("isodow"),
        "day of the week, Monday is 1 and Sunday 7",
        checked=("ISODOW(day)",),
        samples=("ISODOW({date})",),
    ),
    _entry("ISOYEAR", "d", 1, _part("isoyear"), "year of the ISO week", checked=("ISOYEAR(day)",), samples=("ISOYEAR({timestamp})",)),
    _entry("DAYOFYEAR", "d", 1, _part("doy"), "day of the year, 1 to 366", checked=("DAYOFYEAR(day)",), samples=("DAYOFYEAR({date})",)),
    _entry(
        "SECOND",
        "t",
        1,
        _part("second"),
        "whole second of the minute",
        total="0 to 59",
        differs="PostgreSQL's EXTRACT also gives the fraction",
        checked=("SECOND(started)",),
        samples=("SECOND({timestamp})",),
    ),
    _entry(
        "EPOCH",
        "t",
        1,
        _part("epoch"),
        "seconds since 1970-01-01",
        gives="real",
        checked=("EPOCH(started)",),
        samples=("EPOCH({timestamp})",),
    ),
    _entry(
        "DAYNAME",
        "d",
        1,
        _named(Function.DAY_OF_WEEK, 0, _DAYS),
        "English name of the day of the week",
        gives="text",
        checked=("DAYNAME(day)", "DAYNAME(started)"),
        samples=(),
    ),
    _entry(
        "MONTHNAME",
        "d",
        1,
        _named(Function.MONTH, 1, _MONTHS),
        "English name of the month",
        gives="text",
        checked=("MONTHNAME(day)", "MONTHNAME(started)"),
        samples=(),
    ),
    _entry(
        "LAST_DAY",
        "d",
        1,
        _last_day,
        "last day of the month",
        gives="date",
        total="refused where the range reaches the year 9999",
        checked=("LAST_DAY(day)", "LAST_DAY(started)"),
        samples=(),
    ),
    _entry(
        "DATE_DIFF DATEDIFF",
        "'part', start, end",
        3,
        _date_diff,
        "how many boundaries of a part lie between two dates; for weeks, how many whole weeks",
        total="exact, within 62 bits",
        checked=tuple(f"DATE_DIFF('{part}', DATE '2024-03-31', day)" for part in ("year", "quarter", "month", "week", "day", "hour"))
        + tuple(f"DATEDIFF('{part}', started, TIMESTAMP '2024-07-15 10:30:15')" for part in ("month", "day", "hour", "minute", "second"))
        + ("DATE_DIFF('day', day, '2024-01-01')",),
        samples=(
            "DATE_DIFF('day', {date}, {date})",
            "DATE_DIFF('month', {timestamp}, {timestamp})",
            "DATE_DIFF('second', {timestamp}, {timestamp})",
        ),
    ),
    _entry(
        "STRFTIME",
        "d, 'pattern'",
        2,
        _strftime,
        "the date as text: " + " ".join(_STRFTIME),
        gives="text",
        total=_TABLE,
        checked=(
            "STRFTIME(day, '%Y-%m')",
            "STRFTIME(started, '%b %y')",
            "STRFTIME(day, '%Y-%m-%d %a %j')",
            "STRFTIME(day, '%-d.%-m. %A %B %w %%')",
        ),
        samples=(),
    ),
    _entry(
        "TO_CHAR",
        "d, 'pattern'",
        2,
        _to_char,
        "the date as text: " + " ".join(_TO_CHAR),
        gives="text",
        total=_TABLE,
        differs="PostgreSQL's; DuckDB has none",
        checked=(
            ("TO_CHAR(day, 'YYYY-MM')", "strftime(day, '%Y-%m')"),
            ("TO_CHAR(started, 'Dy DD FMMonth YY')", "strftime(started, '%a %d %B %y')"),
            ("TO_CHAR(day, 'YYYY\"Q\"Q')", "year(day) || 'Q' || quarter(day)"),
        ),
        samples=(),
    ),
    _entry(
        "TO_DATE",
        "'text', 'pattern'",
        2,
        _to_date,
        "the date in a constant text: YYYY MM DD",
        gives="date",
        total=_CONSTANT,
        differs="PostgreSQL's, which also reads text that does not have the pattern",
        checked=(("day >= TO_DATE('2024-07-01', 'YYYY-MM-DD')", "day >= DATE '2024-07-01'"),),
        samples=(),
    ),
    _entry(
        "TO_TIMESTAMP",
        "'text', 'pattern'",
        2,
        _to_timestamp,
        "the timestamp in a constant text: " + " ".join(_READ),
        gives="timestamp",
        total=_CONSTANT,
        differs="PostgreSQL's, which has a time zone; DuckDB's counts seconds since 1970",
        checked=(
            (
                "started < TO_TIMESTAMP('2024-07-01 10:30:00.250000', 'YYYY-MM-DD HH24:MI:SS.US')",
                "started < TIMESTAMP '2024-07-01 10:30:00.25'",
            ),
            ("started < TO_TIMESTAMP('2024/07/01', 'yyyy/mm/dd')", "started < TIMESTAMP '2024-07-01'"),
        ),
        samples=(),
    ),
)
