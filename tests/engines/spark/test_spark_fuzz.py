"""No row makes Spark raise: fuzzed expressions over hostile rows, each equal to the reference in Python."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from lapwing.engines.spark import SparkSnapshot
from lapwing.kernel.domains import IntegerDomain, Kind
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, call
from lapwing.kernel.ir import GridSum, Measure, RowCount
from tests.engines.hostile_world import SCAN, HostileWorld
from tests.support.expression_fuzz import ExpressionFuzz, functions_of
from tests.support.reference import Row, bounded_integer, evaluator
from tests.support.sizes import size
from tests.support.spark_worlds import prepare_in_spark

EXPRESSIONS, STATEMENTS, DEPTHS = 120, size("fuzzed expressions on Spark, statements"), 5
"""A statement costs Spark much more than an expression does."""
MAGNITUDE_MAX = 2**52
LIBRARY = frozenset([Function.LN, Function.LOG_2, Function.LOG_10, Function.EXP, Function.SIN, Function.COS])
"""Functions whose last bit an engine's library decides."""
SMOOTH = frozenset(
    [
        *(Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.DIVIDE, Function.NEGATE, Function.ABS, Function.TO_REAL),
        *(Function.LEAST, Function.GREATEST, Function.COALESCE, Function.SQRT, *LIBRARY),
    ]
)
"""Functions that carry a last bit on; any other one over a library function can turn it into another answer (62.0 = LOG2(...))."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileWorld]:
    made = HostileWorld(tmp_path_factory.mktemp("world"), seed=1, prepare=prepare_in_spark)
    assert len(made.rows) >= 60
    yield made
    made.snapshot.close()


def _number(row: Row) -> int:
    number = row["row_id"]
    assert isinstance(number, int)
    return number


def test_prepared_rows_are_the_references(world: HostileWorld) -> None:
    """Every column, read back by row: what preparation stored on Spark is what the reference says."""
    integers = {name: domain for name, domain in world.columns.items() if isinstance(domain, IntegerDomain)}
    texts = sorted({row["note"] for row in world.rows if isinstance(row["note"], str) and "\x00" not in row["note"]})
    assert len(texts) > 20
    measures: list[Measure] = [RowCount(call(Function.IS_NULL, Column(name))) for name in world.columns]
    measures += [GridSum(Column(name), Fraction(domain.lo), Fraction(domain.hi), 1, 0) for name, domain in integers.items()]
    measures += [RowCount(call(Function.EQUAL, Column("note"), Literal(text, Kind.TEXT))) for text in texts]
    answers = world.by_row(SCAN, measures)
    assert answers.keys() == {_number(row) for row in world.rows}
    for row in world.rows:
        nulls = [int(row[name] is None) for name in world.columns]
        assert answers[_number(row)] == [*nulls, *(row[name] or 0 for name in integers), *(int(row["note"] == text) for text in texts)]


def _measures(fuzz: ExpressionFuzz) -> list[Measure]:
    made: list[Measure] = []
    for i in range(EXPRESSIONS):
        depth = 1 + i % DEPTHS
        if i % 3 == 2:
            made.append(RowCount(fuzz.expression(Kind.BOOLEAN, depth=depth).expression))
        else:
            made.append(fuzz.measure(depth=depth, magnitude_max=MAGNITUDE_MAX))
    return made


def _expression(measure: Measure) -> Expression:
    assert isinstance(measure, RowCount | GridSum)
    expression = measure.value if isinstance(measure, GridSum) else measure.where
    assert expression is not None
    return expression


def _hangs_on_a_bit(expression: Expression) -> bool:
    """Whether a library function stands below something that is not smooth."""
    match expression:
        case Call(function, arguments):
            jumps = function not in SMOOTH and any(functions_of(argument) & LIBRARY for argument in arguments)
            return jumps or any(_hangs_on_a_bit(argument) for argument in arguments)
        case Case():
            return bool(functions_of(expression) & LIBRARY)
        case _:
            return False


def _wrong(world: HostileWorld, measure: Measure, found: list[int]) -> list[object]:
    """Rows on which Spark and the reference differ; the last bit of a library function may move one grid step."""
    expression = _expression(measure)
    ready = evaluator(expression, dict(world.columns))
    bounded = bounded_integer(measure, ready) if isinstance(measure, GridSum) else None
    if _hangs_on_a_bit(expression):
        return []
    slack = 1 if functions_of(expression) & LIBRARY else 0
    wrong: list[object] = []
    for row, integer in zip(world.rows, found, strict=True):
        value = ready.value(row)
        expected = int(value is True) if bounded is None else bounded(value) or 0
        if abs(integer - expected) > slack:
            wrong.append((expression, row, integer, expected))
    return wrong


def _compare(world: HostileWorld, seed: int) -> None:
    measures = _measures(ExpressionFuzz(world.columns, seed=seed))
    answers = world.by_row(SCAN, measures)
    assert len(answers) == len(world.rows)
    compared = [measure for measure in measures if not _hangs_on_a_bit(_expression(measure))]
    assert len(compared) > 0.8 * len(measures)
    for i, measure in enumerate(measures):
        assert _wrong(world, measure, [answers[_number(row)][i] for row in world.rows]) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(STATEMENTS))
def test_random_expressions_never_raise_and_agree_with_the_reference(world: HostileWorld, seed: int) -> None:
    _compare(world, seed)


def test_compiled_expressions_mean_the_same_as_interpreted_ones(world: HostileWorld) -> None:
    """The other tests run without Spark's generated code, which takes longer to make than these rows take to read."""
    assert isinstance(world.snapshot, SparkSnapshot)
    settings = world.snapshot._session.conf
    settings.set("spark.sql.codegen.wholeStage", "true")
    settings.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    try:
        _compare(world, 10_000)
    finally:
        settings.set("spark.sql.codegen.wholeStage", "false")
        settings.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
