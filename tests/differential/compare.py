"""Whether an answer without noise is what the bare engine says, and a run of many statements."""

from __future__ import annotations

import argparse
import datetime
import math
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from lapwing.errors import Refused
from tests.differential.statements import Statements
from tests.differential.world import ROWS, World

ROUNDED = 1e-6 * ROWS
"""Sums of doubles are taken on a grid of a millionth, row by row."""


@dataclass
class Tally:
    """What became of the statements of a run."""

    equal: int = 0
    failed: int = 0
    """Bare engines refuse these, or stumble over a row."""
    refused: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)


def plain(value: Any) -> Any:
    """Both sides in one form."""
    match value:
        case None | bool() | str():
            return value
        case datetime.datetime():
            return value.replace(tzinfo=None)
        case datetime.date():
            return datetime.datetime.combine(value, datetime.time())
        case int() | float() | Decimal():
            return None if math.isnan(value) else float(value)  # 0 by 0, which is NULL here as any quotient by 0
        case _:
            return str(value)


def same(found: Any, wanted: Any) -> bool:
    """Equal; of reals, to what the grid of sums rounds away."""
    if isinstance(found, float) and isinstance(wanted, float) and not isinstance(found, bool):
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9 if found.is_integer() and wanted.is_integer() else ROUNDED)
    return bool(found == wanted)


def difference(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], *, keys: int) -> str | None:
    """Why these rows are not the same, or None. Further rows may stand for declared groups without rows: they hold nothing.

    A sum of nothing is NULL in SQL and 0 here, where nothing declared shows that it is of nothing.
    """
    left = [tuple(map(plain, row)) for row in found]
    for row in (tuple(map(plain, row)) for row in wanted):
        matching = [i for i, ours in enumerate(left) if ours[:keys] == row[:keys] and all(map(_same_value, ours[keys:], row[keys:]))]
        if not matching:
            return f"{row} is missing from {left[:4]}"
        left.pop(matching[0])
    for row in left:
        if any(row[keys:]) or not keys:
            return f"{row} is too many"
    return None


def _same_value(found: Any, wanted: Any) -> bool:
    return same(found, wanted) or (wanted is None and found == 0.0)


def compare(world: World, sql: str, dialect: str, tally: Tally) -> None:
    """Ask both."""
    try:
        found = world.ask(sql, dialect)
    except Refused as error:
        tally.refused[error.code] += 1
        return
    try:
        wanted = world.bare(sql, dialect)
    except (duckdb.Error, psycopg.Error):
        tally.failed += 1
        return
    why = difference(found, wanted, keys=int(" AS k, " in sql))
    if why is None:
        tally.equal += 1
    else:
        tally.different.append(f"{dialect}: {sql}\n    {why}")


def run(world: World, dialect: str, *, count: int, seed: int) -> Tally:
    """So many statements."""
    statements, tally = Statements(seed, dialect), Tally()
    for _ in range(count):
        compare(world, statements.statement(), dialect, tally)
    return tally


def main() -> None:
    """``python -m tests.differential.compare --count 1000 --seed 1``."""
    from tests.ledger.cluster import Cluster

    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dialect", choices=["duckdb", "postgres"], action="append")
    parser.add_argument("--show", type=int, default=20)
    chosen = parser.parse_args()
    dialects = chosen.dialect or ["duckdb", "postgres"]
    cluster = Cluster() if "postgres" in dialects else None
    try:
        with tempfile.TemporaryDirectory() as directory:
            postgres = None if cluster is None else psycopg.connect(cluster.dsn("postgres", role="postgres"), autocommit=True)
            world = World(Path(directory), postgres, seed=chosen.seed)
            for dialect in dialects:
                tally = run(world, dialect, count=chosen.count, seed=chosen.seed)
                print(f"{dialect}: {tally.equal} equal, {len(tally.different)} different, {tally.failed} that the engine refuses,", end=" ")
                print(f"{tally.refused.total()} refused: {dict(tally.refused.most_common())}")
                for text in tally.different[: chosen.show]:
                    print("  " + text)
            world.close()
    finally:
        if cluster is not None:
            cluster.close()


if __name__ == "__main__":
    main()
