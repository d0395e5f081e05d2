"""A data set on which no bound binds: values inside their bounds and on their grids, declared texts, far fewer rows per unit than allowed.

On such rows, and with a budget so large that the noise is 0, an answer must be what the bare engine says. Ranges are small on purpose: the
largest epsilon is 10^9, and zero noise on a sum costs about 34 times the square of its sensitivity.
"""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

PEOPLE = 60
ROWS_PER_UNIT = 3
"""Most rows that any unit has in any table."""
MOST_ROWS = {"people": 1, "visits": ROWS_PER_UNIT, "drugs": ROWS_PER_UNIT}
UNIT_COLUMNS = {"people": "person_id", "visits": "person_id"}
REFERENCES = {("drugs", "visit_id"): ("visits", "visit_id")}
REGIONS = ("northam", "Northfield", "eastmere", "west-1", "o'hara")
CODES = ("A09", "B34", "J10", "J11", "Z00")
BARE_UNIT = "_unit"
TABLES = ("people", "visits", "drugs", "clinics", "codes")

CATALOGUE = """
format = 1
[dataset]
id = "limit"
unit = "person"
neighbours = "{neighbours}"
{units}
[budget]
epsilon = 1_000_000_000
delta = {delta}
statistics_share = 0
[tables.people]
source = "people.parquet"
unit = "person_id"
one_row_per_unit = true
rows_max = 500
[tables.people.columns]
person_id = {{ type = "key", null = false }}
grade = {{ type = "integer", min = 0, max = 10, null = false }}
sex = {{ type = "text", values = ["f", "m", "x"], null = false }}
region = {{ type = "text", values = ["northam", "Northfield", "eastmere", "west-1", "o'hara"] }}
member = {{ type = "boolean" }}
active = {{ type = "boolean", null = false }}
weight = {{ type = "real", min = 0, max = 8, steps = 4 }}
[tables.visits]
source = "visits.parquet"
unit = "person_id"
rows_per_unit_max = 3
rows_max = 500
[tables.visits.columns]
person_id = {{ type = "key", null = false }}
visit_id = {{ type = "key", null = false }}
minutes = {{ type = "integer", min = 0, max = 12, null = false }}
score = {{ type = "integer", min = -5, max = 5 }}
clinic = {{ type = "integer", min = 1, max = 7 }}
code = {{ type = "text", values_from = "codes.code" }}
day = {{ type = "date", min = 2024-01-01, max = 2024-06-30 }}
started = {{ type = "timestamp", min = 2024-01-01T00:00:00, max = 2024-06-30T23:59:59 }}
cost = {{ type = "real", min = 0, max = 4, steps = 10 }}
change = {{ type = "real", min = -2, max = 2, steps = 4 }}
urgent = {{ type = "boolean" }}
[tables.drugs]
source = "drugs.parquet"
unit = "visit_id -> visits.visit_id"
rows_per_unit_max = 3
rows_max = 500
[tables.drugs.columns]
visit_id = {{ type = "key", null = false }}
drug = {{ type = "text" }}
dose = {{ type = "real", min = 0, max = 4, steps = 2 }}
tablets = {{ type = "integer", min = 0, max = 5 }}
[public.clinics]
source = "clinics.parquet"
key = "clinic"
[public.clinics.columns]
clinic = {{ type = "integer", min = 1, max = 7 }}
city = {{ type = "text" }}
kind = {{ type = "text", values = ["hospital", "practice"] }}
beds = {{ type = "integer", min = 0, max = 9 }}
[public.codes]
source = "codes.parquet"
key = "code"
[public.codes.columns]
code = {{ type = "text", null = false }}
chapter = {{ type = "text" }}
chronic = {{ type = "boolean" }}
"""

Row = dict[str, Any]


def rows(rng: random.Random) -> dict[str, list[Row]]:
    """Rows of all tables."""
    made: dict[str, list[Row]] = {name: [] for name in TABLES}
    for person in range(1, PEOPLE + 1):
        made["people"].append(
            {
                "person_id": person,
                "grade": rng.randint(0, 10),
                "sex": rng.choice("fmx"),
                "region": rng.choice((*REGIONS, None)),
                "member": rng.choice((True, False, None)),
                "active": rng.random() < 0.6,
                "weight": rng.choice((None, 0.0, 8.0, rng.randint(0, 32) / 4)),
            }
        )
        for _ in range(rng.randint(0, ROWS_PER_UNIT)):
            made["visits"].append(_visit(rng, person, len(made["visits"])))
    for visit in made["visits"]:
        for _ in range(rng.choice((0, 1))):
            drug = rng.choice(("aspirin", "asprin", "x", "y", "", None, f"rare-{visit['visit_id']}"))
            amounts = {"dose": rng.choice((None, rng.randint(0, 8) / 2)), "tablets": rng.choice((None, rng.randint(0, 5)))}
            made["drugs"].append({"visit_id": visit["visit_id"], "drug": drug, **amounts})
    cities, kinds = ("Ambridge", "Borchester", None), ("hospital", "practice", None)
    made["clinics"] = [{"clinic": i, "city": cities[i % 3], "kind": kinds[i % 2 + i // 6], "beds": i} for i in range(1, 7)]
    made["codes"] = [{"code": c, "chapter": "IX"[: i % 3] or None, "chronic": (True, False, None)[i % 3]} for i, c in enumerate(CODES)]
    return made


def _visit(rng: random.Random, person: int, visit: int) -> Row:
    day = datetime.date(2024, 1, 1) + datetime.timedelta(days=rng.randrange(182))
    moment = datetime.datetime.combine(day, datetime.time(rng.randrange(24), rng.randrange(60), rng.randrange(60)))
    return {
        "person_id": person,
        "visit_id": visit,
        "minutes": rng.choice((0, 12, 5, 7, rng.randint(0, 12))),
        "score": rng.choice((None, -5, 5, 1, rng.randint(-5, 5))),
        "clinic": rng.choice((None, rng.randint(1, 6))),
        "code": rng.choice((*CODES, None)),
        "day": rng.choice((day, day, day, None)),
        "started": rng.choice((moment, moment, moment, None)),
        "cost": rng.choice((None, 0.0, 4.0, rng.randint(0, 40) / 10)),
        "change": rng.choice((None, -2.0, 2.0, rng.randint(-8, 8) / 4)),
        "urgent": rng.choice((True, False, None)),
    }


def write(directory: Path, *, neighbours: str, delta: str, seed: int = 1) -> None:
    """The Parquet files and the catalogue."""
    directory.mkdir(parents=True)
    for name, listed in rows(random.Random(seed)).items():
        pq.write_table(pa.Table.from_pylist(listed), directory / f"{name}.parquet")
    units = f"units = {PEOPLE}" if neighbours == "bounded" else ""
    text = CATALOGUE.format(neighbours=neighbours, units=units, delta=delta)
    (directory / "lapwing.toml").write_text(text)


def bare(directory: Path) -> duckdb.DuckDBPyConnection:
    """The bare engine over the same files; every protected table also has the column ``BARE_UNIT``."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in TABLES:
        source = f"read_parquet('{directory / name}.parquet')"
        match name:
            case "people" | "visits":
                select = f"SELECT *, person_id AS {BARE_UNIT} FROM {source}"
            case "drugs":
                select = f"SELECT d.*, v.{BARE_UNIT} FROM {source} d JOIN visits v USING (visit_id)"
            case _:
                select = f"SELECT * FROM {source}"
        connection.execute(f"CREATE TABLE {name} AS {select}")
    return connection
