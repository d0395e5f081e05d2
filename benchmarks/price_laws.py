"""Five data sets and forty statements about them, for `price_ladder`: whether more budget ever makes an answer worse.

`visits`: the demonstration. `single`: one row for each user, which is not declared. `bot`: few rows each, and one user with 1 % of all
rows. `amounts`: long-tailed amounts. `few`: 300 users. Every value lies within what the catalogue declares, so
preparation drops nothing. The same data set and number of users give the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.reliability.shop import quoted, zipf

from lapwing.demo import write_demo

REGIONS = tuple(f"r{number:02d}" for number in range(12))
CITIES, DAYS, AMOUNT_MAX, MINUTES_MAX = 60, 28, 5_000, 480


@dataclass(frozen=True, slots=True)
class Question:
    """A question with one value, ``v``, maybe by one group, which is its first column."""

    data: str
    name: str
    sql: str
    grouped: bool = False


def _of(data: str, *names: str) -> tuple[Question, ...]:
    """Of the questions that every event table is asked, those of these names."""
    return tuple(Question(data, name, sql, name.endswith(("region", "city", "segment"))) for name, sql in _EVENTS.items() if name in names)


_EVENTS: Mapping[str, str] = {
    "count": "SELECT COUNT(*) AS v FROM events",
    "count, 1 %": "SELECT COUNT(*) AS v FROM events WHERE p = 1",
    "sum": "SELECT SUM(amount) AS v FROM events",
    "sum, half": "SELECT SUM(amount) AS v FROM events WHERE p <= 50",
    "average": "SELECT AVG(amount) AS v FROM events",
    "users, 1 %": "SELECT COUNT(DISTINCT user_id) AS v FROM events WHERE p = 1",
    "count by region": "SELECT region, COUNT(*) AS v FROM events GROUP BY region",
    "sum by region": "SELECT region, SUM(amount) AS v FROM events GROUP BY region",
    "average by region": "SELECT region, AVG(amount) AS v FROM events GROUP BY region",
    "users by region": "SELECT region, COUNT(DISTINCT user_id) AS v FROM events GROUP BY region",
    "count by city": "SELECT city, COUNT(*) AS v FROM events GROUP BY city",
    "sum by segment": "SELECT segment, SUM(minutes) AS v FROM events JOIN users USING (user_id) GROUP BY segment",
    "average of totals": "SELECT AVG(t) AS v FROM (SELECT user_id, SUM(minutes) AS t FROM events GROUP BY user_id) u",
}
_FEW_ROWS = "(SELECT patient_id, LEAST(COUNT(*), 10) AS n FROM visits GROUP BY patient_id) u"
_VISITS = (
    Question("visits", "count", "SELECT COUNT(*) AS v FROM visits"),
    Question("visits", "count, filtered", "SELECT COUNT(*) AS v FROM visits WHERE minutes > 60"),
    Question("visits", "sum", "SELECT SUM(cost) AS v FROM visits"),
    Question("visits", "sum, filtered", "SELECT SUM(cost) AS v FROM visits WHERE clinic_id = 3"),
    Question("visits", "average", "SELECT AVG(cost) AS v FROM visits"),
    Question("visits", "patients, filtered", "SELECT COUNT(DISTINCT patient_id) AS v FROM visits WHERE code = 'J10'"),
    Question("visits", "count by clinic", "SELECT clinic_id, COUNT(*) AS v FROM visits GROUP BY clinic_id", grouped=True),
    Question("visits", "sum by clinic", "SELECT clinic_id, SUM(cost) AS v FROM visits GROUP BY clinic_id", grouped=True),
    Question(
        "visits", "patients by clinic", "SELECT clinic_id, COUNT(DISTINCT patient_id) AS v FROM visits GROUP BY clinic_id", grouped=True
    ),
    Question("visits", "count by drug", "SELECT drug, COUNT(*) AS v FROM prescriptions GROUP BY drug", grouped=True),
    Question(
        "visits", "sum by sex", "SELECT sex, SUM(minutes) AS v FROM visits JOIN patients USING (patient_id) GROUP BY sex", grouped=True
    ),
    Question("visits", "average of counts", f"SELECT AVG(n) AS v FROM {_FEW_ROWS}"),
)
QUESTIONS = (
    *_VISITS,
    *_of("single", "count", "count, 1 %", "sum", "average", "count by region", "sum by region", "count by city"),
    *_of("bot", "count", "count, 1 %", "sum", "average", "count by region", "users by region", "sum by segment"),
    *_of("amounts", "count", "sum", "sum, half", "average", "sum by region", "average by region", "average of totals"),
    *_of("few", "count", "sum", "average", "users, 1 %", "count by region", "users by region", "average of totals"),
)
DATA = tuple(dict.fromkeys(question.data for question in QUESTIONS))
USERS = {"visits": 20_000, "single": 5_000, "bot": 5_000, "amounts": 5_000, "few": 300}


def write(directory: Path, data: str, users: int) -> None:
    """Write sources and catalogue into an empty directory."""
    if data == "visits":
        write_demo(directory, patients=users)
        return
    # The data must be the same on every run, and no noise is drawn from this generator: it stands in for the owner's rows.
    generator = np.random.default_rng([35, DATA.index(data), users])  # noqa: TID251
    counts = np.ones(users, dtype=np.int64)
    if data == "bot":
        counts = zipf(generator, size=users, values=200, exponent=1.6) + 1
        counts[0] = max(int(counts.sum() / 99), 1)
    elif data != "single":
        counts = np.clip(np.rint(generator.lognormal(1, 1, users)), 1, 100).astype(np.int64)
    user = np.repeat(np.arange(users), counts)
    size, home = len(user), generator.integers(0, len(REGIONS), users)
    region = np.where(
        (generator.random(size) < 0.7) & (user > 0), home[user], zipf(generator, size=size, values=len(REGIONS), exponent=0.5)
    )
    amount = np.minimum(generator.lognormal(3, 1.6 if data == "amounts" else 0.8, size), AMOUNT_MAX).round(2)
    events = {
        "user_id": user,
        "region": pa.array(np.array(REGIONS)[region]),
        "city": pa.array([f"city{number}" for number in zipf(generator, size=size, values=CITIES, exponent=1.0)]),
        "amount": amount,
        "minutes": np.minimum(generator.gamma(2, 15, size), MINUTES_MAX).astype(np.int64),
        "p": generator.integers(1, 101, size),
    }
    pq.write_table(pa.table(events).take(pa.array(generator.permutation(size))), directory / "events.parquet")
    segment = np.array(["a", "b", "c"])[generator.integers(0, 3, users)]
    pq.write_table(pa.table({"user_id": np.arange(users), "segment": segment}), directory / "users.parquet")
    most = 50 if data == "single" else max(200, 2 * int(counts.max()))
    (directory / "lapwing.toml").write_text(_catalogue(data, most, rows_max=100 * size), encoding="utf-8")


def bare(directory: Path) -> duckdb.DuckDBPyConnection:
    """The same rows without protection."""
    connection = duckdb.connect(config={"threads": "1"})
    for path in sorted(directory.glob("*.parquet")):
        connection.execute(f"CREATE TABLE {path.stem} AS SELECT * FROM '{path}'")
    return connection


def _catalogue(data: str, rows_most: int, rows_max: int) -> str:
    return f"""\
format = 1

[dataset]
id = "{data}"
unit = "user"

[budget]
epsilon = 3
delta = "2^-40"

[tables.users]
source = "users.parquet"
unit = "user_id"
one_row_per_unit = true
rows_max = 1_000_000

[tables.users.columns]
user_id = {{ type = "key", null = false }}
segment = {{ type = "text", values = ["a", "b", "c"], null = false }}

[tables.events]
source = "events.parquet"
unit = "user_id -> users.user_id"
rows_per_unit_max = {rows_most}
rows_max = {rows_max}

[tables.events.columns]
user_id = {{ type = "key", null = false }}
region = {{ type = "text", values = [{quoted(REGIONS)}], null = false }}
city = {{ type = "text", null = false }}
amount = {{ type = "real", min = 0, max = {AMOUNT_MAX}, steps = 100, null = false }}
minutes = {{ type = "integer", min = 0, max = {MINUTES_MAX}, null = false }}
p = {{ type = "integer", min = 1, max = 100, null = false }}
"""
