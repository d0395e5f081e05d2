"""The worst statements that are accepted, on the other engines: one unit's rows bring none of them to a limit, and all answer alike."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import Refused
from lapwing.kernel.certify import Certified
from lapwing.kernel.facts import Facts
from lapwing.kernel.workload import unit_work
from lapwing.testing.sql_shapes import MANY_ROWS, SqlShape
from tests.attacks.bombs import UNIT_COLUMNS, Bombs, declare
from tests.engines.comparison import comparable
from tests.engines.suite.engines import OTHERS, OnDuckDB, SuiteEngine

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
