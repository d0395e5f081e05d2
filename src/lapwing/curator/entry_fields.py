"""An entry of the ledger as faces show it."""

from __future__ import annotations

from typing import Any

from lapwing.answers.budget import decimal_text
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS
from lapwing.ledger.protocol import Entry


def entry_fields(entry: Entry, loss_unit: str) -> dict[str, Any]:
    """For JSON; amounts are exact decimals in text."""
    return {
        "id": entry.entry_id,
        "at": entry.at,
        "kind": entry.kind.value,
        "analyst": entry.analyst or None,
        "charge": entry.charge_id,
        loss_unit: decimal_text(entry.cost.loss, LOSS_UNITS),
        "delta": decimal_text(entry.cost.delta, DELTA_UNITS),
        **({"pure_epsilon": decimal_text(entry.cost.pure, LOSS_UNITS)} if entry.cost.pure else {}),
        "detail": entry.detail,
    }
