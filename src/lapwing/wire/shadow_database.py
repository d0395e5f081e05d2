"""The shadow: a PostgreSQL database with the declared tables, their comments, no row, and a role that may look and not read.

The role of sessions has no right to SELECT from a table, and none to make, change or call anything that changes something. PostgreSQL
checks that for every table of every statement, whatever the text looked like to us: what is not recognised fails, it is never answered
with no rows.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
from psycopg import sql

from lapwing.client.transport import is_loopback
from lapwing.errors import LapwingError
from lapwing.server.scram_verifiers import ITERATIONS, verifier_of
from lapwing.wire.lexing import IDENTIFIER_BYTES_MAX
from lapwing.wire.shadow_link import ShadowAddress

MARK = "shadow of a Lapwing data set: no row is ever in it"
_FORMAT = 2
"""Changes when shadows are to be made anew although their declarations are as before."""
_MAKING = 0x6C61_7077_696E_67
"""The lock of whoever makes a shadow."""
_TIMEOUT = "10s"
_SESSION = {
    "statement_timeout": _TIMEOUT,
    "lock_timeout": "2s",
    "default_transaction_read_only": "on",
    "search_path": "public",
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
    "standard_conforming_strings": "on",
}
_DANGEROUS: LiteralString = (
    "^(lo_|pg_notify$|pg_sleep|pg_terminate_backend$|pg_cancel_backend$|query_to_xml|cursor_to_xml|table_to_xml|schema_to_xml|database_to_xml"
    "|pg_advisory_lock|pg_advisory_xact|pg_advisory_unlock(_shared)?$|pg_try_advisory|pg_logical|pg_export_snapshot|pg_log_backend|ts_stat|pg_stat_get_activity|setval|nextval|loread|lowrite)"
)
_TYPES = frozenset({"boolean", "bigint", "double precision", "text", "date", "timestamp without time zone"})


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column as the shadow has it."""

    name: str
    type_name: str
    nullable: bool
    description: str


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table as the shadow has it."""

    name: str
    description: str
    columns: tuple[DeclaredColumn, ...]


def address_of(url: str, *, database: str, role: str, password: str) -> ShadowAddress:
    """Where sessions find the shadow, from the address of whoever makes it."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise LapwingError("server-configuration", "wire.shadow is the address of a PostgreSQL server: postgresql://...")
    query = parse_qs(parts.query)
    host = unquote(query.get("host", [parts.hostname or "127.0.0.1"])[0])
    encrypted = not host.startswith("/") and not is_loopback(host)
    return ShadowAddress(host, int(query.get("port", [str(parts.port or 5432)])[0]), database, role, password, encrypted)


def shadow_name(prefix: str, data_set: str) -> str:
    """The database of a data set's shadow: PostgreSQL would cut a longer name off, and two data sets would have one shadow."""
    name = f"{prefix}{data_set}"
    if len(name.encode()) <= IDENTIFIER_BYTES_MAX:
        return name
    mark = "_" + hashlib.sha256(data_set.encode()).hexdigest()[:20]
    return name.encode()[: IDENTIFIER_BYTES_MAX - len(mark)].decode(errors="ignore") + mark


def make_shadow(url: str, *, database: str, role: str, password: str, tables: Sequence[DeclaredTable]) -> None:
    """Make the shadow, or bring it up to the declaration; ``wire-shadow`` where that cannot be done safely."""
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (_MAKING,))  # until the connection is closed: workers make them one by one
            _make_role(connection, role, password)
            _make_database(connection, database, role)
            with psycopg.connect(url, dbname=database, autocommit=True) as inside:
                _make_tables(inside, role, tables)
    except psycopg.Error as error:
        state = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
        hint = "its role needs CREATEDB and CREATEROLE; docs/how-to/wire.md"
        raise LapwingError("wire-shadow", f"the shadow database cannot be made: {type(error).__name__}{state}", hint=hint) from error


def _make_role(connection: psycopg.Connection, role: str, password: str) -> None:
    found = connection.execute(
        "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
        " OR EXISTS (SELECT 1 FROM pg_auth_members WHERE member = r.oid) FROM pg_roles r WHERE rolname = %s",
        (role,),
    ).fetchone()
    if found is not None and found[0]:
        raise LapwingError("wire-shadow", f"the role {role!r} may do more than sessions may", hint="name another in [wire] role")
    salt = secrets.token_bytes(16)
    kept = verifier_of(password, salt)
    parts = (base64.b64encode(part).decode() for part in (salt, kept.stored_key, kept.server_key))
    salted, stored, server = parts
    verifier = f"SCRAM-SHA-256${ITERATIONS}:{salted}${stored}:{server}"
    verb = sql.SQL("CREATE" if found is None else "ALTER")
    connection.execute(
        sql.SQL("{} ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD {}").format(
            verb, sql.Identifier(role), sql.Literal(verifier)
        )
    )


def _make_database(connection: psycopg.Connection, database: str, role: str) -> None:
    found = connection.execute("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", (database,)).fetchone()
    name, whom = sql.Identifier(database), sql.Identifier(role)
    if found is not None and found[0] != MARK:
        message = f"there is a database {database!r} that is not a shadow"
        raise LapwingError("wire-shadow", message, hint="use another PostgreSQL server for [wire] shadow, or a shadow_prefix")
    if found is None:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'").format(name))
        connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(name, sql.Literal(MARK)))
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
    connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(name, whom))
    for setting, value in _SESSION.items():
        connection.execute(
            sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(whom, name, sql.Identifier(setting), sql.Literal(value))
        )


def _make_tables(connection: psycopg.Connection, role: str, tables: Sequence[DeclaredTable]) -> None:
    """All of it in one transaction: sessions see the old declaration or the new one."""
    digest = hashlib.sha256(repr((_FORMAT, role, tables)).encode()).hexdigest()
    there = connection.execute("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'public'").fetchone()
    if there is not None and there[0] == f"declared: {digest}":
        return
    whom = sql.Identifier(role)
    with connection.transaction():
        connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(whom))
        connection.execute(sql.SQL("COMMENT ON SCHEMA public IS {}").format(sql.Literal(f"declared: {digest}")))
        for table in tables:
            _make_table(connection, whom, table)
        _revoke_functions(connection)


def _make_table(connection: psycopg.Connection, whom: sql.Identifier, table: DeclaredTable) -> None:
    name = sql.Identifier("public", table.name)
    columns = []
    for column in table.columns:
        assert column.type_name in _TYPES
        form = sql.SQL("{} {}" if column.nullable else "{} {} NOT NULL")
        columns.append(form.format(sql.Identifier(column.name), sql.SQL(column.type_name)))
    body = sql.SQL(", ").join(columns)
    connection.execute(sql.SQL("CREATE TABLE {} ({}) WITH (autovacuum_enabled = false)").format(name, body))
    # The one right that makes a table show in information_schema and lets nobody read it.
    connection.execute(sql.SQL("GRANT REFERENCES ON {} TO {}").format(name, whom))
    if table.description:
        connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(name, sql.Literal(table.description)))
    for column in table.columns:
        if column.description:
            place = sql.Identifier("public", table.name, column.name)
            connection.execute(sql.SQL("COMMENT ON COLUMN {} IS {}").format(place, sql.Literal(column.description)))


def _revoke_functions(connection: psycopg.Connection) -> None:
    """A wall behind the list of functions that we pass on; only a superuser can build it."""
    if connection.info.parameter_status("is_superuser") != "on":
        return
    listed = connection.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ %s", (_DANGEROUS,)
    ).fetchall()
    for (signature,) in listed:
        connection.execute(sql.SQL("REVOKE EXECUTE ON FUNCTION pg_catalog.{} FROM PUBLIC").format(sql.SQL(signature)))
