"""The system tables of PostgreSQL, made from the catalogue: ``information_schema`` and a part of ``pg_catalog``.

Clients read these to learn which tables and columns there are. Tables that would describe what a data set does not have (indexes, views,
functions, extensions) are empty, so that a client finds nothing and continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lapwing.catalog import Declaration, PublicDecl, TableDecl
from lapwing.kernel.domains import KeyDomain, Kind, kind_of
from lapwing.kernel.facts import Facts

SERVER_VERSION = "15.0"
"""The reported version of PostgreSQL; clients choose their queries by it."""
SCHEMA = "public"
SETTINGS = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "extra_float_digits": "1",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "max_identifier_length": "63",
    "search_path": SCHEMA,
    "server_encoding": "UTF8",
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
}
"""The values of SHOW and pg_settings: fixed, SET has no effect."""

_NAMESPACES = {"pg_catalog": 11, "information_schema": 13_000, SCHEMA: 2_200}
_FIRST_TABLE_OID = 16_384
_OWNER = 10
_TYPES = {
    "bool": (16, 1, 1000, "B"),
    "int8": (20, 8, 1016, "N"),
    "int4": (23, 4, 1007, "N"),
    "text": (25, -1, 1009, "S"),
    "float4": (700, 4, 1021, "N"),
    "float8": (701, 8, 1022, "N"),
    "varchar": (1043, -1, 1015, "S"),
    "date": (1082, 4, 1182, "D"),
    "timestamp": (1114, 8, 1115, "D"),
    "timestamptz": (1184, 8, 1185, "D"),
    "numeric": (1700, -1, 1231, "N"),
}
"""Name, number, length, number of the array of it, and category: as PostgreSQL has them."""
_LONG_NAMES = {"bool": "boolean", "int8": "bigint", "float8": "double precision", "timestamp": "timestamp without time zone"}
_OF_KIND = {
    Kind.BOOLEAN: "bool",
    Kind.INTEGER: "int8",
    Kind.REAL: "float8",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.KEY: "int8",
}
_ARROW = {"i": pa.int64(), "t": pa.string(), "b": pa.bool_()}

_EMPTY = {
    "pg_catalog.pg_attrdef": "oid:i adrelid:i adnum:i adbin:t",
    "pg_catalog.pg_collation": "oid:i collname:t collnamespace:i",
    "pg_catalog.pg_constraint": "oid:i conname:t connamespace:i contype:t conrelid:i conindid:i confrelid:i conkey:t confkey:t conbin:t",
    "pg_catalog.pg_depend": "classid:i objid:i objsubid:i refclassid:i refobjid:i refobjsubid:i deptype:t",
    "pg_catalog.pg_enum": "oid:i enumtypid:i enumsortorder:i enumlabel:t",
    "pg_catalog.pg_extension": "oid:i extname:t extnamespace:i extversion:t",
    "pg_catalog.pg_index": "indexrelid:i indrelid:i indnatts:i indisunique:b indisprimary:b indkey:t indpred:t indexprs:t",
    "pg_catalog.pg_indexes": "schemaname:t tablename:t indexname:t indexdef:t",
    "pg_catalog.pg_inherits": "inhrelid:i inhparent:i inhseqno:i",
    "pg_catalog.pg_matviews": "schemaname:t matviewname:t matviewowner:t definition:t",
    "pg_catalog.pg_proc": "oid:i proname:t pronamespace:i prokind:t prorettype:i",
    "pg_catalog.pg_range": "rngtypid:i rngsubtype:i",
    "pg_catalog.pg_sequence": "seqrelid:i seqtypid:i",
    "pg_catalog.pg_trigger": "oid:i tgrelid:i tgname:t",
    "pg_catalog.pg_views": "schemaname:t viewname:t viewowner:t definition:t",
    "information_schema.key_column_usage": "constraint_schema:t constraint_name:t table_schema:t table_name:t column_name:t",
    "information_schema.referential_constraints": "constraint_schema:t constraint_name:t unique_constraint_name:t",
    "information_schema.routines": "routine_schema:t routine_name:t routine_type:t data_type:t",
    "information_schema.table_constraints": "constraint_schema:t constraint_name:t table_schema:t table_name:t constraint_type:t",
    "information_schema.views": "table_catalog:t table_schema:t table_name:t view_definition:t",
}


def system_tables(declaration: Declaration, facts: Facts) -> dict[str, pa.Table]:
    """Every table, by its name with its schema."""
    tables: Sequence[TableDecl | PublicDecl] = (*declaration.tables, *declaration.public_tables)
    numbered = list(enumerate(sorted(tables, key=lambda table: table.name), start=_FIRST_TABLE_OID))
    name, own = declaration.dataset.id, _NAMESPACES[SCHEMA]
    columns = [(oid, place, table, column) for oid, table in numbered for place, column in enumerate(table.columns, start=1)]
    types = {(table.name, column.name): _type_of(facts, table, column.name) for _, _, table, column in columns}
    described = [(oid, 1259, 0, table.description) for oid, table in numbered if table.description]
    described += [(oid, 1259, place, column.description) for oid, place, _, column in columns if column.description]
    return {title: _table(spec, ()) for title, spec in _EMPTY.items()} | {
        "pg_catalog.pg_namespace": _table("oid:i nspname:t nspowner:i", [(oid, schema, _OWNER) for schema, oid in _NAMESPACES.items()]),
        "pg_catalog.pg_class": _table(
            "oid:i relname:t relnamespace:i reltype:i relowner:i relkind:t relnatts:i reltuples:i relhasindex:b relispartition:b "
            "relpersistence:t relhasrules:b relhastriggers:b relchecks:i relpartbound:t relam:i",
            [
                (oid, table.name, own, 0, _OWNER, "r", len(table.columns), -1, False, False, "p", False, False, 0, None, 0)
                for oid, table in numbered
            ],
        ),
        "pg_catalog.pg_attribute": _table(
            "attrelid:i attname:t atttypid:i attlen:i attnum:i atttypmod:i attnotnull:b atthasdef:b attisdropped:b attidentity:t "
            "attgenerated:t attcollation:i",
            [
                (oid, c.name, _TYPES[of][0], _TYPES[of][1], place, -1, not c.domain.nullable, False, False, "", "", 0)
                for oid, place, table, c in columns
                for of in [types[table.name, c.name]]
            ],
        ),
        "pg_catalog.pg_type": _table(
            "oid:i typname:t typnamespace:i typlen:i typtype:t typcategory:t typarray:i typrelid:i typelem:i typbasetype:i typtypmod:i "
            "typnotnull:b typdelim:t typcollation:i",
            [
                (oid, title, 11, length, "b", category, array, 0, 0, 0, -1, False, ",", 0)
                for title, (oid, length, array, category) in _TYPES.items()
            ],
        ),
        "pg_catalog.pg_database": _table(
            "oid:i datname:t datdba:i encoding:i datcollate:t datctype:t datistemplate:b datallowconn:b",
            [(1, name, _OWNER, 6, "C", "C", False, True)],
        ),
        "pg_catalog.pg_description": _table("objoid:i classoid:i objsubid:i description:t", described),
        "pg_catalog.pg_roles": _table("oid:i rolname:t rolsuper:b rolcanlogin:b", [(_OWNER, "owner", False, False)]),
        "pg_catalog.pg_settings": _table("name:t setting:t", list(SETTINGS.items())),
        "pg_catalog.pg_tables": _table(
            "schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b hastriggers:b",
            [(SCHEMA, table.name, "owner", None, False, False, False) for _, table in numbered],
        ),
        "information_schema.schemata": _table(
            "catalog_name:t schema_name:t schema_owner:t", [(name, schema, "owner") for schema in _NAMESPACES]
        ),
        "information_schema.tables": _table(
            "table_catalog:t table_schema:t table_name:t table_type:t is_insertable_into:t",
            [(name, SCHEMA, table.name, "BASE TABLE", "NO") for _, table in numbered],
        ),
        "information_schema.columns": _table(
            "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i column_default:t is_nullable:t data_type:t "
            "character_maximum_length:i numeric_precision:i numeric_scale:i datetime_precision:i udt_schema:t udt_name:t is_identity:t "
            "is_generated:t is_updatable:t",
            [
                (name, SCHEMA, table.name, column.name, place, None, "YES" if column.domain.nullable else "NO", *_typed(of))
                for _, place, table, column in columns
                for of in [types[table.name, column.name]]
            ],
        ),
    }


def _typed(of: str) -> tuple[Any, ...]:
    precision, scale = {"int8": (64, 0), "float8": (53, None)}.get(of, (None, None))
    moment = {"date": 0, "timestamp": 6}.get(of)
    return (_LONG_NAMES.get(of, of), None, precision, scale, moment, "pg_catalog", of, "NO", "NEVER", "NO")


def _type_of(facts: Facts, table: TableDecl | PublicDecl, column: str) -> str:
    known = facts.table(table.name) if isinstance(table, TableDecl) else facts.public_table(table.name)
    domain = known.columns[column]
    return "text" if isinstance(domain, KeyDomain) and domain.text else _OF_KIND[kind_of(domain)]


def _table(spec: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """A table of these rows; ``spec`` names each column and its type by one letter."""
    fields = [field.split(":") for field in spec.split()]
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    return pa.table({title: pa.array(values, _ARROW[kind]) for (title, kind), values in zip(fields, cells, strict=True)})
