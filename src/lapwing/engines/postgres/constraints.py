"""Link keys of versions that copy nothing: what keeps them unique in the owner's tables, now and whenever a question reads them.

A question reads rows that nobody has checked, and may not check them itself: whether it is answered would depend on rows. So the database
has to keep each link key unique. Its unique indexes say so, and are read in the same snapshot as the rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from lapwing.catalog import Declaration
from lapwing.engines.links import link_keys
from lapwing.engines.postgres.session import Connection, ask
from lapwing.engines.postgres.sources import source_name
from lapwing.engines.prepare import SourceTable
from lapwing.errors import PreparationError
from lapwing.render.dialect import SourceKind

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
