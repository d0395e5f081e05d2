"""The memory outside the ledger: it moves forward only along one history, survives a cut write, and bounds what a restore lost."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.ledger.anchors import AnchorPoint, FileAnchors, SeveralAnchors
from tests.ledger.support import pure_budget

BUDGET = pure_budget(10**6)


def point(entries: int, way: str = "a", ledger: str = "one") -> AnchorPoint:
    """The state after so many entries of one unit each, on one of several ways a history may have gone."""
    spent = Cost(loss=entries, delta=0)
    return AnchorPoint("clinic", ledger, entries, f"{way}{entries}", BUDGET, BUDGET, spent, False)


def test_it_moves_forward_and_stays_when_another_was_further(tmp_path: Path) -> None:
    anchors = FileAnchors(tmp_path / "not yet there")
    assert anchors.newest("clinic") is None
    for entries, kept in ((3, 3), (5, 5), (4, 5), (9, 9)):
        assert anchors.advance(point(entries), holds=lambda asked: True) == point(kept)
        assert anchors.newest("clinic") == point(kept)
    assert anchors.newest("another source") is None


@pytest.mark.parametrize(("asked", "lacks"), [(point(9, "b"), "a5"), (point(4, "b"), "b4"), (point(4, "b"), "a5")])
def test_a_history_that_lacks_what_is_kept_is_refused(tmp_path: Path, asked: AnchorPoint, lacks: str) -> None:
    anchors = FileAnchors(tmp_path)
    anchors.advance(point(5), holds=lambda one: True)
    with pytest.raises(LedgerError) as refusal:
        anchors.advance(asked, holds=lambda one: one.head != lacks)
    assert refusal.value.code == "ledger-rolled-back"
    assert anchors.newest("clinic") == point(5)
    with pytest.raises(LedgerError) as refusal:
        anchors.advance(point(9, ledger="two"), holds=lambda one: True)
    assert refusal.value.code == "ledger-superseded"
    assert anchors.advance(asked, holds=lambda one: False, override=True) == asked == anchors.newest("clinic")


def test_a_write_that_is_cut_short_leaves_the_point_before(tmp_path: Path) -> None:
    anchors = FileAnchors(tmp_path)
    for entries in (1, 2, 3):
        anchors.advance(point(entries), holds=lambda one: True)
    (file,) = tmp_path.glob("*.anchor")
    content = file.read_bytes()
    newest = 0 if b'"head":"a3"' in content[: len(content) // 2] else 1
    half = len(content) // 2
    torn = bytearray(content)
    torn[newest * half + 40 : newest * half + 60] = b"?" * 20
    file.write_bytes(torn)
    assert anchors.newest("clinic") == point(2)
    file.write_bytes(b"?" * len(content))
    with pytest.raises(LedgerError) as refusal:
        anchors.newest("clinic")
    assert refusal.value.code == "anchor-invalid"


def test_a_write_that_the_system_cuts_short_is_not_taken_for_a_success(tmp_path: Path) -> None:
    """The kernel lets a file grow up to a limit: the write that crosses it writes a part, and is no error by itself."""
    anchors = FileAnchors(tmp_path)
    anchors.advance(point(1), holds=lambda one: True)
    (file,) = tmp_path.glob("*.anchor")
    slot_bytes = file.stat().st_size // 2
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (slot_bytes + 100, limits[1]))
    try:
        with pytest.raises(LedgerError) as refusal:
            anchors.advance(point(2), holds=lambda one: True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refusal.value.code == "anchor-unreachable"
    assert anchors.newest("clinic") == point(1)
    assert anchors.advance(point(2), holds=lambda one: True) == point(2) == anchors.newest("clinic")


def test_few_milestones_bound_what_was_lost_up_to_a_factor(tmp_path: Path) -> None:
    anchors = FileAnchors(tmp_path)
    for entries in range(1, 301):
        anchors.advance(point(entries), holds=lambda one: True)
    milestones = anchors.milestones("clinic")
    assert len(milestones) <= 30
    assert [one.entries for one in milestones] == sorted({one.entries for one in milestones}, reverse=True)
    assert all(one.head == f"a{one.entries}" and one.spent.loss == one.entries for one in milestones)
    for common in range(1, 300):
        lost = 300 - common
        counted = 300 - max((one.entries for one in milestones if one.entries <= common), default=0)
        assert lost <= counted <= 3 * lost + 1, common


def test_several_sinks_keep_all_and_the_furthest_counts(tmp_path: Path) -> None:
    first, second = FileAnchors(tmp_path / "1"), FileAnchors(tmp_path / "2")
    both = SeveralAnchors([first, second])
    both.advance(point(2), holds=lambda one: True)
    second.advance(point(4), holds=lambda one: True)
    assert both.newest("clinic") == point(4)
    assert both.milestones("clinic") == second.milestones("clinic")
    both.advance(point(6), holds=lambda one: True)
    assert first.newest("clinic") == second.newest("clinic") == point(6)
