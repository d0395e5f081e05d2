"""Answers against the truth of bare DuckDB, cell by cell.

Answers are independent, cells of one answer are not, so an answer counts by the share of its cells that are covered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import duckdb

from lapwing.answers.answer import Answer
from lapwing.data_set import DataSet
from tests.support.messy_sources import NEVER

EPSILON = "1"


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement that means the same to bare DuckDB; ``counts`` are outputs that are 0 where a group has no rows."""

    sql: str
    keys: tuple[str, ...] = ()
    counts: tuple[str, ...] = ("n",)


CLUB = (
    Asked("SELECT COUNT(*) AS n FROM visits"),
    Asked("SELECT COUNT(amount) AS n FROM visits"),
    Asked("SELECT COUNT(*) AS n FROM visits WHERE amount < 10 AND kind = 'gym'"),
    Asked("SELECT COUNT(*) AS n FROM visits WHERE remark = 'it''s \"open\"'"),
    Asked(f"SELECT COUNT(*) AS n FROM members WHERE city = '{NEVER}'"),
    Asked("SELECT COUNT(*) AS n, AVG(born) AS a FROM members"),
    Asked("SELECT city, COUNT(*) AS n FROM members GROUP BY city", ("city",)),
    Asked("SELECT city, AVG(born) AS a FROM members WHERE paid GROUP BY city", ("city",)),
    Asked("SELECT 100 * COUNT_IF(paid) / COUNT(*) AS p FROM members"),
    Asked("SELECT SUM(amount) AS s FROM visits", counts=("s",)),
    Asked("SELECT AVG(amount) AS a FROM visits"),
    Asked("SELECT kind, SUM(amount) AS s, COUNT(*) AS n FROM visits GROUP BY kind", ("kind",), ("s", "n")),
    Asked("SELECT kind, AVG(amount) AS a FROM visits GROUP BY kind", ("kind",)),
    Asked("SELECT COUNT(DISTINCT member) AS n FROM visits"),
    Asked("SELECT hall, COUNT(DISTINCT member) AS n FROM visits GROUP BY hall", ("hall",)),
    Asked("SELECT date_trunc('month', came) AS m, COUNT(*) AS n FROM visits GROUP BY m", ("m",)),
    Asked("SELECT date_trunc('month', came) AS m, SUM(amount) AS s FROM visits WHERE kind = 'swim' GROUP BY m", ("m",), ("s",)),
    Asked("SELECT district, COUNT(*) AS n FROM visits JOIN halls USING (hall) GROUP BY district", ("district",)),
    Asked("SELECT city, COUNT(*) AS n FROM visits JOIN members USING (member) GROUP BY city", ("city",)),
    Asked("SELECT article, SUM(price) AS s FROM bought GROUP BY article", ("article",), ("s",)),
    Asked("SELECT kind, COUNT(*) AS n FROM bought JOIN visits USING (visit) GROUP BY kind", ("kind",)),
    Asked("SELECT year, hall, COUNT(*) AS n FROM visits GROUP BY ROLLUP (year, hall)", ("year", "hall")),
    Asked("SELECT remark, COUNT(*) AS n FROM visits GROUP BY remark", ("remark",)),
    Asked("SELECT hall, COUNT(*) AS n FROM visits GROUP BY hall ORDER BY n DESC LIMIT 3", ("hall",)),
    Asked("SELECT AVG(c) AS a FROM (SELECT member, COUNT(*) AS c FROM visits GROUP BY member) t"),
)
METERS = (
    Asked("SELECT COUNT(*) AS n FROM readings"),
    Asked("SELECT COUNT(*) AS n FROM readings WHERE value = 7.5"),
    Asked("SELECT place, COUNT(*) AS n, AVG(value) AS a FROM readings GROUP BY place", ("place",)),
    Asked("SELECT place, SUM(value) AS s FROM readings GROUP BY place", ("place",), ("s",)),
)


def truth_by_key(bare: duckdb.DuckDBPyConnection, asked: Asked) -> dict[tuple[str | None, ...], dict[str, Any]]:
    """What bare DuckDB says, all groups of it."""
    found = bare.execute(re.sub(" ORDER BY .*$", "", asked.sql))
    names = [column[0] for column in found.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return {key_of(row, asked): row for row in rows}


def key_of(row: dict[str, Any], asked: Asked) -> tuple[str | None, ...]:
    return tuple(None if row[name] is None else str(row[name]) for name in asked.keys)


def covered_cells(answer: Answer, asked: Asked, truth: dict[tuple[str | None, ...], dict[str, Any]]) -> list[bool]:
    """Of every cell with an error bar and a truth, whether the one has the other. A cell without a bar must be marked."""
    cells = []
    for place, row in enumerate(answer.table.to_pylist()):
        true_row = truth.get(key_of(row, asked), {})
        for name, bars in answer.intervals.items():
            true, bar = true_row.get(name), bars[place]
            if true is None and name in asked.counts:
                true = 0
            if bar is None:
                assert answer.marks[name][place] is not None
            elif true is not None:
                slack = 1e-9 * (1 + abs(float(true)))  # the truth is a sum of floats
                cells.append(bar.lo - slack <= float(true) <= bar.hi + slack)
    return cells


class CoveredAnswers:
    """Rounds of answers: in each, every statement is asked once, and counts by the share of its cells that are covered."""

    def __init__(self, data: DataSet, bare: duckdb.DuckDBPyConnection, statements: tuple[Asked, ...]) -> None:
        self._data = data
        self._truths = {asked: truth_by_key(bare, asked) for asked in statements}
        self._shares: dict[str, list[float]] = {asked.sql: [] for asked in statements}

    def __call__(self) -> list[float]:
        found = []
        for asked, truth in self._truths.items():
            cells = covered_cells(self._data.ask(asked.sql, epsilon=EPSILON), asked, truth)
            assert cells, asked.sql
            found.append(sum(cells) / len(cells))
            self._shares[asked.sql].append(found[-1])
        return found

    def worst(self) -> str:
        """The statements that are covered least."""
        means = sorted((sum(shares) / len(shares), sql) for sql, shares in self._shares.items())
        return "; ".join(f"{mean:.2f} {sql}" for mean, sql in means[:4])
