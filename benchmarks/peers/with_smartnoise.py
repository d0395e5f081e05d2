"""SmartNoise SQL over a pandas frame. It keeps a sample of each user's rows in all; the caller says how many.

A statement with two outputs is charged twice its epsilon, so each output is asked at half.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from typing import Any

import pandas as pd
import snsql
from benchmarks.peers.peer_jobs import AMOUNT_MAX, DELTA, EPSILON, CannotAnswer, ChargedRelease, Job, run_jobs

ALPHA = 0.05
STATEMENTS = {
    "Q1": ("SELECT COUNT(*) AS n FROM s.visits", (), ("n",)),
    "Q2": ("SELECT COUNT(DISTINCT user_id) AS users FROM s.visits", (), ("users",)),
    "Q3": ("SELECT SUM(amount) AS total, AVG(amount) AS average FROM s.visits", (), ("total", "average")),
    "Q4": ("SELECT region, COUNT(*) AS n, SUM(amount) AS total FROM s.visits GROUP BY region", ("region",), ("n", "total")),
    "Q5": ("SELECT product, COUNT(*) AS n FROM s.visits GROUP BY product", ("product",), ("n",)),
    "Q6": ("SELECT region, product_name, COUNT(*) AS n FROM s.visits GROUP BY region, product_name", ("region", "product_name"), ("n",)),
}

warnings.simplefilter("ignore")


def _reader(data: pd.DataFrame, job: Job, outputs: int) -> Any:
    table = {
        "max_ids": job.rows,
        "row_privacy": False,
        "censor_dims": job.question == "Q6",
        "clamp_counts": False,
        "sample_max_ids": True,
        "user_id": {"type": "int", "private_id": True},
        "region": {"type": "string"},
        "product": {"type": "int"},
        "product_name": {"type": "string"},
        "amount": {"type": "float", "lower": 0.0, "upper": AMOUNT_MAX},
    }
    privacy = snsql.Privacy(epsilon=EPSILON / outputs, delta=DELTA)
    return snsql.from_df(data, privacy=privacy, metadata={"": {"s": {"visits": table}}})


def answer(data: pd.DataFrame, job: Job) -> ChargedRelease:
    if job.question not in STATEMENTS:
        raise CannotAnswer("has no median")
    sql, keys, outputs = STATEMENTS[job.question]
    reader = _reader(data, job, len(outputs))
    widths: list[Any] = [None] * (len(keys) + len(outputs))
    if job.question != "Q3":  # stated for counts and sums, not for averages
        widths = reader.get_simple_accuracy(sql, ALPHA)
    _, *rows = reader.execute(sql)
    for row in rows:
        for place, name in enumerate(outputs, start=len(keys)):
            value, width = row[place], widths[place] if len(widths) > place else None
            bar = () if width is None else (value - width, value + width)
            yield tuple(row[: len(keys)]), name, value, *bar


if __name__ == "__main__":
    run_jobs(pd.read_parquet, answer, importlib.metadata.version("smartnoise-sql"))
