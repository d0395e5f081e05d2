"""Source files as relations of DuckDB, read with every kind of guessing off."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence

import duckdb

from lapwing.catalog import Declaration, PublicDecl, TableDecl
from lapwing.catalog.facts import NumberTypes
from lapwing.engines.prepare import SourceTable, numbers_declared
from lapwing.engines.sources import NULL_FOLDER, agreed_columns, csv_headers, is_csv, require_partitions, source_files
from lapwing.errors import PreparationError
from lapwing.render.dialect import SourceKind, quoted, standard_text_literal
from lapwing.render.duckdb import number_type, source_kind

_FILE = "_lapwing_file"
"""Column that holds the file a row is in."""
_PLAIN = "hive_partitioning = false, union_by_name = false"
_CSV_FIXED = (
    "auto_detect = false, all_varchar = true, skip = 0, comment = '', encoding = 'utf-8', strict_mode = true, null_padding = false,"
    " ignore_errors = false"
)


def source(connection: duckdb.DuckDBPyConnection, declaration: Declaration, table: TableDecl | PublicDecl) -> SourceTable:
    """Where the rows of a table come from, and what its columns hold. Refuses files that cannot be read row by row."""
    path = declaration.source_path(table)
    files = source_files(path)
    require_partitions(table, files)
    if is_csv(path):
        header = csv_headers(table, files)
        kinds = dict.fromkeys(agreed_columns(table, {files[0]: dict.fromkeys(header, "text")}), SourceKind.TEXT)
        _require_lines(connection, table, files, header)
    else:
        held = agreed_columns(table, _schemas(connection, files))
        header, kinds = (), {column: source_kind(kind) for column, kind in held.items()}
    kinds |= dict.fromkeys(table.partitions, SourceKind.TEXT)
    return SourceTable(reader(table, files, kinds, header=header), kinds)


def number_types(connection: duckdb.DuckDBPyConnection, declaration: Declaration) -> NumberTypes:
    """The number types of the declared columns of every table, as the files say; those of text are not said."""
    found = {}
    for table in declaration.all_tables:
        path = declaration.source_path(table)
        held = {} if is_csv(path) else _schema(connection, source_files(path)[0])
        found[table.name] = numbers_declared(table, {column: number_type(kind) for column, kind in held.items()})
    return found


def reader(table: TableDecl | PublicDecl, files: Sequence[str], columns: Iterable[str], *, header: Sequence[str] = ()) -> str:
    """SQL of the wanted columns of files. Those that are names of folders are text, each row's from the path of its own file."""
    listed = [f"{_folder(name)} AS {quoted(name)}" if name in table.partitions else quoted(name) for name in columns]
    return f"(SELECT {', '.join(listed) or '1'} FROM {_rows(table, files, header)})"


def _rows(table: TableDecl | PublicDecl, files: Sequence[str], header: Sequence[str]) -> str:
    if not is_csv(files[0]):
        return f"read_parquet([{_paths(files)}], {_PLAIN}, binary_as_string = false, filename = '{_FILE}')"
    columns = ", ".join(f"{standard_text_literal(name)}: 'VARCHAR'" for name in header)
    divided = f"delim = {standard_text_literal(table.delimiter)}, quote = '\"', escape = '\"', nullstr = ''"
    form = f"{_CSV_FIXED}, {divided}, header = true, columns = {{{columns}}}"
    return f"read_csv([{_paths(files)}], {_PLAIN}, {form}, compression = '{_packing(files)}', filename = '{_FILE}')"


def _folder(name: str) -> str:
    """The value in the one folder ``name=value`` of a path."""
    value = f"split_part(split_part({_FILE}, {standard_text_literal(f'/{name}=')}, 2), '/', 1)"
    return f"(CASE WHEN {value} <> '{NULL_FOLDER}' THEN url_decode({value}) END)"


def _schemas(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> dict[str, dict[str, str]]:
    """The columns of each file. Files whose own schemas are the same to the letter are described once: a year of days has many."""
    written = connection.execute(
        "SELECT file_name, CAST(to_json(list(COLUMNS(* EXCLUDE (file_name)) ORDER BY column_id)) AS VARCHAR)"
        f" FROM parquet_schema([{_paths(files)}]) GROUP BY file_name"
    ).fetchall()
    by_schema: dict[tuple[str, ...], dict[str, str]] = {}
    found = {}
    for file, *schema in written:
        key = tuple(schema)
        if key not in by_schema:
            by_schema[key] = _schema(connection, file)
        found[str(file)] = by_schema[key]
    return found if found.keys() == set(files) else {file: _schema(connection, file) for file in files}


def _schema(connection: duckdb.DuckDBPyConnection, file: str) -> dict[str, str]:
    described = connection.execute(
        f"DESCRIBE SELECT * FROM read_parquet([{_paths([file])}], {_PLAIN}, binary_as_string = false)"
    ).fetchall()
    return {str(row[0]): str(row[1]) for row in described}


def _require_lines(
    connection: duckdb.DuckDBPyConnection, table: TableDecl | PublicDecl, files: Sequence[str], header: Sequence[str]
) -> None:
    """Refuse a line that is not a record by itself: a quote that it does not close would take in other lines, which are other people's.

    The lines are counted as lines, ignoring quotes, before they are parsed as records; the number of records must be equal.
    """
    value = f'(?:[^"{_in_class(table.delimiter)}]*|"(?:[^"]|"")*")'
    record = standard_text_literal(f"{value}(?:{_in_pattern(table.delimiter)}{value})*")
    wrong = f"any_value({_FILE}) FILTER (WHERE NOT regexp_full_match(line, {record}))"
    lines, file = connection.execute(f"SELECT COUNT(*), {wrong} FROM {_lines(files)}").fetchall()[0]
    if file is not None:
        message = f"{file} of table {table.name!r} has a line that is no record: a quote or a line break inside a value"
        hint = "put values that hold quotes into quotes and double those inside; take line breaks out, or write the table as Parquet"
        raise PreparationError("source-line", message, hint=hint)
    records = connection.execute(f"SELECT COUNT(*) FROM {_rows(table, files, header)}").fetchall()[0][0]
    if records != lines - len(files):
        raise PreparationError("source-line", f"the files of table {table.name!r} cannot be read line by line", hint="write it as Parquet")


def _lines(files: Sequence[str]) -> str:
    """SQL of the lines of CSV files as they are: no value is divided, and no quote means anything."""
    undivided = "delim = '\x1f\x1e\x1f\x1e', quote = '', escape = '', nullstr = '\x1d\x1c'"
    form = f"{_CSV_FIXED}, {undivided}, header = false, columns = {{'line': 'VARCHAR'}}"
    return f"read_csv([{_paths(files)}], {_PLAIN}, {form}, compression = '{_packing(files)}', filename = '{_FILE}')"


def _paths(files: Sequence[str]) -> str:
    # A file whose name looks like a pattern is that file alone.
    return ", ".join(standard_text_literal(glob.escape(file)) for file in files)


def _packing(files: Sequence[str]) -> str:
    return "gzip" if files[0].endswith(".gz") else "none"


def _in_class(sign: str) -> str:
    return "\\t" if sign == "\t" else sign


def _in_pattern(sign: str) -> str:
    return {"\t": "\\t", "|": "\\|"}.get(sign, sign)
