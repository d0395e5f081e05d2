"""One server with the wire for all tests that leave it as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ledger.cluster import Cluster
from tests.wire.world import WireUnderTest, wire_over


@pytest.fixture(scope="session")
def wire(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireUnderTest]:
    """A server with the wire, which spends what it likes."""
    with wire_over(shared_cluster, tmp_path_factory.mktemp("wire"), session_share=1.0, day_share=1.0) as under_test:
        yield under_test
