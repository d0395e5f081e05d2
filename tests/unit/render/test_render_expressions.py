"""The SQL of every scalar function, as text: a change of one of these lines is a change of what the engine is asked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from lapwing.errors import Refused
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
)
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, call
from lapwing.render.dialect import Dialect, quoted, standard_text_literal
from lapwing.render.duckdb import DUCKDB
from lapwing.render.expressions import SQL_BYTES_MAX, VisibleColumns, as_double, clamped, gridded, render_expression
from lapwing.render.postgres import POSTGRES
from lapwing.render.spark import SPARK
from lapwing.render.trino import TRINO

COLUMNS: Mapping[str, Domain] = {
    "i": IntegerDomain(-9, 9),
    "j": IntegerDomain(-9, 9),
    "p": RealDomain(Fraction(0), Fraction(10), steps=100),
    "r": RealDomain(Fraction(-1), Fraction(1)),
    "b": BooleanDomain(),
    "t": TextDomain(None),
    "d": DateDomain(0, 9),
    "m": TimestampDomain(0, 9),
}
SCOPE = VisibleColumns(COLUMNS, "t", DUCKDB)
TWO = Literal(2, Kind.INTEGER)
PRICE = '(CAST(t."p" AS DOUBLE) / CAST(100 AS DOUBLE))'


def columns(names: str) -> tuple[Expression, ...]:
    return tuple(Column(name) for name in names)


RENDERED: dict[Function, tuple[tuple[Expression, ...], str]] = {
    Function.AND: (columns("bb"), '(t."b" AND t."b")'),
    Function.OR: (columns("bb"), '(t."b" OR t."b")'),
    Function.NOT: (columns("b"), '(NOT t."b")'),
    Function.EQUAL: (columns("ij"), '(t."i" = t."j")'),
    Function.NOT_EQUAL: (columns("ir"), '(CAST(t."i" AS DOUBLE) <> t."r")'),
    Function.LESS: ((Column("p"), Literal(Fraction("1.234"), Kind.REAL)), '(t."p" < 124)'),
    Function.LESS_EQUAL: (columns("tt"), '(t."t" <= t."t")'),
    Function.GREATER: (columns("dd"), '(t."d" > t."d")'),
    Function.GREATER_EQUAL: (columns("pr"), f'({PRICE} >= t."r")'),
    Function.IN: ((Column("i"), TWO), '(t."i" IN (CAST(2 AS BIGINT)))'),
    Function.IS_NULL: (columns("m"), '(t."m" IS NULL)'),
    Function.STARTS_WITH: ((Column("t"), Literal("it's", Kind.TEXT)), "starts_with(t.\"t\", 'it''s')"),
    Function.LENGTH: (columns("t"), 'length(t."t")'),
    Function.POSITION: ((Column("t"), Literal("x", Kind.TEXT)), "strpos(t.\"t\", 'x')"),
    Function.SUBSTRING: ((Column("t"), TWO, TWO), 'substring(t."t", CAST(2 AS BIGINT), CAST(2 AS BIGINT))'),
    Function.LOWER: (columns("t"), 'lower(t."t")'),
    Function.UPPER: (columns("t"), 'upper(t."t")'),
    Function.ADD: (columns("ij"), '(t."i" + t."j")'),
    Function.SUBTRACT: (columns("ir"), '(CAST(t."i" AS DOUBLE) - t."r")'),
    Function.MULTIPLY: (columns("pr"), f'({PRICE} * t."r")'),
    Function.DIVIDE: (
        columns("ir"),
        '(CAST(t."i" AS DOUBLE) / (CASE WHEN abs(t."r") >= CAST(9.313225746154785e-10 AS DOUBLE) THEN t."r" END))',
    ),
    Function.INTEGER_DIVIDE: (columns("ij"), '(t."i" // nullif(t."j", 0))'),
    Function.MODULO: (columns("ij"), '(t."i" % nullif(t."j", 0))'),
    Function.NEGATE: (columns("i"), '(- t."i")'),
    Function.ABS: (columns("r"), 'abs(t."r")'),
    Function.SIGN: (columns("i"), '(CASE WHEN t."i" > 0 THEN CAST(1 AS BIGINT) WHEN t."i" < 0 THEN -1 WHEN t."i" = 0 THEN 0 END)'),
    Function.FLOOR: (columns("r"), 'CAST(floor(t."r") AS BIGINT)'),
    Function.CEILING: (columns("p"), f"CAST(ceil({PRICE}) AS BIGINT)"),
    Function.ROUND: ((Column("r"), TWO), 'round(t."r", 2)'),
    Function.SQRT: (columns("r"), 'sqrt((CASE WHEN t."r" >= 0 THEN t."r" END))'),
    Function.LN: (columns("r"), 'ln((CASE WHEN t."r" > 0 THEN t."r" END))'),
    Function.EXP: (columns("r"), 'exp((CASE WHEN t."r" < -200.0 THEN -200.0 ELSE t."r" END))'),
    Function.LOG_2: (columns("r"), 'log2((CASE WHEN t."r" > 0 THEN t."r" END))'),
    Function.LOG_10: (columns("p"), f"log10((CASE WHEN {PRICE} > 0 THEN {PRICE} END))"),
    Function.SIN: (columns("r"), 'sin(t."r")'),
    Function.COS: (columns("i"), 'cos(CAST(t."i" AS DOUBLE))'),
    Function.LEAST: (columns("ij"), 'least(t."i", t."j")'),
    Function.GREATEST: (columns("ir"), 'greatest(CAST(t."i" AS DOUBLE), t."r")'),
    Function.NULL_IF: (columns("ij"), '(CASE WHEN (t."i" = t."j") THEN NULL ELSE t."i" END)'),
    Function.COALESCE: (columns("pi"), f'COALESCE({PRICE}, CAST(t."i" AS DOUBLE))'),
    Function.TO_REAL: (columns("p"), PRICE),
    Function.TO_INTEGER: (columns("r"), 'CAST(round_even(t."r", 0) AS BIGINT)'),
    Function.TO_GRID: (
        (Column("r"), TWO),
        '(CASE WHEN t."r" IS NULL THEN NULL ELSE least(greatest(CAST(least(greatest(floor(t."r" * CAST(2 AS DOUBLE) + 0.5),'
        " CAST(-2 AS DOUBLE)), CAST(2 AS DOUBLE)) AS BIGINT), -2), 2) END)",
    ),
    Function.STEPS: (columns("p"), 't."p"'),
    Function.OF_STEPS: ((Column("i"), TWO), 't."i"'),
    Function.YEAR: (columns("d"), "CAST(date_part('year', t.\"d\") AS BIGINT)"),
    Function.QUARTER: (columns("d"), "CAST(date_part('quarter', t.\"d\") AS BIGINT)"),
    Function.MONTH: (columns("m"), "CAST(date_part('month', t.\"m\") AS BIGINT)"),
    Function.DAY: (columns("d"), "CAST(date_part('day', t.\"d\") AS BIGINT)"),
    Function.DAY_OF_WEEK: (columns("d"), "CAST(date_part('dow', t.\"d\") AS BIGINT)"),
    Function.HOUR: (columns("m"), "CAST(date_part('hour', t.\"m\") AS BIGINT)"),
    Function.MINUTE: (columns("m"), "CAST(date_part('minute', t.\"m\") AS BIGINT)"),
    Function.DAY_OF_YEAR: (columns("d"), "CAST(date_part('doy', t.\"d\") AS BIGINT)"),
    Function.WEEK: (columns("d"), "CAST(date_part('week', t.\"d\") AS BIGINT)"),
    Function.ISO_YEAR: (columns("d"), "CAST(date_part('isoyear', t.\"d\") AS BIGINT)"),
    Function.SECOND: (columns("m"), "CAST(date_part('second', t.\"m\") AS BIGINT)"),
    Function.TRUNCATE_HOUR: (columns("m"), "date_trunc('hour', t.\"m\")"),
    Function.TRUNCATE_MINUTE: (columns("m"), "date_trunc('minute', t.\"m\")"),
    Function.DAY_NUMBER: (columns("m"), "CAST(CAST(t.\"m\" AS DATE) - DATE '1970-01-01' AS BIGINT)"),
    Function.MICROSECONDS: (columns("m"), 'epoch_us(t."m")'),
    Function.DATE_OF: (columns("i"), "CAST((DATE '1970-01-01' + CAST(t.\"i\" AS INTEGER)) AS DATE)"),
    Function.TIMESTAMP_OF: (columns("i"), 'make_timestamp(t."i")'),
    Function.ADD_MONTHS: ((Column("d"), TWO), 'CAST((t."d" + to_months(2)) AS DATE)'),
    Function.TRUNCATE_YEAR: (columns("d"), "CAST(date_trunc('year', t.\"d\") AS DATE)"),
    Function.TRUNCATE_QUARTER: (columns("m"), "date_trunc('quarter', t.\"m\")"),
    Function.TRUNCATE_MONTH: (columns("d"), "CAST(date_trunc('month', t.\"d\") AS DATE)"),
    Function.TRUNCATE_WEEK: (columns("d"), "CAST(date_trunc('week', t.\"d\") AS DATE)"),
    Function.TRUNCATE_DAY: (columns("m"), "date_trunc('day', t.\"m\")"),
}


def test_every_function_is_listed_here() -> None:
    assert set(RENDERED) == set(Function)


@pytest.mark.parametrize("function", Function)
def test_rendered_function(function: Function) -> None:
    arguments, sql = RENDERED[function]
    assert render_expression(Call(function, arguments), SCOPE) == sql


@pytest.mark.parametrize(
    ("literal", "sql"),
    [
        (Literal(True, Kind.BOOLEAN), "TRUE"),
        (Literal(-5, Kind.INTEGER), "CAST(-5 AS BIGINT)"),
        (Literal(Fraction(1, 3), Kind.REAL), "CAST(0.3333333333333333e0 AS DOUBLE)"),
        (Literal(Fraction(10**90), Kind.REAL), "CAST(1e+90 AS DOUBLE)"),
        (Literal(Fraction(-1, 10**400), Kind.REAL), "CAST(-0.0e0 AS DOUBLE)"),
        (Literal("'; --", Kind.TEXT), "'''; --'"),
        (Literal(-1, Kind.DATE), "(DATE '1970-01-01' + CAST(-1 AS INTEGER))"),
        (Literal(-1, Kind.TIMESTAMP), "make_timestamp(CAST(-1 AS BIGINT))"),
        (Literal(None, Kind.TEXT), "CAST(NULL AS VARCHAR)"),
        (Literal(None, Kind.DATE), "CAST(NULL AS DATE)"),
        (Literal(None, Kind.KEY), "CAST(NULL AS BIGINT)"),
    ],
)
def test_rendered_constant(literal: Literal, sql: str) -> None:
    assert render_expression(literal, SCOPE) == sql


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES, SPARK, TRINO], ids=["duckdb", "postgres", "spark", "trino"])
@pytest.mark.parametrize("text", [False, True])
def test_no_identifier_has_the_type_of_the_identifiers_beside_it(dialect: Dialect, text: bool) -> None:
    scope = VisibleColumns({"b": BooleanDomain(), "k": KeyDomain(nullable=False, text=text)}, "t", dialect)
    b, k, kind = dialect.quoted("b"), dialect.quoted("k"), dialect.text if text else dialect.integer
    null = Literal(None, Kind.KEY)
    one, other = Case(((Column("b"), Column("k")),), null), Case(((Column("b"), null),), Column("k"))
    assert render_expression(one, scope) == f"(CASE WHEN t.{b} THEN t.{k} ELSE CAST(NULL AS {kind}) END)"
    assert render_expression(other, scope) == f"(CASE WHEN t.{b} THEN CAST(NULL AS {kind}) ELSE t.{k} END)"


def test_a_choice_has_one_physical_form() -> None:
    mixed = Case(((Column("b"), Column("p")),), Column("i"))
    assert render_expression(mixed, SCOPE) == f'(CASE WHEN t."b" THEN {PRICE} ELSE CAST(t."i" AS DOUBLE) END)'
    same_grid = Case(((Column("b"), Column("p")),), Column("p"))
    assert render_expression(same_grid, SCOPE) == '(CASE WHEN t."b" THEN t."p" ELSE t."p" END)'
    assert as_double(same_grid, SCOPE).endswith("AS DOUBLE) / CAST(100 AS DOUBLE))")


@pytest.mark.parametrize(
    ("function", "constant", "integer"),
    [
        (Function.LESS, "1.234", 124),
        (Function.LESS_EQUAL, "1.234", 123),
        (Function.GREATER, "1.234", 123),
        (Function.GREATER_EQUAL, "1.234", 124),
        (Function.EQUAL, "1.236", 124),
        (Function.NOT_EQUAL, "-1.235", -123),
        (Function.LESS, "1.23", 123),
        (Function.GREATER, "1.23", 123),
    ],
)
def test_a_stored_real_meets_a_constant_on_its_grid(function: Function, constant: str, integer: int) -> None:
    sql = render_expression(call(function, Column("p"), Literal(Fraction(constant), Kind.REAL)), SCOPE)
    assert sql == f'(t."p" {function.value} {integer})'


def test_names_and_text_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'
    assert quoted("select") == '"select"'
    assert standard_text_literal("a'b\\") == "'a''b\\'"
    with pytest.raises(Refused) as caught:
        quoted("a\x00b")
    assert caught.value.code == "column-name"


def test_clamps_are_written_twice() -> None:
    assert clamped("x", lo=-1, hi=5) == "least(greatest(x, -1), 5)"
    sql = gridded("x", steps=10, lo=-1, hi=5, dialect=DUCKDB)
    inner = "least(greatest(floor(x * CAST(10 AS DOUBLE) + 0.5), CAST(-1 AS DOUBLE)), CAST(5 AS DOUBLE))"
    assert sql == f"(CASE WHEN x IS NULL THEN NULL ELSE least(greatest(CAST({inner} AS BIGINT), -1), 5) END)"


def test_a_statement_that_grows_too_large_is_refused() -> None:
    expression: Expression = Column("r")
    with pytest.raises(Refused) as caught:
        for _ in range(40):
            expression = call(Function.SQRT, expression)
            assert len(render_expression(expression, SCOPE)) <= SQL_BYTES_MAX
    assert caught.value.code == "statement-too-large"
