"""The questions Q1 to Q7, and their truth by bare DuckDB."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import duckdb

Cell: TypeAlias = tuple[tuple[str, ...], str]
"""A group, by the texts of its keys, and the name of an output."""


@dataclass(frozen=True, slots=True)
class Question:
    """Keys and outputs; the text is what Lapwing is asked, and what bare DuckDB answers."""

    title: str
    keys: tuple[str, ...]
    outputs: tuple[str, ...]
    sql: str
    default_rows: int = 20
    """Rows (or groups) of a user that count, as a caller guesses who knows nothing of the data."""


QUESTIONS: dict[str, Question] = {
    "Q1": Question("COUNT(*)", (), ("n",), "SELECT COUNT(*) AS n FROM visits"),
    "Q2": Question("COUNT(DISTINCT user)", (), ("users",), "SELECT COUNT(DISTINCT user_id) AS users FROM visits"),
    "Q3": Question("SUM, AVG(amount)", (), ("total", "average"), "SELECT SUM(amount) AS total, AVG(amount) AS average FROM visits"),
    "Q4": Question(
        "COUNT, SUM by region",
        ("region",),
        ("n", "total"),
        "SELECT region, COUNT(*) AS n, SUM(amount) AS total FROM visits GROUP BY region",
    ),
    "Q5": Question("COUNT by product (public)", ("product",), ("n",), "SELECT product, COUNT(*) AS n FROM visits GROUP BY product"),
    "Q6": Question(
        "COUNT by region, product (unknown)",
        ("region", "product_name"),
        ("n",),
        "SELECT region, product_name, COUNT(*) AS n FROM visits GROUP BY region, product_name",
    ),
    "Q7": Question(
        "MEDIAN(amount) by region", ("region",), ("median",), "SELECT region, MEDIAN(amount) AS median FROM visits GROUP BY region"
    ),
}


def truth_of(question: Question, source: Path) -> dict[Cell, float]:
    """Every cell, from the source as it is."""
    rows = duckdb.connect().execute(question.sql.replace("FROM visits", f"FROM '{source}'")).fetchall()
    width = len(question.keys)
    return {
        (tuple(str(key) for key in row[:width]), name): float(value)
        for row in rows
        for name, value in zip(question.outputs, row[width:], strict=True)
    }


def read_cells(line: str) -> tuple[dict[str, object], dict[Cell, float], dict[Cell, tuple[float, float]]]:
    """What a peer printed about one answer: its own words, the values, and stated intervals if there are any."""
    record = json.loads(line)
    values = {(tuple(keys), name): value for keys, name, value, *_ in record["cells"] if value is not None}
    bars = {(tuple(keys), name): (bar[0], bar[1]) for keys, name, _, *bar in record["cells"] if len(bar) == 2}
    return {key: item for key, item in record.items() if key != "cells"}, values, bars
