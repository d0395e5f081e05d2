"""``lapwing init``: from names of files to the text of a first catalogue."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lapwing.cli.exits import usage_error
from lapwing.curator.declared_text import id_of_place
from lapwing.curator.draft import WishedTable, count_todos, draft, named_tables, safe_name
from lapwing.curator.source_schemas import UnreadableSource, read_columns, source_files, table_columns

_WILDCARDS = "*?["


def initial_catalogue(files: Sequence[str], *, directory: Path, engine: str = "duckdb", connection: str = "") -> tuple[str, int]:
    """The text, and how many lines wait for the owner. Sources are written relative to ``directory``, where the catalogue will be."""
    if (engine == "postgres") != bool(connection):
        raise usage_error("--connection goes with --engine postgres, and only with it")
    sources = [
        _on_engine(name, engine, connection) if _is_table(name, engine) else _source(name, directory) for name in dict.fromkeys(files)
    ]
    dataset_id = id_of_place(safe_name(directory.resolve().name).replace("_", "-"), directory)
    text = draft(dataset_id, named_tables(sources), engine=engine, connection=connection)
    return text, count_todos(text)


def _is_table(name: str, engine: str) -> bool:
    """Whether a source is the name of a table; on Spark, what is no path is one."""
    return engine == "postgres" or (engine == "spark" and "/" not in name and not name.endswith(".parquet"))


def _on_engine(name: str, engine: str, connection: str) -> WishedTable:
    """A table on a server or in a session."""
    return WishedTable(name.split(".")[-1].strip('"'), name, table_columns(name, engine, connection))


def _source(file: str, directory: Path) -> WishedTable:
    """A table of files, with its columns as the first file has them."""
    files = source_files(Path(), file)
    if not files:
        raise usage_error(f"there is no file {file}")
    try:
        columns = read_columns(files[0])
    except UnreadableSource as error:
        raise usage_error(str(error)) from None
    line = Path(os.path.relpath(file, directory)).as_posix()
    folders = [part.partition("=") for part in Path(files[0]).parent.parts]
    return WishedTable(_wished_name(Path(file)), line, columns, tuple(name for name, sign, _ in folders if name and sign))


def _wished_name(path: Path) -> str:
    """The file's name without its ending; of a pattern without letters of its own, that of the nearest directory that is none."""
    for name in (path.name.split(".")[0], *(part for part in reversed(path.resolve().parent.parts) if "=" not in part)):
        plain = "".join(char for char in name if char not in _WILDCARDS + "]")
        if any(char.isalpha() for char in plain):
            return plain
    return ""
