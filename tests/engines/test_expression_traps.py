"""Traps that engines set for a renderer, each once sprung: kept here as plain cases beside the fuzz."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import duckdb
import pytest

from lapwing.engines.reading import sanitised
from lapwing.kernel.date_functions import TRUNCATIONS
from lapwing.kernel.domains import DateDomain, Domain, IntegerDomain, Kind, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, call
from lapwing.kernel.ir import GridSum
from lapwing.kernel.stability import domain_of
from lapwing.render.dialect import SourceKind
from lapwing.render.duckdb import DUCKDB
from lapwing.render.expressions import VisibleColumns, clamped, gridded, render_expression
from tests.engines.hostile_world import SCAN, HostileWorld
from tests.support.hostile import TEXTS
from tests.support.reference import evaluate, grid_sum

COLUMNS: Mapping[str, Domain] = {
    "a": IntegerDomain(-(2**40), 2**40),
    "b": IntegerDomain(-(2**40), 2**40),
    "price": RealDomain(Fraction(0), Fraction(5000), steps=100),
    "tenth": RealDomain(Fraction(1, 10), Fraction(9, 10), steps=1),
    "text": TextDomain(None),
    "day": DateDomain(-719_162, 2_932_896),
    "moment": TimestampDomain(-62_135_596_800_000_000, 253_402_300_799_999_999),
}
_TYPES = {"a": "BIGINT", "b": "BIGINT", "price": "BIGINT", "tenth": "BIGINT", "text": "VARCHAR"}
CONNECTION = duckdb.connect()
A, B, PRICE = Column("a"), Column("b"), Column("price")


def integer(value: int | None) -> Literal:
    return Literal(value, Kind.INTEGER)


def real(value: str | float | None) -> Literal:
    return Literal(None if value is None else Fraction(value), Kind.REAL)


def engine(sql: str) -> object:
    """The one value of a SELECT."""
    ((value,),) = CONNECTION.execute(sql).fetchall()
    return value


def on_row(expression: Expression, **row: int | str | None) -> object:
    """What the engine gives for an expression on one row of stored values; the reference must agree, inside the domain."""
    domain_of(expression, COLUMNS)
    sql = render_expression(expression, VisibleColumns(COLUMNS, "t", DUCKDB))
    listed = [f"CAST(${i + 1} AS {_TYPES[name]}) AS {name}" for i, name in enumerate(row)] or ["1 AS one"]
    ((value,),) = CONNECTION.execute(f"SELECT {sql} FROM (SELECT {', '.join(listed)}) t", list(row.values())).fetchall()
    expected = evaluate(expression, row, COLUMNS)
    assert value == expected or (value is None and expected is None)
    return value


def test_greatest_and_least_swallow_null_but_clamps_do_not() -> None:
    assert on_row(call(Function.LEAST, A, integer(3)), a=None) == 3
    assert on_row(call(Function.GREATEST, A, B), a=None, b=None) is None
    assert on_row(call(Function.EXP, Column("tenth")), tenth=None) is None
    assert on_row(call(Function.TO_GRID, call(Function.TO_REAL, A), integer(10)), a=None) is None
    assert engine(f"SELECT {gridded('CAST(NULL AS DOUBLE)', steps=10, lo=-5, hi=5, dialect=DUCKDB)}") is None
    price = sanitised("CAST(NULL AS DOUBLE)", SourceKind.FRACTIONAL, COLUMNS["price"], other=None, dialect=DUCKDB)
    assert engine(f"SELECT {price}") is None
    assert engine(f"SELECT {sanitised('CAST(NULL AS BIGINT)', SourceKind.INTEGER, COLUMNS['a'], other=None, dialect=DUCKDB)}") is None


@pytest.mark.parametrize(
    ("a", "b", "quotient", "remainder"),
    [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (7, 0, None, None), (None, 2, None, None), (7, None, None, None)],
)
def test_integer_division_rounds_towards_zero(a: int | None, b: int | None, quotient: int | None, remainder: int | None) -> None:
    assert on_row(call(Function.INTEGER_DIVIDE, A, B), a=a, b=b) == quotient
    assert on_row(call(Function.MODULO, A, B), a=a, b=b) == remainder


@pytest.mark.parametrize(("number", "expected"), [("'nan'", 5), ("'inf'", 5), ("'-inf'", -5), ("1e308", 5), ("-1e308", -5), ("-0.0", 0)])
def test_a_clamp_holds_for_every_double_even_those_that_cannot_occur(number: str, expected: int) -> None:
    assert engine(f"SELECT {gridded(f'CAST({number} AS DOUBLE)', steps=1000, lo=-5, hi=5, dialect=DUCKDB)}") == expected


def test_a_clamp_as_a_double_is_not_enough() -> None:
    """Beyond 2^53 the end itself is rounded up on its way to a double; the second clamp, of the integer, puts it right."""
    end = 2**53 + 3
    assert float(end) > end
    assert engine(f"SELECT {gridded('1e300::DOUBLE', steps=1, lo=0, hi=end, dialect=DUCKDB)}") == end
    assert engine(f"SELECT CAST(least(1e300::DOUBLE, CAST({end} AS DOUBLE)) AS BIGINT)") == end + 1
    assert engine(f"SELECT {clamped(str(end + 1), lo=0, hi=end)}") == end


def test_just_below_a_half_rounds_up_in_doubles_and_is_clamped_back() -> None:
    number = 0.49999999999999994
    assert math.floor(number + 0.5) == 1
    assert engine(f"SELECT {gridded(f'CAST({number!r} AS DOUBLE)', steps=1, lo=-3, hi=0, dialect=DUCKDB)}") == 0
    assert on_row(call(Function.TO_GRID, real(number), integer(1))) == 0


def test_minus_zero_is_zero() -> None:
    minus_zero = call(Function.NEGATE, call(Function.TO_REAL, A))
    assert on_row(call(Function.EQUAL, minus_zero, real(0)), a=0) is True
    assert on_row(call(Function.SIGN, minus_zero), a=0) == 0
    assert on_row(call(Function.DIVIDE, real(1), minus_zero), a=0) is None
    assert on_row(call(Function.SQRT, minus_zero), a=0) == 0
    assert on_row(call(Function.LN, minus_zero), a=0) is None
    assert on_row(call(Function.FLOOR, minus_zero), a=0) == 0


@pytest.mark.parametrize(
    "value",
    ["1/3", "-2/3", "0.1", "1e-7", "1e-300", "5e-324", "1e-400", "1e90", "-1e90", "0.30000000000000004", "123456789012345678901/7", "2.5"],
)
def test_constants_reach_the_engine_as_the_nearest_double(value: str) -> None:
    assert on_row(real(value)) == float(Fraction(value))
    if abs(Fraction(value)) > Fraction(1, 10**100):
        assert on_row(call(Function.DIVIDE, integer(1), real(value))) in (1 / float(Fraction(value)), None)


def test_declared_ends_that_are_no_doubles_end_at_their_grid_point() -> None:
    domain = RealDomain(Fraction(1, 3), Fraction(2, 3), steps=10**12)
    for raw, expected in (("-1e300", 333_333_333_333), ("0.5", 500_000_000_000), ("1e300", 666_666_666_667), ("0.1", 333_333_333_333)):
        clean = sanitised(f"CAST({raw} AS DOUBLE)", SourceKind.FRACTIONAL, domain, other=None, dialect=DUCKDB)
        assert engine(f"SELECT {clean}") == expected
    tiny = RealDomain(Fraction("1e-7"), Fraction("3e-7"), steps=10**9)
    assert engine(f"SELECT {sanitised('CAST(0 AS DOUBLE)', SourceKind.FRACTIONAL, tiny, other=None, dialect=DUCKDB)}") == 100
    assert engine(f"SELECT {sanitised('CAST(1 AS DOUBLE)', SourceKind.FRACTIONAL, tiny, other=None, dialect=DUCKDB)}") == 300


@pytest.mark.parametrize("text", [text for text in TEXTS if "\x00" not in text and len(text) < 1000])
def test_text_constants_are_quoted(text: str) -> None:
    literal = Literal(text, Kind.TEXT)
    assert on_row(literal) == text
    assert on_row(call(Function.EQUAL, Column("text"), literal), text=text) is True
    assert on_row(call(Function.STARTS_WITH, Column("text"), literal), text=text + "'; --") is True
    listed = TextDomain((text,))
    for given, expected in ((text, text), (text + "x", None)):
        sql = sanitised("CAST($1 AS VARCHAR)", SourceKind.TEXT, listed, other=None, dialect=DUCKDB)
        assert CONNECTION.execute(f"SELECT {sql}", [given]).fetchall() == [(expected,)]


def test_a_constant_beside_a_stored_real_is_compared_on_its_grid() -> None:
    assert on_row(call(Function.LESS_EQUAL, PRICE, real("12.34")), price=1234) is True
    assert on_row(call(Function.IN, PRICE, real("12.34"), integer(7)), price=1234) is True
    assert on_row(call(Function.EQUAL, PRICE, real("12.341")), price=1234) is True
    assert on_row(call(Function.GREATER, real("12.34"), PRICE), price=1234) is False
    assert on_row(call(Function.LESS, PRICE, real("12.341")), price=1234) is True
    assert on_row(call(Function.GREATER, PRICE, real("12.339")), price=1234) is True
    assert on_row(call(Function.GREATER_EQUAL, PRICE, real("12.341")), price=1234) is False
    assert on_row(call(Function.LESS_EQUAL, real("12.341"), PRICE), price=1234) is False
    assert on_row(call(Function.LESS, PRICE, real("1e80")), price=500_000) is True


def test_numbers_of_different_kinds_meet_as_doubles() -> None:
    chosen = Case(((call(Function.GREATER, A, integer(0)), A),), PRICE)
    assert on_row(chosen, a=2**40, price=5) == float(2**40)
    assert on_row(chosen, a=0, price=5) == 0.05
    assert on_row(call(Function.COALESCE, PRICE, A), a=1, price=None) == 1.0
    assert on_row(call(Function.ADD, PRICE, A), a=1, price=5) == 1.05


def test_truncating_a_date_gives_a_date() -> None:
    for function in TRUNCATIONS:
        day, moment = (
            render_expression(call(function, Literal(0, kind)), VisibleColumns(COLUMNS, "t", DUCKDB))
            for kind in (Kind.DATE, Kind.TIMESTAMP)
        )
        assert engine(f"SELECT typeof({day})") == "DATE"
        assert engine(f"SELECT typeof({moment})") == "TIMESTAMP"


def test_halves_round_away_from_zero_or_to_even() -> None:
    for number, away, even in ((2.5, 3, 2), (-2.5, -3, -2), (3.5, 4, 4), (0.5, 1, 0), (-0.5, -1, 0), (0.49999999999999994, 0, 0)):
        assert on_row(call(Function.ROUND, real(number), integer(0))) == away
        assert on_row(call(Function.TO_INTEGER, real(number))) == even


def _excess() -> Expression:
    """(ceil((0.1 + 0.2) * 10) - 3) * 1000000: 0 in exact arithmetic, 1000000 in doubles."""
    third = call(Function.MULTIPLY, call(Function.ADD, real("0.1"), real("0.2")), integer(10))
    return call(Function.MULTIPLY, call(Function.SUBTRACT, call(Function.CEILING, third), integer(3)), integer(10**6))


def test_a_rounding_excess_cannot_escape_its_interval() -> None:
    """Once the interval was that of exact arithmetic: a sum declared to lie in [0, 0] then counted the rows, at no cost."""
    assert domain_of(_excess(), COLUMNS) == IntegerDomain(10**6, 10**6, nullable=False)
    assert on_row(_excess()) == 10**6


def test_a_stored_real_off_its_declared_end_cannot_escape_either() -> None:
    """0.1 .. 0.9 on a grid of whole numbers is stored as 0 .. 1: FLOOR of it is not always 0."""
    floor = call(Function.FLOOR, Column("tenth"))
    assert domain_of(floor, COLUMNS) == IntegerDomain(0, 1)
    assert on_row(floor, tenth=1) == 1


def test_sums_stay_inside_their_bounds(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The two escapes above, as sums through certification and the engine: what a row adds is at most what was charged for."""
    world = HostileWorld(tmp_path_factory.mktemp("traps"), seed=3)
    coarse = call(Function.MULTIPLY, call(Function.FLOOR, Column("coarse")), integer(10**6))
    measures = [GridSum(value, Fraction(0), Fraction(upper), 1) for value in (_excess(), coarse) for upper in (0, 5)]
    for cells in world.by_row(SCAN, [*measures]).values():
        assert [cell <= measure.upper for cell, measure in zip(cells, measures, strict=True)] == [True] * len(measures)
    assert [grid_sum(measure, world.rows, world.columns) for measure in measures[:2]] == [0, 5 * len(world.rows)]
    world.snapshot.close()
