"""Several machines: some of them made from one image, some with a copy of the anchors."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger import workers
from lapwing.ledger.postgres.anchors import FileAnchors
from tests.ledger.pg import Place
from tests.ledger.support import pure_budget, request


def test_a_machine_from_the_same_image_takes_nobody_for_dead(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same machine id and host name, another run of another kernel: it may be the same machine later, or another one now."""
    boot = workers._boot()
    with place.create(pure_budget(100)) as ledger:
        for number in range(3):
            permit = ledger.reserve(request(f"{number}"))
            assert isinstance(permit, Permit)
            monkeypatch.setattr(workers, "_boot", lambda number=number: f"another kernel {number}")
            place.open().disconnect()
            monkeypatch.setattr(workers, "_boot", lambda: boot)
            ledger.commit(permit, b"answer")
        assert not ledger.balance().closed


def test_a_machine_that_was_started_again_ends_with_its_lease(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.create(pure_budget(100)) as ledger:
        permit = ledger.reserve(request("one"))
        assert isinstance(permit, Permit)
        monkeypatch.setattr(workers, "_boot", lambda: "after the power cut")
        with place.open() as later:
            with pytest.raises(Exception, match="request-in-progress"):
                later.reserve(request("one"))
            assert place.declare_dead(permit.charge_id)
            with pytest.raises(Exception, match="request-forfeited"):
                later.reserve(request("one"))
        monkeypatch.undo()


def test_a_copy_of_the_anchors_is_not_the_anchors(place: Place, tmp_path: Path) -> None:
    """As when a machine is cloned with its anchors: the copy stays behind what the database knows to be anchored."""
    assert isinstance(place.anchors, FileAnchors)
    with place.create(pure_budget(100)) as ledger:
        assert isinstance(ledger.reserve(request("one")), Permit)
        shutil.copytree(place.anchors.directory, tmp_path / "copy")
        copied = replace(place, anchors=FileAnchors(tmp_path / "copy"))
        assert copied.anchors.known(place.source_id) == place.anchors.known(place.source_id)
        for number in range(2):
            assert isinstance(ledger.reserve(request(f"more {number}")), Permit)
        for override in (False, True):
            with pytest.raises(LedgerError) as refusal:
                copied.open(override=override, reason="it looks right")
            assert refusal.value.code == "anchor-behind"
        with place.open() as again:
            assert again.balance().spent.loss == 3
