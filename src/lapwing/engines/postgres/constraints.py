"""Requirements of virtual versions on the owner's tables, checked for every question: unique link keys, and the right to read.

A question reads unchecked rows and may not check them itself: whether it is answered would depend on rows. So the database
must keep each link key unique. Its unique indexes are read in the same snapshot as the rows. And a missing right is
found before a question is charged: later, it would look like a fault caused by rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from lapwing.catalog import Declaration
from lapwing.engines.links import link_keys
from lapwing.engines.postgres.session import Connection, ask
from lapwing.engines.postgres.sources import source_name
from lapwing.engines.prepare import SourceTable
from lapwing.errors import PreparationError
from lapwing.render.dialect import SourceKind, quoted

_EXACT = frozenset({SourceKind.INTEGER, SourceKind.TEXT, SourceKind.UUID})
"""Kinds whose values are links as they are: two values that the index keeps apart cannot become one link."""
_UNIQUE = (
    "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
    " JOIN pg_opclass o ON o.oid = i.indclass[0] JOIN pg_namespace p ON p.oid = o.opcnamespace"
    " WHERE n.nspname = $1 AND c.relname = $2 AND a.attname = $3"
    # one column, all rows, checked by every statement, complete
    " AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indisready AND i.indislive"
    " AND i.indnkeyatts = 1 AND i.indpred IS NULL AND i.indexprs IS NULL"
    # by an equality of the database's own
    " AND p.nspname = 'pg_catalog'"
    # rows of tables that inherit are read with the table's, and are in no index of it; partitions are
    " AND (c.relkind = 'p' OR NOT EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhparent = c.oid))"
)
_RIGHTS = (
    "SELECT r.rolname::text, has_schema_privilege(r.oid, n.oid, 'USAGE'), a.attname::text,"
    " has_column_privilege(r.oid, c.oid, a.attnum, 'SELECT')"
    " FROM pg_roles r, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " WHERE r.rolname = COALESCE(NULLIF($1, ''), current_user) AND n.nspname = $2 AND c.relname = $3 ORDER BY a.attnum"
)


def require_granted(connection: Connection, declaration: Declaration, reader: str = "") -> None:
    """Refuse sources of which the role ``reader``, or the connected role, may not read every declared column. Depends on no row."""
    missing: list[str] = []
    for table in declaration.tables:
        name, wanted = source_name(declaration.source_path(table)), {column.source_name for column in table.columns}
        rights = ask(connection, _RIGHTS, [reader, name.schema, name.table])
        columns = [quoted(column) for _, _, column, may_read in rights if column in wanted and not may_read]
        for role, may_enter, _, _ in rights[:1]:
            missing += [] if may_enter else [f"GRANT USAGE ON SCHEMA {quoted(name.schema)} TO {quoted(role)}"]
            missing += [f"GRANT SELECT ({', '.join(columns)}) ON {name.sql} TO {quoted(role)}"] if columns else []
    if missing:
        message = "the role that answers may not read the sources, which nothing is copied from"
        raise PreparationError("source-not-granted", message, hint=f"as their owner: {'; '.join(dict.fromkeys(missing))}")


def require_unique_keys(connection: Connection, declaration: Declaration, sources: Mapping[str, SourceTable]) -> None:
    """Refuse a link key that no unique constraint or index of the database keeps unique. Depends on no row."""
    for key in link_keys(declaration):
        declared = declaration.table(key.table)
        column, name = declared.column(key.column).source_name, source_name(declaration.source_path(declared))
        is_exact = sources[key.table].kinds.get(column) in _EXACT
        if not is_exact or not ask(connection, _UNIQUE, [name.schema, name.table, column]):
            message = f"`{key.table}.{key.column}` leads other tables to their unit, and nothing in the database keeps it unique"
            hint = 'add a unique constraint on that one column, of whole numbers, text or uuid, or use preparation = "stored"'
            raise PreparationError("link-key-constraint", message, hint=hint)
