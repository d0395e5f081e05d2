"""The second list: statements as business-intelligence tools, analysts and clients write them, about the demonstration data set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from lapwing.audit.lists.conformance import Worlds
from lapwing.audit.lists.written_lists import ListedStatement, WrittenOutcome, run_written, written_list

FILE = "second_list.sql"


def second_list() -> tuple[ListedStatement, ...]:
    """The list, in its order."""
    return written_list(FILE)


def run_second_list(directory: Path, *, postgres: str | None = None) -> Iterator[WrittenOutcome]:
    """Outcomes of all statements, on new demonstrations in an empty directory, which the caller deletes.

    ``postgres`` is a connection string: statements that bare DuckDB does not accept are compared with that server.
    """
    with closing(Worlds(directory)) as worlds:
        yield from run_written(worlds, second_list(), postgres=postgres)
