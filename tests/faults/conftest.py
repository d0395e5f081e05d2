"""One PostgreSQL server for the faults of a test process. Tests may kill it, and leave it running."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.ledger.cluster import Cluster, server_programs


@pytest.fixture(scope="session")
def fault_cluster() -> Iterator[Cluster]:
    """Nothing is on its disk unless somebody waited for that: what a killed server forgets is then seen."""
    if server_programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed")
    running = Cluster(["wal_writer_delay=10s"])
    yield running
    running.close()
