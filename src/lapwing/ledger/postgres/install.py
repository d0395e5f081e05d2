"""Makes the schema in a database, brings an older one up to date, and lets a role use it.

To be run by the operator with a role that may create a schema. The role that answers analysts is another one, and gets no right to change a
table: only to call the functions of the protocol.
"""

from __future__ import annotations

from importlib.resources import files

from lapwing.errors import LedgerError
from lapwing.ledger.postgres.connection import require_extra

SCHEMA_VERSION = "0001"
"""The newest migration: what this version of Lapwing reads and writes."""


def install(dsn: str, *, role: str) -> str:
    """Make or upgrade the schema, grant its use to ``role`` (which exists already), and give the version it has now.

    All in one transaction: a failure leaves what was there. A schema of a newer version is ``ledger-format``.
    """
    require_extra()
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from psycopg import connect, sql
    from sqlalchemy import create_engine, exc, pool

    engine = create_engine("postgresql+psycopg://", creator=lambda: connect(dsn, prepare_threshold=None), poolclass=pool.NullPool)
    config = Config()
    config.set_main_option("script_location", str(files("lapwing.ledger.postgres") / "migrations"))
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7310)")  # two operators at once: one after the other
            connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS lapwing")
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            name = sql.Identifier(role).as_string(None)
            connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA lapwing TO {name}".replace("%", "%%"))
            connection.exec_driver_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA lapwing TO {name}".replace("%", "%%"))
            for (signature,) in connection.exec_driver_sql(_CALLABLE).all():
                connection.exec_driver_sql(f"GRANT EXECUTE ON ROUTINE {signature} TO {name}".replace("%", "%%"))
            found = str(connection.exec_driver_sql("SELECT version_num FROM lapwing.alembic_version").scalar_one())
    except CommandError as error:
        raise LedgerError(
            "ledger-format", "the schema of the ledger is of a version that this one does not know", hint="use a newer version of Lapwing"
        ) from error
    except exc.SQLAlchemyError as error:
        raise LedgerError("ledger-unreachable", "the schema of the ledger could not be made", hint="see the server's log") from error
    finally:
        engine.dispose()
    return found


_CALLABLE = (
    "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'lapwing'::regnamespace"
    " AND (prosecdef OR prokind = 'p' OR obj_description(oid, 'pg_proc') = 'callable')"
)
