"""Groups within units: in the limit, what bare DuckDB says about the same files, on pure and on approximate data sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.errors import Refused
from tests.properties import limit_world
from tests.properties.limit_runs import Limit, TooNoisy
from tests.properties.test_relations_limit import ALLOWED
from tests.support.sizes import size
from tests.support.sql_inside import InsideQueries

STATEMENTS = size("limit, statements with groups within units")
CHUNKS = [
    (neighbours, delta, seed)
    for neighbours in ("unbounded", "bounded")
    for delta in ("0", '"2^-40"')
    for seed in range(size("limit, seeds of groups within units"))
]


def inside(limit: Limit, seed: int) -> InsideQueries:
    """Statements about the limit world that mean the same on the bare engine."""
    return InsideQueries(
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
    queries = inside(limit, 300 + CHUNKS.index((neighbours, delta, seed)))
    answered = refused = bounded = 0
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
    assert limit.seen.exact >= STATEMENTS / 2, limit.seen
    assert 10 * limit.seen.cut <= limit.seen.exact + limit.seen.noisy, limit.seen
