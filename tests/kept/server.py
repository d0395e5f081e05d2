"""Putting the kept database back on a server of the tests."""

from __future__ import annotations

from pathlib import Path

from lapwing.ledger.postgres.install import install
from tests.ledger.cluster import OWNER_ROLE, ROLES, Cluster


def put_back(cluster: Cluster, database: str, dump: Path) -> str:
    """A new database from a dump, then what ``lapwing ledger install`` does after an upgrade; gives the version of the schema.

    The dump names the roles of ``tests.ledger.cluster``, which every server of the tests has.
    """
    with cluster.superuser() as connection:
        connection.execute(f"CREATE DATABASE {database} OWNER {OWNER_ROLE} TEMPLATE template0".encode())
    with cluster.superuser(database) as connection:
        connection.execute(dump.read_bytes())
    return install(cluster.dsn(database, role=OWNER_ROLE), roles=ROLES)
