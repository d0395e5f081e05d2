"""The tables that engines are compared on: `visits` of `benchmarks.visits`, numbered and with an item, and one row of `members` per user.

Visits are written in pieces of at most PIECE_ROWS rows, each with users of its own, so that no piece needs more memory than another.
`visit_id` grows from row to row; `item` is one of a million, all about equally often.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import duckdb
from benchmarks.visits import AMOUNT_MAX, DURATION_MAX, PRODUCTS, REGIONS, SEED, USER_ROWS_MAX, write_visits

PIECE_ROWS = 10_000_000
ITEMS = 1_000_000
TIERS = ("bronze", "gold", "iron", "silver")
MEMORY = "1GB"


class Appended(Enum):
    """Whose rows came later. How many rows of older units must be ranked again is what decides the time."""

    NEW_USERS = "by new users"
    FEW_USERS = "by 1 % of the users"
    ALL_USERS = "by users as they come: the more rows a user has, the likelier"


@dataclass(frozen=True, slots=True)
class World:
    """The owner's files, all in one directory."""

    directory: Path

    @property
    def visits(self) -> Path:
        """A directory of Parquet files."""
        return self.directory / "visits"

    @property
    def members(self) -> Path:
        """One Parquet file."""
        return self.directory / "members.parquet"

    @property
    def reader(self) -> str:
        """SQL of all visits, in DuckDB."""
        return f"read_parquet('{self.visits}/*.parquet')"

    @property
    def source_bytes(self) -> int:
        """Size of the visits."""
        return sum(path.stat().st_size for path in self.visits.iterdir())


def write_world(world: World, *, rows: int) -> None:
    """Write both tables; nothing where the directory already has them."""
    if world.members.exists():
        return
    world.visits.mkdir(parents=True)
    pieces = -(-rows // PIECE_ROWS)
    for piece in range(pieces):
        first = piece * PIECE_ROWS
        plain = world.directory / "piece.parquet"
        write_visits(plain, rows=min(PIECE_ROWS, rows - first), seed=SEED + piece)
        numbered = f"(SELECT {first} + row_number() OVER () AS visit_id, * FROM read_parquet('{plain}'))"
        users = f"user_id * {pieces} + {piece} AS user_id"
        _copy(
            f"SELECT visit_id, {users}, CAST(visit_id * 7919 % {ITEMS} AS INTEGER) AS item, * EXCLUDE (visit_id, user_id) FROM {numbered}",
            world.visits / f"part-{piece:05d}.parquet",
        )
        plain.unlink()
    tier = " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(TIERS))
    _copy(f"SELECT DISTINCT user_id, CASE user_id % {len(TIERS)} {tier} END AS tier FROM {world.reader}", world.members)


def append_rows(world: World, how: Appended, *, rows: int, number: int) -> Path:
    """Write ``rows`` more visits as file ``number`` of those that came later: old rows again, with new identifiers and perhaps users."""
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        last, users = connection.execute(f"SELECT max(visit_id), max(user_id) + 1 FROM {world.reader}").fetchall()[0]
    user = {
        Appended.NEW_USERS: f"{users} + user_id",
        Appended.FEW_USERS: f"user_id % {max(users // 100, 1)} * 100",
        Appended.ALL_USERS: "user_id",
    }[how]
    first = world.visits / "part-00000.parquet"
    target = world.visits / f"later-{number:05d}.parquet"
    # rows lie in random order, so the first ones are as good as any
    sample = f"(SELECT * FROM read_parquet('{first}') LIMIT {rows})"
    _copy(f"SELECT {last} + row_number() OVER () AS visit_id, {user} AS user_id, * EXCLUDE (visit_id, user_id) FROM {sample}", target)
    return target


def _copy(select: str, target: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"COPY ({select}) TO '{target}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 500000)")


def catalogue(*, engine: str, connection: str, preparation: str, visits: str, members: str, rows: int) -> str:
    """The owner's declaration: what `benchmarks.visits` declares, and the members. No unit's rows are cut."""
    regions, tiers = (", ".join(f'"{value}"' for value in values) for values in (REGIONS, TIERS))
    return f"""\
format = 1

[dataset]
id = "visits.{preparation}"
unit = "user"
engine = "{engine}"
connection = "{connection}"
preparation = "{preparation}"

[budget]
epsilon = 3
delta = "2^-40"

[tables.visits]
source = "{visits}"
unit = "user_id"
rows_max = {2 * rows}
rows_per_unit_max = {USER_ROWS_MAX}
appended_by = "visit_id"

[tables.visits.columns]
user_id = {{ type = "key", null = false }}
item = {{ type = "integer", min = 0, max = {ITEMS - 1}, null = false }}
day = {{ type = "date", min = 2024-01-01, max = 2024-12-31 }}
region = {{ type = "text", values = [{regions}] }}
product = {{ type = "integer", min = 1, max = {PRODUCTS} }}
amount = {{ type = "real", min = 0, max = {AMOUNT_MAX}, steps = 100 }}
duration = {{ type = "integer", min = 0, max = {DURATION_MAX} }}

[tables.members]
source = "{members}"
unit = "user_id"
rows_max = {2 * rows}
rows_per_unit_max = 1
appended_by = "user_id"

[tables.members.columns]
user_id = {{ type = "key", null = false }}
tier = {{ type = "text", values = [{tiers}], null = false }}
"""
