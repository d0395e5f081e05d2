"""Functions called by name, over hostile rows: bound, certified and run for real. No row may raise, and sums are the reference's."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from lapwing.catalog import Settings
from lapwing.errors import Incident, Refused
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import KeyDomain
from lapwing.kernel.expressions import Function
from lapwing.kernel.ir import GridSum, KnownGroups, Measure, Plan, Query, Ranked, Vector
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.planning.grids import grid_of
from lapwing.sql import bind
from lapwing.sql.scalars.handlers import NAMED
from tests.engines.hostile_world import LAW, SCAN, HostileWorld
from tests.support.expression_fuzz import functions_of
from tests.support.reference import evaluator, grid_sum, in_domain
from tests.support.sizes import size
from tests.support.sql_queries import SqlQueries
from tests.support.sql_samples import SqlSamples

WORLDS, CALLS_PER_WORLD, PER_STATEMENT = size("sampled calls, worlds"), 1_500, 30
LIBRARY = frozenset([Function.LN, Function.LOG_2, Function.LOG_10, Function.EXP, Function.SIN, Function.COS])
"""Functions whose last bits are the library's: their sums may differ in the last grid step."""


@pytest.mark.parametrize("seed", range(WORLDS))
def test_no_row_raises_and_every_value_is_in_its_interval(tmp_path: Path, seed: int) -> None:
    world = HostileWorld(tmp_path, seed=700 + seed)
    columns = {name: domain for name, domain in world.columns.items() if not isinstance(domain, KeyDomain)}
    queries, rng = SqlQueries(world.facts, {}, seed=seed), random.Random(seed)
    queries._columns = columns
    samples, shape = SqlSamples(queries, columns, seed=seed), shape_of(SCAN, world.facts)
    called: Counter[str] = Counter()
    ran = compared = refused = 0
    while ran < CALLS_PER_WORLD:
        measures: list[Measure] = []
        while len(measures) < PER_STATEMENT:
            text, entry = samples.number(rng.randint(0, 2))
            try:
                statement = bind(f"SELECT SUM({text}) FROM hostile", world.facts, settings=Settings(), unit_columns={})
                value = statement.private.aggregates[0].value
                assert value is not None
                measure = grid_of(value, shape)
                certify(Plan((Query(SCAN, (), KnownGroups(((),)), Ranked(), (Vector("n", measure, LAW),)),)), world.facts)
            except Refused:
                refused += 1
                continue
            called[entry.meaning.names[0]] += 1
            measures.append(measure)
        vectors = tuple(Vector(f"v{i}", measure, LAW) for i, measure in enumerate(measures))
        certified = certify(Plan((Query(SCAN, (), KnownGroups(((),)), Ranked(), vectors),)), world.facts)
        try:
            (table,) = world.snapshot.run(certified)._tables
        except Incident:
            pytest.fail(f"a row raised in one of {PER_STATEMENT} expressions of seed {seed}")
        for summed, (found,) in zip(measures, table._vectors, strict=True):
            assert isinstance(summed, GridSum)
            ready, domain = evaluator(summed.value, world.columns).value, domain_of(summed.value, world.columns)
            assert [row for row in world.rows if not in_domain(ready(row), domain)] == []
            if not functions_of(summed.value) & LIBRARY:
                assert found == grid_sum(summed, world.rows, world.columns)
                compared += 1
        ran += len(measures)
    assert ran >= CALLS_PER_WORLD and compared > ran // 4
    assert refused < 3 * ran, "most of what is generated must be accepted, or little is tested"
    assert [entry.meaning.names[0] for entry in NAMED if entry.meaning.samples and called[entry.meaning.names[0]] < 5] == []
