"""The shadow: a PostgreSQL database with the declared tables and comments, no row, and a role that sees tables but may not read them.

The sessions' role may not SELECT from a table, nor create, change or call anything that changes something. PostgreSQL checks that for
every table of every statement, however Lapwing parsed the text: an unrecognised statement fails, and is never answered with no rows.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
from psycopg import sql

from lapwing.errors import LapwingError
from lapwing.interfaces.http.identity.scram_verifiers import ITERATIONS, verifier_of
from lapwing.interfaces.python.transport import is_loopback
from lapwing.interfaces.wire.lexing import IDENTIFIER_BYTES_MAX
from lapwing.interfaces.wire.shadow.link import ShadowAddress
from lapwing.interfaces.wire.shadow.revoked_rights import IS_OPEN, MAKE_TEMPLATE, TEMPLATE, WALL

MARK = "shadow of a Lapwing data set: no row is ever in it"
_FORMAT = 2
"""Changes when shadows must be made again although their declarations are the same."""
_MAKING = 0x6C61_7077_696E_67
"""The lock for creating a shadow."""
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
_TYPES = frozenset({"boolean", "bigint", "double precision", "text", "date", "timestamp without time zone"})


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column of the shadow."""

    name: str
    type_name: str
    nullable: bool
    description: str


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table of the shadow."""

    name: str
    description: str
    columns: tuple[DeclaredColumn, ...]
    key: str = ""
    """The column that identifies its rows; empty if there is none."""
    references: tuple[tuple[str, str, str], ...] = ()
    """Columns that refer to another table: the column, the table, and its key."""


def address_of(url: str, *, database: str, role: str, password: str) -> ShadowAddress:
    """The address of the shadow for sessions, from the address used to create it."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise LapwingError("server-configuration", "wire.shadow must be the address of a PostgreSQL server: postgresql://...")
    query = parse_qs(parts.query)
    host = unquote(query.get("host", [parts.hostname or "127.0.0.1"])[0])
    encrypted = not host.startswith("/") and not is_loopback(host)
    return ShadowAddress(host, int(query.get("port", [str(parts.port or 5432)])[0]), database, role, password, encrypted)


def shadow_name(prefix: str, data_set: str) -> str:
    """The database of a data set's shadow. Long names get a digest: PostgreSQL would truncate them, and two data sets could share one."""
    name = f"{prefix}{data_set}"
    if len(name.encode()) <= IDENTIFIER_BYTES_MAX:
        return name
    mark = "_" + hashlib.sha256(data_set.encode()).hexdigest()[:20]
    return name.encode()[: IDENTIFIER_BYTES_MAX - len(mark)].decode(errors="ignore") + mark


def make_shadow(url: str, *, database: str, role: str, password: str, tables: Sequence[DeclaredTable]) -> None:
    """Create the shadow, or update it to the declaration; ``wire-shadow`` if that cannot be done safely."""
    with _making(url) as (connection, maker):
        _make_role(connection, maker, role, password)
        _make_database(connection, maker, database, role)
        with psycopg.connect(url, dbname=database, autocommit=True) as inside:
            _make_tables(inside, role, tables)
            if maker.is_superuser and _is_open(inside):
                inside.execute(WALL.encode())


def what_is_missing(url: str, *, later: bool) -> list[str]:
    """What the maker of shadows lacks, each with the statement that fixes it and who must run it; ``later`` if shadows may be added."""
    with _making(url) as (connection, maker):
        if maker.is_superuser:
            return []
        said = []
        if maker.lacks:
            said.append(f"[wire] shadow: shadows cannot be added. A superuser must run: {maker.grant}")
        there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s AND datistemplate", (TEMPLATE,)).fetchone()
        places = connection.execute(
            "SELECT datname FROM pg_database WHERE datallowconn AND has_database_privilege(oid, 'CONNECT') AND"
            " (pg_has_role(datdba, 'USAGE') AND shobj_description(oid, 'pg_database') = %s OR datname = %s AND datistemplate)",
            (MARK, TEMPLATE),
        ).fetchall()
        without = []
        for (name,) in places:
            with psycopg.connect(url, dbname=name, autocommit=True) as inside:
                if _is_open(inside):
                    without.append(sql.Identifier(name).as_string(connection))
        make = f"{MAKE_TEMPLATE}; " if later and there is None else ""
        if without or make:
            where = ", ".join([*without, *([TEMPLATE] if make else [])])
            said.append(
                "[wire] shadow: only the rules for statements keep sessions from functions of PostgreSQL that they never need."
                f" A superuser must run{f': {make}and' if make else ','} in each of the databases {where}: {WALL}"
            )
        return said


def _is_open(inside: psycopg.Connection) -> bool:
    return inside.execute(IS_OPEN.encode()).fetchone() != (False,)


@dataclass(frozen=True, slots=True)
class _Maker:
    """The role that makes shadows, and what it may do."""

    name: str
    is_superuser: bool
    makes_databases: bool
    makes_roles: bool

    @property
    def lacks(self) -> list[str]:
        rights = (("CREATEDB", self.makes_databases), ("CREATEROLE", self.makes_roles))
        return [] if self.is_superuser else [right for right, has in rights if not has]

    @property
    def grant(self) -> str:
        """The statement that grants it all that it lacks."""
        return sql.SQL("ALTER ROLE {}").format(sql.Identifier(self.name)).as_string(None) + f" {' '.join(self.lacks)}"


@contextmanager
def _making(url: str) -> Iterator[tuple[psycopg.Connection, _Maker]]:
    """A connection of the maker; workers and replicas take turns."""
    maker = None
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (_MAKING,))  # until the connection is closed
            row = connection.execute(
                "SELECT rolname, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            assert row is not None
            maker = _Maker(*row)
            yield connection, maker
    except psycopg.Error as error:
        state = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
        hint = "its role needs CREATEDB and CREATEROLE; see docs/how-to/wire.md"
        if maker is not None and maker.lacks:
            hint = f"a superuser must run: {maker.grant}"
        raise LapwingError("wire-shadow", f"the shadow database cannot be made: {type(error).__name__}{state}", hint=hint) from error


def _make_role(connection: psycopg.Connection, maker: _Maker, role: str, password: str) -> None:
    found = connection.execute(
        "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
        " OR EXISTS (SELECT 1 FROM pg_auth_members WHERE member = r.oid) FROM pg_roles r WHERE rolname = %s",
        (role,),
    ).fetchone()
    if found is not None and found[0]:
        raise LapwingError("wire-shadow", f"the role {role!r} has more rights than sessions may have", hint="name another in [wire] role")
    if found is not None and "CREATEROLE" in maker.lacks:
        return  # leave it as it is: the password does not change
    salt = secrets.token_bytes(16)
    kept = verifier_of(password, salt)
    parts = (base64.b64encode(part).decode() for part in (salt, kept.stored_key, kept.server_key))
    salted, stored, server = parts
    verifier = f"SCRAM-SHA-256${ITERATIONS}:{salted}${stored}:{server}"
    # A new role has no rights by default, and only superusers may set NOSUPERUSER on an existing one.
    verb = sql.SQL("CREATE" if found is None else "ALTER")
    connection.execute(sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(verb, sql.Identifier(role), sql.Literal(verifier)))


def _make_database(connection: psycopg.Connection, maker: _Maker, database: str, role: str) -> None:
    found = connection.execute(
        "SELECT shobj_description(oid, 'pg_database'), pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = %s", (database,)
    ).fetchone()
    name, whom = sql.Identifier(database), sql.Identifier(role)
    if found is not None and found[0] != MARK:
        message = f"there is a database {database!r} that is not a shadow"
        raise LapwingError("wire-shadow", message, hint="use another PostgreSQL server for [wire] shadow, or a shadow_prefix")
    if found is not None and not found[1]:
        drop = sql.SQL("DROP DATABASE {}").format(name).as_string(connection)
        raise LapwingError(
            "wire-shadow",
            f"the shadow {database!r} belongs to a role that {maker.name!r} is not a member of",
            hint=f"a superuser or its owner must run: {drop}; the next start makes it again",
        )
    if found is None:
        template = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s AND datistemplate", (TEMPLATE,)).fetchone()
        copied = sql.Identifier("template0" if template is None else TEMPLATE)
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'").format(name, copied))
        connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(name, sql.Literal(MARK)))
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
    connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(name, whom))
    settings = connection.execute(
        "SELECT lower(setconfig::text)::text[] FROM pg_db_role_setting WHERE setrole = (SELECT oid FROM pg_roles WHERE rolname = %s)"
        " AND setdatabase = (SELECT oid FROM pg_database WHERE datname = %s)",
        (role, database),
    ).fetchone()
    for setting, value in _SESSION.items():
        if settings is None or f"{setting}={value}".lower() not in settings[0]:
            connection.execute(
                sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(whom, name, sql.Identifier(setting), sql.Literal(value))
            )


def _make_tables(connection: psycopg.Connection, role: str, tables: Sequence[DeclaredTable]) -> None:
    """Create all tables in one transaction: sessions see either the old declaration or the new one."""
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
        for table in tables:
            _refer(connection, table)


def _refer(connection: psycopg.Connection, table: DeclaredTable) -> None:
    """Add foreign keys, which tools use to draw diagrams and to suggest joins; no row can violate them."""
    for column, other, key in table.references:
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD FOREIGN KEY ({}) REFERENCES {} ({})").format(
                sql.Identifier("public", table.name), sql.Identifier(column), sql.Identifier("public", other), sql.Identifier(key)
            )
        )


def _make_table(connection: psycopg.Connection, whom: sql.Identifier, table: DeclaredTable) -> None:
    name = sql.Identifier("public", table.name)
    columns = []
    for column in table.columns:
        assert column.type_name in _TYPES
        form = "{} {}" if column.nullable else "{} {} NOT NULL"
        if column.name == table.key:
            form += " UNIQUE" if column.nullable else " PRIMARY KEY"
        columns.append(sql.SQL(form).format(sql.Identifier(column.name), sql.SQL(column.type_name)))
    body = sql.SQL(", ").join(columns)
    connection.execute(sql.SQL("CREATE TABLE {} ({}) WITH (autovacuum_enabled = false)").format(name, body))
    # The only right that makes a table visible in information_schema without granting access to its rows.
    connection.execute(sql.SQL("GRANT REFERENCES ON {} TO {}").format(name, whom))
    if table.description:
        connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(name, sql.Literal(table.description)))
    for column in table.columns:
        if column.description:
            place = sql.Identifier("public", table.name, column.name)
            connection.execute(sql.SQL("COMMENT ON COLUMN {} IS {}").format(place, sql.Literal(column.description)))
