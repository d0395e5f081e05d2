"""Files that are not what they should be: refused with a code, never served, never repaired in silence."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.amounts import AMOUNT_DIGITS, amount_text, amount_value, budget_text, budget_value
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.local.registry import REGISTRY_FILE
from lapwing.ledger.local.schema import LEDGER_FORMAT
from tests.ledger.support import SOURCE, approximate_budget, execute, ledger_path, new_ledger, open_ledger, pure_budget, request


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A directory with a ledger of 20 charges, 15 of 20 units spent twice over in payload and entries."""
    with new_ledger(tmp_path, budget=pure_budget(100)) as ledger:
        for number in range(20):
            permit = ledger.reserve(request(f"k{number}", loss=number + 1 if number < 10 else 1))
            assert isinstance(permit, Permit)
            if number % 4:
                ledger.commit(permit, bytes([number]) * 300)
            else:
                ledger.forfeit(permit, incident=False)
    return tmp_path


SPENT = Cost(loss=55 + 10, delta=0)


def refusal_of(directory: Path) -> str:
    with pytest.raises(LedgerError) as refused:
        open_ledger(directory)
    return refused.value.code


def test_files_are_for_their_owner_only(used: Path) -> None:
    for path in (ledger_path(used), used / "home" / REGISTRY_FILE):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((used / "home").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_a_file_that_others_may_use_is_refused(used: Path, mode: int) -> None:
    ledger_path(used).chmod(mode)
    assert refusal_of(used) == "ledger-permissions"
    ledger_path(used).chmod(0o600)
    (used / "home" / REGISTRY_FILE).chmod(mode)
    assert refusal_of(used) == "ledger-permissions"


def test_a_second_name_is_refused(used: Path) -> None:
    os.link(ledger_path(used), used / "second name")
    assert refusal_of(used) == "ledger-linked"


def test_a_missing_file_is_not_made(used: Path) -> None:
    ledger_path(used).unlink()
    assert refusal_of(used) == "ledger-missing"
    assert not ledger_path(used).exists()


def test_a_directory_is_refused(used: Path) -> None:
    ledger_path(used).unlink()
    ledger_path(used).mkdir()
    assert refusal_of(used) == "ledger-unreachable"


def test_another_source_is_refused_even_with_an_override(used: Path) -> None:
    for override in (False, True):
        with pytest.raises(LedgerError) as refused:
            LocalLedger.open(ledger_path(used), source_id="other", home=used / "home", override=override, reason="mine")
        assert refused.value.code == "ledger-source-mismatch"


@pytest.mark.parametrize(
    "statement",
    [
        f"PRAGMA user_version = {LEDGER_FORMAT.version + 1}",
        "PRAGMA user_version = 0",
        "PRAGMA application_id = 1",
    ],
    ids=["newer", "older", "not ours"],
)
def test_other_formats_are_refused(used: Path, statement: str) -> None:
    execute(ledger_path(used), statement)
    assert refusal_of(used) == "ledger-format"


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to be read as a header by someone" * 10])
def test_something_else_is_refused(used: Path, content: bytes) -> None:
    ledger_path(used).write_bytes(content)
    assert refusal_of(used) in {"ledger-format", "ledger-damaged"}


def test_every_truncation_is_refused(used: Path) -> None:
    path = ledger_path(used)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 4096), len(whole) - 1, 100, 1]:
        path.write_bytes(whole[:length])
        assert refusal_of(used) in {"ledger-damaged", "ledger-format"}, length
    path.write_bytes(whole)
    open_ledger(used).disconnect()


def test_flipped_bits_are_refused_or_harmless(used: Path) -> None:
    """Whatever one byte becomes: a refusal with a code, or exactly the same amount spent and only answers that were stored."""
    path, generator = ledger_path(used), random.Random(20261115)
    whole = path.read_bytes()
    registry = (used / "home" / REGISTRY_FILE).read_bytes()
    refused = 0
    for _ in range(400):
        position = generator.randrange(len(whole))
        changed = bytearray(whole)
        changed[position] ^= 1 << generator.randrange(8)
        path.write_bytes(changed)
        (used / "home" / REGISTRY_FILE).write_bytes(registry)
        try:
            with open_ledger(used) as ledger:
                assert ledger.balance().spent == SPENT
                for number in range(20):
                    try:
                        answer = ledger.find(f"plan of k{number}")
                    except LedgerError as error:
                        assert error.code == "ledger-damaged"
                    else:
                        assert answer is None if number % 4 == 0 else answer is not None and answer.payload == bytes([number]) * 300
        except LedgerError as error:
            assert error.code in {"ledger-damaged", "ledger-format", "ledger-unreachable"}, position
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE ledger SET loss_spent = printf('%040d', 0)"],
        ["UPDATE ledger SET loss_total = printf('%040d', 99), loss_ceiling = printf('%040d', 99)"],
        ["UPDATE ledger SET closed = 1"],
        ["UPDATE ledger SET budget = ceiling, ceiling = replace(ceiling, '\"100\"', '\"900\"')"],
        ["UPDATE entry SET loss = printf('%040d', 0) WHERE entry_id = 2"],
        ["UPDATE entry SET detail = 'rewritten' WHERE entry_id = 2"],
        ["UPDATE entry SET at = '2000-01-01' WHERE entry_id = 2"],
        ["DELETE FROM entry WHERE entry_id = (SELECT max(entry_id) FROM entry)"],
        ["UPDATE charge SET loss = printf('%040d', 0) WHERE charge_id = 1"],
        ["UPDATE charge SET request_id = 'k999' WHERE charge_id = 1"],
        ["UPDATE charge SET state = 'reserved' WHERE charge_id = 1"],
        ["UPDATE charge SET payload = x'00', payload_digest = '0' WHERE charge_id = 2"],
        ["DELETE FROM entry WHERE charge_id = 20", "DELETE FROM charge WHERE charge_id = 20"],
        ["UPDATE ledger SET budget = 'not json'"],
    ],
)
def test_edits_are_stopped_by_the_rules_and_seen_without_them(used: Path, statements: list[str]) -> None:
    """Every rule of the file stops the edit, or the next open sees it; with the rules taken away, the next open sees it all the same."""
    path = ledger_path(used)
    backup = used / "backup"
    shutil.copy(path, backup)
    try:
        execute(path, *statements)
    except sqlite3.IntegrityError:
        pass
    else:
        assert refusal_of(used) == "ledger-damaged"
    shutil.copy(backup, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    assert len(triggers) == 7
    execute(
        path,
        "PRAGMA ignore_check_constraints = ON",
        *(f"DROP TRIGGER {name}" for name, _ in triggers),
        *statements,
        *(sql for _, sql in triggers),
    )
    assert refusal_of(used) == "ledger-damaged"


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER entry_kept",
        "CREATE TRIGGER mine AFTER INSERT ON charge BEGIN SELECT 1; END",
        "CREATE VIEW mine AS SELECT 1",
        "DROP INDEX charge_open",
    ],
)
def test_a_changed_schema_is_refused(used: Path, statement: str) -> None:
    execute(ledger_path(used), statement)
    assert refusal_of(used) == "ledger-damaged"


def test_a_damaged_registry_refuses_everything(used: Path) -> None:
    registry = used / "home" / REGISTRY_FILE
    execute(registry, "UPDATE source SET state = '{}'")
    assert refusal_of(used) == "ledger-damaged"
    registry.write_bytes(registry.read_bytes()[:5000])
    assert refusal_of(used) == "ledger-damaged"


def test_a_file_left_in_wal_mode_is_brought_back(used: Path) -> None:
    execute(ledger_path(used), "PRAGMA journal_mode = WAL")
    with open_ledger(used) as ledger:
        assert ledger.balance().spent == SPENT
    with closing(sqlite3.connect(ledger_path(used))) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_no_error_text_shows_what_is_in_the_ledger(used: Path) -> None:
    secret = "k19"
    execute(
        ledger_path(used),
        "DROP TRIGGER charge_kept",
        "DROP TRIGGER entry_kept",
        f"DELETE FROM charge WHERE request_id = '{secret}'",
    )
    with pytest.raises(LapwingError) as refused:
        open_ledger(used)
    error: BaseException | None = refused.value
    while error is not None:
        assert secret not in str(error) and SOURCE not in str(error)
        error = error.__cause__


def test_amounts_are_texts_that_sort_as_numbers() -> None:
    amounts = [0, 1, 9, 10, 2**63, 10**24, 10**30, 10**AMOUNT_DIGITS - 1]
    texts = [amount_text(amount) for amount in amounts]
    assert texts == sorted(texts) and [amount_value(text) for text in texts] == amounts
    for bad in (-1, 10**AMOUNT_DIGITS):
        with pytest.raises(LedgerError) as refused:
            amount_text(bad)
        assert refused.value.code == "amount-invalid"
    for damaged in ("", "1", "x" * AMOUNT_DIGITS, "-" + "0" * (AMOUNT_DIGITS - 1), "٠" * AMOUNT_DIGITS):
        with pytest.raises(LedgerError) as refused:
            amount_value(damaged)
        assert refused.value.code == "ledger-damaged"


def test_budgets_are_stored_exactly() -> None:
    for budget in (pure_budget(7), approximate_budget()):
        assert budget_value(budget_text(budget)) == budget
    for damaged in ("", "{}", "[]", "1", budget_text(pure_budget(7)).replace("pure", "free"), budget_text(pure_budget(7)) + " "):
        with pytest.raises(LedgerError) as refused:
            budget_value(damaged)
        assert refused.value.code == "ledger-damaged"


def test_an_old_sqlite_is_not_trusted_with_a_ledger(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    assert refusal_of(used) == "sqlite-too-old"
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 0))
    open_ledger(used).disconnect()
