"""One PostgreSQL server for all tests of a process, started when the first needs it, and one database with a source for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.cluster import Cluster, server_programs
from tests.ledger.pg import Place, new_place


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if server_programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed")
    running = Cluster()
    yield running
    running.close()


@pytest.fixture(scope="session")
def database(cluster: Cluster) -> str:
    """A database with the schema of the ledger."""
    return cluster.new_database()


@pytest.fixture
def place(cluster: Cluster, database: str, tmp_path: Path) -> Place:
    """A source of the test's own."""
    return new_place(cluster, database, tmp_path)
