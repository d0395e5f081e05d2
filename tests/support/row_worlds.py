"""Worlds in which every row is a unit, and their neighbours: made so that naive ways to tell rows apart show.

Rows come from small pools, so that many are equal; texts are such that unequal rows are equal once they are joined without lengths; what
cannot be kept (NULL in a column that must not be, values out of bounds) makes different records equal rows. A neighbour has one record
less, or another one in its place, which may be equal to one that is there, or be left out.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import Declaration, load
from tests.support.reference import Raw, RawDay, RawMoment, sanitise

CATALOGUE = """
format = 1
[dataset]
id = "answers"
unit = "row"
neighbours = "{neighbours}"
{units}
[budget]
epsilon = {epsilon}
delta = {delta}
[tables.answers]
source = "{source}"
unit = "row"
rows_max = 100_000
{appended}
[tables.answers.columns]
word = {{ type = "text" }}
note = {{ type = "text" }}
grade = {{ type = "text", values = ["a", "b"], other = "b" }}
age = {{ type = "integer", min = 18, max = 90 }}
score = {{ type = "real", min = -100, max = 50, steps = 4 }}
day = {{ type = "date", min = 2024-01-01, max = 2024-12-31 }}
at = {{ type = "timestamp", min = 2024-01-01T00:00:00, max = 2024-12-31T23:59:59 }}
flag = {{ type = "boolean" }}
town = {{ type = "integer", min = 0, max = 3, null = false }}
[public.towns]
source = "towns.parquet"
key = "town"
[public.towns.columns]
town = {{ type = "integer", min = 0, max = 3, null = false }}
country = {{ type = "text" }}
"""
SCHEMA = pa.schema(
    [
        ("word", pa.string()),
        ("note", pa.string()),
        ("grade", pa.string()),
        ("age", pa.int32()),
        ("score", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("flag", pa.bool_()),
        ("town", pa.int32()),
        ("seq", pa.int64()),
    ]
)
TEXTS = (None, "", "n", ",", "a", "a,", ",a", "1:a", "1:a,1:a", "0:", "|", "ä", "n,n", "x" * 300)
"""NULL, nothing, and what looks like the writing of other values."""

Row = dict[str, object]
World = tuple[Row, ...]


def random_row(rng: random.Random, *, rich: bool = True) -> Row:
    """A record; without ``rich`` from so small a pool that most are equal to others."""
    row: Row = {
        "word": rng.choice(TEXTS if rich else ("", None)),
        "note": rng.choice(TEXTS if rich else ("a", "a", None)),
        "grade": rng.choice(("a", "b", "c", None) if rich else ("b", "c")),
        "age": rng.choice((18, 90, 47, None, -5) if rich else (90, 400)),
        "score": rng.choice((-100.0, 50.0, 0.1, float("nan"), float("-inf"), 1e300, None) if rich else (50.0, 1e9)),
        "day": None,
        "at": None,
        "flag": rng.choice((True, False, None)) if rich else True,
        "town": rng.choice((0, 1, 2, 3, 3, None) if rich else (3, 3, None)),
    }
    if rich and rng.random() < 0.5:
        row["day"] = rng.choice((datetime.date(2024, 1, 1), datetime.date(2024, 12, 31), datetime.date(1900, 1, 1)))
        row["at"] = rng.choice((datetime.datetime(2024, 6, 1, 12), datetime.datetime(2024, 6, 1, 12, 0, 0, 1), None))
    return row


def random_world(rng: random.Random, *, rows: int = 8) -> World:
    """Records, of which many are equal."""
    made = [random_row(rng, rich=rng.random() < 0.6) for _ in range(rows)]
    return tuple(rng.choice(made) if rng.random() < 0.3 else row for row in made)


def neighbours_of(world: World, relation: str, rng: random.Random) -> Iterator[World]:
    """Every record removed; for bounded neighbours also every one replaced: by an equal one of another, by a new one, by one left out."""
    for index in range(len(world)):
        rest = world[:index] + world[index + 1 :]
        yield rest
        if relation == "bounded":
            others: list[Row] = [random_row(rng), {**random_row(rng), "town": None}]
            if rest:
                others.append(rng.choice(rest))
            for other in others:
                yield (*rest, other)


def declare(
    world: World,
    directory: Path,
    *,
    neighbours: str = "unbounded",
    delta: str = "0",
    epsilon: str = "1",
    seed: int = 0,
    files: int = 2,
    appended: bool = False,
    single: bool = False,
) -> Declaration:
    """Write the sources, in an order and files that depend on ``seed`` only, columns in another order in each, and read the catalogue.

    ``single`` is for engines whose sources are tables: one file that is the source, ``answers.parquet``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    shuffled, listed = random.Random(seed), [{**row, "seq": number} for number, row in enumerate(world)]
    shuffled.shuffle(listed)
    if single:
        pq.write_table(pa.Table.from_pylist(listed, SCHEMA), directory / "answers.parquet")
    for number in range(0 if single else files):
        write_file(directory, number, listed[number::files], random.Random(seed + number))
    towns = [{"town": i, "country": ("north", "south")[i % 2]} for i in (0, 1, 2, 3, 3)]
    pq.write_table(pa.Table.from_pylist(towns, pa.schema([("town", pa.int32()), ("country", pa.string())])), directory / "towns.parquet")
    units = "units = 100" if neighbours == "bounded" else ""
    grows = 'appended_by = "seq"' if appended else ""
    source = "answers.parquet" if single else "answers-*.parquet"
    text = CATALOGUE.format(neighbours=neighbours, delta=delta, epsilon=epsilon, units=units, appended=grows, source=source)
    (directory / "lapwing.toml").write_text(text, encoding="utf-8")
    return load(directory / "lapwing.toml")


def write_file(directory: Path, number: int, rows: Sequence[Row], rng: random.Random) -> None:
    """One file of the source, its columns in some order."""
    names = rng.sample(SCHEMA.names, len(SCHEMA.names))
    pq.write_table(pa.Table.from_pylist(list(rows), SCHEMA).select(names), directory / f"answers-{number}.parquet")


def expected_units(world: World, declaration: Declaration, ranking_key: bytes) -> Counter[str]:
    """The units of a world, computed a second time: SHA-256 of key, table and the clean row, each value marked off, and a number."""
    table = declaration.table("answers")
    found: Counter[str] = Counter()
    for row in world:
        clean = [sanitise(_raw(row[column.name]), column.domain, column.other) for column in table.columns]
        if clean[-1] is not None:
            text = f"{ranking_key.hex()}|answers|" + ",".join(map(_written, clean))
            found[hashlib.sha256(text.encode()).hexdigest()] += 1
    return Counter(f"{digest}:{number}" for digest, copies in found.items() for number in range(1, copies + 1))


def _raw(value: object) -> Raw:
    match value:
        case datetime.datetime():
            return RawMoment((value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
        case datetime.date():
            return RawDay((value - datetime.date(1970, 1, 1)).days)
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise TypeError(type(value))


def _written(value: object) -> str:
    match value:
        case None:
            return "n"
        case bool():
            return "t" if value else "f"
        case str():
            return f"{len(value.encode())}:{value}"
        case _:
            return str(value)


def all_worlds(rows: Sequence[Row]) -> Iterator[World]:
    """Every part of some records, the empty one among them."""
    for chosen in itertools.product((False, True), repeat=len(rows)):
        yield tuple(row for row, here in zip(rows, chosen, strict=True) if here)
