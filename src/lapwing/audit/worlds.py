"""Pairs of neighbouring data sets, designed to break contribution bounding.

A *world* consists of raw source rows under one catalogue: a small clinic with a table of one row per unit, a child table, a grandchild
table reached through a foreign key, and a public table. Generators include what breaks naive bounding: units with many equal rows, extremes
at both ends, NULLs, keys that occur in many rows of one unit, children without a parent, duplicate rows of a table that should have one per
unit. Neighbours differ in the *source*: one unit is removed, or replaced by another (or by nothing); the order of source rows is shuffled,
because it is not data.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import Declaration, load

EDGE = "0.49999999999999994"
"""The largest double below 1/2: on the grid of whole numbers, float arithmetic rounds it up to 1, exact arithmetic down to 0."""

CATALOGUE = """
format = 1
[dataset]
id = "oracle"
unit = "person"
neighbours = "{neighbours}"
{units}
[budget]
epsilon = 1
delta = {delta}
[tables.people]
source = "people.parquet"
unit = "person_id"
one_row_per_unit = true
rows_max = 10_000
[tables.people.columns]
person_id = {{ type = "key" }}
age = {{ type = "integer", min = 18, max = 90 }}
sex = {{ type = "text", values = ["f", "m"] }}
score = {{ type = "real", min = -100, max = 50, steps = 4 }}
[tables.visits]
source = "visits.parquet"
unit = "person_id"
rows_per_unit_max = 12
rows_max = 100_000
[tables.visits.columns]
person_id = {{ type = "key" }}
visit_id = {{ type = "key" }}
clinic = {{ type = "integer", min = 0, max = 3 }}
day = {{ type = "date", min = 2024-01-01, max = 2024-12-31 }}
cost = {{ type = "real", min = 0, max = 500, steps = 100 }}
change = {{ type = "real", min = -100, max = 100, steps = 2 }}
late = {{ type = "integer", min = 50, max = 100 }}
flag = {{ type = "boolean" }}
[tables.drugs]
source = "drugs.parquet"
unit = "visit_id -> visits.visit_id"
rows_per_unit_max = 20
rows_max = 100_000
[tables.drugs.columns]
visit_id = {{ type = "key" }}
drug = {{ type = "text" }}
dose = {{ type = "real", min = 0, max = 10, steps = 2 }}
[public.clinics]
source = "clinics.parquet"
key = "clinic"
[public.clinics.columns]
clinic = {{ type = "integer", min = 0, max = 3 }}
city = {{ type = "text" }}
"""

SCHEMAS: Mapping[str, pa.Schema] = {
    "people": pa.schema([("person_id", pa.int64()), ("age", pa.int32()), ("sex", pa.string()), ("score", pa.float64())]),
    "visits": pa.schema(
        [
            ("person_id", pa.int64()),
            ("visit_id", pa.int64()),
            ("clinic", pa.int32()),
            ("day", pa.date32()),
            ("cost", pa.float64()),
            ("change", pa.float64()),
            ("late", pa.int32()),
            ("flag", pa.bool_()),
        ]
    ),
    "drugs": pa.schema([("visit_id", pa.int64()), ("drug", pa.string()), ("dose", pa.float64())]),
    "clinics": pa.schema([("clinic", pa.int32()), ("city", pa.string())]),
}

Row = dict[str, object]


@dataclass(frozen=True)
class World:
    """Raw rows of every private source table."""

    people: tuple[Row, ...]
    visits: tuple[Row, ...]
    drugs: tuple[Row, ...]

    def units(self) -> list[int]:
        """Every unit that has a row anywhere."""
        people = {row["person_id"] for row in (*self.people, *self.visits) if row["person_id"] is not None}
        return sorted(unit for unit in people if isinstance(unit, int))


def declare(
    world: World,
    directory: Path,
    *,
    neighbours: str,
    delta: str,
    seed: int = 0,
    catalogue: str = CATALOGUE,
    schemas: Mapping[str, pa.Schema] = SCHEMAS,
) -> Declaration:
    """Write the world's sources, in an order that depends on ``seed`` only, and read its catalogue."""
    directory.mkdir(parents=True, exist_ok=True)
    clinics: list[Row] = [{"clinic": i, "city": ("a", "b")[i % 2]} for i in range(4)]
    clinics.append({"clinic": 3, "city": "duplicate key"})
    shuffled = random.Random(seed)
    for name, rows in (("people", world.people), ("visits", world.visits), ("drugs", world.drugs), ("clinics", tuple(clinics))):
        listed = list(rows)
        if name != "clinics":
            shuffled.shuffle(listed)
        pq.write_table(pa.Table.from_pylist(listed, schema=schemas[name]), directory / f"{name}.parquet")
    units = "units = 100" if neighbours == "bounded" else ""
    (directory / "lapwing.toml").write_text(catalogue.format(neighbours=neighbours, delta=delta, units=units))
    return load(directory / "lapwing.toml")


def random_world(rng: random.Random, *, units: int = 5) -> World:
    """A world with a whale (many equal extreme rows), repeated keys, dangling children, duplicates and NULLs."""
    people: list[Row] = []
    visits: list[Row] = []
    drugs: list[Row] = []
    for unit in range(1, units + 1):
        rows = unit_rows(rng, unit)
        people += rows.people
        visits += rows.visits
        drugs += rows.drugs
    people.append({"person_id": None, "age": 40, "sex": "f", "score": 1.0})
    visits.append(_visit(rng, None))
    drugs.append({"visit_id": 9_999, "drug": "dangling", "dose": 5.0})
    drugs.append({"visit_id": None, "drug": "none", "dose": 5.0})
    return World(tuple(people), tuple(visits), tuple(drugs))


def distinct_keys(world: World) -> World:
    """The world with each key of visits in one row only, as under a unique constraint of a database."""
    seen: set[object] = set()
    visits: list[Row] = []
    for number, visit in enumerate(world.visits):
        unit = visit["person_id"]
        key = visit["visit_id"] if visit["visit_id"] not in seen else _visit_id(unit if isinstance(unit, int) else None, 10**9 + number)
        seen.add(key)
        visits.append({**visit, "visit_id": key})
    return replace(world, visits=tuple(visits))


def unit_rows(rng: random.Random, unit: int) -> World:
    """All rows of one unit, in one of several styles."""
    style = rng.choice(["plain", "plain", "whale", "equal", "spread", "low", "empty", "repeating"])
    people = [_person(rng, unit) for _ in range(rng.choice([0, 1, 1, 3]))]
    if style == "empty":
        return World(tuple(people), (), ())
    count = {"plain": rng.randint(1, 4), "whale": 30, "equal": 15, "spread": 16, "low": 14, "repeating": 8}[style]
    visits = [_visit(rng, unit) for _ in range(count)]
    if style in ("whale", "equal"):
        fixed: Row = {"clinic": rng.randint(0, 3), "cost": 500.0, "change": 100.0, "late": 100, "flag": True}
        if style == "equal":
            fixed |= {"visit_id": _visit_id(unit, 0), "day": datetime.date(2024, 6, 1)}
        visits = [{**visit, **fixed} for visit in visits]
    if style == "low":
        visits = [{**visit, "clinic": 0, "cost": 500.0, "change": -100.0, "late": 50} for visit in visits]
    if style == "spread":
        visits = [{**visit, "clinic": i % 4, "cost": 500.0, "flag": True} for i, visit in enumerate(visits)]
    if style == "repeating":  # one key in all rows
        visits = [{**visit, "visit_id": _visit_id(unit, 777)} for visit in visits]
    ids = [visit["visit_id"] for visit in visits]
    drugs: list[Row] = [
        {"visit_id": rng.choice(ids), "drug": rng.choice(["x", "y", f"rare-{unit}", None]), "dose": rng.choice([0.0, 10.0, 3.25])}
        for _ in range(rng.choice([0, 2, 25]))
    ]
    return World(tuple(people), tuple(visits), tuple(drugs))


def _person(rng: random.Random, unit: int) -> Row:
    return {
        "person_id": unit,
        "age": rng.choice([18, 90, 47, None, -5, 2**31 - 1]),
        "sex": rng.choice(["f", "m", "other", None]),
        "score": rng.choice([-100.0, 50.0, -1e300, 0.1, float("nan"), None]),
    }


def _visit_id(unit: int | None, number: int) -> int:
    """A key that leads to this unit only: preparation refuses a source in which a key leads to several units."""
    return 1_000 * (unit or 0) + number


def _visit(rng: random.Random, unit: int | None) -> Row:
    return {
        "person_id": unit,
        "visit_id": _visit_id(unit, rng.choice([777, 778, rng.randint(1, 50)])),
        "clinic": rng.choice([0, 1, 2, 3, None, 99]),
        "day": rng.choice(
            [datetime.date(2024, 1, 1), datetime.date(2024, 12, 31), datetime.date(2024, 7, 7), datetime.date(1900, 1, 1), None]
        ),
        "cost": rng.choice([0.0, 500.0, 12.34, -3.0, 1e308, float("inf"), float("nan"), 5e-324, None]),
        "change": rng.choice([-100.0, 100.0, -0.0, 33.3, None]),
        "late": rng.choice([50, 100, 75, None]),
        "flag": rng.choice([True, False, None]),
    }


def without(world: World, unit: int, rng: random.Random) -> World:
    """The world with one unit removed from the source. Its children are removed too, or remain as orphans."""
    visits = tuple(row for row in world.visits if row["person_id"] != unit)
    gone = {row["visit_id"] for row in world.visits if row["person_id"] == unit}
    orphans_stay = rng.random() < 0.5
    drugs = tuple(row for row in world.drugs if orphans_stay or row["visit_id"] not in gone)
    return World(tuple(row for row in world.people if row["person_id"] != unit), visits, drugs)


def with_unit(world: World, added: World) -> World:
    """The world with the rows of one more unit, whose keys no other unit has."""
    return World(world.people + added.people, world.visits + added.visits, world.drugs + added.drugs)


def neighbours_of(world: World, relation: str, rng: random.Random) -> Iterator[World]:
    """Every unit removed; for bounded neighbours also every unit replaced, under its own id and under a new one."""
    for unit in world.units():
        rest = without(world, unit, rng)
        yield rest
        if relation == "bounded":
            for new_id in (unit, 1_000 + unit):
                yield with_unit(rest, unit_rows(rng, new_id))
