"""Size limits of what a ledger stores, and the rules for changes of its budget.

A value that passes here can be stored as it is; one that does not is refused before anything is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction

from lapwing.errors import BudgetRefused, CatalogueError, LedgerError, Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account, Budget, Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.block_balances import BLOCK_MAX, BLOCK_MIN
from lapwing.ledger.protocol import Request
from lapwing.prices import epsilon_for

NAME_CHARACTERS_MAX = 500
"""Longest analyst, request id, digest, source id or fingerprint."""
DETAIL_CHARACTERS_MAX = 100_000
"""Longest summary, reason or detail."""
PAYLOAD_BYTES_MAX = 2**28
"""Largest answer that can be stored."""
HISTORY_ENTRIES_MAX = 100_000
"""Most entries that a history returns at once."""
VERSION_MAX = 2**62


@dataclass(frozen=True, slots=True)
class LossLimit:
    """A limit in ledger units; a loss of None is no limit. In an account with an order, a cost need only be within one of the two."""

    loss: int | None = None
    pure: int | None = None

    def is_passed_by(self, cost: Cost) -> bool:
        """Whether this cost exceeds the limit."""
        within_pure = self.pure is not None and cost.pure is not None and cost.pure <= self.pure
        return self.loss is not None and cost.loss > self.loss and not within_pure


def limit_of_share(budget: Budget, share: float | Fraction | None) -> LossLimit:
    """A share of the whole budget, from 0 to 1, as a limit: read to a millionth, and rounded down to ledger units. None is no limit."""
    if share is None:
        return LossLimit()
    part = Fraction(share).limit_denominator(10**6)
    return LossLimit(int(budget.loss_total * part), None if budget.pure_total is None else int(budget.pure_total * part))


def declared_limit(budget: Budget, share: Fraction | None) -> LossLimit:
    """A limit of the catalogue; there is none without a share, or with a share of 1."""
    return limit_of_share(budget, None if share == 1 else share)


def past_statement_limit(budget: Budget, limit: LossLimit, cost: Cost) -> BudgetRefused:
    """The refusal of a statement that costs more than a single statement may; says at which epsilon it can be asked."""
    message = (
        f"one statement may cost {_share(budget, limit.loss or 0)} of the budget at most, but this one costs {_share(budget, cost.loss)}"
    )
    hint = f"ask at epsilon {_epsilon(budget, limit.loss or 0)} or less, or ask the data owner"
    return BudgetRefused("statement-limit", message, hint=hint)


def past_day_limit(budget: Budget, limit: LossLimit, spent: Cost) -> BudgetRefused:
    """The refusal of a request beyond the daily limit of an analyst. It reveals what this analyst spent, and nothing about others."""
    left = max(0, (limit.loss or 0) - spent.loss)
    message = f"an analyst may spend {_share(budget, limit.loss or 0)} of the budget per day, and {_share(budget, left)} is left for today"
    return BudgetRefused("day-limit", message, hint=NEXT_DAY)


NEXT_DAY = "the limit resets at 00:00 UTC; until then ask for less, repeat an answered question, which is free, or ask the data owner"


def _share(budget: Budget, loss: int) -> str:
    percent = 100 * loss / budget.loss_total
    return f"{percent:.3g}%" if percent < 100 else f"{percent:,.0f}%"


def _epsilon(budget: Budget, loss: int) -> str:
    """The epsilon that this loss pays for, rounded down, so that a statement at this epsilon stays within the loss."""
    rho = Fraction(loss, LOSS_UNITS)
    epsilon = float(rho if budget.account is Account.PURE else epsilon_for(rho=rho, delta=budget.delta_conversion))
    return f"{Context(prec=3, rounding=ROUND_DOWN).create_decimal_from_float(epsilon):f}"


def require_within(budget: Budget, ceiling: Budget) -> None:
    """Refuse a budget that promises less than ``ceiling`` does, or has another account.

    The deltas are fixed for life: the same rho is a different epsilon under a different delta.
    """
    if budget.account is not ceiling.account:
        hint = "a change of account needs a new ledger"
        raise CatalogueError("budget-account", "whether a ledger charges epsilon or rho is fixed when it is made", hint=hint)
    if budget.order != ceiling.order:
        hint = "a change of the order needs a new ledger"
        raise CatalogueError("budget-account", "the order of an account is fixed when the ledger is made", hint=hint)
    if (budget.delta_conversion, budget.delta_keys) != (ceiling.delta_conversion, ceiling.delta_keys):
        raise CatalogueError("budget-delta", "delta and its parts are fixed when the ledger is made")
    if budget.epsilon > ceiling.epsilon or budget.loss_total > ceiling.loss_total or budget.delta_total > ceiling.delta_total:
        raise CatalogueError("budget-above-ceiling", "the budget is above the ceiling that was promised")


def lowers(before: Budget, to: Budget) -> bool:
    """Whether a total of the second budget is below that of the first, so that less may fit."""
    return to.loss_total < before.loss_total or to.delta_total < before.delta_total or (to.pure_total or 0) < (before.pure_total or 0)


def step_text(before: Budget, to: Budget) -> str:
    """The old and the new epsilon of a budget or ceiling, for its entry."""
    return f"epsilon {float(before.epsilon):g} to {float(to.epsilon):g}"


def require_request(request: Request) -> None:
    """Refuse a request that costs nothing, or that cannot be stored in full."""
    if request.cost.loss == 0:
        raise Refused("zero-cost", "a request that reads the data must have a cost above zero")
    for name in (request.analyst, request.request_id, request.digest):
        require_name(name)
    require_detail(request.summary)
    require_detail("" if request.purchase is None else request.purchase.text())
    require_ranges(request.ranges, request.person)
    if type(request.version) is not int or not 0 <= request.version <= VERSION_MAX:
        raise Refused("request-invalid", "the version of a request must be a non-negative integer")


def require_ranges(ranges: Sequence[BlockCost], person: Cost | None) -> None:
    """Refuse ranges of blocks that no plan has: without a cost, overlapping, or without what a person loses by them."""
    if (person is None) != (not ranges) or any(each.cost == Cost.zero() for each in ranges):
        raise Refused("request-invalid", "a request over blocks of time says what each block of it pays, and what a person loses")
    if any((each.first is None) != (each.last is None) for each in ranges) or sum(each.first is None for each in ranges) > 1:
        raise Refused("request-invalid", "a range of blocks has a first and a last block, and tables without time are one block")
    of_time = sorted((each.first, each.last) for each in ranges if each.first is not None and each.last is not None)
    if any(not BLOCK_MIN <= first <= last <= BLOCK_MAX for first, last in of_time):
        raise Refused("request-invalid", "a range of blocks is of blocks that a ledger can keep, the first before the last")
    if any(second <= last for (_, last), (second, _) in itertools.pairwise(of_time)):
        raise Refused("request-invalid", "two ranges of a request have a block of time in common")


def require_payload(payload: bytes) -> None:
    """Refuse an answer that cannot be stored."""
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise LedgerError("answer-too-large", "the answer is too large to be stored", hint="ask for fewer groups")


def require_name(text: str) -> None:
    """Refuse a text that cannot be a name in the ledger."""
    if not text or len(text) > NAME_CHARACTERS_MAX or not _is_storable(text):
        raise Refused("request-invalid", f"names in the ledger are plain text of 1 to {NAME_CHARACTERS_MAX} characters")


def require_detail(text: str) -> None:
    """Refuse a text that cannot be an explanation in the ledger; it may be empty."""
    if len(text) > DETAIL_CHARACTERS_MAX or not _is_storable(text):
        raise Refused("request-invalid", f"texts in the ledger are plain text of at most {DETAIL_CHARACTERS_MAX} characters")


def require_reason(override: bool, reason: str) -> None:
    """Refuse an override without a reason."""
    require_detail(reason)
    if override and not reason.strip():
        raise LedgerError("override-reason", "an override needs a reason", hint="give the reason: it is recorded in the ledger")


def _is_storable(text: str) -> bool:
    """Whether a text can be stored: SQLite may cut a text at a zero character, and a lone surrogate cannot be encoded."""
    return all(c != "\0" and not "\ud800" <= c <= "\udfff" for c in text)
