"""A second barrier behind the rules for statements: in a shadow, PostgreSQL itself refuses what these rules do not let through.

Only a superuser can revoke a function of PostgreSQL. The text is one statement, so that somebody else can run it if the role that makes
the shadows is not a superuser.
"""

from __future__ import annotations

from lapwing.interfaces.wire.catalogue.words import FUNCTIONS, RELATIONS

TEMPLATE = "lapwing_shadow_template"
"""The database that shadows are copied from, if it exists: a superuser may have run the statement in it."""
_NEEDED = frozenset({"set_config", "pg_sequence_last_value"})
"""Volatile functions that the connection pool calls, and views that tools read."""
_STABLE_WORDS = """
table_to_xml table_to_xmlschema table_to_xml_and_xmlschema schema_to_xml schema_to_xmlschema schema_to_xml_and_xmlschema
database_to_xml database_to_xmlschema database_to_xml_and_xmlschema repeat lpad rpad array_fill pg_cursor pg_prepared_statement
inet_client_addr pg_describe_object pg_identify_object pg_identify_object_as_address pg_get_object_address pg_tablespace_databases
pg_get_replication_slots makeaclitem to_regrole
"""
_STABLE = frozenset(_STABLE_WORDS.split())
"""Functions marked stable that read tables by name, reveal other sessions or databases, or make very long texts."""


def _names(listed: frozenset[str]) -> str:
    return f"'{{{','.join(sorted(listed))}}}'"


_FUNCTIONS = (
    "pronamespace = 'pg_catalog'::regnamespace AND (provolatile = 'v' AND proname <> ALL"
    f" ({_names(FUNCTIONS | _NEEDED)}::text[]) OR proname = ANY ({_names(_STABLE)}::text[])"
    " OR proname LIKE 'pg\\_stat\\_get\\_%')"
)
_RELATIONS = f"relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') AND relname <> ALL ({_names(RELATIONS)}::text[])"
WALL = (
    "DO $$ DECLARE one text; BEGIN"
    f" FOR one IN SELECT oid::regprocedure FROM pg_proc WHERE {_FUNCTIONS} LOOP"
    " EXECUTE 'REVOKE EXECUTE ON ROUTINE ' || one || ' FROM PUBLIC'; END LOOP;"
    f" FOR one IN SELECT oid::regclass FROM pg_class WHERE {_RELATIONS} LOOP"
    " EXECUTE 'REVOKE SELECT ON ' || one || ' FROM PUBLIC'; END LOOP; END $$"
)
"""The statement that a superuser runs in a database to revoke these rights."""
MAKE_TEMPLATE = f"CREATE DATABASE {TEMPLATE} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' IS_TEMPLATE true"
IS_OPEN = (
    f"SELECT EXISTS (SELECT 1 FROM pg_proc WHERE {_FUNCTIONS} AND has_function_privilege('public', oid, 'EXECUTE'))"
    f" OR EXISTS (SELECT 1 FROM pg_class WHERE {_RELATIONS} AND has_any_column_privilege('public', oid, 'SELECT'))"
)
"""Whether a database lacks some of these revocations."""
