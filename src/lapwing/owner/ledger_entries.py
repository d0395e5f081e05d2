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
        **amount_fields(entry.charged, loss_unit),
        "detail": entry.detail,
        **_block_fields(entry, loss_unit),
    }


def amount_fields(cost: Cost, loss_unit: str) -> dict[str, Any]:
    """The amounts of a cost."""
    pure = {"pure_epsilon": decimal_text(cost.pure, LOSS_UNITS)} if cost.pure else {}
    return {loss_unit: decimal_text(cost.loss, LOSS_UNITS), "delta": decimal_text(cost.delta, DELTA_UNITS), **pure}


def _block_fields(entry: Entry, loss_unit: str) -> dict[str, Any]:
    """What each block paid, and one person over all of them; nothing of an entry that the standing block paid as a whole."""
    if not entry.ranges or entry.person is None:
        return {}
    ranges = [{"first": each.first, "last": each.last, **amount_fields(each.cost, loss_unit)} for each in entry.ranges]
    return {"blocks": ranges, "person": amount_fields(entry.person, loss_unit)}


def entry_value(fields: dict[str, Any], loss_unit: str) -> Entry:
    """Inverse of :func:`entry_fields`."""
    cost, blocks = _cost(fields, loss_unit), fields.get("blocks", [])
    ranges = tuple(BlockCost(each["first"], each["last"], _cost(each, loss_unit)) for each in blocks)
    standing = sum((each.cost for each in ranges if each.first is None), Cost.zero()) if ranges else cost
    person = _cost(fields["person"], loss_unit) if ranges else None
    about = fields["id"], fields["at"], EntryKind(fields["kind"]), fields["analyst"] or "", fields["charge"]
    return Entry(*about, standing, fields["detail"], ranges, person)


def _cost(fields: dict[str, Any], loss_unit: str) -> Cost:
    pure = fields.get("pure_epsilon")
    amounts = _units(fields[loss_unit], LOSS_UNITS), _units(fields["delta"], DELTA_UNITS)
    return Cost(*amounts, None if pure is None else _units(pure, LOSS_UNITS))


def _units(amount: str, per_one: int) -> int:
    units = Fraction(amount) * per_one
    if units.denominator != 1:
        raise ValueError("an amount of a ledger is a whole number of its units")
    return units.numerator
