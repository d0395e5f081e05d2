"""One domain rule per function: what it takes, and that no value within the arguments' domains leaves the result's."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction

import pytest

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.domains import (
    INTEGER_LIMIT,
    REAL_LIMIT,
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
)
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, call
from lapwing.kernel.functions import EXP_LIMIT, RULES, result_domain, smallest_divisor
from lapwing.kernel.grid_functions import STEPS_MAX
from lapwing.kernel.stability import domain_of
from tests.support.reference import Row, Stored, evaluator, in_domain

X, Y = Column("x"), Column("y")
NUMBER_PAIRS = (Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.DIVIDE, Function.LEAST, Function.GREATEST)
INTEGER_PAIRS = (Function.INTEGER_DIVIDE, Function.MODULO)
NUMBER = (
    *(Function.NEGATE, Function.ABS, Function.SIGN, Function.FLOOR, Function.CEILING, Function.TO_INTEGER, Function.TO_REAL),
    *(Function.SQRT, Function.LN, Function.LOG_2, Function.LOG_10, Function.EXP, Function.SIN, Function.COS),
)
PARTS = (
    *(Function.YEAR, Function.QUARTER, Function.MONTH, Function.DAY, Function.DAY_OF_WEEK, Function.DAY_OF_YEAR, Function.WEEK),
    *(Function.ISO_YEAR, Function.DAY_NUMBER),
)
OF_TIME = (*(Function.HOUR, Function.MINUTE, Function.SECOND, Function.MICROSECONDS, Function.TRUNCATE_HOUR, Function.TRUNCATE_MINUTE),)
TRUNCATE = (*(Function.TRUNCATE_YEAR, Function.TRUNCATE_QUARTER, Function.TRUNCATE_MONTH, Function.TRUNCATE_WEEK, Function.TRUNCATE_DAY),)
INTEGER_ENDS = (0, 1, -1, 2, -3, 5, 100, -100, 199, 2**31, 2**53 + 1, -(2**53) - 1, 2**61, -(2**61))
REAL_ENDS = (
    0.0,
    0.1,
    -0.1,
    0.2,
    0.30000000000000004,
    1.0,
    -1.0,
    2.5,
    1 / 3,
    2.0**-30,
    -(2.0**-31),
    1e-300,
    5e-324,
    199.9,
    -1e9,
    1e45,
    -1e45,
)
STEPS = (1, 3, 7, 100, 1024, 10**12)


def integer(value: int | None) -> Literal:
    return Literal(value, Kind.INTEGER)


def real(value: str | Fraction | int) -> Literal:
    return Literal(Fraction(value), Kind.REAL)


def test_every_function_has_a_rule() -> None:
    assert set(RULES) == set(Function)


def _random_number(choose: random.Random) -> tuple[Domain, list[Stored]]:
    """A numeric domain, and values in it: its ends, and some between."""
    nullable = choose.random() < 0.3
    null: list[Stored] = [None] if nullable else []
    match choose.randrange(3):
        case 0:
            lo, hi = sorted(choose.sample(INTEGER_ENDS, 2)) if choose.random() < 0.9 else [choose.choice(INTEGER_ENDS)] * 2
            return IntegerDomain(lo, hi, nullable), [lo, hi, *(choose.randint(lo, hi) for _ in range(3)), *null]
        case 1:
            a, b = sorted(choose.choices(REAL_ENDS, k=2))
            inside = [min(max(choose.uniform(a, b), a), b) for _ in range(3)]
            return RealDomain(Fraction(a), Fraction(b), nullable), [a, b, *inside, *null]
        case _:
            steps = choose.choice(STEPS)
            lo_end, hi_end = sorted(Fraction(choose.randint(-1000, 1000), choose.randint(1, 13)) for _ in range(2))
            first, last = grid_integer(lo_end, steps), grid_integer(hi_end, steps)
            between: list[Stored] = [choose.randint(first, last) for _ in range(3)]
            return RealDomain(lo_end, hi_end, nullable, steps), [first, last, *between, *null]


def _check(expression: Expression, columns: dict[str, Domain], rows: list[Row]) -> bool:
    """Whether the kernel accepts the expression; if it does, every value must lie in the domain it derives."""
    try:
        domain = domain_of(expression, columns)
    except Refused as refusal:
        assert refusal.code == "range-too-wide"
        return False
    ready = evaluator(expression, columns).value
    outside = [(expression, columns, row, value) for row in rows if not in_domain(value := ready(row), domain)]
    assert outside == []
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    "function", [*NUMBER_PAIRS, *NUMBER, Function.ROUND, Function.TO_GRID, Function.OF_STEPS, Function.COALESCE, Function.NULL_IF]
)
def test_numbers_stay_in_the_derived_interval(function: Function) -> None:
    choose = random.Random(function.value)
    accepted = 0
    for _ in range(400):
        (x, x_values), (y, y_values) = _random_number(choose), _random_number(choose)
        match function:
            case Function.ROUND:
                expression = call(function, X, integer(choose.randint(0, 9)))
            case Function.TO_GRID:
                expression = call(function, X, integer(choose.choice(STEPS)))
            case Function.OF_STEPS:  # and back, of whatever is on a grid
                if not isinstance(x, RealDomain) or x.steps is None:
                    x, x_values = RealDomain(Fraction(-2), Fraction(5), False, 10), [-20, 3, 50]
                expression = call(function, call(Function.STEPS, X), integer(choose.choice(STEPS)))
            case _:
                expression = call(function, X) if function in NUMBER else call(function, X, Y)
        accepted += _check(expression, {"x": x, "y": y}, [{"x": a, "y": b} for a in x_values for b in y_values])
    assert accepted > 50


@pytest.mark.parametrize("function", INTEGER_PAIRS)
def test_integers_stay_in_the_derived_interval(function: Function) -> None:
    choose = random.Random(function.value)
    for _ in range(300):
        lo, hi, low, high = (*sorted(choose.choices(range(-9, 10), k=2)), *sorted(choose.choices(range(-9, 10), k=2)))
        columns: dict[str, Domain] = {"x": IntegerDomain(lo, hi, nullable=False), "y": IntegerDomain(low, high, nullable=False)}
        assert _check(call(function, X, Y), columns, [{"x": a, "y": b} for a in range(lo, hi + 1) for b in range(low, high + 1)])


def test_a_choice_stays_in_the_derived_interval() -> None:
    choose = random.Random(9)
    for _ in range(200):
        (x, x_values), (y, y_values) = _random_number(choose), _random_number(choose)
        expression = Case(((Column("c"), X),), Y)
        rows: list[Row] = [{"x": a, "y": b, "c": c} for a in x_values for b in y_values for c in (True, False, None)]
        assert _check(expression, {"x": x, "y": y, "c": BooleanDomain()}, rows)


@pytest.mark.parametrize("function", [*PARTS, *OF_TIME, *TRUNCATE])
def test_dates_stay_in_the_derived_interval(function: Function) -> None:
    choose = random.Random(function.value)
    day = calendar.DAY_MICROSECONDS
    ends = [calendar.DAYS_MIN, calendar.DAYS_MAX, 0, -1, *(choose.randint(calendar.DAYS_MIN, calendar.DAYS_MAX) for _ in range(40))]
    for _ in range(60):
        lo, hi = sorted(choose.choices(ends, k=2))
        moments: list[Row] = [{"x": lo * day}, {"x": hi * day + day - 1}, {"x": choose.randint(lo * day, hi * day + day - 1)}]
        assert _check(call(function, X), {"x": TimestampDomain(lo * day, hi * day + day - 1)}, moments)
        if function not in OF_TIME:
            assert _check(call(function, X), {"x": DateDomain(lo, hi)}, [{"x": lo}, {"x": hi}, {"x": choose.randint(lo, hi)}])


@pytest.mark.parametrize("months", [0, 1, -1, 11, 12, -13, 24_000])
def test_months_later_stay_in_the_derived_interval(months: int) -> None:
    choose = random.Random(months)
    day = calendar.DAY_MICROSECONDS
    ends = [calendar.DAYS_MIN, calendar.DAYS_MAX, 0, 19_782, *(choose.randint(19_000, 20_500) for _ in range(20))]
    expression, accepted = call(Function.ADD_MONTHS, X, integer(months)), 0
    for _ in range(80):
        lo, hi = sorted(choose.choices(ends, k=2))
        days: list[Row] = [{"x": lo}, {"x": hi}, *({"x": choose.randint(lo, hi)} for _ in range(3))]
        accepted += _check(expression, {"x": DateDomain(lo, hi)}, days)
        moments: list[Row] = [{"x": lo * day}, {"x": hi * day + day - 1}, {"x": choose.randint(lo * day, hi * day + day - 1)}]
        _check(expression, {"x": TimestampDomain(lo * day, hi * day + day - 1)}, moments)
    assert accepted > 5


def test_a_month_later_two_moments_may_change_places() -> None:
    """The 30th at noon and the 31st at six both become the last of February: the later of the two is then the earlier."""
    day, hour = calendar.DAY_MICROSECONDS, 3_600_000_000
    start = calendar.to_days(datetime.date(2024, 1, 30))
    domain: Domain = TimestampDomain(start * day + 12 * hour, (start + 1) * day + 6 * hour)
    month_later = call(Function.ADD_MONTHS, X, integer(1))
    assert _check(month_later, {"x": domain}, [{"x": start * day + 12 * hour}, {"x": (start + 1) * day + 6 * hour}])
    noon, six = (
        evaluator(month_later, {"x": domain}).value({"x": moment}) for moment in (start * day + 12 * hour, (start + 1) * day + 6 * hour)
    )
    assert noon > six


def test_dates_and_numbers_of_days_are_inverse() -> None:
    columns: dict[str, Domain] = {"d": DateDomain(-5, 9), "m": TimestampDomain(-5, 9)}
    assert domain_of(call(Function.DATE_OF, call(Function.DAY_NUMBER, Column("d"))), columns) == columns["d"]
    assert domain_of(call(Function.TIMESTAMP_OF, call(Function.MICROSECONDS, Column("m"))), columns) == columns["m"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (call(Function.MULTIPLY, X, X), IntegerDomain(0, 100)),
        (call(Function.MULTIPLY, X, call(Function.NEGATE, X)), IntegerDomain(-100, 100)),
        (call(Function.ADD, integer(2), integer(3)), IntegerDomain(5, 5, nullable=False)),
        (call(Function.ADD, real("0.1"), real("0.2")), RealDomain(Fraction(0.1 + 0.2), Fraction(0.1 + 0.2), nullable=False)),
        (call(Function.DIVIDE, integer(1), integer(3)), RealDomain(Fraction(1 / 3), Fraction(1 / 3), nullable=False)),
        (call(Function.DIVIDE, integer(1), integer(0)), RealDomain(Fraction(0), Fraction(0))),
        (call(Function.DIVIDE, integer(1), real(Fraction(1, 2**31))), RealDomain(Fraction(0), Fraction(0))),
        (call(Function.SQRT, integer(2)), RealDomain(Fraction(0), Fraction(2**0.5), nullable=False)),
        (call(Function.CEILING, real("2.1")), IntegerDomain(3, 3, nullable=False)),
        (call(Function.ROUND, real("2.675"), integer(2)), RealDomain(Fraction(2.68), Fraction(2.68), nullable=False)),
        (call(Function.ROUND, integer(7), integer(2)), IntegerDomain(7, 7, nullable=False)),
        (call(Function.LEAST, X, integer(5)), IntegerDomain(-10, 5, nullable=False)),
        (call(Function.GREATEST, X, integer(5)), IntegerDomain(5, 10, nullable=False)),
        (call(Function.LEAST, X, X), IntegerDomain(-10, 10)),
        (call(Function.COALESCE, X, integer(50)), IntegerDomain(-10, 50, nullable=False)),
        (call(Function.TO_GRID, real("0.29"), integer(10)), RealDomain(Fraction(3, 10), Fraction(3, 10), nullable=False, steps=10)),
        (call(Function.STARTS_WITH, Column("t"), Literal(None, Kind.TEXT)), BooleanDomain()),
        (call(Function.STARTS_WITH, Column("t"), Literal("a", Kind.TEXT)), BooleanDomain(nullable=False)),
        (call(Function.LENGTH, Column("t")), IntegerDomain(0, 1_024, nullable=False)),
        (call(Function.LENGTH, Literal("é", Kind.TEXT)), IntegerDomain(0, 1_024, nullable=False)),
        (call(Function.POSITION, Column("t"), Literal("a", Kind.TEXT)), IntegerDomain(0, 1_024, nullable=False)),
        (call(Function.SUBSTRING, Column("t"), integer(1), integer(0)), TextDomain(None, nullable=False)),
        (call(Function.SUBSTRING, Column("t"), integer(1), call(Function.ABS, X)), TextDomain(None)),
        (call(Function.UPPER, Column("t")), TextDomain(None, nullable=False)),
        (call(Function.IS_NULL, Column("k")), BooleanDomain(nullable=False)),
        (call(Function.IN, X, integer(1), real("2.5")), BooleanDomain()),
        (Literal(Fraction(1, 10), Kind.REAL), RealDomain(Fraction(0.1), Fraction(0.1), nullable=False)),
        (Literal(None, Kind.DATE), DateDomain(0, 0)),
        (Literal(None, Kind.KEY), KeyDomain()),
        (Case(((Column("b"), Column("k")),), Literal(None, Kind.KEY)), KeyDomain()),
        (Case(((Column("b"), Literal(None, Kind.KEY)),), Column("s")), KeyDomain(text=True)),
        (call(Function.COALESCE, Column("k"), Literal(None, Kind.KEY)), KeyDomain(nullable=False)),
    ],
)
def test_derived_domains(expression: Expression, expected: Domain) -> None:
    columns: dict[str, Domain] = {
        "x": IntegerDomain(-10, 10),
        "t": TextDomain(None, nullable=False),
        "k": KeyDomain(nullable=False),
        "s": KeyDomain(nullable=False, text=True),
        "b": BooleanDomain(),
    }
    assert domain_of(expression, columns) == expected


REFUSED: list[tuple[Expression, str]] = [
    (call(Function.ADD, X), "wrong-arguments"),
    (call(Function.ADD, X, Column("t")), "type-mismatch"),
    (call(Function.AND, Column("b")), "wrong-arguments"),
    (call(Function.NOT, Column("b"), Column("b")), "wrong-arguments"),
    (call(Function.NOT, X), "type-mismatch"),
    (call(Function.EQUAL, Column("k"), Column("k")), "type-mismatch"),
    (call(Function.EQUAL, Column("d"), Column("m")), "type-mismatch"),
    (call(Function.NULL_IF, Column("k"), Column("k")), "type-mismatch"),
    (call(Function.IN, X), "wrong-arguments"),
    (call(Function.IN, X, X), "wrong-arguments"),
    (call(Function.IN, X, integer(None)), "wrong-arguments"),
    (call(Function.IN, X, Literal("a", Kind.TEXT)), "type-mismatch"),
    (call(Function.STARTS_WITH, Column("t"), Column("t")), "type-mismatch"),
    (call(Function.LENGTH, X), "type-mismatch"),
    (call(Function.LENGTH, Literal("é" * 513, Kind.TEXT)), "range-too-wide"),
    (call(Function.COALESCE, Column("t"), Literal("a" * 1_025, Kind.TEXT)), "range-too-wide"),
    (call(Function.LENGTH, Column("k")), "type-mismatch"),
    (call(Function.LOWER, Column("k")), "type-mismatch"),
    (call(Function.UPPER, Column("t"), Column("t")), "wrong-arguments"),
    (call(Function.POSITION, Column("t"), Column("t")), "type-mismatch"),
    (call(Function.POSITION, Column("t"), Literal(None, Kind.TEXT)), "type-mismatch"),
    (call(Function.POSITION, Column("t"), Literal("", Kind.TEXT)), "wrong-arguments"),
    (call(Function.SUBSTRING, Column("t"), integer(1)), "wrong-arguments"),
    (call(Function.SUBSTRING, Column("t"), real(1), integer(1)), "type-mismatch"),
    (call(Function.SUBSTRING, Column("t"), integer(0), integer(1)), "wrong-arguments"),
    (call(Function.SUBSTRING, Column("t"), integer(1), integer(-1)), "wrong-arguments"),
    (call(Function.SUBSTRING, Column("t"), integer(1), integer(2**21 + 1)), "wrong-arguments"),
    (call(Function.INTEGER_DIVIDE, X, real(2)), "type-mismatch"),
    (call(Function.MODULO, X, real(2)), "type-mismatch"),
    (call(Function.LEAST, X), "wrong-arguments"),
    (call(Function.LEAST, Column("d"), Column("d")), "type-mismatch"),
    (call(Function.COALESCE), "wrong-arguments"),
    (call(Function.COALESCE, X, Column("t")), "type-mismatch"),
    (call(Function.HOUR, Column("d")), "type-mismatch"),
    (call(Function.YEAR, X), "type-mismatch"),
    (call(Function.TRUNCATE_DAY, Column("t")), "type-mismatch"),
    (call(Function.TRUNCATE_HOUR, Column("d")), "type-mismatch"),
    (call(Function.MICROSECONDS, Column("d")), "type-mismatch"),
    (call(Function.DAY_NUMBER, X), "type-mismatch"),
    (call(Function.DATE_OF, Column("d")), "type-mismatch"),
    (call(Function.DATE_OF, integer(calendar.DAYS_MAX + 1)), "range-too-wide"),
    (call(Function.DATE_OF, integer(calendar.DAYS_MIN - 1)), "range-too-wide"),
    (call(Function.TIMESTAMP_OF, Column("m")), "type-mismatch"),
    (call(Function.TIMESTAMP_OF, integer((calendar.DAYS_MAX + 1) * calendar.DAY_MICROSECONDS)), "range-too-wide"),
    (call(Function.ADD_MONTHS, Column("d"), X), "wrong-arguments"),
    (call(Function.ADD_MONTHS, Column("d"), real(1)), "wrong-arguments"),
    (call(Function.ADD_MONTHS, X, integer(1)), "type-mismatch"),
    (call(Function.ADD_MONTHS, Column("d"), integer(12 * 8_030)), "range-too-wide"),
    (call(Function.ADD_MONTHS, Column("d"), integer(-12 * 1_970)), "range-too-wide"),
    (call(Function.ADD_MONTHS, Column("d"), integer(10**9)), "wrong-arguments"),
    (call(Function.ROUND, real(1), integer(10)), "wrong-arguments"),
    (call(Function.ROUND, real(1), integer(-1)), "wrong-arguments"),
    (call(Function.ROUND, real(1), X), "wrong-arguments"),
    (call(Function.ROUND, real(1), Literal(True, Kind.BOOLEAN)), "wrong-arguments"),
    (call(Function.ROUND, real(1), real(1)), "wrong-arguments"),
    (call(Function.TO_GRID, real(1), integer(0)), "wrong-arguments"),
    (call(Function.TO_GRID, real(1), integer(STEPS_MAX + 1)), "wrong-arguments"),
    (call(Function.TO_GRID, real(1), Literal(True, Kind.BOOLEAN)), "wrong-arguments"),
    (call(Function.TO_GRID, real(2**40), integer(2**12)), "range-too-wide"),
    (call(Function.MULTIPLY, integer(2**31), integer(2**31)), "range-too-wide"),
    (call(Function.ADD, integer(2**62 - 1), integer(1)), "range-too-wide"),
    (call(Function.MULTIPLY, real(2**200), real(2**200)), "range-too-wide"),
    (call(Function.FLOOR, real(2**62)), "range-too-wide"),
    (call(Function.EXP, integer(EXP_LIMIT + 1)), "range-too-wide"),
    (integer(INTEGER_LIMIT), "range-too-wide"),
    (real(REAL_LIMIT + 1), "range-too-wide"),
    (Literal(calendar.DAYS_MAX + 1, Kind.DATE), "range-too-wide"),
    (Literal(calendar.DAYS_MIN - 1, Kind.DATE), "range-too-wide"),
    (Literal((calendar.DAYS_MAX + 1) * calendar.DAY_MICROSECONDS, Kind.TIMESTAMP), "range-too-wide"),
    (Literal(calendar.DAYS_MIN * calendar.DAY_MICROSECONDS - 1, Kind.TIMESTAMP), "range-too-wide"),
    (Literal("a\x00", Kind.TEXT), "text-invalid"),
    (Literal("\ud800", Kind.TEXT), "text-invalid"),
    (Literal(True, Kind.INTEGER), "type-mismatch"),
    (Literal(1, Kind.KEY), "type-mismatch"),
    (Literal("a", Kind.KEY), "type-mismatch"),
    (call(Function.EQUAL, Column("k"), Literal(None, Kind.KEY)), "type-mismatch"),
    (Case(((Column("b"), Column("k")),), Literal(None, Kind.TEXT)), "type-mismatch"),
    (Literal("1", Kind.INTEGER), "type-mismatch"),
    (Column("missing"), "unknown-column"),
    (Case(((X, X),), X), "type-mismatch"),
]


@pytest.mark.parametrize(("expression", "code"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_refused(expression: Expression, code: str) -> None:
    columns: dict[str, Domain] = {
        "x": IntegerDomain(-10, 10),
        "b": BooleanDomain(),
        "t": TextDomain(None),
        "k": KeyDomain(),
        "d": DateDomain(0, 10),
        "m": TimestampDomain(0, 10),
    }
    with pytest.raises(Refused) as caught:
        domain_of(expression, columns)
    assert caught.value.code == code


def test_limits_hold_at_their_edge() -> None:
    assert domain_of(integer(INTEGER_LIMIT - 1), {}) == IntegerDomain(INTEGER_LIMIT - 1, INTEGER_LIMIT - 1, nullable=False)
    assert domain_of(real(REAL_LIMIT), {}) == RealDomain(REAL_LIMIT, REAL_LIMIT, nullable=False)
    assert domain_of(call(Function.TO_GRID, real(1), integer(STEPS_MAX)), {}) == RealDomain(
        Fraction(1), Fraction(1), nullable=False, steps=STEPS_MAX
    )
    last = (calendar.DAYS_MAX + 1) * calendar.DAY_MICROSECONDS - 1
    assert domain_of(Literal(last, Kind.TIMESTAMP), {}) == TimestampDomain(last, last, nullable=False)
    exponential = domain_of(call(Function.EXP, integer(EXP_LIMIT)), {})
    assert isinstance(exponential, RealDomain) and exponential.hi < REAL_LIMIT


def test_the_smallest_divisor_is_one_step_where_there_are_steps() -> None:
    assert smallest_divisor(IntegerDomain(-5, 5)) == 1
    assert smallest_divisor(RealDomain(Fraction(0), Fraction(1), steps=100)) == Fraction(1, 100)
    assert smallest_divisor(RealDomain(Fraction(0), Fraction(1))) == Fraction(1, 2**30)


def test_a_quotient_is_never_null_only_when_the_divisor_keeps_away_from_zero() -> None:
    for lo, hi, expected in ((1, 5, False), (0, 5, True), (-5, -1, False), (-5, 5, True)):
        domain = result_domain(Function.DIVIDE, (IntegerDomain(1, 1, False), IntegerDomain(lo, hi, False)), (X, Y))
        assert domain.nullable is expected
