"""The owner's tables: what their columns hold, and SQL that reads them as built-in types and nothing else.

A source is a table, a partitioned table or a materialised view. A view is refused: it is a query of its own that may look at several rows
and call any function. Every declared column is first cast to a type of ``pg_catalog``, so that no operator, function or collation of the
source's own types plays a part in what follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lapwing.catalog import Declaration, Preparation, PublicDecl, TableDecl
from lapwing.catalog.facts import NumberTypes
from lapwing.engines.postgres.session import Connection, ask
from lapwing.engines.prepare import SourceTable, days_near, numbers_declared
from lapwing.errors import PreparationError
from lapwing.kernel.domains import KeyDomain, NumberType
from lapwing.render.dialect import SourceKind, quoted
from lapwing.render.postgres import POSTGRES, numeric_as_double

_NAME = re.compile(r'([a-z_][a-z0-9_]*|"[^"]+")\.([a-z_][a-z0-9_]*|"[^"]+")')
_KINDS = {
    **dict.fromkeys((20, 21, 23), SourceKind.INTEGER),
    **dict.fromkeys((700, 701, 1700), SourceKind.FRACTIONAL),
    **dict.fromkeys((25, 1042, 1043), SourceKind.TEXT),
    16: SourceKind.BOOLEAN,
    1082: SourceKind.DATE,
    **dict.fromkeys((1114, 1184), SourceKind.TIMESTAMP),
    2950: SourceKind.UUID,
}
"""Built-in types by their fixed number (pg_type.oid)."""
_NUMBERS = {
    **dict.fromkeys((21, 23), NumberType.INTEGER),
    20: NumberType.BIGINT,
    1700: NumberType.DECIMAL,
    **dict.fromkeys((700, 701), NumberType.DOUBLE),
}
_NUMERIC, _ZONED = 1700, 1184
_TABLES = ("r", "p", "m")
"""Kinds of relation (pg_class.relkind) that hold rows of their own: tables, partitioned tables, materialised views."""
_RELATION = (
    "SELECT c.oid::bigint, c.relkind::text, c.relrowsecurity, c.relforcerowsecurity, c.relowner::bigint FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2"
)
_FOREIGN_PARTS = (
    "WITH RECURSIVE parts(oid) AS ("
    " SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = CAST($1 AS bigint)::oid"
    " UNION SELECT i.inhrelid FROM pg_inherits i JOIN parts p ON i.inhparent = p.oid)"
    " SELECT EXISTS (SELECT 1 FROM parts p JOIN pg_class c ON c.oid = p.oid WHERE c.relkind = 'f')"
)
"""Whether a table has partitions or children that are foreign tables: files or servers whose form is read when a question is asked."""
_COLUMNS = (
    "WITH RECURSIVE base(attnum, name, type, modifier) AS ("
    " SELECT a.attnum, a.attname::text, a.atttypid, a.atttypmod FROM pg_attribute a"
    " WHERE a.attrelid = CAST($1 AS bigint)::oid AND a.attnum > 0 AND NOT a.attisdropped"
    " UNION ALL SELECT b.attnum, b.name, t.typbasetype, t.typtypmod FROM base b JOIN pg_type t ON t.oid = b.type WHERE t.typtype = 'd')"
    " SELECT b.name, b.type::bigint, b.modifier, t.typtype::text,"
    " EXISTS (SELECT 1 FROM pg_cast k WHERE k.castsource = b.type AND k.casttarget = 25 AND k.castmethod = 'b')"
    " FROM base b JOIN pg_type t ON t.oid = b.type WHERE t.typtype <> 'd' ORDER BY b.attnum"
)


_MARKS = (
    "WITH RECURSIVE part(oid) AS (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1 AND c.relname = $2"
    " UNION SELECT x.oid FROM part JOIN LATERAL (SELECT i.inhrelid AS oid FROM pg_inherits i WHERE i.inhparent = part.oid"
    " UNION ALL SELECT d.refobjid FROM pg_rewrite w JOIN pg_depend d ON d.objid = w.oid AND d.classid = 'pg_rewrite'::regclass"
    " AND d.refclassid = 'pg_class'::regclass WHERE w.ev_class = part.oid) AS x ON true)"
    " SELECT (SELECT system_identifier::text FROM pg_control_system()), b.oid::bigint, part.oid::bigint"
    " FROM part, pg_database b WHERE b.datname = current_database()"
)
"""A table, its partitions and heirs, and what a materialised view is made from."""


@dataclass(frozen=True, slots=True)
class SourceName:
    """Where a table of the owner's is."""

    schema: str
    table: str

    @property
    def sql(self) -> str:
        """The name as SQL."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"


def source_name(source: str) -> SourceName:
    """``schema.table`` as in the catalogue."""
    match = _NAME.fullmatch(source)
    if match is None:
        raise PreparationError("source-name", "a source is the name of a table with its schema", hint='such as "clinic.visits"')
    schema, table = (part.strip('"') for part in match.groups())
    return SourceName(schema, table)


def relation_marks(connection: Connection, name: SourceName) -> frozenset[str]:
    """The identity of the tables that hold the rows, independent of the connection."""
    return frozenset(f"table {server}/{database}/{oid}" for server, database, oid in ask(connection, _MARKS, [name.schema, name.table]))


def source_kinds(connection: Connection, source: str) -> dict[str, SourceKind]:
    """What the columns of a source hold, from the server's own catalogue: no row is read, and any role may ask."""
    columns = _columns(connection, source_name(source))
    return {name: _reading("", number, modifier, is_text=text, is_key=False)[0] for name, number, modifier, text in columns}


def _columns(connection: Connection, name: SourceName) -> list[tuple[str, int, int, bool]]:
    """Name, number of the type, its modifier and whether it is text, of each column of a table that may be a source."""
    relations = ask(connection, _RELATION, [name.schema, name.table])
    if not relations:
        raise PreparationError("source-missing", f"there is no table {name.sql}")
    oid, kind, secured, forced, _owner = relations[0]
    if kind not in _TABLES:
        hint = "declare the tables themselves, or a materialised view"
        raise PreparationError("source-not-a-table", f"{name.sql} is a view or something else that holds no rows", hint=hint)
    if ask(connection, _FOREIGN_PARTS, [str(oid)])[0][0]:
        hint = "copy those rows into a table of this server"
        raise PreparationError("source-not-a-table", f"parts of {name.sql} are foreign tables: what they hold is read elsewhere", hint=hint)
    if secured or forced:
        hint = "drop the policies, or declare a table without them"
        raise PreparationError("source-row-security", f"{name.sql} has row security: what is read would depend on who reads", hint=hint)
    listed = ask(connection, _COLUMNS, [str(oid)])
    return [(column, number, modifier, is_text or kind == "e") for column, number, modifier, kind, is_text in listed]


def number_types(connection: Connection, declaration: Declaration) -> NumberTypes:
    """The number types of the declared columns of every table, as the server's catalogue says."""
    found = {}
    for table in declaration.all_tables:
        columns = _columns(connection, source_name(declaration.source_path(table)))
        found[table.name] = numbers_declared(table, {column: _NUMBERS.get(number) for column, number, _modifier, _is_text in columns})
    return found


def source_table(
    connection: Connection, declaration: Declaration, declared: TableDecl | PublicDecl, *, near: tuple[int, int] | None = None
) -> SourceTable:
    """The readable parts of the source of a declared table: the declared columns as SQL, the kinds of all.

    With ``near``, blocks of time: all rows in these and, where the column holds dates or times, few others.
    """
    name = source_name(declaration.source_path(declared))
    kinds: dict[str, SourceKind] = {}
    readings: dict[str, str] = {}
    keys = {column.source_name for column in declared.columns if isinstance(column.domain, KeyDomain)}
    for column, type_number, modifier, text in _columns(connection, name):
        kinds[column], readings[column] = _reading(quoted(column), type_number, modifier, is_text=text, is_key=column in keys)
    names = [column.source_name for column in declared.columns]
    if isinstance(declared, TableDecl) and declaration.dataset.preparation is Preparation.STORED:
        names.append(declared.appended_by)
    read = [column for column in dict.fromkeys(names) if column in kinds]
    listed = ", ".join(f"{readings[column]} AS {quoted(column)}" for column in read) or "1 AS _"
    # A NUMERIC is made a double through its text: once, and not wherever the value is mentioned, which OFFSET 0 sees to.
    once = " OFFSET 0" if any("NUMERIC" in readings[column] for column in read) else ""
    return SourceTable(f"(SELECT {listed} FROM {name.sql}{_near(declared, near, kinds)}{once})", kinds)


def _near(declared: TableDecl | PublicDecl, blocks: tuple[int, int] | None, kinds: Mapping[str, SourceKind]) -> str:
    """The condition on the column of the owner's table as it is, so that an index on it serves."""
    if blocks is None or not isinstance(declared, TableDecl) or declared.blocks is None:
        return ""
    column = declared.column(declared.blocks.column).source_name
    if kinds.get(column) not in (SourceKind.DATE, SourceKind.TIMESTAMP):
        return ""
    first, after = days_near(declared.blocks, blocks)
    return f" WHERE {quoted(column)} >= {POSTGRES.date_literal(first)} AND {quoted(column)} < {POSTGRES.date_literal(after)}"


def _reading(column: str, type_number: int, modifier: int, *, is_text: bool, is_key: bool) -> tuple[SourceKind, str]:
    """What a column holds, and SQL of it as a built-in type; NaN is NULL where it would be a number. An identifier is never rounded."""
    kind = _KINDS.get(type_number, SourceKind.TEXT if is_text else SourceKind.OTHER)
    match kind:
        case SourceKind.TEXT | SourceKind.UUID:
            return kind, f'(CAST({column} AS TEXT) COLLATE "C")'
        case SourceKind.INTEGER:
            return kind, f"CAST({column} AS BIGINT)"
        case SourceKind.FRACTIONAL if type_number == _NUMERIC:
            number = f"NULLIF(CAST({column} AS NUMERIC), 'NaN')"
            if _has_no_decimals(modifier):
                return SourceKind.INTEGER, number
            return (SourceKind.DECIMAL, number) if is_key else (kind, numeric_as_double(number))
        case SourceKind.FRACTIONAL:
            return kind, f"CAST({column} AS DOUBLE PRECISION)"
        case SourceKind.TIMESTAMP if type_number == _ZONED:
            return kind, f"(CAST({column} AS TIMESTAMPTZ) AT TIME ZONE 'UTC')"
        case SourceKind.TIMESTAMP:
            return kind, f"CAST({column} AS TIMESTAMP)"
        case SourceKind.DATE:
            return kind, f"CAST({column} AS DATE)"
        case SourceKind.BOOLEAN:
            return kind, f"CAST({column} AS BOOLEAN)"
        case _:
            return kind, "NULL"


def _has_no_decimals(modifier: int) -> bool:
    """Whether NUMERIC(p, s) has s <= 0. The modifier is ((p << 16) | (s & 2047)) + 4, or -1 for a NUMERIC of any scale."""
    if modifier < 4:
        return False
    scale = (modifier - 4) & 0x7FF
    return scale == 0 or scale > 1023
