"""What a statement means is what the bare engine of its dialect says it means: random statements over columns of every type.

20,000 statements are run by ``python -m tests.differential.compare --count 10000``; here is a sample. Planted mistakes in what the types of
numbers decide are seen in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from sqlglot import exp

from lapwing.kernel.expressions import Function
from lapwing.sql.scalars import number_types
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.typed import Typed
from tests.differential.compare import Tally, compare, difference, run
from tests.differential.world import World
from tests.ledger.cluster import Cluster
from tests.support.sizes import size

DIALECTS = ("duckdb", "postgres")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, shared_cluster: Cluster) -> Iterator[World]:
    """Both bare engines and the data set."""
    with psycopg.connect(shared_cluster.dsn("postgres", role="postgres"), autocommit=True) as postgres:
        made = World(tmp_path_factory.mktemp("differential"), postgres)
        yield made
        made.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_mean_what_the_bare_engine_says(world: World, dialect: str) -> None:
    count = size("differential statements")
    tally = run(world, dialect, count=count, seed=2)
    assert tally.different == []
    assert tally.equal > 0.85 * count, tally


STATEMENTS = (
    ("duckdb", "SELECT COUNT(*) FROM t WHERE d - FLOOR(d) = 0.29"),
    ("duckdb", "SELECT SUM(FLOOR(d * 100)), SUM(CAST(i * 0.5 AS INTEGER)) FROM t"),
    ("duckdb", "SELECT COUNT(*) FROM t WHERE FLOOR(f * 100) <> f * 100"),
    ("duckdb", "SELECT CAST(2.5 AS INTEGER) AS r, CAST(2.5e0 AS INTEGER) AS s, COUNT(*) FROM t"),
    ("duckdb", "SELECT SUM(e * d * 0.5), SUM(d % 0.4), SUM(i // 7), SUM(e // 2) FROM t"),
    ("duckdb", "SELECT SUM(CAST(d AS DECIMAL(6, 1))), SUM(CAST(f AS DECIMAL(9, 2))) FROM t"),
    ("postgres", "SELECT SUM(i / 7), SUM(b / 7), SUM(i / 7.0), SUM(CAST(d * 1.5 AS numeric(9, 1))) FROM t"),
    ("postgres", "SELECT SUM(i) / COUNT(*), SUM(b) / COUNT(*), SUM(CASE WHEN y THEN 1 ELSE 0 END) / COUNT(*) FROM t"),
    ("postgres", "SELECT i / 10 AS k, COUNT(*) AS n FROM t GROUP BY 1"),
    ("postgres", "SELECT EXTRACT(MONTH FROM day) / 4 AS k, COUNT(*) AS n FROM t GROUP BY 1"),
    ("postgres", "SELECT EXTRACT(MONTH FROM day)::int / 4 AS k, COUNT(*) AS n FROM t GROUP BY 1"),
    (
        "postgres",
        "SELECT SUM(ROUND(f)), SUM(ROUND(d)), SUM(ROUND(d / 2, 2)), SUM(FLOOR(d / 7)), COUNT(*) FILTER (WHERE d / 7 > 0.5) FROM t",
    ),
    ("postgres", "SELECT SUM(ROUND(i, -1) / 7), SUM(ROUND(i) / 7), SUM(ABS(i) / 7) FROM t"),
    ("postgres", "SELECT COUNT(*)::numeric / 7, COUNT(*) / 7, CAST(SUM(d) / 2 AS INTEGER) FROM t"),
    ("postgres", "SELECT SUM(n) / 10 FROM (SELECT w, COUNT(*) AS n FROM t WHERE w IS NOT NULL GROUP BY w) AS q"),
)


@pytest.mark.parametrize(("dialect", "sql"), STATEMENTS)
def test_types_of_numbers_decide(world: World, dialect: str, sql: str) -> None:
    tally = Tally()
    compare(world, sql, dialect, tally)
    assert (tally.equal, tally.different) == (1, []), tally


SHOWN = "ts BETWEEN '2024-03-01T06:30:00Z' AND '2024-06-30T23:59:59.999Z'"
"""The ends of what a dashboard shows, as it writes them."""
_PERIOD = "floor(extract(epoch from {})/{})*{}"
TIMES = (
    (0, f"SELECT COUNT(*) FROM t WHERE {SHOWN}"),
    (0, "SELECT COUNT(*), SUM(b) FROM t WHERE day BETWEEN '2024-03-01T17:45:00Z' AND '2024-09-30T17:45:00Z'"),
    (0, "SELECT COUNT(*) FROM t WHERE ts < TIMESTAMP '2024-05-05T05:05:05Z' OR day = '2024-06-07T00:00:00Z'"),
    (0, "SELECT COUNT(*) FROM t WHERE extract(epoch from ts) >= 1709283600 AND extract(epoch from ts) <= 1719792000"),
    *(
        (1, f'SELECT {_PERIOD.format("ts", length, length)} AS "time", COUNT(*), SUM(b) FROM t WHERE {SHOWN} GROUP BY 1 ORDER BY 1')
        for length in ("3600", "5400", "86400", "604800", "2.592e+06")
    ),
    (1, f'SELECT {_PERIOD.format("day", 604800, 604800)} AS "time", COUNT(*) FROM t GROUP BY 1 ORDER BY 1'),
    (2, f'SELECT {_PERIOD.format("ts", 10800, 10800)} AS "time", y AS metric, COUNT(*) FROM t WHERE {SHOWN} GROUP BY 1, 2 ORDER BY 1, 2'),
    (2, f"SELECT EXTRACT(HOUR FROM ts), floor(extract(epoch from ts)/25200), COUNT(*) FROM t WHERE {SHOWN} GROUP BY 1, 2"),
)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("keys", "sql"), TIMES)
def test_what_dashboards_make_of_time_means_what_the_bare_engine_says(world: World, dialect: str, keys: int, sql: str) -> None:
    assert difference(world.ask(sql, dialect), world.bare(sql, dialect), keys=keys) is None


def _halves_up(scalars: Scalars, node: exp.Expr, integer: Typed, divisor: int) -> Typed:
    half = number_types._constant(scalars, node, divisor // 2)
    return number_types._floor(scalars, node, scalars.plain_call(node, Function.ADD, integer, half), divisor)


PLANTED: dict[str, tuple[str, Callable[..., object] | frozenset[object]]] = {
    "decimals are computed as doubles": ("called", lambda *_: None),
    "halves are rounded up": ("_nearest", _halves_up),
    "integers are divided as reals": ("INTEGERS", frozenset()),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_seen(world: World, monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    monkeypatch.setattr(number_types, *PLANTED[mistake])
    statements = [*STATEMENTS, *(("postgres", sql) for dialect, sql in STATEMENTS if dialect == "duckdb" and "//" not in sql)]
    tally = Tally()
    for dialect, sql in statements:
        compare(world, sql.replace("2.5e0", "2.5"), dialect, tally)
    assert tally.different != []


def test_a_difference_is_seen() -> None:
    assert difference([(1, 2.0)], [(1, 2)], keys=1) is None
    assert difference([(None, 2.0), ("x", 0)], [(None, 2)], keys=1) is None
    assert difference([(0, 2.0)], [(None, 2)], keys=1) is not None
    assert difference([(1, 3.0)], [(1, 2)], keys=1) is not None
    assert difference([(1, 2.0), (2, 1.0)], [(1, 2)], keys=1) is not None
    assert difference([(2.5,)], [(2.6,)], keys=0) is not None
    assert difference([(0,)], [(None,)], keys=0) is None
