"""What owners may declare through the server: files and folders of one directory, and tables of databases that the operator named.

Only names and types of columns are read, as in ``lapwing init``, and no row. Only the operator knows the connection of a database:
messages contain only its name.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapwing.curator.source_schemas import (
    SUFFIXES,
    ColumnContents,
    DatabaseTables,
    SourceColumn,
    UnreadableSource,
    columns_of_tables,
    csv_delimiter,
    database_tables,
    read_columns,
)
from lapwing.errors import PreparationError
from lapwing.interfaces.http.configuration import NamedDatabase
from lapwing.owner.catalogue_draft import RequestedTable, named_tables, safe_name, unused_name

FILES_MAX = 500
DEPTH_MAX = 4
"""How many levels of folders below the directory are searched."""
_PATTERN_SIGNS = re.compile(r"[*?\[\]{}]")


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A chosen source: the name of its table, how a catalogue names it, and its columns."""

    name: str
    written: str
    delimiter: str | None
    columns: tuple[dict[str, Any], ...]


class SourceDirectory:
    """Files of one directory, and folders whose files together are one table."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def files(self) -> list[str]:
        """Files that can be declared, relative to the directory."""
        inside = (path for path in _files(self._root, DEPTH_MAX) if path.resolve().is_relative_to(self._root))
        return sorted(path.relative_to(self._root).as_posix() for path in inside)[:FILES_MAX]

    def folders(self) -> list[str]:
        """Folders with several files of one kind, as patterns: ``visits/*.csv``. Left out if the pattern would match more."""
        gathered: dict[str, int] = {}
        for file in self.files():
            folder, slash, name = file.rpartition("/")
            if slash:
                pattern = f"{folder}/*{next(suffix for suffix in SUFFIXES if name.endswith(suffix))}"
                gathered[pattern] = gathered.get(pattern, 0) + 1
        return [pattern for pattern, count in gathered.items() if count > 1 and len(self._matched(pattern)) == count]

    def _matched(self, pattern: str) -> list[Path]:
        folder, _, ending = pattern.rpartition("/")
        place = self._root / folder
        if _PATTERN_SIGNS.search(str(place)):
            return []
        return sorted(place.glob(ending))

    def paths(self, source: str) -> list[Path]:
        """The files of a listed source; other files are not opened."""
        if source in self.files():
            return [self._root / source]
        if source in self.folders():
            return self._matched(source)
        raise PreparationError("source-missing", "the operator's directory has no such file or folder")

    def require_inside(self, written: str) -> None:
        """Refuse a file or pattern of a catalogue that now leads out of the directory: somebody may have added a link since."""
        found = [Path(name) for name in glob.glob(written, recursive=True)] or [Path(written)]
        if any(not path.resolve().is_relative_to(self._root) for path in found):
            raise PreparationError("source-missing", "a file of this data set is no longer in the operator's directory")

    def columns(self, source: str) -> list[SourceColumn]:
        """The columns of a source; all files of a folder must have the same columns."""
        first, *others = self.paths(source)
        try:
            columns = read_columns(first)
            if any(read_columns(other) != columns for other in others):
                raise PreparationError("source-missing", f"the files of {source} do not all have the same columns")
        except UnreadableSource as error:
            raise PreparationError("source-missing", str(error)) from None
        return columns

    def named(self, source: str) -> RequestedTable:
        """A table named after its file, or after the folder of its files."""
        folder, _, file = source.rpartition("/")
        wished = folder.rpartition("/")[2] if source in self.folders() else file
        return RequestedTable(wished.partition(".")[0], str(self._root / source), self.columns(source))


class SourceDatabases:
    """Databases that the operator named, and the tables of each."""

    def __init__(self, named: Sequence[NamedDatabase]) -> None:
        self._named = {item.name: item for item in named}

    def names(self) -> list[str]:
        """Their names, which reveal nothing about their addresses."""
        return list(self._named)

    def connection(self, database: str) -> str:
        """Its connection, for written catalogues only; it is never shown."""
        return self._of(database).connection

    def tables(self, database: str) -> DatabaseTables:
        """Tables that can be declared, and their foreign keys."""
        item = self._of(database)
        with _without_address(database):
            found = database_tables(item.connection)
        if item.schemas is None:
            return found
        kept = [name for name in found.names if _schema(name) in item.schemas]
        return DatabaseTables(kept, [pair for pair in found.references if pair[0][0] in kept and pair[1][0] in kept])

    def named(self, database: str, tables: Sequence[str]) -> list[RequestedTable]:
        """The listed tables; others are not opened."""
        listed = self.tables(database).names
        if any(table not in listed for table in tables):
            raise PreparationError("source-missing", f"the database {database} has no such table that can be declared")
        with _without_address(database):
            columns = columns_of_tables(tables, "postgres", self._of(database).connection)
        return [RequestedTable(_last(table), table, found) for table, found in zip(tables, columns, strict=True)]

    def _of(self, database: str) -> NamedDatabase:
        if database not in self._named:
            raise PreparationError("source-missing", "the operator has named no database like this")
        return self._named[database]


@contextmanager
def _without_address(database: str) -> Iterator[None]:
    """Errors of a database are reported without its address and without the driver's text."""
    try:
        yield
    except PreparationError as error:
        if error.code not in ("engine-unreachable", "preparation-failed"):
            raise
        hint = "the operator must check [[database]] in the server's configuration"
        raise PreparationError("engine-unreachable", f"the database {database} cannot be reached or read", hint=hint) from None


def named_sources(wished: Sequence[RequestedTable], *, are_files: bool) -> list[NamedSource]:
    """Sources with names of tables and columns that a catalogue accepts, all different."""
    named = []
    for table in named_tables(wished):
        is_csv = are_files and not table.source.endswith(".parquet")
        named.append(NamedSource(table.name, table.source, _delimiter(table.source) if is_csv else None, _columns(table.columns)))
    return named


def _delimiter(source: str) -> str:
    path = Path(source)
    return csv_delimiter(path if path.is_file() else min(path.parent.glob(path.name)))


def _columns(columns: Sequence[SourceColumn]) -> tuple[dict[str, Any], ...]:
    usable = [column for column in columns if column.name and column.held is not ColumnContents.OTHER]
    used: set[str] = set()
    return tuple({"name": unused_name(safe_name(column.name), used), "from": column.name, "holds": column.held.value} for column in usable)


def _files(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith(".lapwing"):
            continue
        if entry.is_dir() and depth > 0:
            yield from _files(entry, depth - 1)
        elif entry.name.endswith(SUFFIXES) and entry.is_file():
            yield entry


def _schema(table: str) -> str:
    return table[1 : table.index('"', 1)] if table.startswith('"') else table.partition(".")[0]


def _last(table: str) -> str:
    return table.rstrip('"').rpartition('"')[2] if table.endswith('"') else table.rpartition(".")[2]
