"""A dashboard of twelve charts asked every day of a simulated year through the server, over data that grows every night.

    python -m benchmarks.year                                 # 730 days: year against year from day 366 on
    python -m benchmarks.year --days 60 --users 2000          # a short one

Events of a web shop under a law of heavy tails: a user comes on some days, more on weekdays, and the shop grows. Each evening the rows of
the day are written to a file, the clock is put to the next day, an owner prepares over HTTP and an analyst asks all charts over HTTP: eight
over the last 30 days, two over this month, two of this year against last. A chart costs epsilon 0.1 for each block, of a budget of 3.

Printed: how often each block was charged for each chart, from the entries of the ledger; how many bars hold the raw truth of bare DuckDB,
with its binomial interval; errors, as a share of what is shown, beside those of one bound over the whole range at the same price; how long
a day takes; and what one person lost over the year. Then the same charts from one budget for life, and the day on which it ends.
"""

from __future__ import annotations

import argparse
import datetime
import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.markdown import show, table
from benchmarks.reliability.shop import quoted, zipf
from scipy.stats import beta

import lapwing
from lapwing.asking import ask
from lapwing.interfaces.http.configuration import MomentSettings
from lapwing.kernel.accounting import LOSS_UNITS
from lapwing.kernel.calendar import to_days
from lapwing.ledger.limits import HISTORY_ENTRIES_MAX
from lapwing.ledger.protocol import EntryKind
from lapwing.ledger.purchases import BlockName, PurchaseKind
from lapwing.prices import statement_loss
from tests.server.under_test import ServerUnderTest

START = datetime.date(2026, 1, 1)
COUNTRIES = tuple(f"country_{number:02d}" for number in range(8))
DEVICES = ("phone", "desktop", "tablet")
SOURCES = ("search", "link", "mail", "campaign", "direct")
PAGES = tuple(f"/page/{number:02d}" for number in range(40))
AMOUNT_MAX = 500
ROWS_MAX = 200
EPSILON = "0.1"

_30, _MONTH = "day > CURRENT_DATE - 30", "day >= DATE_TRUNC('month', CURRENT_DATE - 2)"
_YEARS = "day >= DATE_TRUNC('year', CURRENT_DATE - 2) - INTERVAL 1 YEAR AND EXTRACT(DOY FROM day) <= EXTRACT(DOY FROM CURRENT_DATE - 2)"
CHARTS = {
    "page views by day": f"SELECT day, COUNT(*) AS n FROM web WHERE {_30} GROUP BY day",
    "page views by hour": f"SELECT hour, COUNT(*) AS n FROM web WHERE {_30} GROUP BY hour",
    "users by day": f"SELECT day, COUNT(DISTINCT user_id) AS n FROM web WHERE {_30} GROUP BY day",
    "users by day and device": f"SELECT day, device, COUNT(DISTINCT user_id) AS n FROM web WHERE {_30} GROUP BY day, device",
    "revenue by country": f"SELECT country, SUM(amount) AS n FROM web WHERE {_30} AND bought GROUP BY country",
    "purchases by device": f"SELECT device, COUNT(*) AS n FROM web WHERE {_30} AND bought GROUP BY device",
    "average order value": f"SELECT AVG(amount) AS n FROM web WHERE {_30} AND bought",
    "top pages": f"SELECT page, COUNT(*) AS n FROM web WHERE {_30} GROUP BY page",
    "views by source this month": f"SELECT source, COUNT(*) AS n FROM web WHERE {_MONTH} GROUP BY source",
    "revenue this month": f"SELECT SUM(amount) AS n FROM web WHERE {_MONTH} AND bought",
    "views, year against year": f"SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) AS n FROM web WHERE {_YEARS} GROUP BY y",
    "revenue, year against year": f"SELECT EXTRACT(YEAR FROM day) AS y, SUM(amount) AS n FROM web WHERE bought AND {_YEARS} GROUP BY 1",
}
CATALOGUE = """
format = 1

[dataset]
id = "web"
unit = "user"

[budget]
epsilon = 3
{blocks}

[tables.web]
source = "web/*.parquet"
unit = "user_id"
rows_per_unit_max = {rows_max}
rows_max = 100_000_000
{column}

[tables.web.columns]
user_id = {{ type = "key", null = false }}
day = {{ type = "date", min = 2026-01-01, max = 2028-12-31, null = false }}
hour = {{ type = "integer", min = 0, max = 23, null = false }}
country = {{ type = "text", values = [{countries}], null = false }}
device = {{ type = "text", values = [{devices}], null = false }}
source = {{ type = "text", values = [{sources}], null = false }}
page = {{ type = "text", values = [{pages}], null = false }}
bought = {{ type = "boolean", null = false }}
amount = {{ type = "real", min = 0, max = {amount}, steps = 100, null = false }}
"""


def catalogue(*, blocks: bool, days: int) -> str:
    """The owner's declaration, with blocks of time or with one budget for life."""
    return CATALOGUE.format(
        blocks='\n[blocks]\nevery = "day"\nperson_cap = "none"' if blocks else "",
        column='blocks = "day"' if blocks else "",
        rows_max=ROWS_MAX if blocks else ROWS_MAX * days,
        countries=quoted(COUNTRIES),
        devices=quoted(DEVICES),
        sources=quoted(SOURCES),
        pages=quoted(PAGES),
        amount=AMOUNT_MAX,
    )


@dataclass
class Shop:
    """The rows, day by day: the same for the same number of users and seed."""

    directory: Path
    users: int
    seed: int = 1

    def __post_init__(self) -> None:
        generator = np.random.default_rng([self.seed, 0])  # noqa: TID251  (the owner's rows, not noise)
        self.habit = np.minimum(generator.lognormal(-1.2, 1.0, self.users), 0.95)
        self.rows = 1 + generator.pareto(1.3, self.users)
        self.home = zipf(generator, size=self.users, values=len(COUNTRIES), exponent=1.0)

    def write(self, day: datetime.date) -> None:
        """The rows of a day."""
        number = (day - START).days
        generator = np.random.default_rng([self.seed, 1 + number])  # noqa: TID251
        came = np.flatnonzero(generator.random(self.users) < self.habit * (0.6 if day.weekday() > 4 else 1.0) * (0.7 + number / 1000))
        counts = np.minimum(np.ceil(self.rows[came] * generator.gamma(2.0, 0.5, len(came))), ROWS_MAX).astype(np.int64)
        user = np.repeat(came, counts)
        size = len(user)
        bought = generator.random(size) < 0.05
        rows = {
            "user_id": user,
            "day": pa.array(np.full(size, to_days(day)), pa.int32()).cast(pa.date32()),
            "hour": generator.integers(0, 24, size),
            "country": pa.array(np.array(COUNTRIES)[self.home[user]]),
            "device": pa.array(np.array(DEVICES)[zipf(generator, size=size, values=len(DEVICES), exponent=1.0)]),
            "source": pa.array(np.array(SOURCES)[zipf(generator, size=size, values=len(SOURCES), exponent=0.6)]),
            "page": pa.array(np.array(PAGES)[zipf(generator, size=size, values=len(PAGES), exponent=1.1)]),
            "bought": bought,
            "amount": np.where(bought, np.minimum(np.round(generator.lognormal(3.3, 0.9, size), 2), AMOUNT_MAX), 0.0),
        }
        folder = self.directory / "web"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(rows), folder / f"{day}.parquet")


@dataclass
class Clock:
    """The present day, of the calendar of blocks and of CURRENT_DATE."""

    day: datetime.date = START

    @contextmanager
    def set(self) -> Iterator[None]:
        """Within, the server's clock is at noon of this day."""
        noon = (12 * 3_600) * 1_000_000
        with (
            mock.patch("lapwing.curator.block_life.today", lambda: to_days(self.day)),
            mock.patch("lapwing.asking.bound_statement.moment_of_asking", lambda: to_days(self.day) * 86_400_000_000 + noon),
        ):
            yield


@dataclass
class Chart:
    """What was seen of one chart."""

    cells: int = 0
    held: int = 0
    squares: list[float] = field(default_factory=list)
    whole_squares: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    bars: list[float] = field(default_factory=list)
    refused: int = 0


def truth_of(connection: duckdb.DuckDBPyConnection, sql: str, today: datetime.date) -> dict[tuple[Any, ...], float]:
    """Bare DuckDB over the rows up to the day before yesterday, whose block is the last closed one."""
    dated = sql.replace("CURRENT_DATE", f"DATE '{today}'")
    rows = connection.execute(dated.replace("FROM web", f"FROM (SELECT * FROM web WHERE day <= DATE '{today}' - 2) AS web")).fetchall()
    return {tuple(str(value)[:10] for value in row[:-1]): float(row[-1] or 0) for row in rows}


def compare(chart: Chart, told: dict[str, Any], truth: dict[tuple[Any, ...], float], *, whole: bool = False) -> None:
    """Add what an answer says, beside the truth."""
    bars = told["intervals"].get("n", [None] * len(told["rows"]))
    for row, bar in zip(told["rows"], bars, strict=True):
        value, known = row[-1], truth.get(tuple(str(each)[:10] for each in row[:-1]), 0.0)
        if value is None or bar is None or row[:-1] == [None]:
            continue
        if whole:
            chart.whole_squares.append((value - known) ** 2)
            continue
        chart.cells += 1
        chart.held += bar[0] <= known <= bar[1]
        chart.squares.append((value - known) ** 2)
        chart.shown.append(known)
        chart.bars.append((bar[1] - bar[0]) / 2)


def simulated(shop: Shop, home: Path, days: int, *, every: int) -> None:
    """All days, and the tables."""
    clock, charts, seconds = Clock(START), {name: Chart() for name in CHARTS}, list[float]()
    connection = duckdb.connect()

    def write(directory: Path) -> None:
        directory.mkdir(parents=True)
        shop.directory = directory
        shop.write(START)
        (directory / "lapwing.toml").write_text(catalogue(blocks=True, days=days), encoding="utf-8")

    clock.day = START + datetime.timedelta(days=2)
    with clock.set(), ServerUnderTest.over(write, home, moments=MomentSettings(public=False)) as server:
        for number in range(1, days + 1):
            day = START + datetime.timedelta(days=number)
            shop.write(day)
            clock.day = day + datetime.timedelta(days=2)
            started = time.perf_counter()
            reply = server.call("POST", "/v1/data-sets/{d}/versions", by="olga", json={})
            assert reply.status_code < 300, reply.text
            answers = {}
            for name, sql in CHARTS.items():
                reply = server.ask(sql, epsilon=EPSILON)
                charts[name].refused += reply.status_code != 200
                if reply.status_code == 200:
                    answers[name] = reply.json()
                elif charts[name].refused < 3:
                    show(f"day {number}: {name}: {reply.text}")
            seconds.append(time.perf_counter() - started)
            if number % every == 0 or number == days:
                connection.execute(f"CREATE OR REPLACE VIEW web AS SELECT * FROM '{shop.directory}/web/*.parquet'")
                for name, told in answers.items():
                    compare(charts[name], told, truth_of(connection, CHARTS[name], clock.day))
            if number % 30 == 0 or number == days:
                show(f"day {number}: {seconds[-1]:.1f} s for the day, {sum(each.refused for each in charts.values())} refused so far")
            if number in (60, 200, 365, 400, days):
                report(server, charts, number, seconds)
        compare_with_ranges(server, charts, connection, clock)
        errors(charts)


def report(server: ServerUnderTest, charts: dict[str, Chart], days: int, seconds: list[float]) -> None:
    """Charges of blocks, from the entries; coverage; and what one person lost."""
    paid, answered = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    with lapwing.open(server.home / "clinic", home=server.home / "ledgers", analyst="ada") as data_set:
        ledger = data_set.curator.ledger
        entries = [one for one in ledger.history(limit=HISTORY_ENTRIES_MAX) if one.kind is EntryKind.RESERVE and one.analyst == "ada"]
        for entry in entries:
            record = None if entry.charge_id is None else ledger.purchase(entry.charge_id)
            if record is not None and record.kind is PurchaseKind.BLOCK:
                name = BlockName.of_text(record.name)
                paid[name.key, name.block] += entry.charged.loss
                answered[name.key, name.block] += name.what == "a"
        budget = data_set.budget.to_dict()["blocks"]
        price = statement_loss(ledger.balance().budget, Fraction(EPSILON)) * LOSS_UNITS
    show(f"**Day {days}**: {len(entries):,} charges for {len(answered):,} blocks of charts")
    show(f"answers for one block of one chart, and how many blocks have so many: {dict(Counter(answered.values()))}")
    show(f"paid by one block for one chart, histogram and answer, of the price of a chart: {float(max(paid.values()) / price):.4f} at most")
    show(f"one person lost epsilon {budget['person_year_epsilon']:.3g} over a year; a day took {np.median(seconds):.2f} s (median)")
    held, cells = sum(each.held for each in charts.values()), sum(each.cells for each in charts.values())
    low = beta.ppf(0.025, held, cells - held + 1)
    high = 1.0 if held == cells else beta.ppf(0.975, held + 1, cells - held)
    show(
        f"bars that hold the raw truth: {held:,} of {cells:,} = {held / cells:.2%} ({low:.2%} to {high:.2%}); refused: "
        f"{sum(each.refused for each in charts.values())}"
    )


def compare_with_ranges(server: ServerUnderTest, charts: dict[str, Chart], connection: duckdb.DuckDBPyConnection, clock: Clock) -> None:
    """The charts of the last day measured over their range at once, at the same price: once each."""
    with mock.patch.object(ask, "block_answers", lambda whole: None):
        for name, sql in CHARTS.items():
            reply = server.ask(sql, epsilon=EPSILON)
            if reply.status_code == 200:
                compare(charts[name], reply.json(), truth_of(connection, sql, clock.day), whole=True)


def errors(charts: dict[str, Chart]) -> None:
    """A row for each chart."""
    rows = []
    for name, chart in charts.items():
        mean = max(float(np.mean(np.abs(chart.shown))), 1e-9) if chart.shown else math.nan
        own = math.sqrt(float(np.mean(chart.squares))) / mean if chart.squares else math.nan
        whole = math.sqrt(float(np.mean(chart.whole_squares))) / mean if chart.whole_squares else math.nan
        bar = float(np.median(chart.bars)) / mean if chart.bars else math.nan
        rows.append([name, f"{own:.1%}", f"{whole:.1%}", f"{bar:.1%}", f"{chart.held} of {chart.cells}", f"{chart.refused}"])
    table("Errors as a share of what is shown", ("chart", "by day", "over the range", "half bar", "bars that hold", "refused"), rows)


def one_budget(shop: Shop, home: Path, days: int) -> None:
    """The same charts from one budget for life: a new version every night, until a chart is refused."""
    clock = Clock(START)
    directory = home / "life"
    directory.mkdir(parents=True)
    shop.directory = directory
    (directory / "lapwing.toml").write_text(catalogue(blocks=False, days=days), encoding="utf-8")
    with clock.set():
        for number in range(days + 1):
            shop.write(START + datetime.timedelta(days=number))
            clock.day = START + datetime.timedelta(days=number + 2)
            with lapwing.open(directory, home=home / "life-ledgers") as data_set:
                data_set.prepare(new_version=True)
                for name, sql in CHARTS.items():
                    try:
                        data_set.ask(sql, epsilon=EPSILON)
                    except lapwing.BudgetRefused:
                        show(f"one budget for life: day {number}, {name!r} is the first chart that is refused")
                        return
    show(f"one budget for life: lasted {days} days")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, default=730)
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--every", type=int, default=7, help="answers are compared with the truth every so many days")
    parser.add_argument("--only-life", action="store_true", help="only the year of one budget for life")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if not options.only_life:
            simulated(Shop(Path(scratch), options.users), Path(scratch) / "server", options.days, every=options.every)
        one_budget(Shop(Path(scratch), options.users), Path(scratch), options.days)


if __name__ == "__main__":
    main()
