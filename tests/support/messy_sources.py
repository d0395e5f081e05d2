"""Sources as people have them: many files, duplicates, gaps, values that were not declared, and a few units with far too many rows.

A club with its members (CSV), their visits (Parquet in folders by year and month) and what they bought on them (CSV), beside a public
table of halls. ``write_club`` writes files and catalogue, ``truth_of_club`` is bare DuckDB on those files: views that do by plain SQL what
the catalogue's reference says of preparation (rows without a unit are left out, values out of bounds moved, ...), and nothing else.

The rows of the one unit that has more than are kept are all equal: whichever are dropped, the same are left, so the truth is known.
``write_meters`` and ``truth_of_meters`` are a second data set, in which every row is a unit.
"""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

CITIES = ("Zürich", "São Paulo", "O'Fallon", 'the "old" town', "東京", "a, b; c")
NEVER = "nobody lives here"
"""A declared city that no row has."""
KINDS = ("swim", "gym", "sauna", "court")
HALLS = 9
ROWS_PER_UNIT_MAX = 400
BEYOND = 3
"""How many times the cap the rows of one member are."""
AMOUNT_MAX = 200
YEARS = (2023, 2024)
_EDGES = (dt.time(0, 0), dt.time(23, 59, 59, 999_999))

Row: TypeAlias = tuple[Any, ...]


def write_club(directory: Path, *, members: int, seed: int = 14) -> None:
    """The sources and the catalogue. The same rows for the same arguments."""
    rng = Random(seed)
    people = _members(rng, members)
    _write_csv(directory / "members" / "a.csv", ["Member No", "Home city", "Born", "Paid"], people[: len(people) // 2])
    _write_csv(directory / "members" / "b.csv", ["Member No", "Home city", "Born", "Paid"], people[len(people) // 2 :])
    _write_csv(directory / "members" / "empty.csv", ["Member No", "Home city", "Born", "Paid"], [])
    visits = _visits(rng, members)
    _write_visits(directory / "visits", visits, rng)
    _write_csv(directory / "bought.csv", ["visit", "article", "price"], _bought(rng, visits))
    _write_csv(directory / "halls.csv", ["hall", "district"], [(hall, f"district {hall % 3}") for hall in range(1, HALLS + 1)])
    (directory / "lapwing.toml").write_text(club_catalogue(), encoding="utf-8")


def _members(rng: Random, members: int) -> list[Row]:
    """One row for each, some of them twice; cities and years that were not declared, nothing at all, and a row of nobody."""
    rows: list[Row] = []
    for member in range(members):
        city = rng.choices((*CITIES, "Zurich", ""), (8, 5, 3, 2, 2, 1, 1, 1))[0]
        born = rng.choice(("", "1899", "3000", "unknown")) if rng.random() < 0.05 else str(rng.randint(1940, 2010))
        rows.append((f"M{member:05}", city, born, rng.choice(("yes", "no"))))
    rows += rng.sample(rows, members // 20)
    rows += [("", "Zürich", "1980", "yes")] * 5
    rng.shuffle(rows)
    return rows


def _visits(rng: Random, members: int) -> list[Row]:
    """Skewed: most members come a few times, one as often as is kept, one far more often; some visits are of nobody known."""
    rows: list[Row] = []

    def add(member: str | None, times: int) -> None:
        for _ in range(times):
            rows.append((len(rows), member, _moment(rng), _kind(rng), rng.randint(1, HALLS), _amount(rng), _remark(rng)))

    for number in range(members):
        if number not in (1, 2):
            add(f"M{number:05}", min(int(1.6 * rng.paretovariate(1.3)), ROWS_PER_UNIT_MAX * 3 // 4))
    rows += rng.sample(rows, len(rows) // 50)  # the same visit reported twice counts twice
    add("M00001", ROWS_PER_UNIT_MAX)
    same = (dt.datetime(2024, 2, 29, 23, 59, 59), "gym", 3, 12.5, "door")
    rows += [(len(rows) + place, "M00002", *same) for place in range(BEYOND * ROWS_PER_UNIT_MAX)]
    add("M99999", 40)
    add(None, 25)
    rng.shuffle(rows)
    return rows


def _moment(rng: Random) -> dt.datetime | None:
    chance = rng.random()
    if chance < 0.02:
        return None
    if chance < 0.04:
        return dt.datetime(rng.choice((1970, 2050)), 6, 1)
    first = dt.date(YEARS[0], 1, 1) + dt.timedelta(rng.randrange(365 + 366))
    if chance < 0.3:  # the first or the last moment of a month
        first = first.replace(day=1) - dt.timedelta(rng.randrange(2))
        first = max(first, dt.date(YEARS[0], 1, 1))
        return dt.datetime.combine(first, rng.choice(_EDGES))
    return dt.datetime.combine(first, dt.time(rng.randrange(6, 23), rng.randrange(60), rng.randrange(60)))


def _kind(rng: Random) -> str | None:
    return rng.choices((*KINDS, "SWIM", None), (10, 6, 2, 1, 0.3, 0.3))[0]


def _amount(rng: Random) -> float | None:
    chance = rng.random()
    if chance < 0.03:
        return None
    if chance < 0.05:
        return rng.choice((-5.0, 1e9, float("nan"), float("inf")))
    return round(min(rng.lognormvariate(2.2, 0.9), AMOUNT_MAX), 2)


def _remark(rng: Random) -> str | None:
    """Not declared: a few that many have, and many that few have."""
    chance = rng.random()
    if chance < 0.3:
        return None
    return rng.choice(("door", "naïve ☕", 'it\'s "open"', "")) if chance < 0.9 else f"remark {rng.randrange(10_000)}"


def _bought(rng: Random, visits: Sequence[Row]) -> list[Row]:
    articles = ("water", "towel", "lesson")
    numbers = sorted({row[0] for row in visits if row[1] not in (None, "M00002")})
    rows: list[Row] = []
    for number in rng.sample(numbers, len(numbers) // 2):
        rows += [(number, rng.choices(articles, (6, 3, 1))[0], f"{rng.uniform(1, 60):.2f}") for _ in range(rng.randint(1, 3))]
    rows += [(10**9 + place, "water", "1.00") for place in range(30)] + [("", "towel", "2.00")] * 10
    rng.shuffle(rows)
    return rows


def _write_csv(path: Path, names: Sequence[str], rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


VISITS = pa.schema(
    [
        ("visit", pa.int64()),
        ("member", pa.string()),
        ("came", pa.timestamp("us")),
        ("kind", pa.string()),
        ("hall", pa.int32()),
        ("amount", pa.float64()),
        ("remark", pa.string()),
    ]
)


def _write_visits(directory: Path, rows: Sequence[Row], rng: Random) -> None:
    """By year and month of the *report*, which is not that of the visit, so that a member is in many files; some have no rows."""
    files: dict[tuple[int, int, int], list[Row]] = {(year, month, part): [] for year in YEARS for month in (1, 2, 3) for part in (0, 1)}
    places = list(files)
    for row in rows:
        files[rng.choice(places[:-2])].append(row)
    for (year, month, part), chosen in files.items():
        folder = directory / f"year={year}" / f"month={month:02}"
        folder.mkdir(parents=True, exist_ok=True)
        columns = [list(column) for column in zip(*chosen, strict=True)] or [[] for _ in VISITS]
        pq.write_table(pa.table(columns, schema=VISITS), folder / f"part-{part}.parquet", row_group_size=97)


def club_catalogue() -> str:
    """What the owner of the club declares."""
    listed = ", ".join(_quoted(city) for city in (*CITIES, NEVER))
    kinds = ", ".join(_quoted(kind) for kind in KINDS)
    return f"""\
format = 1

[dataset]
id = "messy-club"
unit = "member"

[budget]
epsilon = 3
delta = "1e-9"

[tables.members]
source = "members/*.csv"
unit = "member"
one_row_per_unit = true
rows_max = 100_000

[tables.members.columns]
member = {{ type = "key", of = "text", from = "Member No" }}
city = {{ type = "text", from = "Home city", values = [{listed}], other = "elsewhere" }}
born = {{ type = "integer", from = "Born", min = 1900, max = 2020 }}
paid = {{ type = "boolean", from = "Paid", true = ["yes"], false = ["no"] }}

[tables.visits]
source = "visits/*/*/*.parquet"
partitions = ["year"]
unit = "member -> members.member"
rows_per_unit_max = {ROWS_PER_UNIT_MAX}
rows_max = 1_000_000

[tables.visits.columns]
visit = {{ type = "key" }}
member = {{ type = "key", of = "text" }}
year = {{ type = "integer", min = 2023, max = 2024, null = false }}
came = {{ type = "timestamp", min = 2023-01-01T00:00:00, max = 2024-12-31T23:59:59.999999 }}
kind = {{ type = "text", values = [{kinds}] }}
hall = {{ type = "integer", min = 1, max = {HALLS}, null = false }}
amount = {{ type = "real", min = 0, max = {AMOUNT_MAX}, steps = 100 }}
remark = {{ type = "text" }}

[tables.bought]
source = "bought.csv"
unit = "visit -> visits.visit"
rows_max = 1_000_000

[tables.bought.columns]
visit = {{ type = "key" }}
article = {{ type = "text", values = ["water", "towel", "lesson"] }}
price = {{ type = "real", min = 0, max = 60, steps = 100 }}

[public.halls]
source = "halls.csv"
key = "hall"

[public.halls.columns]
hall = {{ type = "integer", min = 1, max = {HALLS}, null = false }}
district = {{ type = "text", values = ["district 0", "district 1", "district 2"] }}
"""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def truth_of_club(directory: Path) -> duckdb.DuckDBPyConnection:
    """Bare DuckDB on the files, under the names of the catalogue."""
    bare = duckdb.connect()
    cities = ", ".join("'" + city.replace("'", "''") + "'" for city in (*CITIES, NEVER))
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    bare.execute(f"""
        CREATE TABLE members AS
        SELECT DISTINCT "Member No" AS member,
            CASE WHEN "Home city" IN ({cities}) THEN "Home city" WHEN "Home city" IS NOT NULL THEN 'elsewhere' END AS city,
            CASE WHEN TRY_CAST("Born" AS INTEGER) IS NOT NULL THEN least(greatest(TRY_CAST("Born" AS INTEGER), 1900), 2020) END AS born,
            CASE "Paid" WHEN 'yes' THEN true WHEN 'no' THEN false END AS paid
        FROM read_csv('{directory}/members/*.csv', header = true, all_varchar = true, delim = ',', quote = '"', escape = '"')
        WHERE "Member No" IS NOT NULL
    """)
    bare.execute(f"""
        CREATE TABLE raw AS
        SELECT visit, member, CAST(year AS INTEGER) AS year,
            CASE WHEN came BETWEEN TIMESTAMP '2023-01-01 00:00:00' AND TIMESTAMP '2024-12-31 23:59:59.999999' THEN came END AS came,
            CASE WHEN kind IN ({kinds}) THEN kind END AS kind, hall,
            CASE WHEN isfinite(amount) THEN round(least(greatest(amount, 0), {AMOUNT_MAX}), 2) END AS amount, remark
        FROM read_parquet('{directory}/visits/*/*/*.parquet', hive_partitioning = true)
        WHERE member IN (SELECT member FROM members)
    """)
    bare.execute(f"""
        CREATE TABLE visits AS
        SELECT * FROM raw WHERE member <> 'M00002' UNION ALL
        (SELECT * FROM raw WHERE member = 'M00002' LIMIT {ROWS_PER_UNIT_MAX})
    """)
    bare.execute(f"""
        CREATE TABLE bought AS
        SELECT TRY_CAST(visit AS BIGINT) AS visit, article, CAST(price AS DECIMAL(9, 2)) AS price
        FROM read_csv('{directory}/bought.csv', header = true, all_varchar = true)
        WHERE TRY_CAST(visit AS BIGINT) IN (SELECT visit FROM raw)
    """)
    bare.execute(f"CREATE TABLE halls AS SELECT * FROM read_csv('{directory}/halls.csv')")
    return bare


# -- every row a unit ----------------------------------------------------------------------------------------------------------------


def write_meters(directory: Path, *, rows: int, seed: int = 14) -> None:
    """Readings of meters that nothing leads back to anybody: equal rows, gaps, values that cannot be read, several files."""
    rng = Random(seed)
    readings: list[Row] = []
    for _ in range(rows):
        value = rng.choice(("", "n/a", "-40", "1e6")) if rng.random() < 0.04 else f"{rng.gammavariate(2, 8):.1f}"
        readings.append((rng.choices(("north", "south", "Øst", "?"), (5, 3, 1, 0.2))[0], value))
    readings += [("Øst", "7.5")] * (rows // 10)
    for part in range(4):
        _write_csv(directory / f"part-{part}.csv", ["place", "value"], readings[part::4] if part else [])
    _write_csv(directory / "part-4.csv", ["place", "value"], readings[::4])
    (directory / "lapwing.toml").write_text(METERS, encoding="utf-8")


METERS = """\
format = 1

[dataset]
id = "messy-meters"
unit = "row"

[budget]
epsilon = 3
delta = "1e-9"

[tables.readings]
source = "part-*.csv"
unit = "row"
rows_max = 100_000

[tables.readings.columns]
place = { type = "text", values = ["north", "south", "Øst", "west"] }
value = { type = "real", min = 0, max = 100, steps = 10 }
"""


def truth_of_meters(directory: Path) -> duckdb.DuckDBPyConnection:
    """Bare DuckDB on the files."""
    bare = duckdb.connect()
    # In two steps: DuckDB hands a cast down to its reader of CSV files, which then fails where the cast would give NULL.
    bare.execute(f"CREATE TABLE raw AS SELECT * FROM read_csv('{directory}/part-*.csv', header = true, delim = ',', all_varchar = true)")
    number = "TRY_CAST(value AS DOUBLE)"
    bare.execute(f"""
        CREATE TABLE readings AS
        SELECT CASE WHEN place IN ('north', 'south', 'Øst', 'west') THEN place END AS place,
            CASE WHEN {number} IS NOT NULL THEN least(greatest({number}, 0), 100) END AS value
        FROM raw
    """)
    return bare
