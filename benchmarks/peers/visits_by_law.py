"""The table that every system is asked about: `visits`, under four laws of how many rows a user has. The same rows for the same arguments.

One row is one visit of one user: one of 50 regions (four of five in the user's home region), one of 1,000 products, an amount between 0 and
100 (log-normal). No user has more than 5,000 rows and no amount is above 100, so that the truth is the same with and without clamping, and
what a system loses it loses to its own bounds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.reliability.shop import LAWS, ROWS_PER_UNIT_MAX, Generator, Integers, money, named, quoted, rows_of_law, zipf

REGIONS = tuple(f"region_{number:02d}" for number in range(50))
PRODUCTS = 1_000
AMOUNT_MAX = 100


def write_visits_of_law(directory: Path, *, law: str, rows: int, seed: int = 7) -> None:
    """Write the table."""
    generator = np.random.default_rng([seed, sorted(LAWS).index(law), rows])  # noqa: TID251  (the owner's rows, not noise)
    counts = _counts(generator, law, rows)
    user = np.repeat(np.arange(len(counts)), counts)
    generator.shuffle(user)
    home = zipf(generator, size=len(counts), values=len(REGIONS), exponent=0.7)
    away = zipf(generator, size=rows, values=len(REGIONS), exponent=0.7)
    product = zipf(generator, size=rows, values=PRODUCTS, exponent=0.9) + 1
    visits = {
        "user_id": user,
        "region": named(REGIONS, np.where(generator.random(rows) < 0.8, home[user], away)),
        "product": product.astype(np.int32),
        "product_name": named(tuple(f"product_{number:04d}" for number in range(PRODUCTS + 1)), product),
        "amount": money(generator, size=rows, mean=2.5, deviation=1.0, most=AMOUNT_MAX),
    }
    pq.write_table(pa.table(visits), directory / "visits.parquet")


def _counts(generator: Generator, law: str, rows: int) -> Integers:
    """Rows of each user; the last one is cut so that the number of rows is exact."""
    counts = rows_of_law(law, generator, rows)
    before = np.cumsum(counts) - counts
    cut: Integers = np.minimum(counts, rows - before)
    return cut[before < rows]


def catalogue(*, order: int | None = None) -> str:
    """What the owner declares: a budget of (1, 1e-8) for the whole life of the data set, its account of one order where that is given.

    `product_name` is the product once more, as a text whose values are not declared.
    """
    return f"""\
format = 1

[dataset]
id = "visits"
unit = "user"

[budget]
epsilon = 1
delta = "1e-8"
{"" if order is None else f"order = {order}"}

[tables.visits]
source = "visits.parquet"
unit = "user_id"
rows_per_unit_max = {ROWS_PER_UNIT_MAX}
rows_max = 10_000_000

[tables.visits.columns]
user_id = {{ type = "key", null = false }}
region = {{ type = "text", values = [{quoted(REGIONS)}], null = false }}
product = {{ type = "integer", min = 1, max = {PRODUCTS}, null = false }}
product_name = {{ type = "text", null = false }}
amount = {{ type = "real", min = 0, max = {AMOUNT_MAX}, steps = 100, null = false }}
"""
