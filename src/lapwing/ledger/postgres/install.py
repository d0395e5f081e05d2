"""Creates or upgrades the schema in a database, and grants the rights in it.

The operator runs it, with a role that may create a schema. Three other roles use the schema, and none of them may change a table:
*curators* answer analysts, *owners* also decide, and *monitors* only read. Analysts and owners log in with a role that is a member of one
of these.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from lapwing.errors import LedgerError
from lapwing.ledger.postgres.connection import require_extra
from lapwing.ledger.postgres.routines import ACTING, ASKING, COMMITTING, HELPING, SEARCH_PATH, grant_calls, replace_routines

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy.engine import Connection

SCHEMA_VERSION = "0008"
"""The newest migration, which this version of Lapwing reads and writes."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The database roles that receive the rights. Missing roles are created, without a login."""

    curators: str = "lapwing_curators"
    """May register as workers, reserve, settle, and read what an answer needs; may not access tables."""
    owners: str = "lapwing_owners"
    """May do the same, perform every act of an owner, and read all tables."""
    monitors: str = "lapwing_monitors"
    """May read all tables, and do nothing else."""


def install(dsn: str, *, roles: Roles) -> str:
    """Create or upgrade the schema, grant ``roles`` their rights, revoke all others, and return the version of the schema.

    This is one transaction: a failure changes nothing. Refuses a schema of a newer version (``ledger-format``), and one that belongs to
    another role (``ledger-owner``).
    """
    require_extra()
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from psycopg.errors import InsufficientPrivilege
    from sqlalchemy import create_engine, exc, pool

    engine = create_engine("postgresql+psycopg://", creator=lambda: _connected(dsn), poolclass=pool.NullPool)
    config = Config()
    config.set_main_option("script_location", str(files("lapwing.ledger.postgres") / "migrations"))
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql("SELECT pg_catalog.pg_advisory_xact_lock(7310)")  # serialises operators who install at the same time
            connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS lapwing")
            _require_own(connection)
            before = _version(connection)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            version = _version(connection)
            if version != before:
                replace_routines(connection)
            if before in {"0001", "0002"}:
                connection.exec_driver_sql(
                    (files("lapwing.ledger.postgres") / "sql" / "earlier_workers.sql").read_text(encoding="utf-8").replace("%", "%%")
                )
            _grant(connection, roles)
    except CommandError as error:
        raise LedgerError(
            "ledger-format", "the schema of the ledger has a version that this Lapwing does not know", hint="use a newer version of Lapwing"
        ) from error
    except exc.SQLAlchemyError as error:
        if isinstance(getattr(error, "orig", None), InsufficientPrivilege):
            hint = "install with a dedicated role that may create schemas and roles"
            raise LedgerError("ledger-role", "the role of this connection may not install a ledger", hint=hint) from error
        raise LedgerError("ledger-unreachable", "the schema of the ledger could not be created", hint="see the server's log") from error
    finally:
        engine.dispose()
    return version


def _connected(dsn: str) -> psycopg.Connection[tuple[object, ...]]:
    """A connection with a pinned search path: the libraries that use it send their own queries, with names that others could have
    taken."""
    from psycopg import connect

    connection = connect(dsn, prepare_threshold=None)
    connection.execute(f"SET search_path = {SEARCH_PATH}".encode())
    connection.commit()
    return connection


def _version(connection: Connection) -> str:
    if connection.exec_driver_sql("SELECT pg_catalog.to_regclass('lapwing.alembic_version') IS NULL").scalar_one():
        return ""
    return str(connection.exec_driver_sql("SELECT version_num FROM lapwing.alembic_version").scalar_one())


def _require_own(connection: Connection) -> None:
    """Require that the installing role owns the schema and everything in it: another role could have placed objects there before."""
    others = connection.exec_driver_sql(
        "SELECT count(*) FROM (SELECT nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'lapwing'"
        " UNION ALL SELECT relowner FROM pg_catalog.pg_class WHERE relnamespace = 'lapwing'::pg_catalog.regnamespace"
        " UNION ALL SELECT proowner FROM pg_catalog.pg_proc WHERE pronamespace = 'lapwing'::pg_catalog.regnamespace) AS has (owner)"
        " WHERE owner <> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)"
    ).scalar_one()
    if others:
        hint = "install with the role that owns the schema, or into another database"
        raise LedgerError("ledger-owner", "the schema lapwing, or something in it, belongs to another role", hint=hint)


def _grant(connection: Connection, roles: Roles) -> None:
    """Grant exactly these rights, whatever rights existed before."""
    from psycopg import sql

    def execute(statement: str) -> None:
        connection.exec_driver_sql(statement.replace("%", "%%"))

    for name in astuple(roles):
        known = connection.exec_driver_sql("SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = %s", (name,)).scalar()
        if known is None:
            execute(f"CREATE ROLE {sql.Identifier(name).as_string(None)} NOLOGIN")
    curators, owners, monitors = (sql.Identifier(name).as_string(None) for name in astuple(roles))
    for grantee in connection.exec_driver_sql(_GRANTEES).scalars().all():
        for what in ("ALL TABLES IN SCHEMA lapwing", "ALL ROUTINES IN SCHEMA lapwing", "SCHEMA lapwing"):
            execute(f"REVOKE ALL ON {what} FROM {grantee}")
    # If the installing role owns the schema public, others cannot create objects beside the ledger. No guarantee depends on it.
    if connection.exec_driver_sql(_PUBLIC_IS_OURS).scalar():
        execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    execute(f"GRANT USAGE ON SCHEMA lapwing TO {curators}, {owners}, {monitors}")
    execute(f"GRANT SELECT ON lapwing.alembic_version TO {curators}")
    execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA lapwing TO {owners}, {monitors}")
    grant_calls(connection, (*ASKING, *COMMITTING, *HELPING), f"{curators}, {owners}")
    grant_calls(connection, ACTING, owners)


_GRANTEES = (
    "SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(r.rolname) END FROM ("
    " SELECT a.grantee FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a"
    " WHERE c.relnamespace = 'lapwing'::pg_catalog.regnamespace"
    " UNION SELECT a.grantee FROM pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a"
    " WHERE p.pronamespace = 'lapwing'::pg_catalog.regnamespace"
    " UNION SELECT a.grantee FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a WHERE n.nspname = 'lapwing'"
    ") AS given LEFT JOIN pg_catalog.pg_roles r ON r.oid = given.grantee WHERE r.rolname IS DISTINCT FROM current_user"
)
_PUBLIC_IS_OURS = "SELECT pg_catalog.pg_has_role(nspowner, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = 'public'"
