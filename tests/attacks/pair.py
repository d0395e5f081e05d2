"""Two neighbouring worlds on disk: w1 holds the target, w0 does not. The target's rows are hostile in every column.

Canaries stand wherever a row can hold text: as the identifier of the unit, in free text, and as a value outside a declared list.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.catalog import Settings

CANARY = "x-secret-"
TARGET = f"{CANARY}id-777"
OTHERS = 40

CATALOGUE = """
format = 1
[dataset]
id = "two-worlds"
unit = "person"
neighbours = "{neighbours}"
units = {units}
[budget]
epsilon = {epsilon}
delta = {delta}
statistics_share = {statistics_share}
[tables.people]
source = "people.parquet"
unit = "id"
one_row_per_unit = true
rows_max = 1_000
[tables.people.columns]
id = {{ type = "key", of = "text" }}
num = {{ type = "integer", min = -1000, max = 1000 }}
big = {{ type = "integer", min = -1_000_000_000_000, max = 1_000_000_000_000 }}
x = {{ type = "real", min = -1000, max = 1000, steps = 100 }}
d = {{ type = "date", min = 2000-01-01, max = 2030-12-31 }}
ts = {{ type = "timestamp", min = 2000-01-01T00:00:00, max = 2030-12-31T23:59:59 }}
word = {{ type = "text", values = ["alpha", "beta", "10"] }}
rare = {{ type = "text", values = ["f", "m"] }}
note = {{ type = "text" }}
flag = {{ type = "boolean" }}
[tables.events]
source = "events.parquet"
unit = "id"
rows_per_unit_max = 6
rows_max = 10_000
[tables.events.columns]
id = {{ type = "key", of = "text" }}
kind = {{ type = "text" }}
place = {{ type = "integer", min = 1, max = 4 }}
amount = {{ type = "real", min = 0, max = 100, steps = 4 }}
day = {{ type = "date", min = 2024-01-01, max = 2024-12-31 }}
[public.places]
source = "places.parquet"
key = "place"
[public.places.columns]
place = {{ type = "integer", min = 1, max = 4 }}
city = {{ type = "text" }}
"""

_PEOPLE = pa.schema(
    [
        ("id", pa.string()),
        ("num", pa.int64()),
        ("big", pa.int64()),
        ("x", pa.float64()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("word", pa.string()),
        ("rare", pa.string()),
        ("note", pa.string()),
        ("flag", pa.bool_()),
    ]
)
_EVENTS = pa.schema([("id", pa.string()), ("kind", pa.string()), ("place", pa.int32()), ("amount", pa.float64()), ("day", pa.date32())])

Row = dict[str, Any]

HOSTILE: tuple[Row, ...] = (
    {"num": 777, "big": 2**63 - 1, "x": float("nan"), "d": 2**31 - 2, "ts": 2**63 - 2},
    {"num": -(2**63), "big": -(2**63), "x": float("inf"), "d": -(2**31) + 2, "ts": -(2**63) + 2},
    {"num": 777, "big": 0, "x": -0.0, "d": 0, "ts": 0},
    {"num": 777, "big": 777, "x": 5e-324, "d": 2_932_896, "ts": 253_402_300_799_999_999},
    {"num": 777, "big": 1, "x": -1.7976931348623157e308, "d": -719_528, "ts": -62_167_219_200_000_000},
)
"""Values of the target's row, one world each."""


def _people(rng: random.Random, hostile: Row | None) -> pa.Table:
    listed: list[Row] = []
    for number in range(OTHERS):
        day = datetime.date(2010, 1, 1) + datetime.timedelta(days=rng.randrange(3_000))
        listed.append(
            {
                "id": f"person-{number}",
                "num": rng.randint(-400, 400),
                "big": rng.randint(-1000, 1000),
                "x": rng.randint(-500, 500) / 100,
                "d": (day - datetime.date(1970, 1, 1)).days,
                "ts": (day - datetime.date(1970, 1, 1)).days * 86_400_000_000 + rng.randrange(86_400) * 1_000_000,
                "word": rng.choice(("alpha", "beta", "10", None)),
                "rare": None,
                "note": rng.choice(("fine", "well", None)),
                "flag": rng.choice((True, False, None)),
            }
        )
    if hostile is not None:
        own = {"id": TARGET, "word": f"{CANARY}word", "rare": "f", "note": f"{CANARY}note", "flag": True, **hostile}
        listed.insert(OTHERS // 2, own)
    columns = []
    for field in _PEOPLE:
        values = [row[field.name] for row in listed]
        if field.name == "d":
            columns.append(pa.array(values, pa.int32()).view(pa.date32()))
        elif field.name == "ts":
            columns.append(pa.array(values, pa.int64()).view(pa.timestamp("us")))
        else:
            columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=_PEOPLE)


def _events(rng: random.Random, *, target: bool) -> pa.Table:
    listed: list[Row] = []
    for number in range(OTHERS):
        for _ in range(rng.choice((1, 2, 3))):
            day = datetime.date(2024, 1, 1) + datetime.timedelta(days=rng.randrange(366))
            kind, amount = rng.choice(("call", "visit", "letter")), rng.randint(0, 400) / 4
            listed.append({"id": f"person-{number}", "kind": kind, "place": rng.randint(1, 4), "amount": amount, "day": day})
    if target:
        for number in range(20):
            kind = f"{CANARY}kind-{number}"
            listed.insert(number, {"id": TARGET, "kind": kind, "place": 2, "amount": 100.0, "day": datetime.date(2024, 7, 7)})
    return pa.Table.from_pylist(listed, schema=_EVENTS)


@dataclass(frozen=True)
class Pair:
    """The same data set with the target and without it."""

    w1: lw.DataSet
    w0: lw.DataSet

    def __iter__(self) -> Any:
        return iter((self.w1, self.w0))

    def close(self) -> None:
        self.w1.close()
        self.w0.close()


def write_world(
    directory: Path,
    *,
    hostile: Row | None,
    epsilon: str = "1_000",
    delta: str = '"2^-40"',
    statistics_share: str = "0",
    neighbours: str = "unbounded",
    seed: int = 7,
) -> None:
    """Sources and catalogue of one world; ``hostile`` is the target's row, None leaves the target out."""
    directory.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    pq.write_table(_people(rng, hostile), directory / "people.parquet")
    pq.write_table(_events(rng, target=hostile is not None), directory / "events.parquet")
    pq.write_table(pa.table({"place": [1, 2, 3, 4], "city": ["Ambridge", "Borchester", "Ambridge", None]}), directory / "places.parquet")
    words = {"neighbours": neighbours, "units": 1_000, "epsilon": epsilon, "delta": delta, "statistics_share": statistics_share}
    (directory / "lapwing.toml").write_text(CATALOGUE.format(**words))
    # Neighbouring worlds share the key that orders rows: it is drawn without looking at them.
    state = directory / ".lapwing"
    state.mkdir(mode=0o700, exist_ok=True)
    (state / "ranking.key").write_bytes(b"two worlds" * 3 + b"!!")


def open_world(directory: Path, *, settings: Settings | None = None) -> lw.DataSet:
    """The prepared data set."""
    data = lw.open(directory, settings=settings, home=directory.parent / f"home-{directory.name}")
    if not data.curator.engine.versions():
        data.prepare(accept_losses=True)
    return data


def make_pair(directory: Path, *, hostile: Row = HOSTILE[0], **words: str) -> Pair:
    """Both worlds, prepared."""
    for name, row in (("w1", hostile), ("w0", None)):
        write_world(directory / name, hostile=row, **words)  # type: ignore[arg-type]
    return Pair(open_world(directory / "w1"), open_world(directory / "w0"))
