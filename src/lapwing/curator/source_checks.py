"""A catalogue against the schemas of the sources it names. No row is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from lapwing.catalog import Declaration, EngineKind, PublicDecl, RowUnit, Settings, TableDecl, UnitPath
from lapwing.catalog.units import ROW
from lapwing.curator.file_checks import file_problems
from lapwing.curator.source_schemas import ColumnContents, SourceColumn, UnreadableSource, read_columns, source_files
from lapwing.engines.marks import shared_sources
from lapwing.engines.reading import require_readable
from lapwing.engines.registry import engine_of, source_fields
from lapwing.errors import PreparationError
from lapwing.kernel.domains import KeyDomain, TextDomain
from lapwing.planning.group_enumeration.listing import size_of
from lapwing.render.dialect import SourceKind


def source_problems(declaration: Declaration) -> Iterator[str]:
    """What is missing or different in the sources that a catalogue names; from their schemas alone."""
    apart = list(_file_problems(declaration) if declaration.dataset.engine is EngineKind.DUCKDB else _engine_problems(declaration))
    yield from apart
    if not apart:  # otherwise two sources cannot be distinguished
        marks = engine_of(declaration, declaration.directory or Path(), Settings()).source_marks(declaration)
        yield from (f"{error.message} ({error.hint})" for error in shared_sources(declaration, marks))


def _file_problems(declaration: Declaration) -> Iterator[str]:
    for table in declaration.all_tables:
        files = source_files(declaration.directory or Path(), table.source)
        if not files:
            yield f"{table.name}: its source {table.source!r} names no file"
        yield from file_problems(table, files)
        yield from type_problems(table, {column.name: column.held for column in _held_columns(declaration, table)})


def _engine_problems(declaration: Declaration) -> Iterator[str]:
    """The same for tables of a server or session: whether they are there, with the columns that are declared."""
    dataset = declaration.dataset
    for table in declaration.all_tables:
        try:
            (fields,) = source_fields(dataset.engine, dataset.connection, [declaration.source_path(table)], Settings())
        except PreparationError as error:
            yield f"{table.name}: {error.message}{f' ({error.hint})' if error.hint else ''}"
            if error.code in ("engine-unreachable", "engine-missing", "engine-version"):
                return  # the same for every table
            continue
        missing = [column for column in table.columns if column.source_name not in fields]
        yield from (f"{table.name}.{column.name}: {table.source} has no column {column.source_name!r}" for column in missing)


def type_problems(table: TableDecl | PublicDecl, held: Mapping[str, ColumnContents]) -> Iterator[str]:
    """Columns whose declared type the source's own type cannot be read as; of a CSV file, any text can be."""
    for column in table.columns:
        kind = _KINDS.get(held.get(column.source_name, ColumnContents.UNKNOWN))
        try:
            if kind is not None:
                require_readable(kind, column.domain)
        except PreparationError as error:
            yield f"{table.name}.{column.name}: {error.message}"


_KINDS = {
    ColumnContents.INTEGER: SourceKind.INTEGER,
    ColumnContents.REAL: SourceKind.FRACTIONAL,
    ColumnContents.BOOLEAN: SourceKind.BOOLEAN,
    ColumnContents.TEXT: SourceKind.TEXT,
    ColumnContents.DATE: SourceKind.DATE,
    ColumnContents.TIMESTAMP: SourceKind.TIMESTAMP,
}


def source_warnings(declaration: Declaration) -> Iterator[str]:
    """Warnings for the owner from the schemas of the files alone; the contents of rows are neither read nor reported.

    One for keys on the path to a unit that are text in the source and numbers in the catalogue: rows with other text are left out. One for
    ``unit = "row"`` if the source has a column named ``row``, because the declaration does not refer to it.
    """
    for table in declaration.tables:
        if isinstance(table.unit, RowUnit) and _has_column(declaration, table, ROW):
            yield f'{table.name}: its source has a column "{ROW}"; `unit = "{ROW}"` does not refer to that column, and protects single rows'
    keys: dict[tuple[str, str], None] = {}
    for table in declaration.tables:
        here = table.name
        for hop in table.unit.hops:
            keys |= {(here, hop.column): None, (hop.target.table, hop.target.column): None}
            here = hop.target.table
        if isinstance(table.unit, UnitPath):
            keys[here, table.unit.end.column] = None
    for name, column in keys:
        declared = declaration.table(name)
        key_column = declared.column(column)
        is_text = isinstance(key_column.domain, TextDomain) or (isinstance(key_column.domain, KeyDomain) and key_column.domain.text)
        if not is_text and _stored_as_text(declaration, declared, key_column.source_name):
            message = (
                "the source stores text, the catalogue declares numbers: rows whose text is no whole number have no unit and are left out"
            )
            yield f'{name}.{column}: {message} (for keys of text, write {{ type = "key", of = "text" }})'


def _stored_as_text(declaration: Declaration, table: TableDecl, column: str) -> bool:
    return any(held.name == column and held.held is ColumnContents.TEXT for held in _held_columns(declaration, table))


def _has_column(declaration: Declaration, table: TableDecl, name: str) -> bool:
    return any(held.name.lower() == name for held in _held_columns(declaration, table))


def _held_columns(declaration: Declaration, table: TableDecl | PublicDecl) -> Iterator[SourceColumn]:
    """The columns of all files of a table that can be read."""
    for file in source_files(declaration.directory or Path(), table.source):
        try:
            yield from read_columns(file)
        except UnreadableSource:
            continue


def long_keys(table: TableDecl, *, has_delta: bool) -> Iterator[str]:
    """The columns with more declared values than groups are enumerated for, and the effect on GROUP BY."""
    limit = Settings().key_values_max
    for column in table.columns:
        size = size_of(column.domain)
        if size is not None and size > limit:
            becomes = "is discovered, not listed" if has_delta and not isinstance(column.domain, TextDomain) else "is refused"
            yield f"GROUP BY {column.name} {becomes}: {size:,} possible values, more than key_values_max ({limit:,})"
