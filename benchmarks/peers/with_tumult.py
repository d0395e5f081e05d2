"""Tumult Analytics on a local Spark. It bounds by the user's identifier; the caller says how many rows of a user count.

A session of unlimited budget evaluates each question at the price of one, so that Spark starts once. Two outputs have half the price each,
and so have unknown keys and the counts for them. With ``groups`` 0 the noise is Laplace and a user keeps so many rows in all, else Gaussian
at the rho that converts to the same (epsilon, delta), and so many rows in each of so many groups.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from typing import Any

from benchmarks.peers.peer_jobs import AMOUNT_MAX, DELTA, EPSILON, PRODUCTS, REGIONS, RHO, ChargedRelease, Job, run_jobs
from pyspark.sql import DataFrame, SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)


def _session(data: DataFrame, budget: Any) -> Any:
    return Session.from_dataframe(privacy_budget=budget, source_id="visits", dataframe=data, protected_change=AddRowsWithID("user_id"))


def _cells(frame: Any, keys: tuple[str, ...], name: str) -> ChargedRelease:
    for row in frame.toPandas().to_dict("records"):
        (value,) = [item for column, item in row.items() if column not in keys]
        yield tuple(row[key] for key in keys), name, value


def answer(sessions: dict[str, Any], job: Job) -> ChargedRelease:
    session = sessions["rho" if job.groups else "pure"]
    whole: Any = RhoZCDPBudget(RHO) if job.groups else PureDPBudget(EPSILON)
    half: Any = RhoZCDPBudget(RHO / 2) if job.groups else PureDPBudget(EPSILON / 2)
    visits = QueryBuilder("visits")

    def bounded(key: str = "") -> Any:
        if job.groups and key:
            return visits.enforce(MaxGroupsPerID(key, job.groups)).enforce(MaxRowsPerGroupPerID(key, job.rows))
        return visits.enforce(MaxRowsPerID(job.rows))

    regions = KeySet.from_dict({"region": REGIONS})
    match job.question:
        case "Q1":
            yield from _cells(session.evaluate(bounded().count(), whole), (), "n")
        case "Q2":
            yield from _cells(session.evaluate(visits.enforce(MaxRowsPerID(1)).count(), whole), (), "users")
        case "Q3":
            yield from _cells(session.evaluate(bounded().sum("amount", 0, AMOUNT_MAX), half), (), "total")
            yield from _cells(session.evaluate(bounded().average("amount", 0, AMOUNT_MAX), half), (), "average")
        case "Q4":
            grouped = bounded("region").groupby(regions)
            yield from _cells(session.evaluate(grouped.count(), half), ("region",), "n")
            yield from _cells(session.evaluate(grouped.sum("amount", 0, AMOUNT_MAX), half), ("region",), "total")
        case "Q5":
            grouped = bounded("product").groupby(KeySet.from_dict({"product": PRODUCTS}))
            yield from _cells(session.evaluate(grouped.count(), whole), ("product",), "n")
        case "Q6":
            keys = ("region", "product_name")
            session = sessions["approximate"]
            found = session.evaluate(bounded().get_groups(list(keys)), ApproxDPBudget(EPSILON / 2, DELTA))
            if found.count():
                grouped = bounded().groupby(KeySet.from_dataframe(found))
                yield from _cells(session.evaluate(grouped.count(), ApproxDPBudget(EPSILON / 2, 0)), keys, "n")
        case "Q7":
            yield from _cells(
                session.evaluate(bounded("region").groupby(regions).median("amount", 0, AMOUNT_MAX), whole), ("region",), "median"
            )


def load(path: str) -> dict[str, Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # of this environment, for Spark's workers too
    spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g").config("spark.sql.shuffle.partitions", 4)
    spark = spark.config("spark.sql.warehouse.dir", f"{os.path.dirname(path)}/warehouse")  # it stores tables on the way
    frame = spark.config("spark.ui.enabled", "false").getOrCreate().read.parquet(path).cache()
    budgets = {
        "pure": PureDPBudget(float("inf")),
        "rho": RhoZCDPBudget(float("inf")),
        "approximate": ApproxDPBudget(float("inf"), 1),
    }
    return {name: _session(frame, budget) for name, budget in budgets.items()}


if __name__ == "__main__":
    run_jobs(load, answer, importlib.metadata.version("tmlt.analytics"))
