"""Units by their norm, and counts of units clipped by length, are on every engine what plain Python finds in the prepared rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.audit.plan_shapes import CHANGE, grid_sum, law_of, shapes
from lapwing.engines.base import Snapshot
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import BooleanDomain, IntegerDomain, KeyDomain, Kind, RealDomain, bounds
from lapwing.kernel.expressions import Column, Function, Literal, Value, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Cap, Clipped, GridSum, KnownGroups, Measure, Plan, Query, Ranked, RowCount, Scan, UnitCount, UnitNorms, Vector
from tests.engines.suite import statements
from tests.engines.suite.engines import NAMES, SuiteEngine, prepared
from tests.support.unit_cells import Group, PreparedTables, RankedRow, clipped, histogram

EngineNamed = Callable[[str], SuiteEngine]
SEEDS = {"duckdb": range(3), "postgres": range(2), "spark": range(1)}
HOSTILE_KEYS = {"duckdb": None, "postgres": None, "spark": ("flag", "sex", "ended")}
"""Columns of the hostile table that norms are taken over: on Spark, which plans each statement anew, a few."""
BITS = 10
HOSTILE = Scan("hostile", 1000)


def prepared_tables(engine: SuiteEngine, snapshot: Snapshot) -> PreparedTables:
    facts = snapshot.facts
    private = {}
    for table, known in facts.tables.items():
        private[table] = [
            RankedRow(unit, rank, dict(zip(known.columns, values, strict=True)))
            for unit, rank, _, *values in prepared(engine, snapshot, table)
        ]
    public = {}
    for table, described in facts.public_tables.items():
        quoted = engine.dialect(snapshot).quoted
        listed = engine.select(snapshot, ", ".join(f"t.{quoted(column)}" for column in described.columns), table)
        rows = [dict(zip(described.columns, row, strict=True)) for row in listed]
        public[table] = {row[described.key]: row for row in rows}
    return PreparedTables(facts, private, public)


def _run(snapshot: Snapshot, plan: Plan) -> list[dict[Group, int]]:
    """The only vector of each query, by group."""
    tables = snapshot.run(certify(plan, snapshot.facts))._tables
    return [dict(zip(table._groups, (int(value) for value in table._vectors[0]), strict=True)) for table in tables]


def _counted(norms: UnitNorms, facts: Facts) -> Query:
    bins: tuple[tuple[Value, ...], ...] = tuple((number,) for number in range(len(norms.squared_edges) + 1))
    vector = Vector("units", RowCount(), law_of(facts))
    return Query(norms, ((norms.name, Column(norms.name)),), KnownGroups(bins), Ranked(), (vector,))


def _around(squares: list[int]) -> tuple[int, ...]:
    """Edges that tell these squares apart from those beside them, on either side of the edge; the largest is above the last."""
    largest, some = max(squares), sorted(set(squares))[:40]
    return tuple(sorted({0, *(edge for square in some for edge in (square - 1, square) if 0 <= edge < largest)}))


def check_norms(snapshot: Snapshot, tables: PreparedTables, all_norms: Iterable[UnitNorms]) -> int:
    """Compare every histogram, with edges at the very squares that occur; the number of units compared."""
    facts, expected, queries, units = snapshot.facts, [], [], 0
    for norms in all_norms:
        squares = tables.squares(norms)
        placed = UnitNorms(norms.source, norms.keys, norms.measure, _around(squares), norms.name)
        expected.append(histogram(squares, placed.squared_edges))
        queries.append(_counted(placed, facts))
        units += len(squares)
    found = _run(snapshot, Plan(tuple(queries)))
    assert len(found) == len(expected)
    for query, ours, theirs in zip(queries, expected, found, strict=True):
        assert ours == theirs, query.source
    return units


def sampled_tables(engine: SuiteEngine, snapshot: Snapshot, tables: PreparedTables, one_in: int) -> PreparedTables:
    """The rows of those units whose hash the engine finds to be in the sample."""
    hashed = engine.dialect(snapshot).unit_hash("t._unit")
    kept = {}
    for table, rows in tables.private.items():
        chosen = {unit for unit, number in engine.select(snapshot, f"t._unit, {hashed}", table) if int(number) % one_in == 0}
        kept[table] = [row for row in rows if row.unit in chosen]
    return replace(tables, private=kept)


def check_sample(engine: SuiteEngine, snapshot: Snapshot, tables: PreparedTables) -> tuple[int, int]:
    """Compare histograms of samples; the numbers of units in them, and of all units."""
    one_in, inside, units = 2, 0, 0
    chosen = sampled_tables(engine, snapshot, tables, one_in)
    queries, expected = [], []
    for norms in listed_norms(snapshot.facts):
        squares = chosen.squares(norms)
        queries.append(_counted(replace(norms, one_in=one_in), snapshot.facts))
        expected.append(histogram(squares, norms.squared_edges))
        inside, units = inside + len(squares), units + len(tables.squares(norms))
    assert _run(snapshot, Plan(tuple(queries))) == expected
    return inside, units


@pytest.mark.parametrize("name", NAMES)
def test_norms_of_a_sample_of_units(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    """A unit of the sample has the norm that it has; the others are not there."""
    engine = engine_named(name)
    snapshot = engine.prepare(statements.people(tmp_path, "unbounded", Account.PURE, seed=50))
    inside, units = check_sample(engine, snapshot, prepared_tables(engine, snapshot))
    assert 0 < inside < units
    snapshot.close()


@pytest.mark.parametrize("name", NAMES)
def test_about_one_unit_in_so_many_is_in_the_sample(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    """Units that are numbered, and named, one after the other: 64 of 512 expected; 6 standard deviations allowed."""
    engine = engine_named(name)
    snapshot = engine.prepare(statements.people(tmp_path, "unbounded", Account.PURE, seed=50))
    dialect = engine.dialect(snapshot)
    numbered = [f"CAST({unit} AS {dialect.integer})" for unit in range(-6, 506)]
    texts = [f"CAST({dialect.text_literal(f'user-{unit}')} AS {dialect.text})" for unit in range(512)]
    for units in (numbered, texts):
        listed = ", ".join(f"{dialect.unit_hash(unit)} AS c{i}" for i, unit in enumerate(units))
        in_sample = [int(number) % 8 == 0 for number in engine.select(snapshot, listed, "people")[0]]
        assert 19 <= sum(in_sample) <= 109
        assert in_sample[:64] != in_sample[64:128]
    snapshot.close()


def listed_norms(facts: Facts) -> Iterator[UnitNorms]:
    for name, shape in shapes(Account.PURE).items():
        if name.startswith("norms"):
            for query in shape(facts).queries:
                assert isinstance(query.source, UnitNorms)
                yield query.source
    visits = Scan("visits", 12)
    yield UnitNorms(visits, (), RowCount(), (0, 1, 9, 144), "size")
    yield UnitNorms(visits, (("day", Column("day")), ("clinic", Column("clinic"))), UnitCount(Column("flag")), (0, 2), "size")
    yield UnitNorms(visits, (("clinic", Column("clinic")),), CHANGE, (0, 200**2), "size")
    yield UnitNorms(Scan("people", 1), (("score", Column("score")),), grid_sum("score", -100, 50, 4), (0, 1, 400**2), "size")


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in NAMES for seed in SEEDS[name]])
def test_norms_over_random_worlds(tmp_path: Path, engine_named: EngineNamed, name: str, seed: int) -> None:
    engine = engine_named(name)
    snapshot = engine.prepare(statements.people(tmp_path, "unbounded", Account.PURE, seed=50 + seed))
    tables = prepared_tables(engine, snapshot)
    listed = list(listed_norms(snapshot.facts))
    assert check_norms(snapshot, tables, listed) > 40
    expected = [histogram(tables.squares(norms), norms.squared_edges) for norms in listed]
    assert _run(snapshot, Plan(tuple(_counted(norms, snapshot.facts) for norms in listed))) == expected, "with the edges of the oracle"
    snapshot.close()


def hostile_norms(facts: Facts, keys: tuple[str, ...] | None) -> Iterator[UnitNorms]:
    """Counts over every column that makes groups, sums of every number: in all, and over a column with many NULLs."""
    columns = facts.table("hostile").columns
    for column, domain in columns.items():
        if not isinstance(domain, KeyDomain) and (keys is None or column in keys):
            yield UnitNorms(HOSTILE, ((column, Column(column)),), RowCount(), (0,), "size")
        measure: Measure | None = None
        if isinstance(domain, BooleanDomain):
            measure = UnitCount(Column(column))
        elif isinstance(domain, IntegerDomain | RealDomain):
            lower, upper = bounds(domain)
            measure = GridSum(Column(column), lower, upper, domain.steps or 1 if isinstance(domain, RealDomain) else 1)
        if measure is not None and (keys is None or column in ("wide", "ratio", "flag")):
            yield UnitNorms(HOSTILE, (), measure, (0,), "size")
            yield UnitNorms(HOSTILE, (("flag", Column("flag")), ("small", Column("small"))), measure, (0,), "size")


@pytest.mark.parametrize("name", NAMES)
def test_norms_over_hostile_rows(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    """Squares beyond 2^100, NULL in keys and values, texts that languages take for equal."""
    engine = engine_named(name)
    snapshot = engine.prepare(statements.hostile(tmp_path, seed=1))
    tables = prepared_tables(engine, snapshot)
    assert check_norms(snapshot, tables, hostile_norms(snapshot.facts, HOSTILE_KEYS[name])) > 100
    wide = UnitNorms(HOSTILE, (), GridSum(Column("wide"), *bounds(snapshot.facts.table("hostile").columns["wide"]), 1), (0,), "size")
    assert max(tables.squares(wide)) > 2**100
    snapshot.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_bin_is_a_whole_number_of_64_bits(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    """Certification counts on 62 bits; the largest edge is a constant of every engine."""
    engine = engine_named(name)
    snapshot = engine.prepare(statements.people(tmp_path, "unbounded", Account.PURE, seed=50))
    norms = UnitNorms(Scan("visits", 12), (), RowCount(), (0, 2**124 - 1), "size")
    far = call(Function.MULTIPLY, call(Function.ADD, Column("size"), Literal(3, Kind.INTEGER)), Literal(2_000_000_000, Kind.INTEGER))
    query = _counted(norms, snapshot.facts)
    counted = Query(norms, (("far", far),), KnownGroups(((8_000_000_000,),)), Ranked(), query.vectors)
    assert _run(snapshot, Plan((counted,))) == [{(8_000_000_000,): len(prepared_tables(engine, snapshot).squares(norms))}]
    snapshot.close()


def check_clipped_units(snapshot: Snapshot, tables: PreparedTables) -> int:
    """Compare clipped counts of units by group; in how many of them the cap binds."""
    source, bound = Scan("visits", 12), 0
    for key, measure, cap in (
        ("clinic", UnitCount(), 2**BITS),
        ("clinic", UnitCount(Column("flag")), 1_500),
        ("day", UnitCount(), 1_700),
        (None, UnitCount(), 1_000),
        ("clinic", UnitCount(), 2 * 2**BITS),
    ):
        keys = () if key is None else ((key, Column(key)),)
        cells = tables.cells(source, keys, measure)
        expected = clipped(cells, bits=BITS, cap=cap)
        vector = Vector("units", measure, law_of(snapshot.facts), Cap(cap))
        certified = certify(Plan((Query(source, keys, KnownGroups(tuple(expected)), Clipped(BITS), (vector,)),)), snapshot.facts)
        assert certified.queries[0].vectors[0].step * 2**BITS == 1
        assert _run(snapshot, certified.plan) == [expected]
        bound += any(total < sum(groups.get(group, 0) for groups in cells.values()) << BITS for group, total in expected.items())
    return bound


def check_alike(snapshot: Snapshot, tables: PreparedTables) -> int:
    """Compare a count and a sum that are scaled by the smaller of both factors; how many differ from what their own factors give."""
    source, keys, law = Scan("visits", 12), (("clinic", Column("clinic")),), law_of(snapshot.facts)
    count, total, caps = RowCount(), CHANGE, (2_500, 400 << BITS)
    counted, added = (tables.cells(source, keys, measure) for measure in (count, total))
    expected = [
        clipped(counted, bits=BITS, cap=caps[0], alike=(added, caps[1])),
        clipped(added, bits=BITS, cap=caps[1], alike=(counted, caps[0])),
    ]
    vectors = (Vector("n", count, law, Cap(caps[0], "s")), Vector("s", total, law, Cap(caps[1], "n")))
    query = Query(source, keys, KnownGroups(tuple(expected[0])), Clipped(BITS), vectors)
    (table,) = snapshot.run(certify(Plan((query,)), snapshot.facts))._tables
    assert [dict(zip(table._groups, (int(value) for value in vector), strict=True)) for vector in table._vectors] == expected
    alone = [clipped(counted, bits=BITS, cap=caps[0]), clipped(added, bits=BITS, cap=caps[1])]
    return sum(ours != theirs for ours, theirs in zip(alone, expected, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_vectors_scaled_alike(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    engine = engine_named(name)
    snapshot = engine.prepare(statements.people(tmp_path, "unbounded", Account.PURE, seed=50))
    assert check_alike(snapshot, prepared_tables(engine, snapshot)) == 2, "each is scaled by the other's factor somewhere"
    snapshot.close()


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in NAMES for seed in SEEDS[name]])
def test_clipped_counts_of_units(tmp_path: Path, engine_named: EngineNamed, name: str, seed: int) -> None:
    engine = engine_named(name)
    snapshot = engine.prepare(statements.people(tmp_path, "unbounded", Account.PURE, seed=60 + seed))
    assert check_clipped_units(snapshot, prepared_tables(engine, snapshot)) >= 3, "the caps must bind"
    snapshot.close()
