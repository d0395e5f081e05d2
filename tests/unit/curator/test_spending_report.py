"""A report of what was spent is read while nothing is written, or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.curator.curator import Curator, EntryKind
from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.block_balances import BlockTerms
from lapwing.ledger.protocol import Entry
from lapwing.owner.ledger_entries import entry_fields, entry_value
from lapwing.owner.spending_report import READINGS_MAX, spending_report
from tests.ledger.support import request
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


def test_the_report_adds_up_what_blocks_of_time_have_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rich_clinic(tmp_path / "clinic", patients=50, epsilon=10)
    with lw.open(tmp_path / "clinic", home=tmp_path / "home") as data:
        data.prepare(accept_losses=True)
        ledger = data.curator.ledger
        ledger.declare_blocks(BlockTerms("day", None), read=(1, 9), units=1, reason="data grows")
        for key, last in (("a", 5), ("b", 20)):
            ranges = (BlockCost(3, last, Cost(2, 0)), BlockCost(None, None, Cost(1, 0)))
            ledger.reserve(replace(request(key, loss=3), ranges=ranges, person=Cost(3, 0)))
        report = spending_report(data.curator)
        assert report["adds_up"] and report["complete"]
        unit, history = report["loss_unit"], data.curator.history()
        assert [entry_value(entry_fields(entry, unit), unit) for entry in history[:2]] == list(history[:2])
        shorter = replace(history[0], ranges=(BlockCost(3, 19, Cost(2, 0)), *history[0].ranges[1:]))
        monkeypatch.setattr(Curator, "history", lambda curator, limit=100: (shorter, *ledger.history(limit=limit)[1:]))
        assert not spending_report(data.curator)["adds_up"]
