"""The data all benchmarks run on: `visits`, synthetic, heavy-tailed, the same rows for the same arguments.

One row is one visit of one user on one day of 2024, in one of 50 regions, for one of 1,000 products. Rows per user follow a Pareto law
(exponent 1.2, median about 5, mean about 13) cut at 5,000, so a few users own a large share of the rows: the hard case for bounding what
one unit may contribute. Four visits of five are in the user's home region. Rows lie in the file in random order, as an event log has them.

    python -m benchmarks.visits 10_000_000 visits.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20_260_701
USER_ROWS_MAX = 5_000
REGIONS = tuple(f"region_{number:02d}" for number in range(50))
PRODUCTS = 1_000
DAYS = 365
FIRST_DAY = 19_723
"""2024-01-01, in days since 1970-01-01."""
AMOUNT_MAX = 100
"""Declared upper bound of `amount`; about 2 % of the values lie above and are clamped."""
DURATION_MAX = 10_000

_CHUNK_ROWS = 2_000_000
_ROW_GROUP_ROWS = 500_000

Integers: TypeAlias = npt.NDArray[np.int64]
# The data must be the same on every run, and no noise is drawn from this generator: it stands in for the owner's rows.
Generator: TypeAlias = np.random.Generator  # noqa: TID251


def write_visits(target: Path, *, rows: int, seed: int = SEED) -> None:
    """Write exactly ``rows`` visits to a Parquet file (zstd)."""
    generator = np.random.default_rng(seed)  # noqa: TID251
    user_of_row = _users(generator, rows=rows)
    users = int(user_of_row.max()) + 1
    home = _zipf(generator, size=users, values=len(REGIONS), exponent=0.7)
    schema = pa.schema(
        [
            ("user_id", pa.int64()),
            ("day", pa.date32()),
            ("region", pa.string()),
            ("product", pa.int32()),
            ("amount", pa.float64()),
            ("duration", pa.int32()),
        ],
    )
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for start in range(0, rows, _CHUNK_ROWS):
            table = _chunk(generator, user_of_row[start : start + _CHUNK_ROWS], home).cast(schema)
            writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)


def _users(generator: Generator, *, rows: int) -> Integers:
    """The user of every row, in random order; the last user is cut so that the number of rows is exact."""
    drawn: list[Integers] = []
    missing = rows
    while missing > 0:
        pareto = 2.85 * (1 - generator.random(rows // 13 + 1)) ** (-1 / 1.2)
        counts = np.minimum(np.floor(pareto), USER_ROWS_MAX).astype(np.int64)
        before = np.cumsum(counts) - counts
        kept = np.minimum(counts, missing - before)[before < missing]
        drawn.append(kept)
        missing -= int(kept.sum())
    users: Integers = np.repeat(np.arange(sum(map(len, drawn)), dtype=np.int64), np.concatenate(drawn))
    generator.shuffle(users)
    return users


def _zipf(generator: Generator, *, size: int, values: int, exponent: float) -> Integers:
    """Draws from 0 .. values - 1 with weights 1 / (value + 1)^exponent."""
    cumulative = np.cumsum(1 / np.arange(1, values + 1) ** exponent)
    drawn: Integers = np.searchsorted(cumulative, generator.random(size) * cumulative[-1], side="right")
    return np.minimum(drawn, values - 1)


def _chunk(generator: Generator, user_of_row: Integers, home: Integers) -> pa.Table:
    size = len(user_of_row)
    away = _zipf(generator, size=size, values=len(REGIONS), exponent=0.7)
    region = np.where(generator.random(size) < 0.8, home[user_of_row], away)
    return pa.table(
        {
            "user_id": user_of_row,
            "day": pa.array((FIRST_DAY + generator.integers(0, DAYS, size)).astype(np.int32)).cast(pa.date32()),
            "region": pa.array(REGIONS).take(pa.array(region)),
            "product": _zipf(generator, size=size, values=PRODUCTS, exponent=0.9) + 1,
            "amount": np.round(generator.lognormal(2.5, 1.0, size), 2),
            "duration": generator.geometric(1 / 180, size),
        },
    )


def catalogue(*, source: str, rows: int) -> str:
    """The owner's declaration of the table. No unit's rows are cut: the plans decide how many of them count."""
    regions = ", ".join(f'"{region}"' for region in REGIONS)
    return f"""\
format = 1

[dataset]
id = "visits"
unit = "user"

[budget]
epsilon = 3
delta = "2^-40"

[tables.visits]
source = "{source}"
unit = "user_id"
rows_max = {rows}
rows_per_unit_max = {USER_ROWS_MAX}

[tables.visits.columns]
user_id = {{ type = "key", null = false }}
day = {{ type = "date", min = 2024-01-01, max = 2024-12-31 }}
region = {{ type = "text", values = [{regions}] }}
product = {{ type = "integer", min = 1, max = {PRODUCTS} }}
amount = {{ type = "real", min = 0, max = {AMOUNT_MAX}, steps = 100 }}
duration = {{ type = "integer", min = 0, max = {DURATION_MAX} }}
"""


def main() -> None:
    """Write the file named on the command line."""
    parser = argparse.ArgumentParser(description="Write the synthetic visits table as Parquet.")
    parser.add_argument("rows", type=int)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    write_visits(arguments.target, rows=arguments.rows)


if __name__ == "__main__":
    main()
