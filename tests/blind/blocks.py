"""Worlds with blocks of time whose rows have other days, and what an analyst is told while they grow and are corrected."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.curator import block_life
from lapwing.kernel.calendar import to_days
from tests.blind.conversation import Transcript, asks, books, replays
from tests.blind.worlds import Row

CATALOGUE = """
format = 1
[dataset]
id = "blocks"
unit = "person"
neighbours = "{neighbours}"
units = 500
[budget]
epsilon = {epsilon}
delta = {delta}
statistics_share = 0.05
{order}
[ledger]
keys = "keys"
[blocks]
every = "day"
person_cap = {cap}
grace_days = 1
keep = 9
[tables.people]
source = "people.parquet"
unit = "id"
one_row_per_unit = true
[tables.people.columns]
id = {{ type = "key" }}
land = {{ type = "text", values = ["de", "fr", "us"] }}
[tables.events]
source = "events.parquet"
unit = "id"
blocks = "day"
rows_per_unit_max = 5
rows_max = 10_000
[tables.events.columns]
id = {{ type = "key" }}
day = {{ type = "date", min = 2026-03-01, max = 2027-12-31 }}
kind = {{ type = "text", values = ["a", "b"] }}
code = {{ type = "text" }}
amount = {{ type = "integer", min = 0, max = 20 }}
"""
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("kind", pa.string()), ("code", pa.string()), ("amount", pa.int64())])
START = datetime.date(2026, 3, 1)


def day(number: int) -> datetime.date:
    """The day with this number, from 0."""
    return START + datetime.timedelta(days=number)


def _rows(seed: int, number: int, days: list[int | None], *, persons: int = 30, amount: int = 25) -> list[Row]:
    draw = random.Random(seed)
    found = []
    for _ in range(number):
        chosen, kind, code = draw.choice(days), draw.choice(["a", "b", None]), draw.choice(["x", "y", f"own {seed}", None])
        when = None if chosen is None else day(chosen)
        found.append({"id": draw.randrange(persons), "day": when, "kind": kind, "code": code, "amount": draw.randint(-5, amount)})
    return found


@dataclass(frozen=True)
class Grows:
    """The rows of events at first, after a day, and when blocks are corrected."""

    first: list[Row]
    later: list[Row]
    corrected: list[Row]


def _steady() -> Grows:
    first = _rows(1, 400, [*range(14), None])
    late = _rows(2, 60, [2, 3, 4])
    return Grows(first, first + late + _rows(3, 40, [11, 12, 13]), _rows(4, 500, [*range(15)]))


def _of_open_days() -> Grows:
    return Grows(_rows(5, 80, [12, 13, 300]), _rows(5, 90, [12, 13, 400, None]), _rows(6, 10, [200]))


def _of_one_day() -> Grows:
    crowd = _rows(7, 900, [4], persons=2, amount=10**9)
    return Grows(crowd, crowd + _rows(8, 500, [4, 5], persons=400), [])


def _before_the_calendar() -> Grows:
    return Grows(_rows(9, 50, [-9_000, -1, None]), _rows(9, 50, [-1]) + _rows(10, 300, [10, 11]), _rows(11, 50, [None]))


WORLDS: dict[str, Callable[[], Grows]] = {
    "steady": _steady,
    "of open days": _of_open_days,
    "of one day": _of_one_day,
    "before the calendar": _before_the_calendar,
    "empty": lambda: Grows([], [], []),
}
"""All others are compared with the first. There 14 days have rows, 10 of them are closed, and some rows come late."""


@dataclass(frozen=True, slots=True)
class BlockKind:
    """What is declared beside tables."""

    neighbours: str = "unbounded"
    delta: str = '"2^-40"'
    order: str = ""
    epsilon: int = 1_000
    cap: str = '"none"'


KINDS = {
    "unbounded, approximate": BlockKind(),
    "bounded, pure": BlockKind(neighbours="bounded", delta="0"),
    "blocks that run out": BlockKind(epsilon=3),
    "a person's cap": BlockKind(order="order = 32", epsilon=5, cap="9"),
}
COUNT = "SELECT COUNT(*) AS n FROM events"
STATEMENTS = (
    COUNT,
    f"{COUNT} WHERE day >= DATE '2026-03-06'",
    f"{COUNT} WHERE day = DATE '2026-03-05'",
    "SELECT day, COUNT(*) AS n, AVG(amount) AS a FROM events WHERE day BETWEEN DATE '2026-03-04' AND DATE '2026-03-07' GROUP BY day",
    "SELECT kind, SUM(amount) AS s, COUNT(DISTINCT id) AS u FROM events WHERE day > DATE '2026-03-04' GROUP BY kind",
    "SELECT code, COUNT(*) AS n FROM events WHERE day > DATE '2026-03-03' GROUP BY code",
    "SELECT land, COUNT(*) AS n FROM events JOIN people USING (id) WHERE day > DATE '2026-03-05' GROUP BY land",
    "SELECT COUNT(*) AS n FROM people",
    "SELECT MEDIAN(amount) AS m, MAX(day) AS d FROM events WHERE day < DATE '2026-03-09'",
    "SELECT COUNT(*) AS n FROM (SELECT id, COUNT(*) AS c FROM events GROUP BY id) WHERE c > 2",
    f"{COUNT} WHERE day > CURRENT_DATE - INTERVAL 5 DAY",
)
REFUSED = (
    f"{COUNT} WHERE day >= DATE '2026-03-20'",
    f"{COUNT} WHERE day < DATE '2026-03-02'",
    "SELECT id, COUNT(*) AS n FROM events GROUP BY id",
    f"{COUNT} WHERE month = 3",
)


def write_rows(directory: Path, rows: list[Row]) -> None:
    """The source of events."""
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), directory / "events.parquet")


def write_world(directory: Path, world: str, kind: BlockKind, keys: Path) -> None:
    """Sources and catalogue; keys are the same in every world."""
    directory.mkdir(parents=True)
    grows = WORLDS[world]()
    people = [{"id": row["id"], "land": ("de", "fr", "zz")[row["amount"] % 3]} for row in grows.first]
    pq.write_table(pa.Table.from_pylist(people, pa.schema([("id", pa.int64()), ("land", pa.string())])), directory / "people.parquet")
    write_rows(directory, grows.first)
    words = {name: getattr(kind, name) for name in ("neighbours", "delta", "order", "epsilon", "cap")}
    (directory / "lapwing.toml").write_text(CATALOGUE.format(**words), encoding="utf-8")
    (directory / "keys").symlink_to(keys)
    state = directory / ".lapwing"
    state.mkdir(mode=0o700)
    (state / "ranking.key").write_bytes(b"blind rows" * 3 + b"!!")


@contextmanager
def clock() -> Iterator[Callable[[int], None]]:
    """Sets the day by which blocks close."""
    with pytest.MonkeyPatch.context() as patch:
        yield lambda number: patch.setattr(block_life, "today", lambda: to_days(day(number)))


def conversation(directory: Path, world: str) -> Transcript:
    """All that is told while a world grows. What preparation says, and how many rows were late, is for the owner."""
    told, grows = Transcript(), WORLDS[world]()
    with clock() as today:
        today(11)  # the days 0 to 9 are closed, and 1 to 9 are kept
        with lw.open(directory, home=directory.parent / "home") as data:
            data.prepare(accept_losses=True)
            asks(told, data, [*STATEMENTS, *REFUSED])
            asks(told, data, STATEMENTS[:2], epsilon=None)
            told.run("release", lambda: data.release(lw.Marginals("kind"), name="m", table="events", epsilon=1).run(), told.release)
            books(told, data)

            write_rows(directory, grows.later)
            today(12)
            told.run("grow", partial(data.prepare, accept_losses=True), told.text)
            replays(told, data, STATEMENTS)
            asks(told, data, [*STATEMENTS, REFUSED[0]])
            books(told, data)

            write_rows(directory, grows.corrected)
            told.run("correct", partial(data.prepare, correct=(day(4), day(5)), accept_losses=True), told.text)
            told.run("correct an open day", partial(data.prepare, correct=(day(12), day(12)), accept_losses=True), told.text)
            replays(told, data, STATEMENTS)
            asks(told, data, [*STATEMENTS, *REFUSED])
            for number in range(4):
                asks(told, data, [f"{COUNT} WHERE day = DATE '2026-03-06' AND amount > {number}"])
            books(told, data)
    return told
