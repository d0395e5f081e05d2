"""Declared groups without rows are left out of what is computed over answers, where the noise lets one tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from lapwing.answers.assembly import assemble
from lapwing.answers.empty_groups import occupied_groups
from lapwing.asking.ask import plan_of
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.release import NoisyColumn, NoisyTable, Released
from tests.differential.world import World

BY_DAY = "SELECT COUNT(*) AS g, AVG(n) AS a, MIN(n) AS m FROM (SELECT day, COUNT(*) AS n FROM t WHERE day IS NOT NULL GROUP BY day) AS q"
BY_WORD = "SELECT COUNT(*) AS g, SUM(s) AS s FROM (SELECT w, COUNT(*) AS n, SUM(b) AS s FROM t WHERE w > 'b' GROUP BY w) AS q"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("empty"))
    yield made
    made.close()


@pytest.mark.parametrize("sql", [BY_DAY, BY_WORD])
def test_where_noise_is_small_the_result_is_that_of_sql(world: World, sql: str) -> None:
    assert [tuple(map(float, row)) for row in world.ask(sql, "duckdb")] == [tuple(map(float, row)) for row in world.bare(sql, "duckdb")]


NULL_ALONE = (
    "SELECT SIGN(d) AS k, COUNT(*) AS n, SUM(d) AS s, COALESCE(SUM(d), -1) AS c FROM t GROUP BY 1",
    "SELECT CASE WHEN d IS NULL THEN 'missing' WHEN d < 0 THEN 'below' ELSE 'above' END AS k, SUM(d) AS s, SUM(b) AS b FROM t GROUP BY 1",
    "SELECT SUM(d) AS s, SUM(d) IS NULL AS is_null, COUNT(d) AS n FROM t WHERE d IS NULL",
)


@pytest.mark.parametrize("sql", NULL_ALONE)
@pytest.mark.parametrize("epsilon", [1, 10**5])
def test_a_sum_is_null_where_declarations_show_that_there_is_nothing_to_sum(world: World, sql: str, epsilon: int) -> None:
    """Whatever the noise: no released number decides it."""
    key = " AS k," in sql
    wanted = {row[0] if key else None: [value is None for value in row] for row in world.bare(sql, "duckdb")}
    table = world.data.ask(sql, epsilon=epsilon).table
    found = {row[0] if key else None: [value is None for value in row] for row in zip(*(c.to_pylist() for c in table.columns), strict=True)}
    assert found == wanted


def test_where_noise_hides_a_row_every_group_stays_and_a_note_says_so(world: World) -> None:
    answer = world.data.ask(BY_DAY, epsilon=1)
    days = len(world.data.ask("SELECT day, COUNT(*) FROM t WHERE day IS NOT NULL GROUP BY day", epsilon=1).table)
    assert answer.table.column("g").to_pylist() == [days] and days > 360
    assert any("groups that this is computed from are noise only" in note for note in answer.notes)


def test_declared_groups_that_nothing_is_measured_of_are_counted_and_a_note_says_so(world: World) -> None:
    answer = world.data.ask("SELECT COUNT(*) AS g FROM (SELECT w FROM t WHERE w IS NOT NULL GROUP BY w) AS q", epsilon=1)
    assert answer.table.column("g").to_pylist() == [6] and answer.cost.free
    assert any("HAVING COUNT(*) > 0" in note for note in answer.notes)


def released_table(world: World, values: tuple[int, ...], scale: Fraction) -> tuple[Any, Released]:
    """The plan of a count by word, and a release of it with these counts."""
    _, planned = plan_of(world.data.curator, "SELECT MIN(n) AS m FROM (SELECT w, COUNT(*) AS n FROM t GROUP BY w) AS q", 10**5)
    query = planned.certified.queries[0]
    assert planned.only.groups is not None and len(values) == len(planned.only.groups)
    column = NoisyColumn(query.vectors[0].vector.name, values, DiscreteLaplace(scale), Fraction(1), Fraction(0))
    table = NoisyTable(("k0",), planned.only.groups, (column,), None, query.shape.rows_max)
    return planned, Released(planned.certified.digest, (table,))


def places(planned: Any, released: Released) -> list[int] | None:
    return occupied_groups(planned.only, planned.certified.queries[0], released.tables[0], planned.facts)


def test_it_is_read_off_released_counts_and_the_law_alone(world: World) -> None:
    values = (3, 0, 7, -1, 1, 2, 0)
    planned, released = released_table(world, values, Fraction(1, 128))
    assert places(planned, released) == [0, 2, 4, 5]
    for scale in (Fraction(1, 4), Fraction(1), Fraction(64)):  # a row does not stand out of these
        assert places(*released_table(world, values, scale)) is None


def test_where_a_bound_cuts_rows_every_group_stays(world: World) -> None:
    planned, released = released_table(world, (3, 0, 7, -1, 1, 2, 0), Fraction(1, 128))
    tables = {"t": replace(planned.facts.tables["t"], rows_per_unit_max=2)}
    more = replace(planned.facts, tables=tables)  # units may have had another row
    assert occupied_groups(planned.only, planned.certified.queries[0], released.tables[0], more) is None


def test_what_is_computed_is_of_the_groups_that_are_kept(world: World) -> None:
    planned, released = released_table(world, (3, 0, 7, 0, 1, 2, 0), Fraction(1, 128))
    bound, _ = plan_of(world.data.curator, "SELECT AVG(n) AS a FROM (SELECT w, COUNT(*) AS n FROM t GROUP BY w) AS q", 10**5)
    assembled = assemble(planned, released, bound.post, confidence=Fraction(95, 100))
    assert assembled.table.column("a").to_pylist() == [13 / 4]
    assert "a" not in assembled.intervals  # so little noise moves nothing, in none of the runs


def test_the_world_is_one_in_which_a_day_is_missing(world: World) -> None:
    (row,) = world.bare("SELECT COUNT(DISTINCT day) FROM t", "duckdb")
    assert 50 < row[0] < 120
