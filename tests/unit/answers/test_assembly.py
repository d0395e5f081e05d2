"""From a release to an answer: values, rounding, what is NULL, and intervals around it."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.answers.assembly import assemble
from lapwing.answers.post_processing import evaluate
from lapwing.audit.runs import prepare_in_duckdb
from lapwing.audit.worlds import declare, random_world
from lapwing.catalog import Settings
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.kernel.accounting import Account
from lapwing.kernel.ir import Clipped
from lapwing.kernel.release import NoisyColumn, NoisyTable, Released
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_query
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.sql import bind
from lapwing.statements import Statement

CONFIDENCE = Fraction(95, 100)


@pytest.fixture(scope="module")
def clipped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Statement, PlannedStatement]:
    directory = tmp_path_factory.mktemp("world")
    snapshot = prepare_in_duckdb(declare(random_world(random.Random(1)), directory / "w", neighbours="unbounded", delta='"2^-30"'))
    sql = "SELECT clinic, COUNT(late) AS n, AVG(late) AS a FROM visits WHERE day = '2024-07-07' GROUP BY clinic"
    statement = bind(sql, snapshot.facts, settings=Settings(), unit_columns={})
    planned = plan_query(
        statement.private,
        snapshot.facts,
        Price(Fraction(1, 10), Fraction(1, 10**9)),
        contributions={"visits": Contributions(((11.0, 1_000.0),))},
        units=None,
        limits=GroupLimits(1_000, 1_000),
        finder=GroupFinder(evaluate),
    )
    assert snapshot.facts.account is Account.APPROXIMATE and isinstance(planned.certified.plan.queries[0].bounding, Clipped)
    return statement, planned


def release_of(planned: PlannedStatement, values: dict[str, list[int]]) -> Released:
    """A release with these noisy integers, one per group."""
    query = planned.certified.queries[0]
    columns = tuple(NoisyColumn(v.vector.name, tuple(values[v.vector.name]), v.vector.law, v.step, v.rounding) for v in query.vectors)
    groups = query.query.groups.groups  # type: ignore[union-attr]
    return Released(planned.certified.digest, (NoisyTable(("k0",), groups, columns, None, query.shape.rows_max),))


def test_an_average_exists_where_its_count_is_shown_above_zero(clipped: tuple[Statement, PlannedStatement]) -> None:
    """A clipped plan counts in 1/1024 of a row: noise of one of them must not turn the mean of a single row into NULL."""
    statement, planned = clipped
    count, total = (vector.vector.name for vector in planned.certified.queries[0].vectors)
    counts = [1024, 1023, 513, 512, -5]
    released = release_of(planned, {count: counts, total: [1024 * 5] * 5})
    found = assemble(planned, released, statement.post, confidence=CONFIDENCE, withholding=False)
    shown, averages = (found.table.column(name).to_pylist() for name in ("n", "a"))
    assert shown == [1, 1, 1, 0, 0]
    assert [average is None for average in averages] == [n < 1 for n in shown]
    assert averages[0] == 80.0, "5 above the middle of the range from 50 to 100"
    assert [interval is None for interval in found.intervals["a"]] == [average is None for average in averages]


def test_an_average_stays_inside_the_declared_range(clipped: tuple[Statement, PlannedStatement]) -> None:
    statement, planned = clipped
    count, total = (vector.vector.name for vector in planned.certified.queries[0].vectors)
    released = release_of(planned, {count: [2048] * 5, total: [10**9, -(10**9), 0, 1, -1]})
    found = assemble(planned, released, statement.post, confidence=CONFIDENCE, withholding=False)
    averages = found.table.column("a").to_pylist()
    assert averages[0] == 100.0 and averages[1] == 50.0
    for average, interval in zip(averages, found.intervals["a"], strict=True):
        assert interval is not None and 50 <= interval.lo <= average <= interval.hi <= 100


def test_post_processing_keeps_each_row_with_its_interval(clipped: tuple[Statement, PlannedStatement]) -> None:
    """After ORDER BY and LIMIT an interval still belongs to the value beside it."""
    statement, planned = clipped
    count, total = (vector.vector.name for vector in planned.certified.queries[0].vectors)
    counts = [5 * 1024, 40 * 1024, 10 * 1024, 30 * 1024, 20 * 1024]
    released = release_of(planned, {count: counts, total: [0] * 5})
    post = replace(statement.post, order_by=("q0.a0 DESC",), limit=3)
    found = assemble(planned, released, post, confidence=CONFIDENCE)
    assert found.table.column("n").to_pylist() == [40, 30, 20]
    for n, interval in zip(found.table.column("n").to_pylist(), found.intervals["n"], strict=True):
        assert interval is not None and interval.lo < n < interval.hi
        assert (interval.lo + interval.hi) / 2 == pytest.approx(n)
