"""The budget as people read it: the share spent leads, because epsilons do not add under zero-concentrated privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Account, Budget, Cost, epsilon_for


def epsilon_of_loss(budget: Budget, loss_units: int) -> float:
    """The epsilon that a loss stands for on its own, at the data set's delta for conversion."""
    loss = Fraction(max(loss_units, 0), LOSS_UNITS)
    if budget.account is Account.PURE or not loss:
        return float(loss)
    return float(epsilon_for(rho=loss, delta=budget.delta_conversion))


@dataclass(frozen=True, slots=True)
class BudgetView:
    """Budget, spending and what is left of one data set."""

    budget: Budget
    ceiling: Budget
    spent: Cost
    closed: bool
    """Closed to analysts until the owner re-opens it."""
    unit: str
    unit_is_row: bool = False
    """Whether nobody is protected for all of their rows at once."""

    @property
    def remaining(self) -> Cost:
        """What is left, in ledger units."""
        return Cost(loss=self.budget.loss_total - self.spent.loss, delta=self.budget.delta_total - self.spent.delta)

    @property
    def share_spent(self) -> float:
        """Part of the loss that is spent, from 0 to 1."""
        total = self.budget.loss_total
        return self.spent.loss / total if total else 1.0

    @property
    def protects(self) -> str:
        """What is protected, in the words of the declaration."""
        return f"one {self.unit}, not a person" if self.unit_is_row else f"one {self.unit}"

    @property
    def promise(self) -> str:
        """What is promised, and to whom."""
        budget, whom = self.budget, f"each {self.unit}, not for each person" if self.unit_is_row else f"each {self.unit}"
        return f"the promise is epsilon {float(budget.epsilon):g}, delta {float(budget.delta):.3g} for {whom}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON; amounts are exact decimals in text."""
        budget, spent, left = self.budget, self.spent, self.remaining
        total = Cost(budget.loss_total, budget.delta_total)
        return {
            "account": budget.account.value,
            "unit": self.unit,
            "unit_is_row": self.unit_is_row,
            "epsilon": float(budget.epsilon),
            "delta": float(budget.delta),
            "loss": {name: decimal_text(cost.loss, LOSS_UNITS) for name, cost in _named(total, spent, left)},
            "loss_unit": "epsilon" if budget.account is Account.PURE else "rho",
            "share_spent": self.share_spent,
            "share_remaining": 1 - self.share_spent,
            "epsilon_spent": epsilon_of_loss(budget, spent.loss),
            "epsilon_remaining": epsilon_of_loss(budget, left.loss),
            "delta_keys": {name: decimal_text(cost.delta, DELTA_UNITS) for name, cost in _named(total, spent, left)},
        }

    def __str__(self) -> str:
        values = self.to_dict()
        unit = values["loss_unit"]
        return (
            f"{self.share_spent:.1%} of the budget is spent, {1 - self.share_spent:.1%} is left"
            f" ({unit} {float(values['loss']['spent']):.4g} of {float(values['loss']['total']):.4g};"
            f" {self.promise})"
        )


def _named(total: Cost, spent: Cost, left: Cost) -> tuple[tuple[str, Cost], ...]:
    return ("total", total), ("spent", spent), ("remaining", left)


def decimal_text(units: int, per_one: int) -> str:
    """An exact decimal of an amount in ledger units."""
    whole, rest = divmod(abs(units), per_one)
    digits = str(rest).zfill(len(str(per_one)) - 1).rstrip("0")
    text = f"{whole}.{digits}" if digits else str(whole)
    return f"-{text}" if units < 0 else text
