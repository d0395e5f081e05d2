"""In the limit of a huge budget quantiles are those of bare DuckDB: extremes exactly, interpolated ones to one step of the grid.

Chance: at these budgets a choice is off by a hundredth of the distance between two rows with probability below 1e-12.
"""

from __future__ import annotations

import datetime
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lapwing as lw
from tests.properties import limit_world

EPSILON = 3 * 10**8
STEPS = {"cost": 0.1, "change": 0.25, "minutes": 0.5, "score": 0.5, "weight": 0.25, "grade": 0.5, "day": 86_400.0, "started": 6 * 3600.0}
"""Steps of the grid; moments have a million per second, finer than even these budgets resolve: an extreme was once seen passed by more than
an hour, so six are allowed."""
TABLES = {"weight": "people", "grade": "people"}
KEYS = {"people": ("sex", "region"), "visits": ("urgent", "clinic")}
EXACT = ("MIN({x})", "MAX({x})")
BETWEEN = ("MEDIAN({x})", "QUANTILE_CONT({x}, 0.9)", "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY {x} DESC)", "QUANTILE_CONT({x}, 0.1)")
RANKS = 6
"""A bar of a quantile reaches one to a few ranks to each side at any price."""
STEPPED = ("QUANTILE_DISC({x}, 0.3)", "PERCENTILE_DISC(0.8) WITHIN GROUP (ORDER BY {x})")


def number(value: Any) -> float:
    """Numbers as they are, days and moments as seconds."""
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1)).total_seconds()
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days * 86_400.0
    return float(value)


@pytest.fixture(params=[(n, d) for n in ("unbounded", "bounded") for d in ("0", '"2^-40"')], ids=str)
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, duckdb.DuckDBPyConnection]]:
    directory = tmp_path / "data"
    limit_world.write(directory, neighbours=request.param[0], delta=request.param[1], seed=6)
    data = lw.open(directory, home=directory.parent / "home")
    data.prepare()
    bare = duckdb.connect()
    for table in ("people", "visits"):
        bare.execute(f"CREATE VIEW {table} AS SELECT * FROM '{directory / table}.parquet'")
    yield data, bare
    data.close()


@pytest.mark.parametrize("column", STEPS)
def test_quantiles_are_those_of_the_bare_engine(sides: tuple[Any, duckdb.DuckDBPyConnection], column: str) -> None:
    data, bare = sides
    table = TABLES.get(column, "visits")
    calls = [form.format(x=column) for form in (*EXACT, *BETWEEN, *STEPPED)]
    compared = withheld = 0
    for key in KEYS[table]:
        text = f"SELECT {key}, {', '.join(calls)} FROM {table} GROUP BY {key}"
        found = {row[0]: row[1:] for row in (tuple(item.values()) for item in data.ask(text, epsilon=EPSILON).table.to_pylist())}
        for group, *expected in bare.execute(text).fetchall():
            rows = bare.execute(f"SELECT {column} FROM {table} WHERE {key} IS NOT DISTINCT FROM ? AND {column} IS NOT NULL", [group])
            ordered = sorted(number(row[0]) for row in rows.fetchall())
            if not ordered:
                continue
            for place, (value, wanted) in enumerate(zip(found[group], expected, strict=True)):
                if value is None:  # withheld: its bar is as wide as the values
                    assert place >= len(EXACT) and reached(number(wanted), ordered) >= 0.8 * (ordered[-1] - ordered[0]), (
                        text,
                        group,
                        place,
                    )
                    withheld += 1
                    continue
                compare(number(value), number(wanted), ordered, STEPS[column], place)
                compared += 1
    assert compared >= 24
    assert 3 * withheld <= compared, (withheld, compared)


def test_extremes_of_text_are_those_of_the_bare_engine(sides: tuple[Any, duckdb.DuckDBPyConnection]) -> None:
    data, bare = sides
    compared = 0
    for key in KEYS["people"]:
        other = next(name for name in KEYS["people"] if name != key)
        text = f"SELECT {key}, MIN({other}), MAX({other}), MAX(UPPER({other})) FILTER (WHERE active), MIN({key}) FROM people GROUP BY {key}"
        expected = {row[0]: row[1:] for row in bare.execute(text).fetchall()}
        for row in data.ask(text, epsilon=EPSILON).table.to_pylist():
            group, *found = row.values()
            if group in expected and None not in expected[group]:
                assert tuple(found) == expected[group]
                compared += 1
    assert compared >= 8


def reached(wanted: float, ordered: list[float]) -> float:
    """How far apart values are that are within a few ranks of the one that is wanted."""
    below, above = bisect_left(ordered, wanted) - RANKS, bisect_right(ordered, wanted) - 1 + RANKS
    return ordered[min(above, len(ordered) - 1)] - ordered[max(below, 0)]


def compare(value: float, wanted: float, ordered: list[float], step: float, place: int) -> None:
    """Extremes are equal, interpolated values close, and a value that is a row's is at most one row further."""
    low, high = ordered[max(bisect_left(ordered, wanted) - 1, 0)], ordered[min(bisect_right(ordered, wanted), len(ordered) - 1)]
    if place < len(EXACT) and step != STEPS["started"]:
        assert value == wanted
    elif place < len(EXACT) + len(BETWEEN):
        assert abs(value - wanted) <= step * 1.001 + 0.02 * (high - low)
    else:
        assert low - step <= value <= high + step
