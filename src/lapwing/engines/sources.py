"""Source files: which they are, what their names say, and whether they agree. Nothing of it is guessed, from rows or from other files.

A record is read by its own bytes, the declaration and the schema that all files of its table share. Where files do not share one, where a
line of a text file is not one record, or where the name of a folder does not say what it was declared to say, preparation stops: an act
of the owner, who sees which file it was.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
import re
import urllib.parse
import zlib
from collections.abc import Iterable, Mapping, Sequence

from lapwing.catalog import PublicDecl, TableDecl
from lapwing.errors import PreparationError

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""What writers of partitions call a folder whose rows have no value there."""
HEADER_BYTES_MAX = 1 << 20
"""Longest first line of a CSV file."""
_ESCAPES = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*")


def is_csv(path: str) -> bool:
    """CSV by the file's name; everything else is read as Parquet."""
    return path.endswith((".csv", ".csv.gz"))


def source_files(path: str) -> tuple[str, ...]:
    """The files that a path or pattern stands for, in the order of their names; at least one."""
    paths = [path] if os.path.isfile(path) else sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    if not paths:
        raise PreparationError("source-missing", "the source file does not exist")
    return tuple(paths)


def columns_wanted(table: TableDecl | PublicDecl) -> tuple[str, ...]:
    """Source columns that are read."""
    followed = [table.appended_by] if isinstance(table, TableDecl) and table.appended_by else []
    return tuple(dict.fromkeys([*(column.source_name for column in table.columns), *followed]))


def agreed_columns(table: TableDecl | PublicDecl, files: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Type of every column that is read, except names of folders; ``files`` gives columns and types by the name of each file.

    Refuses files that lack one, or do not agree about one: an engine would read all of them as it reads the first one.
    """
    agreed: dict[str, str] = {}
    for column in columns_wanted(table):
        seen: dict[str, str] = {}
        for file, columns in files.items():
            seen.setdefault(columns.get(column, "missing"), file)
        if len(seen) > 1:
            described = ", ".join(f"{kind} in {os.path.basename(file)}" for kind, file in sorted(seen.items()))
            raise PreparationError(
                "source-files-differ",
                f"the files of table {table.name!r} differ in column {column!r}: {described}",
                hint="write the files anew with the same columns and types",
            )
        is_held = "missing" not in seen
        if is_held and column in table.partitions:
            message = f"column {column!r} of table {table.name!r} is in the files and declared as a name of folders"
            raise PreparationError("source-partition", message, hint="leave it out of `partitions`")
        if is_held:
            agreed[column] = next(iter(seen))
        elif column not in table.partitions:
            hint = "columns that are names of folders are listed in `partitions`"
            if is_csv(table.source):
                hint += f"; the names in a first line are divided by the declared `delimiter` ({table.delimiter!r})"
            message = f"the source of table {table.name!r} has no column {column!r}"
            raise PreparationError("source-column-missing", message, hint=hint)
    return agreed


def require_partitions(table: TableDecl | PublicDecl, files: Iterable[str]) -> None:
    """Refuse a file that does not lie in one folder ``name=value`` for every declared partition."""
    for file in files:
        for name in table.partitions:
            values = [folder.removeprefix(f"{name}=") for folder in file.split("/")[:-1] if folder.startswith(f"{name}=")]
            if len(values) != 1 or not _is_text(values[0]):
                message = f"{file} of table {table.name!r} does not lie in one folder {name}=VALUE with a value that is text"
                raise PreparationError("source-partition", message, hint="name in `partitions` what every file has")


def _is_text(value: str) -> bool:
    """Whether the escapes in the name of a folder make sense, so that every engine reads the same text."""
    if not _ESCAPES.fullmatch(value):
        return False
    try:
        return "\x00" not in urllib.parse.unquote(value, errors="strict")
    except UnicodeDecodeError:
        return False


def csv_headers(table: TableDecl | PublicDecl, files: Sequence[str]) -> tuple[str, ...]:
    """Names of the columns of CSV files: the first line of every file, which must be the same, name by name."""
    first = _csv_header(table, files[0])
    for file in files[1:]:
        if (other := _csv_header(table, file)) != first:
            position = next((n for n, (a, b) in enumerate(zip(first, other, strict=False)) if a != b), min(len(first), len(other)))
            names = " and ".join(repr(row[position]) if position < len(row) else "nothing" for row in (first, other))
            message = (
                f"the first lines of {os.path.basename(files[0])} and {os.path.basename(file)} differ: column {position + 1} is {names}"
            )
            hint = "write the files anew with the same columns in the same order"
            raise PreparationError("source-files-differ", f"table {table.name!r}: {message}", hint=hint)
    return first


def _csv_header(table: TableDecl | PublicDecl, file: str) -> tuple[str, ...]:
    names = header_names(first_line(file), table.delimiter)
    repeated = {name.lower() for name in names}
    if not names or len(repeated) < len(names):
        message = f"the first line of {os.path.basename(file)} does not name every column once"
        raise PreparationError("source-header", f"table {table.name!r}: {message}", hint="names that differ in case only count as one")
    return names


def first_line(file: str) -> bytes:
    """The first line of a CSV file; of an uncompressed file not a byte more is read. Refuses one that is missing or too long."""
    try:
        if file.endswith(".gz"):
            with gzip.open(file, "rb") as packed:
                line = packed.readline(HEADER_BYTES_MAX)
        else:
            with open(file, "rb", buffering=0) as plain:
                line = plain.readline(HEADER_BYTES_MAX)
    except (EOFError, zlib.error):
        line = b""
    if not line or len(line) == HEADER_BYTES_MAX:
        raise PreparationError("source-header", f"{os.path.basename(file)} has no first line with names of columns")
    # Some write carriage returns alone.
    return line.split(b"\r")[0] if not line.endswith(b"\r\n") else line


def header_names(line: bytes, delimiter: str) -> tuple[str, ...]:
    """The names in a first line, without a byte order mark; empty if they cannot be read."""
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
        return tuple(next(csv.reader([text], delimiter=delimiter, strict=True), []))
    except (UnicodeDecodeError, csv.Error):
        return ()
