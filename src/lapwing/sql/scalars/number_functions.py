"""Functions of numbers that are called by name; each is a composition of the kernel's closed list."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from lapwing.kernel.domains import IntegerDomain, is_numeric
from lapwing.kernel.expressions import Function
from lapwing.sql.scalars.named_function import Bind, Composer, FunctionReference, NamedFunction
from lapwing.sql.scalars.typed import Typed

PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459")
"""More digits than a double holds."""
EXPONENT_MAX = 16
"""Largest whole exponent of POWER: it is written as a product."""
BUCKETS_MAX = 10_000
_NUMBERS = "numbers"


def _one(function: Function) -> Bind:
    return lambda composer, nodes: composer.call(function, composer.bind(nodes[0]))


def _times(factor: Fraction) -> Bind:
    return lambda composer, nodes: composer.call(Function.MULTIPLY, composer.bind(nodes[0]), composer.real(factor))


def _log(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    """log(x) has base 10; log(base, x) is the quotient of two such logarithms, as in engines."""
    above = composer.call(Function.LOG_10, composer.bind(nodes[-1]))
    if len(nodes) == 1:
        return above
    base = composer.constant_number(nodes[0])
    if base <= 0 or base == 1:
        raise composer.scalars.session.refuse("wrong-arguments", "the base of a logarithm must be positive and not 1", node=nodes[0])
    return composer.call(Function.DIVIDE, above, composer.call(Function.LOG_10, composer.real(base)))


def _tan(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    angle = composer.bind(nodes[0])
    return composer.call(Function.DIVIDE, composer.call(Function.SIN, angle), composer.call(Function.COS, angle))


def _pi(composer: Composer, _nodes: tuple[exp.Expr, ...]) -> Typed:
    return composer.real(PI)


def _truncate(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    value = composer.bind(nodes[0])
    if isinstance(value.domain, IntegerDomain):
        return value
    below = composer.call(Function.LESS, value, composer.integer(0))
    return composer.case([(below, composer.call(Function.CEILING, value))], composer.call(Function.FLOOR, value))


def _divide_whole(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    return composer.call(Function.INTEGER_DIVIDE, composer.bind(nodes[0]), composer.bind(nodes[1]))


def _power(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    value, exponent = composer.call(Function.TO_REAL, composer.bind(nodes[0])), composer.constant_number(nodes[1])
    if exponent.denominator == 1 and abs(exponent) <= EXPONENT_MAX:
        if exponent == 0:
            return composer.null_with(value, composer.real(Fraction(1)))
        product = _product(composer, value, abs(int(exponent)))
        return product if exponent > 0 else composer.call(Function.DIVIDE, composer.integer(1), product)
    if exponent == Fraction(1, 2):
        return composer.call(Function.SQRT, value)
    logarithm = composer.call(Function.MULTIPLY, composer.real(exponent), composer.call(Function.LN, value))
    positive = composer.call(Function.GREATER, value, composer.integer(0))
    branches = [(positive, composer.call(Function.EXP, logarithm))]
    if exponent > 0:
        branches.append((composer.call(Function.EQUAL, value, composer.integer(0)), composer.real(Fraction(0))))
    return composer.case(branches, None)


def _product(composer: Composer, value: Typed, count: int) -> Typed:
    """A product of this many factors, squared where possible: an even power is then known not to be negative."""
    if count == 1:
        return value
    half = _product(composer, value, count // 2)
    square = composer.call(Function.MULTIPLY, half, half)
    return square if count % 2 == 0 else composer.call(Function.MULTIPLY, square, value)


def _width_bucket(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    """0 below the first bound, n + 1 from the second on, else 1 + floor((x - low) n / (high - low)), at most n whatever is rounded.

    If the bounds decrease, everything is mirrored: the buckets of -x.
    """
    value, low, high = composer.bind(nodes[0]), composer.constant_number(nodes[1]), composer.constant_number(nodes[2])
    count = composer.constant_integer(nodes[3], least=1, most=BUCKETS_MAX)
    if not is_numeric(value.domain):
        message = f"width_bucket takes a number, not a {value.kind.value}"
        raise composer.scalars.session.refuse("type-mismatch", message, node=nodes[0])
    if low == high:
        raise composer.scalars.session.refuse("wrong-arguments", "the bounds of width_bucket must be two different numbers", node=nodes[2])
    below, beyond = Function.LESS, Function.GREATER_EQUAL
    shifted = composer.call(Function.SUBTRACT, value, _number(composer, low))
    if low > high:
        below, beyond = Function.GREATER, Function.LESS_EQUAL
        shifted = composer.call(Function.SUBTRACT, _number(composer, low), value)
    scaled = composer.call(Function.MULTIPLY, shifted, composer.integer(count))
    place = composer.call(Function.FLOOR, composer.call(Function.DIVIDE, scaled, _number(composer, abs(high - low))))
    inside = composer.call(Function.LEAST, composer.call(Function.GREATEST, place, composer.integer(0)), composer.integer(count - 1))
    branches = [
        (composer.call(below, value, _number(composer, low)), composer.integer(0)),
        (composer.call(beyond, value, _number(composer, high)), composer.integer(count + 1)),
    ]
    bucket = composer.case(branches, composer.call(Function.ADD, inside, composer.integer(1)))
    return composer.null_with(value, bucket)


def _number(composer: Composer, value: Fraction) -> Typed:
    return composer.integer(int(value)) if value.denominator == 1 else composer.real(value)


def _entry(
    names: str,
    arguments: str,
    counts: tuple[int, int],
    bind: Bind,
    means: str,
    *,
    gives: str = "real",
    total: str,
    differs: str = "",
    checked: tuple[str | tuple[str, str], ...],
    samples: tuple[str, ...],
    dialect: str = "duckdb",
) -> NamedFunction:
    meaning = FunctionReference(
        tuple(names.split()),
        arguments,
        _NUMBERS,
        gives,
        means,
        total=total,
        differs=differs,
        checked=checked,
        samples=samples,
        dialect=dialect,
    )
    return NamedFunction(meaning, *counts, bind)


_LOGARITHM = "NULL for numbers that are not positive"
NAMED: tuple[NamedFunction, ...] = (
    _entry(
        "LOG10",
        "x",
        (1, 1),
        _one(Function.LOG_10),
        "logarithm of base 10",
        total=_LOGARITHM,
        differs="engines raise an error for 0",
        checked=("LOG10(minutes + 1)", "LOG10(NULLIF(cost, 0))", "FLOOR(LOG10(1000 * clinic_id))"),
        samples=("LOG10({number})",),
    ),
    _entry(
        "LOG2",
        "x",
        (1, 1),
        _one(Function.LOG_2),
        "logarithm of base 2",
        total=_LOGARITHM,
        differs="engines raise an error for 0",
        checked=("LOG2(minutes + 1)", "LOG2(NULLIF(cost, 0))"),
        samples=("LOG2({number})",),
    ),
    _entry(
        "LOG",
        "[base,] x",
        (1, 2),
        _log,
        "logarithm of base 10, or of a constant base",
        total=_LOGARITHM,
        differs="engines raise an error for 0",
        checked=("LOG(minutes + 1)", "LOG(7, minutes + 1)", "LOG(0.5, 1 + cost)"),
        samples=("LOG({number})", "LOG(3, {number})"),
    ),
    _entry(
        "POWER POW",
        "x, n",
        (2, 2),
        _power,
        "x to a constant power",
        differs="0 to a negative power and roots of negative numbers: NULL",
        total="NULL where there is no real result; refused where the range could become too large",
        checked=(
            "POWER(minutes, 2)",
            "POW(cost - 100, 3)",
            "POWER(1 + minutes, -2)",
            "POWER(cost, 0.5)",
            "POW(cost, 1.5)",
            "POW(cost, 0)",
            "POW(1 + minutes, -0.25)",
            "POW(clinic_id, 16)",
        ),
        samples=("POWER({number}, 2)", "POW({number}, 3)", "POWER({number}, -1)", "POW({number}, 0.3)", "POW({number}, -0.5)"),
    ),
    _entry(
        "SIN",
        "x",
        (1, 1),
        _one(Function.SIN),
        "sine of an angle in radians",
        total="takes every finite number",
        checked=("SIN(minutes)", "SIN(cost / 100)"),
        samples=("SIN({number})",),
    ),
    _entry(
        "COS",
        "x",
        (1, 1),
        _one(Function.COS),
        "cosine of an angle in radians",
        total="takes every finite number",
        checked=("COS(minutes)", "COS(cost / 100)"),
        samples=("COS({number})",),
    ),
    _entry(
        "TAN",
        "x",
        (1, 1),
        _tan,
        "sine divided by cosine",
        total="NULL where the cosine is smaller than 2^-30",
        checked=("TAN(minutes)",),
        samples=("TAN({number})",),
    ),
    _entry(
        "RADIANS",
        "x",
        (1, 1),
        _times(PI / 180),
        "degrees to radians",
        total="nothing can fail",
        checked=("RADIANS(minutes)",),
        samples=("RADIANS({number})",),
    ),
    _entry(
        "DEGREES",
        "x",
        (1, 1),
        _times(180 / PI),
        "radians to degrees",
        total="nothing can fail",
        checked=("DEGREES(cost)",),
        samples=("DEGREES({number})",),
    ),
    _entry("PI", "", (0, 0), _pi, "the number pi", total="a constant", checked=("PI() * minutes",), samples=("PI()",)),
    _entry(
        "TRUNC",
        "x",
        (1, 1),
        _truncate,
        "the whole part, rounded towards 0",
        gives="integer",
        total="refused where it could exceed 62 bits",
        differs="engines give a real number",
        checked=("TRUNC(cost - 2500)", "TRUNC(-minutes / 7)", "TRUNC(minutes)"),
        samples=("TRUNC({number})",),
    ),
    _entry(
        "DIV",
        "a, b",
        (2, 2),
        _divide_whole,
        "integer quotient, rounded towards 0",
        gives="integer",
        total="NULL for b = 0",
        differs="in PostgreSQL's dialect only; DuckDB writes a // b",
        checked=(("DIV(minutes, 7)", "minutes // 7"), ("DIV(240 - minutes, 7)", "(240 - minutes) // 7")),
        samples=(),
        dialect="postgres",
    ),
    _entry(
        "WIDTH_BUCKET",
        "x, low, high, n",
        (4, 4),
        _width_bucket,
        "number of the bucket of x among n equal ones: 0 below, n + 1 from the upper bound on; bounds and n are constants",
        gives="integer",
        total="always 0 to n + 1",
        differs="PostgreSQL's; DuckDB has none",
        checked=(
            ("WIDTH_BUCKET(cost, 0, 5000, 20)", "CASE WHEN cost >= 5000 THEN 21 ELSE 1 + floor(cost / 250) END"),
            "WIDTH_BUCKET(minutes, 60, 180, 4)",
            "WIDTH_BUCKET(minutes, 180, 60, 4)",
            "WIDTH_BUCKET(cost, 12.34, 20.5, 3)",
        ),
        samples=("WIDTH_BUCKET({number}, 0, 10, 5)", "WIDTH_BUCKET({number}, 3.5, -2, 7)"),
    ),
)
