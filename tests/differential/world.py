"""One table with columns of every type, bounds that bind nothing, and the same rows in bare DuckDB and bare PostgreSQL.

Noise is switched off, as the bytes it is drawn from are all 0 (``silent``): what is compared is what a statement means, to the last digit.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.kernel.noise import entropy

ROWS = 120
WORDS = ("alpha", "Beta", "gamma ray", "", "o'hara", "straße")
EPSILON = 10**5
"""Of each statement: so large that no cell is withheld as noise."""
BUDGET = 10**9
_CATALOGUE = f"""
format = 1
[dataset]
id = "every-type-@COPY@"
unit = "person"
[budget]
epsilon = {BUDGET}
delta = 0
ceiling = {{ epsilon = {BUDGET} }}
statistics_share = 0
[tables.t]
source = "t.parquet"
unit = "u"
one_row_per_unit = true
rows_max = 1000
[tables.t.columns]
u = {{ type = "key", null = false }}
i = {{ type = "integer", min = -60, max = 60 }}
b = {{ type = "integer", min = 0, max = 900, null = false }}
d = {{ type = "real", min = -99.99, max = 99.99, steps = 100 }}
e = {{ type = "real", min = 0, max = 9.999, steps = 1000, null = false }}
f = {{ type = "real", min = -50, max = 50, steps = 100 }}
day = {{ type = "date", min = 2023-12-25, max = 2024-12-31 }}
ts = {{ type = "timestamp", min = 2023-12-25T00:00:00, max = 2024-12-31T23:59:59 }}
w = {{ type = "text", values = ["alpha", "Beta", "gamma ray", "", "o'hara", "straße"] }}
y = {{ type = "boolean" }}
"""
_TYPES = {
    "u": ("BIGINT", pa.int64()),
    "i": ("INTEGER", pa.int32()),
    "b": ("BIGINT", pa.int64()),
    "d": ("NUMERIC(8, 2)", pa.decimal128(8, 2)),
    "e": ("NUMERIC(6, 3)", pa.decimal128(6, 3)),
    "f": ("DOUBLE PRECISION", pa.float64()),
    "day": ("DATE", pa.date32()),
    "ts": ("TIMESTAMP", pa.timestamp("us")),
    "w": ("TEXT", pa.string()),
    "y": ("BOOLEAN", pa.bool_()),
}


def rows(seed: int) -> list[dict[str, Any]]:
    """Made-up rows with NULLs, halves, ends of ranges and numbers that doubles round."""
    choose = random.Random(seed)

    def perhaps(value: Any) -> Any:
        return None if choose.random() < 0.12 else value

    first = datetime.datetime(2023, 12, 25)
    found = []
    for number in range(ROWS):
        moment = first + datetime.timedelta(seconds=choose.randrange(372 * 86_400))
        cents = choose.choice([choose.randint(-9_999, 9_999), choose.randint(-40, 40) * 50, 29, -29, 9_999, 0])
        found.append(
            {
                "u": number,
                "i": perhaps(choose.randint(-60, 60)),
                "b": choose.randint(0, 900),
                "d": perhaps(Decimal(cents) / 100),
                "e": Decimal(choose.choice([choose.randint(0, 9_999), choose.randint(0, 19) * 500])) / 1000,
                "f": perhaps(choose.randint(-5_000, 5_000) / 100),
                "day": perhaps(moment.date()),
                "ts": perhaps(moment),
                "w": perhaps(choose.choice(WORDS)),
                "y": perhaps(choose.random() < 0.5),
            }
        )
    return found


@contextmanager
def silent() -> Iterator[None]:
    """No noise: every draw comes from bytes that are 0."""
    before = entropy.random_bytes
    setattr(entropy, "random_bytes", bytes)  # noqa: B010
    try:
        yield
    finally:
        setattr(entropy, "random_bytes", before)  # noqa: B010


def table(seed: int) -> pa.Table:
    """The rows as they are written."""
    return pa.Table.from_pylist(rows(seed), schema=pa.schema([(name, kind) for name, (_, kind) in _TYPES.items()]))


def write(directory: Path, rows_of: pa.Table, *, copy: int = 1) -> None:
    """The file and its catalogue."""
    directory.mkdir(parents=True)
    pq.write_table(rows_of, directory / "t.parquet")
    (directory / "lapwing.toml").write_text(_CATALOGUE.replace("@COPY@", str(copy)), encoding="utf-8")


class World:
    """The data set, and both bare engines; of PostgreSQL only where there is one."""

    def __init__(self, directory: Path, postgres: psycopg.Connection[Any] | None = None, *, seed: int = 1) -> None:
        self._directory, self._copies, self._table = directory, 0, table(seed)
        self.data = self._fresh()
        self.duckdb = duckdb.connect(config={"threads": "1"})
        self.duckdb.register("t", self._table)
        self.postgres = postgres
        if postgres is not None:
            listed = ", ".join(f"{name} {kind}" for name, (kind, _) in _TYPES.items())
            postgres.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t ({listed})".encode())
            with postgres.cursor().copy("COPY t FROM STDIN") as copy:
                for row in self._table.to_pylist():
                    copy.write_row([*row.values()])

    def _fresh(self) -> lw.DataSet:
        self._copies += 1
        directory = self._directory / str(self._copies)
        write(directory, self._table, copy=self._copies)
        data = lw.open(directory, home=directory / "home")
        data.prepare()
        return data

    def ask(self, sql: str, dialect: str) -> list[tuple[Any, ...]]:
        """What Lapwing answers, without noise."""
        if self.data.budget.share_spent > 0.99:
            self.data.close()
            self.data = self._fresh()
        with silent():
            answer = self.data.ask(sql, epsilon=EPSILON, dialect=dialect)
        return [tuple(row) for row in zip(*(column.to_pylist() for column in answer.table.columns), strict=True)]

    def bare(self, sql: str, dialect: str) -> list[tuple[Any, ...]]:
        """What the engine of a dialect says by itself."""
        if dialect == "duckdb":
            return self.duckdb.execute(sql).fetchall()
        assert self.postgres is not None
        return self.postgres.execute(sql.encode()).fetchall()

    def close(self) -> None:
        """Give up files and connections."""
        self.data.close()
        self.duckdb.close()
