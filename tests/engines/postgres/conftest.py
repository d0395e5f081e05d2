"""The PostgreSQL server of the run, with a database of the owner's and a role that only answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.postgres.place import Place, new_place
from tests.ledger.cluster import Cluster
from tests.support.postgres_worlds import PostgresWorlds


@pytest.fixture(scope="session")
def cluster(shared_cluster: Cluster) -> Cluster:
    return shared_cluster


@pytest.fixture(scope="session")
def worlds(cluster: Cluster) -> Iterator[PostgresWorlds]:
    """A database for worlds, reached as its superuser: what roles may do is tested elsewhere."""
    with cluster.superuser() as connection:
        # Another collation, zone and style than ours: nothing may depend on them.
        connection.execute("CREATE DATABASE worlds TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C.UTF-8'")
        connection.execute("ALTER DATABASE worlds SET TimeZone = 'Pacific/Auckland'")
        connection.execute("ALTER DATABASE worlds SET DateStyle = 'SQL, DMY'")
    made = PostgresWorlds(cluster.dsn("worlds", role="postgres"))
    yield made
    made.close()


@pytest.fixture
def place(cluster: Cluster) -> Iterator[Place]:
    """A database with a table of visits, its owner, and a role that may connect."""
    made = new_place(cluster)
    yield made
    made.close()
