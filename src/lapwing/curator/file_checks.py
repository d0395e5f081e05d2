"""The findings of ``lapwing check`` on the files of a table: from names, schemas and first lines, never from a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lapwing.curator.source_schemas import UnreadableSource, read_columns

if TYPE_CHECKING:
    from lapwing.catalog import PublicDecl, TableDecl

DELIMITERS = (",", ";", "\t", "|")


def file_problems(table: TableDecl | PublicDecl, files: Sequence[Path]) -> Iterator[str]:
    """Everything that would stop preparation before a row is read."""
    from lapwing.engines.sources import agreed_columns, csv_headers, is_csv, require_partitions
    from lapwing.errors import PreparationError

    held: dict[str, dict[str, str]] = {}
    for file in files:
        try:
            held[str(file)] = _columns(table, file)
        except UnreadableSource as error:
            yield f"{table.name}: {error}"
    missing = [list(_missing(table, Path(file), columns)) for file, columns in held.items()]
    yield from (problem for problems in missing for problem in problems)
    try:
        require_partitions(table, [str(file) for file in files])
        if is_csv(table.source) and held:
            csv_headers(table, list(held))
        elif held and not any(missing):
            agreed_columns(table, held)
    except PreparationError as error:
        yield f"{table.name}: {error.message}"


def _columns(table: TableDecl | PublicDecl, file: Path) -> dict[str, str]:
    """Columns of a file with their types; columns of CSV have none."""
    from lapwing.engines.sources import first_line, header_names, is_csv

    columns = read_columns(file)
    if not is_csv(file.name):
        return {column.name: column.described for column in columns}
    names = header_names(first_line(str(file)), table.delimiter)
    return dict.fromkeys(names, "text")


def _missing(table: TableDecl | PublicDecl, file: Path, columns: dict[str, str]) -> Iterator[str]:
    for column in table.columns:
        if column.source_name not in columns and column.source_name not in table.partitions:
            yield f"{table.name}.{column.name}: {file.name} has no column {column.source_name!r}{_hint(table, file, column.source_name)}"


def _hint(table: TableDecl | PublicDecl, file: Path, column: str) -> str:
    """A hint where the column may be: in the names of folders, or after another delimiter."""
    from lapwing.engines.sources import first_line, header_names, is_csv

    if any(folder.startswith(f"{column}=") for folder in file.parts[:-1]):
        return f'; it is in the name of a folder: list it in `partitions = ["{column}"]`'
    if is_csv(file.name):
        line = first_line(str(file))
        for delimiter in DELIMITERS:
            if column in header_names(line, delimiter):
                shown = "\\t" if delimiter == "\t" else delimiter
                return f'; its first line is divided by another sign: write `delimiter = "{shown}"`'
    return ""
