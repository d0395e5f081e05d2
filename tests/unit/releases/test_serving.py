"""Free answers: without noise they are those of the bare engine; with noise their variances are those of the synopsis."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest

from lapwing.releases.serving.answers import ServedAnswer, ServedMarginals, serve
from lapwing.releases.serving.coverage import NotCovered, covered_queries
from lapwing.releases.serving.weighted_sums import WeightedSums, covariances, reach_of
from lapwing.statements import CellMark
from tests.support.release_worlds import AXES, FACTS, Rows, bound, random_rows, served, sets
from tests.unit.releases.test_coverage import COVERED

CONFIDENCE = Fraction(95, 100)
MEASURED = [*sets(2), (0, 1, 2), (0, 1, 3), (0, 1, 4), (1, 3, 4), (0, 4, 5)]

STATEMENTS = [
    *COVERED,
    "SELECT region, smoker, COUNT(*) AS n FROM people GROUP BY region, smoker ORDER BY n DESC, region, smoker LIMIT 7",
    "SELECT sex, region, AVG(visits) AS a, COUNT(*) AS n FROM people GROUP BY sex, region ORDER BY sex, region",
    "SELECT region, AVG(visits) FILTER (WHERE sex = 'F') AS a, COUNT(*) AS n FROM people GROUP BY region ORDER BY region NULLS FIRST",
    "SELECT sex, region, COUNT(*) AS n, SUM(visits) AS s FROM people GROUP BY CUBE(sex, region)",
    "SELECT sex, smoker, COUNT(*) AS n, GROUPING(sex) AS g FROM people GROUP BY GROUPING SETS ((sex), (smoker), ())",
    "SELECT visits, COUNT(*) AS n FROM people WHERE visits IS NOT NULL GROUP BY visits HAVING COUNT(*) > 200 ORDER BY visits",
    "SELECT region, COUNT(*) FILTER (WHERE smoker) * 100.0 / COUNT(*) AS share, COUNT(*) AS n FROM people GROUP BY region ORDER BY 1",
    "SELECT age // 10 AS decade, SUM(visits) / COUNT(visits) AS mean, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1",
    "SELECT COALESCE(region, 'none') AS r, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1",
    "SELECT region IS NULL AS unknown, COUNT(smoker) AS c, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*) AS n FROM people WHERE sex = 'F' OR region = 'south' OR age IS NULL",
    "SELECT COUNT(*) AS n FROM people WHERE (age < 30) = (visits > 2)",
    "SELECT SUM(CASE WHEN smoker THEN visits ELSE -visits END) AS s FROM people",
    "SELECT SUM(visits * 1.5) AS s, AVG(visits * visits) AS a FROM people WHERE day < DATE '2024-02-01'",
    "SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*) AS n FROM people GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT day, COUNT(*) AS n FROM people WHERE sex = 'M' AND visits BETWEEN 0 AND 2 GROUP BY day ORDER BY day",
    "SELECT a.n - b.n AS d FROM (SELECT COUNT(*) AS n FROM people WHERE sex = 'F') a, (SELECT COUNT(*) AS n FROM people WHERE smoker) b",
    "SELECT sex, n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t WHERE n > 10 ORDER BY sex",
    "SELECT SUM(n) AS total, MAX(n) AS most FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) AS t",
    "SELECT COUNT(*) AS n FROM people WHERE age < 0",
    "SELECT 'F' AS sex, COUNT(*) AS n FROM people WHERE sex = 'F' UNION ALL SELECT 'M' AS sex, COUNT(*) AS n FROM people WHERE sex = 'M'",
]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return random_rows(3_000, 1)


@pytest.fixture(scope="module")
def without_noise(rows: Rows) -> ServedMarginals:
    return served(rows, MEASURED)


def answered(sql: str, marginals: ServedMarginals, confidence: Fraction = CONFIDENCE) -> ServedAnswer:
    found = serve(bound(sql), FACTS, marginals, confidence=confidence)
    assert isinstance(found, ServedAnswer), str(found)
    return found


def plain(value: Any) -> Any:
    if isinstance(value, Decimal | float):
        return round(float(value), 6)
    return str(value)[:10] if hasattr(value, "year") else value


@pytest.mark.parametrize("sql", STATEMENTS)
def test_without_noise_the_free_answer_is_that_of_the_bare_engine(sql: str, rows: Rows, without_noise: ServedMarginals) -> None:
    table = answered(sql, without_noise).assembled.table
    with duckdb.connect() as connection:
        connection.register("people", rows.arrow())
        truth = connection.sql(sql).to_arrow_table()
    found = [tuple(plain(value) for value in row.values()) for row in table.to_pylist()]
    expected = [tuple(plain(value) for value in row.values()) for row in truth.to_pylist()]
    if "n" in table.column_names and "GROUP BY" in sql:  # groups without a row are listed with 0
        found = [row for row in found if row[table.column_names.index("n")] != 0]
    if "ORDER BY" not in sql:
        found, expected = sorted(found, key=str), sorted(expected, key=str)
    assert found == expected
    assert all(
        interval is None or interval.lo <= interval.hi
        for bars in answered(sql, without_noise).assembled.intervals.values()
        for interval in bars
    )


def noise(axes: tuple[int, ...], size: int) -> tuple[npt.NDArray[np.int64], float]:
    scale = 3.0 + len(axes)
    return np.rint(np.random.default_rng(size).normal(0, scale, size)).astype(np.int64), scale**2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people",
        "SELECT sex, region, COUNT(*), SUM(visits) FROM people WHERE sex = 'F' OR visits > 2 GROUP BY sex, region",
        "SELECT region, COUNT(*), AVG(visits) FROM people WHERE age < 50 GROUP BY region",
        "SELECT sex, region, COUNT(*), SUM(visits) FROM people GROUP BY CUBE(sex, region)",
    ],
)
def test_variances_and_covariances_of_all_groups_are_those_of_the_synopsis(sql: str, rows: Rows) -> None:
    marginals = served(rows, MEASURED, noise)
    covered = covered_queries(bound(sql), FACTS, marginals.public)
    assert not isinstance(covered, NotCovered)
    (query,) = covered
    sums, axes, row = WeightedSums(query, marginals.public), query.axes, 0
    names = list(query.weights)
    values = {name: sums.values(name, marginals.synopsis.marginal(axes)) for name in names}
    everywhere = covariances(sums, names[0], sums, names[-1], CONFIDENCE)
    stretch = sums.stretch(names[0], CONFIDENCE)[:, None] * sums.stretch(names[-1], CONFIDENCE)[None, :]
    for level in sums.levels:
        for group in range(len(level.level.groups)):
            weights = {name: np.where(level.group == group, query.weights[name], 0.0) for name in names}
            for name in names:
                estimate = marginals.synopsis.linear(axes, weights[name])
                assert values[name][row] == pytest.approx(estimate.value, abs=1e-6)
                assert sums.deviation(name)[row] == pytest.approx(estimate.deviation, rel=1e-6)
            between = marginals.synopsis.covariance(axes, weights[names[0]], weights[names[-1]])
            assert (everywhere / stretch)[row, row] == pytest.approx(between, rel=1e-6, abs=1e-9)
            row += 1
    assert row == sums.rows


def test_what_is_lost_in_noise_is_marked_as_in_other_answers(rows: Rows) -> None:
    few = random_rows(60, 3)
    marginals = served(few, [(1, 4)], lambda axes, size: (np.random.default_rng(2).integers(-40, 41, size), 550.0))
    found = answered("SELECT region, COUNT(*) AS n, SUM(visits) AS s, AVG(visits) AS a FROM people GROUP BY region", marginals).assembled
    lost = [mark is CellMark.NOISE_ONLY for mark in found.marks["n"]]
    assert sum(lost) == 4
    for place in (place for place, is_lost in enumerate(lost) if is_lost):
        assert (found.marks["s"][place], found.marks["a"][place]) == (CellMark.NOISE_ONLY, CellMark.MEANINGLESS)
        assert found.table.column("a")[place].as_py() is None and found.intervals["a"][place] is None
        assert found.table.column("n")[place].as_py() is not None and found.intervals["n"][place] is not None


def test_wider_intervals_at_a_higher_confidence_and_with_laplace_noise(rows: Rows) -> None:
    marginals, sql = served(rows, MEASURED, noise), "SELECT COUNT(*) AS n FROM people WHERE sex = 'F'"
    narrow = answered(sql, marginals, Fraction(80, 100)).assembled.intervals["n"][0]
    wide = answered(sql, marginals, Fraction(99, 100)).assembled.intervals["n"][0]
    assert narrow is not None and wide is not None and wide.lo < narrow.lo < narrow.hi < wide.hi
    assert reach_of(CONFIDENCE, laplace=True) == pytest.approx(2.118, abs=1e-3) and reach_of(CONFIDENCE, laplace=False) < 1.96


def test_a_release_says_how_it_was_made_in_every_answer(rows: Rows) -> None:
    marginals = ServedMarginals.of("people", AXES, [], notes=("units with many rows count for less",))
    assert marginals.public.notes == ("units with many rows count for less",)
    found = serve(bound("SELECT COUNT(*) AS n FROM people"), FACTS, marginals, confidence=CONFIDENCE)
    assert isinstance(found, NotCovered), "nothing was measured"
    measured = served(rows, [(0,)])
    noted = ServedMarginals(replace(measured.public, notes=marginals.public.notes), measured.synopsis)
    assert answered("SELECT COUNT(*) AS n FROM people", noted).notes == ("units with many rows count for less",)
    assert answered("SELECT COUNT(*) AS n FROM people", measured).notes == ()
