"""An ordinary dashboard: twelve charts of a web table, from one budget, each with its error as a share of what it shows.

    python -m benchmarks.reliability.dashboard [--users 100_000] [--law pareto ...] [--draws 10] [--json measured.json]

The table has about ten rows for each user (a million rows for 100,000 users). The whole budget is (2, 1e-9); preparation takes its share
for statistics, and the rest is split evenly over the charts. `reachable` is the best bound known at the same price (`best_bound`), which no
system can choose. Errors are root mean squares over cells and draws to the truth of the source, as a share of the mean truth of what
is shown.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.markdown import show, table
from benchmarks.reliability.measure import Truth, measured_statement
from benchmarks.reliability.repeated import make_repeatable
from benchmarks.reliability.shop import COUNTRIES, DEVICES, LAWS, ROWS_PER_UNIT_MAX, days, money, named, quoted, rows_of_law, zipf
from benchmarks.reliability.statements import AskedStatement, Measured, N, Output

from lapwing.curator.curator import Curator
from lapwing.kernel.accounting import LOSS_UNITS
from lapwing.prices import epsilon_for

DAYS = 28
ADDRESSES = 2_000
EVENTS = ("view", "search", "basket", "purchase")
SOURCES = ("search", "link", "mail", "campaign", "direct")
AMOUNT_MAX = 1_000
MILLISECONDS_MAX = 10_000

_USERS = Output("users", Measured.UNITS)
_DAY, _COUNTRY, _DEVICE, _WEEK, _HOUR = ("day", "day"), ("country", "country"), ("device", "device"), ("week", "week"), ("hour", "hour")
_BOUGHT = "event = 'purchase'"
_FIVE = f"country IN ({', '.join(repr(name) for name in COUNTRIES[:5])})"
_JOINED = "web AS w JOIN users AS u ON w.user_id = u.user_id"


def _chart(outputs: tuple[Output, ...], *keys: tuple[str, str], where: str = "TRUE", known: bool = True) -> AskedStatement:
    return AskedStatement("dashboard", "web", "user_id", outputs, keys, where, known=known)


CHARTS: dict[str, AskedStatement] = {
    "page views by day": _chart((N,), _DAY),
    "page views by hour": _chart((N,), _HOUR),
    "users by day": _chart((_USERS,), _DAY),
    "users by day in five countries": _chart((_USERS,), _DAY, _COUNTRY, where=_FIVE),
    "revenue by country": _chart((Output("revenue", Measured.SUM, "amount", AMOUNT_MAX),), _COUNTRY, where=_BOUGHT),
    "revenue by day": _chart((Output("revenue", Measured.SUM, "amount", AMOUNT_MAX),), _DAY, where=_BOUGHT),
    "purchases by device": _chart((N,), _DEVICE, where=_BOUGHT),
    "conversion by device": _chart((Output("share", Measured.AVERAGE, f"CASE WHEN {_BOUGHT} THEN 1 ELSE 0 END", 1),), _DEVICE),
    "average order value": _chart((Output("average", Measured.AVERAGE, "amount", AMOUNT_MAX),), where=_BOUGHT),
    "top addresses": _chart((N,), ("url", "url"), known=False),
    "retention of a cohort by week": AskedStatement(
        "dashboard", _JOINED, "u.user_id", (_USERS,), (("w.week", "week"),), "u.signed_up BETWEEN DATE '2026-01-01' AND DATE '2026-01-07'"
    ),
    "new users by source": AskedStatement("dashboard", "users", "user_id", (_USERS,), (("source", "source"),)),
}


def write_web(directory: Path, *, law: str, users: int, seed: int = 12) -> int:
    """Write the sources and the catalogue; returns how many rows the web table has."""
    generator = np.random.default_rng([seed, sorted(LAWS).index(law)])  # noqa: TID251  (the owner's rows, not noise)
    home = zipf(generator, size=users, values=len(COUNTRIES), exponent=1.0)
    accounts = {
        "user_id": np.arange(users),
        "source": named(SOURCES, zipf(generator, size=users, values=len(SOURCES), exponent=0.6)),
        "signed_up": days(generator.integers(0, DAYS, users)),
    }
    pq.write_table(pa.table(accounts), directory / "users.parquet")
    user = np.repeat(np.arange(users), np.maximum(rows_of_law(law, generator, users) * 3 // 4, 1))
    generator.shuffle(user)
    size = len(user)
    day, hour = generator.integers(0, DAYS, size), generator.integers(0, 24, size)
    event = np.searchsorted(np.array([0.75, 0.9, 0.96]), generator.random(size))
    away = zipf(generator, size=size, values=len(COUNTRIES), exponent=1.0)
    amount = np.where(event == 3, money(generator, size=size, mean=3.5, deviation=0.9, most=AMOUNT_MAX), 0.0)
    web = {
        "user_id": user,
        "day": days(day),
        "week": day // 7,
        "hour": hour,
        "country": named(COUNTRIES, np.where(generator.random(size) < 0.9, home[user], away)),
        "device": named(DEVICES, zipf(generator, size=size, values=len(DEVICES), exponent=1.0)),
        "url": named(tuple(f"/page/{number}" for number in range(ADDRESSES)), zipf(generator, size=size, values=ADDRESSES, exponent=1.1)),
        "event": named(EVENTS, event),
        "amount": amount,
    }
    pq.write_table(pa.table(web), directory / "web.parquet")
    (directory / "lapwing.toml").write_text(catalogue(users=users), encoding="utf-8")
    return size


def catalogue(*, users: int) -> str:
    """The owner's declaration."""
    return f"""\
format = 1

[dataset]
id = "web"
unit = "user"
units = {users}

[budget]
epsilon = 2
delta = "1e-9"

[tables.users]
source = "users.parquet"
unit = "user_id"
one_row_per_unit = true
rows_max = 10_000_000

[tables.users.columns]
user_id = {{ type = "key", null = false }}
source = {{ type = "text", values = [{quoted(SOURCES)}], null = false }}
signed_up = {{ type = "date", min = 2026-01-01, max = 2026-01-{DAYS}, null = false }}

[tables.web]
source = "web.parquet"
unit = "user_id -> users.user_id"
rows_per_unit_max = {ROWS_PER_UNIT_MAX}
rows_max = 100_000_000

[tables.web.columns]
user_id = {{ type = "key", null = false }}
day = {{ type = "date", min = 2026-01-01, max = 2026-01-{DAYS}, null = false }}
week = {{ type = "integer", min = 0, max = {DAYS // 7 - 1}, null = false }}
hour = {{ type = "integer", min = 0, max = 23, null = false }}
country = {{ type = "text", values = [{quoted(COUNTRIES)}], null = false }}
device = {{ type = "text", values = [{quoted(DEVICES)}], null = false }}
url = {{ type = "text", null = false }}
event = {{ type = "text", values = [{quoted(EVENTS)}], null = false }}
amount = {{ type = "real", min = 0, max = {AMOUNT_MAX}, steps = 100, null = false }}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--law", action="append", choices=sorted(LAWS))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    records: list[dict[str, Any]] = []
    for law in options.law or ["pareto"]:
        with tempfile.TemporaryDirectory() as scratch:
            found = measured_dashboard(Path(scratch), law=law, users=options.users, draws=options.draws)
        records += found
        rows = [
            [
                record["chart"],
                f"{record['error'] / record['shown_truth']:.1%}",
                f"{record['best_error'] / record['shown_truth']:.1%}",
                f"{record['error_ratio']:.2f}",
                f"{record['covered'] / max(record['answers'], 1):.0%}",
                f"{record['shown']:.0f} of {record['cells']}",
                f"{record['seconds']:.1f}",
            ]
            for record in found
        ]
        head = ("chart", "error", "reachable", "ratio", "covered", "cells shown", "seconds")
        table(f"**{law}**: {found[0]['rows']:,} rows, {options.users:,} users", head, rows)
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=1), encoding="utf-8")


def measured_dashboard(directory: Path, *, law: str, users: int, draws: int) -> list[dict[str, Any]]:
    """A record for every chart."""
    rows = write_web(directory, law=law, users=users)
    truth = Truth(directory, ("users", "web"))
    records: list[dict[str, Any]] = []
    with Curator(directory, home=directory / "registry") as curator:
        curator.prepare(accept_losses=False)
        balance = curator.balance()
        share = Fraction(balance.remaining.loss, LOSS_UNITS) / len(CHARTS)
        epsilon = epsilon_for(rho=share, delta=balance.budget.delta_conversion)
        ledger = make_repeatable(curator)
        show(f"each chart: epsilon {float(epsilon):.3f} on its own")
        for chart, statement in CHARTS.items():
            started = time.monotonic()
            (record,) = measured_statement(curator, ledger, truth, statement, law=law, epsilons=[str(round(epsilon, 6))], draws=draws)
            seconds = (time.monotonic() - started) / record["draws"]
            records.append({"chart": chart, "rows": rows, "users": users, "seconds": seconds, **record})
    return records


if __name__ == "__main__":
    main()
