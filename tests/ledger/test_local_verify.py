"""``lapwing -C DIR ledger verify`` on a local ledger: every change of the file behind its back is found, an older copy included."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.cli.support import Ran, run

FIRST, SECOND = "SELECT COUNT(*) AS n FROM patients", "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set with an older copy of its ledger, from before the second question."""
    base = tmp_path_factory.mktemp("local")
    assert run("demo", base / "clinic", "--patients", "50", home=base / "home").status == 0
    for arguments in (("prepare",), ("ask", FIRST)):
        ran = run("-C", base / "clinic", *arguments, home=base / "home")
        assert ran.status == 0, ran.err
    shutil.copy(ledger_of(base), base / "older.sqlite")
    assert run("-C", base / "clinic", "ask", SECOND, home=base / "home").status == 0
    shutil.copy(ledger_of(base), base / "newest.sqlite")
    return base


@pytest.fixture
def sound(used: Path) -> Path:
    shutil.copy(used / "newest.sqlite", ledger_of(used))
    return used


def ledger_of(base: Path) -> Path:
    return base / "clinic" / ".lapwing" / "ledger.sqlite"


def verified(base: Path) -> Ran:
    return run("-C", base / "clinic", "ledger", "verify", home=base / "home")


def change(path: Path, *statements: str) -> None:
    """Change the file as somebody would who knows its rules: they are taken away, and put back as they were."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for statement in (*(f"DROP TRIGGER {name}" for name, _ in triggers), *statements, *(sql for _, sql in triggers)):
            connection.execute(statement)


def test_a_sound_ledger_is_compared_with_the_registry(sound: Path) -> None:
    before = ledger_of(sound).read_bytes()
    ran = verified(sound)
    assert ran.status == 0, (ran.out, ran.err)
    assert re.search(r"compared with anchor the registry .*registry\.sqlite: entry \d+, made \d{4}-\d\d-\d\dT", ran.out), ran.out
    assert "chain, sums, charges, answers and anchor agree" in ran.out
    assert re.search(r": \d+ entries, \d+ charges, [1-9]\d* answers", ran.out)
    assert ledger_of(sound).read_bytes() == before


NEWEST, NEWEST_CHARGE = "(SELECT max(entry_id) FROM entry)", "(SELECT max(charge_id) FROM charge)"
CHANGES = {
    "a changed amount": (["UPDATE charge SET loss = replace(loss, '0', '1') WHERE charge_id = 1"], "ledger-damaged"),
    "a changed amount of an entry": (["UPDATE entry SET loss = replace(loss, '1', '0') WHERE kind = 'reserve'"], "ledger-damaged"),
    "another confidence in a record": (
        ['UPDATE charge SET purchase = replace(purchase, \'"confidence":"0.95"\', \'"confidence":"0.9"\')'],
        "ledger-damaged",
    ),
    "a changed sum": ([f"UPDATE ledger SET loss_spent = '{'0' * 40}'"], "ledger-damaged"),
    "a deleted last entry": ([f"DELETE FROM entry WHERE entry_id = {NEWEST}"], "ledger-damaged"),
    "a deleted last charge, with a head that fits": (
        [
            f"DELETE FROM entry WHERE charge_id = {NEWEST_CHARGE}",
            f"DELETE FROM charge WHERE charge_id = {NEWEST_CHARGE}",
            f"UPDATE ledger SET entries = {NEWEST}, head = (SELECT chained FROM entry WHERE entry_id = {NEWEST})",
        ],
        "ledger-rolled-back",
    ),
    "a changed answer": (["UPDATE charge SET payload = CAST(x'00' || payload AS BLOB) WHERE charge_id = 1"], "an answer is not the one"),
    "a changed answer with its digest": (
        ["UPDATE charge SET payload = x'00', payload_digest = '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d'"],
        "ledger-damaged",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_behind_its_back_is_found(sound: Path, what: str) -> None:
    statements, code = CHANGES[what]
    change(ledger_of(sound), *statements)
    ran = verified(sound)
    assert ran.status == 1 and "WRONG: " in ran.out and code in ran.out, (ran.out, ran.err)
    assert "agree" not in ran.out.replace("disagree", "")


def test_an_older_copy_is_found(sound: Path) -> None:
    shutil.copy(sound / "older.sqlite", ledger_of(sound))
    ran = verified(sound)
    assert ran.status == 1 and "WRONG: [ledger-rolled-back]" in ran.out and "which the ledger does not have" in ran.out


def test_a_ledger_that_no_registry_knows_is_not_green(sound: Path, tmp_path: Path) -> None:
    ran = run("-C", sound / "clinic", "ledger", "verify", home=tmp_path / "another home")
    assert ran.status == 1 and "WRONG: [ledger-unregistered]" in ran.out and "nothing outside the file was compared" in ran.out


def test_a_ledger_that_is_gone_is_not_green(sound: Path) -> None:
    ledger_of(sound).unlink()
    ran = verified(sound)
    assert ran.status == 1 and "[ledger-missing]" in ran.err
