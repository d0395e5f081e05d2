"""Expressions written in SQL over hostile rows: parsed, bound, certified and run for real. No row may raise."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lapwing.catalog import Settings
from lapwing.errors import Incident, Refused
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import KeyDomain
from lapwing.kernel.ir import KnownGroups, Measure, Plan, Query, Ranked, RowCount, Vector
from lapwing.kernel.stability import shape_of
from lapwing.planning.grids import grid_of
from lapwing.sql import bind
from lapwing.statements import AggregateKind
from tests.engines.hostile_world import LAW, SCAN, HostileWorld
from tests.support.sizes import size
from tests.support.sql_queries import SqlQueries

WORLDS = 4
EXPRESSIONS_PER_WORLD = size("hostile SQL, expressions")
PER_STATEMENT = 40


@pytest.mark.parametrize("seed", range(WORLDS))
def test_no_row_raises(tmp_path: Path, seed: int) -> None:
    world = HostileWorld(tmp_path, seed=900 + seed)
    queries, rng = SqlQueries(world.facts, {}, seed=seed), random.Random(seed)
    queries._columns = {name: domain for name, domain in world.columns.items() if not isinstance(domain, KeyDomain)}
    shape = shape_of(SCAN, world.facts)
    ran = refused = 0
    while ran < EXPRESSIONS_PER_WORLD:
        measures: list[Measure] = []
        while len(measures) < PER_STATEMENT:
            kind, depth = rng.choice(["integer", "real", "boolean"]), rng.randint(1, 4)
            text = {"integer": queries.integer, "real": queries.real, "boolean": queries.boolean}[kind](depth)
            statement = f"SELECT COUNT(*) FILTER (WHERE {text}) FROM hostile" if kind == "boolean" else f"SELECT SUM({text}) FROM hostile"
            try:
                (aggregate,) = bind(statement, world.facts, settings=Settings(), unit_columns={}).private.aggregates
                if aggregate.kind is AggregateKind.SUM and aggregate.value is not None:
                    measure: Measure = grid_of(aggregate.value, shape)
                else:
                    measure = RowCount(aggregate.where)
                certify(Plan((Query(SCAN, (), KnownGroups(((),)), Ranked(), (Vector("n", measure, LAW),)),)), world.facts)
            except Refused:
                refused += 1
                continue
            measures.append(measure)
        vectors = tuple(Vector(f"v{i}", measure, LAW) for i, measure in enumerate(measures))
        certified = certify(Plan((Query(SCAN, (), KnownGroups(((),)), Ranked(), vectors),)), world.facts)
        try:
            world.snapshot.run(certified)
        except Incident:
            pytest.fail(f"a row raised in one of {PER_STATEMENT} expressions of seed {seed}")
        ran += len(measures)
    assert ran >= EXPRESSIONS_PER_WORLD
    assert refused < 3 * ran, "most of what is generated must be accepted, or little is tested"


@pytest.mark.soak("in `check` there are fewer")
def test_the_worlds_add_up_to_ten_thousand() -> None:
    assert WORLDS * EXPRESSIONS_PER_WORLD >= 10_000
