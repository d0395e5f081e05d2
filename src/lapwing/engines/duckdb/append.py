"""Writing a version from an older one and the rows that came since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from lapwing.catalog import Declaration, RowUnit, Settings, TableDecl, parse
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.appending import (
    Mark,
    appended_row_units,
    appended_rows,
    can_append,
    growing,
    marks_value,
    read_between,
    require_append_only,
    rows_before_query,
    undeclared,
)
from lapwing.engines.base import Progress, silent
from lapwing.engines.duckdb.files import states_now
from lapwing.engines.duckdb.prepare import (
    META,
    check_rows_max,
    marked_source,
    one_owner_each,
    public_values,
    require_at_rest,
    write_meta,
    write_private_table,
    write_public_tables,
    written_whole,
)
from lapwing.engines.duckdb.sources import source
from lapwing.engines.prepare import SNAPSHOT_FORMAT, SourceTable, digested_rows, owned_rows
from lapwing.engines.salts import key_check
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import RANKING_KEY, quoted
from lapwing.render.duckdb import DUCKDB
from lapwing.render.relations import RANK, UNIT

_NEW, _RANKED = "_lapwing_new", "_lapwing_ranked"


def append_snapshot(
    declaration: Declaration,
    text: str,
    target: Path,
    older: Path,
    *,
    version: int,
    ranking_key: bytes,
    settings: Settings,
    progress: Progress = silent,
) -> tuple[str, ...]:
    """Write one version to ``target`` from the version ``older``; gives the tables of which only new rows were read.

    Post: row for row what ``prepare_snapshot`` would write, for growing sources that only grew. A table for which that cannot be known is
    prepared from nothing: another format, ranking key, declaration or list of values, or a unit that is reached through another table.
    """
    with written_whole(target, settings, start=older) as connection:
        states = states_now(declaration)
        writer = _Appending(connection, declaration, ranking_key, settings)
        facts = write_public_tables(connection, declaration, version=version, settings=settings, progress=progress)
        read = writer.write(facts, progress)
        require_at_rest(declaration, states)
        write_meta(connection, declaration, text, version=version, ranking_key=ranking_key, marks=writer.marks, files={}, facts=facts)
    return read


class _Appending:
    """The private tables of one version while they are written."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, declaration: Declaration, ranking_key: bytes, settings: Settings) -> None:
        self._connection, self._declaration, self._key = connection, declaration, ranking_key
        meta: dict[str, Any] = json.loads(connection.execute(f"SELECT body FROM {META}").fetchall()[0][0])
        self._old = parse(meta["text"], settings=settings)
        # The public tables are still those of the older version here.
        values = {public.name: public_values(connection, public, settings) for public in self._old.public_tables}
        self._old_facts = declared_facts(self._old, values, version=int(meta["version"]), settings=settings)
        usable = meta["format"] == SNAPSHOT_FORMAT and meta.get("key_check") == key_check(ranking_key)
        self._before: dict[str, Mark] = marks_value(meta.get("marks", {})) if usable else {}
        self.marks: dict[str, Mark] = {}

    def write(self, facts: Facts, progress: Progress) -> tuple[str, ...]:
        """Write every private table; gives those that were appended to."""
        tables, done = self._declaration.tables, len(self._declaration.public_tables)
        unmarked = {table.name: source(self._connection, self._declaration, table) for table in tables}
        sources = {table.name: marked_source(self._connection, table, unmarked[table.name], self.marks) for table in tables}
        for name in undeclared(self._old, self._declaration):
            self._connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        appended = []
        with one_owner_each(self._connection, self._declaration, sources):
            for number, table in enumerate(tables):
                progress(table.name, done + number, done + len(tables))
                if self._is_appended(table, facts):
                    self._append(table, unmarked[table.name], facts)
                    appended.append(table.name)
                else:
                    write_private_table(self._connection, table, self._declaration, sources, facts, ranking_key=self._key)
        progress("done", done + len(tables), done + len(tables))
        return tuple(appended)

    def _is_appended(self, table: TableDecl, facts: Facts) -> bool:
        before = self._before.get(table.name)
        same_kinds = before is not None and before.kinds == self.marks[table.name].kinds if table.appended_by else False
        return same_kinds and can_append(table, self._old, self._old_facts, facts)

    def _append(self, table: TableDecl, unmarked: SourceTable, facts: Facts) -> None:
        before, connection, name = self._before[table.name], self._connection, quoted(table.name)
        grows = growing(table, unmarked, DUCKDB)
        require_append_only(table, before, connection.execute(rows_before_query(grows, unmarked, before)).fetchall()[0][0])
        later = {table.name: read_between(grows, unmarked, before, self.marks[table.name])}
        columns, key = facts.table(table.name).columns, {RANKING_KEY: self._key.hex()}
        if isinstance(table.unit, RowUnit):
            connection.execute(f"CREATE TEMP TABLE {_NEW} AS {digested_rows(table, later[table.name], columns, DUCKDB)}", key)
            connection.execute(f"CREATE TEMP TABLE {_RANKED} AS {appended_row_units(_NEW, name, columns, DUCKDB)}")
        else:
            connection.execute(f"CREATE TEMP TABLE {_NEW} AS {owned_rows(table, self._declaration, later, facts, DUCKDB)}")
            connection.execute(f"CREATE TEMP TABLE {_RANKED} AS {appended_rows(_NEW, name, table, columns, DUCKDB)}", key)
            connection.execute(f"DELETE FROM {name} WHERE {UNIT} IN (SELECT {UNIT} FROM {_NEW})")
        connection.execute(f"INSERT INTO {name} SELECT * FROM {_RANKED} ORDER BY {RANK}, {UNIT}")
        connection.execute(f"DROP TABLE {_NEW}")
        connection.execute(f"DROP TABLE {_RANKED}")
        check_rows_max(connection, table)
