"""diffprivlib: mechanisms over arrays, where a record is one value. It knows no users, so the caller bounds them by hand.

Here that is done before the call: a random choice of so many rows of each user, and epsilon divided by that number, since changing one user
changes so many records. Groups are selected by hand too. Counts are histograms: `count_nonzero` never says more than the exact size of
the array, which it takes as public. So do `mean` and `median`; they are used as they are.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from typing import Any

import diffprivlib.tools as tools
import numpy as np
import numpy.typing as npt
import pandas as pd
from benchmarks.peers.peer_jobs import AMOUNT_MAX, EPSILON, PRODUCTS, REGIONS, CannotAnswer, ChargedRelease, Job, run_jobs

warnings.simplefilter("ignore")


def _kept(data: pd.DataFrame, rows: int) -> pd.DataFrame:
    shuffled = data.sample(frac=1)
    return shuffled[shuffled.groupby("user_id").cumcount() < rows]


def _counts(places: npt.NDArray[Any], many: int, epsilon: float) -> npt.NDArray[Any]:
    counts: npt.NDArray[Any] = tools.histogram(places, epsilon=epsilon, bins=many, range=(-0.5, many - 0.5))[0]
    return counts


def answer(data: pd.DataFrame, job: Job) -> ChargedRelease:
    bounds, record = (0.0, AMOUNT_MAX), EPSILON / job.rows
    match job.question:
        case "Q1":
            yield (), "n", _counts(np.zeros(len(_kept(data, job.rows))), 1, record)[0]
        case "Q2":
            yield (), "users", _counts(np.zeros(len(_kept(data, 1))), 1, EPSILON)[0]
        case "Q3":
            amounts = _kept(data, job.rows)["amount"].to_numpy()
            yield (), "total", tools.sum(amounts, epsilon=record / 2, bounds=bounds)
            yield (), "average", tools.mean(amounts, epsilon=record / 2, bounds=bounds)
        case "Q4":
            kept = _kept(data, job.rows)
            place = kept["region"].map({region: number for number, region in enumerate(REGIONS)}).to_numpy()
            counts = _counts(place, len(REGIONS), record / 2)
            for number, region in enumerate(REGIONS):
                yield (region,), "n", counts[number]
                amounts = kept["amount"].to_numpy()[place == number]
                yield (region,), "total", tools.sum(amounts, epsilon=record / 2, bounds=bounds)
        case "Q5":
            products = _kept(data, job.rows)["product"].to_numpy()
            counts = _counts(products - 1, len(PRODUCTS), record)
            for product, value in zip(PRODUCTS, counts, strict=True):
                yield (product,), "n", value
        case "Q6":
            raise CannotAnswer("has nothing for keys that are not public")
        case "Q7":
            kept = _kept(data, job.rows)
            for region in REGIONS:
                amounts = kept.loc[kept["region"] == region, "amount"].to_numpy()
                yield (region,), "median", tools.median(amounts, epsilon=record, bounds=bounds)


if __name__ == "__main__":
    run_jobs(pd.read_parquet, answer, importlib.metadata.version("diffprivlib"))
