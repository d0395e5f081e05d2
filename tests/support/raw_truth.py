"""Answers against the truth of bare DuckDB, cell by cell, with a limit on how often the error bars may miss.

False alarms: answers are independent, cells of one answer are not, so an answer counts by the share of its cells that are covered, a number
from 0 to 1 with an expectation of at least ``COVERED``. By Chernoff's bound the mean of n of them is below x with a chance of at most
exp(-n KL(x, COVERED)), and ``least_mean`` is the x for which that is 1e-6.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import duckdb

from lapwing.answers.answer import Answer
from lapwing.client.dataset import DataSet
from tests.support.messy_sources import NEVER

COVERED = 0.94
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


def least_mean(answers: int, covered: float = COVERED) -> float:
    """The mean below which that of ``answers`` shares, each at least ``covered`` in expectation, is with a chance of at most 1e-6."""
    low, high = 0.0, covered
    for _ in range(60):
        middle = (low + high) / 2
        divergence = middle * math.log(middle / covered) + (1 - middle) * math.log((1 - middle) / (1 - covered))
        low, high = (middle, high) if divergence * answers >= math.log(1e6) else (low, middle)
    return low


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


def mean_coverage(data: DataSet, bare: duckdb.DuckDBPyConnection, statements: tuple[Asked, ...], repeats: int) -> tuple[float, str]:
    """The mean over answers of the share of cells that are covered, and the statements with the least."""
    shares: dict[str, list[float]] = {}
    for asked in statements:
        truth = truth_by_key(bare, asked)
        for _ in range(repeats):
            cells = covered_cells(data.ask(asked.sql, epsilon=EPSILON), asked, truth)
            shares.setdefault(asked.sql, []).append(sum(cells) / len(cells) if cells else 1.0)
    worst = sorted((sum(of) / len(of), sql) for sql, of in shares.items())[:4]
    return sum(sum(of) for of in shares.values()) / (len(statements) * repeats), "; ".join(f"{share:.2f} {sql}" for share, sql in worst)
