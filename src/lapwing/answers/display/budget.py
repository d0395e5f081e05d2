"""The budget as text: the share spent comes first, because epsilons do not add under zero-concentrated privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lapwing.answers.display.blocks import BlocksView
from lapwing.answers.display.notebook import gauge_html, pairs_html
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Account, Budget, Cost, left_of
from lapwing.prices import epsilon_for


def epsilon_of_loss(budget: Budget, loss_units: int) -> float:
    """The epsilon equivalent of a loss on its own, at the data set's delta for conversion."""
    loss = Fraction(max(loss_units, 0), LOSS_UNITS)
    if budget.account is Account.PURE or not loss:
        return float(loss)
    return float(epsilon_for(rho=loss, delta=budget.delta_conversion))


def epsilon_of_cost(budget: Budget, cost: Cost) -> float:
    """The epsilon equivalent of a cost on its own: its pure epsilon, if the account counts that."""
    if budget.pure_total is not None and cost.pure is not None:
        return cost.pure / LOSS_UNITS
    return epsilon_of_loss(budget, cost.loss)


def epsilon_of_all(budget: Budget, spent: Cost) -> float:
    """The epsilon equivalent of the total spending.

    With an order the loss is a Rényi divergence at that order and nothing more: it converts by the line on which the total of the budget
    converts to its epsilon, and not at any better order. The pure sum, if there is one, is already an epsilon.
    """
    if budget.order is None or spent == Cost.zero():
        return epsilon_of_loss(budget, spent.loss)
    at_order = max(0.0, float(budget.epsilon - Fraction(budget.order * (budget.loss_total - spent.loss), LOSS_UNITS)))
    return at_order if spent.pure is None else min(at_order, spent.pure / LOSS_UNITS)


def share_of_cost(budget: Budget, cost: Cost) -> float:
    """The part of the budget that a cost takes, on the side of the account where it is less."""
    shares = [cost.loss / budget.loss_total if budget.loss_total else 1.0]
    if budget.pure_total and cost.pure is not None:
        shares.append(cost.pure / budget.pure_total)
    return min(shares)


LARGE_SHARE = 0.05
"""Interfaces ask for confirmation before a single statement spends more than this share of the whole budget."""


@dataclass(frozen=True, slots=True)
class BudgetView:
    """Budget, spending and remainder of one data set."""

    budget: Budget
    ceiling: Budget
    spent: Cost
    closed: bool
    """Closed to analysts until the owner re-opens it."""
    unit: str
    unit_is_row: bool = False
    """Whether every row is a unit, so that no person's rows are protected together."""
    blocks: BlocksView | None = None
    """Blocks of time, if the data set has some: the budget is then that of each of them, and ``spent`` of those that it names."""

    @property
    def place(self) -> str:
        """Whose budget it is, as the end of a clause: nothing, or a blank and the blocks of time."""
        return "" if self.blocks is None else f" in {self.blocks.place}"

    @property
    def left_text(self) -> str:
        """How much is left, as a clause."""
        return f"{1 - self.share_spent:.1%} of the budget is left{self.place}"

    @property
    def remaining(self) -> Cost:
        """The remaining budget in ledger units."""
        return left_of(self.budget, self.spent)

    @property
    def share_spent(self) -> float:
        """Part of the budget that is spent, from 0 to 1; of an account with an order, on the side that has more left."""
        return share_of_cost(self.budget, self.spent)

    @property
    def loss_unit(self) -> str:
        """The unit in which the data set is charged."""
        return "epsilon" if self.budget.account is Account.PURE else "rho"

    @property
    def protects(self) -> str:
        """The protected unit, in the words of the declaration."""
        if self.blocks is not None:
            return f"one {self.unit}'s rows of one {self.blocks.every}"
        return f"one {self.unit}, not a person" if self.unit_is_row else f"one {self.unit}"

    @property
    def promise(self) -> str:
        """The privacy promise, and to whom it is made."""
        budget, whom = self.budget, f"each {self.unit}, not for each person" if self.unit_is_row else f"each {self.unit}"
        if self.blocks is not None:
            whom = f"each {self.unit}'s rows of each {self.blocks.every}; {self.blocks.person_text}"
        return f"the promise is epsilon {float(budget.epsilon):g}, delta {float(budget.delta):.3g} for {whom}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON; amounts are exact decimals in text."""
        budget, spent, left = self.budget, self.spent, self.remaining
        total = Cost(budget.loss_total, budget.delta_total, budget.pure_total)
        return {
            "account": budget.account.value,
            "unit": self.unit,
            "unit_is_row": self.unit_is_row,
            "epsilon": float(budget.epsilon),
            "delta": float(budget.delta),
            "loss": {name: decimal_text(cost.loss, LOSS_UNITS) for name, cost in _named(total, spent, left)},
            "loss_unit": self.loss_unit,
            "share_spent": self.share_spent,
            "share_remaining": 1 - self.share_spent,
            "epsilon_spent": epsilon_of_all(budget, spent),
            "epsilon_remaining": max(epsilon_of_loss(budget, left.loss), (left.pure or 0) / LOSS_UNITS),
            "order": budget.order,
            "pure_epsilon": None if budget.order is None else self._pure(total),
            "delta_keys": {name: decimal_text(cost.delta, DELTA_UNITS) for name, cost in _named(total, spent, left)},
            **({} if self.blocks is None else {"blocks": self.blocks.to_dict()}),
        }

    def _pure(self, total: Cost) -> dict[str, str | None]:
        """The other side of an account with an order; its spending is None after a charge without a pure amount."""
        sides = _named(total, self.spent, self.remaining)
        return {name: None if cost.pure is None else decimal_text(cost.pure, LOSS_UNITS) for name, cost in sides}

    def lines(self, name: str = "") -> list[tuple[str, str]]:
        """Pairs of a name and a text for printing the data set of this name. The share comes first: epsilons do not add up."""
        values = self.to_dict()
        unit, loss, keys, most = values["loss_unit"], values["loss"], values["delta_keys"], values["epsilon_remaining"]
        promise = f"epsilon {values['epsilon']:g}, delta {values['delta']:.3g}; can be raised to epsilon {float(self.ceiling.epsilon):g}"
        pairs = [
            ("data set", f"{name}, protects {self.protects}") if name else ("protects", self.protects),
            ("promise", promise),
            ("spent", f"{self.share_spent:.2%}: {unit} {float(loss['spent']):.4g} of {float(loss['total']):.4g}"),
            ("left", f"{1 - self.share_spent:.2%}: {unit} {float(loss['remaining']):.4g}, or one statement of epsilon {most:.3g}"),
        ]
        if self.blocks is not None:
            pairs[2:4] = [(name, f"{text}{self.place}") for name, text in pairs[2:4]] + self.blocks.lines()
        if self.budget.order is not None:
            pure = values["pure_epsilon"]
            closed_by = "more than the whole, by Gaussian noise or keys" if pure["spent"] is None else f"epsilon {float(pure['spent']):.4g}"
            pairs.insert(3, ("or pure", f"{closed_by} of {float(pure['total']):.4g}; the side with more left counts"))
        if float(keys["total"]):
            pairs.append(("for keys", f"delta {float(keys['spent']):.3g} of {float(keys['total']):.3g} spent on showing undeclared groups"))
        if self.closed:
            pairs.append(("closed", "after an incident; the owner re-opens it with `lapwing reopen`"))
        return pairs

    def gauge_html(self) -> str:
        """A bar of the spending, for a notebook."""
        return gauge_html(self.share_spent, f"{self.share_spent:.1%} spent, {1 - self.share_spent:.1%} left")

    def _repr_html_(self) -> str:
        return f"<div>{self.gauge_html()}{pairs_html(self.lines())}</div>"

    def __str__(self) -> str:
        values = self.to_dict()
        unit, pure = values["loss_unit"], ""
        if self.budget.order is not None:
            pure = " or, closed by Gaussian noise, pure epsilon"
            if self.spent.pure is not None:
                pure = f" or pure epsilon {self.spent.pure / LOSS_UNITS:.4g} of {float(values['pure_epsilon']['total']):.4g}"
        return (
            f"{self.share_spent:.1%} of the budget is spent{self.place}, {1 - self.share_spent:.1%} is left"
            f" ({unit} {float(values['loss']['spent']):.4g} of {float(values['loss']['total']):.4g}{pure};"
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
