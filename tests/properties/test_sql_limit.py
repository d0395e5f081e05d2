"""In the limit of a huge budget, and where no bound binds, an answer is what bare DuckDB says about the same files (see ``limit_runs``).

False alarms: 400 statements at 1e-12, and fewer than 10^4 noisy cells at 1e-12, are below 1e-7 together.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.errors import Refused
from tests.properties import limit_world
from tests.properties.limit_runs import Limit
from tests.support.sizes import size
from tests.support.sql_queries import SqlQueries

STATEMENTS = 25
CHUNKS = [
    (neighbours, delta, seed)
    for neighbours in ("unbounded", "bounded")
    for delta in ("0", '"2^-40"')
    for seed in range(size("limit, seeds of SQL"))
]


@pytest.mark.parametrize(("neighbours", "delta", "seed"), CHUNKS)
def test_answers_are_those_of_the_bare_engine(tmp_path: Path, neighbours: str, delta: str, seed: int) -> None:
    limit = Limit(tmp_path, neighbours=neighbours, delta=delta, seed=seed)
    queries = SqlQueries(
        limit.data.curator.facts,
        limit_world.UNIT_COLUMNS,
        seed=CHUNKS.index((neighbours, delta, seed)),
        comparable=True,
        bare_unit=limit_world.BARE_UNIT,
    )
    answered = refused = bounded = 0
    while answered < STATEMENTS:
        statement = queries.statement()
        try:
            if limit.compare(statement):
                answered += 1
            else:
                bounded += 1
        except Refused as error:
            assert error.code in ("key-constant", "zero-cost"), f"{error}\n{statement.text}"
            refused += 1
    limit.data.close()
    assert refused <= 2 and bounded <= 8, (refused, bounded)
    assert limit.seen.exact + limit.seen.noisy >= 50 and limit.seen.exact >= 25, limit.seen
    assert 10 * limit.seen.cut <= limit.seen.exact + limit.seen.noisy, limit.seen


@pytest.mark.soak("in `check` there are fewer")
def test_the_chunks_add_up_to_four_hundred_statements() -> None:
    assert len(CHUNKS) * STATEMENTS >= 400
