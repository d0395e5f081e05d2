"""``lapwing init``: from names of files to the text of a first catalogue."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from lapwing.curator.source_schemas import SUFFIXES, UnreadableSource, columns_of_files, read_columns, source_files, table_columns
from lapwing.interfaces.cli.exits import usage_error
from lapwing.owner.catalogue_draft import RequestedTable, count_todos, draft, named_tables, safe_name
from lapwing.owner.catalogue_text import id_of_place

_WILDCARDS = "*?["
_NUMBERED = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+)")
"""The parts in which the names of a table's files may differ: numbers, dates, and identifiers that other tools write."""


def whole_tables(files: Sequence[str], *, engine: str = "duckdb", apart: bool = False) -> tuple[list[str], list[str]]:
    """The sources for files and folders, and a sentence about each pattern that replaces several files.

    Files of one folder are one table if they have the same columns, their names differ only in numbers, and a pattern matches them and no
    other file. The owner reads the draft; all other files stay separate tables.
    """
    sources = list(dict.fromkeys(source for name in files for source in ([name] if _is_table(name, engine) else _in_folder(name))))
    alike: dict[tuple[Path, tuple[str, ...]], list[Path]] = {}
    for path in [] if apart else map(Path, sources):
        alike.setdefault((path.parent, tuple(_NUMBERED.split(path.name)[::2])), []).append(path)
    pattern_of: dict[Path, str] = {}
    said = []
    for group in alike.values():
        if (pattern := _pattern(group)) is not None:
            pattern_of |= dict.fromkeys(group, pattern)
            said.append(f"{pattern}: {len(group)} files with the same columns are one table. With --apart, each is a separate table.")
    return list(dict.fromkeys(pattern_of.get(Path(source), source) for source in sources)), said


def _in_folder(name: str) -> list[str]:
    """The files of a folder; where it holds folders such as ``year=2024`` instead, a pattern. A path that is not a folder is returned
    unchanged."""
    folder = below = Path(name)
    if not folder.is_dir():
        return [name]
    while not (found := sorted(str(file) for file in below.iterdir() if file.name.endswith(SUFFIXES) and file.is_file())):
        inner = [one for one in sorted(below.iterdir()) if "=" in one.name and one.is_dir()]
        if not inner:
            raise usage_error(f"there is no file in {name} that ends in {', '.join(SUFFIXES)}")
        below = inner[0]
    depth = len(below.relative_to(folder).parts)
    ending = next(suffix for suffix in SUFFIXES if found[0].endswith(suffix))
    return [str(folder.joinpath(*["*"] * depth, f"*{ending}"))] if depth else found


def _pattern(group: Sequence[Path]) -> str | None:
    """The pattern that names these files and no others, where they have the same columns."""
    if len(group) == 1 or any(sign in str(path) for path in group for sign in _WILDCARDS):
        return None
    parts = zip(*(_NUMBERED.split(path.name) for path in group), strict=True)
    pattern = str(group[0].parent / "".join(part[0] if len(set(part)) == 1 else "*" for part in parts))
    try:
        schemas = {tuple(read_columns(path)) for path in group}
    except UnreadableSource:
        return None  # reading that file by itself reports which it is, and why
    return pattern if len(schemas) == 1 and set(source_files(Path(), pattern)) == set(group) else None


def initial_catalogue(files: Sequence[str], *, directory: Path, engine: str = "duckdb", connection: str = "") -> tuple[str, int]:
    """The text, and how many lines the owner must complete. Sources are written relative to ``directory``, where the catalogue will be."""
    if (engine == "postgres") != bool(connection):
        raise usage_error("--engine postgres needs --connection, and other engines do not take it")
    sources = [
        _on_engine(name, engine, connection) if _is_table(name, engine) else _source(name, directory) for name in dict.fromkeys(files)
    ]
    dataset_id = id_of_place(safe_name(directory.resolve().name).replace("_", "-"), directory)
    text = draft(dataset_id, named_tables(sources), engine=engine, connection=connection)
    return text, count_todos(text)


def _is_table(name: str, engine: str) -> bool:
    """Whether a source is the name of a table; on Spark, a source that is not a path is one."""
    return engine == "postgres" or (engine == "spark" and "/" not in name and not name.endswith(".parquet"))


def _on_engine(name: str, engine: str, connection: str) -> RequestedTable:
    """A table on a server or in a session."""
    return RequestedTable(name.split(".")[-1].strip('"'), name, table_columns(name, engine, connection))


def _source(file: str, directory: Path) -> RequestedTable:
    """A table of files."""
    files = source_files(Path(), file)
    if not files:
        raise usage_error(f"there is no file {file}")
    try:
        columns = columns_of_files(files)
    except UnreadableSource as error:
        raise usage_error(str(error)) from None
    line = Path(os.path.relpath(file, directory)).as_posix()
    folders = [part.partition("=") for part in Path(files[0]).parent.parts]
    return RequestedTable(_wished_name(Path(file)), line, columns, tuple(name for name, sign, _ in folders if name and sign))


def _wished_name(path: Path) -> str:
    """The file's name without its extension; for a pattern without letters, the name of the nearest directory that has some."""
    for name in (path.name.split(".")[0], *(part for part in reversed(path.resolve().parent.parts) if "=" not in part)):
        plain = "".join(char for char in name if char not in _WILDCARDS + "]")
        if any(char.isalpha() for char in plain) and not (plain != name and plain.startswith("part-")):
            return plain
    return ""
