"""A report of what was spent is read while nothing is written, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import lapwing as lw
from lapwing.curator.curator import Curator, EntryKind
from lapwing.errors import LedgerError
from lapwing.ledger.protocol import Entry
from lapwing.owner.spending_report import READINGS_MAX, spending_report
from tests.support.rich_clinic import write_rich_clinic


@pytest.mark.parametrize("writes", [0, 3, 10 * READINGS_MAX])
def test_what_is_written_between_two_readings_makes_it_read_again_and_in_the_end_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    write_rich_clinic(tmp_path / "clinic", patients=50, epsilon=10)
    left, read = [writes], Curator.history

    def read_beside_others(curator: Curator, *, limit: int = 100) -> tuple[Entry, ...]:
        if left[0]:
            left[0] -= 1
            curator.ledger.record(EntryKind.OVERRIDE, "written by another process between two readings")
        return read(curator, limit=limit)

    with lw.open(tmp_path / "clinic", home=tmp_path / "home") as data:
        data.prepare(accept_losses=True)
        monkeypatch.setattr(Curator, "history", read_beside_others)
        if writes < READINGS_MAX:
            report = spending_report(data.curator)
            assert report["adds_up"] and report["newest_entry"] == read(data.curator, limit=1)[0].entry_id
        else:
            with pytest.raises(LedgerError, match="ledger-busy"):
                spending_report(data.curator)
