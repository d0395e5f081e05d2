"""Scalar expressions of the IR: a closed union, evaluated by the engine on one row at a time.

Every expression is total: it gives a value or NULL on any row, and never raises. Which functions exist is the closed list ``Function``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, assert_never

from lapwing.kernel.domains import Kind

Value: TypeAlias = bool | int | Fraction | str | None
"""A literal or key: dates are days, timestamps microseconds, reals exact fractions."""


class Function(Enum):
    """The closed list of scalar functions. Each has one domain rule, one rendering per engine and one reference."""

    AND = "and"
    OR = "or"
    NOT = "not"
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    IN = "in"
    IS_NULL = "is null"
    STARTS_WITH = "starts_with"
    LENGTH = "length"
    POSITION = "position"
    SUBSTRING = "substring"
    LOWER = "lower"
    UPPER = "upper"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    INTEGER_DIVIDE = "integer_divide"
    MODULO = "mod"
    NEGATE = "negate"
    ABS = "abs"
    SIGN = "sign"
    FLOOR = "floor"
    CEILING = "ceiling"
    ROUND = "round"
    SQRT = "sqrt"
    LN = "ln"
    EXP = "exp"
    LOG_2 = "log2"
    LOG_10 = "log10"
    SIN = "sin"
    COS = "cos"
    LEAST = "least"
    GREATEST = "greatest"
    NULL_IF = "nullif"
    COALESCE = "coalesce"
    TO_REAL = "to_real"
    TO_INTEGER = "to_integer"
    TO_GRID = "to_grid"
    STEPS = "steps"
    OF_STEPS = "of_steps"
    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    DAY = "day"
    DAY_OF_WEEK = "day_of_week"
    DAY_OF_YEAR = "day_of_year"
    WEEK = "week"
    ISO_YEAR = "iso_year"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    TRUNCATE_YEAR = "truncate_year"
    TRUNCATE_QUARTER = "truncate_quarter"
    TRUNCATE_MONTH = "truncate_month"
    TRUNCATE_WEEK = "truncate_week"
    TRUNCATE_DAY = "truncate_day"
    TRUNCATE_HOUR = "truncate_hour"
    TRUNCATE_MINUTE = "truncate_minute"
    DAY_NUMBER = "day_number"
    MICROSECONDS = "microseconds"
    DATE_OF = "date_of"
    TIMESTAMP_OF = "timestamp_of"
    ADD_MONTHS = "add_months"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the relation the expression is evaluated over."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of the statement."""

    value: Value
    kind: Kind


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the closed list applied to arguments."""

    function: Function
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """First branch whose condition is true, else ``otherwise``."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


Expression: TypeAlias = Column | Literal | Call | Case


def call(function: Function, *arguments: Expression) -> Call:
    """Shorthand for building expressions."""
    return Call(function, arguments)


def is_null(expression: Expression) -> bool:
    """Whether it is the constant NULL."""
    return isinstance(expression, Literal) and expression.value is None


def not_null(expression: Expression) -> Call:
    """``expression IS NOT NULL``."""
    return call(Function.NOT, call(Function.IS_NULL, expression))


def columns_of(expression: Expression) -> frozenset[str]:
    """Names of all columns an expression reads."""
    match expression:
        case Column(name):
            return frozenset((name,))
        case Literal():
            return frozenset()
        case Call(_, arguments):
            return frozenset[str]().union(*(columns_of(argument) for argument in arguments))
        case Case(branches, otherwise):
            return columns_of(otherwise).union(*(columns_of(part) for branch in branches for part in branch))
        case _:
            assert_never(expression)


def part_count(expression: Expression) -> int:
    """How many columns, constants, functions and conditions an expression is made of, written out."""
    match expression:
        case Column() | Literal():
            return 1
        case Call(_, arguments):
            return 1 + sum(part_count(argument) for argument in arguments)
        case Case(branches, otherwise):
            return 1 + part_count(otherwise) + sum(part_count(part) for branch in branches for part in branch)
        case _:
            assert_never(expression)
