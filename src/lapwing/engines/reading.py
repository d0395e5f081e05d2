"""Reading the owner's values: the same on all engines, without their own guesses.

Text is read by a grammar of ours (NUMBER, WHOLE, DATE, TIMESTAMP, TRUE, FALSE below) and is NULL where it does not follow it; blanks are
not removed, and no other spelling is known. What a column holds is known before any row is read, so a source that cannot be read as
declared is refused at preparation, never row by row: a double has no text that all engines agree on, and a record or a list has none at
all.
"""

from __future__ import annotations

import math
from typing import assert_never

from lapwing.catalog.spellings import COMMON_SPELLING, DAY_PARTS, TIME_PARTS, Spelling
from lapwing.errors import PreparationError
from lapwing.kernel.domains import (
    OPEN_TEXT_BYTES,
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    RealDomain,
    TextDomain,
    TimestampDomain,
    grid_integer,
    kind_of,
)
from lapwing.render.dialect import Dialect, SourceKind, double_literal
from lapwing.render.expressions import clamped, gridded

NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"
"""A number as text; it is read as the nearest double, and one too large for a double is NULL."""
NUMBER_BYTES_MAX = 100
"""Longest text that is read as a number."""
WHOLE = r"0|-?[1-9][0-9]{0,18}"
"""An identifier as text: one text for each whole number, so that two texts are never one unit; beyond 64 bits it is NULL."""
DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
"""A date as text. One that is not in the calendar is NULL."""
TIMESTAMP = DATE + r"[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
"""A moment as text, in UTC."""
TRUE = "[tT][rR][uU][eE]|1"
FALSE = "[fF][aA][lL][sS][eE]|0"
WHOLE_DOUBLE_LIMIT = 2**53
"""Identifiers that come as doubles are read up to here, where every whole number is a double of its own."""

_NUMBERS = frozenset({SourceKind.INTEGER, SourceKind.FRACTIONAL, SourceKind.DECIMAL, SourceKind.TEXT, SourceKind.BOOLEAN})
_TIMES = frozenset({SourceKind.DATE, SourceKind.TIMESTAMP, SourceKind.TEXT})


def readable(kind: SourceKind, domain: Domain) -> bool:
    """Whether a source column of this kind can be declared as this domain."""
    match domain:
        case IntegerDomain() | RealDomain():
            return kind in _NUMBERS
        case BooleanDomain():
            return kind in (SourceKind.BOOLEAN, SourceKind.INTEGER, SourceKind.TEXT)
        case DateDomain() | TimestampDomain():
            return kind in _TIMES
        case KeyDomain(text=False):
            return kind in (SourceKind.INTEGER, SourceKind.FRACTIONAL, SourceKind.DECIMAL, SourceKind.TEXT)
        case KeyDomain() | TextDomain():
            return kind in (SourceKind.TEXT, SourceKind.INTEGER, SourceKind.BOOLEAN, SourceKind.UUID)
        case _:
            assert_never(domain)


def require_readable(kind: SourceKind, domain: Domain) -> None:
    """Refuse a declaration that does not fit the source's type. Depends on types only."""
    if readable(kind, domain):
        return
    declared = "text" if isinstance(domain, KeyDomain | TextDomain) else kind_of(domain).value
    hint = "declare the column with the type it has, or convert it in the source"
    if kind in (SourceKind.FRACTIONAL, SourceKind.DECIMAL) and declared == "text":
        hint = 'engines write fractions as text in different ways: declare the column as type = "real"'
    raise PreparationError("source-type", f"a column that holds {_HOLDS[kind]} cannot be read as {declared}", hint=hint)


_HOLDS = {
    SourceKind.INTEGER: "whole numbers",
    SourceKind.FRACTIONAL: "fractions",
    SourceKind.DECIMAL: "fractions",
    SourceKind.TEXT: "text",
    SourceKind.BOOLEAN: "true and false",
    SourceKind.DATE: "dates",
    SourceKind.TIMESTAMP: "timestamps",
    SourceKind.UUID: "identifiers (uuid)",
    SourceKind.OTHER: "a type of the engine's own",
}


def sanitised(
    raw: str, kind: SourceKind, domain: Domain, *, other: str | None, dialect: Dialect, spelling: Spelling = COMMON_SPELLING
) -> str:
    """SQL of one clean value: inside ``domain`` or NULL, whatever the source holds, and never an error."""
    require_readable(kind, domain)
    match domain:
        case IntegerDomain(lo, hi):
            if kind is SourceKind.INTEGER:
                return _whole_clamped(raw, lo, hi, dialect)
            return gridded(_double(raw, kind, dialect), steps=1, lo=lo, hi=hi, dialect=dialect)
        case RealDomain(lo, hi, steps=int(steps)):
            # A wide integer is clamped before it becomes a double: engines round what is beyond 2^53 in different ways.
            whole = _whole_clamped(raw, math.floor(lo), math.ceil(hi), dialect)
            double = f"CAST({whole} AS {dialect.double})" if kind is SourceKind.INTEGER else _double(raw, kind, dialect)
            ends = (double_literal(float(end), dialect.double) for end in (lo, hi))
            within = f"least(greatest({double}, {next(ends)}), {next(ends)})"
            kept = f"(CASE WHEN {double} IS NULL THEN NULL ELSE {within} END)"
            return gridded(kept, steps=steps, lo=grid_integer(lo, steps), hi=grid_integer(hi, steps), dialect=dialect)
        case RealDomain():
            raise PreparationError("grid-missing", "a real column has no grid")
        case BooleanDomain():
            return _boolean(raw, kind, spelling, dialect)
        case DateDomain(lo, hi):
            raw = _in_common_form(raw, kind, spelling, DAY_PARTS, dialect)
            moment = _matching(raw, kind, DATE, dialect.date, dialect)
            return _between(moment, dialect.date_literal(lo), dialect.date_literal(hi))
        case TimestampDomain(lo, hi):
            raw = _in_common_form(raw, kind, spelling, (*DAY_PARTS, *TIME_PARTS), dialect)
            moment = _matching(raw, kind, TIMESTAMP, dialect.timestamp, dialect)
            return _between(moment, dialect.timestamp_literal(lo), dialect.timestamp_literal(hi))
        case KeyDomain():
            return unit_value(raw, kind, domain, dialect)
        case TextDomain(values):
            text = dialect.try_cast(raw, kind, dialect.text)
            if values is None:
                return _short(text, dialect)
            fallback = "NULL" if other is None else dialect.text_literal(other)
            listed = ", ".join(dialect.text_literal(value) for value in values) or "NULL"
            return f"(CASE WHEN {text} IS NULL THEN NULL WHEN {text} IN ({listed}) THEN {text} ELSE {fallback} END)"
        case _:
            assert_never(domain)


def outside(raw: str, kind: SourceKind, domain: Domain, dialect: Dialect, spelling: Spelling) -> str | None:
    """SQL of whether a value lies outside the bounds of its domain, so that ``sanitised`` changes it; None where there are no bounds."""
    match domain:
        case IntegerDomain(lo, hi) if kind is SourceKind.INTEGER:
            return f"({raw} < {lo} OR {raw} > {hi})"
        case IntegerDomain(lo, hi) | RealDomain(lo, hi):
            double = f"CAST({raw} AS {dialect.double})" if kind is SourceKind.INTEGER else _double(raw, kind, dialect)
            low, high = (double_literal(float(end), dialect.double) for end in (lo, hi))
            return f"({double} < {low} OR {double} > {high})"
        case DateDomain(lo, hi):
            raw = _in_common_form(raw, kind, spelling, DAY_PARTS, dialect)
            value = _matching(raw, kind, DATE, dialect.date, dialect)
            return f"({value} < {dialect.date_literal(lo)} OR {value} > {dialect.date_literal(hi)})"
        case TimestampDomain(lo, hi):
            raw = _in_common_form(raw, kind, spelling, (*DAY_PARTS, *TIME_PARTS), dialect)
            value = _matching(raw, kind, TIMESTAMP, dialect.timestamp, dialect)
            return f"({value} < {dialect.timestamp_literal(lo)} OR {value} > {dialect.timestamp_literal(hi)})"
        case _:
            return None


def undeclared(raw: str, kind: SourceKind, domain: Domain, dialect: Dialect) -> str | None:
    """SQL of whether a text is none of its declared values; None where none are declared."""
    if not isinstance(domain, TextDomain) or domain.values is None:
        return None
    text = dialect.try_cast(raw, kind, dialect.text)
    listed = ", ".join(dialect.text_literal(value) for value in domain.values) or "NULL"
    return f"({text} IS NOT NULL AND ({text} IN ({listed})) IS NOT TRUE)"


def unit_value(raw: str, kind: SourceKind, domain: Domain, dialect: Dialect) -> str:
    """SQL of a unit, a link or any identifier. Two different source values never become one: bounds do not apply, and a value that is not
    the one spelling of a whole number (1.4, '01') is NULL, so its row has no unit and is left out.
    """
    if isinstance(domain, TextDomain) or (isinstance(domain, KeyDomain) and domain.text):
        require_readable(kind, KeyDomain(text=True))
        return _short(dialect.try_cast(raw, kind, dialect.text), dialect)
    require_readable(kind, KeyDomain())
    if kind is SourceKind.DECIMAL:
        return dialect.whole_decimal(raw)
    if kind is SourceKind.FRACTIONAL:
        double = _double(raw, kind, dialect)
        limit = double_literal(float(WHOLE_DOUBLE_LIMIT), dialect.double)
        return f"(CASE WHEN floor({double}) = {double} AND abs({double}) <= {limit} THEN CAST({double} AS {dialect.integer}) END)"
    return _matching(raw, kind, WHOLE, dialect.integer, dialect)


def _short(text: str, dialect: Dialect) -> str:
    """Text that is not too long, else NULL: one value must not fill an engine's memory."""
    return f"(CASE WHEN {dialect.byte_length(text)} <= {OPEN_TEXT_BYTES} THEN {text} END)"


def _matching(raw: str, kind: SourceKind, pattern: str, target: str, dialect: Dialect) -> str:
    """The value as the type wanted; text only where it follows the grammar."""
    value = dialect.try_cast(raw, kind, target)
    if kind is not SourceKind.TEXT:
        return value
    return f"(CASE WHEN {dialect.matches(dialect.try_cast(raw, kind, dialect.text), pattern)} THEN {value} END)"


def _double(raw: str, kind: SourceKind, dialect: Dialect) -> str:
    """The value as a finite double; integers do not come here."""
    if kind is SourceKind.BOOLEAN:
        return f"CAST(CASE WHEN {raw} THEN 1 WHEN NOT {raw} THEN 0 END AS {dialect.double})"
    double = dialect.try_cast(raw, kind, dialect.double)
    finite = dialect.is_finite(double)
    if kind is not SourceKind.TEXT:
        return f"(CASE WHEN {finite} THEN {double} END)"
    text = dialect.try_cast(raw, kind, dialect.text)
    short = f"{dialect.byte_length(text)} <= {NUMBER_BYTES_MAX}"
    # nested, because an engine may look at the parts of a conjunction in any order
    inner = f"CASE WHEN {dialect.matches(text, NUMBER)} THEN CASE WHEN {finite} THEN {double} END END"
    return f"(CASE WHEN {short} THEN {inner} END)"


def _boolean(raw: str, kind: SourceKind, spelling: Spelling, dialect: Dialect) -> str:
    if kind is SourceKind.BOOLEAN:
        return dialect.try_cast(raw, kind, dialect.boolean)
    text = dialect.try_cast(raw, kind, dialect.text)
    if spelling.true:
        true, false = (", ".join(dialect.text_literal(word) for word in words) for words in (spelling.true, spelling.false))
        return f"(CASE WHEN {text} IN ({true}) THEN TRUE WHEN {text} IN ({false}) THEN FALSE END)"
    if kind is SourceKind.INTEGER:
        return f"({raw} <> 0)"
    return f"(CASE WHEN {dialect.matches(text, TRUE)} THEN TRUE WHEN {dialect.matches(text, FALSE)} THEN FALSE END)"


def _in_common_form(raw: str, kind: SourceKind, spelling: Spelling, parts: tuple[str, ...], dialect: Dialect) -> str:
    """Text in a declared format, rewritten in the common grammar, each part from its place; parts of a time that are not written are 0."""
    form = spelling.format
    if not form or kind is not SourceKind.TEXT:
        return raw
    text = dialect.try_cast(raw, kind, dialect.text)
    pattern = "".join(f"[{sign}]" for sign in form)
    for part in (*DAY_PARTS, *TIME_PARTS):
        pattern = pattern.replace("".join(f"[{sign}]" for sign in part), f"[0-9]{{{len(part)}}}")
    pieces = [f"substr({text}, {form.index(part) + 1}, {len(part)})" if part in form else "'00'" for part in parts]
    signs = ["", "-", "-", " ", ":", ":"]
    joined = " || ".join(f"'{sign}' || {value}" if sign else value for sign, value in zip(signs, pieces, strict=False))
    return f"(CASE WHEN {dialect.matches(text, pattern)} THEN {joined} END)"


def _whole_clamped(raw: str, lo: int, hi: int, dialect: Dialect) -> str:
    wide = dialect.try_cast(raw, SourceKind.INTEGER, dialect.wide_integer)
    return f"(CASE WHEN {wide} IS NULL THEN NULL ELSE CAST({clamped(wide, lo=lo, hi=hi)} AS {dialect.integer}) END)"


def _between(value: str, lo: str, hi: str) -> str:
    """Dates outside the declared range become NULL: a clamped date would be a false date."""
    return f"(CASE WHEN {value} BETWEEN {lo} AND {hi} THEN {value} END)"
