"""Answers made by hand, to be drawn: values, half-widths of their error bars, and marks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.display.budget import BudgetView
from lapwing.answers.intervals import Interval
from lapwing.kernel.accounting import Cost, budget_for
from lapwing.statements import CellMark

_BUDGET = budget_for(epsilon=Fraction(1), delta=Fraction(1, 2**40))


def made_answer(columns: dict[str, Any], halves: dict[str, float], marks: dict[str, list[CellMark | None]] | None = None) -> Answer:
    """An answer whose columns in ``halves`` have error bars of that half-width."""
    spent = Cost(_BUDGET.loss_total // 4, 0)
    intervals = {
        name: [None if value is None else Interval(value - half, value + half) for value in columns[name]] for name, half in halves.items()
    }
    remaining = BudgetView(_BUDGET, _BUDGET, spent, closed=False, unit="patient")
    return Answer(pa.table(columns), intervals, 0.95, CostView.of(spent, _BUDGET, free=False), remaining, (), marks=marks)
