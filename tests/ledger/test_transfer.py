"""A local ledger moves into PostgreSQL with every charge and answer, and is closed behind itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lapwing.errors import CatalogueError, LapwingError, LedgerError
from lapwing.interfaces.cli.app import app
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.transfer import move
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import StoredAnswer
from lapwing.receipts import new_key, receipt_text, sign
from tests.ledger.pg import Place
from tests.ledger.support import execute, ledger_path, new_ledger, open_ledger, pure_budget, request


def moved(directory: Path, place: Place, *, was_closed: bool = False) -> PostgresLedger:
    with open_ledger(directory) as local:
        return move(
            local,
            place.dsn,
            source_id=place.source_id,
            source_fingerprint=f"files of {place.source_id}",
            anchors=place.anchors,
            was_closed=was_closed,
        )


def test_every_charge_and_answer_is_there_and_nothing_more_can_be_charged_here(tmp_path: Path, place: Place) -> None:
    with new_ledger(tmp_path, budget=pure_budget(100), ceiling=pure_budget(200)) as local:
        for number in range(12):
            analyst = ("ana", "bo", "cy")[number % 3]
            permit = local.reserve(request(f"{number}", loss=number + 1, analyst=analyst))
            assert isinstance(permit, Permit)
            if number % 4 == 3:
                local.forfeit(permit, incident=False)
            else:
                local.commit(permit, f"answer {number}".encode())
        before = local.balance()
    with moved(tmp_path, place) as ledger:
        after = ledger.balance()
        assert (after.budget, after.ceiling, after.spent, after.closed) == (before.budget, before.ceiling, before.spent, False)
        assert ledger.reserve(request("1", loss=2, analyst="bo")) == StoredAnswer(charge_id=2, payload=b"answer 1")
        with pytest.raises(LapwingError) as refusal:
            ledger.reserve(request("3", loss=4, analyst="ana"))
        assert refusal.value.code == "request-forfeited"
        assert isinstance(ledger.reserve(request("new", loss=22)), Permit)
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()
    with open_ledger(tmp_path) as local:
        with pytest.raises(LapwingError) as refusal:
            local.reserve(request("new"))
        assert refusal.value.code == "data-set-closed"
        with pytest.raises(LedgerError) as moved_away:
            local.reopen("a second budget")
        assert moved_away.value.code == "ledger-superseded"
    # A second move would be a second budget.
    with pytest.raises(CatalogueError) as again:
        moved(tmp_path, place)
    assert again.value.code == "source-registered"


def test_what_an_earlier_restore_charged_again_moves_too(tmp_path: Path, place: Place) -> None:
    with new_ledger(tmp_path) as local:
        permit = local.reserve(request("one", loss=2))
        assert isinstance(permit, Permit)
        local.commit(permit, b"answer")
        copy = ledger_path(tmp_path).read_bytes()
    with open_ledger(tmp_path) as local:
        assert isinstance(local.reserve(request("two", loss=3)), Permit)
    ledger_path(tmp_path).write_bytes(copy)
    with open_ledger(tmp_path, override=True, reason="restored") as local:
        assert local.balance().spent == Cost(loss=5, delta=0)
    with moved(tmp_path, place, was_closed=True) as ledger:
        assert ledger.balance().spent == Cost(loss=5, delta=0)
        assert ledger.balance().closed
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


def test_a_ledger_in_use_or_damaged_is_not_moved(tmp_path: Path, place: Place) -> None:
    with new_ledger(tmp_path) as local:
        permit = local.reserve(request("one", loss=2))
        assert isinstance(permit, Permit)
        with pytest.raises(LedgerError) as refusal:
            moved(tmp_path, place)
        assert refusal.value.code == "ledger-in-use"
        local.commit(permit, b"answer")
    execute(ledger_path(tmp_path), "DROP TRIGGER charge_moves_once", "UPDATE charge SET payload = x'00'")
    with pytest.raises(LedgerError) as refusal:
        moved(tmp_path, place)
    assert refusal.value.code == "ledger-damaged"
    with pytest.raises(LedgerError) as refusal:
        place.open()
    assert refusal.value.code == "ledger-missing"


def test_the_commands_verify_a_ledger_and_a_receipt(tmp_path: Path, place: Place) -> None:
    assert isinstance(place.anchors, FileAnchors)
    keys = tmp_path / "keys"
    run = CliRunner()
    assert run.invoke(app, ["receipt", "key", "--keys", str(keys)]).exit_code == 0
    with place.create() as ledger:
        permit = ledger.reserve(request("one", loss=2))
        assert isinstance(permit, Permit)
        ledger.commit(permit, b"answer")
        receipt = receipt_text(sign(ledger.statement(1), keys))
        there = ["ledger", "verify", place.source_id, "--database", place.dsn, "--anchors", str(place.anchors.directory)]
        sound = run.invoke(app, there)
        assert sound.exit_code == 0, sound.output
        assert "1 charges, 1 answers" in sound.output and "agree" in sound.output
        place.execute(
            "SET session_replication_role = replica",
            f"UPDATE lapwing.entry SET detail = 'x' WHERE ledger_id = '{ledger.ledger_id}' AND entry_id = 2",
        )
        wrong = run.invoke(app, there)
        assert wrong.exit_code == 1 and "WRONG: the chain is broken" in wrong.output
    (tmp_path / "receipt.json").write_text(receipt, encoding="utf-8")
    (tmp_path / "answer").write_bytes(b"answer")
    arguments = ["receipt", "verify", str(tmp_path / "receipt.json"), "--keys", str(keys), "--answer", str(tmp_path / "answer")]
    assert run.invoke(app, arguments).output.startswith(f"valid: charge 1 of {place.source_id}")
    new_key(keys)
    assert run.invoke(app, arguments).exit_code == 0
    (tmp_path / "receipt.json").write_text(json.dumps({**json.loads(receipt), "loss": 1}), encoding="utf-8")
    assert run.invoke(app, arguments).exit_code == 1
