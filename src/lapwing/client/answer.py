"""An answer: the table, its error bars, what it cost and what is worth knowing about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lapwing.client.budget import BudgetView, decimal_text, epsilon_of_loss
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Account, Budget, Cost
from lapwing.kernel.intervals import Interval

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class CostView:
    """What a statement cost, in the data set's own unit and as an epsilon on its own."""

    epsilon: float
    rho: str | None
    """None for a pure data set, which is charged in epsilon."""
    delta: str
    free: bool

    @classmethod
    def of(cls, cost: Cost, budget: Budget, *, free: bool) -> CostView:
        """The cost of a certified plan; nothing when it was answered before."""
        paid = Cost.zero() if free else cost
        rho = decimal_text(paid.loss, LOSS_UNITS) if budget.account is Account.APPROXIMATE else None
        return cls(epsilon_of_loss(budget, paid.loss), rho, decimal_text(paid.delta, DELTA_UNITS), free)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"epsilon": self.epsilon, "rho": None if self.rho is None else float(self.rho), "delta": float(self.delta)}


class Answer:
    """Noisy values with error bars. ``table`` is Arrow; ``intervals`` has one (lo, hi) per row for each column that can have one."""

    def __init__(
        self,
        table: pa.Table,
        intervals: dict[str, list[Interval | None]],
        confidence: float,
        cost: CostView,
        remaining: BudgetView,
        notes: tuple[str, ...],
    ) -> None:
        self.table = table
        self.intervals = intervals
        self.confidence = confidence
        self.cost = cost
        self.remaining = remaining
        self.notes = notes

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with ``<column>_lo`` and ``<column>_hi`` beside each column that has error bars (needs pandas)."""
        frame = self.table.to_pandas()
        for name, found in self.intervals.items():
            at = frame.columns.get_loc(name)
            frame.insert(at + 1, f"{name}_lo", [math.nan if i is None else i.lo for i in found])
            frame.insert(at + 2, f"{name}_hi", [math.nan if i is None else i.hi for i in found])
        return frame

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        rows = [[_plain(value) for value in row.values()] for row in self.table.to_pylist()]
        return {
            "columns": [{"name": field.name, "type": str(field.type)} for field in self.table.schema],
            "rows": rows,
            "intervals": {name: [None if i is None else [i.lo, i.hi] for i in found] for name, found in self.intervals.items()},
            "confidence": self.confidence,
            "cost": self.cost.to_dict(),
            "remaining": self.remaining.to_dict(),
            "notes": list(self.notes),
        }

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headers and text cells, with a ± column after each column that has error bars; for terminals and notebooks."""
        headers: list[str] = []
        columns: list[list[str]] = []
        for name in self.table.column_names:
            headers.append(name)
            columns.append([show(value) for value in self.table.column(name).to_pylist()])
            if name in self.intervals:
                headers.append(f"± {self.confidence:.0%}")
                columns.append([_margin(interval) for interval in self.intervals[name]])
        return headers, [list(row) for row in zip(*columns, strict=True)] if columns else []

    def __str__(self) -> str:
        headers, rows = self.cells()
        widths = [max(len(text) for text in column) for column in zip(headers, *rows, strict=True)]
        numeric = [_looks_numeric(column) for column in zip(*rows, strict=True)] if rows else [False] * len(headers)
        lines = [_line(headers, widths, numeric), "  ".join("-" * width for width in widths)]
        lines += [_line(row, widths, numeric) for row in rows]
        return "\n".join([*lines, "", self.summary(), *(f"note: {note}" for note in self.notes)])

    def summary(self) -> str:
        """One line on cost and what is left."""
        if self.cost.free:
            return f"free; {1 - self.remaining.share_spent:.1%} of the budget is left"
        amount = "" if self.cost.rho is None else f" (rho {float(self.cost.rho):.3g})"
        return f"cost epsilon {self.cost.epsilon:.3g}{amount}; {1 - self.remaining.share_spent:.1%} of the budget is left"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from lapwing.client.notebook import answer_html

        return answer_html(self)

    def plot(self, *, value: str | None = None, ax: Axes | None = None) -> Axes:
        """Bars with error bars (needs matplotlib). ``value`` picks the column; the first with error bars by default."""
        from lapwing.client.notebook import plot_answer

        return plot_answer(self, value=value, ax=ax)


def show(value: object) -> str:
    """A value as a cell."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 1e9 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10_000 else str(value)


def _margin(interval: Interval | None) -> str:
    if interval is None:
        return ""
    half = (interval.hi - interval.lo) / 2
    return f"{half:,.0f}" if half >= 100 else f"{half:,.3g}"


def _looks_numeric(column: tuple[str, ...]) -> bool:
    return all(text in ("", "NULL") or text.replace(",", "").replace(".", "").lstrip("-").isdigit() for text in column)


def _line(cells: list[str], widths: list[int], numeric: list[bool]) -> str:
    padded = (text.rjust(width) if right else text.ljust(width) for text, width, right in zip(cells, widths, numeric, strict=True))
    return "  ".join(padded).rstrip()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
