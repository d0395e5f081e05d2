"""Worlds whose rows have nothing in common but what is declared of them: several tables, keys open and declared, dates, NULL, decimals."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.receipts import new_key

CATALOGUE = """
format = 1
[dataset]
id = "blind"
unit = "person"
neighbours = "{neighbours}"
units = 2_000
[budget]
epsilon = {epsilon}
delta = {delta}
statistics_share = 0.05
{order}
[ledger]
keys = "keys"
[tables.people]
source = "people.parquet"
unit = "id"
one_row_per_unit = true
rows_max = 100_000
[tables.people.columns]
id = {{ type = "key", of = "text" }}
age = {{ type = "integer", min = 0, max = 120, null = false }}
income = {{ type = "real", min = 0, max = 100_000, steps = 1 }}
sex = {{ type = "text", values = ["f", "m", "x"] }}
note = {{ type = "text" }}
smoker = {{ type = "boolean" }}
[tables.visits]
source = "visits.parquet"
unit = "id"
rows_per_unit_max = 12
rows_max = 1_000_000
[tables.visits.columns]
id = {{ type = "key", of = "text" }}
visit = {{ type = "key" }}
code = {{ type = "text" }}
kind = {{ type = "text", values = ["a", "b", "c", "d"] }}
place = {{ type = "integer", min = 1, max = 6 }}
cost = {{ type = "real", min = -50, max = 1_000, steps = 4 }}
fee = {{ type = "real", min = 0, max = 500, steps = 100 }}
day = {{ type = "date", min = 2024-01-01, max = 2024-12-31 }}
ts = {{ type = "timestamp", min = 2024-01-01T00:00:00, max = 2024-12-31T23:59:59 }}
[tables.drugs]
source = "drugs.parquet"
unit = "visit -> visits.visit"
rows_per_unit_max = 15
rows_max = 1_000_000
[tables.drugs.columns]
visit = {{ type = "key" }}
drug = {{ type = "text" }}
dose = {{ type = "integer", min = 0, max = 500 }}
[public.places]
source = "places.parquet"
key = "place"
[public.places.columns]
place = {{ type = "integer", min = 1, max = 6 }}
city = {{ type = "text" }}
"""

SCHEMAS = {
    "people": pa.schema(
        [
            ("id", pa.string()),
            ("age", pa.int64()),
            ("income", pa.float64()),
            ("sex", pa.string()),
            ("note", pa.string()),
            ("smoker", pa.bool_()),
        ]
    ),
    "visits": pa.schema(
        [
            ("id", pa.string()),
            ("visit", pa.int64()),
            ("code", pa.string()),
            ("kind", pa.string()),
            ("place", pa.int32()),
            ("cost", pa.float64()),
            ("fee", pa.decimal128(20, 2)),
            ("day", pa.date32()),
            ("ts", pa.timestamp("us")),
        ]
    ),
    "drugs": pa.schema([("visit", pa.int64()), ("drug", pa.string()), ("dose", pa.int64())]),
}
NEW_YEAR = datetime.datetime(2024, 1, 1)

Row = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """Source rows of the three protected tables."""

    people: tuple[Row, ...] = ()
    visits: tuple[Row, ...] = ()
    drugs: tuple[Row, ...] = ()

    def __add__(self, other: Rows) -> Rows:
        return Rows(self.people + other.people, self.visits + other.visits, self.drugs + other.drugs)


def _ordinary(units: int, *, seed: int, dear: float, kinds: tuple[int, ...]) -> Rows:
    people, visits, drugs = [], [], []
    for number in range(units):
        draw, unit = random.Random(f"{seed} {number}"), f"p{number}"
        people.append(
            {
                "id": unit,
                "age": draw.randint(0, 99),
                "income": float(int(draw.lognormvariate(9.5, 1)) % 90_000),
                "sex": draw.choice(("f", "m", None)),
                "note": draw.choice(("fine", "Well  ", "a%b_c", "İstanbul ß", None)),
                "smoker": draw.choice((True, False, None)),
            }
        )
        for place in range(draw.choice((0, 1, 1, 2, 3, 5))):
            visit = 100 * number + place
            moment = NEW_YEAR + datetime.timedelta(seconds=draw.randrange(366 * 86_400))
            visits.append(
                {
                    "id": unit,
                    "visit": visit,
                    "code": f"J{draw.randrange(20):02}" if draw.random() < 0.9 else f"Z{visit}",
                    "kind": draw.choices("abcd", kinds)[0],
                    "place": draw.randint(1, 6),
                    "cost": round(draw.lognormvariate(3, 1) * dear, 2),
                    "fee": Decimal(draw.randrange(40_000)) / 100,
                    "day": moment.date(),
                    "ts": moment,
                }
            )
            listed = draw.choices(("A", "B", "dd", None), k=draw.choice((0, 1, 1, 3)))
            drugs += [{"visit": visit, "drug": drug, "dose": draw.randint(0, 500)} for drug in listed]
    return Rows(tuple(people), tuple(visits), tuple(drugs))


def _extreme_unit() -> Rows:
    """One who has more of everything than anybody: rows, groups of its own, and values at and beyond both ends."""
    people: Row = {"id": "target", "age": 119, "income": 1e9, "sex": "x", "note": "SECRET", "smoker": True}
    visits = [
        {
            "id": "target",
            "visit": 10_000_000 + number,
            "code": f"T{number}" if number % 2 else "J00",
            "kind": "abcd"[number % 4],
            "place": 1 + number % 6,
            "cost": 1e9 if number % 3 else -1e9,
            "fee": Decimal(500),
            "day": (NEW_YEAR + datetime.timedelta(days=7 * number % 366)).date(),
            "ts": NEW_YEAR + datetime.timedelta(days=150, seconds=number // 3),
        }
        for number in range(60)
    ]
    drugs = [{"visit": visit["visit"], "drug": drug, "dose": 500} for visit in visits for drug in ("A", "B", "Q9")]
    return Rows((people,), tuple(visits), tuple(drugs))


def _hostile() -> Rows:
    """Values that preparation has to replace, or leave out, in every column."""
    wrong = (float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7e308, None)
    texts = ("", "x" * 2_000, "a\nb", '"', "'; --", "\u202e", None)
    days = (datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, datetime.date(2024, 2, 29))
    people, visits, drugs = [], [], []
    for number in range(42):
        unit = (f"h{number}", "ß" * (number + 1), None)[number % 3] if number % 7 else "h0"
        some, text = wrong[number % 7], texts[number // 2 % 7]
        age, smoker = (-(2**63), 2**63 - 1, 50)[number % 3], (True, None)[number % 2]
        people.append({"id": unit, "age": age, "income": some, "sex": text, "note": text, "smoker": smoker})
        for visit in (number, 1_000 + number, None):
            day = days[number % 4]
            visits.append(
                {
                    "id": unit,
                    "visit": visit,
                    "code": text,
                    "kind": ("a", "Z", None)[number % 3],
                    "place": (-(2**31), 2**31 - 1, 3)[number % 3],
                    "cost": some,
                    "fee": (Decimal(10) ** 17, Decimal("-0.01"), None)[number % 3],
                    "day": day,
                    "ts": None if day is None else datetime.datetime.combine(day, datetime.time(23, 59, 59)),
                }
            )
            drugs.append({"visit": (visit, 77_777)[number % 2], "drug": text, "dose": (2**62, -1, None)[number % 3]})
    return Rows(tuple(people), tuple(visits), tuple(drugs))


def _plain() -> Rows:
    return _ordinary(150, seed=1, dear=1.0, kinds=(4, 3, 2, 1))


WORLDS: dict[str, Callable[[], Rows]] = {
    "with an extreme unit": lambda: _plain() + _extreme_unit(),
    "quite different": lambda: _ordinary(40, seed=9, dear=50.0, kinds=(0, 0, 1, 9)),
    "empty": Rows,
    "hostile": _hostile,
    "without the extreme unit": _plain,
}
"""All others are compared with the first."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is declared beside tables: who is whose neighbour, and how losses are added up."""

    neighbours: str = "unbounded"
    delta: str = '"2^-40"'
    order: str = ""
    epsilon: int = 1_000


KINDS = {
    "unbounded, approximate": Kind(),
    "bounded, pure": Kind(neighbours="bounded", delta="0"),
    "unbounded, pure": Kind(delta="0"),
    "bounded, approximate": Kind(neighbours="bounded"),
    "unbounded, union of filters": Kind(order="order = 64"),
    "a budget that runs out": Kind(epsilon=10),
}


def write_world(directory: Path, world: str, kind: Kind, keys: Path) -> None:
    """Sources and catalogue; the key that signs receipts is the same in every world."""
    directory.mkdir(parents=True)
    rows = WORLDS[world]()
    for name, schema in SCHEMAS.items():
        pq.write_table(pa.Table.from_pylist(list(getattr(rows, name)), schema=schema), directory / f"{name}.parquet")
    pq.write_table(
        pa.table({"place": [1, 2, 3, 4, 5], "city": ["Ambridge", "Borchester", "Ambridge", None, "E"]}), directory / "places.parquet"
    )
    words = {"neighbours": kind.neighbours, "delta": kind.delta, "order": kind.order, "epsilon": kind.epsilon}
    (directory / "lapwing.toml").write_text(CATALOGUE.format(**words), encoding="utf-8")
    (directory / "keys").symlink_to(keys)
    state = directory / ".lapwing"
    state.mkdir(mode=0o700)
    # the key that orders rows is drawn without looking at them
    (state / "ranking.key").write_bytes(b"blind rows" * 3 + b"!!")


def signing_keys(directory: Path) -> Path:
    """A directory with a new key."""
    directory.mkdir(exist_ok=True)
    new_key(directory)
    return directory


def open_world(directory: Path) -> lw.DataSet:
    """The prepared data set. What preparation says is for the owner; what it buys goes through the doors."""
    data = lw.open(directory, home=directory.parent / "home")
    data.prepare(accept_losses=True)
    return data
