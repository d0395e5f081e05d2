"""How large things in a ledger may be, and what an owner may ask of its budget.

A value that passes here can be stored as it is; one that does not is refused before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction

from lapwing.errors import BudgetRefused, CatalogueError, LedgerError, Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account, Budget, Cost
from lapwing.ledger.protocol import Request
from lapwing.prices import epsilon_for

NAME_CHARACTERS_MAX = 500
"""Longest analyst, request id, digest, source id or fingerprint."""
DETAIL_CHARACTERS_MAX = 100_000
"""Longest summary, reason or detail."""
PAYLOAD_BYTES_MAX = 2**28
"""Largest answer that can be stored."""
HISTORY_ENTRIES_MAX = 100_000
"""Longest history given at once."""
VERSION_MAX = 2**62


@dataclass(frozen=True, slots=True)
class LossLimit:
    """A limit in ledger units; without a loss there is none. In an account with an order it is enough to be within the loss or the pure
    epsilon."""

    loss: int | None = None
    pure: int | None = None

    def is_passed_by(self, cost: Cost) -> bool:
        """Whether this is more, by one unit or by many."""
        within_pure = self.pure is not None and cost.pure is not None and cost.pure <= self.pure
        return self.loss is not None and cost.loss > self.loss and not within_pure


def limit_of_share(budget: Budget, share: float | Fraction | None) -> LossLimit:
    """A share of the whole budget, from 0 to 1, as a limit: to a millionth, rounded down to units of the ledger. None is no limit."""
    if share is None:
        return LossLimit()
    part = Fraction(share).limit_denominator(10**6)
    return LossLimit(int(budget.loss_total * part), None if budget.pure_total is None else int(budget.pure_total * part))


def declared_limit(budget: Budget, share: Fraction | None) -> LossLimit:
    """A limit of the catalogue: without a share, or with all of it, there is none."""
    return limit_of_share(budget, None if share == 1 else share)


def past_statement_limit(budget: Budget, limit: LossLimit, cost: Cost) -> BudgetRefused:
    """The refusal of a statement that costs more than one may; says at which epsilon it may be asked."""
    message = (
        f"one statement may cost {_share(budget, limit.loss or 0)} of the budget at most, and this one costs {_share(budget, cost.loss)}"
    )
    hint = f"ask at epsilon {_epsilon(budget, limit.loss or 0)} or less, or ask the data owner"
    return BudgetRefused("statement-limit", message, hint=hint)


def past_day_limit(budget: Budget, limit: LossLimit, spent: Cost) -> BudgetRefused:
    """The refusal of what an analyst has no more left for on this day. It tells what this analyst spent, and nothing of others."""
    left = max(0, (limit.loss or 0) - spent.loss)
    message = (
        f"an analyst may spend {_share(budget, limit.loss or 0)} of the budget in a day, and {_share(budget, left)} is left of that today"
    )
    return BudgetRefused("day-limit", message, hint=NEXT_DAY)


NEXT_DAY = "a new day begins at 00:00 UTC; until then ask for less, ask again what was answered, which is free, or ask the data owner"


def _share(budget: Budget, loss: int) -> str:
    percent = 100 * loss / budget.loss_total
    return f"{percent:.3g}%" if percent < 100 else f"{percent:,.0f}%"


def _epsilon(budget: Budget, loss: int) -> str:
    """What this loss pays for, rounded down, so that asking at it is within the loss."""
    rho = Fraction(loss, LOSS_UNITS)
    epsilon = float(rho if budget.account is Account.PURE else epsilon_for(rho=rho, delta=budget.delta_conversion))
    return f"{Context(prec=3, rounding=ROUND_DOWN).create_decimal_from_float(epsilon):f}"


def require_within(budget: Budget, ceiling: Budget) -> None:
    """``budget`` promises no less than ``ceiling`` does, in the same account.

    The deltas are fixed for life: rho spent under one conversion means another epsilon under another.
    """
    if budget.account is not ceiling.account:
        hint = "a change of account needs a new ledger"
        raise CatalogueError("budget-account", "a ledger is charged in epsilon or in rho for its whole life", hint=hint)
    if budget.order != ceiling.order:
        hint = "a change of the order needs a new ledger"
        raise CatalogueError("budget-account", "the order of an account is fixed when the ledger is made", hint=hint)
    if (budget.delta_conversion, budget.delta_keys) != (ceiling.delta_conversion, ceiling.delta_keys):
        raise CatalogueError("budget-delta", "delta and its parts are fixed when the ledger is made")
    if budget.epsilon > ceiling.epsilon or budget.loss_total > ceiling.loss_total or budget.delta_total > ceiling.delta_total:
        raise CatalogueError("budget-above-ceiling", "the budget is above the ceiling that the promise was made for")


def step_text(before: Budget, to: Budget) -> str:
    """From which epsilon to which a budget or a ceiling goes, for its entry."""
    return f"epsilon {float(before.epsilon):g} to {float(to.epsilon):g}"


def require_request(request: Request) -> None:
    """The request costs something, and all of it can be stored."""
    if request.cost.loss == 0:
        raise Refused("zero-cost", "nothing may read the data without being charged")
    for name in (request.analyst, request.request_id, request.digest):
        require_name(name)
    require_detail(request.summary)
    require_detail("" if request.purchase is None else request.purchase.text())
    if type(request.version) is not int or not 0 <= request.version <= VERSION_MAX:
        raise Refused("request-invalid", "the version of a request is a whole number that is not negative")


def require_payload(payload: bytes) -> None:
    """An answer that can be stored."""
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise LedgerError("answer-too-large", "the answer is too large to be stored", hint="ask for fewer groups")


def require_name(text: str) -> None:
    """A text that identifies something."""
    if not text or len(text) > NAME_CHARACTERS_MAX or not _is_storable(text):
        raise Refused("request-invalid", f"names in the ledger are plain text of 1 to {NAME_CHARACTERS_MAX} characters")


def require_detail(text: str) -> None:
    """A text that explains something; it may be empty."""
    if len(text) > DETAIL_CHARACTERS_MAX or not _is_storable(text):
        raise Refused("request-invalid", f"texts in the ledger are plain text of at most {DETAIL_CHARACTERS_MAX} characters")


def require_reason(override: bool, reason: str) -> None:
    """An override says why."""
    require_detail(reason)
    if override and not reason.strip():
        raise LedgerError("override-reason", "an override is written down with its reason", hint="say why")


def _is_storable(text: str) -> bool:
    """SQLite ends a text at a zero character in places, and half a surrogate pair cannot be encoded at all."""
    return all(c != "\0" and not "\ud800" <= c <= "\udfff" for c in text)
