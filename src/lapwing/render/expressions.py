"""Scalar expressions to SQL. Each result has a physical form fixed by its domain.

Integers are 64-bit integers. A real on a grid (``steps`` set) is the 64-bit grid integer; any other real is a double. All forms are total:
a certified expression cannot raise on any row (fuzzed in tests/engines).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import DateDomain, Domain, IntegerDomain, KeyDomain, Kind, RealDomain, grid_integer, is_numeric
from lapwing.kernel.expression_domains import Domains
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, is_null
from lapwing.kernel.functions import EXP_LIMIT, smallest_divisor
from lapwing.render.dialect import Dialect, double_literal
from lapwing.render.magnitudes import may_underflow

SQL_BYTES_MAX = 1_000_000
"""Longest SQL a plan may render to, all its statements together."""

_COMPARISONS = {
    Function.EQUAL: "=",
    Function.NOT_EQUAL: "<>",
    Function.LESS: "<",
    Function.LESS_EQUAL: "<=",
    Function.GREATER: ">",
    Function.GREATER_EQUAL: ">=",
}
_INFIX = {Function.ADD: "+", Function.SUBTRACT: "-", Function.MULTIPLY: "*"}


@dataclass(frozen=True, slots=True)
class VisibleColumns:
    """The columns an expression can see, and the table alias they are read from; of a pair of rows, some are read from another."""

    columns: Mapping[str, Domain]
    alias: str
    dialect: Dialect
    elsewhere: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Alias and column of those."""
    domains: Domains = field(init=False, repr=False, compare=False)
    """Domains of expressions over the columns."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "domains", Domains(self.columns))


def render_expression(expression: Expression, scope: VisibleColumns) -> str:
    """SQL of an expression in the physical form of its own domain."""
    match expression:
        case Column(name):
            alias, read = scope.elsewhere.get(name, (scope.alias, name))
            return f"{alias}.{scope.dialect.quoted(read)}"
        case Literal():
            return _literal(expression, scope.dialect)
        case Case(branches, otherwise):
            domain = scope.domains.of(expression)
            parts = [f"WHEN {render_expression(condition, scope)} THEN {_as(value, domain, scope)}" for condition, value in branches]
            return f"(CASE {' '.join(parts)} ELSE {_as(otherwise, domain, scope)} END)"
        case Call(function, arguments):
            sql = _call(function, arguments, expression, scope)
            if len(sql) > SQL_BYTES_MAX:
                raise Refused("statement-too-large", "the statement becomes too large for an engine")
            return sql
        case _:
            assert_never(expression)


def as_double(expression: Expression, scope: VisibleColumns) -> str:
    """SQL of a numeric expression as a double."""
    domain = scope.domains.of(expression)
    if isinstance(expression, Literal) and isinstance(expression.value, int | Fraction):
        return double_literal(float(expression.value), scope.dialect.double)
    sql = render_expression(expression, scope)
    match domain:
        case IntegerDomain():
            return f"CAST({sql} AS {scope.dialect.double})"
        case RealDomain(steps=int(steps)):
            # The quotient of two integers below 2^53 is rounded once: 12.34 on the grid 1/100 comes back as the very same double.
            return f"(CAST({sql} AS {scope.dialect.double}) / CAST({steps} AS {scope.dialect.double}))"
        case _:
            return sql


def _as(expression: Expression, domain: Domain, scope: VisibleColumns) -> str:
    """SQL in the physical form of a wider ``domain``."""
    if isinstance(domain, RealDomain) and domain.steps is None:
        return as_double(expression, scope)
    if isinstance(domain, RealDomain) and is_null(expression):
        return f"CAST(NULL AS {scope.dialect.integer})"  # a real on a grid is stored as an integer, and so is its NULL
    if isinstance(domain, KeyDomain) and is_null(expression):
        return f"CAST(NULL AS {scope.dialect.text if domain.text else scope.dialect.integer})"  # a constant does not say which it is
    return render_expression(expression, scope)


def _literal(literal: Literal, dialect: Dialect) -> str:
    value = literal.value
    types = {
        Kind.BOOLEAN: dialect.boolean,
        Kind.INTEGER: dialect.integer,
        Kind.REAL: dialect.double,
        Kind.TEXT: dialect.text,
        Kind.DATE: dialect.date,
        Kind.TIMESTAMP: dialect.timestamp,
        Kind.KEY: dialect.integer,
    }
    if value is None:
        return f"CAST(NULL AS {types[literal.kind]})"
    match literal.kind, value:
        case Kind.BOOLEAN, bool():
            return "TRUE" if value else "FALSE"
        case Kind.REAL, (int() | Fraction()):
            return double_literal(float(value), dialect.double)
        case Kind.INTEGER, int():
            return f"CAST({value} AS {dialect.integer})"
        case Kind.DATE, int():
            return dialect.date_literal(value)
        case Kind.TIMESTAMP, int():
            return dialect.timestamp_literal(value)
        case Kind.TEXT, str():
            return dialect.text_literal(value)
        case _:
            raise Refused("type-mismatch", f"a constant does not fit the type {literal.kind.value}")


def _call(function: Function, arguments: tuple[Expression, ...], whole: Call, scope: VisibleColumns) -> str:
    match function:
        case Function.AND | Function.OR:
            joined = f" {function.name} ".join(render_expression(argument, scope) for argument in arguments)
            return f"({joined})"
        case Function.NOT:
            return f"(NOT {render_expression(arguments[0], scope)})"
        case Function.IS_NULL:
            return f"({render_expression(arguments[0], scope)} IS NULL)"
        case Function.IN:
            return _in(arguments, scope)
        case Function.NULL_IF:
            condition = _compare(Function.EQUAL, arguments, scope)
            return f"(CASE WHEN {condition} THEN NULL ELSE {render_expression(arguments[0], scope)} END)"
        case Function.COALESCE:
            domain = scope.domains.of(whole)
            return f"COALESCE({', '.join(_as(argument, domain, scope) for argument in arguments)})"
        case _ if function in _COMPARISONS:
            return _compare(function, arguments, scope)
        case _:
            return _numeric_or_own(function, arguments, whole, scope)


def _numeric_or_own(function: Function, arguments: tuple[Expression, ...], whole: Call, scope: VisibleColumns) -> str:
    """Arithmetic on integers or doubles by the kind of the result; everything else as the dialect emits it."""
    dialect, emit = scope.dialect, scope.dialect.functions
    domain = scope.domains.of(whole)
    inputs = tuple(scope.domains.of(argument) for argument in arguments)
    whole_numbers = all(isinstance(given, IntegerDomain) for given in inputs)
    convert = render_expression if whole_numbers else as_double
    match function:
        case Function.MULTIPLY if not whole_numbers and may_underflow(whole, scope.domains):
            return dialect.product(as_double(arguments[0], scope), as_double(arguments[1], scope))
        case Function.ADD | Function.SUBTRACT | Function.MULTIPLY:
            return f"({convert(arguments[0], scope)} {_INFIX[function]} {convert(arguments[1], scope)})"
        case Function.DIVIDE:
            divisor = as_double(arguments[1], scope)
            least = float(smallest_divisor(inputs[1])) / 2 if is_exact_divisor(inputs[1]) else float(smallest_divisor(inputs[1]))
            usable = f"(CASE WHEN abs({divisor}) >= {double_literal(least, dialect.double)} THEN {divisor} END)"
            dividend = as_double(arguments[0], scope)
            return dialect.ratio(dividend, usable) if may_underflow(whole, scope.domains) else f"({dividend} / {usable})"
        case Function.NEGATE:
            return f"(- {convert(arguments[0], scope)})"
        case Function.ABS:
            return f"abs({convert(arguments[0], scope)})"
        case Function.LEAST | Function.GREATEST:
            return dialect.extreme(function.value, [convert(argument, scope) for argument in arguments])
        case Function.TO_REAL:
            return as_double(arguments[0], scope)
        case Function.TO_GRID:
            return _to_grid(arguments, domain, scope)
        case Function.STEPS | Function.OF_STEPS:
            return render_expression(arguments[0], scope)  # a real on a grid is stored as that integer
        case Function.FLOOR | Function.CEILING | Function.TO_INTEGER if whole_numbers:
            return render_expression(arguments[0], scope)
        case Function.ROUND:
            digits = arguments[1]
            if isinstance(inputs[0], IntegerDomain) or not isinstance(digits, Literal):
                return render_expression(arguments[0], scope)
            return emit[function](as_double(arguments[0], scope), digits.value)
        case Function.EXP:
            # a CASE, because greatest would turn NULL into the limit
            value = as_double(arguments[0], scope)
            return emit[function](f"(CASE WHEN {value} < {-EXP_LIMIT}.0 THEN {-EXP_LIMIT}.0 ELSE {value} END)")
        case Function.SIN | Function.COS:
            return emit[function](as_double(arguments[0], scope))
        case Function.SQRT | Function.LN | Function.LOG_2 | Function.LOG_10:
            value = as_double(arguments[0], scope)
            sign = ">=" if function is Function.SQRT else ">"
            return emit[function](f"(CASE WHEN {value} {sign} 0 THEN {value} END)")
        case Function.SIGN:
            value = convert(arguments[0], scope)
            return f"(CASE WHEN {value} > 0 THEN CAST(1 AS {dialect.integer}) WHEN {value} < 0 THEN -1 WHEN {value} = 0 THEN 0 END)"
        case Function.FLOOR | Function.CEILING | Function.TO_INTEGER:
            return emit[function](as_double(arguments[0], scope))
        case Function.ADD_MONTHS:
            months = arguments[1]
            if not isinstance(months, Literal) or not isinstance(months.value, int):
                raise Refused("wrong-arguments", "months are added as a constant whole number")
            return _dated(emit[function](render_expression(arguments[0], scope), months.value), domain, dialect)
        case _:
            return _dated(emit[function](*(render_expression(argument, scope) for argument in arguments)), domain, dialect)


def _dated(sql: str, domain: Domain, dialect: Dialect) -> str:
    """Engines truncate and move a date to a timestamp: back to what the domain says."""
    return f"CAST({sql} AS {dialect.date})" if isinstance(domain, DateDomain) else sql


def is_exact_divisor(domain: Domain) -> bool:
    """Integers and grid reals are zero or at least one step: half a step tells them apart whatever the rounding."""
    return isinstance(domain, IntegerDomain) or (isinstance(domain, RealDomain) and domain.steps is not None)


def _to_grid(arguments: tuple[Expression, ...], domain: Domain, scope: VisibleColumns) -> str:
    steps = arguments[1]
    source = scope.domains.of(arguments[0])
    if not isinstance(domain, RealDomain) or not isinstance(steps, Literal) or not isinstance(steps.value, int):
        raise Refused("wrong-arguments", "a grid has a positive whole number of steps per 1")
    if isinstance(source, RealDomain) and source.steps == steps.value:
        return render_expression(arguments[0], scope)
    lo, hi = grid_integer(domain.lo, steps.value), grid_integer(domain.hi, steps.value)
    return gridded(as_double(arguments[0], scope), steps=steps.value, lo=lo, hi=hi, dialect=scope.dialect)


def gridded(double: str, *, steps: int, lo: int, hi: int, dialect: Dialect) -> str:
    """SQL of clamp(floor(x * steps + 1/2)) as an integer in [lo, hi]: clamped as a double, cast, and clamped again as an integer.

    NULL stays NULL: ``greatest`` and ``least`` would swallow it.
    """
    scaled = f"floor({double} * CAST({steps} AS {dialect.double}) + 0.5)"
    as_float = f"least(greatest({scaled}, CAST({lo} AS {dialect.double})), CAST({hi} AS {dialect.double}))"
    return f"(CASE WHEN {double} IS NULL THEN NULL ELSE {clamped(f'CAST({as_float} AS {dialect.integer})', lo=lo, hi=hi)} END)"


def clamped(integer: str, *, lo: int, hi: int) -> str:
    """SQL of an integer that is not NULL, clamped to [lo, hi]."""
    return f"least(greatest({integer}, {lo}), {hi})"


def _grid_scaled(subject: Expression, constant: Expression, scope: VisibleColumns) -> Fraction | None:
    """A constant in grid steps of the column it is compared with, or None where that does not apply."""
    domain = scope.domains.of(subject)
    if isinstance(subject, Column) and isinstance(domain, RealDomain) and domain.steps is not None and isinstance(constant, Literal):
        if isinstance(constant.value, int | Fraction):
            scaled = Fraction(constant.value) * domain.steps
            return scaled if abs(scaled) < 2**62 else None
    return None


def grid_comparison(function: Function, scaled: Fraction) -> int:
    """The integer that stands for a constant between two grid points, so that the comparison holds for every value on the grid.

    An (in)equality takes the nearest grid point: that is where a source value equal to the constant is stored.
    """
    if function in (Function.LESS, Function.GREATER_EQUAL):
        return math.ceil(scaled)
    if function in (Function.LESS_EQUAL, Function.GREATER):
        return math.floor(scaled)
    return math.floor(scaled + Fraction(1, 2))


_MIRRORED = {
    Function.LESS: Function.GREATER,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER: Function.LESS,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
}


def _compare(function: Function, arguments: tuple[Expression, ...], scope: VisibleColumns) -> str:
    left, right = arguments
    if (scaled := _grid_scaled(left, right, scope)) is not None:
        return f"({render_expression(left, scope)} {_COMPARISONS[function]} {grid_comparison(function, scaled)})"
    if (scaled := _grid_scaled(right, left, scope)) is not None:
        mirrored = _MIRRORED.get(function, function)
        return f"({render_expression(right, scope)} {_COMPARISONS[mirrored]} {grid_comparison(mirrored, scaled)})"
    operator = _COMPARISONS[function]
    domains = scope.domains.of(left), scope.domains.of(right)
    if all(is_numeric(domain) for domain in domains) and not all(isinstance(domain, IntegerDomain) for domain in domains):
        return f"({as_double(left, scope)} {operator} {as_double(right, scope)})"
    if any(isinstance(domain, KeyDomain) for domain in domains):
        raise Refused("type-mismatch", "identifiers cannot be compared here")
    return f"({render_expression(left, scope)} {operator} {render_expression(right, scope)})"


def _in(arguments: tuple[Expression, ...], scope: VisibleColumns) -> str:
    value, options = arguments[0], arguments[1:]
    scaled = [_grid_scaled(value, option, scope) for option in options]
    if all(item is not None for item in scaled):
        constants = ", ".join(str(grid_comparison(Function.EQUAL, item)) for item in scaled if item is not None)
        return f"({render_expression(value, scope)} IN ({constants}))"
    if isinstance(scope.domains.of(value), RealDomain) or any(isinstance(scope.domains.of(o), RealDomain) for o in options):
        return f"({as_double(value, scope)} IN ({', '.join(as_double(option, scope) for option in options)}))"
    return f"({render_expression(value, scope)} IN ({', '.join(render_expression(option, scope) for option in options)}))"
