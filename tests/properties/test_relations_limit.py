"""Joins, subqueries, one row per unit, UNION ALL and nesting: in the limit, what bare DuckDB says about the same files (``limit_runs``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.errors import Refused
from tests.properties import limit_world
from tests.properties.limit_runs import Limit, TooNoisy
from tests.support.sizes import size
from tests.support.sql_relations import RelationalQueries

STATEMENTS = size("limit, statements about relations")
CHUNKS = [
    (neighbours, delta, seed)
    for neighbours in ("unbounded", "bounded")
    for delta in ("0", '"2^-40"')
    for seed in range(size("limit, seeds of relations"))
]
ALLOWED = ("key-constant", "zero-cost", "keys-need-delta", "text-undeclared", "subquery-unsupported", "type-mismatch", "range-too-wide")
"""Refusals that a generated statement may meet; each is rare."""


def relational(limit: Limit, seed: int) -> RelationalQueries:
    """Statements about the limit world that mean the same on the bare engine."""
    return RelationalQueries(
        limit.data.curator.facts,
        limit_world.UNIT_COLUMNS,
        limit_world.REFERENCES,
        seed=seed,
        comparable=True,
        bare_unit=limit_world.BARE_UNIT,
    )


@pytest.mark.parametrize(("neighbours", "delta", "seed"), CHUNKS)
def test_answers_are_those_of_the_bare_engine(tmp_path: Path, neighbours: str, delta: str, seed: int) -> None:
    limit = Limit(tmp_path, neighbours=neighbours, delta=delta)
    queries = relational(limit, 100 + CHUNKS.index((neighbours, delta, seed)))
    answered = refused = bounded = 0  # bounded: its own bounds bind, or it joins so much that some noise stays
    while answered < STATEMENTS:
        statement = queries.statement()
        try:
            if limit.compare(statement):
                answered += 1
            else:
                bounded += 1
        except TooNoisy:
            bounded += 1
        except Refused as error:
            assert error.code in ALLOWED, f"{error}\n{statement.text}"
            refused += 1
    limit.data.close()
    assert refused <= 8 and bounded <= 20, (refused, bounded)
    assert limit.seen.exact >= STATEMENTS, limit.seen
    assert 10 * limit.seen.cut <= limit.seen.exact + limit.seen.noisy, limit.seen


@pytest.mark.soak("in `check` there are fewer")
def test_the_chunks_add_up_to_three_hundred_statements() -> None:
    assert len(CHUNKS) * STATEMENTS >= 300
