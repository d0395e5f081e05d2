"""Which statements released marginals answer, and the reason where they do not: decided from public facts alone."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from fractions import Fraction

import pytest

from lapwing.kernel.domains import IntegerDomain, Kind
from lapwing.kernel.expressions import Column, Function, Literal, call
from lapwing.releases.marginals.axes import axis_of
from lapwing.releases.marginals.bin_values import NotOneValue, bin_values
from lapwing.releases.serving.coverage import CoveredQuery, NotCovered, PublicMarginals, covered_queries
from lapwing.statements import Statement
from tests.support.release_worlds import AXES, FACTS, bound, sets

PAIRS = PublicMarginals("people", AXES, dict.fromkeys([*sets(2), (0, 1, 3)], 4.0))

COVERED = [
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(region), COUNT(*) FROM people",
    "SELECT sex, COUNT(*) FROM people WHERE age BETWEEN 30 AND 39 GROUP BY sex",
    "SELECT COUNT(*) FROM people WHERE age >= 29.5",
    "SELECT COUNT(*) FROM people WHERE NOT (age < 30 OR age >= 60)",
    "SELECT COUNT(*) FROM people WHERE age // 10 = 3",
    "SELECT age // 20 AS a, COUNT(*) FROM people GROUP BY 1",
    "SELECT CASE WHEN age < 20 THEN 'young' WHEN age IS NULL THEN 'unknown' ELSE 'old' END AS a, COUNT(*) FROM people GROUP BY 1",
    "SELECT COUNT(*) FILTER (WHERE weight < 75) FROM people",
    "SELECT COUNT(*) FROM people WHERE income >= 10000 AND income < 1000000",
    "SELECT SUM(CASE WHEN income >= 50000 THEN 1 ELSE 0 END) FROM people",
    "SELECT AVG(visits), SUM(visits * 2 + 1) FROM people WHERE region IN ('north', 'east')",
    "SELECT CAST(seen AS DATE) AS d, COUNT(*) FROM people GROUP BY 1",
    "SELECT COUNT(*) FROM people WHERE seen >= TIMESTAMP '2024-01-10 00:00:00' AND smoker",
    "SELECT date_trunc('month', day) AS m, COUNT(*) FROM people GROUP BY 1",
    "SELECT s, COUNT(*) FROM (SELECT sex AS s, visits FROM people) AS t WHERE visits > 1 GROUP BY s",
    "SELECT s, COUNT(*) FROM (SELECT UPPER(region) AS s, visits + 1 AS v FROM people WHERE visits < 5) AS t WHERE v > 1 GROUP BY s",
    "WITH t AS (SELECT * FROM people WHERE sex = 'F') SELECT smoker, COUNT(*) FROM t GROUP BY smoker",
    "SELECT sex, region, COUNT(*) FROM people WHERE age < 50 GROUP BY ROLLUP(sex, region)",
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > 10 ORDER BY n DESC LIMIT 1",
    "SELECT sex, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) FROM people GROUP BY sex",
]

REFUSED = [
    ("SELECT COUNT(*) FROM other", "the release is of the table 'people', not of 'other'"),
    ("SELECT COUNT(*) FROM people WHERE age < 35", "the condition distinguishes what the release does not: values of 'age' from 30 to 39"),
    ("SELECT age, COUNT(*) FROM people GROUP BY age", "the group distinguishes what the release does not: values of 'age' from 0 to 9"),
    ("SELECT SUM(age) FROM people", "what is summed distinguishes"),
    ("SELECT COUNT(*) FILTER (WHERE age < 35) FROM people", "what is counted distinguishes"),
    ("SELECT COUNT(*) FROM people WHERE weight < 75.1", "values of 'weight' from 75 to 99.9"),
    (
        "SELECT COUNT(*) FROM people WHERE seen < TIMESTAMP '2024-01-10 12:00:00'",
        "'seen' from 2024-01-10 00:00:00 to 2024-01-10 23:59:59.999999",
    ),
    ("SELECT COUNT(*) FROM people WHERE HOUR(seen) < 12", "values of 'seen' from 2024-01-01 00:00:00"),
    ("SELECT COUNT(*) FROM people WHERE income = 50000", "values of 'income' from 50000 to 999999"),
    ("SELECT COUNT(*) FROM people WHERE income % 2 = 0", "'income' has too many values in its bins for this expression"),
    ("SELECT COUNT(*) FROM people WHERE age > visits * 10", "values of 'age' from 0 to 9"),
    (
        "SELECT COUNT(*) FROM people WHERE smoker AND sex = 'F' AND visits > 1",
        "no measured table has 'sex', 'smoker' and 'visits' together",
    ),
    ("SELECT COUNT(DISTINCT region) FROM people", "COUNT(DISTINCT ...) cannot be computed from counts and sums of cells"),
    ("SELECT MAX(visits) FROM people", "MAX cannot be computed from"),
    ("SELECT MEDIAN(visits) FROM people", "MEDIAN, or a quantile, cannot be computed from"),
    ("SELECT STDDEV(visits) FROM people", "STDDEV_SAMP cannot be computed from"),
    ("SELECT COUNT(*) FROM (SELECT sex FROM people UNION ALL SELECT sex FROM people) AS t", "combines several tables"),
]


@pytest.mark.parametrize("sql", COVERED)
def test_covered(sql: str) -> None:
    found = covered_queries(bound(sql), FACTS, PAIRS)
    assert isinstance(found, tuple) and all(isinstance(each, CoveredQuery) for each in found), str(found)


@pytest.mark.parametrize(("sql", "reason"), REFUSED)
def test_not_covered_for_a_reason(sql: str, reason: str) -> None:
    found = covered_queries(bound(sql), FACTS, PAIRS)
    assert isinstance(found, NotCovered)
    assert reason in found.reason and str(found).startswith("not covered: ")


def test_a_column_that_is_not_in_the_release() -> None:
    found = covered_queries(
        bound("SELECT COUNT(*) FROM people WHERE visits = 1"), FACTS, PublicMarginals("people", AXES[:2], {(0, 1): 1.0})
    )
    assert found == NotCovered("the column 'visits' is not part of the release")


def test_a_column_that_is_declared_otherwise_by_now() -> None:
    older = tuple(axis_of("visits", IntegerDomain(-2, 6)) if axis.column == "visits" else axis for axis in AXES)
    found = covered_queries(bound("SELECT COUNT(*) FROM people WHERE visits = 1"), FACTS, replace(PAIRS, axes=older))
    assert found == NotCovered("the column 'visits' was declared differently when the release was made")


def test_an_answer_that_decides_is_not_looked_into() -> None:
    statement = bound("SELECT COUNT(*) FROM people")
    found = covered_queries(Statement(statement.text, statement.privates, statement.post, first=(statement,)), FACTS, PAIRS)
    assert found == NotCovered("another answer decides which rows count")


def test_the_decision_is_given_no_count() -> None:
    """Nothing that depends on rows or noise goes in: bins, which sets were measured, and variances, which are planned."""
    assert [field.name for field in fields(PublicMarginals)] == ["table", "axes", "variances", "laplace", "notes", "tree"]


COMPARISONS = (Function.LESS, Function.LESS_EQUAL, Function.GREATER, Function.GREATER_EQUAL, Function.EQUAL, Function.NOT_EQUAL)


@pytest.mark.parametrize("seed", range(20))
def test_comparing_ends_of_bins_decides_as_all_values_do(seed: int) -> None:
    """A long range is looked at beside constants only: the outcome is that of every value of a range that is short enough."""
    draw = random.Random(seed)
    domain = IntegerDomain(0, 2_000_000, bool(seed % 2))
    axis = axis_of("x", domain, bins=[Fraction(draw.randint(1, 60)), Fraction(draw.randint(61, 90))])
    short = axis_of("x", IntegerDomain(0, 200, bool(seed % 2)), bins=list((axis.edges or ())[1:-1]))
    edges = [int(edge) for edge in (axis.edges or ())[1:-1]]
    for _ in range(10):
        parts = []
        for _ in range(draw.randint(1, 3)):
            place = draw.choice([*edges, *(edge - 1 for edge in edges), draw.randint(0, 100)])
            constant = place + draw.choice([Fraction(0), Fraction(0), Fraction(1, 2)])
            literal = Literal(int(constant), Kind.INTEGER) if constant.denominator == 1 else Literal(constant, Kind.REAL)
            parts.append(call(draw.choice(COMPARISONS), Column("x"), literal))
        condition = call(draw.choice((Function.AND, Function.OR)), *parts) if len(parts) > 1 else parts[0]
        # Adding 0 is not a comparison: it makes the short range be looked at value by value.
        added = call(Function.ADD, Column("x"), Literal(0, Kind.INTEGER))
        slow = call(Function.AND, condition, call(Function.GREATER_EQUAL, added, Literal(-1, Kind.INTEGER)))
        outcomes = []
        for expression, each in ((condition, axis), (slow, short)):
            try:
                (found,) = bin_values([expression], [each])
                outcomes.append(found.numbers(0.0).tolist()[: len(edges) + 1])
            except NotOneValue as stopped:
                outcomes.append(str(stopped).split(" from ")[1].split(" ")[0])
        assert outcomes[0] == outcomes[1], condition
