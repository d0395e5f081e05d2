"""The server of the run and one Spark for the suite, started when the first test needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.engines.suite.engines import OnDuckDB, OnPostgres, OnSpark, SuiteEngine
from tests.ledger.cluster import Cluster
from tests.support.postgres_worlds import PostgresWorlds


@pytest.fixture(scope="session")
def postgres_worlds(shared_cluster: Cluster) -> Iterator[PostgresWorlds]:
    """A database in which text is compared by a language's rules and times are shown in a zone far from UTC, unless a session says not."""
    with shared_cluster.superuser() as connection:
        connection.execute("CREATE DATABASE suite TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-DE-u-ks-level1'")
        connection.execute("ALTER DATABASE suite SET TimeZone = 'Pacific/Chatham'")
        connection.execute("ALTER DATABASE suite SET DateStyle = 'SQL, DMY'")
    worlds = PostgresWorlds(shared_cluster.dsn("suite", role="postgres"))
    yield worlds
    worlds.close()


@pytest.fixture
def engine_named(request: pytest.FixtureRequest) -> Iterator[Callable[[str], SuiteEngine]]:
    """An engine by its name; what it wrote on a server is removed at the end."""

    def named(name: str) -> SuiteEngine:
        if name == "duckdb":
            return OnDuckDB()
        if name == "spark":
            return OnSpark()
        worlds: PostgresWorlds = request.getfixturevalue("postgres_worlds")
        request.addfinalizer(worlds.clear)
        return OnPostgres(worlds)

    yield named
