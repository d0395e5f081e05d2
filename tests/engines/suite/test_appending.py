"""A version made from an older one and the rows that came since is, row for row, the version made from nothing."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog import Settings, load
from lapwing.engines.base import silent
from lapwing.engines.duckdb import DuckDBEngine
from lapwing.engines.duckdb.append import append_snapshot
from lapwing.errors import PreparationError

KEY = b"a" * 32
CATALOGUE = """
format = 1
[dataset]
id = "growing"
unit = "person"
[budget]
epsilon = 1
delta = "2^-30"
[tables.visits]
source = "visits-*.parquet"
unit = "person"
rows_per_unit_max = 4
rows_max = 100_000
appended_by = "{column}"
[tables.visits.columns]
person = {{ type = "key" }}
visit = {{ type = "key" }}
clinic = {{ type = "text", values_from = "clinics.name" }}
cost = {{ type = "real", min = 0, max = 100, steps = 4, null = false }}
[tables.bills]
source = "bills-*.parquet"
unit = "visit -> visits.visit"
rows_per_unit_max = 3
rows_max = 100_000
appended_by = "bill"
[tables.bills.columns]
visit = {{ type = "key" }}
amount = {{ type = "integer", min = 0, max = 9 }}
[public.clinics]
source = "clinics.parquet"
key = "name"
[public.clinics.columns]
name = {{ type = "text" }}
"""
VISITS = pa.schema(
    [
        ("person", pa.int64()),
        ("visit", pa.int64()),
        ("clinic", pa.string()),
        ("cost", pa.float64()),
        ("loaded", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("row", pa.int64()),
    ]
)
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


class Growing:
    """A source that grows: every call of ``grow`` is one more file."""

    def __init__(self, directory: Path, *, column: str, seed: int) -> None:
        self.directory, self.rng, self.files, self.rows = directory, random.Random(seed), 0, 0
        self.catalogue = directory / "lapwing.toml"
        self.catalogue.write_text(CATALOGUE.format(column=column), encoding="utf-8")
        pq.write_table(pa.table({"name": ["a", "b"]}), directory / "clinics.parquet")
        (directory / ".lapwing").mkdir()
        self.engine = DuckDBEngine(directory / ".lapwing", Settings())

    def grow(self, rows: int, *, people: int = 12) -> None:
        """Append rows: equal ones, some without a unit or a cost, of few people so that caps bind."""
        choose, made = self.rng.choice, []
        for _ in range(rows):
            self.rows += 1
            person = choose([None, *range(people)])
            made.append(
                {
                    "person": person,
                    # every key is one person's, some in many rows
                    "visit": 10**6 + self.rows if person is None else 1_000 * person + choose([1, 2, self.rows % 900]),
                    "clinic": choose(["a", "b", "c", None]),
                    "cost": choose([0.0, 50.0, 1e300, float("nan"), None]),
                    "loaded": START + datetime.timedelta(minutes=self.rows),
                    "day": datetime.date(2024, 1, 1) + datetime.timedelta(days=self.files),
                    "row": self.rows,
                }
            )
        self.files += 1
        pq.write_table(pa.Table.from_pylist(made, VISITS), self.directory / f"visits-{self.files}.parquet")
        bills = [
            {"visit": choose([1_001, 2_002, 3_001, 999_999]), "amount": choose([1, 9, 99, None]), "bill": self.rows + i} for i in range(5)
        ]
        self.rows += 5
        pq.write_table(pa.Table.from_pylist(bills), self.directory / f"bills-{self.files}.parquet")

    def prepare(self, version: int, *, append_to: int | None = None, key: bytes = KEY) -> None:
        text = self.catalogue.read_text(encoding="utf-8")
        self.engine.prepare(load(self.catalogue), text, version=version, ranking_key=key, progress=silent, append_to=append_to)

    def stored(self, version: int) -> dict[str, list[tuple[object, ...]]]:
        """All prepared rows, in no order."""
        with duckdb.connect(str(self.engine.path(version)), read_only=True) as connection:
            tables = ("visits", "bills", "clinics")
            return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in tables}


@pytest.mark.parametrize("column", ["loaded", "day", "row"])
@pytest.mark.parametrize("seed", range(3))
def test_appending_gives_the_rows_of_a_full_preparation(tmp_path: Path, column: str, seed: int) -> None:
    world = Growing(tmp_path, column=column, seed=seed)
    world.grow(60)
    world.prepare(1)
    version = 1
    for step in range(3):
        world.grow(10 * step, people=14 + step)
        world.prepare(version + 1, append_to=version)
        world.prepare(version + 2)
        assert world.stored(version + 1) == world.stored(version + 2)
        assert world.stored(version + 1) != world.stored(version) or step == 0
        version += 1
        world.engine.retire(version + 1)


def test_only_new_rows_are_read_and_only_where_that_is_the_same(tmp_path: Path) -> None:
    world = Growing(tmp_path, column="loaded", seed=1)
    world.grow(40)
    world.prepare(1)
    world.grow(4)
    settings, target = Settings(), tmp_path / "next.duckdb"

    def appended(key: bytes = KEY) -> tuple[str, ...]:
        declaration, text = load(world.catalogue), world.catalogue.read_text(encoding="utf-8")
        return append_snapshot(declaration, text, target, world.engine.path(1), version=2, ranking_key=key, settings=settings)

    # bills reach their unit through visits, so a new visit can own an old bill
    assert appended() == ("visits",)
    assert appended(b"b" * 32) == ()
    pq.write_table(pa.table({"name": ["a", "b", "c"]}), tmp_path / "clinics.parquet")
    assert appended() == ()
    pq.write_table(pa.table({"name": ["a", "b"]}), tmp_path / "clinics.parquet")
    text = world.catalogue.read_text(encoding="utf-8")
    world.catalogue.write_text(text.replace("rows_per_unit_max = 4", "rows_per_unit_max = 5"), encoding="utf-8")
    assert appended() == ()


@pytest.mark.parametrize("broken", ["deleted", "late", "without a position"])
def test_a_source_that_did_not_only_grow_is_refused(tmp_path: Path, broken: str) -> None:
    world = Growing(tmp_path, column="loaded", seed=2)
    world.grow(30)
    world.grow(30)
    world.prepare(1)
    world.grow(5)
    if broken == "deleted":
        (tmp_path / "visits-1.parquet").unlink()
    else:
        row = {
            "person": 1,
            "visit": 1_001,
            "clinic": "a",
            "cost": 1.0,
            "loaded": START if broken == "late" else None,
            "day": None,
            "row": 1,
        }
        pq.write_table(pa.Table.from_pylist([row], VISITS), tmp_path / "visits-4.parquet")
    with pytest.raises(PreparationError) as caught:
        world.prepare(2, append_to=1)
    assert caught.value.code == "append-not-only"
    assert world.engine.versions() == (1,)
    world.prepare(2)


def test_a_later_row_that_names_an_older_key_of_another_owner_is_refused(tmp_path: Path) -> None:
    """The older rows count: among the new ones alone no key is shared."""
    world = Growing(tmp_path, column="row", seed=4)
    world.grow(40)
    world.prepare(1)
    world.grow(5)
    older = next(row for row in pq.read_table(tmp_path / "visits-1.parquet").to_pylist() if row["person"] is not None)
    row = {**older, "person": 99, "row": 10_000}
    pq.write_table(pa.Table.from_pylist([row], VISITS), tmp_path / "visits-3.parquet")
    for append_to in (1, None):
        with pytest.raises(PreparationError) as caught:
            world.prepare(2, append_to=append_to)
        assert caught.value.code == "link-key-shared"
    assert world.engine.versions() == (1,)
    pq.write_table(pa.Table.from_pylist([{**older, "row": 10_000}], VISITS), tmp_path / "visits-3.parquet")
    world.prepare(2, append_to=1)


def test_a_column_that_has_no_order_of_ours_is_refused(tmp_path: Path) -> None:
    world = Growing(tmp_path, column="clinic", seed=3)
    world.grow(5)
    with pytest.raises(PreparationError) as caught:
        world.prepare(1)
    assert caught.value.code == "appended-by-type"
