"""A version made from an older one and the rows that came since, in place: the older one is gone once the new one exists.

All is one transaction. Plans that run read the older version to their end; the change of name waits for them, and a plan that starts
afterwards does not find the older version (``PostgresSnapshot.check`` says so before anything is charged).
"""

from __future__ import annotations

import json

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
    undeclared,
)
from lapwing.engines.base import Progress, silent
from lapwing.engines.postgres.prepare import (
    MARKS,
    META,
    check_rows_max,
    grant,
    in_schema,
    owners_words,
    public_values,
    read_mark,
    read_sources,
    require_one_owner,
    settle,
    stored_columns,
    write_meta,
    write_private_table,
    write_public_tables,
)
from lapwing.engines.postgres.session import Connection, ask, transaction
from lapwing.engines.prepare import SNAPSHOT_FORMAT, SourceTable, digested_rows, owned_rows
from lapwing.engines.salts import key_check
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import quoted
from lapwing.render.postgres import POSTGRES
from lapwing.render.relations import RANK, UNIT

_NEW, _OLD = "pg_temp._lapwing_new", "pg_temp._lapwing_old"


def append_version(
    connection: Connection,
    declaration: Declaration,
    text: str,
    *,
    older: str,
    schema: str,
    version: int,
    ranking_key: bytes,
    reader: str,
    settings: Settings,
    progress: Progress = silent,
) -> tuple[str, ...]:
    """Make the schema ``older`` into ``schema``; gives the tables of which only new rows were read.

    Post: row for row what ``prepare_version`` would write, for growing sources that only grew. A table for which that cannot be known is
    prepared from nothing: another format, ranking key, declaration or list of values, or a unit that is reached through another table.
    """
    appended: list[str] = []
    rewritten = [public.name for public in declaration.public_tables]
    with owners_words(), transaction(connection, settings, read_only=False):
        old, old_facts, before = _older(connection, older, ranking_key, settings)
        facts = write_public_tables(connection, declaration, older, version=version, settings=settings, progress=progress)
        sources = read_sources(connection, declaration)
        require_one_owner(connection, declaration, sources)
        marks: dict[str, Mark] = {}
        for name in undeclared(old, declaration):
            ask(connection, f"DROP TABLE IF EXISTS {quoted(older)}.{quoted(name)}")
        for done, table in enumerate(declaration.tables, start=len(declaration.public_tables)):
            progress(table.name, done, len(declaration.public_tables) + len(declaration.tables))
            mark, rows_before = before.get(table.name), 0
            if table.appended_by:
                marks[table.name], rows_before = read_mark(connection, table, sources[table.name], mark)
            if mark is not None and mark.kinds == marks[table.name].kinds and can_append(table, old, old_facts, facts):
                require_append_only(table, mark, rows_before)
                later = read_between(growing(table, sources[table.name], POSTGRES), sources[table.name], mark, marks[table.name])
                _append(connection, table, declaration, later, facts, older, ranking_key=ranking_key)
                appended.append(table.name)
            else:
                write_private_table(connection, table, declaration, sources, facts, older, ranking_key=ranking_key)
                rewritten.append(table.name)
        # Every plan reads this table first, and so holds it until its end: a plan sees the older version whole, or nothing.
        ask(connection, f"LOCK TABLE {quoted(older)}.{META} IN ACCESS EXCLUSIVE MODE")
        write_meta(connection, older, declaration, text, version=version, ranking_key=ranking_key, marks=marks, facts=facts)
        ask(connection, f"ALTER SCHEMA {quoted(older)} RENAME TO {quoted(schema)}")
        grant(connection, schema, reader)
    with owners_words():
        # The others have few new rows; the server takes care of them in its own time.
        settle(connection, rewritten, schema)
    progress("done", 1, 1)
    return tuple(appended)


def _older(connection: Connection, schema: str, ranking_key: bytes, settings: Settings) -> tuple[Declaration, Facts, dict[str, Mark]]:
    """Declaration and facts of the older version, and how far it read; no marks where its rows cannot be continued."""
    meta, private = (json.loads(ask(connection, f"SELECT body FROM {quoted(schema)}.{table}")[0][0]) for table in (META, MARKS))
    old = parse(meta["text"], settings=settings)
    values = {public.name: public_values(connection, public, schema, settings) for public in old.public_tables}
    facts = declared_facts(old, values, version=int(meta["version"]), settings=settings)
    usable = meta["format"] == SNAPSHOT_FORMAT and private["key_check"] == key_check(ranking_key)
    return old, facts, marks_value(private["marks"]) if usable else {}


def _append(
    connection: Connection,
    table: TableDecl,
    declaration: Declaration,
    later: SourceTable,
    facts: Facts,
    schema: str,
    *,
    ranking_key: bytes,
) -> None:
    columns, name = facts.table(table.name).columns, in_schema(schema).table(table.name)
    listed = ", ".join(stored_columns(columns))
    if isinstance(table.unit, RowUnit):
        digested = digested_rows(table, later, columns, POSTGRES)
        ask(connection, f"CREATE TEMPORARY TABLE {_NEW.partition('.')[2]} ON COMMIT DROP AS {digested}", [ranking_key.hex(), ""])
        ask(connection, f"ANALYZE {_NEW}")
        ask(connection, f"INSERT INTO {name} ({listed}) SELECT {listed} FROM ({appended_row_units(_NEW, name, columns, POSTGRES)}) p")
        ask(connection, f"DROP TABLE {_NEW}")
        check_rows_max(connection, table, schema)
        return
    new = owned_rows(table, declaration, {table.name: later}, facts, POSTGRES)
    ask(connection, f"CREATE TEMPORARY TABLE {_NEW.partition('.')[2]} ON COMMIT DROP AS {new}")
    ask(connection, f"ANALYZE {_NEW}")
    ask(connection, f"CREATE TEMPORARY TABLE {_OLD.partition('.')[2]} (LIKE {name}) ON COMMIT DROP")
    gone = f"DELETE FROM {name} o WHERE o.{UNIT} IN (SELECT n.{UNIT} FROM {_NEW} n) RETURNING o.*"
    ask(connection, f"WITH gone AS ({gone}) INSERT INTO {_OLD} SELECT * FROM gone")
    ranked = appended_rows(_NEW, _OLD, table, columns, POSTGRES)
    insert = f"INSERT INTO {name} ({listed}) SELECT {listed} FROM ({ranked}) p ORDER BY {RANK}, {UNIT}"
    ask(connection, insert, [ranking_key.hex(), ""])
    ask(connection, f"DROP TABLE {_NEW}, {_OLD}")
    check_rows_max(connection, table, schema)
