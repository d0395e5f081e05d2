"""The worst statements that are accepted, on the other engines: one unit's rows bring none of them to a limit, and all answer alike."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.catalog import Settings
from lapwing.engines.postgres.session import ask, transaction
from lapwing.errors import Refused
from lapwing.kernel.certify import Certified
from lapwing.kernel.facts import Facts
from lapwing.kernel.workload import unit_work
from lapwing.render.queries import render_plan
from tests.attacks.bombs import UNIT_COLUMNS, Bombs, declare
from tests.engines.comparison import comparable
from tests.engines.suite.engines import OTHERS, OnDuckDB, SuiteEngine
from tests.support.sql_shapes import MANY_ROWS, SqlShape

GENERATED = 60
RUN = {"postgres": 6, "spark": 3}
"""How many are run; Spark takes its time."""


def worst(facts: Facts, count: int) -> list[Certified]:
    """The plans that do most for one unit, no two alike."""
    found: dict[str, Certified] = {}
    for text in Bombs(7).statements(GENERATED):
        try:
            certified = SqlShape(text, Fraction(10**6), MANY_ROWS, UNIT_COLUMNS).planned(facts).measured
        except Refused:
            continue
        if certified is not None:
            found[certified.digest] = certified
    by_work = sorted(found.values(), key=lambda plan: sum(unit_work(query.query, query.shape) for query in plan.queries))
    by_rows = sorted(found.values(), key=lambda plan: max(len(query.query.keys) * query.shape.rows_per_unit for query in plan.queries))
    chosen = {plan.digest: plan for plan in (*by_work[-(count + 1) // 2 :], *by_rows[-(count // 2) :])}
    return list(chosen.values())


SEEMS_RARE = " AND ".join(f"e.mark + {i} = {9 + i}" for i in range(4))
"""Conditions that a server takes to leave one row at most, whoever is there."""
LEVELS = [f"c{i} AS (SELECT id, x * 0.5 + x * 0.5 AS x FROM c{i - 1})" for i in range(1, 9)]
DOUBLED = ", ".join(["c0 AS (SELECT id, amount AS x FROM events)", *LEVELS])
SAME_DAY = "SELECT 1 FROM events f WHERE f.id = e.id AND f.day = e.day AND f.mark = 1"
TEMPTING = (
    f"SELECT COUNT(*) AS n FROM events e WHERE {SEEMS_RARE} AND NOT EXISTS ({SAME_DAY})",
    f"SELECT COUNT(*) AS n FROM events e JOIN events f ON e.id = f.id AND e.day = f.day WHERE {SEEMS_RARE}",
    f"SELECT place, SUM(amount) AS n FROM events e WHERE {SEEMS_RARE} GROUP BY place",
    f"WITH {DOUBLED} SELECT COUNT(*) AS n FROM c8 WHERE x > 1",
)


@pytest.mark.parametrize("text", TEMPTING)
def test_postgresql_neither_compares_all_pairs_nor_copies_expressions(
    tmp_path: Path, engine_named: Callable[[str], SuiteEngine], text: str
) -> None:
    """Its own plan of the statement hashes every join, and is not much longer than the statement."""
    engine = engine_named("postgres")
    snapshot: Any = engine.prepare(declare(tmp_path / "w1", target=True, others=50))
    try:
        certified = SqlShape(text, Fraction(1), MANY_ROWS, UNIT_COLUMNS).planned(snapshot.facts).measured
        assert certified is not None
        for query in render_plan(certified, engine.dialect(snapshot)):
            parameters = [snapshot._salt] if query.salted else []
            with transaction(snapshot._connected(), Settings(), read_only=True) as connection:
                found = "\n".join(str(row[0]) for row in ask(connection, f"EXPLAIN VERBOSE {query.sql}", parameters))
            assert "Nested Loop" not in found and "Merge" not in found
            assert len(found) < 20 * len(query.sql)
    finally:
        snapshot.close()


@pytest.mark.parametrize("name", OTHERS)
def test_the_worst_statements_are_answered_alike(tmp_path: Path, engine_named: Callable[[str], SuiteEngine], name: str) -> None:
    declaration = declare(tmp_path / "w1", target=True, others=50)
    first, second = OnDuckDB().prepare(declaration), engine_named(name).prepare(declaration)
    try:
        plans = worst(first.facts, RUN[name])
        assert len(plans) >= RUN[name] // 2 and max(query.shape.widest for plan in plans for query in plan.queries) > 50_000
        for certified in plans:
            assert comparable(first.run(certified)) == comparable(second.run(certified))
    finally:
        first.close()
        second.close()
