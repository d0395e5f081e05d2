"""Functions of numbers, CASE, and casts that cannot fail."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from lapwing.kernel.domains import BooleanDomain, IntegerDomain, Kind, NumberType, TextDomain, bounds, is_numeric, number_type
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars import number_types, text_values
from lapwing.sql.scalars.binding import Handler, Scalars, function
from lapwing.sql.scalars.dates import as_date, as_timestamp
from lapwing.sql.scalars.operators import compare
from lapwing.sql.scalars.text_tables import CASES_MAX
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text import constants
from lapwing.sql.text.reader import Reader

REALS = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL})
"""Real types. DECIMAL comes without parameters only in dialects where it is not limited; with parameters it is refused."""
INTEGER_BITS = {exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64}
DIGITS_MAX = 9
"""Most digits after the point, or zeros before it, that ROUND rounds to."""
_TEXTS = frozenset({exp.DType.TEXT, exp.DType.VARCHAR})
_TIMESTAMPS = frozenset({exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ})


def _one(called: Function, *names: str) -> Handler:
    return function(lambda scalars, reader: scalars.call(reader.node, called, scalars.bind(reader.node_of("this"))), *names)


def _several(called: Function, *names: str) -> Handler:
    def bind(scalars: Scalars, reader: Reader) -> Typed:
        if called in (Function.LEAST, Function.GREATEST):
            reader.flag("ignore_nulls")  # always set: these leave NULLs out, as the kernel's do
        values = scalars.alike([scalars.bind(node) for node in (reader.node_of("this"), *reader.many("expressions"))])
        if called in (Function.LEAST, Function.GREATEST) and any(value.kind in (Kind.DATE, Kind.TIMESTAMP) for value in values):
            return _extreme_date(scalars, reader.node, called, values)
        return scalars.call(reader.node, called, *values)

    return function(bind, *names)


def _extreme_date(scalars: Scalars, node: exp.Expr, called: Function, values: list[Typed]) -> Typed:
    """The first or last of several dates, by their numbers; if one of them is a timestamp, all are."""
    if any(value.kind is Kind.TIMESTAMP for value in values):
        values = [as_timestamp(scalars, node, value) for value in values]
    there, back = (
        (Function.DAY_NUMBER, Function.DATE_OF)
        if all(value.kind is Kind.DATE for value in values)
        else (Function.MICROSECONDS, Function.TIMESTAMP_OF)
    )
    return scalars.call(node, back, scalars.call(node, called, *(scalars.call(node, there, value) for value in values)))


def _null_if(scalars: Scalars, reader: Reader) -> Typed:
    left, right = scalars.bind(reader.node_of("this")), scalars.bind(reader.node_of("expression"))
    return scalars.call(reader.node, Function.NULL_IF, left, scalars.in_kind_of(right, left))


def _round(scalars: Scalars, reader: Reader) -> Typed:
    value, places = scalars.bind(reader.node_of("this")), reader.optional("decimals")
    digits = scalars.constant(reader.node, Literal(0, Kind.INTEGER)) if places is None else scalars.bind(places)
    written = digits.expression.value if isinstance(digits.expression, Literal) else None
    if scalars.session.typed_numbers:
        is_known = isinstance(written, int) and abs(written) <= DIGITS_MAX
        exact = number_types.rounded(scalars, reader.node, value, int(written or 0)) if is_known else None
        if exact is not None:
            return exact
        if places is None and scalars.session.dialect == "postgres" and value.kind is Kind.REAL:  # halves of doubles to even
            return number_types.typed_as(scalars.call(reader.node, Function.TO_INTEGER, value), NumberType.DOUBLE)
    if isinstance(written, int) and -DIGITS_MAX <= written < 0 and is_numeric(value.domain):
        found = _round_before_the_point(scalars, reader.node, value, 10**-written)
    else:
        found = scalars.call(reader.node, Function.ROUND, value, digits)
    # with a number of digits PostgreSQL makes a decimal of an integer
    is_decimal = places is not None and scalars.session.dialect == "postgres" and value.kind is Kind.INTEGER
    return number_types.typed_as(found, NumberType.DECIMAL) if is_decimal else found


def _round_before_the_point(scalars: Scalars, node: exp.Expr, value: Typed, step: int) -> Typed:
    """To the nearest multiple of a power of ten, halves away from 0: for integers by integer division, which rounds towards 0."""

    def constant(number: int) -> Typed:
        return scalars.constant(node, Literal(number, Kind.INTEGER))

    if not isinstance(value.domain, IntegerDomain):
        steps = scalars.call(node, Function.ROUND, scalars.call(node, Function.DIVIDE, value, constant(step)), constant(0))
        return scalars.call(node, Function.MULTIPLY, steps, constant(step))
    half = constant(step // 2)
    further = scalars.call(node, Function.ADD, value, half)
    if value.domain.lo < 0:
        before = scalars.call(node, Function.LESS, value, constant(0))
        further = scalars.case(node, [(before, scalars.call(node, Function.SUBTRACT, value, half))], further)
    return scalars.call(node, Function.MULTIPLY, scalars.call(node, Function.INTEGER_DIVIDE, further, constant(step)), constant(step))


def _case(scalars: Scalars, reader: Reader) -> Typed:
    subject = reader.optional("this")
    compared = None if subject is None else scalars.bind(subject)
    branches = [_branch(scalars, node, compared) for node in reader.many("ifs")]
    default = reader.optional("default")
    return scalars.case(reader.node, branches, None if default is None else scalars.bind(default))


def _branch(scalars: Scalars, node: exp.Expr, compared: Typed | None) -> tuple[Typed, Typed]:
    with scalars.session.reading(node) as branch:
        when, then = branch.node_of("this"), branch.node_of("true")
        if compared is None:
            return scalars.condition(when, "a condition of CASE"), scalars.bind(then)
        return compare(scalars, when, Function.EQUAL, compared, scalars.bind(when)), scalars.bind(then)


def _if(scalars: Scalars, reader: Reader) -> Typed:
    condition = scalars.condition(reader.node_of("this"), "the condition of IF")
    value, default = scalars.bind(reader.node_of("true")), reader.optional("false")
    return scalars.case(reader.node, [(condition, value)], None if default is None else scalars.bind(default))


def type_name(scalars: Scalars, node: exp.Expr) -> exp.DType:
    """The plain type of a cast, or refuse."""
    if type(node) is not exp.DataType:
        raise scalars.session.refuse("cast-unsupported", "this type is not supported", node=node)
    with scalars.session.reading(node) as reader:
        reader.require_absent("expressions")
        return reader.data_type("this")


def decimal_places(scalars: Scalars, node: exp.Expr) -> tuple[int, int] | None:
    """The digits of DECIMAL(p, s) before and after the point; None for any other type."""
    if type(node) is not exp.DataType or node.this is not exp.DType.DECIMAL or not node.expressions:
        return None
    with scalars.session.reading(node) as reader:
        reader.data_type("this")
        written = [_parameter(scalars, part) for part in reader.many("expressions")]
    digits, places = (*written, 0)[:2]
    if len(written) > 2 or not 1 <= digits <= 38 or not 0 <= places <= min(digits, DIGITS_MAX):
        hint = f"use at most 38 digits, and at most {DIGITS_MAX} after the point"
        raise scalars.session.refuse("cast-unsupported", "this type is not supported", node=node, hint=hint)
    return digits - places, places


def _parameter(scalars: Scalars, node: exp.Expr) -> int:
    if type(node) is not exp.DataTypeParam:
        raise scalars.session.refuse("cast-unsupported", "this type is not supported", node=node)
    with scalars.session.reading(node) as reader:
        constant = scalars.bind(reader.node_of("this")).expression
    value = constant.value if isinstance(constant, Literal) else None
    return value if isinstance(value, int) else -1


def _cast(scalars: Scalars, reader: Reader) -> Typed:
    to = reader.node_of("to")
    places = decimal_places(scalars, to) if scalars.session.typed_numbers else None
    if places is not None:
        return _as_decimal(scalars, reader.node, scalars.bind(reader.node_of("this")), *places)
    return cast(scalars, reader.node, scalars.bind(reader.node_of("this")), type_name(scalars, to))


def _as_decimal(scalars: Scalars, node: exp.Expr, value: Typed, before: int, places: int) -> Typed:
    """A number with ``places`` digits after the point; refused if it could have more than ``before`` digits before it."""
    if not is_numeric(value.domain):
        raise scalars.session.refuse("cast-unsupported", f"a {value.kind.value} cannot be cast to this type", node=node)
    if max(abs(end) for end in bounds(value.domain)) + 1 >= 10**before:
        message, hint = f"a number here may have more than {before} digits before the point", "narrow it with LEAST and GREATEST"
        raise scalars.session.refuse("cast-unsafe", message, node=node, hint=hint)
    exact = number_types.typed_as(value, NumberType.DECIMAL)
    if not number_types.is_exact(value):
        digits, steps = (scalars.constant(node, Literal(number, Kind.INTEGER)) for number in (places, 10**places))
        nearest = scalars.plain_call(node, Function.ROUND, value, digits)
        exact = number_types.typed_as(scalars.plain_call(node, Function.TO_GRID, nearest, steps), NumberType.DECIMAL)
    return number_types.rounded(scalars, node, exact, places) or exact


def cast(scalars: Scalars, node: exp.Expr, value: Typed, target: exp.DType) -> Typed:
    """A cast that cannot fail on any row, or refuse."""
    constant = value.expression.value if isinstance(value.expression, Literal) else None
    if isinstance(constant, str) and target is exp.DType.DATE:
        return scalars.constant(node, constants.date(constant, scalars.session, value.node))
    if isinstance(constant, str) and target in _TIMESTAMPS:
        return scalars.constant(node, constants.timestamp(constant, scalars.session, value.node))
    if isinstance(constant, str) and target in INTEGER_BITS.keys() | REALS:
        return _number_constant(scalars, node, constant, target)
    if is_numeric(value.domain) and target in REALS:
        if scalars.session.typed_numbers and target is exp.DType.DECIMAL and number_types.is_exact(value):
            return number_types.typed_as(value, NumberType.DECIMAL)
        return scalars.call(node, Function.TO_REAL, value)
    if is_numeric(value.domain) and target in INTEGER_BITS:
        whole = value if value.kind is Kind.INTEGER else scalars.call(node, Function.TO_INTEGER, value)
        return number_types.typed_as(whole, NumberType.BIGINT if INTEGER_BITS[target] > 32 else NumberType.INTEGER)
    if isinstance(value.domain, BooleanDomain) and target in INTEGER_BITS and not value.is_null:
        return _truth_as(scalars, node, value, *(scalars.constant(node, Literal(number, Kind.INTEGER)) for number in (1, 0)))
    if isinstance(value.domain, TextDomain) and target in _TEXTS:
        return value
    if isinstance(value.domain, IntegerDomain) and target in _TEXTS and number_type(value.domain) is not NumberType.DOUBLE:
        return written_number(scalars, node, value, value.domain, str)
    if isinstance(value.domain, BooleanDomain) and target in _TEXTS and not value.is_null:
        return _truth_as(scalars, node, value, *(scalars.constant(node, Literal(word, Kind.TEXT)) for word in ("true", "false")))
    if (value.kind is Kind.DATE and target is exp.DType.DATE) or (value.kind is Kind.TIMESTAMP and target in _TIMESTAMPS):
        return value
    if isinstance(value.domain, BooleanDomain) and target is exp.DType.BOOLEAN and not value.is_null:
        return value
    if value.kind is Kind.TIMESTAMP and target is exp.DType.DATE:
        return as_date(scalars, node, value)
    if value.kind is Kind.DATE and target in _TIMESTAMPS:
        return as_timestamp(scalars, node, value)
    if isinstance(value.domain, TextDomain) and target in INTEGER_BITS.keys() | REALS:
        hint = "the owner can declare the values of the column; then TRY_CAST works"
        if value.domain.values is not None:
            numbers = any(text_values.number(text) is not None for text in value.domain.values)
            hint = "use TRY_CAST: it gives NULL where the text is not a number" if numbers else "none of its declared values is a number"
        raise scalars.session.refuse("cast-unsafe", "a cast of text fails on text that is not a number", node=node, hint=hint)
    raise scalars.session.refuse("cast-unsupported", f"a {value.kind.value} cannot be cast to this type", node=node)


def _number_constant(scalars: Scalars, node: exp.Expr, text: str, target: exp.DType) -> Typed:
    """The number in a quoted constant."""
    exact = text_values.number(text)
    whole = text_values.whole_number(text)
    if exact is None or whole is None:
        raise scalars.session.refuse("cast-unsafe", "this text is not a number", node=node, hint="write the number without quotes")
    return scalars.constant(node, Literal(exact, Kind.REAL) if target in REALS else Literal(whole, Kind.INTEGER))


def _truth_as(scalars: Scalars, node: exp.Expr, value: Typed, true: Typed, false: Typed) -> Typed:
    if not value.domain.nullable:
        return scalars.case(node, [(value, true)], false)
    return scalars.case(node, [(value, true), (scalars.call(node, Function.NOT, value), false)], None)


def written_number(scalars: Scalars, node: exp.Expr, value: Typed, domain: IntegerDomain, write: Callable[[int], str]) -> Typed:
    """A whole number as text: a public look-up over its declared range."""
    if domain.hi - domain.lo >= CASES_MAX:
        message, hint = (
            f"the numbers here give more than {CASES_MAX} texts",
            "narrow the range with LEAST and GREATEST, or use the number itself",
        )
        raise scalars.session.refuse("statement-too-large", message, node=node, hint=hint)
    written = _digits(scalars, node, value, domain.lo, domain.hi, write)
    if not domain.nullable:
        return written
    return scalars.case(node, [(scalars.call(node, Function.NOT, scalars.call(node, Function.IS_NULL, value)), written)], None)


def _digits(scalars: Scalars, node: exp.Expr, value: Typed, lo: int, hi: int, write: Callable[[int], str]) -> Typed:
    """By bisection: an engine then compares a number ten times, not a thousand. Pre: the value, unless NULL, is from ``lo`` to ``hi``."""
    if lo == hi:
        return scalars.constant(node, Literal(write(lo), Kind.TEXT))
    middle = (lo + hi + 1) // 2
    below = scalars.call(node, Function.LESS, value, scalars.constant(node, Literal(middle, Kind.INTEGER)))
    first, second = (_digits(scalars, node, value, *ends, write) for ends in ((lo, middle - 1), (middle, hi)))
    return scalars.case(node, [(below, first)], second)


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Abs: _one(Function.ABS, "ABS"),
    exp.Sign: _one(Function.SIGN, "SIGN"),
    exp.Floor: _one(Function.FLOOR, "FLOOR"),
    exp.Ceil: _one(Function.CEILING, "CEIL", "CEILING"),
    exp.Sqrt: _one(Function.SQRT, "SQRT"),
    exp.Ln: _one(Function.LN, "LN"),
    exp.Exp: _one(Function.EXP, "EXP"),
    exp.Round: function(_round, "ROUND"),
    exp.Least: _several(Function.LEAST, "LEAST"),
    exp.Greatest: _several(Function.GREATEST, "GREATEST"),
    exp.Coalesce: _several(Function.COALESCE, "COALESCE", "IFNULL"),
    exp.Nullif: function(_null_if, "NULLIF"),
    exp.Case: Handler(_case),
    exp.If: function(_if, "IF"),
    exp.Cast: Handler(_cast),
}
