"""The preparation lemma on the other engines, for sources as owners have them: tables of a server, and folders of files on Spark."""

from __future__ import annotations

import random

import pytest

from lapwing.catalog import Declaration
from tests.engines.suite.engines import OnPostgres, OnSpark, SuiteEngine, prepared
from tests.support.postgres_worlds import PostgresWorlds
from tests.support.preparation_oracle import Outcome, Tables, by_unit, check_family, run_preparation_oracle
from tests.support.sizes import spread
from tests.support.source_worlds import IDENTIFIERS, TABLES, Family, Style, random_family, random_style

CLAIMS = ("claims a visit", "claims a visit as nobody", "claims a code")


def _tables(engine: SuiteEngine, declaration: Declaration) -> Tables:
    snapshot = engine.prepare(declaration)
    try:
        return Tables(snapshot.facts, {table: by_unit(prepared(engine, snapshot, table)) for table in TABLES})
    finally:
        snapshot.close()


def test_tables_of_a_server(postgres_worlds: PostgresWorlds) -> None:
    def prepare(declaration: Declaration) -> Tables:
        postgres_worlds.clear()
        return _tables(OnPostgres(postgres_worlds), declaration)

    def make(rng: random.Random) -> Family:
        return random_family(rng, random_style(rng, in_folders=False), optional=1, contents=9, hostile=0.25, kinds=CLAIMS)

    outcome = run_preparation_oracle(make, prepare, pairs=600, seed=1)
    postgres_worlds.clear()
    assert outcome.breaches == []
    assert 0 < outcome.stopped < outcome.pairs / 2


STYLES = {
    "fixed point": (Style(IDENTIFIERS["decimal"], IDENTIFIERS["digits"], "flag", in_folders=True, csv=False, straight=False), 1),
    "text, and tables without rows": (
        Style(IDENTIFIERS["text"], IDENTIFIERS["int"], "listed", in_folders=True, csv=False, straight=True),
        5,
    ),
}


@pytest.mark.parametrize(("style", "seed"), spread([*STYLES.values()], "folders on Spark"), ids=spread([*STYLES], "folders on Spark"))
def test_folders_on_spark(style: Style, seed: int) -> None:
    outcome = Outcome()
    family = random_family(random.Random(seed), style, optional=0, contents=4, hostile=0.5)
    check_family(family, lambda declaration: _tables(OnSpark(), declaration), outcome)
    assert outcome.breaches == []
    assert outcome.pairs == 10
    assert 0 < outcome.stopped < outcome.pairs
