"""E1 on worlds that tempt an optimiser: empty tables, columns that are all NULL, columns with one value.

An engine that keeps statistics folds conditions away on such columns, and one unit more or less can make or break that. Whatever it makes
of them, no statement may fail: DuckDB 2.0.0 did, on a column that only one unit would have filled.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.audit.runs import prepare_in_duckdb
from lapwing.audit.worlds import Row, World, declare, random_world
from lapwing.engines.base import Snapshot
from lapwing.engines.duckdb import snapshot as engine
from lapwing.errors import Incident
from lapwing.kernel.certify import Certified, certify
from tests.support.sizes import size
from tests.support.sql_shapes import sql_shapes

UNIT_COLUMNS = {"people": "person_id", "visits": "person_id"}
KEYS = ("person_id", "visit_id")
FOLDED = (
    "SELECT COUNT(*) AS n FROM people WHERE age > 68 OR UPPER(SUBSTRING(sex, 3, 0)) >= 'f' AND LENGTH(sex) > 7",
    "SELECT COUNT(*) FILTER (WHERE sex || 'x' < 'a') AS n, SUM(CASE WHEN sex = 'zz' THEN age END) AS s FROM people",
    "SELECT SUM(1 / score) AS a, SUM(LN(score)) AS b, SUM(SQRT(age - 90)) AS c FROM people WHERE score <> 0 OR age IS NULL",
    "SELECT clinic, AVG(cost / NULLIF(change, 0)) AS a FROM visits WHERE day > '2024-12-31' OR late + 1 > 101 GROUP BY clinic",
    "SELECT DATE_TRUNC('month', day) AS m, COUNT_IF(NOT flag) AS n FROM visits WHERE FLOOR(cost) IS NULL OR cost > 1000 GROUP BY m",
)
STATEMENTS = size("statements on degenerate worlds")
WORLDS_MIN = 22


def _rows(world: World) -> dict[str, tuple[Row, ...]]:
    return {"people": world.people, "visits": world.visits, "drugs": world.drugs}


def degenerate(world: World) -> Iterator[World]:
    """No rows; then, for each column in turn, all NULL, and all one value."""
    yield World((), (), ())
    tables = _rows(world)
    for table, rows in tables.items():
        for column in (name for name in rows[0] if name not in KEYS):
            for value in (None, next(row[column] for row in rows if row[column] is not None)):
                yield World(**{**tables, table: tuple({**row, column: value} for row in rows)})
    yield World(
        **{table: tuple({name: row[name] if name in KEYS else None for name in row} for row in rows) for table, rows in tables.items()}
    )


def failures(directory: Path, *, delta: str, statements: int = STATEMENTS) -> tuple[int, list[str]]:
    """How many statements ran on how many worlds, and which failed."""
    ran, failed = 0, []
    certified: dict[str, Certified] = {}
    for number, world in enumerate(degenerate(random_world(random.Random(5), units=6))):
        snapshot: Snapshot = prepare_in_duckdb(declare(world, directory / f"{number}", neighbours="unbounded", delta=delta))
        if not certified:
            shapes = sql_shapes(snapshot.facts, UNIT_COLUMNS, count=statements, seed=12, first=FOLDED)
            certified = {text: certify(shape(snapshot.facts), snapshot.facts) for text, shape in shapes.items()}
        for text, plan in certified.items():
            try:
                snapshot.run(plan)
            except Incident:
                failed.append(text)
            ran += 1
        snapshot.close()
    return ran, failed


@pytest.mark.parametrize("delta", ["0", '"2^-30"'])
def test_no_statement_fails_on_a_degenerate_world(tmp_path: Path, delta: str) -> None:
    ran, failed = failures(tmp_path, delta=delta)
    assert failed == []
    assert ran >= WORLDS_MIN * STATEMENTS


def test_with_the_statistics_of_the_engine_this_test_sees_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_lock_down", lambda connection: None)
    _, failed = failures(tmp_path, delta="0", statements=len(FOLDED))
    assert FOLDED[0] in failed
