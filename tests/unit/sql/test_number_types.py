"""What the types of numbers change, what they leave as it was, and where versions keep them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.asking.ask import plan_of
from lapwing.catalog.settings import Settings
from lapwing.errors import Refused
from lapwing.kernel.canonical import canonical_bytes
from lapwing.kernel.domains import IntegerDomain, NumberType, number_type, with_number
from lapwing.kernel.expressions import Call, Expression, Function
from lapwing.sql import bind
from lapwing.statements import Statement
from tests.differential.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("types"))


def bound(world: World, sql: str, *, dialect: str = "duckdb", typed: bool = True) -> Statement:
    facts = replace(world.data.curator.facts, typed_numbers=typed)
    return bind(sql, facts, settings=Settings(), unit_columns={"t": "u"}, dialect=dialect)


def functions(expression: Expression | None) -> set[Function]:
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*map(functions, expression.arguments))


def summed(world: World, number: str, **how: object) -> set[Function]:
    """The functions that a sum is made of."""
    return functions(bound(world, f"SELECT SUM({number}) FROM t", **how).private.aggregates[0].value)  # type: ignore[arg-type]


def test_a_version_keeps_the_types_of_its_source(world: World) -> None:
    columns = world.data.curator.facts.tables["t"].columns
    assert {name: number_type(columns[name]) for name in "ibdef"} == {
        "i": NumberType.INTEGER,
        "b": NumberType.BIGINT,
        "d": NumberType.DECIMAL,
        "e": NumberType.DECIMAL,
        "f": NumberType.DOUBLE,
    }
    assert world.data.curator.facts.typed_numbers


@pytest.mark.parametrize("number", ["d * 1.5", "i * 0.5", "FLOOR(d)", "CASE WHEN y THEN d ELSE 0 END", "ROUND(d, 1)", "i / 7", "d / 2"])
def test_a_version_without_types_is_bound_as_ever(world: World, number: str) -> None:
    assert not summed(world, number, typed=False) & {Function.STEPS, Function.OF_STEPS}
    assert bound(world, f"SELECT SUM({number}) FROM t", typed=False).private == (
        bound(world, f"SELECT SUM({number}) FROM t", typed=False, dialect="postgres").private
    )


@pytest.mark.parametrize(
    "sql", ["SELECT SUM(d) FROM t WHERE d > 0.295", "SELECT SUM(d) FROM t WHERE d = 0.29", "SELECT d, COUNT(*) FROM t GROUP BY d"]
)
def test_what_was_exact_before_has_the_plan_that_it_had(world: World, sql: str) -> None:
    assert bound(world, sql).privates == bound(world, sql, typed=False).privates


def test_doubles_stay_doubles(world: World) -> None:
    for number in ("f * 1.5", "f + d", "d + 1e0", "SQRT(e)", "CAST(d AS DOUBLE) * 0.1"):
        assert Function.OF_STEPS not in summed(world, number), number
    for number in ("d * 1.5", "d + e", "i * 0.5", "CASE WHEN y THEN d ELSE 0 END", "d % 0.4", "GREATEST(d, 0)"):
        assert Function.OF_STEPS in summed(world, number), number


def test_the_dialect_says_what_a_quotient_is(world: World) -> None:
    assert summed(world, "i / 7") == {Function.DIVIDE}
    assert summed(world, "i / 7", dialect="postgres") == {Function.INTEGER_DIVIDE}
    assert summed(world, "d / 7") == {Function.DIVIDE}
    assert summed(world, "d / 7", dialect="postgres") == {Function.OF_STEPS, Function.STEPS, Function.MULTIPLY}
    assert summed(world, "d / NULLIF(i, 0)", dialect="postgres") >= {Function.DIVIDE}


def test_decimals_that_would_not_fit_are_refused_with_a_way_out(world: World) -> None:
    with pytest.raises(Refused, match="range-too-wide"):
        bound(world, "SELECT COUNT(*) FROM t WHERE d * d * d * d * e * e > 1")
    assert bound(world, "SELECT COUNT(*) FROM t WHERE CAST(d AS DOUBLE) * d * d * d * e * e > 1").privates


def test_a_cast_to_a_decimal_needs_room_for_every_value(world: World) -> None:
    assert bound(world, "SELECT SUM(CAST(d AS DECIMAL(5, 1))) FROM t").privates
    for target in ("DECIMAL(3, 1)", "DECIMAL(40, 1)", "DECIMAL(5, 6)"):
        with pytest.raises(Refused, match="cast-"):
            bound(world, f"SELECT SUM(CAST(d AS {target})) FROM t")


def test_types_are_no_part_of_what_tells_domains_apart() -> None:
    plain = IntegerDomain(0, 9)
    typed = with_number(plain, NumberType.BIGINT)
    assert typed == plain and canonical_bytes(typed) == canonical_bytes(plain) and number_type(typed) is NumberType.BIGINT


def test_an_answer_is_free_in_the_other_dialect_where_it_means_the_same(tmp_path: Path) -> None:
    data = World(tmp_path).data
    data.ask("SELECT SUM(d * 2) FROM t", epsilon=1)
    assert data.ask("SELECT SUM(d * 2) FROM t", epsilon=1, dialect="postgres").cost.free
    data.ask("SELECT SUM(i / 2) FROM t", epsilon=1)
    assert not data.ask("SELECT SUM(i / 2) FROM t", epsilon=1, dialect="postgres").cost.free
    data.close()


def test_a_sum_is_on_the_grid_of_its_digits(world: World) -> None:
    _, planned = plan_of(world.data.curator, "SELECT SUM(d * e) AS s FROM t", 1)
    (vector,) = planned.certified.queries[0].vectors
    assert vector.step == Fraction(1, 10**5)
