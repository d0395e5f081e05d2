"""PostgreSQL and DuckDB: the same prepared rows, ranks included, and the same exact integers, on random worlds and every shape of plan."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lapwing.audit.plan_shapes import sampled_norms, shapes
from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.audit.runs import RANKING_KEY, run_oracle
from lapwing.audit.worlds import declare, distinct_keys, random_world
from lapwing.catalog import Declaration
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.engines.postgres import PostgresSnapshot
from lapwing.engines.postgres.session import ask
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.exact import ExactTable
from tests.support.postgres_worlds import PostgresWorlds

SHAPES = {**shapes(Account.APPROXIMATE), **quantile_shapes(Account.APPROXIMATE)}


def _world(directory: Path, seed: int) -> Declaration:
    return declare(distinct_keys(random_world(random.Random(seed))), directory, neighbours="unbounded", delta='"2^-30"')


def _contents(table: ExactTable) -> tuple[object, object]:
    """Everything of a table that does not depend on the order of its rows."""
    units = table._units if table._units is not None else [None] * len(table._groups)
    rows = {group: (units[i], *(vector[i] for vector in table._vectors)) for i, group in enumerate(table._groups)}
    assert len(rows) == len(table._groups)
    return rows, [{group: sorted(values) for group, values in found.items()} for found in table._quantiles]


@pytest.mark.parametrize("virtual", [False, True], ids=["stored", "virtual"])
@pytest.mark.parametrize("seed", range(3))
def test_every_shape_gives_the_same_integers(worlds: PostgresWorlds, tmp_path: Path, seed: int, virtual: bool) -> None:
    declaration = _world(tmp_path, seed)
    server = worlds.prepare(declaration, ranking_key=RANKING_KEY, virtual=virtual)
    files = DuckDBSnapshot.in_memory(declaration, version=1, ranking_key=RANKING_KEY)
    assert server.facts == files.facts
    for shape in SHAPES.values():
        certified = certify(shape(server.facts), server.facts)
        found, expected = (snapshot.run(certified)._tables for snapshot in (server, files))
        assert [_contents(table) for table in found] == [_contents(table) for table in expected]
    files.close()
    stored = worlds.prepare(declaration, ranking_key=RANKING_KEY)
    for shape in sampled_norms().values() if virtual else ():
        certified = certify(shape(server.facts), server.facts)
        found, expected = (snapshot.run(certified)._tables for snapshot in (server, stored))
        assert [_contents(table) for table in found] == [_contents(table) for table in expected], "the server's sample is one"
    stored.close()
    server.close()
    worlds.clear()


def test_the_oracle_finds_nothing_on_the_server(worlds: PostgresWorlds) -> None:
    """A short run; the suite of all engines has the long one."""

    def prepare(declaration: Declaration) -> PostgresSnapshot:
        worlds.clear()
        return worlds.prepare(declaration, ranking_key=RANKING_KEY)

    chosen = {name: SHAPES[name] for name in list(SHAPES)[::4]}
    outcome = run_oracle(relation="bounded", account=Account.APPROXIMATE, worlds=1, seed=5, only=chosen, prepare=prepare)
    assert outcome.pairs >= 100
    assert (outcome.breaches, outcome.faults) == ([], [])


def test_a_collation_of_the_server_sorts_nothing(worlds: PostgresWorlds) -> None:
    """The database of these tests sorts as a dictionary does, so the tests above would notice a sort that is not by bytes."""
    assert ask(worlds.connection, "SELECT 'a' < 'B', 'a' COLLATE \"C\" < 'B' COLLATE \"C\"") == [(True, False)]
