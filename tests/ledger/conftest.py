"""The PostgreSQL server of the run, with one database for all tests of the ledger and a source for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place


@pytest.fixture(scope="session")
def cluster(shared_cluster: Cluster) -> Cluster:
    return shared_cluster


@pytest.fixture(scope="session")
def database(cluster: Cluster) -> str:
    """A database with the schema of the ledger."""
    return cluster.new_database()


@pytest.fixture
def place(cluster: Cluster, database: str, tmp_path: Path) -> Place:
    """A source of the test's own."""
    return new_place(cluster, database, tmp_path)
