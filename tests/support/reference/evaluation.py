"""What every scalar expression must give on one row, and every sum over many.

It shares nothing with the renderer but the IR. Integers are exact, reals are IEEE doubles (Python's floats are the engine's doubles),
NULL is ``None``. The rules it mirrors are the documented ones:

- logic is SQL's three-valued logic; every other function of a NULL is NULL, except that ``LEAST`` and ``GREATEST`` leave NULLs out;
- arithmetic among integers is integer arithmetic, division and remainder rounded towards zero; with any real it is arithmetic of doubles;
- x / 0 is NULL, as are a division by a computed real smaller than 2^-30, the root of a negative number and the logarithm of 0 or less;
- a stored real is the integer k that stands for k / steps; k / steps and a constant are compared exactly, except that the constant equals
  the grid point nearest to it, which is where a source value equal to it is stored;
- text compares by its UTF-8 bytes, which is the order of its code points.

A row is a mapping from column names to stored values, as ``sanitise`` gives them: grid integers for reals, days since 1970-01-01 for dates,
microseconds for timestamps. Results have the same form; only a computed real is a float.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, assert_never

from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
    grid_integer,
    kind_of,
)
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal
from lapwing.kernel.ir import GridSum
from lapwing.kernel.stability import domain_of
from lapwing.render.letters import lower, upper
from tests.support.reference import calendar_parts as dates

Stored: TypeAlias = bool | int | float | str | None
"""A value of a prepared table or of an expression over one."""
Row: TypeAlias = Mapping[str, Stored]

SMALLEST_DIVISOR = 2.0**-30
EXP_SMALLEST = -200.0
GRID_CONSTANT_LIMIT = 2**62

_COMPARISONS: dict[Function, Callable[[Any, Any], bool]] = {
    Function.EQUAL: lambda a, b: a == b,
    Function.NOT_EQUAL: lambda a, b: a != b,
    Function.LESS: lambda a, b: a < b,
    Function.LESS_EQUAL: lambda a, b: a <= b,
    Function.GREATER: lambda a, b: a > b,
    Function.GREATER_EQUAL: lambda a, b: a >= b,
}
_INFIX: dict[Function, Callable[[Any, Any], Any]] = {
    Function.ADD: lambda a, b: a + b,
    Function.SUBTRACT: lambda a, b: a - b,
    Function.MULTIPLY: lambda a, b: a * b,
}
_WHOLE: dict[Function, Callable[[Any], int]] = {
    Function.FLOOR: math.floor,
    Function.CEILING: math.ceil,
    Function.TO_INTEGER: round,  # halves to even
}


@dataclass(frozen=True, slots=True)
class Evaluator:
    """An expression made ready: its type, and the function from a row to its value."""

    kind: Kind
    steps: int | None
    """Steps per 1 when the value is a grid integer."""
    value: Callable[[Row], Any]

    def as_double(self) -> Callable[[Row], Any]:
        """The numeric value as a double."""
        value, steps = self.value, self.steps
        if self.kind is Kind.REAL and steps is None:
            return value
        divisor = float(steps or 1)
        return _strict(lambda number: float(number) / divisor, value)


def evaluate(expression: Expression, row: Row, columns: Mapping[str, Domain]) -> Stored:
    """Value of an expression on one row of a relation with these columns."""
    result: Stored = evaluator(expression, columns).value(row)
    return result


def evaluator(expression: Expression, columns: Mapping[str, Domain]) -> Evaluator:
    """The expression as a Python function, to be called on many rows. Pre: ``domain_of`` accepts it."""
    match expression:
        case Column(name):
            domain = columns[name]
            steps = domain.steps if isinstance(domain, RealDomain) else None
            return Evaluator(kind_of(domain), steps, lambda row: row[name])
        case Literal(constant, kind):
            value = float(constant) if kind is Kind.REAL and isinstance(constant, int | Fraction) else constant
            return Evaluator(kind, None, lambda _: value)
        case Case(branches, otherwise):
            conditions = [evaluator(condition, columns).value for condition, _ in branches]
            form, values = _common([*(value for _, value in branches), otherwise], columns, typed_null=True)
            return Evaluator(*form, _case(conditions, values))
        case Call(function, arguments):
            return _call(function, arguments, expression, columns)


def grid_sum(measure: GridSum, rows: Iterable[Row], columns: Mapping[str, Domain]) -> int:
    """The exact sum over rows of clamp(floor(value * steps + 1/2)) - offset, rows with a NULL value left out."""
    contribution = grid_contribution(measure, columns)
    return sum(number for row in rows if (number := contribution(row)) is not None)


def grid_contribution(measure: GridSum, columns: Mapping[str, Domain]) -> Callable[[Row], int | None]:
    """What one row adds to a sum, or None."""
    found = evaluator(measure.value, columns)
    bounded = bounded_integer(measure, found)
    return lambda row: bounded(found.value(row))


def bounded_integer(measure: GridSum, found: Evaluator) -> Callable[[Stored], int | None]:
    """What one value of the summed expression adds, or None: on the grid of the sum, inside its bounds, less the offset."""
    low, high = grid_integer(measure.lower, measure.steps), grid_integer(measure.upper, measure.steps)
    on_grid = measure.steps == (1 if found.kind is Kind.INTEGER else found.steps)
    scale, divisor = float(measure.steps), float(found.steps or 1)

    def bounded(value: Any) -> int | None:
        if value is None:
            return None
        number = value if on_grid else half_up(float(value) / divisor * scale)
        return min(max(number, low), high) - measure.offset

    return bounded


def half_up(number: float) -> int:
    """floor(number + 1/2) with the sum rounded to a double, as the engine has it."""
    return math.floor(number + 0.5)


def _strict(function: Callable[..., Any], *values: Callable[[Row], Any]) -> Callable[[Row], Any]:
    """NULL when any argument is NULL."""
    if len(values) == 1:
        only = values[0]

        def one(row: Row) -> Any:
            argument = only(row)
            return None if argument is None else function(argument)

        return one

    def several(row: Row) -> Any:
        arguments = [value(row) for value in values]
        return None if None in arguments else function(*arguments)

    return several


def _case(conditions: list[Callable[[Row], Any]], values: list[Callable[[Row], Any]]) -> Callable[[Row], Any]:
    def value(row: Row) -> Any:
        for condition, result in zip(conditions, values, strict=False):
            if condition(row) is True:
                return result(row)
        return values[-1](row)

    return value


def _common(
    arguments: list[Expression], columns: Mapping[str, Domain], *, typed_null: bool = False
) -> tuple[tuple[Kind, int | None], list[Callable[[Row], Any]]]:
    """One type for all arguments: integers stay integers, equal grids stay grids, any other mixture of numbers becomes doubles.

    ``typed_null``: the constant NULL has the grid of the others, where it has their type.
    """
    found = [evaluator(argument, columns) for argument in arguments]
    valued = [item for item, argument in zip(found, arguments, strict=True) if argument != Literal(None, item.kind)]
    kinds = {item.kind for item in found}
    grids = {item.steps for item in (valued if typed_null and valued else found)}
    if len(kinds) == 1 and len(grids) == 1 and typed_null and valued:
        return (valued[0].kind, valued[0].steps), [item.value for item in found]
    if len(kinds) == 1 and len(grids) == 1:
        return (found[0].kind, found[0].steps), [item.value for item in found]
    return (Kind.REAL, None), [item.as_double() for item in found]


def _call(function: Function, arguments: tuple[Expression, ...], whole: Call, columns: Mapping[str, Domain]) -> Evaluator:
    match function:
        case Function.AND | Function.OR:
            values = [evaluator(argument, columns).value for argument in arguments]
            return Evaluator(Kind.BOOLEAN, None, _connective(values, deciding=function is Function.OR))
        case Function.NOT:
            return Evaluator(Kind.BOOLEAN, None, _strict(lambda truth: not truth, evaluator(arguments[0], columns).value))
        case Function.IS_NULL:
            inner = evaluator(arguments[0], columns).value
            return Evaluator(Kind.BOOLEAN, None, lambda row: inner(row) is None)
        case Function.IN:
            equal = [_comparison(Function.EQUAL, (arguments[0], option), columns, listed=arguments[1:]) for option in arguments[1:]]
            return Evaluator(Kind.BOOLEAN, None, _connective(equal, deciding=True))
        case Function.NULL_IF:
            first, same = evaluator(arguments[0], columns), _comparison(Function.EQUAL, arguments, columns)
            return Evaluator(first.kind, first.steps, lambda row: None if same(row) is True else first.value(row))
        case Function.COALESCE:
            form, values = _common(list(arguments), columns)
            return Evaluator(*form, lambda row: next((found for value in values if (found := value(row)) is not None), None))
        case Function.STARTS_WITH:
            text, prefix = (evaluator(argument, columns).value for argument in arguments)
            return Evaluator(Kind.BOOLEAN, None, _strict(str.startswith, text, prefix))
        case Function.LENGTH | Function.POSITION | Function.SUBSTRING | Function.LOWER | Function.UPPER:
            kind = Kind.INTEGER if function in (Function.LENGTH, Function.POSITION) else Kind.TEXT
            return Evaluator(kind, None, _strict(_OF_TEXT[function], *(evaluator(argument, columns).value for argument in arguments)))
        case _ if function in _COMPARISONS:
            return Evaluator(Kind.BOOLEAN, None, _comparison(function, arguments, columns))
        case _ if function in dates.PARTS or function in dates.TRUNCATIONS:
            return _date(function, evaluator(arguments[0], columns))
        case Function.TRUNCATE_HOUR | Function.TRUNCATE_MINUTE:
            size = dates.TIME_TRUNCATIONS[function]
            return Evaluator(Kind.TIMESTAMP, None, _strict(lambda moment: moment - moment % size, evaluator(arguments[0], columns).value))
        case Function.DATE_OF | Function.TIMESTAMP_OF:
            kind = Kind.DATE if function is Function.DATE_OF else Kind.TIMESTAMP
            return Evaluator(kind, None, evaluator(arguments[0], columns).value)
        case Function.ADD_MONTHS:
            return _add_months(evaluator(arguments[0], columns), arguments[1])
        case Function.TO_GRID:
            return _to_grid(arguments, whole, columns)
        case Function.STEPS:
            return Evaluator(Kind.INTEGER, None, evaluator(arguments[0], columns).value)
        case Function.OF_STEPS:
            steps = arguments[1]
            assert isinstance(steps, Literal) and isinstance(steps.value, int)
            return Evaluator(Kind.REAL, steps.value, evaluator(arguments[0], columns).value)
        case _:
            return _number(function, arguments, columns)


_OF_TEXT: dict[Function, Callable[..., Any]] = {
    Function.LENGTH: len,
    Function.POSITION: lambda text, part: text.find(part) + 1,
    Function.SUBSTRING: lambda text, start, length: text[start - 1 : start - 1 + length],
    Function.LOWER: lower,
    Function.UPPER: upper,
}


def _connective(values: list[Callable[[Row], Any]], *, deciding: bool) -> Callable[[Row], Any]:
    """AND (deciding: false) or OR (deciding: true) of three-valued truths."""

    def value(row: Row) -> bool | None:
        truths = [item(row) for item in values]
        if deciding in truths:
            return deciding
        return None if None in truths else not deciding

    return value


def _comparison(
    function: Function, arguments: tuple[Expression, ...], columns: Mapping[str, Domain], *, listed: tuple[Expression, ...] | None = None
) -> Callable[[Row], Any]:
    """A comparison; ``listed`` are all options of an IN, which are compared in one way."""
    compare = _COMPARISONS[function]
    left, right = (evaluator(argument, columns) for argument in arguments)
    constants = [_grid_constant(left, arguments[0], option, function) for option in (listed or arguments[1:])]
    if (scaled := _grid_constant(left, arguments[0], arguments[1], function)) is not None and None not in constants:
        return _strict(lambda stored: compare(stored, scaled), left.value)
    if listed is None and (scaled := _grid_constant(right, arguments[1], arguments[0], function)) is not None:
        return _strict(lambda stored: compare(scaled, stored), right.value)
    kinds = {left.kind, right.kind, *(evaluator(option, columns).kind for option in listed or ())}
    if Kind.REAL in kinds:
        return _strict(compare, left.as_double(), right.as_double())
    return _strict(compare, left.value, right.value)


def _grid_constant(found: Evaluator, expression: Expression, constant: Expression, function: Function) -> Fraction | None:
    """A constant beside a stored real, in steps of its grid."""
    if not isinstance(expression, Column) or found.steps is None or not isinstance(constant, Literal):
        return None
    if not isinstance(constant.value, int | Fraction):
        return None
    scaled = Fraction(constant.value) * found.steps
    if abs(scaled) >= GRID_CONSTANT_LIMIT:
        return None
    return Fraction(grid_integer(scaled, 1)) if function in (Function.EQUAL, Function.NOT_EQUAL) else scaled


def _date(function: Function, argument: Evaluator) -> Evaluator:
    part: Callable[[int], int]
    if function in dates.PARTS:
        part = dates.PARTS[function]
        convert = part if argument.kind is Kind.TIMESTAMP else lambda days: part(days * dates.DAY_MICROSECONDS)
        return Evaluator(Kind.INTEGER, None, _strict(convert, argument.value))
    first_day = dates.TRUNCATIONS[function]
    if argument.kind is Kind.DATE:
        return Evaluator(Kind.DATE, None, _strict(first_day, argument.value))
    day = dates.DAY_MICROSECONDS
    return Evaluator(Kind.TIMESTAMP, None, _strict(lambda moment: first_day(moment // day) * day, argument.value))


def _add_months(argument: Evaluator, months: Expression) -> Evaluator:
    assert isinstance(months, Literal) and isinstance(months.value, int)
    count, day = months.value, dates.DAY_MICROSECONDS
    if argument.kind is Kind.DATE:
        return Evaluator(Kind.DATE, None, _strict(lambda days: dates.add_months(days, count), argument.value))
    moved = _strict(lambda moment: dates.add_months(moment // day, count) * day + moment % day, argument.value)
    return Evaluator(Kind.TIMESTAMP, None, moved)


def _to_grid(arguments: tuple[Expression, ...], whole: Call, columns: Mapping[str, Domain]) -> Evaluator:
    found, steps = evaluator(arguments[0], columns), arguments[1]
    assert isinstance(steps, Literal) and isinstance(steps.value, int)
    per_one = steps.value
    if found.steps == per_one:
        return found
    # The ends are a public fact of the expression, and part of what the function means: its result is clamped to them.
    domain = domain_of(whole, columns)
    assert isinstance(domain, RealDomain)
    low, high = grid_integer(domain.lo, per_one), grid_integer(domain.hi, per_one)
    scaled = _strict(lambda number: min(max(half_up(number * float(per_one)), low), high), found.as_double())
    return Evaluator(Kind.REAL, per_one, scaled)


def _number(function: Function, arguments: tuple[Expression, ...], columns: Mapping[str, Domain]) -> Evaluator:
    found = [evaluator(argument, columns) for argument in arguments]
    integers = all(item.kind is Kind.INTEGER for item in found)
    kind = Kind.INTEGER if integers else Kind.REAL
    values = [item.value if integers else item.as_double() for item in found]
    match function:
        case Function.ADD | Function.SUBTRACT | Function.MULTIPLY:
            return Evaluator(kind, None, _strict(_INFIX[function], *values))
        case Function.NEGATE:
            return Evaluator(kind, None, _strict(lambda number: -number, *values))
        case Function.ABS:
            return Evaluator(kind, None, _strict(abs, *values))
        case Function.INTEGER_DIVIDE:
            return Evaluator(Kind.INTEGER, None, _strict(_quotient, *values))
        case Function.MODULO:
            return Evaluator(Kind.INTEGER, None, _strict(_remainder, *values))
        case Function.SIGN:
            return Evaluator(Kind.INTEGER, None, _strict(lambda number: (number > 0) - (number < 0), *values))
        case Function.LEAST | Function.GREATEST:
            choose: Callable[..., Any] = min if function is Function.LEAST else max
            return Evaluator(kind, None, lambda row: choose((known for value in values if (known := value(row)) is not None), default=None))
        case Function.FLOOR | Function.CEILING | Function.TO_INTEGER:
            return Evaluator(Kind.INTEGER, None, _strict(_WHOLE[function], *values))
        case Function.ROUND:
            return _round(found[0], arguments[1])
        case _:
            return Evaluator(Kind.REAL, None, _doubles(function, found))


def _doubles(function: Function, found: list[Evaluator]) -> Callable[[Row], Any]:
    """Functions that always work on doubles."""
    first = found[0].as_double()
    match function:
        case Function.TO_REAL:
            return first
        case Function.DIVIDE:
            exact = found[1].kind is Kind.INTEGER or found[1].steps is not None
            # an integer or grid divisor is 0 or at least one step; half a step tells them apart
            least = float(Fraction(1, found[1].steps or 1)) / 2 if exact else SMALLEST_DIVISOR
            return _strict(lambda a, b: a / b if abs(b) >= least else None, first, found[1].as_double())
        case Function.SQRT:
            return _strict(lambda number: math.sqrt(number) if number >= 0 else None, first)
        case Function.LN:
            return _strict(lambda number: math.log(number) if number > 0 else None, first)
        case Function.LOG_2:
            return _strict(lambda number: math.log2(number) if number > 0 else None, first)
        case Function.LOG_10:
            return _strict(lambda number: math.log10(number) if number > 0 else None, first)
        case Function.SIN:
            return _strict(math.sin, first)
        case Function.COS:
            return _strict(math.cos, first)
        case Function.EXP:
            return _strict(lambda number: math.exp(max(number, EXP_SMALLEST)), first)
        case _:
            raise AssertionError(f"no reference for {function}")


def _quotient(a: int, b: int) -> int | None:
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int | None:
    quotient = _quotient(a, b)
    return None if quotient is None else a - b * quotient


def _round(found: Evaluator, digits: Expression) -> Evaluator:
    """round(x * 10^digits) / 10^digits in doubles, halves away from zero; an integer stays as it is."""
    assert isinstance(digits, Literal) and isinstance(digits.value, int)
    if found.kind is Kind.INTEGER:
        return found
    scale = float(10**digits.value)
    return Evaluator(Kind.REAL, None, _strict(lambda number: half_away(number * scale) / scale, found.as_double()))


def half_away(number: float) -> float:
    """The nearest whole number, halves away from zero."""
    whole = math.trunc(number)
    # the difference of a double and its whole part is exact
    return float(whole + (1 if number > 0 else -1)) if abs(number - whole) >= 0.5 else float(whole)


def in_domain(value: Stored, domain: Domain) -> bool:
    """Whether a value that preparation stored or an engine computed is one that the domain allows."""
    if value is None:
        return domain.nullable
    match domain:
        case BooleanDomain():
            return type(value) is bool
        case IntegerDomain(lo, hi) | DateDomain(lo, hi) | TimestampDomain(lo, hi):
            return type(value) is int and lo <= value <= hi
        case RealDomain(lo, hi, steps=int(steps)):
            return type(value) is int and grid_integer(lo, steps) <= value <= grid_integer(hi, steps)
        case RealDomain(lo, hi):
            return type(value) is float and math.isfinite(value) and lo <= Fraction(value) <= hi
        case TextDomain(values):
            return type(value) is str and (values is None or value in values)
        case KeyDomain(text=text):
            return type(value) is (str if text else int)
        case _:
            assert_never(domain)
