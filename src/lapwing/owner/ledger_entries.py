"""An entry of the ledger as interfaces show it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lapwing.answers.display.budget import decimal_text
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.protocol import Entry, EntryKind


def entry_fields(entry: Entry, loss_unit: str) -> dict[str, Any]:
    """For JSON; amounts are exact decimals in text."""
    return {
        "id": entry.entry_id,
        "at": entry.at,
        "kind": entry.kind.value,
        "analyst": entry.analyst or None,
        "charge": entry.charge_id,
        **_cost_fields(entry.cost, loss_unit),
        "detail": entry.detail,
        **({"blocks": [_range_fields(each, loss_unit) for each in entry.ranges]} if entry.ranges else {}),
    }


def entry_value(fields: dict[str, Any], loss_unit: str) -> Entry:
    """Inverse of :func:`entry_fields`."""
    ranges = tuple(BlockCost(each["first"], each["last"], _cost(each, loss_unit)) for each in fields.get("blocks", ()))
    cost = _cost(fields, loss_unit)
    return Entry(
        fields["id"], fields["at"], EntryKind(fields["kind"]), fields["analyst"] or "", fields["charge"], cost, fields["detail"], ranges
    )


def _range_fields(each: BlockCost, loss_unit: str) -> dict[str, Any]:
    """What each block of a range paid; the standing block has no numbers."""
    return {"first": each.first, "last": each.last, **_cost_fields(each.cost, loss_unit)}


def _cost_fields(cost: Cost, loss_unit: str) -> dict[str, Any]:
    pure = {"pure_epsilon": decimal_text(cost.pure, LOSS_UNITS)} if cost.pure else {}
    return {loss_unit: decimal_text(cost.loss, LOSS_UNITS), "delta": decimal_text(cost.delta, DELTA_UNITS), **pure}


def _cost(fields: dict[str, Any], loss_unit: str) -> Cost:
    pure = fields.get("pure_epsilon")
    return Cost(
        _units(fields[loss_unit], LOSS_UNITS), _units(fields["delta"], DELTA_UNITS), None if pure is None else _units(pure, LOSS_UNITS)
    )


def _units(amount: str, per_one: int) -> int:
    units = Fraction(amount) * per_one
    if units.denominator != 1:
        raise ValueError("an amount of a ledger is a whole number of its units")
    return units.numerator
