"""Answers to Lapwing's own statements as tables: the results of EXPLAIN PRIVACY and SHOW PRIVACY BUDGET in SQL."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.display.budget import BudgetView
from lapwing.asking.explaining.explanation import Explanation
from lapwing.introspection.descriptions import MetadataTable
from lapwing.kernel.accounting import Cost


def explained_answer(explanation: Explanation, budget: BudgetView, *, confidence: Fraction) -> Answer:
    """The lines of an explanation, one row each, in columns ``what`` and ``privacy``."""
    table = pa.table({"what": [name for name, _ in explanation.lines], "privacy": [text for _, text in explanation.lines]})
    return _free(table, budget, confidence=float(confidence), notes=("nothing was asked and nothing was charged",))


def budget_answer(budget: BudgetView, *, confidence: Fraction) -> Answer:
    """The budget in four columns: the amount's name, its total, the part spent and the part left, as numbers.

    ``epsilon`` is the equivalent of each amount on its own; these do not add up if rho is charged.
    """
    values = budget.to_dict()
    names = ["share", values["loss_unit"]]
    loss = [float(values["loss"][part]) for part in ("total", "spent", "remaining")]
    rows = [[1.0, values["share_spent"], values["share_remaining"]], loss]
    if values["loss_unit"] != "epsilon":
        names.append("epsilon")
        rows.append([values["epsilon"], values["epsilon_spent"], values["epsilon_remaining"]])
    if float(values["delta_keys"]["total"]):
        names.append("delta for keys")
        rows.append([float(values["delta_keys"][part]) for part in ("total", "spent", "remaining")])
    total, spent, left = (pa.array(column, pa.float64()) for column in zip(*rows, strict=True))
    table = pa.table({"amount": names, "total": total, "spent": spent, "remaining": left})
    closed = ("the data set is closed until the owner opens it again",) if budget.closed else ()
    return _free(table, budget, confidence=float(confidence), notes=(budget.promise, *closed))


def described_answer(described: MetadataTable, budget: BudgetView, *, confidence: Fraction) -> Answer:
    """The answer to a metadata statement."""
    return _free(described.table, budget, confidence=float(confidence), notes=described.notes)


def _free(table: pa.Table, budget: BudgetView, *, confidence: float, notes: tuple[str, ...]) -> Answer:
    cost = CostView.of(Cost.zero(), budget.budget, free=True)
    return Answer(table, {}, confidence, cost, budget, notes)
