"""The statement's moment: CURRENT_DATE and NOW() are constants, with one value in the whole statement.

The curator reads its clock once per request. Binding, planning, charging and storing use the constant: the same question with
CURRENT_DATE is the same statement until the day ends, in UTC, and free when asked again.
"""

from __future__ import annotations

from sqlglot import exp

from lapwing.kernel import calendar
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Literal
from lapwing.sql.scalars.binding import Handler, Scalars, function, unknown_function
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader


def _microseconds(scalars: Scalars, node: exp.Expr) -> int:
    moment = scalars.session.moment
    if moment is None:
        raise unknown_function(scalars.session, node)
    return moment


def _day(scalars: Scalars, reader: Reader) -> Typed:
    days = _microseconds(scalars, reader.node) // calendar.DAY_MICROSECONDS
    scalars.session.notes.append(f"CURRENT_DATE is {calendar.to_date(days).isoformat()}, in UTC")
    return scalars.constant(reader.node, Literal(days, Kind.DATE))


def _now(scalars: Scalars, reader: Reader) -> Typed:
    microseconds = _microseconds(scalars, reader.node)
    scalars.session.notes.append(
        f"NOW() is {_written(microseconds)}, in UTC; unless it is cut, as by DATE_TRUNC('day', NOW()), asking again is another question"
    )
    return scalars.constant(reader.node, Literal(microseconds, Kind.TIMESTAMP))


def _written(microseconds: int) -> str:
    day, rest = divmod(microseconds, calendar.DAY_MICROSECONDS)
    seconds = rest // 1_000_000
    return f"{calendar.to_date(day).isoformat()} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


MOMENTS: dict[type[exp.Expr], Handler] = {
    exp.CurrentDate: function(_day, "CURRENT_DATE", "TODAY"),
    exp.CurrentTimestamp: function(_now, "CURRENT_TIMESTAMP", "NOW", "GETDATE"),
    exp.Localtimestamp: function(_now, "LOCALTIMESTAMP"),
}
SPELLINGS: dict[str, type[exp.Func]] = {"NOW": exp.CurrentTimestamp, "GETDATE": exp.CurrentTimestamp, "TODAY": exp.CurrentDate}
"""Calls that the parsers of some dialects know and others do not."""
