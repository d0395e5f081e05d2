"""The third list: statements of people and tools, in two dialects, about a made-up shop with realistic rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from lapwing.audit.lists.benchmark_lists import BenchmarkList, write_benchmark
from lapwing.audit.lists.conformance import Worlds
from lapwing.audit.lists.written_lists import ListedStatement, WrittenOutcome, run_written, written_list
from lapwing.demo import shop_rows

FILE = "third_list.sql"
SHOP = BenchmarkList("shop", FILE, "shop.toml", shop_rows.all_tables, 500)


def third_list() -> tuple[ListedStatement, ...]:
    """The list, in its order."""
    return written_list(FILE)


def shop_worlds(directory: Path) -> Worlds:
    """The shop with a budget for the whole list, without delta and unprotected, in an empty directory."""
    return Worlds(directory, lambda path, delta: write_benchmark(SHOP, path, delta=delta))


def run_third_list(directory: Path, *, postgres: str | None = None) -> Iterator[WrittenOutcome]:
    """Outcomes of all statements, on new data in an empty directory, which the caller deletes.

    ``postgres`` is a connection string: statements in PostgreSQL's dialect are compared with that server; without it they are only planned.
    """
    with closing(shop_worlds(directory)) as worlds:
        yield from run_written(worlds, third_list(), postgres=postgres)
