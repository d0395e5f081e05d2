"""Worlds with blocks of time: visits and drugs hold their own unit and have blocks, months of 2024; people are the standing block.

Neighbours differ in one person's rows of one block: they are removed or, for bounded neighbours, replaced by other rows of the same person
in that block.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lapwing.audit.oracle import ChangedBlock
from lapwing.audit.runs import Family
from lapwing.audit.worlds import CATALOGUE, SCHEMAS, Row, World, declare, random_world, unit_rows, with_unit
from lapwing.catalog import Declaration
from lapwing.kernel.block_calendar import Period, block_of_day
from lapwing.kernel.calendar import to_days

EVERY = Period.MONTH
FIRST_DAY, LAST_DAY = datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)
DAYS = (FIRST_DAY, datetime.date(2024, 1, 31), datetime.date(2024, 2, 1), datetime.date(2024, 7, 7), LAST_DAY)
MOVER = 900
"""A person whose clipped vector turns if one block of it goes."""
NO_BLOCK = -1
"""No block has this number."""
OF_PATH = 'unit = "visit_id -> visits.visit_id"'
OWN_COLUMNS = """[tables.drugs.columns]
person_id = {{ type = "key" }}
day = {{ type = "date", min = 2024-01-01, max = 2024-12-31 }}"""
BLOCK_CATALOGUE = (
    CATALOGUE.replace(OF_PATH, 'unit = "person_id"')
    .replace("[tables.drugs.columns]", OWN_COLUMNS)
    .replace("[tables.people]", f'[blocks]\nevery = "{EVERY.value}"\nperson_cap = "none"\n[tables.people]')
    .replace("rows_per_unit_max", 'blocks = "day"\nrows_per_unit_max')
)
"""Visits and drugs have blocks; people are the one table that declares one row per unit instead of ``rows_per_unit_max``."""
BLOCK_SCHEMAS = {**SCHEMAS, "drugs": pa.schema([("person_id", pa.int64()), ("day", pa.date32()), *SCHEMAS["drugs"]])}


def block_number(day: object) -> int | None:
    """The block of a raw row; None without a day, and with one that is not declared, which preparation takes for none."""
    if not isinstance(day, datetime.date) or not FIRST_DAY <= day <= LAST_DAY:
        return None
    return block_of_day(to_days(day), EVERY)


JANUARY, DECEMBER = block_number(FIRST_DAY) or 0, block_number(LAST_DAY) or 0
FEBRUARY, JULY = JANUARY + 1, JANUARY + 6


def declare_blocks(world: World, directory: Path, *, neighbours: str, delta: str, seed: int = 0) -> Declaration:
    """Write the world's sources, in an order that depends on ``seed`` only, and read its catalogue, which declares blocks."""
    return declare(world, directory, neighbours=neighbours, delta=delta, seed=seed, catalogue=BLOCK_CATALOGUE, schemas=BLOCK_SCHEMAS)


def random_block_world(rng: random.Random) -> World:
    """Persons with rows in several blocks, many equal rows in one of them, and one with few rows in one clinic before many in another."""
    world = with_days(random_world(rng), rng)
    some = {**world.visits[0], "person_id": MOVER, "flag": True, "cost": 500.0}
    moved = [{**some, "visit_id": 1_000 * MOVER + n, "clinic": int(n > 2), "day": DAYS[0] if n < 3 else DAYS[3]} for n in range(15)]
    person: Row = {"person_id": MOVER, "age": 40, "sex": "f", "score": 1.0}
    return replace(world, people=(*world.people, person), visits=(*world.visits, *moved))


def with_days(world: World, rng: random.Random) -> World:
    """The world with drugs that hold their own unit, and rows in several blocks."""
    visits = tuple({**row, "day": rng.choice([row["day"], row["day"], *DAYS])} for row in world.visits)
    of_visit = {row["visit_id"]: row for row in visits}
    nobody: Row = {"person_id": None, "day": None}
    drugs = []
    for row in world.drugs:
        visit = of_visit.get(row["visit_id"], nobody)
        drugs.append({"person_id": visit["person_id"], "day": rng.choice([visit["day"], visit["day"], *DAYS]), **row})
    return World(world.people, visits, tuple(drugs))


def neighbours_of_blocks(world: World, relation: str, rng: random.Random) -> Iterator[tuple[World, ChangedBlock]]:
    """In any order: every person's rows of every block removed, for bounded neighbours also replaced by others, and rows of no block."""
    found = list(_neighbours(world, relation, rng))
    rng.shuffle(found)
    yield from found


def _neighbours(world: World, relation: str, rng: random.Random) -> Iterator[tuple[World, ChangedBlock]]:
    yield from _no_block(world)
    for unit in world.units():
        for block in _blocks_of(world, unit):
            rest = _without(world, unit, block)
            yield rest, ChangedBlock(block)
            if relation == "bounded":
                yield with_unit(rest, _rows_in(block, unit, rng)), ChangedBlock(block)


def _no_block(world: World) -> Iterator[tuple[World, ChangedBlock]]:
    """Rows without a declared day are in no block: without them nothing differs, not even the standing block."""
    visits = tuple(row for row in world.visits if block_number(row["day"]) is not None)
    yield replace(world, visits=visits), ChangedBlock(NO_BLOCK)


def _blocks_of(world: World, unit: int) -> list[int | None]:
    of_time = {block_number(row["day"]) for row in (*world.visits, *world.drugs) if row["person_id"] == unit}
    standing = [None] if any(row["person_id"] == unit for row in world.people) else []
    return [*standing, *sorted(block for block in of_time if block is not None)]


def _without(world: World, unit: int, block: int | None) -> World:
    if block is None:
        return replace(world, people=tuple(row for row in world.people if row["person_id"] != unit))

    def others(rows: Sequence[Row]) -> tuple[Row, ...]:
        return tuple(row for row in rows if row["person_id"] != unit or block_number(row["day"]) != block)

    return World(world.people, others(world.visits), others(world.drugs))


def _rows_in(block: int | None, unit: int, rng: random.Random) -> World:
    """Other rows of a person, all of them in one block."""
    added = with_days(unit_rows(rng, unit), rng)
    if block is None:
        return World(added.people, (), ())
    days = [day for day in DAYS if block_number(day) == block] or [datetime.date(block // 12, block % 12 + 1, 1)]
    moved = [tuple({**row, "person_id": unit, "day": rng.choice(days)} for row in rows) for rows in (added.visits, added.drugs)]
    return World((), *moved)


BLOCKS_OF_TIME = Family(random_block_world, declare_blocks, neighbours_of_blocks)
"""Worlds that differ in one person's rows of one block."""
