"""A data set in a notebook: its name, remaining budget and tables."""

from __future__ import annotations

from html import escape

from lapwing.answers.answer import Answer
from lapwing.answers.display.budget import BudgetView
from lapwing.answers.display.notebook import cells_html


def data_set_html(name: str, budget: BudgetView, tables: Answer) -> str:
    """The notebook view; ``tables`` is the description of the data set."""
    heading = f"<div style='margin:.3em 0'><b>{escape(name)}</b>, protects {escape(budget.protects)}</div>"
    return f"<div>{heading}{budget.gauge_html()}{cells_html(*tables.cells())}</div>"
