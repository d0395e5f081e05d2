"""A data set with blocks of time on Spark: visits by day, week or month beside a standing table, and what its versions hold."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Declaration, load
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Snapshot, silent
from lapwing.engines.losses import Witness
from lapwing.engines.spark import SparkEngine
from lapwing.engines.spark.block_folders import WrittenFolders
from lapwing.engines.spark.stored import read_marker, rows_path
from lapwing.kernel.block_calendar import Period, block_of_day, days_of_block
from lapwing.kernel.calendar import to_date, to_days
from tests.support.spark_worlds import spark_engine

FIRST_DAY = datetime.date(2024, 1, 1)
ROWS_PER_UNIT_MAX = 3
CATALOGUE = """
format = 1
[dataset]
id = "visits"
unit = "person"
engine = "spark"
[budget]
epsilon = 3
[blocks]
every = "{every}"
person_cap = "none"
[tables.people]
source = "people.parquet"
unit = "person_id"
rows_per_unit_max = 1
rows_max = 1000
[tables.people.columns]
person_id = {{ type = "key"{text} }}
age = {{ type = "integer", min = 0, max = 120 }}
[tables.visits]
source = "visits/*.parquet"
unit = "person_id"
blocks = "moment"
rows_per_unit_max = {rows_per_unit_max}
rows_max = {rows_max}
[tables.visits.columns]
person_id = {{ type = "key"{text} }}
moment = {{ type = "{kind}", min = {first}, max = {last} }}
minutes = {{ type = "integer", min = 0, max = 60 }}
"""


@dataclass
class Visits:
    """The data set in a directory of its own, version 1 and later ones beside its sources."""

    directory: Path
    every: Period = Period.DAY
    times: bool = False
    """Whether moments are timestamps, else dates."""
    texts: bool = False
    """Whether persons have texts for identifiers, else numbers."""
    rows_max: int = 1000
    files: int = 0
    held: dict[int, PreparedBlocks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.directory / "visits").mkdir(parents=True)
        people = [{"person_id": self.person(person), "age": 20 + person} for person in range(8)]
        pq.write_table(pa.Table.from_pylist(people), self.directory / "people.parquet")
        kind, hour = ("timestamp", "T00:00:00") if self.times else ("date", "")
        values = {
            "every": self.every.value,
            "kind": kind,
            "text": ', of = "text"' if self.texts else "",
            "rows_max": self.rows_max,
            "rows_per_unit_max": ROWS_PER_UNIT_MAX,
            "first": f"{FIRST_DAY}{hour}",
            "last": f"2025-12-31{hour}",
        }
        (self.directory / "lapwing.toml").write_text(CATALOGUE.format(**values), encoding="utf-8")

    @property
    def declaration(self) -> Declaration:
        """As declared."""
        return load(self.directory / "lapwing.toml")

    @property
    def engine(self) -> SparkEngine:
        """Its engine."""
        return spark_engine(self.directory / ".lapwing")

    @property
    def first(self) -> int:
        """The first block."""
        return block_of_day(to_days(FIRST_DAY), self.every)

    def person(self, number: int) -> int | str:
        """An identifier."""
        return f"person {number}|{number % 3}" if self.texts else number

    def add(self, block: int | None, rows: list[tuple[int, int]], *, seed: int = 0) -> Path:
        """A file of rows (person, minutes) on some days of a block, or without a time."""
        draw, listed = random.Random(seed), []
        for person, minutes in rows:
            moment: Any = None
            if block is not None:
                day = to_date(draw.randint(*days_of_block(block, self.every)))
                moment = datetime.datetime(day.year, day.month, day.day, draw.choice([0, 12, 23]), 59) if self.times else day
            listed.append({"person_id": self.person(person), "moment": moment, "minutes": minutes})
        kinds = [pa.string() if self.texts else pa.int64(), pa.timestamp("us") if self.times else pa.date32(), pa.int64()]
        schema = pa.schema(list(zip(("person_id", "moment", "minutes"), kinds, strict=True)))
        self.files += 1
        path = self.directory / "visits" / f"{self.files:03d}.parquet"
        pq.write_table(pa.Table.from_pylist(listed, schema), path)
        return path

    def add_many(self, block: int, *, seed: int) -> Path:
        """Rows of several persons in a block; some have more than are kept, some have equal ones."""
        draw = random.Random(seed)
        rows = [(person, draw.randrange(4)) for person in range(6) for _ in range(draw.randrange(3 * ROWS_PER_UNIT_MAX))]
        return self.add(block, rows, seed=seed)

    def prepare(self, version: int, first: int, last: int, *, witness: Witness | None = None) -> None:
        """Prepare these blocks from nothing."""
        self.held[version] = PreparedBlocks(first, last)
        text = (self.directory / "lapwing.toml").read_text(encoding="utf-8")
        self.engine.prepare(
            self.declaration,
            text,
            version=version,
            ranking_key=RANKING_KEY,
            progress=silent,
            blocks=self.held[version],
            witness=witness,
        )

    def write(self, write: tuple[int, int], after: PreparedBlocks, *, version: int = 1, witness: Witness | None = None) -> None:
        """Write blocks of a version."""
        self.engine.write_blocks(version, BlockWrite(self.declaration, write, after, RANKING_KEY, witness=witness))
        self.held[version] = after

    def append(self, first: int, last: int, *, version: int = 1) -> None:
        """Write the next blocks of a version."""
        before = self.held[version]
        self.write((first, last), PreparedBlocks(before.first, last, before.corrected), version=version)

    def open(self, version: int = 1) -> Snapshot:
        """Open a version."""
        return self.engine.open(version, ranking_key=RANKING_KEY)

    def index(self, version: int = 1) -> WrittenFolders:
        """Which blocks a version holds, and where."""
        return read_marker(self.directory / ".lapwing", version).index()

    def files_of(self, version: int = 1) -> dict[str, tuple[int, int]]:
        """The Parquet files of a version that hold blocks, each with its identity and time of change."""
        folder = rows_path(self.directory / ".lapwing", version)
        found = {path: path.stat() for path in folder.rglob("*.parquet") if "=" in path.parent.name}
        return {str(path.relative_to(folder)): (state.st_ino, state.st_mtime_ns) for path, state in found.items()}

    def rows(self, version: int = 1) -> dict[int, list[str]]:
        """The prepared visits of each block that has any, as text and in one order."""
        folder, index = rows_path(self.directory / ".lapwing", version), self.index(version)
        found = {}
        for block in index.held["visits"]:
            (part,) = index.folders(folder, "visits", (block, block))
            found[block] = sorted(str(row) for path in part.glob("*.parquet") for row in pq.read_table(path, partitioning=None).to_pylist())
        return found
