"""Events under five laws that no bound was made with, and questions about them: the data of `coverage_laws` and `useful`.

`zipf bot`: few rows each, but one user makes 1 % of all rows, in one cell of every column. `refunds`: one amount in twelve is negative, and
amounts have a very long tail. `poisson`: three users in ten have no rows at all. `seasonal`: hours and days are used unevenly. `files`: ten
files of very unequal sizes, with NULL in most columns. Every value lies within what the catalogue declares, so preparation drops nothing.
The same law, number of users and copy give the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.reliability.shop import quoted, zipf
from benchmarks.reliability.statements import AskedStatement, Measured, Output

LAWS = ("files", "poisson", "refunds", "seasonal", "zipf bot")
REGIONS = tuple(f"r{number:02d}" for number in range(12))
SEGMENTS = tuple(f"s{number}" for number in range(5))
CODES, CITIES, DAYS, HOURS = 500, 300, 28, 24
AMOUNT_MAX, REFUND_MAX, MINUTES_MAX = 5_000, 50_000, 480
BOT = 0
"""The user who is one, in the law that has one."""
FILES = 10

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
# The data must be the same on every run, and no noise is drawn from this generator: it stands in for the owner's rows.
Generator: TypeAlias = np.random.Generator  # noqa: TID251


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the events: one value, maybe of a part of the rows, maybe by group."""

    name: str
    family: str
    value: str
    where: str = ""
    key: str = ""
    by_segment: bool = False
    """Of a table that is joined on the user."""
    output: Output | None = None
    """What it measures, where the best bound of it is known."""

    @property
    def group(self) -> str:
        """The column of its groups, if any."""
        return "segment" if self.by_segment else self.key

    @property
    def sql(self) -> str:
        """As it is asked."""
        source = "events JOIN users USING (user_id)" if self.by_segment else "events"
        listed = f"{self.group}, " if self.group else ""
        grouped = f" GROUP BY {self.group}" if self.group else ""
        return f"SELECT {listed}{self.value} AS v FROM {source}{f' WHERE {self.where}' if self.where else ''}{grouped}"

    def in_parts(self, law: str) -> AskedStatement | None:
        """For the best bound; None where none is known: negative values, an average of a column with NULL, or another sort of value."""
        if self.output is None or (law == "refunds" and self.output.value == "amount"):
            return None
        if law == "files" and self.output.measured is Measured.AVERAGE:
            return None
        value = f"COALESCE({self.output.value}, 0)" if self.output.value else ""
        output = Output("v", self.output.measured, value, self.output.most)
        keys = ((f"COALESCE(CAST({self.key} AS VARCHAR), 'None')", self.key),) if self.key else ()
        return AskedStatement(self.family, "events", "user_id", (output,), keys, self.where or "TRUE")


_COUNT, _UNITS = Output("v", Measured.COUNT), Output("v", Measured.UNITS)
_AMOUNT, _MINUTES = Output("v", Measured.SUM, "amount", AMOUNT_MAX), Output("v", Measured.SUM, "minutes", MINUTES_MAX)
_MEAN_AMOUNT, _MEAN_MINUTES = (
    Output("v", Measured.AVERAGE, "amount", AMOUNT_MAX),
    Output("v", Measured.AVERAGE, "minutes", MINUTES_MAX),
)
_DISTINCT = "COUNT(DISTINCT user_id)"
QUESTIONS = (
    Question("count", "COUNT(*)", "COUNT(*)", output=_COUNT),
    Question("count, 50 %", "COUNT, half of the rows", "COUNT(*)", "p <= 50", output=_COUNT),
    Question("count, 1 %", "COUNT, 1 % of the rows", "COUNT(*)", "p = 1", output=_COUNT),
    Question("users", "COUNT(DISTINCT user)", _DISTINCT, output=_UNITS),
    Question("users, 1 %", "COUNT(DISTINCT user)", _DISTINCT, "p = 1", output=_UNITS),
    Question("sum amount", "SUM", "SUM(amount)", output=_AMOUNT),
    Question("sum minutes", "SUM", "SUM(minutes)", output=_MINUTES),
    Question("sum, 50 %", "SUM", "SUM(amount)", "p <= 50", output=_AMOUNT),
    Question("sum, 1 %", "SUM, 1 % of the rows", "SUM(amount)", "p = 1", output=_AMOUNT),
    Question("average amount", "AVG", "AVG(amount)", output=_MEAN_AMOUNT),
    Question("average minutes", "AVG", "AVG(minutes)", output=_MEAN_MINUTES),
    Question("average, 1 %", "AVG, 1 % of the rows", "AVG(minutes)", "p = 1", output=_MEAN_MINUTES),
    Question("count by region", "COUNT by region (12)", "COUNT(*)", key="region", output=_COUNT),
    Question("count by region, 1 %", "COUNT by region, 1 % of the rows", "COUNT(*)", "p = 1", "region", output=_COUNT),
    Question("sum by region", "SUM by region", "SUM(amount)", key="region", output=_AMOUNT),
    Question("average by region", "AVG by region", "AVG(amount)", key="region", output=_MEAN_AMOUNT),
    Question("users by region", "COUNT(DISTINCT user) by region or day", _DISTINCT, key="region", output=_UNITS),
    Question("users by day", "COUNT(DISTINCT user) by region or day", _DISTINCT, key="day", output=_UNITS),
    Question("count by day", "COUNT by day or hour", "COUNT(*)", key="day", output=_COUNT),
    Question("count by hour", "COUNT by day or hour", "COUNT(*)", key="hour", output=_COUNT),
    Question("sum by day", "SUM by day", "SUM(amount)", key="day", output=_AMOUNT),
    Question("count by code", "COUNT by code (500)", "COUNT(*)", key="code", output=_COUNT),
    Question("sum by code", "SUM by code (500)", "SUM(minutes)", key="code", output=_MINUTES),
    Question("median", "quantiles", "MEDIAN(minutes)"),
    Question("nine in ten", "quantiles", "QUANTILE_CONT(minutes, 0.9)"),
    Question("median by region", "quantiles by region", "MEDIAN(minutes)", key="region"),
    Question("share", "ratios", "100.0 * COUNT_IF(flag) / COUNT(*)"),
    Question("rows per user", "ratios", f"1.0 * COUNT(*) / {_DISTINCT}"),
    Question("minutes per user", "ratios", f"SUM(minutes) / {_DISTINCT}"),
    Question("deviation", "STDDEV", "STDDEV(minutes)"),
    Question("count by city", "COUNT by undeclared city (300)", "COUNT(*)", key="city"),
    Question("sum by city", "SUM by undeclared city (300)", "SUM(minutes)", key="city"),
    Question("count of what is rare", "COUNT of a column that is 99 % NULL", "COUNT(rare)"),
    Question("count of what is rare by region", "COUNT of a column that is 99 % NULL", "COUNT(rare)", key="region"),
    Question("sum of what is rare", "SUM of a column that is 99 % NULL", "SUM(rare)"),
    Question("count by segment", "COUNT by segment, joined", "COUNT(*)", by_segment=True),
)


def write_events(directory: Path, *, law: str, users: int, copy: int) -> None:
    """Write sources and catalogue into a directory."""
    generator = np.random.default_rng([77, LAWS.index(law), users, copy])  # noqa: TID251
    counts, most = _rows_of_users(law, generator, users)
    events = _events(law, generator, counts)
    if law == "files":
        sizes = generator.dirichlet(np.geomspace(0.3, 5, FILES))
        ends = np.append((np.cumsum(sizes)[:-1] * events.num_rows).astype(np.int64), events.num_rows)
        for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            pq.write_table(events.slice(start, end - start), directory / f"events-{number}.parquet")
    else:
        pq.write_table(events, directory / "events.parquet")
    segment = pa.array(SEGMENTS).take(pa.array(zipf(generator, size=users, values=len(SEGMENTS), exponent=0.8)))
    pq.write_table(pa.table({"user_id": np.arange(users), "segment": segment}), directory / "users.parquet")
    (directory / "lapwing.toml").write_text(_catalogue(law, most), encoding="utf-8")


def bare(directory: Path) -> duckdb.DuckDBPyConnection:
    """The same rows without protection."""
    connection = duckdb.connect(config={"threads": "1"})
    for name in ("events", "users"):
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{directory / name}*.parquet'")
    return connection


def _rows_of_users(law: str, generator: Generator, users: int) -> tuple[Integers, int]:
    """How many rows each user has, and the most that is declared."""
    if law == "zipf bot":
        counts = zipf(generator, size=users, values=300, exponent=1.5) + 1
        counts[BOT] = max(int(counts.sum() / 99), 1)
        return counts, max(500, 2 * int(counts[BOT]))
    if law == "refunds":
        return np.minimum(generator.geometric(1 / 6, users), 200).astype(np.int64), 200
    if law == "poisson":
        return np.where(generator.random(users) < 0.7, generator.poisson(4, users), 0).astype(np.int64), 50
    if law == "seasonal":
        return np.minimum(generator.negative_binomial(1.2, 1.2 / 9.2, users) + 1, 300).astype(np.int64), 300
    return np.clip(np.rint(generator.lognormal(1, 1, users)), 1, 200).astype(np.int64), 500


def _events(law: str, generator: Generator, counts: Integers) -> pa.Table:
    user = np.repeat(np.arange(len(counts)), counts)
    size = len(user)
    home = zipf(generator, size=len(counts), values=len(REGIONS), exponent=0.8)
    away = zipf(generator, size=size, values=len(REGIONS), exponent=0.8)
    region = np.where(generator.random(size) < 0.7, home[user], away)
    code = zipf(generator, size=size, values=CODES, exponent=0.8)
    city = zipf(generator, size=size, values=CITIES, exponent=1.0)
    day, hour = generator.integers(0, DAYS, size), generator.integers(0, HOURS, size)
    if law == "seasonal":
        day, hour = _uneven_days(generator, size), _uneven_hours(generator, size)
    if law == "zipf bot":
        mine = user == BOT
        region[mine], code[mine], city[mine], hour[mine] = 5, 250, 100, 3
    amount = generator.lognormal(3, 2 if law == "refunds" else 1, size)
    if law == "refunds":
        amount = np.minimum(amount, REFUND_MAX) * np.where(generator.random(size) < 0.08, -1, 1)
    columns = {
        "user_id": pa.array(user),
        "region": pa.array(np.array(REGIONS)[region], mask=_missing(law, generator, size, 0.05)),
        "code": pa.array(code, mask=_missing(law, generator, size, 0.1)),
        "city": pa.array(np.array([f"city{number:03d}" for number in range(CITIES)])[city]),
        "day": pa.array((np.datetime64("2026-01-01") + day).astype("datetime64[D]")),
        "hour": pa.array(hour),
        "amount": pa.array(
            (amount if law == "refunds" else np.minimum(amount, AMOUNT_MAX)).round(2), mask=_missing(law, generator, size, 0.3)
        ),
        "minutes": pa.array(
            np.minimum(generator.gamma(2, 15, size), MINUTES_MAX).astype(np.int64), mask=_missing(law, generator, size, 0.2)
        ),
        "p": pa.array(generator.integers(1, 101, size)),
        "flag": pa.array(generator.random(size) < 0.23),
        "rare": pa.array(np.minimum(generator.lognormal(3, 1, size), AMOUNT_MAX).round(2), mask=generator.random(size) > 0.01),
    }
    return pa.table(columns).take(pa.array(generator.permutation(size)))


def _missing(law: str, generator: Generator, size: int, share: float) -> npt.NDArray[np.bool_]:
    return generator.random(size) < (share if law == "files" else 0.0)


def _uneven_days(generator: Generator, size: int) -> Integers:
    """Weekends are quiet, and use grows by three within the month."""
    weights = np.where(np.arange(DAYS) % 7 < 5, 1.0, 0.25) * np.linspace(0.5, 1.5, DAYS)
    return generator.choice(DAYS, size, p=weights / weights.sum())


def _uneven_hours(generator: Generator, size: int) -> Integers:
    weights = np.exp(2.2 * np.sin((np.arange(HOURS) - 9) / HOURS * 2 * np.pi))
    return generator.choice(HOURS, size, p=weights / weights.sum())


def _catalogue(law: str, rows_most: int) -> str:
    null = "" if law == "files" else ", null = false"
    least, most = (-REFUND_MAX, REFUND_MAX) if law == "refunds" else (0, AMOUNT_MAX)
    return f"""\
format = 1

[dataset]
id = "fresh"
unit = "user"

[budget]
epsilon = 3
delta = "1e-9"

[tables.users]
source = "users.parquet"
unit = "user_id"
one_row_per_unit = true
rows_max = 1_000_000

[tables.users.columns]
user_id = {{ type = "key", null = false }}
segment = {{ type = "text", values = [{quoted(SEGMENTS)}], null = false }}

[tables.events]
source = "{"events-*.parquet" if law == "files" else "events.parquet"}"
unit = "user_id -> users.user_id"
rows_per_unit_max = {rows_most}
rows_max = 100_000_000

[tables.events.columns]
user_id = {{ type = "key", null = false }}
region = {{ type = "text", values = [{quoted(REGIONS)}]{null} }}
code = {{ type = "integer", min = 0, max = {CODES - 1}{null} }}
city = {{ type = "text", null = false }}
day = {{ type = "date", min = 2026-01-01, max = 2026-01-{DAYS}, null = false }}
hour = {{ type = "integer", min = 0, max = {HOURS - 1}, null = false }}
amount = {{ type = "real", min = {least}, max = {most}, steps = 100{null} }}
minutes = {{ type = "integer", min = 0, max = {MINUTES_MAX}{null} }}
p = {{ type = "integer", min = 1, max = 100, null = false }}
flag = {{ type = "boolean", null = false }}
rare = {{ type = "real", min = 0, max = {AMOUNT_MAX}, steps = 100 }}
"""
