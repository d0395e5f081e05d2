"""An entry of the ledger as interfaces show it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lapwing.answers.display.budget import decimal_text
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Cost
from lapwing.ledger.protocol import Entry, EntryKind


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


def entry_value(fields: dict[str, Any], loss_unit: str) -> Entry:
    """Inverse of :func:`entry_fields`."""
    pure = fields.get("pure_epsilon")
    cost = Cost(
        _units(fields[loss_unit], LOSS_UNITS), _units(fields["delta"], DELTA_UNITS), None if pure is None else _units(pure, LOSS_UNITS)
    )
    return Entry(fields["id"], fields["at"], EntryKind(fields["kind"]), fields["analyst"] or "", fields["charge"], cost, fields["detail"])


def _units(amount: str, per_one: int) -> int:
    units = Fraction(amount) * per_one
    if units.denominator != 1:
        raise ValueError("an amount of a ledger is a whole number of its units")
    return units.numerator
