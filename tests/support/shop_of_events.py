"""A data set of events that grows by the day, as an owner declares it, and a clock that the tests set."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing
from lapwing.curator import block_life
from lapwing.data_set import DataSet
from lapwing.kernel.calendar import to_days

START = datetime.date(2026, 3, 1)
CATALOGUE = """
format = 1
[dataset]
id = "shop"
unit = "user"
neighbours = "{neighbours}"
units = 40
[budget]
epsilon = {epsilon}
delta = {delta}
statistics_share = 0
{budget}
{blocks}
[tables.users]
source = "users.parquet"
unit = "user_id"
one_row_per_unit = true
[tables.users.columns]
user_id = {{ type = "key" }}
country = {{ type = "text", values = ["de", "fr", "us"] }}
[tables.events]
source = "events/*.parquet"
unit = "user_id"
rows_per_unit_max = 30
rows_max = 10_000
{events}
[tables.events.columns]
user_id = {{ type = "key" }}
day = {{ type = "date", min = 2026-03-01, max = 2027-12-31 }}
seen = {{ type = "timestamp", min = 2026-03-01T00:00:00, max = 2027-12-31T23:59:59 }}
device = {{ type = "text", values = ["web", "app"] }}
amount = {{ type = "integer", min = 0, max = 20 }}
[tables.orders]
source = "orders.parquet"
unit = "user_id"
rows_per_unit_max = 30
rows_max = 10_000
{orders}
[tables.orders.columns]
user_id = {{ type = "key" }}
paid = {{ type = "date", min = 2026-03-01, max = 2027-12-31 }}
price = {{ type = "integer", min = 0, max = 90 }}
"""
COLUMNS = {"user_id": pa.int64(), "day": pa.date32(), "seen": pa.timestamp("us"), "device": pa.string(), "amount": pa.int64()}
BLOCKS = """[blocks]
every = "{every}"
person_cap = {cap}
grace_days = 1
{keep}"""


@dataclass
class Shop:
    """The directory of the data set, its rows, and the clock."""

    root: Path
    monkeypatch: pytest.MonkeyPatch
    rng: random.Random = field(default_factory=lambda: random.Random(5))
    events: list[dict[str, Any]] = field(default_factory=list)
    orders: list[dict[str, Any]] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        """Where the catalogue is."""
        return self.root / "shop"

    def declare(
        self,
        *,
        every: str | None = "day",
        cap: str = '"none"',
        keep: str = "",
        neighbours: str = "unbounded",
        epsilon: str = "1_000_000_000",
        delta: str = '"2^-40"',
        budget: str = "",
    ) -> None:
        """Write the catalogue; without ``every``, one with a budget for life."""
        self.directory.mkdir(exist_ok=True)
        blocks = "" if every is None else BLOCKS.format(every=every, cap=cap, keep=keep)
        of_events, of_orders = ("", "") if every is None else ('blocks = "day"', 'blocks = "paid"')
        text = CATALOGUE.format(
            neighbours=neighbours, epsilon=epsilon, delta=delta, budget=budget, blocks=blocks, events=of_events, orders=of_orders
        )
        (self.directory / "lapwing.toml").write_text(text)

    def users(self, number: int = 40) -> None:
        """Write the table without time."""
        rows = [{"user_id": user, "country": ["de", "fr", "us"][user % 3]} for user in range(number)]
        pq.write_table(pa.Table.from_pylist(rows), self.directory / "users.parquet")

    def day(self, day: datetime.date, *, rows: int = 30, file: str | None = None) -> None:
        """Events and orders of a day; some without a time, which belong to no block."""
        new = [self.event(day) for _ in range(rows)]
        self.events += new
        self.orders += [{"user_id": self.rng.randrange(40), "paid": day, "price": self.rng.randrange(90)} for _ in range(rows // 3)]
        folder = self.directory / "events"
        folder.mkdir(exist_ok=True)
        schema = pa.schema(COLUMNS)
        pq.write_table(pa.Table.from_pylist(new, schema), folder / f"{file or day}.parquet")
        pq.write_table(pa.Table.from_pylist(self.orders), self.directory / "orders.parquet")

    def event(self, day: datetime.date) -> dict[str, Any]:
        """One event of a day."""
        rng = self.rng
        seen = datetime.datetime.combine(day, datetime.time(rng.randrange(24), rng.randrange(60)))
        user = min(rng.randrange(40), rng.randrange(40))
        timed = rng.random() > 0.03
        return {
            "user_id": user,
            "day": day if timed else None,
            "seen": seen,
            "device": rng.choice(["web", "app", None]),
            "amount": rng.randrange(25),
        }

    def days(self, number: int, start: datetime.date = START) -> None:
        """So many days of rows."""
        for offset in range(number):
            self.day(start + datetime.timedelta(days=offset))

    def today(self, day: datetime.date) -> None:
        """Set the clock."""
        self.monkeypatch.setattr(block_life, "today", lambda: to_days(day))

    def open(self) -> DataSet:
        """Open the data set."""
        return lapwing.open(self.directory, home=self.root / "home")

    def truth(self, sql: str, last: datetime.date, first: datetime.date = START) -> list[tuple[Any, ...]]:
        """The answer of bare DuckDB over the rows up to the last closed day, cleaned as declared."""
        connection = duckdb.connect()
        folder = self.directory
        connection.execute(f"CREATE VIEW users AS SELECT * FROM '{folder}/users.parquet'")
        within = f"BETWEEN DATE '{first}' AND DATE '{last}'"
        cleaned = "user_id, day, seen, device, LEAST(amount, 20) AS amount"
        connection.execute(f"CREATE VIEW events AS SELECT {cleaned} FROM '{folder}/events/*.parquet' WHERE day {within}")
        connection.execute(f"CREATE VIEW orders AS SELECT * FROM '{folder}/orders.parquet' WHERE paid {within}")
        return connection.execute(sql).fetchall()
