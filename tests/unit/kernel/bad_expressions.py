"""Expressions with one fault each, and the same without it: over the columns of :mod:`tests.unit.kernel.bad_plans`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, call
from tests.unit.kernel.bad_plans import CITY, FLAG, MONEY, NOTE, N

DAY, AT, CARD, WIDE = Column("day"), Column("at"), Column("card"), Column("wide")


def number(value: Any, kind: Kind = Kind.INTEGER) -> Literal:
    """A constant, which may be none of its kind."""
    return Literal(value, kind)


LARGE = number(Fraction(2**200), Kind.REAL)

EXPRESSIONS: dict[str, tuple[str, Expression, Expression]] = {
    "a real constant that is too large": ("range-too-wide", LARGE, number(Fraction(2**301), Kind.REAL)),
    "an integer constant of 63 bits": ("range-too-wide", number(2**62 - 1), number(2**62)),
    "a date after the calendar": ("range-too-wide", number(0, Kind.DATE), number(10**7, Kind.DATE)),
    "a moment before the calendar": ("range-too-wide", number(0, Kind.TIMESTAMP), number(-(10**18), Kind.TIMESTAMP)),
    "a text for an integer": ("type-mismatch", number(1), number("1")),
    "a truth for an integer": ("type-mismatch", number(1), number(True)),
    "a text with the character 0": ("text-invalid", number("a", Kind.TEXT), number("a\x00", Kind.TEXT)),
    "a text with half a pair": ("text-invalid", number("a", Kind.TEXT), number("\ud800", Kind.TEXT)),
    "a condition that is a text": ("type-mismatch", Case(((FLAG, N),), N), Case(((CITY, N),), N)),
    "a case of numbers and texts": ("type-mismatch", Case(((FLAG, N),), N), Case(((FLAG, N),), CITY)),
    "integers that leave 62 bits": ("range-too-wide", call(Function.ADD, N, N), call(Function.MULTIPLY, WIDE, WIDE)),
    "reals that leave the range": (
        "range-too-wide",
        call(Function.MULTIPLY, LARGE, MONEY),
        call(Function.MULTIPLY, LARGE, LARGE),
    ),
    "one condition for AND": ("wrong-arguments", call(Function.AND, FLAG, FLAG), call(Function.AND, FLAG)),
    "two conditions for NOT": ("wrong-arguments", call(Function.NOT, FLAG), call(Function.NOT, FLAG, FLAG)),
    "OR of numbers": ("type-mismatch", call(Function.OR, FLAG, FLAG), call(Function.OR, FLAG, N)),
    "a number compared with a text": ("type-mismatch", call(Function.LESS, N, MONEY), call(Function.LESS, N, CITY)),
    "identifiers compared": ("type-mismatch", call(Function.EQUAL, CITY, NOTE), call(Function.EQUAL, CARD, CARD)),
    "three things compared": ("wrong-arguments", call(Function.EQUAL, N, N), call(Function.EQUAL, N, N, N)),
    "IN a column": ("wrong-arguments", call(Function.IN, N, number(1)), call(Function.IN, N, N)),
    "IN nothing": ("wrong-arguments", call(Function.IN, N, number(1)), call(Function.IN, N)),
    "a number IN texts": ("type-mismatch", call(Function.IN, N, number(1)), call(Function.IN, N, number("a", Kind.TEXT))),
    "a start that is a column": (
        "type-mismatch",
        call(Function.STARTS_WITH, NOTE, number("a", Kind.TEXT)),
        call(Function.STARTS_WITH, NOTE, CITY),
    ),
    "a long text beside open text": (
        "range-too-wide",
        call(Function.COALESCE, NOTE, number("a" * 1_024, Kind.TEXT)),
        call(Function.COALESCE, NOTE, number("a" * 1_025, Kind.TEXT)),
    ),
    "the length of a number": ("type-mismatch", call(Function.LENGTH, NOTE), call(Function.LENGTH, N)),
    "a long text in capitals": ("range-too-wide", call(Function.UPPER, NOTE), call(Function.UPPER, number("a" * 1_025, Kind.TEXT))),
    "the place of a column": (
        "type-mismatch",
        call(Function.POSITION, NOTE, number("a", Kind.TEXT)),
        call(Function.POSITION, NOTE, CITY),
    ),
    "the place of nothing": (
        "wrong-arguments",
        call(Function.POSITION, NOTE, number("a", Kind.TEXT)),
        call(Function.POSITION, NOTE, number("", Kind.TEXT)),
    ),
    "a part from 0": (
        "wrong-arguments",
        call(Function.SUBSTRING, NOTE, number(1), number(1)),
        call(Function.SUBSTRING, NOTE, number(0), number(1)),
    ),
    "a part from a text": (
        "type-mismatch",
        call(Function.SUBSTRING, NOTE, number(1), number(1)),
        call(Function.SUBSTRING, NOTE, NOTE, number(1)),
    ),
    "a text added": ("type-mismatch", call(Function.ADD, N, N), call(Function.ADD, N, CITY)),
    "a real divided like an integer": (
        "type-mismatch",
        call(Function.INTEGER_DIVIDE, N, N),
        call(Function.INTEGER_DIVIDE, MONEY, N),
    ),
    "a remainder of a real": ("type-mismatch", call(Function.MODULO, N, N), call(Function.MODULO, MONEY, N)),
    "EXP of a large number": ("range-too-wide", call(Function.EXP, N), call(Function.EXP, WIDE)),
    "ROUND to a column": (
        "wrong-arguments",
        call(Function.ROUND, MONEY, number(1)),
        call(Function.ROUND, MONEY, N),
    ),
    "the least of one": ("wrong-arguments", call(Function.LEAST, N, N), call(Function.LEAST, N)),
    "the greatest text": ("type-mismatch", call(Function.GREATEST, N, N), call(Function.GREATEST, CITY, CITY)),
    "NULLIF of a number and a text": ("type-mismatch", call(Function.NULL_IF, N, N), call(Function.NULL_IF, N, CITY)),
    "COALESCE of nothing": ("wrong-arguments", call(Function.COALESCE, N, N), call(Function.COALESCE)),
    "a grid with no step": ("wrong-arguments", call(Function.TO_GRID, MONEY, number(2)), call(Function.TO_GRID, MONEY, number(0))),
    "a grid that is too fine": (
        "range-too-wide",
        call(Function.TO_GRID, MONEY, number(10**12)),
        call(Function.TO_GRID, WIDE, number(10**12)),
    ),
    "steps of an integer": ("type-mismatch", call(Function.STEPS, MONEY), call(Function.STEPS, N)),
    "steps of a double": ("type-mismatch", call(Function.STEPS, MONEY), call(Function.STEPS, call(Function.TO_REAL, MONEY))),
    "a whole number of no steps": ("wrong-arguments", call(Function.OF_STEPS, N, number(2)), call(Function.OF_STEPS, N, number(0))),
    "a real number of steps": ("type-mismatch", call(Function.OF_STEPS, N, number(2)), call(Function.OF_STEPS, MONEY, number(2))),
    "more steps than a double counts": (
        "range-too-wide",
        call(Function.OF_STEPS, number(2**52 - 1), number(2)),
        call(Function.OF_STEPS, number(2**52), number(2)),
    ),
    "the year of a number": ("type-mismatch", call(Function.YEAR, DAY), call(Function.YEAR, N)),
    "the hour of a day": ("type-mismatch", call(Function.HOUR, AT), call(Function.HOUR, DAY)),
    "a day cut to the hour": ("type-mismatch", call(Function.TRUNCATE_HOUR, AT), call(Function.TRUNCATE_HOUR, DAY)),
    "microseconds of a day": ("type-mismatch", call(Function.MICROSECONDS, AT), call(Function.MICROSECONDS, DAY)),
    "the date of a text": ("type-mismatch", call(Function.DATE_OF, N), call(Function.DATE_OF, CITY)),
    "the date of any number": ("range-too-wide", call(Function.DATE_OF, N), call(Function.DATE_OF, WIDE)),
    "the moment of a day": ("type-mismatch", call(Function.TIMESTAMP_OF, N), call(Function.TIMESTAMP_OF, DAY)),
    "the moment of any number": ("range-too-wide", call(Function.TIMESTAMP_OF, N), call(Function.TIMESTAMP_OF, WIDE)),
    "months that are a column": ("wrong-arguments", call(Function.ADD_MONTHS, DAY, number(1)), call(Function.ADD_MONTHS, DAY, N)),
    "months beyond the calendar": (
        "range-too-wide",
        call(Function.ADD_MONTHS, DAY, number(1)),
        call(Function.ADD_MONTHS, DAY, number(12 * 9_000)),
    ),
}
"""Name to the code of the refusal, what is accepted, and what is refused."""
