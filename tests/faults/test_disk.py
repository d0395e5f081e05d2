"""A full disk: charges are refused or lost with their reply, never forgotten; with room again, everything goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchoring import report_lost
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.install import SCHEMA_VERSION
from lapwing.ledger.postgres.verify import verify
from tests.faults.disk import CrampedServer, How, SmallDisk, fill_while_clients_work, may_mount
from tests.ledger.cluster import APP_ROLE, SECOND_ROLE, Cluster
from tests.ledger.pg import Place
from tests.ledger.support import request


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "clients", "sources", "times"),
    [(How.SMALL_DISK, 1, 1, 8), (How.SMALL_DISK, 4, 10, 6), (How.SMALL_DISK, 32, 1, 4), (How.LOW_LIMIT, 4, 1, 4)],
)
def test_a_full_disk_loses_no_charge(tmp_path: Path, how: How, clients: int, sources: int, times: int) -> None:
    """Twenty-two times, eighteen of them on a small disk where one may be mounted."""
    server = CrampedServer(how if may_mount() else How.LOW_LIMIT)
    try:
        database = server.cluster.new_database()
        outcome = fill_while_clients_work(server, database, tmp_path, seed=clients, clients=clients, sources=sources, times=times)
    finally:
        server.close()
    assert outcome.violations == []
    assert sum(outcome.counts.values()) == times


def test_an_anchor_on_a_full_disk_gives_no_permit_or_is_kept(tmp_path: Path) -> None:
    """An anchor that exists is written in its place, and needs no room. A new one is refused, and nothing is served without it."""
    if not may_mount():
        pytest.skip("needs the right to mount a small disk")
    disk, cluster = SmallDisk(), Cluster()
    try:
        anchors = FileAnchors(disk.path / "anchors")
        database = cluster.new_database()
        first, second = (Place(cluster, database, anchors, name) for name in ("first", "second"))
        with first.create() as ledger:
            disk.fill(0)
            for number in range(3):
                assert isinstance(ledger.reserve(request(f"{number}")), Permit)
            with pytest.raises(LedgerError) as refusal:
                second.create()
            assert refusal.value.code == "anchor-unreachable"
            disk.free()
            for override in (False, True):
                with pytest.raises(LedgerError) as refusal:
                    second.open(override=override, reason="its anchor found no room")
                assert refusal.value.code == "anchor-missing"
            [name] = anchors.known("second")
            expected: tuple[tuple[str, int | None], ...] = ((APP_ROLE, 1), (SECOND_ROLE, None))
            for role, said in expected:
                owner = Connection(cluster.dsn(database, role=role), schema_version=SCHEMA_VERSION)
                assert report_lost(owner, "second", name, by=role, reason="never written") == said
                owner.close()
            with second.open(override=True, reason="its anchor found no room") as other:
                policy.admit(other, "ana")
                assert isinstance(other.reserve(request("one")), Permit)
            assert verify(ledger.connection, "first", anchors=anchors).problems == ()
    finally:
        cluster.close()
        disk.close()
