"""A planned release in words: what is measured, how accurate it will be, what it costs. From public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from lapwing.answers.answer import CostView
from lapwing.answers.budget import BudgetView
from lapwing.answers.number_format import figure, percent
from lapwing.releases.planned import PlannedRelease
from lapwing.releases.request import Marginals, RangeTree
from lapwing.releases.tree_explained import SURE, tree_lines
from lapwing.releases.workload import subsets

SHOWN_MAX = 12
"""Tables that are listed; the rest is counted."""
VARIANCE_MIN = 1e-12
"""Noise of the least scales is nothing."""


def explained(planned: PlannedRelease, cost: CostView, budget: BudgetView, *, rows: float | None, notes: Sequence[str]) -> str:
    """The explanation, as lines of text."""
    request = planned.request
    if isinstance(request.wanted, RangeTree):
        what, about = "tree of ranges", tree_lines(planned)
    else:
        what = f"synthetic table, by {planned.method}" if planned.method else "marginals"
        about = [f"columns: {', '.join(f'{axis.column} ({axis.size} bins)' for axis in planned.axes)}", *_errors(planned, rows)]
    lines = [
        f"release {request.name}: {what}, of {request.table}",
        about[0],
        f"measured: {_counted(len(planned.tables), 'table')} of {_counted(planned.cells, 'cell')}",
        *about[1:],
        *(f"note: {note}" for note in notes),
        _price(cost, budget),
    ]
    return "\n".join(lines)


def _price(cost: CostView, budget: BudgetView) -> str:
    if cost.free:
        return "price: nothing, it was bought before"
    rho = "" if cost.rho is None else f" (rho {float(cost.rho):.3g})"
    return f"price: epsilon {cost.epsilon:.3g}{rho}, once; {percent(1 - budget.share_spent)} of the budget is left before it"


def _errors(planned: PlannedRelease, rows: float | None) -> list[str]:
    """How far a count of a cell will be off: of the marginals that were asked for, the widest first."""
    wanted = planned.request.wanted
    asked = list(combinations(range(len(planned.axes)), wanted.ways)) if isinstance(wanted, Marginals) else list(planned.tables)
    deviations = _deviations(planned, asked)
    listed = sorted(zip(deviations, asked, strict=True), reverse=True)
    lines = [_error(planned, deviation, axes, rows) for deviation, axes in listed[:SHOWN_MAX]]
    if len(listed) > SHOWN_MAX:
        lines.append(f"  ... and {_counted(len(listed) - SHOWN_MAX, 'table')} more, with less noise")
    return ["a count of one cell will be off by, in 95 of 100 cases, at most:", *lines]


def _error(planned: PlannedRelease, deviation: float, axes: Sequence[int], rows: float | None) -> str:
    names = " x ".join(planned.axes[number].column for number in axes) or "all rows"
    cells = math.prod(planned.sizes[number] for number in axes)
    moved = 0.0 if not rows else min(1.0, cells * deviation * math.sqrt(2 / math.pi) / (2 * rows))
    whole = "" if not rows else f"; over the whole table, {figure(100 * moved, digits=2)}% of the rows are in a wrong cell"
    return f"  {names}: {figure(SURE * deviation, digits=3)}{whole}"


def _deviations(planned: PlannedRelease, asked: Sequence[tuple[int, ...]]) -> list[float]:
    """The deviation of a cell of each marginal, after all tables are put together: see docs/explanation/releases.md."""
    sizes, precisions = planned.sizes, dict[tuple[int, ...], float]()
    for table, variance in zip(planned.tables, planned.variances(), strict=True):
        for part in subsets(table):
            apart = math.prod(sizes[axis] for axis in table if axis not in part)
            precisions[part] = precisions.get(part, 0.0) + 1.0 / (max(variance, VARIANCE_MIN) * apart)
    shares = (
        math.fsum(
            math.prod(1.0 - 1.0 / sizes[axis] if axis in part else 1.0 / sizes[axis] ** 2 for axis in axes) / precisions[part]
            for part in subsets(axes)
        )
        for axes in asked
    )
    return [math.sqrt(each) for each in shares]


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
