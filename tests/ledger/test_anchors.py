"""The memory outside the ledger: it moves forward only along one history, survives a cut write, and bounds what a restore lost."""

from __future__ import annotations

import random
import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.ledger.postgres.anchors import AnchorPoint, FileAnchors, SeveralAnchors
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


def spending(losses: list[int], way: str = "a", before: AnchorPoint | None = None) -> Iterator[AnchorPoint]:
    """The states after each of these charges."""
    entries, spent = (0, 0) if before is None else (before.entries, before.spent.loss)
    for number, loss in enumerate(losses, 1):
        spent += loss
        made = point(entries + number, way)
        yield replace(made, spent=Cost(loss=spent, delta=0))


def bounded(anchors: FileAnchors, passed: list[AnchorPoint]) -> None:
    """Whichever state is put back, what is charged again is at least what was lost, and at most twice that."""
    newest, milestones = passed[-1], anchors.milestones("clinic")
    assert len(milestones) <= 80
    assert [one.entries for one in milestones] == sorted({one.entries for one in milestones}, reverse=True)
    for restored in passed[:-1]:
        lost = newest.spent.loss - restored.spent.loss
        common = next((one.spent.loss for one in milestones if one.entries <= restored.entries), 0)
        assert lost <= newest.spent.loss - common <= 2 * lost, restored.entries


@pytest.mark.parametrize("kind", ["equal", "one huge", "wild", "growing"])
def test_few_milestones_bound_what_is_charged_again(tmp_path: Path, kind: str) -> None:
    """In what was spent, not in entries: one dear statement among many cheap ones makes no difference."""
    chance = random.Random(kind)
    losses = {
        "equal": [1] * 300,
        "one huge": [1] * 150 + [10**9] + [1] * 149,
        "wild": [chance.choice([0, 0, 1, 7, 10**3, 10**6, 10**12]) for _ in range(300)],
        "growing": [2 ** (number // 8) for number in range(300)],
    }[kind]
    anchors = FileAnchors(tmp_path)
    passed = list(spending(losses))
    for one in passed:
        anchors.advance(one, holds=lambda asked: True)
    bounded(anchors, passed)


def test_the_bound_holds_after_two_restores(tmp_path: Path) -> None:
    """The owner's acceptance keeps the milestones of what both ways share: a second restore does not charge everything again."""
    anchors = FileAnchors(tmp_path)
    first = list(spending([3] * 200))
    for one in first:
        anchors.advance(one, holds=lambda asked: True)
    # Put back to entry 150, accepted with what was lost charged again, and used for a while.
    shared = first[:150]
    known = {one.head for one in shared}
    accepted = replace(point(151, "b"), spent=first[-1].spent)
    anchors.advance(accepted, holds=lambda asked: asked.head in known, override=True)
    second = [accepted, *spending([3] * 40, "b", accepted)]
    for one in second[1:]:
        anchors.advance(one, holds=lambda asked: True)
    bounded(anchors, [*shared, *second])
    assert all(one.head in known or one.head.startswith("b") for one in anchors.milestones("clinic"))


def test_anchors_have_names_that_move_with_them(tmp_path: Path) -> None:
    first, second = FileAnchors(tmp_path / "1"), FileAnchors(tmp_path / "2")
    [name] = first.known("clinic")
    assert first.known("clinic") == {name: None} and first.known("clinic").keys() != second.known("clinic").keys()
    first.advance(point(1), holds=lambda asked: True)
    (tmp_path / "1").rename(tmp_path / "moved")
    assert FileAnchors(tmp_path / "moved").known("clinic") == {name: point(1)}
    assert SeveralAnchors([FileAnchors(tmp_path / "moved"), second]).known("clinic").keys() == {name, *second.known("clinic")}
    (tmp_path / "moved" / "name").write_text("")
    with pytest.raises(LedgerError) as refusal:
        FileAnchors(tmp_path / "moved").known("clinic")
    assert refusal.value.code == "anchor-invalid"
    assert [path.name for path in (tmp_path / "2").iterdir()] == ["name"], "nothing half written is left"


def test_several_sinks_keep_all_and_the_furthest_counts(tmp_path: Path) -> None:
    first, second = FileAnchors(tmp_path / "1"), FileAnchors(tmp_path / "2")
    both = SeveralAnchors([first, second])
    both.advance(point(2), holds=lambda one: True)
    second.advance(point(4), holds=lambda one: True)
    assert both.newest("clinic") == point(4)
    assert both.milestones("clinic") == second.milestones("clinic")
    both.advance(point(6), holds=lambda one: True)
    assert first.newest("clinic") == second.newest("clinic") == point(6)


def test_anchors_are_for_their_owner_alone_or_for_the_group_of_their_directory(tmp_path: Path) -> None:
    for mode, expected in ((0o700, 0o600), (0o2770, 0o660)):
        directory = tmp_path / oct(mode)
        directory.mkdir()
        directory.chmod(mode)
        FileAnchors(directory).advance(point(1), holds=lambda one: True)
        (file,) = directory.glob("*.anchor")
        assert file.stat().st_mode & 0o777 == expected
        FileAnchors(directory).known("clinic")
        assert (directory / "name").stat().st_mode & 0o777 == expected
