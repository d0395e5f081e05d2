"""OpenDP's Polars interface. It bounds by the user's identifier itself; the caller says how many rows of a user count.

With ``groups`` 0 a user keeps so many rows in all, with Laplace noise; else so many rows in each of so many groups, with Gaussian noise at
the rho that converts to the same (epsilon, delta).
"""

from __future__ import annotations

import importlib.metadata
import warnings
from typing import Any

import opendp.prelude
import polars as pl
from benchmarks.peers.peer_jobs import AMOUNT_MAX, DELTA, EPSILON, PRODUCTS, REGIONS, RHO, ChargedRelease, Job, run_jobs

dp: Any = opendp.prelude  # its names for Polars are made at run time
ALPHA = 0.05

dp.enable_features("contrib")
warnings.simplefilter("ignore")


def _query(data: pl.LazyFrame, job: Job, rows: int, keys: tuple[str, ...] = (), *, delta: float = 0.0) -> Any:
    if job.groups:
        loss = dp.loss_of(rho=RHO)
    else:
        loss = dp.loss_of(epsilon=EPSILON, delta=delta) if delta else dp.loss_of(epsilon=EPSILON)
    context = dp.Context.compositor(
        data=data,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=10_000_000)],
    )
    query = context.query()
    if job.groups:
        return query.truncate_num_groups(job.groups, by=list(keys)).truncate_per_group(rows, by=list(keys))
    return query.truncate_per_group(rows)


_accuracies: dict[Job, dict[str, Any]] = {}
"""What the interface says of its accuracy, for every job: the same at each draw, and as much work as an answer."""


def _released(query: Any, job: Job, keys: tuple[str, ...], names: dict[str, str]) -> ChargedRelease:
    if job not in _accuracies:
        _accuracies[job] = {row["column"]: row["accuracy"] for row in query.summarize(alpha=ALPHA).to_dicts()}
    summary = _accuracies[job]
    for row in query.release().collect().to_dicts():
        for column, name in names.items():
            value, width = row[column], summary.get(column)
            bar = () if width is None else (value - width, value + width)
            yield tuple(row[key] for key in keys), name, value, *bar


def answer(data: pl.LazyFrame, job: Job) -> ChargedRelease:
    cleaned: Any = pl.col("amount").fill_nan(0.0)  # OpenDP adds `dp` to it
    amount = cleaned.dp.sum((0.0, AMOUNT_MAX)).alias("total")
    count = dp.len(signed=True).alias("n")
    match job.question:
        case "Q1":
            yield from _released(_query(data, job, job.rows).select(count), job, (), {"n": "n"})
        case "Q2":
            yield from _released(_query(data, job, 1).select(count), job, (), {"n": "users"})
        case "Q3":
            cells = list(_released(_query(data, job, job.rows).select(count, amount), job, (), {"n": "n", "total": "total"}))
            yield cells[1]
            yield (), "average", cells[1][2] / max(cells[0][2], 1)
        case "Q4":
            keys = pl.LazyFrame({"region": REGIONS})
            query = _query(data, job, job.rows, ("region",)).group_by("region").agg(count, amount).with_keys(keys)
            yield from _released(query, job, ("region",), {"n": "n", "total": "total"})
        case "Q5":
            keys = pl.LazyFrame({"product": PRODUCTS}, schema={"product": pl.Int32})
            query = _query(data, job, job.rows, ("product",)).group_by("product").agg(count).with_keys(keys)
            yield from _released(query, job, ("product",), {"n": "n"})
        case "Q6":
            plain = Job(job.question, job.rows, 0, job.draws)
            query = _query(data, plain, job.rows, delta=DELTA).group_by("region", "product_name").agg(count)
            yield from _released(query, job, ("region", "product_name"), {"n": "n"})
        case "Q7":
            candidates = [step / 2 for step in range(201)]
            median = cleaned.dp.median(candidates).alias("median")
            keys = pl.LazyFrame({"region": REGIONS})
            plain = Job(job.question, job.rows, 0, job.draws)
            query = _query(data, plain, job.rows).group_by("region").agg(median).with_keys(keys)
            yield from _released(query, job, ("region",), {"median": "median"})


def load(path: str) -> pl.LazyFrame:
    return pl.scan_parquet(path)  # read when a query runs; a frame in memory would be copied into every plan


if __name__ == "__main__":
    run_jobs(load, answer, importlib.metadata.version("opendp"))
