"""One source, one ledger, in its newest state: what the registry refuses, and what the owner may override."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lapwing.errors import BudgetRefused, CatalogueError, LapwingError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.local.registry import HOME_VARIABLE, REGISTRY_FILE, registry_home
from lapwing.ledger.protocol import EntryKind
from tests.ledger.support import FINGERPRINT, SOURCE, ledger_path, new_ledger, open_ledger, pure_budget, request


def acts(directory: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(directory / "home" / REGISTRY_FILE)) as connection:
        return connection.execute("SELECT kind, source_id, detail FROM act ORDER BY act_id").fetchall()


def spend(ledger: LocalLedger, key: str, *, loss: int) -> None:
    permit = ledger.reserve(request(key, loss=loss))
    assert isinstance(permit, Permit)
    ledger.commit(permit, key.encode())


def code_of(refused: pytest.ExceptionInfo[LapwingError]) -> str:
    return refused.value.code


@pytest.mark.parametrize(
    ("source_id", "fingerprint"),
    [(SOURCE, FINGERPRINT), (SOURCE, "other files"), ("another name", FINGERPRINT)],
    ids=["same source", "same id", "same data under a new id"],
)
def test_a_registered_source_gets_no_second_ledger(tmp_path: Path, source_id: str, fingerprint: str) -> None:
    new_ledger(tmp_path).disconnect()
    second = tmp_path / "second.sqlite"

    def create(*, override: bool = False, reason: str = "") -> LocalLedger:
        return LocalLedger.create(
            second,
            source_id=source_id,
            source_fingerprint=fingerprint,
            budget=pure_budget(10),
            ceiling=pure_budget(10),
            home=tmp_path / "home",
            override=override,
            reason=reason,
        )

    with pytest.raises(CatalogueError) as refused:
        create()
    assert code_of(refused) == "source-registered" and SOURCE in refused.value.message
    assert not second.exists()
    with pytest.raises(LedgerError) as refused_reason:
        create(override=True, reason="  ")
    assert code_of(refused_reason) == "override-reason"
    with create(override=True, reason="the first study is over") as ledger:
        assert (ledger.history()[0].kind, ledger.history()[0].detail) == (EntryKind.OVERRIDE, "source-registered: the first study is over")
    assert acts(tmp_path)[-1] == ("override", source_id, "source-registered: the first study is over")
    LocalLedger.open(second, source_id=source_id, source_fingerprint=fingerprint, home=tmp_path / "home").disconnect()


def test_a_ledger_that_was_superseded_serves_nothing_more(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as old:
        LocalLedger.create(
            tmp_path / "new.sqlite",
            source_id=SOURCE,
            source_fingerprint=FINGERPRINT,
            budget=pure_budget(10),
            ceiling=pure_budget(10),
            home=tmp_path / "home",
            override=True,
            reason="a new study",
        ).disconnect()
        with pytest.raises(LedgerError) as refused:
            old.reserve(request("one"))
        assert code_of(refused) == "ledger-superseded"
    with pytest.raises(LedgerError) as refused:
        open_ledger(tmp_path)
    assert code_of(refused) == "ledger-superseded"


def test_a_copy_is_not_a_second_budget(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        spend(ledger, "one", loss=4)
        copy = tmp_path / "copy.sqlite"
        shutil.copy(ledger_path(tmp_path), copy)
        with pytest.raises(LedgerError) as refused:
            LocalLedger.open(copy, source_id=SOURCE, home=tmp_path / "home")
        assert code_of(refused) == "ledger-moved" and str(ledger_path(tmp_path)) in refused.value.message
        with LocalLedger.open(copy, source_id=SOURCE, home=tmp_path / "home", override=True, reason="moved to another disk") as moved:
            assert moved.balance().spent == Cost(loss=4, delta=0)
            spend(moved, "two", loss=1)
        with pytest.raises(LedgerError) as refused:
            ledger.reserve(request("three"))
        assert code_of(refused) == "ledger-superseded"
    with pytest.raises(LedgerError) as refused:
        open_ledger(tmp_path)
    assert code_of(refused) == "ledger-moved"


def test_the_path_may_be_written_in_any_way(tmp_path: Path) -> None:
    new_ledger(tmp_path).disconnect()
    (tmp_path / "link").symlink_to(tmp_path)
    LocalLedger.open(tmp_path / "link" / ".." / tmp_path.name / "ledger.sqlite", source_id=SOURCE, home=tmp_path / "home").disconnect()
    LocalLedger.open(tmp_path / "link" / "ledger.sqlite", source_id=SOURCE, home=tmp_path / "home").disconnect()


def test_an_older_state_is_refused_and_its_lost_charges_are_charged_again(tmp_path: Path) -> None:
    path = ledger_path(tmp_path)
    with new_ledger(tmp_path, budget=pure_budget(10), ceiling=pure_budget(20)) as ledger:
        spend(ledger, "kept", loss=2)
        backup = tmp_path / "backup"
        shutil.copy(path, backup)
        spend(ledger, "lost", loss=3)
        ledger.set_budget(pure_budget(12), reason="more")
        ledger.close("an incident")
    shutil.copy(backup, path)
    with pytest.raises(LedgerError) as refused:
        open_ledger(tmp_path)
    assert code_of(refused) == "ledger-rolled-back"
    with open_ledger(tmp_path, override=True, reason="the disk died") as restored:
        balance = restored.balance()
        assert (balance.spent, balance.budget, balance.closed) == (Cost(loss=5, delta=0), pure_budget(12), True)
        assert [entry.kind for entry in restored.history(limit=3)] == [EntryKind.CLOSE, EntryKind.RESTORE, EntryKind.OVERRIDE]
        restored.reopen("checked")
        assert restored.reserve(request("kept", loss=2)) == restored.find("plan of kept")
        with pytest.raises(BudgetRefused):
            restored.reserve(request("too much", loss=8))
        spend(restored, "new", loss=7)
    assert acts(tmp_path)[-1] == ("override", SOURCE, "ledger-rolled-back: the disk died")
    open_ledger(tmp_path).disconnect()


@pytest.mark.parametrize("charges_after_backup", range(1, 6))
def test_every_older_backup_is_detected(tmp_path: Path, charges_after_backup: int) -> None:
    path = ledger_path(tmp_path)
    with new_ledger(tmp_path) as ledger:
        backup = tmp_path / "backup"
        shutil.copy(path, backup)
        for number in range(charges_after_backup):
            spend(ledger, f"k{number}", loss=1)
    shutil.copy(backup, path)
    with pytest.raises(LedgerError) as refused:
        open_ledger(tmp_path)
    assert code_of(refused) == "ledger-rolled-back"


def test_a_file_swapped_under_a_running_process_is_noticed_before_the_next_charge(tmp_path: Path) -> None:
    path = ledger_path(tmp_path)
    with new_ledger(tmp_path) as ledger:
        spend(ledger, "one", loss=1)
        shutil.copy(path, tmp_path / "copy")
        os.replace(tmp_path / "copy", path)
        for act in (lambda: ledger.reserve(request("two")), ledger.balance):
            with pytest.raises(LedgerError) as refused:
                act()
            assert code_of(refused) == "ledger-replaced"
        ledger_gone = ledger
        os.replace(path, tmp_path / "elsewhere")
        with pytest.raises(LedgerError) as refused:
            ledger_gone.reserve(request("three"))
        assert code_of(refused) == "ledger-replaced"
        os.replace(tmp_path / "elsewhere", path)
        with open_ledger(tmp_path) as again:
            assert again.balance().spent == Cost(loss=1, delta=0)
        with pytest.raises(LedgerError):
            ledger.disconnect()


def test_two_branches_of_one_ledger_cannot_both_be_served(tmp_path: Path) -> None:
    """The contents change under an open process while the file stays the same: only the chain can tell."""
    path = ledger_path(tmp_path)
    with new_ledger(tmp_path) as ledger:
        spend(ledger, "common", loss=1)
        common = path.read_bytes()
    with open_ledger(tmp_path) as ledger:
        spend(ledger, "branch one", loss=1)
    with open(path, "r+b") as file:  # no process has it open here, so no lock is lost
        file.write(common)
        file.truncate(len(common))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with LocalLedger.open(path, source_id=SOURCE, home=elsewhere, override=True, reason="another registry") as ledger:
        spend(ledger, "branch two", loss=1)
        spend(ledger, "branch two again", loss=1)
    with pytest.raises(LedgerError) as refused:
        open_ledger(tmp_path)
    assert code_of(refused) == "ledger-rolled-back"


def test_what_was_spent_under_another_registry_comes_on_top(tmp_path: Path) -> None:
    """Put back elsewhere, asked there, and brought home: what the two spent since the backup is charged, not the larger of the two."""
    path, backup, elsewhere = ledger_path(tmp_path), tmp_path / "backup", tmp_path / "elsewhere"
    with new_ledger(tmp_path, budget=pure_budget(10), ceiling=pure_budget(10)) as ledger:
        spend(ledger, "common", loss=2)
        shutil.copy(path, backup)
        spend(ledger, "at home", loss=3)
    os.replace(backup, path)
    with LocalLedger.open(path, source_id=SOURCE, home=elsewhere, override=True, reason="the machine failed") as ledger:
        spend(ledger, "elsewhere", loss=4)
    shutil.copy(path, backup)
    with open_ledger(tmp_path, override=True, reason="the machine is mended") as ledger:
        assert ledger.balance().spent == Cost(loss=2 + 3 + 4, delta=0)
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("too much", loss=2))
        shutil.copy(path, backup)
        spend(ledger, "at home again", loss=1)
    # From here on there is one history again: an older state of it lacks what came after, and no more.
    os.replace(backup, path)
    with open_ledger(tmp_path, override=True, reason="the disk failed") as ledger:
        assert ledger.balance().spent == Cost(loss=2 + 3 + 4 + 1, delta=0)


def test_a_ledger_that_comes_back_has_what_its_successor_spent(tmp_path: Path) -> None:
    with new_ledger(tmp_path, budget=pure_budget(10), ceiling=pure_budget(10)) as ledger:
        spend(ledger, "one", loss=4)
    new = tmp_path / "new.sqlite"
    budget = pure_budget(10)
    home = tmp_path / "home"
    with LocalLedger.create(
        new, source_id=SOURCE, source_fingerprint=FINGERPRINT, budget=budget, ceiling=budget, home=home, override=True, reason="lost"
    ) as successor:
        spend(successor, "two", loss=5)
        successor.close("found the old one")
    with open_ledger(tmp_path, override=True, reason="found") as ledger:
        assert (ledger.balance().spent, ledger.balance().closed) == (Cost(loss=9, delta=0), True)
        assert ledger.history(limit=3)[1].detail == "charges made in another ledger"
    with pytest.raises(LedgerError, match="more than the budget"):
        LocalLedger.open(new, source_id=SOURCE, home=home, override=True, reason="and back")
    open_ledger(tmp_path).disconnect()


def test_an_unknown_ledger_is_adopted_only_by_the_owners_act(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        spend(ledger, "one", loss=6)
    shutil.rmtree(tmp_path / "home")
    with pytest.raises(LedgerError) as refused:
        open_ledger(tmp_path)
    assert code_of(refused) == "ledger-unregistered"
    with open_ledger(tmp_path, override=True, reason="a new machine") as ledger:
        assert ledger.balance().spent == Cost(loss=6, delta=0)
        assert ledger.history()[0].detail == "ledger-unregistered: a new machine"
    open_ledger(tmp_path).disconnect()
    assert acts(tmp_path) == [("override", SOURCE, "ledger-unregistered: a new machine")]


def test_other_data_under_the_same_id_needs_the_owner_and_keeps_the_ledger(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        spend(ledger, "one", loss=6)
    path, home = ledger_path(tmp_path), tmp_path / "home"
    with pytest.raises(CatalogueError) as refused:
        LocalLedger.open(path, source_id=SOURCE, source_fingerprint="more files", home=home)
    assert code_of(refused) == "source-changed"
    with LocalLedger.open(
        path, source_id=SOURCE, source_fingerprint="more files", home=home, override=True, reason="a table added"
    ) as ledger:
        assert ledger.balance().spent == Cost(loss=6, delta=0)
    for fingerprint in ("more files", FINGERPRINT):
        LocalLedger.open(path, source_id=SOURCE, source_fingerprint=fingerprint, home=home).disconnect()
        with pytest.raises(CatalogueError) as refused:
            LocalLedger.create(
                tmp_path / "second.sqlite",
                source_id="another name",
                source_fingerprint=fingerprint,
                budget=pure_budget(1),
                ceiling=pure_budget(1),
                home=home,
            )
        assert code_of(refused) == "source-registered"


def test_data_of_another_source_is_not_taken_over(tmp_path: Path) -> None:
    new_ledger(tmp_path).disconnect()
    home = tmp_path / "home"
    other = tmp_path / "other.sqlite"
    LocalLedger.create(
        other, source_id="other", source_fingerprint="its files", budget=pure_budget(1), ceiling=pure_budget(1), home=home
    ).disconnect()
    with LocalLedger.open(
        other, source_id="other", source_fingerprint=FINGERPRINT, home=home, override=True, reason="they merged"
    ) as ledger:
        assert ledger.history()[0].detail == "source-changed, source-registered: they merged"


def test_an_unregistered_leftover_of_a_crash_is_not_overwritten(tmp_path: Path) -> None:
    ledger_path(tmp_path).write_bytes(b"")
    with pytest.raises(LedgerError) as refused:
        new_ledger(tmp_path)
    assert code_of(refused) == "ledger-exists"
    assert ledger_path(tmp_path).read_bytes() == b""


def test_the_home_is_found_as_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    assert registry_home() == tmp_path / "user" / ".local" / "state" / "lapwing"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert registry_home() == tmp_path / "state" / "lapwing"
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "chosen"))
    assert registry_home() == tmp_path / "chosen"
    assert registry_home(tmp_path / "given") == tmp_path / "given"


def test_a_home_that_cannot_be_used_refuses_everything(tmp_path: Path) -> None:
    new_ledger(tmp_path).disconnect()
    (tmp_path / "not a directory").write_text("")
    with pytest.raises(LedgerError) as refused:
        LocalLedger.open(ledger_path(tmp_path), source_id=SOURCE, home=tmp_path / "not a directory")
    assert code_of(refused) == "registry-unreachable"


def test_what_cannot_be_anchored_is_not_charged(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        os.replace(tmp_path / "home" / REGISTRY_FILE, tmp_path / "gone")
        with pytest.raises(LedgerError) as refused:
            ledger.reserve(request("one", loss=3))
        assert code_of(refused) == "ledger-replaced"
        assert ledger.balance().spent == Cost.zero()
        os.replace(tmp_path / "gone", tmp_path / "home" / REGISTRY_FILE)
        assert isinstance(ledger.reserve(request("one", loss=3)), Permit)
