"""Answers that decide which rows count: in the limit, what bare DuckDB says about the same files, on pure and on approximate data sets."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import Refused
from tests.properties.limit_runs import Limit, comparable
from tests.support.sizes import size

EPSILON = 10**7
STATEMENTS = 25
CHUNKS = [(delta, seed) for delta in ("0", '"2^-40"') for seed in range(size("limit, seeds of answers that decide"))]
KEYS = ("code", "clinic", "DATE_TRUNC('month', day)")
ORDERS = ("COUNT(*) DESC", "COUNT(*)", "SUM(minutes) DESC", "MAX(minutes) DESC")
FILTERS = ("", "WHERE minutes > 3", "WHERE code <> 'A09'", "WHERE urgent")
VALUES = (("minutes", "AVG(minutes)"), ("minutes", "SUM(minutes) / COUNT(*)"), ("score", "AVG(score)"), ("cost", "AVG(cost)"))


def _statement(draw: random.Random) -> str:
    key, order, where, (column, value) = draw.choice(KEYS), draw.choice(ORDERS), draw.choice(FILTERS), draw.choice(VALUES)
    limit, sign = draw.choice((1, 2, 3)), draw.choice((">", "<=", ">="))
    top = f"SELECT {key} AS k FROM visits {where} GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY {order.replace('MAX(', 'SUM(')}, k LIMIT {limit}"
    means = f"SELECT {key} AS k, {value} AS m FROM visits GROUP BY 1"
    one = f"SELECT {value} AS m FROM visits {where}"
    visits = "SELECT 1 FROM visits WHERE visits.person_id = p.person_id"
    people = "SELECT person_id, SUM(minutes) AS x FROM visits GROUP BY person_id"
    shown = draw.choice(("COUNT(*) AS n, SUM(minutes) AS s", "COUNT(*) AS n"))
    return draw.choice(
        (
            f"SELECT {key} AS g, {shown} FROM visits WHERE {key} IN ({top}) GROUP BY 1",
            f"SELECT {key} AS g, {shown} FROM visits WHERE {key} NOT IN ({top}) GROUP BY 1",
            f"SELECT v.urgent AS g, {shown} FROM visits AS v JOIN ({top}) AS t ON v.{key} = t.k GROUP BY 1".replace(
                "v.DATE_TRUNC", "DATE_TRUNC"
            ),
            f"SELECT t.k AS g, {shown} FROM visits AS v JOIN ({top}) AS t ON t.k = {key} GROUP BY 1",
            f"WITH t AS ({top}) SELECT t.k AS g, {shown} FROM t JOIN visits AS v ON t.k = {key} GROUP BY t.k",
            f"SELECT t.k IS NULL AS g, {shown} FROM visits AS v LEFT JOIN ({top}) AS t ON {key} = t.k GROUP BY 1",
            f"SELECT {shown} FROM visits WHERE {column} {sign} ({one})",
            f"SELECT code AS g, {shown} FROM visits, ({one}) AS t WHERE {column} {sign} t.m GROUP BY 1",
            f"SELECT COUNT(*) FILTER (WHERE {column} {sign} ({one})) AS n FROM visits",
            f"SELECT {shown} FROM visits AS v JOIN ({means}) AS t ON {key} = t.k WHERE {column} {sign} t.m",
            f"SELECT {shown} FROM visits AS v JOIN ({means}) AS t ON {key} = t.k AND {column} {sign} t.m",
            f"SELECT COUNT(*) AS n FROM ({people} HAVING SUM(minutes) {sign} ({one})) AS p",
            f"SELECT COUNT(*) AS n FROM people AS p WHERE EXISTS ({visits} AND {key} IN ({top}))",
        )
    )


def _rows(columns: list[str], rows: list[tuple[Any, ...]]) -> dict[Any, tuple[Any, ...]]:
    """By group, without groups that have no row: Lapwing shows those that are declared."""
    keyed = columns[0] == "g"
    values = [tuple(comparable(value) for value in row) for row in rows]
    counted = [row for row in values if not keyed or row[1]]
    return {row[0] if keyed else None: tuple(0 if value is None else value for value in (row[1:] if keyed else row)) for row in counted}


@pytest.mark.parametrize(("delta", "seed"), CHUNKS)
def test_what_answers_decide_is_what_the_bare_engine_decides(tmp_path: Path, delta: str, seed: int) -> None:
    limit = Limit(tmp_path, neighbours="unbounded", delta=delta)
    draw = random.Random(700 + CHUNKS.index((delta, seed)))
    answered = refused = 0
    for number in itertools.count():
        if answered == STATEMENTS:
            break
        sql = _statement(draw)
        try:
            answer = limit.data.ask(sql, epsilon=EPSILON).table
        except Refused as error:
            assert error.code in ("groups-unknown", "too-many-groups"), f"{error}\n{sql}"
            refused += 1
            continue
        bare = limit.bare.execute(sql)
        expected = _rows([item[0] for item in bare.description], bare.fetchall())
        found = _rows(answer.column_names, [tuple(row.values()) for row in answer.to_pylist()])
        assert found.keys() == expected.keys(), f"{number}: {sql}\n{found}\n{expected}"
        for group, values in expected.items():
            assert all(math.isclose(a, b, abs_tol=1e-9) for a, b in zip(found[group], values, strict=True)), f"{sql}\n{found}\n{expected}"
        answered += 1
    limit.data.close()
    assert refused <= STATEMENTS, refused
