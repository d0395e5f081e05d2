"""Schemas of the owner's tables, for ``lapwing check``, ``lapwing init`` and questions: the server's own catalogue, and no row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lapwing.catalog import Settings
from lapwing.engines.base import ForeignKey, SourceField
from lapwing.engines.postgres.prepare import owners_words
from lapwing.engines.postgres.session import ask as asked
from lapwing.engines.postgres.session import connect, transaction
from lapwing.engines.postgres.sources import source_kinds, source_name

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_OWN = r"^lapwing_.*_v[0-9]{6,}$"
"""Schemas of prepared versions."""
_LISTED = (
    "SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p', 'm') AND NOT c.relispartition AND c.relpersistence = 'p'"
    " AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND n.nspname !~ $1"
    ' ORDER BY n.nspname::text COLLATE "C", c.relname::text COLLATE "C"'
)
_NOT_NULL = (
    "SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull"
)
_FOREIGN_KEYS = (
    "SELECT n.nspname::text, c.relname::text, a.attname::text, m.nspname::text, f.relname::text, b.attname::text FROM pg_constraint k"
    " JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_class f ON f.oid = k.confrelid JOIN pg_namespace m ON m.oid = f.relnamespace"
    " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]"
    " JOIN pg_attribute b ON b.attrelid = f.oid AND b.attnum = k.confkey[1]"
    " WHERE k.contype = 'f' AND array_length(k.conkey, 1) = 1 AND NOT c.relispartition ORDER BY k.oid"
)


def schemas(connection: str, sources: Sequence[str], settings: Settings) -> list[Mapping[str, SourceField]]:
    """What the columns of some tables hold, and which are NOT NULL."""
    found: list[Mapping[str, SourceField]] = []
    with owners_words(), connect(connection) as opened, transaction(opened, settings, read_only=True) as reading:
        for source in sources:
            kinds, name = source_kinds(reading, source), source_name(source)
            required = {column for (column,) in asked(reading, _NOT_NULL, [name.schema, name.table])}
            found.append({column: SourceField(kind, column in required) for column, kind in kinds.items()})
    return found


def tables(connection: str, settings: Settings) -> tuple[list[str], list[ForeignKey]]:
    """The tables of a database as a catalogue names them, and which column of one the database says to point at which of another.

    Views, parts of tables, prepared versions and names with a double quote in them are left out: no catalogue can name those.
    """
    with owners_words(), connect(connection) as opened, transaction(opened, settings, read_only=True) as reading:
        listed = [_spelled(*row) for row in asked(reading, _LISTED, [_OWN])]
        keys = [(_spelled(*row[:2]), str(row[2]), _spelled(*row[3:5]), str(row[5])) for row in asked(reading, _FOREIGN_KEYS)]
    found = [name for name in listed if name is not None]
    kept = set(found)
    return found, [ForeignKey(of, column, to, key) for of, column, to, key in keys if of in kept and to in kept and of and to]


def _spelled(schema: str, table: str) -> str | None:
    """``schema.table``, in quotes where a name needs them; None where it cannot be written."""
    if '"' in schema + table:
        return None
    return ".".join(part if _PLAIN.fullmatch(part) else f'"{part}"' for part in (schema, table))
