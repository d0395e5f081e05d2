"""A bound statement means what the engine makes of the same text: same groups, same values."""

from __future__ import annotations

import random

import duckdb
import pytest

from lapwing.errors import Refused
from tests.unit.sql.accepted import ACCEPTED
from tests.unit.sql.clinic import bound
from tests.unit.sql.grammar import Grammar
from tests.unit.sql.meaning import answer, engine, rows, same, stored

ROWS = rows()
STORED = stored(ROWS)


@pytest.fixture(scope="module")
def bare() -> duckdb.DuckDBPyConnection:
    return engine(ROWS)


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_bound_statement_gives_what_the_bare_engine_gives(name: str, bare: duckdb.DuckDBPyConnection) -> None:
    text = ACCEPTED[name]
    expected = bare.execute(text).fetchall()
    found = answer(bound(text), STORED)
    assert same(found, expected, ordered=False), (found, expected)


def test_ordered_statements_come_in_the_same_order(bare: duckdb.DuckDBPyConnection) -> None:
    names = [name for name in ("c20", "ordinals", "date-keys", "order-by-other") if "ORDER BY" in ACCEPTED[name]]
    assert len(names) == 4
    for name in names:
        # ties would be in any order: every one of these orders by something that tells the rows apart
        text = ACCEPTED[name].replace("ORDER BY n DESC", "ORDER BY n DESC, region")
        assert same(answer(bound(text), STORED), bare.execute(text).fetchall(), ordered=True), name


def test_an_overflow_after_the_noise_is_null() -> None:
    big = "COUNT(*) * 4611686018427387903 * 4"
    assert answer(bound(f"SELECT {big} AS big FROM visits"), STORED) == [(None,)]
    assert answer(bound(f"SELECT COUNT(*) FROM visits HAVING {big} > 5"), STORED) == []
    assert len(answer(bound(f"SELECT sex, COUNT(*) FROM patients GROUP BY sex ORDER BY {big}"), STORED)) == 3


@pytest.mark.slow
def test_random_statements_mean_what_the_bare_engine_says(bare: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(20_251)
    compared = refused = 0
    for _ in range(150):
        text = Grammar(rng, rng.choice(["visits", "patients"])).statement()
        try:
            statement = bound(text)
        except Refused:
            refused += 1
            continue
        expected = bare.execute(text).fetchall()
        found = answer(statement, STORED)
        assert same(found, expected, ordered=False), f"{text}\n{found}\n{expected}"
        compared += 1
    assert compared > 4 * refused, (compared, refused)
