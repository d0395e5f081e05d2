"""Ledger amounts and budgets as text that compares and reads back exactly.

SQLite integers end at 2**63 and its reals are floats, while a delta is counted in 1e-30. So an amount is stored as exactly
``AMOUNT_DIGITS`` decimal digits, padded with zeros: for such texts the byte order *is* the numeric order, so the constraints of the
database compare the numbers themselves. Python integers do all arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Account, Budget, Cost
from lapwing.kernel.blocks import BlockCost

AMOUNT_DIGITS = 40
"""A delta total has at most 31 digits and a loss total at most 25."""


def amount_text(amount: int) -> str:
    """``amount`` as a text of fixed width; an amount that does not fit is refused, never truncated."""
    text = f"{amount:0{AMOUNT_DIGITS}d}"
    if amount < 0 or len(text) != AMOUNT_DIGITS:
        raise LedgerError("amount-invalid", f"a ledger amount is a whole number of at most {AMOUNT_DIGITS} digits")
    return text


def amount_value(text: str) -> int:
    """Inverse of :func:`amount_text`; any other text means a damaged ledger."""
    if len(text) != AMOUNT_DIGITS or not (text.isascii() and text.isdigit()):
        raise LedgerError("ledger-damaged", "the ledger holds an invalid amount")
    return int(text)


def pure_text(cost: Cost) -> str | None:
    """The pure amount of a cost; None if the cost has none, or if it is zero."""
    return None if cost.pure is None or cost == Cost.zero() else amount_text(cost.pure)


def cost_value(loss: str, delta: str, pure: str | None) -> Cost:
    """A cost from its three texts."""
    return Cost(loss=amount_value(loss), delta=amount_value(delta), pure=None if pure is None else amount_value(pure))


def lost_between(before: Cost, after: Cost) -> Cost:
    """The cost to charge after ``before`` so that the total is at least what ``after`` had spent."""
    loss, delta = max(0, after.loss - before.loss), max(0, after.delta - before.delta)
    if after.pure is None or before.pure is None:
        return Cost(loss=loss if before.pure is None else max(1, loss), delta=delta)
    return Cost(loss=loss, delta=delta, pure=max(0, after.pure - before.pure))


def budget_text(budget: Budget) -> str:
    """A budget as canonical JSON: every number exact, the totals included.

    The totals are stored rather than derived again, so that a later version of Lapwing that converts epsilon more tightly cannot change
    what was granted.
    """
    fields = {
        "account": budget.account.value,
        "delta": str(budget.delta),
        "delta_conversion": str(budget.delta_conversion),
        "delta_keys": str(budget.delta_keys),
        "delta_total": str(budget.delta_total),
        "epsilon": str(budget.epsilon),
        "loss_total": str(budget.loss_total),
    }
    if budget.order is not None:  # a budget without an order keeps its original format
        fields |= {"order": str(budget.order), "pure_total": str(budget.pure_total)}
    return json.dumps(fields, separators=(",", ":"), sort_keys=True)


def budget_value(text: str) -> Budget:
    """Inverse of :func:`budget_text`."""
    try:
        fields = json.loads(text)
        budget = Budget(
            account=Account(fields["account"]),
            epsilon=Fraction(fields["epsilon"]),
            delta=Fraction(fields["delta"]),
            delta_conversion=Fraction(fields["delta_conversion"]),
            delta_keys=Fraction(fields["delta_keys"]),
            loss_total=int(fields["loss_total"]),
            delta_total=int(fields["delta_total"]),
            order=int(fields["order"]) if "order" in fields else None,
            pure_total=int(fields["pure_total"]) if "order" in fields else None,
        )
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise LedgerError("ledger-damaged", "the ledger holds a budget that cannot be read") from error
    if budget_text(budget) != text:
        raise LedgerError("ledger-damaged", "the ledger holds a budget that cannot be read")
    return budget


def ranges_text(ranges: Sequence[BlockCost], person: Cost) -> str:
    """What blocks of time pay, and one person over all of them, as canonical JSON: every amount a text of digits."""
    listed = [[each.first, each.last, *_texts(each.cost)] for each in ranges]
    return json.dumps({"person": _texts(person), "ranges": listed}, separators=(",", ":"), sort_keys=True)


def ranges_value(text: str) -> tuple[tuple[BlockCost, ...], Cost]:
    """Inverse of :func:`ranges_text`."""
    try:
        fields = json.loads(text)
        ranges = tuple(BlockCost(first, last, _of_texts(*amounts)) for first, last, *amounts in fields["ranges"])
        person = _of_texts(*fields["person"])
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerError("ledger-damaged", "the ledger holds costs of blocks that cannot be read") from error
    if ranges_text(ranges, person) != text:
        raise LedgerError("ledger-damaged", "the ledger holds costs of blocks that cannot be read")
    return ranges, person


def _texts(cost: Cost) -> list[str | None]:
    return [str(cost.loss), str(cost.delta), None if cost.pure is None else str(cost.pure)]


def _of_texts(loss: str, delta: str, pure: str | None) -> Cost:
    return Cost(loss=int(loss), delta=int(delta), pure=None if pure is None else int(pure))
