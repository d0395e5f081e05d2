"""Receipts: signed by one key, checked with any public one, without the ledger; a change anywhere is seen."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.permit import Permit
from lapwing.receipts import ReceiptStatement, check, new_key, receipt_text, receipt_value, sign
from tests.ledger.pg import Place
from tests.ledger.support import pure_budget, request

STATEMENT = ReceiptStatement(
    source_id="clinic",
    ledger_id="f" * 32,
    charge_id=7,
    analyst="ana",
    request_id="one",
    request_digest="plan",
    answer_digest="2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",  # of b"x"
    loss=10**30,
    delta=0,
    entry_id=12,
    head="a" * 64,
    at="2026-11-15T00:00:00.000+00:00",
)


def refusal_of(text: str, keys: Path, answer: bytes | None = None) -> str:
    with pytest.raises(LedgerError) as refusal:
        check(receipt_value(text), keys, answer=answer)
    return refusal.value.code


def test_a_receipt_is_checked_with_the_public_key_alone(tmp_path: Path) -> None:
    key_id = new_key(tmp_path / "keys")
    text = receipt_text(sign(STATEMENT, tmp_path / "keys"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert refusal_of(text, elsewhere) == "receipt-invalid"
    (elsewhere / f"{key_id}.public.pem").write_bytes((tmp_path / "keys" / f"{key_id}.public.pem").read_bytes())
    check(receipt_value(text), elsewhere)
    check(receipt_value(text), elsewhere, answer=b"x")
    assert refusal_of(text, elsewhere, answer=b"y") == "receipt-invalid"


@pytest.mark.parametrize("name", [field.name for field in fields(ReceiptStatement)])
def test_a_change_of_any_field_is_seen(tmp_path: Path, name: str) -> None:
    new_key(tmp_path)
    content = json.loads(receipt_text(sign(STATEMENT, tmp_path)))
    content[name] = content[name] + (1 if isinstance(content[name], int) else ".")
    assert refusal_of(json.dumps(content), tmp_path) == "receipt-invalid"


@pytest.mark.parametrize(
    "change", [{"more": 1}, {"loss": "1"}, {"charge_id": True}, {"format": "another"}, {"key_id": "../x"}, {"signature": "z"}]
)
def test_what_is_no_receipt_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    new_key(tmp_path)
    content = {**json.loads(receipt_text(sign(STATEMENT, tmp_path))), **change}
    assert refusal_of(json.dumps(content), tmp_path) == "receipt-invalid"


def test_after_a_rotation_old_receipts_still_verify_and_the_old_key_is_gone(tmp_path: Path) -> None:
    first = new_key(tmp_path)
    old = sign(STATEMENT, tmp_path)
    second = new_key(tmp_path)
    new = sign(STATEMENT, tmp_path)
    assert (old.key_id, new.key_id) == (first, second)
    check(old, tmp_path)
    check(new, tmp_path)
    assert [path.name for path in tmp_path.glob("*.private.pem")] == [f"{second}.private.pem"]
    # A stolen key is withdrawn by taking its public file away.
    (tmp_path / f"{first}.public.pem").unlink()
    assert refusal_of(receipt_text(old), tmp_path) == "receipt-invalid"
    check(new, tmp_path)


def test_a_key_that_others_can_read_signs_nothing(tmp_path: Path) -> None:
    key_id = new_key(tmp_path)
    (tmp_path / f"{key_id}.private.pem").chmod(0o640)
    with pytest.raises(LedgerError) as refusal:
        sign(STATEMENT, tmp_path)
    assert refusal.value.code == "signing-key"


def test_every_answer_of_the_ledger_has_a_receipt(place: Place, tmp_path: Path) -> None:
    new_key(tmp_path / "keys")
    with place.create(pure_budget(10)) as ledger:
        permit = ledger.reserve(request("one", loss=3))
        assert isinstance(permit, Permit)
        with pytest.raises(LedgerError) as refusal:
            sign(ledger.statement(permit.charge_id), tmp_path / "keys")
        assert refusal.value.code == "receipt-missing"
        ledger.commit(permit, b"answer")
        receipt = sign(ledger.statement(permit.charge_id), tmp_path / "keys")
        assert (receipt.statement.loss, receipt.statement.analyst) == (3, "ana")
        state = ledger.state()
        assert (receipt.statement.entry_id, receipt.statement.head) == (state.entries, state.head)
        assert sign(ledger.statement(permit.charge_id), tmp_path / "keys") == receipt
    check(receipt, tmp_path / "keys", answer=b"answer")
