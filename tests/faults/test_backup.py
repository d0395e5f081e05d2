"""An older backup that is put back is always seen, and what was spent since is charged again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.permit import Permit
from tests.faults.backup import BackupKind, put_back, restore_older_backups, taken
from tests.ledger.cluster import Cluster
from tests.ledger.pg import new_place
from tests.ledger.support import pure_budget, request

FILES, BASE, DUMP = BackupKind


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    running = Cluster()
    yield running
    running.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "acts_between"),
    [((DUMP,), (20, 9, 5, 3, 2, 1, 7, 1, 1, 1)), ((FILES, BASE), (4, 1, 1, 12, 2, 1)), ((BASE, FILES), (1, 6, 30, 1))],
    ids=["dumps", "files", "base backups"],
)
def test_an_older_backup_is_always_seen(
    cluster: Cluster, tmp_path: Path, kinds: tuple[BackupKind, ...], acts_between: tuple[int, ...]
) -> None:
    """Ten, six and four: twenty, of ages from one entry on."""
    outcome, excess = restore_older_backups(cluster, tmp_path, seed=1, kinds=kinds, acts_between=acts_between)
    assert outcome.violations == []
    assert sum(count for name, count in outcome.counts.items() if name.startswith("backup restored")) == len(acts_between)
    assert outcome.counts["one entry ago"] == 1
    assert min(excess) >= 0 and excess[0] >= 2  # never too little; and not one unit too much where a milestone is at the backup


def test_a_backup_that_lacks_nothing_but_an_answer(cluster: Cluster, tmp_path: Path) -> None:
    """The end of a charge is anchored before its answer is sent: a database that denies the answer is not served, by anybody."""
    place = new_place(cluster, cluster.new_database(), tmp_path)
    with place.create(pure_budget(10)) as ledger:
        permit = ledger.reserve(request("one", loss=3))
        assert isinstance(permit, Permit)
        backup = taken(place, DUMP, tmp_path / "backup", spent=3, ledger=ledger)
        ledger.commit(permit, b"answer")
        put_back(place, backup)
        with pytest.raises(LedgerError) as rolled_back:
            ledger.reserve(request("two"))
        assert rolled_back.value.code == "ledger-rolled-back"
    with pytest.raises(LedgerError) as refused:
        place.open()
    assert refused.value.code == "ledger-rolled-back"
