"""PipelineDP on its local backend. The caller says in how many groups a user counts and how often in each.

With ``groups`` 0 a user keeps so many rows in all, with Laplace noise, where that is offered; where it is not, so many groups with one row
each (unknown keys), or so many rows of one group (medians). Else so many rows in each of so many groups, with Gaussian noise.
"""

from __future__ import annotations

import importlib.metadata
import operator
from typing import Any

import pipeline_dp
import pyarrow.parquet as pq
from benchmarks.peers.peer_jobs import AMOUNT_MAX, DELTA, EPSILON, PRODUCTS, REGIONS, ChargedRelease, Job, run_jobs

METRICS = pipeline_dp.Metrics
QUESTIONS: dict[str, tuple[tuple[str, ...], list[Any]]] = {
    "Q1": ((), [METRICS.COUNT]),
    "Q2": ((), [METRICS.PRIVACY_ID_COUNT]),
    "Q3": ((), [METRICS.SUM, METRICS.MEAN]),
    "Q4": (("region",), [METRICS.COUNT, METRICS.SUM]),
    "Q5": (("product",), [METRICS.COUNT]),
    "Q6": (("region", "product_name"), [METRICS.COUNT]),
    "Q7": (("region",), [METRICS.PERCENTILE(50)]),
}
NAMES = {"count": "n", "privacy_id_count": "users", "sum": "total", "mean": "average", "percentile_50": "median"}


def answer(data: dict[str, list[Any]], job: Job) -> ChargedRelease:
    keys, metrics = QUESTIONS[job.question]
    known: dict[tuple[str, ...], list[Any]] = {(): [""], ("region",): REGIONS, ("product",): PRODUCTS}
    partitions = [data[key] for key in keys]
    partition = [""] * len(data["user_id"]) if not keys else partitions[0] if len(keys) == 1 else list(zip(*partitions, strict=True))
    rows = list(zip(data["user_id"], partition, data["amount"], strict=True))
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    in_all = not job.groups and job.question in ("Q4", "Q5")
    groups, per_group = (job.rows, 1) if job.question == "Q6" else (max(job.groups, 1), 1 if job.question == "Q2" else job.rows)
    sums_only = {} if job.question == "Q2" else {"min_value": 0.0, "max_value": AMOUNT_MAX}
    parameters = pipeline_dp.AggregateParams(
        metrics=metrics,
        noise_kind=pipeline_dp.NoiseKind.GAUSSIAN if job.groups else pipeline_dp.NoiseKind.LAPLACE,
        max_contributions=job.rows if in_all else None,
        max_partitions_contributed=None if in_all else groups,
        max_contributions_per_partition=None if in_all else per_group,
        **sums_only,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=operator.itemgetter(0), partition_extractor=operator.itemgetter(1), value_extractor=operator.itemgetter(2)
    )
    result = engine.aggregate(rows, parameters, extractors, public_partitions=known.get(keys))
    accountant.compute_budgets()
    for key, found in result:
        group = () if not keys else key if len(keys) > 1 else (key,)
        for field, value in found._asdict().items():
            if field in NAMES:
                yield group, NAMES[field], value


def load(path: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = pq.read_table(path).to_pydict()
    return columns


if __name__ == "__main__":
    run_jobs(load, answer, importlib.metadata.version("pipeline-dp"))
