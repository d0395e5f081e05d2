"""Random expressions over hostile rows, through the real path: no engine error, the reference's very integers, and sound intervals.

Every value of every row is compared, because the queries group by row. Python and the engine use the same mathematical library, so even
LN and EXP usually agree to the last bit; one grid step per row is allowed for sums that contain them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import pytest

from lapwing.kernel.certify import certify
from lapwing.kernel.domains import Domain, Kind, RealDomain
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, Value, call
from lapwing.kernel.ir import (
    DiscoveredGroups,
    DistinctCount,
    Filter,
    GridSum,
    KnownGroups,
    Measure,
    Plan,
    Project,
    Query,
    Ranked,
    RowCount,
    UnitCount,
    Vector,
)
from lapwing.kernel.stability import domain_of
from lapwing.render.duckdb import DUCKDB
from lapwing.render.queries import render_plan
from tests.engines.hostile_world import LAW, SCAN, HostileWorld
from tests.support.expression_fuzz import KINDS, ExpressionFuzz, functions_of
from tests.support.reference import Row, Stored, bounded_integer, evaluator, in_domain
from tests.support.sizes import size

SEEDS, QUERIES, VECTORS, DEPTHS = size("fuzzed expressions, seeds"), 5, 52, 6
"""40 * 5 * 52 = 10,400 expressions, half of them nested more than three deep."""
MAGNITUDE_MAX = 2**52
"""Grid integers of sums go up to the largest that 1,000 rows can add up."""
LIBRARY = frozenset([Function.LN, Function.LOG_2, Function.LOG_10, Function.EXP, Function.SIN, Function.COS])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileWorld]:
    made = HostileWorld(tmp_path_factory.mktemp("world"), seed=1)
    assert len(made.rows) >= 60
    yield made
    made.snapshot.close()


def _measures(fuzz: ExpressionFuzz, count: int) -> list[Measure]:
    made: list[Measure] = []
    for i in range(count):
        depth = 1 + i % DEPTHS
        if i % 3 == 2:
            made.append(RowCount(fuzz.expression(Kind.BOOLEAN, depth=depth).expression))
        else:
            made.append(fuzz.measure(depth=depth, magnitude_max=MAGNITUDE_MAX))
    return made


def _wrong(measure: Measure, rows: list[Row], found: list[int], columns: dict[str, Domain]) -> list[tuple[object, ...]]:
    """Rows on which the engine and the reference differ, or a value lies outside the domain the kernel derived."""
    assert isinstance(measure, RowCount | GridSum)
    expression = measure.value if isinstance(measure, GridSum) else measure.where
    assert expression is not None
    ready, domain = evaluator(expression, columns), domain_of(expression, columns)
    bounded = bounded_integer(measure, ready) if isinstance(measure, GridSum) else None
    slack = 1 if bounded is not None and functions_of(expression) & LIBRARY else 0
    wrong: list[tuple[object, ...]] = []
    for row, integer in zip(rows, found, strict=True):
        value = ready.value(row)
        expected = int(value is True) if bounded is None else bounded(value) or 0
        if abs(integer - expected) > slack:
            wrong.append(("differs", expression, row, integer, expected))
        if not in_domain(value, domain):
            wrong.append(("outside", expression, row, value, domain))
    return wrong


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_expressions_agree_with_the_reference_and_keep_their_intervals(world: HostileWorld, seed: int) -> None:
    fuzz = ExpressionFuzz(world.columns, seed=seed)
    for _ in range(QUERIES):
        measures = _measures(fuzz, VECTORS)
        answers = world.by_row(SCAN, measures)
        assert len(answers) == len(world.rows)
        for i, measure in enumerate(measures):
            found = [answers[_number(row)][i] for row in world.rows]
            assert _wrong(measure, world.rows, found, dict(world.columns)) == []


def _number(row: Row) -> int:
    number = row["row_id"]
    assert isinstance(number, int)
    return number


@pytest.mark.parametrize("seed", range(10))
def test_expressions_over_filtered_and_computed_columns(world: HostileWorld, seed: int) -> None:
    """A projection fixes the physical form of what it computes; expressions over it must read that form."""
    fuzz = ExpressionFuzz(world.columns, seed=10_000 + seed)
    computed = [fuzz.expression(kind, depth=3) for kind in KINDS for _ in range(2)]
    columns = {"row_id": world.columns["row_id"], **{f"c{i}": typed.domain for i, typed in enumerate(computed)}}
    predicate = fuzz.expression(Kind.BOOLEAN, depth=2).expression
    listed = (("row_id", Column("row_id")), *((f"c{i}", typed.expression) for i, typed in enumerate(computed)))
    ready = {name: evaluator(expression, world.columns).value for name, expression in listed}
    keep = evaluator(predicate, world.columns).value
    rows: list[Row] = [{name: value(row) for name, value in ready.items()} for row in world.rows if keep(row) is True]
    over = ExpressionFuzz({**columns, "badge": world.columns["badge"]}, seed=seed)
    source = Project(Filter(SCAN, predicate), (*listed, ("badge", Column("badge"))))
    measures = [measure for measure in _measures(over, 30) if "badge" not in str(measure)]
    answers = world.by_row(source, measures)
    assert answers.keys() == {_number(row) for row in rows}
    for i, measure in enumerate(measures):
        assert _wrong(measure, rows, [answers[_number(row)][i] for row in rows], columns) == []


def _key_value(stored: Stored, domain: Domain) -> Value:
    """How a key is published: reals as fractions."""
    if isinstance(stored, float):
        return Fraction(stored)
    if isinstance(domain, RealDomain) and isinstance(stored, int):
        return Fraction(stored, domain.steps or 1)
    return stored


@pytest.mark.parametrize("seed", range(10))
def test_random_keys_are_the_references_groups(world: HostileWorld, seed: int) -> None:
    fuzz = ExpressionFuzz(world.columns, seed=20_000 + seed)
    for number in range(12):
        kind = KINDS[number % len(KINDS)]
        typed = fuzz.expression(kind, depth=1 + number % DEPTHS)
        groups = KnownGroups(((None,),)) if kind is Kind.REAL else DiscoveredGroups(LAW, Fraction(1, 10**9), 1000)
        vectors = (Vector("n", RowCount(), LAW), Vector("u", UnitCount(), LAW))
        query = Query(SCAN, (("k", typed.expression),), groups, Ranked(), vectors)
        table = world.run(certify(Plan((query,)), world.facts))
        ready = evaluator(typed.expression, world.columns).value
        expected = Counter(_key_value(ready(row), typed.domain) for row in world.rows)
        units = {(_key_value(ready(row), typed.domain), row["owner"]) for row in world.rows}
        assert dict(zip((group[0] for group in table._groups), table._vectors[0], strict=True)) == expected
        assert dict(zip((group[0] for group in table._groups), table._vectors[1], strict=True)) == Counter(key for key, _ in units)


def test_distinct_values_are_the_references(world: HostileWorld) -> None:
    fuzz = ExpressionFuzz(world.columns, seed=30_000)
    kinds = [Kind.INTEGER, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN, Kind.KEY]
    expressions = [fuzz.expression(kind, depth=3).expression for kind in kinds for _ in range(6)]
    vectors = tuple(Vector(f"v{i}", DistinctCount(expression), LAW) for i, expression in enumerate(expressions))
    table = world.run(certify(Plan((Query(SCAN, (), KnownGroups(((),)), Ranked(), vectors),)), world.facts))
    for expression, vector in zip(expressions, table._vectors, strict=True):
        ready = evaluator(expression, world.columns).value
        assert list(vector) == [len({ready(row) for row in world.rows} - {None})]


def test_the_fuzz_reaches_every_function_and_goes_deep(world: HostileWorld) -> None:
    seen: Counter[Function] = Counter()
    depths: Counter[int] = Counter()
    for seed in range(5):
        fuzz = ExpressionFuzz(world.columns, seed=seed)
        for measure in (measure for _ in range(QUERIES) for measure in _measures(fuzz, VECTORS)):
            expression = measure.value if isinstance(measure, GridSum) else measure.where if isinstance(measure, RowCount) else None
            assert expression is not None
            seen.update(functions_of(expression))
            depths[_depth(expression)] += 1
    assert {function for function in Function if seen[function] < 20} == set()
    assert sum(count for depth, count in depths.items() if depth >= 5) > 100


def _depth(expression: Expression) -> int:
    match expression:
        case Call(_, arguments):
            return 1 + max(_depth(argument) for argument in arguments)
        case Case(branches, otherwise):
            return 1 + max(_depth(part) for part in (otherwise, *(part for branch in branches for part in branch)))
        case _:
            return 0


KEYWORDS = frozenset(["AND", "AS", "CAST", "CASE", "COALESCE", "ELSE", "FROM", "IN", "NOT", "NULLIF", "OR", "SELECT", "THEN", "WHEN"])
"""Words of SQL that can stand before a bracket and are no functions; NULLIF and COALESCE are grammar in every engine."""
ALLOWED = frozenset(
    [
        *("abs", "ceil", "exp", "floor", "greatest", "least", "ln", "round", "round_even", "sqrt", "sum", "count"),
        *("log2", "log10", "sin", "cos", "date_part", "date_trunc", "make_timestamp", "epoch_us", "to_months", "starts_with"),
        *("length", "strpos", "substring", "lower", "upper"),
    ]
)
"""Every function of the engine that a rendered expression or measure may call."""


def _called(sql: str) -> set[str]:
    """Names before a bracket, outside text constants and quoted identifiers."""
    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", " ", sql)
    return {name for name in re.findall(r"([A-Za-z_][A-Za-z_0-9]*)\s*\(", bare) if name.upper() not in KEYWORDS}


def test_the_engine_functions_in_rendered_sql_are_a_fixed_list(world: HostileWorld) -> None:
    called: set[str] = set()
    for seed in range(6):
        fuzz = ExpressionFuzz(world.columns, seed=40_000 + seed)
        certified = world.certified(SCAN, [*_measures(fuzz, VECTORS), DistinctCount(Column("note")), UnitCount(Column("flag"))])
        called |= {name.lower() for query in render_plan(certified, DUCKDB) for name in _called(query.sql)}
    assert called == ALLOWED
    listed = duckdb.connect().execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    offered = {str(name).lower() for (name,) in listed}
    assert len(offered) > 500
    assert called & offered == called


def test_the_scan_for_called_functions_is_not_fooled() -> None:
    assert _called("SELECT getenv('a') FROM t") == {"getenv"}
    assert _called("""SELECT 'getenv(1)' , "getenv(1)" , 'it''s getenv(2)' FROM (SELECT 1)""") == set()
    assert _called("CAST(read_text ('x') AS VARCHAR)") == {"read_text"}


def test_no_function_outside_the_closed_list_can_be_named() -> None:
    with pytest.raises(ValueError, match="is not a valid Function"):
        Function("getenv")
    assert set(DUCKDB.functions) <= set(Function)


def test_text_constants_reach_the_engine_unchanged(world: HostileWorld) -> None:
    """Whatever a constant holds, it is data: each text of the hostile list is found again, and only where it is."""
    texts = sorted({row["note"] for row in world.rows if isinstance(row["note"], str) and "\x00" not in row["note"]})
    assert len(texts) > 20
    measures: list[Measure] = [RowCount(call(Function.EQUAL, Column("note"), Literal(text, Kind.TEXT))) for text in texts]
    answers = world.by_row(SCAN, measures)
    for i, text in enumerate(texts):
        assert {number for number, cells in answers.items() if cells[i]} == {_number(row) for row in world.rows if row["note"] == text}
