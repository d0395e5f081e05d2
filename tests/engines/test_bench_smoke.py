"""The benchmark in small: every comparison runs the real path, means what the bare SQL means, and is not absurdly slow.

The bounds on time are loose on purpose: at this size a statement takes milliseconds, most of them before the engine starts. They catch a
plan that has become quadratic, or that computes for every unit what it should compute for few. Real figures: benchmarks/README.md.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import duckdb
import pytest
from benchmarks.bounding_plans import compare, show_sql
from benchmarks.files import Files, load_bare, opened, prepare, run_bare, write_source
from benchmarks.plans import BITS, COMPARISONS, Comparison, Period, Question, Style, bare_sql, plan_of
from benchmarks.visits import AMOUNT_MAX, REGIONS

from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.kernel.certify import certify
from lapwing.kernel.ir import KnownGroups
from lapwing.kernel.release import dense_vectors

ROWS = 100_000
RATIO_MAX = {
    Style.RANKED: 6,
    Style.RANKED_ALL: 6,
    Style.WEIGHTED: 8,
    Style.GROUPED: 40,
    Style.CLIPPED: 25,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    made = Files(tmp_path_factory.mktemp("bench"))
    write_source(made, rows=ROWS)
    load_bare(made)
    prepare(made)
    return made


@pytest.fixture(scope="module")
def sides(files: Files) -> Iterator[tuple[duckdb.DuckDBPyConnection, DuckDBSnapshot]]:
    with opened(files) as both:
        yield both


def _vectors(comparison: Comparison, snapshot: DuckDBSnapshot, *, binding: bool) -> list[list[int]]:
    certified = certify(plan_of(comparison, binding=binding), snapshot.facts)
    groups = certified.plan.queries[0].groups
    assert isinstance(groups, KnownGroups)
    return dense_vectors(groups, snapshot.run(certified)._tables[0])


def _expected(comparison: Comparison, bare: duckdb.DuckDBPyConnection) -> list[list[int]]:
    """The bare answer, with amounts clamped and in cents as the catalogue declares them, on the grid of the plan."""
    cents = f"SUM(CAST(round(least(amount, {AMOUNT_MAX}) * 100) AS BIGINT))"
    rows = bare.execute(bare_sql(comparison).replace("SUM(amount)", cents)).fetchall()
    found = {row[0]: row[1:] for row in rows}
    scale = 2**BITS if comparison.style in (Style.WEIGHTED, Style.CLIPPED) else 1
    columns = 2 if comparison.question is Question.COUNT_AND_SUM else 1
    return [[int(found[region][column]) * scale if region in found else 0 for region in REGIONS] for column in range(columns)]


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda comparison: comparison.name)
def test_where_no_bound_binds_the_answer_is_that_of_bare_sql(
    comparison: Comparison, sides: tuple[duckdb.DuckDBPyConnection, DuckDBSnapshot]
) -> None:
    bare, snapshot = sides
    expected = _expected(comparison, bare)
    assert sum(expected[0]) > 0
    assert _vectors(comparison, snapshot, binding=False) == expected


@pytest.mark.parametrize("style", [Style.RANKED, Style.WEIGHTED, Style.GROUPED, Style.CLIPPED], ids=lambda style: style.name)
def test_over_the_year_the_bounds_of_the_benchmark_do_bind(style: Style, sides: tuple[duckdb.DuckDBPyConnection, DuckDBSnapshot]) -> None:
    bare, snapshot = sides
    comparison = Comparison(Question.COUNT_AND_SUM, style, Period.YEAR)
    for bounded, whole in zip(_vectors(comparison, snapshot, binding=True), _expected(comparison, bare), strict=True):
        assert 0 < sum(bounded) < sum(whole)


def test_no_plan_is_absurdly_slow(files: Files) -> None:
    for line in compare(files, COMPARISONS, repetitions=3):
        assert statistics.median(line.ratios) < RATIO_MAX[line.comparison.style], line


def test_the_bare_statement_gives_one_row_per_region(sides: tuple[duckdb.DuckDBPyConnection, DuckDBSnapshot]) -> None:
    assert run_bare(sides[0], bare_sql(COMPARISONS[0])).num_rows == len(REGIONS)


def test_the_statements_can_be_shown_without_data(capsys: pytest.CaptureFixture[str]) -> None:
    show_sql(COMPARISONS, rows=ROWS)
    shown = capsys.readouterr().out
    assert all(f"-- {comparison.name}\n" in shown for comparison in COMPARISONS)
    assert shown.count("_rank <= ") >= len(COMPARISONS)
