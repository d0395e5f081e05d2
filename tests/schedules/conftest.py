"""The PostgreSQL server of the run, and the ledger as it is shipped, installed in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.cluster import Cluster
from tests.schedules.subject import Subject, subject_of


@pytest.fixture(scope="session")
def cluster(shared_cluster: Cluster) -> Cluster:
    return shared_cluster


@pytest.fixture(scope="session")
def shipped(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    """The ledger without a change, built and loaded the way a mutant is: what holds for it does not come from the building."""
    directory: Path = tmp_path_factory.mktemp("shipped")
    with subject_of(cluster, "shipped", (), directory) as subject:
        yield subject


@pytest.fixture(scope="session")
def gated(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    """The ledger with a gate after every statement of its functions."""
    directory: Path = tmp_path_factory.mktemp("gated")
    with subject_of(cluster, "gated", (), directory, gates=True) as subject:
        yield subject
