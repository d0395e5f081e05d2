"""Data sets that owners declare through the server: from files and databases that the operator named, with catalogues in one directory.

Without a directory of files (``[new_data] sources``) and without a database (``[[database]]``) nothing can be declared here.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lapwing.catalog import Declaration, load
from lapwing.curator.catalogue_name import catalogue_name
from lapwing.curator.curator import CATALOGUE_FILE
from lapwing.curator.source_checks import type_problems
from lapwing.curator.source_schemas import ColumnContents, DatabaseTables
from lapwing.errors import CallRefused, CatalogueError, LapwingError
from lapwing.interfaces.http.configuration import NamedDatabase, NewDataSettings
from lapwing.interfaces.http.declaring_shapes import DeclaredBody, TableBody
from lapwing.interfaces.http.new_sources import NamedSource, SourceDatabases, SourceDirectory, named_sources
from lapwing.owner.catalogue_text import DescribedDataSet, DescribedTable, catalogue_toml

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
"""Ids of data sets that are declared here; each is also the name of a directory."""


_LIMITS = {"per_statement": "0.2", "per_day": "0.5"}
"""Limits for a budget that several people share, as in the draft of `lapwing init`."""


class NewDataSets:
    """What may be declared, and the catalogues that were declared."""

    def __init__(self, settings: NewDataSettings, home: Path, databases: Sequence[NamedDatabase] = ()) -> None:
        self._directory = None if settings.sources is None else SourceDirectory((home / settings.sources).resolve())
        self._databases = SourceDatabases(databases)
        self._catalogues = home / settings.catalogues

    @property
    def is_allowed(self) -> bool:
        """Whether the operator named a directory of files, or a database."""
        return self._directory is not None or bool(self._databases.names())

    def files(self) -> list[str]:
        """Files that can be declared, relative to their directory."""
        self._require_allowed()
        return [] if self._directory is None else self._directory.files()

    def folders(self) -> list[str]:
        """Folders whose files together can be one table, as patterns."""
        self._require_allowed()
        return [] if self._directory is None else self._directory.folders()

    def databases(self) -> list[str]:
        """Names of the databases whose tables can be declared."""
        self._require_allowed()
        return self._databases.names()

    def tables(self, database: str) -> DatabaseTables:
        """The tables of a database that can be declared."""
        self._require_allowed()
        return self._databases.tables(database)

    def sources(self, chosen: Sequence[str], database: str | None = None) -> list[NamedSource]:
        """Files and folders, or tables of a database, each with a name for its table and with its columns. No row is read."""
        self._require_allowed()
        if database is not None:
            return named_sources(self._databases.named(database, chosen), are_files=False)
        if self._directory is None:
            raise CallRefused("declaring-off", "no files can be declared through this server", hint=_HINT)
        return named_sources([self._directory.named(source) for source in chosen], are_files=True)

    def described(self, body: DeclaredBody, connection: str | None) -> DescribedDataSet:
        """The declared data set in the terms of a catalogue."""
        sources = self.sources([_source(table, body.database) for table in body.tables], body.database)
        tables = []
        for table, source in zip(body.tables, sources, strict=True):
            said = table.model_dump(exclude={"name", "file", "table", "columns"}, exclude_none=True)
            keys = {"source": source.written, **said, "delimiter": source.delimiter}
            columns = {name: column.written() for name, column in table.columns.items()}
            tables.append(DescribedTable(table.name, keys, columns))
        dataset: dict[str, Any] = {"id": body.data_set}
        if connection is not None:
            dataset |= {"engine": "postgres", "connection": connection}
        dataset |= body.model_dump(include={"unit", "neighbours", "units", "description"}, exclude_none=True)
        budget: dict[str, Any] = {"epsilon": str(body.epsilon), "delta": str(body.delta)}
        if body.ceiling is not None:
            budget["ceiling"] = {"epsilon": str(body.ceiling)}
        introduction = (
            "Declared by questions. Nothing here is read off rows:",
            "names and types of columns are those of the sources.",
        )
        return DescribedDataSet(dataset, budget, tables, introduction, limits=_LIMITS)

    def checked(self, body: DeclaredBody) -> tuple[str, Declaration]:
        """The text of the catalogue as it may be shown, and its declaration; refused like in ``lapwing check``. Nothing is stored.

        The connection of a database is neither in this text nor in messages about it: they contain only its name.
        """
        connection = None if body.database is None else f"(the operator's connection to {body.database})"
        text, declaration = _loaded(catalogue_toml(self.described(body, connection)))
        for table in body.tables:
            (source,) = self.sources([_source(table, body.database)], body.database)
            held = {column["from"]: ColumnContents(column["holds"]) for column in source.columns}
            for problem in type_problems(declaration.table(table.name), held):
                raise CallRefused("body-invalid", f"the column {problem}", hint="declare what it holds")
        return text, declaration

    def declare(self, body: DeclaredBody, taken: frozenset[str]) -> str:
        """Write the catalogue of a new data set and return its text. ``taken`` are the ids that are served already."""
        shown, _ = self.checked(body)
        text = self._written(body, shown)
        target = self._catalogues / body.data_set
        if body.data_set in taken or target.exists():
            raise CallRefused("data-set-exists", "a data set of this name exists", hint="choose another name")
        self._catalogues.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".new-", dir=self._catalogues))
        try:
            (unfinished / CATALOGUE_FILE).write_text(text, encoding="utf-8")
            os.rename(unfinished, target)  # of two who declare the same name at once, one is refused
        except OSError:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise CallRefused("data-set-exists", "a data set of this name exists", hint="choose another name") from None
        return shown

    def _written(self, body: DeclaredBody, shown: str) -> str:
        """The text to write: the shown one, with the connection of the database."""
        if body.database is None:
            return shown
        try:
            return _loaded(catalogue_toml(self.described(body, self._databases.connection(body.database))))[0]
        except CatalogueError:  # the shown text is valid, so the operator's line is wrong, and the error would quote it
            message = f"the connection of the database {body.database} cannot be used in a catalogue"
            raise CallRefused("declaring-off", message, hint="the operator must correct it") from None

    def require_confined(self, declaration: Declaration) -> None:
        """Refuse to read files outside the directory for a data set that was declared here."""
        if self._directory is not None and declaration.dataset.id in self.catalogues():
            private, public = (map(declaration.source_path, tables) for tables in (declaration.tables, declaration.public_tables))
            for source in (*private, *public):
                if Path(source).is_absolute():  # otherwise it is a table of a database
                    self._directory.require_inside(source)

    def catalogues(self) -> dict[str, Path]:
        """Catalogues that were declared here, by the ids of their data sets."""
        if not self._catalogues.is_dir():
            return {}
        return {path.name: path for path in sorted(self._catalogues.iterdir()) if _NAME.fullmatch(path.name) and _is_of(path)}

    def _require_allowed(self) -> None:
        if not self.is_allowed:
            raise CallRefused("declaring-off", "no data set can be declared through this server", hint=_HINT)


_HINT = "the operator can name a directory of files, [new_data] sources = ..., or a [[database]]"


def _source(table: TableBody, database: str | None) -> str:
    """The source of a table: its file or its database table, whichever the data set uses, and not the other."""
    given, other = (table.file, table.table) if database is None else (table.table, table.file)
    if given is None or other is not None:
        message = f"the table {table.name} needs a `{'file' if database is None else 'table'}`, and nothing else"
        raise CallRefused("body-invalid", message, hint="tables of a `database` have a `table`, those of files a `file`")
    return given


def _loaded(written: str) -> tuple[str, Declaration]:
    text = written.replace("\n[", "\n\n[")  # a line break inside a string is escaped
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / CATALOGUE_FILE
        path.write_text(text, encoding="utf-8")
        return text, load(path)


def _is_of(path: Path) -> bool:
    try:
        return catalogue_name(path) == path.name
    except LapwingError:
        return False
