"""A planned release as text: its measures, accuracy and cost. From public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from lapwing.answers.answer import CostView
from lapwing.answers.display.budget import BudgetView, decimal_text
from lapwing.answers.display.number_format import figure
from lapwing.kernel.accounting import LOSS_UNITS, Account
from lapwing.releases.marginals.workload import subsets
from lapwing.releases.plan import PlannedRelease, PlannedSection
from lapwing.releases.request import Marginals, RangeTree, SyntheticTable
from lapwing.releases.tree_explanation import SURE, tree_lines

SHOWN_MAX = 12
"""Maximum number of listed tables; the others are only counted."""
VARIANCE_MIN = 1e-12
"""Below this deviation noise counts as 0."""


def explained(planned: PlannedRelease, cost: CostView, budget: BudgetView, *, rows: float | None, notes: Sequence[str]) -> str:
    """The explanation, as lines of text."""
    request = planned.request
    measured = f"measured: {_counted(len(planned.tables), 'table')} of {_counted(planned.cells, 'cell')}"
    found = {number: part for section in planned.sections for number, part in _parts(planned, section, rows).items()}
    parts = [found[number] for number in range(len(request.wanted))]
    if len(parts) == 1:
        what, (columns, *errors) = parts[0]
        about = [f"release {request.name}: {what}, of {request.table}", columns, measured, *errors]
    else:
        about = [f"release {request.name}: {len(parts)} parts, of {request.table}", f"{measured}, under one charge"]
        for number, ((what, lines), share) in enumerate(zip(parts, request.price_shares(), strict=True), start=1):
            about += [f"{number}. {what}: {_share(share, planned, cost)}", *(f"   {line}" for line in lines)]
        if any(len(section.section.parts) > 1 for section in planned.sections):
            about.append("marginals and synthetic tables are put together: what is measured for one of them makes the others better")
    return "\n".join([*about, *(f"note: {note}" for note in notes), _price(cost, budget)])


def _parts(planned: PlannedRelease, section: PlannedSection, rows: float | None) -> dict[int, tuple[str, list[str]]]:
    """The name of each part of a section, its columns, and the errors of its counts."""
    pure = planned.certified.facts.account is Account.PURE
    found: dict[int, tuple[str, list[str]]] = {}
    for number, wanted in section.section.parts:
        if isinstance(wanted, RangeTree):
            found[number] = "tree of ranges", tree_lines(section, pure=pure)
            continue
        axes = section.section.numbers(wanted)
        columns = [section.axes[axis] for axis in axes]
        what = f"synthetic table, by {section.methods[number]}" if number in section.methods else "marginals"
        lines = [f"columns: {', '.join(f'{axis.column} ({axis.size} bins)' for axis in columns)}", *_errors(section, wanted, axes, rows)]
        found[number] = what, lines
    return found


def _share(share: Fraction, planned: PlannedRelease, cost: CostView) -> str:
    loss = float(decimal_text(planned.certified.cost.loss, LOSS_UNITS)) * float(share)
    unit = "epsilon" if cost.rho is None else "rho"
    return f"{figure(100 * float(share), digits=3)}% of the price ({unit} {loss:.3g})"


def _price(cost: CostView, budget: BudgetView) -> str:
    if cost.free:
        return "price: nothing, it was bought before"
    rho = "" if cost.rho is None else f" (rho {float(cost.rho):.3g})"
    return (
        f"price: epsilon {cost.epsilon:.3g}{rho}, once; {figure(100 * (1 - budget.share_spent), digits=3)}% of the budget is left before it"
    )


def _errors(section: PlannedSection, wanted: Marginals | SyntheticTable, axes: tuple[int, ...], rows: float | None) -> list[str]:
    """The error of a count of a cell for the requested marginals, the widest first."""
    if isinstance(wanted, Marginals):
        asked = list(combinations(axes, wanted.ways))
    else:
        asked = [table for table in section.tables if set(table) <= set(axes)]
    deviations = _deviations(section, asked)
    listed = sorted(zip(deviations, asked, strict=True), reverse=True)
    lines = [_error(section, deviation, table, rows) for deviation, table in listed[:SHOWN_MAX]]
    if len(listed) > SHOWN_MAX:
        lines.append(f"  ... and {_counted(len(listed) - SHOWN_MAX, 'table')} more, with less noise")
    return ["a count of one cell will be off by, in 95 of 100 cases, at most:", *lines]


def _error(planned: PlannedSection, deviation: float, axes: Sequence[int], rows: float | None) -> str:
    names = " x ".join(planned.axes[number].column for number in axes) or "all rows"
    cells = math.prod(planned.sizes[number] for number in axes)
    moved = 0.0 if not rows else min(1.0, cells * deviation * math.sqrt(2 / math.pi) / (2 * rows))
    whole = "" if not rows else f"; over the whole table, {figure(100 * moved, digits=2)}% of the rows are in a wrong cell"
    return f"  {names}: {figure(SURE * deviation, digits=3)}{whole}"


def _deviations(planned: PlannedSection, asked: Sequence[tuple[int, ...]]) -> list[float]:
    """The deviation of a cell of each marginal, after all tables are combined: see docs/explanation/releases.md."""
    sizes, precisions = planned.sizes, dict[tuple[int, ...], float]()
    for table, variance in zip(planned.tables, planned.variances, strict=True):
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
