"""The same exact integers over blocks of time on every engine: every plan shape, on versions that grew month by month."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from lapwing.audit.block_shapes import block_shapes
from lapwing.audit.block_worlds import DAYS, block_number, declare_blocks, random_block_world
from lapwing.catalog import Declaration, Settings
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Engine, Snapshot, silent
from lapwing.engines.duckdb import DuckDBEngine, DuckDBSnapshot
from lapwing.engines.postgres import PostgresEngine
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from tests.engines.comparison import comparable
from tests.engines.suite import statements
from tests.support.postgres_worlds import PostgresWorlds

KEY = b"m" * 32
FIRST, LAST = block_number(DAYS[0]) or 0, block_number(DAYS[-1]) or 0


def _declared(directory: Path, account: Account) -> Declaration:
    """A random world whose catalogue declares its blocks."""
    delta = "0" if account is Account.PURE else '"2^-30"'
    return declare_blocks(random_block_world(random.Random(5)), directory, neighbours="unbounded", delta=delta)


def _grown(engine: Engine, declaration: Declaration, text: str) -> Snapshot:
    """A version of one month, to which the others were added."""
    held = PreparedBlocks(FIRST, FIRST)
    engine.prepare(declaration, text, version=1, ranking_key=KEY, progress=silent, blocks=held)
    for first, last in ((FIRST + 1, FIRST + 1), (FIRST + 2, FIRST + 5), (FIRST + 6, LAST)):
        held = PreparedBlocks(FIRST, last)
        engine.write_blocks(1, BlockWrite(declaration, (first, last), held, KEY))
    return engine.open(1, ranking_key=KEY)


@contextmanager
def _on_duckdb(declaration: Declaration, text: str) -> Iterator[Snapshot]:
    assert declaration.directory is not None
    (declaration.directory / ".lapwing").mkdir()
    with closing(_grown(DuckDBEngine(declaration.directory / ".lapwing", Settings()), declaration, text)) as snapshot:
        yield snapshot


@contextmanager
def _on_postgres(worlds: PostgresWorlds, declaration: Declaration) -> Iterator[Snapshot]:
    on_server, text = worlds.load(declaration)
    with closing(PostgresEngine(on_server, worlds.settings, owner="", any_reader=True)) as engine:
        with closing(_grown(engine, on_server, text)) as snapshot:
            yield snapshot
        engine.retire(1)
    worlds.clear()


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
@pytest.mark.parametrize("account", [Account.PURE, Account.APPROXIMATE])
def test_every_plan_over_blocks(tmp_path: Path, request: pytest.FixtureRequest, name: str, account: Account) -> None:
    """Against a preparation in memory, which the sensitivity oracle runs on. Every second shape in one account, the others in the other."""
    declaration = _declared(tmp_path, account)
    shapes = list(block_shapes(account).items())[account is Account.PURE :: 2]
    grown: AbstractContextManager[Snapshot]
    if name == "duckdb":
        grown = _on_duckdb(declaration, (tmp_path / "lapwing.toml").read_text(encoding="utf-8"))
    else:
        grown = _on_postgres(request.getfixturevalue("postgres_worlds"), declaration)
    compared, different = 0, []
    with closing(DuckDBSnapshot.in_memory(declaration, version=1, ranking_key=KEY)) as first, grown as second:
        for label, shape in shapes:
            plan = shape(first.facts)
            if not plan.queries or statements.functions_in(plan) & statements.TRANSCENDENTAL:
                continue
            found = []
            for snapshot in (first, second):
                certified = certify(shape(snapshot.facts), snapshot.facts)
                snapshot.check(certified)
                found.append(comparable(snapshot.run(certified)))
            compared += 1
            different += [label] if found[0] != found[1] else []
    assert different == []
    assert compared > 60
