"""Ranges that follow from a statement hold every value that it has, and are narrower than what the kernel derives."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, IntegerDomain, KeyDomain, RealDomain, TimestampDomain, bounds
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import GridSum
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, Price
from lapwing.planning.value_ranges import ranges_of
from lapwing.sql import bind
from lapwing.statements import Statement

DAY = 86_400 * 10**6
FIRST = 20_089 * DAY
"""2025-01-01."""
YEAR = 364 * 86_400
COLUMNS: dict[str, Domain] = {
    "u": KeyDomain(False),
    "s": IntegerDomain(1, 5, False),
    "t": TimestampDomain(FIRST, FIRST + 364 * DAY, True),
    "x": RealDomain(Fraction(0), Fraction(500), True, 100),
    "k": IntegerDomain(-50, 50, True),
}
FACTS = Facts(
    "ranges", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"e": TableFacts(COLUMNS, 20, 10_000)}, {}, typed_numbers=True, planning_rules=2
)

BY_SESSION = "SELECT u, s, {} AS v FROM e {} GROUP BY u, s"
BY_UNIT = "SELECT u, {} AS v FROM e {} GROUP BY u"


def inner(by: str, value: str, where: str = "") -> str:
    """A subquery with one row per session or unit."""
    return by.format(value, where)


STATEMENTS = [
    (inner(BY_SESSION, "epoch(MAX(t)) - epoch(MIN(t))"), 0, YEAR),
    (inner(BY_UNIT, "epoch(MAX(t)) - epoch(MIN(t))"), 0, YEAR),
    (inner(BY_SESSION, "(epoch(MAX(t)) - epoch(MIN(t))) / 60"), 0, YEAR // 60),
    (inner(BY_SESSION, "epoch(MIN(t)) - epoch(MAX(t))"), -YEAR, 0),
    (inner(BY_SESSION, "LEAST(epoch(MAX(t)) - epoch(MIN(t)), 1800)"), 0, 1_800),
    (inner(BY_SESSION, "date_diff('second', MIN(t), MAX(t))"), 0, YEAR),
    (inner(BY_SESSION, "date_diff('minute', MIN(t), MAX(t))"), 0, YEAR // 60),
    (inner(BY_SESSION, "date_diff('hour', MIN(t), MAX(t))"), 0, YEAR // 3_600),
    (inner(BY_SESSION, "date_diff('day', MIN(t), MAX(t))"), 0, 364),
    (inner(BY_UNIT, "MAX(k) - MIN(k)"), 0, 100),
    (inner(BY_UNIT, "MAX(x) - MIN(x)", "WHERE x BETWEEN 10 AND 20"), 0, 10),
    (inner(BY_UNIT, "SUM(x)", "WHERE x <= 2.5"), 0, 50),
    (inner(BY_UNIT, "epoch(MAX(t)) - epoch(MIN(t))", "WHERE t <= TIMESTAMP '2025-01-08'"), 0, 7 * 86_400),
    ("SELECT x AS v FROM e WHERE x > 5 AND x <= 20", 5, 20),
    ("SELECT k AS v FROM e WHERE k > 5 AND 20 > k", 6, 19),
    ("SELECT k AS v FROM e WHERE k IN (3, 9, 4)", 3, 9),
    ("SELECT 2 * k AS v FROM e WHERE k >= 5 AND k <> 7", 10, 100),
    ("SELECT k AS v FROM e WHERE k > 5 OR k < -5", -50, 50),
    ("SELECT epoch(t) - epoch(LAG(t) OVER (PARTITION BY u ORDER BY t)) AS v FROM e", 0, YEAR),
    ("SELECT epoch(LEAD(t) OVER (PARTITION BY u ORDER BY t)) - epoch(t) AS v FROM e", 0, YEAR),
    ("SELECT epoch(t) - epoch(LAG(t) OVER (PARTITION BY u ORDER BY t DESC)) AS v FROM e", -YEAR, 0),
    ("SELECT epoch(t) - epoch(LAG(t) OVER (PARTITION BY u ORDER BY s)) AS v FROM e", -YEAR, YEAR),
    ("SELECT epoch(b) - epoch(a) AS v FROM (SELECT u, MIN(t) AS a, MAX(t) AS b FROM e GROUP BY u) AS q WHERE b >= a", 0, YEAR),
]


def bound(sql: str) -> Statement:
    """A bound statement."""
    return bind(sql, FACTS, settings=Settings(), unit_columns={"e": "u"})


def rows(seed: int) -> pa.Table:
    """Random rows, with values at the ends and NULLs."""
    draws, many = np.random.default_rng(seed), 400
    times = draws.choice([0, 364 * DAY, *draws.integers(0, 364 * DAY, 60)], many)
    return pa.table(
        {
            "u": draws.integers(0, 60, many),
            "s": draws.integers(1, 6, many),
            "t": pa.array([None if at % 17 == 0 and at else FIRST + int(at) for at in times], pa.timestamp("us")),
            "x": pa.array([None if at % 13 == 0 else float(at) / 100 for at in draws.choice([0, 50_000, 250, *range(0, 5_000, 7)], many)]),
            "k": pa.array([None if at == 13 else int(at) for at in draws.integers(-50, 51, many)]),
        }
    )


@pytest.mark.parametrize(("sql", "lo", "hi"), STATEMENTS)
def test_a_range_holds_all_values_and_is_as_narrow_as_it_can_be(sql: str, lo: int, hi: int) -> None:
    query = bound(f"SELECT SUM(v) AS a FROM ({sql}) AS q").privates[0]
    value = query.aggregates[0].value
    assert value is not None
    found = bounds(ranges_of(query.source, FACTS).of(value))
    assert found == (Fraction(lo), Fraction(hi))
    for seed in range(5):
        e = rows(seed)  # noqa: F841  # DuckDB reads it by its name
        for (number,) in duckdb.execute(f"SELECT v FROM ({sql}) AS q WHERE v IS NOT NULL").fetchall():
            assert lo <= float(number) <= hi, f"{number} in {sql}"


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("epoch(MAX(t)) - epoch(MIN(CASE WHEN k > 0 THEN t END))", ""),
        ("MAX(k) - MIN(x)", ""),
        ("epoch(MIN(t)) + epoch(MAX(t))", ""),
        ("EXTRACT(hour FROM MAX(t)) - EXTRACT(hour FROM MIN(t))", ""),
        ("MAX(x) * -1 - MIN(x) * -1", ""),
    ],
)
def test_what_is_not_proved_keeps_the_domain_of_the_kernel(value: str, where: str) -> None:
    query = bound(f"SELECT SUM(v) AS a FROM ({inner(BY_UNIT, value, where)}) AS q").privates[0]
    aggregated = query.aggregates[0].value
    assert aggregated is not None
    derived = domain_of(aggregated, shape_of(query.source, FACTS).columns)
    assert bounds(ranges_of(query.source, FACTS).of(aggregated)) == bounds(derived)


def grid(sql: str, *, rules: int = 2) -> GridSum:
    """The sum that a statement is planned with."""
    facts = replace(FACTS, planning_rules=rules)
    price, limits = Price(Fraction(10**4), Fraction(1, 2**40)), GroupLimits(100, 100)
    finder = GroupFinder(evaluate)
    planned = plan_statement(bound(sql).privates, facts, price, contributions={}, units=None, limits=limits, finder=finder)
    (found,) = (item.vector.measure for item in planned.certified.queries[0].vectors if isinstance(item.vector.measure, GridSum))
    return found


def ends(sql: str, *, rules: int = 2) -> list[int]:
    """The ends of that sum."""
    found = grid(sql, rules=rules)
    return [int(found.lower), int(found.upper)]


def test_sums_and_averages_are_clamped_to_their_ranges_under_the_new_rules_alone() -> None:
    average = f"SELECT AVG(v) AS a FROM ({inner(BY_SESSION, 'epoch(MAX(t)) - epoch(MIN(t))')}) AS q"
    assert ends(average) == [0, YEAR] and grid(average).offset > 0
    assert ends(average, rules=1) == [-YEAR, YEAR] and grid(average, rules=1).offset == 0
    total = "SELECT SUM(x) FILTER (WHERE x >= 2) AS a FROM e WHERE x < 10"
    assert ends(total) == [2, 10] and grid(total).offset == 0
    assert ends(total, rules=1) == [0, 500]
    assert grid("SELECT SUM(x) AS a FROM e") == grid("SELECT SUM(x) AS a FROM e", rules=1)
    assert ends("SELECT SUM(x) AS a FROM e WHERE x = 5") == [0, 500], "a clamp needs two ends"
