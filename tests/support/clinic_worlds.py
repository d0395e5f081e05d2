"""The clinic of the conformance list as families of neighbouring worlds, for the sensitivity oracle of joins, subqueries and nesting.

A *family* is a set of worlds and the pairs of them that are neighbours, so that one preparation serves many pairs. Unbounded: every subset
of a few units, paired where one unit is the difference. Bounded: many contents of one unit's place, itself possibly empty, all paired.
Rows are made to break naive bounding: visits with many prescriptions, visit ids that stand in many rows of one unit, children without a
parent, equal rows, NULLs, values beyond their bounds. Removing a unit leaves its prescriptions behind, orphans that belong to nobody.
"""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import Declaration, load

UNIT_COLUMNS = {"patients": "patient_id", "visits": "patient_id"}
REFERENCES = {("prescriptions", "visit_id"): ("visits", "visit_id")}
REGIONS = ("northam", "northfield", "eastmere", "west-1")

CATALOGUE = """
format = 1
[dataset]
id = "clinic"
unit = "patient"
neighbours = "{neighbours}"
{units}
[budget]
epsilon = 1
delta = {delta}
[tables.patients]
source = "patients.parquet"
unit = "patient_id"
one_row_per_unit = true
rows_max = 10_000
[tables.patients.columns]
patient_id = {{ type = "key", null = false }}
birth_year = {{ type = "integer", min = 1920, max = 2020, null = false }}
sex = {{ type = "text", values = ["f", "m", "x"], null = false }}
region = {{ type = "text", values = ["northam", "northfield", "eastmere", "west-1"] }}
smoker = {{ type = "boolean" }}
vaccinated = {{ type = "boolean", null = false }}
income = {{ type = "real", min = 0, max = 200_000, steps = 1 }}
[tables.visits]
source = "visits.parquet"
unit = "patient_id"
rows_per_unit_max = {visits}
rows_max = 100_000
[tables.visits.columns]
visit_id = {{ type = "key", null = false }}
patient_id = {{ type = "key", null = false }}
day = {{ type = "date", min = 2024-01-01, max = 2025-12-31, null = false }}
started = {{ type = "timestamp", min = 2024-01-01T00:00:00, max = 2025-12-31T23:59:59 }}
clinic_id = {{ type = "integer", min = 1, max = 12, null = false }}
code = {{ type = "text", values_from = "diagnoses.code" }}
cost = {{ type = "real", min = 0, max = 5000, steps = 100 }}
minutes = {{ type = "integer", min = 0, max = 480, null = false }}
[tables.prescriptions]
source = "prescriptions.parquet"
unit = "visit_id -> visits.visit_id"
rows_per_unit_max = {prescriptions}
rows_max = 1_000_000
[tables.prescriptions.columns]
visit_id = {{ type = "key", null = false }}
drug = {{ type = "text" }}
dose_mg = {{ type = "real", min = 0, max = 2000, steps = 10 }}
[public.clinics]
source = "clinics.parquet"
key = "clinic_id"
[public.clinics.columns]
clinic_id = {{ type = "integer", min = 1, max = 12, null = false }}
city = {{ type = "text" }}
kind = {{ type = "text", values = ["hospital", "practice"] }}
[public.diagnoses]
source = "diagnoses.parquet"
key = "code"
[public.diagnoses.columns]
code = {{ type = "text", null = false }}
chapter = {{ type = "text" }}
chronic = {{ type = "boolean" }}
"""

_SCHEMAS = {
    "patients": [
        ("patient_id", pa.int64()),
        ("birth_year", pa.int32()),
        ("sex", pa.string()),
        ("region", pa.string()),
        ("smoker", pa.bool_()),
        ("vaccinated", pa.bool_()),
        ("income", pa.float64()),
    ],
    "visits": [
        ("visit_id", pa.int64()),
        ("patient_id", pa.int64()),
        ("day", pa.date32()),
        ("started", pa.timestamp("us")),
        ("clinic_id", pa.int32()),
        ("code", pa.string()),
        ("cost", pa.float64()),
        ("minutes", pa.int32()),
    ],
    "prescriptions": [("visit_id", pa.int64()), ("drug", pa.string()), ("dose_mg", pa.float64())],
    "clinics": [("clinic_id", pa.int32()), ("city", pa.string()), ("kind", pa.string())],
    "diagnoses": [("code", pa.string()), ("chapter", pa.string()), ("chronic", pa.bool_())],
}
_CODES = (("C50", "II", True), ("J10", "X", False), ("J11", "X", False), ("Z00", None, None), ("Z00", "twice", True))
_CITIES = ("Ambridge", "Borchester", None)
_PUBLIC: Mapping[str, list[dict[str, object]]] = {
    "clinics": [{"clinic_id": i, "city": _CITIES[i % 3], "kind": ("hospital", "practice")[i % 2]} for i in (*range(1, 11), 3)],
    "diagnoses": [{"code": code, "chapter": chapter, "chronic": chronic} for code, chapter, chronic in _CODES],
}

Row = dict[str, object]


@dataclass(frozen=True)
class Caps:
    """Most rows per unit that the catalogue declares."""

    visits: int = 4
    prescriptions: int = 5


@dataclass(frozen=True)
class Clinic:
    """Source rows of the three protected tables."""

    patients: tuple[Row, ...] = ()
    visits: tuple[Row, ...] = ()
    prescriptions: tuple[Row, ...] = ()

    def __add__(self, other: Clinic) -> Clinic:
        """The rows of both."""
        return Clinic(self.patients + other.patients, self.visits + other.visits, self.prescriptions + other.prescriptions)


@dataclass(frozen=True)
class Family:
    """Worlds, and which of them are neighbours of which."""

    worlds: tuple[Clinic, ...]
    pairs: tuple[tuple[int, int], ...]


def declare(world: Clinic, directory: Path, *, neighbours: str, delta: str, seed: int, caps: Caps) -> Declaration:
    """Write the world's sources, in an order that depends on ``seed`` only, and read its catalogue."""
    directory.mkdir(parents=True, exist_ok=True)
    shuffled = random.Random(seed)
    protected = {"patients": world.patients, "visits": world.visits, "prescriptions": world.prescriptions}
    for name, rows in protected.items():
        listed = list(rows)
        shuffled.shuffle(listed)
        _write(directory, name, listed)
    for name, public in _PUBLIC.items():
        _write(directory, name, public)
    units = "units = 100" if neighbours == "bounded" else ""
    text = CATALOGUE.format(neighbours=neighbours, delta=delta, units=units, visits=caps.visits, prescriptions=caps.prescriptions)
    (directory / "lapwing.toml").write_text(text)
    return load(directory / "lapwing.toml")


def _write(directory: Path, name: str, rows: Sequence[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=pa.schema(_SCHEMAS[name])), directory / f"{name}.parquet")


def unit_rows(rng: random.Random, unit: int) -> Clinic:
    """Rows of one unit, in one of several styles."""
    style = rng.choice(["plain", "plain", "whale", "equal", "spread", "repeating", "absent", "empty"])
    patients = tuple(_patient(rng, unit) for _ in range(0 if style == "absent" else rng.choice([1, 1, 2])))
    if style == "empty":
        return Clinic(patients)
    count = {"plain": rng.randint(1, 3), "absent": 2, "whale": 9, "equal": 6, "spread": 8, "repeating": 5}[style]
    visits = [_visit(rng, unit, number) for number in range(count)]
    extreme: Row = {"cost": 5000.0, "minutes": 480, "day": datetime.date(2025, 12, 31), "code": "C50", "clinic_id": rng.randint(1, 12)}
    match style:
        case "whale":
            visits = [{**visit, **extreme} for visit in visits]
        case "equal":
            visits = [{**visits[0], **extreme}] * count
        case "spread":
            codes = [code for code, *_ in _CODES]
            visits = [{**v, "clinic_id": i % 12 + 1, "code": codes[i % 5], "cost": 5000.0} for i, v in enumerate(visits)]
        case "repeating":
            visits = [{**visit, "visit_id": _repeated_id(unit)} for visit in visits]
        case _:
            pass
    ids = [visit["visit_id"] for visit in visits]
    drugs = ("x", "y", f"rare-{unit}", None)
    many: list[Row] = [
        {"visit_id": rng.choice(ids), "drug": rng.choice(drugs), "dose_mg": rng.choice([0.0, 2000.0, 12.34, None])}
        for _ in range(rng.choice([0, 2, 9]))
    ]
    return Clinic(patients, tuple(visits), tuple(many))


def _patient(rng: random.Random, unit: int) -> Row:
    return {
        "patient_id": unit,
        "birth_year": rng.choice([1920, 2020, 1959, 1960, 1800]),
        "sex": rng.choice(["f", "m", "x", "f", "?"]),
        "region": rng.choice([*REGIONS, "elsewhere", None]),
        "smoker": rng.choice([True, False, None]),
        "vaccinated": rng.choice([True, False]),
        "income": rng.choice([0.0, 200_000.0, 1e300, 31_415.9, float("nan"), None]),
    }


def _repeated_id(unit: int | None) -> int:
    """A key that may stand in many rows of one unit."""
    return 100_000 + (unit or 0)


def _visit(rng: random.Random, unit: int | None, number: int) -> Row:
    day = rng.choice([datetime.date(2024, 1, 1), datetime.date(2025, 12, 31), datetime.date(2025, 3, 5), datetime.date(2024, 7, 7)])
    return {
        "visit_id": rng.choice([_repeated_id(unit), 10 * (unit or 0) + number, 10 * (unit or 0) + number]),
        "patient_id": unit,
        "day": day,
        "started": rng.choice([None, datetime.datetime.combine(day, datetime.time(rng.randrange(24), 30))]),
        "clinic_id": rng.choice([1, 2, 3, 10, 12]),
        "code": rng.choice(["C50", "J10", "J11", "Z00", "other", None]),
        "cost": rng.choice([0.0, 5000.0, 1200.5, 2.0, -1.0, 1e308, float("inf"), None]),
        "minutes": rng.choice([0, 480, 5, 30, 9_999]),
    }


def strangers(rng: random.Random) -> Clinic:
    """Rows of nobody: without a unit, or without a parent."""
    orphans: tuple[Row, ...] = ({"visit_id": 99_999, "drug": "dangling", "dose_mg": 5.0}, {"visit_id": None, "drug": "x", "dose_mg": 5.0})
    return Clinic(({**_patient(rng, 0), "patient_id": None},), (_visit(rng, None, 1),), orphans)


def subsets(rng: random.Random, *, units: int) -> Family:
    """Unbounded: every subset of some units; neighbours differ in one. All prescriptions stay, as orphans where their unit is not there."""
    made = [unit_rows(rng, unit) for unit in range(1, units + 1)]
    nobody = strangers(rng)
    prescriptions = nobody.prescriptions + tuple(row for unit in made for row in unit.prescriptions)
    worlds = []
    for chosen in itertools.product((False, True), repeat=units):
        kept = [unit for unit, here in zip(made, chosen, strict=True) if here]
        patients = nobody.patients + tuple(row for unit in kept for row in unit.patients)
        visits = nobody.visits + tuple(row for unit in kept for row in unit.visits)
        worlds.append(Clinic(patients, visits, prescriptions))
    numbers = range(2**units)
    return Family(tuple(worlds), tuple((i, i | 1 << bit) for i in numbers for bit in range(units) if not i >> bit & 1))


def replacements(rng: random.Random, *, units: int, contents: int) -> Family:
    """Bounded: some units, and one more place that is empty or holds one of several contents, under one id or another."""
    rest = strangers(rng)
    for unit in range(1, units + 1):
        rest += unit_rows(rng, unit)
    worlds = [rest]
    for number in range(contents):
        worlds.append(rest + unit_rows(rng, rng.choice([50, 50, 60 + number])))
    return Family(tuple(worlds), tuple(itertools.combinations(range(len(worlds)), 2)))


def fan_out(rng: random.Random, *, visits: int, prescriptions: int) -> Family:
    """One unit whose every visit id is the same and has many prescriptions, so that joins along it multiply; with it and without."""
    rest = strangers(rng)
    for unit in (1, 2):
        rest += unit_rows(rng, unit)
    one: Row = {**_visit(rng, 3, 0), "visit_id": 31, "cost": 5000.0, "minutes": 480, "code": "C50", "clinic_id": 3}
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i % 731) for i in range(visits)]
    doses: tuple[Row, ...] = tuple({"visit_id": 31, "drug": f"drug-{i % 7}", "dose_mg": 2000.0} for i in range(prescriptions))
    whale = Clinic((_patient(rng, 3),), tuple({**one, "day": day} for day in days), doses)
    return Family((rest, rest + whale), ((0, 1),))
