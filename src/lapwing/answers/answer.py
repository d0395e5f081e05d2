"""An answer: the table, its error bars, its cost and its notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lapwing.answers.display.budget import BudgetView, decimal_text, epsilon_of_cost
from lapwing.answers.display.charts import plotted
from lapwing.answers.display.error_bar_text import bars_in_words, decimals_of, margin_text, number_text
from lapwing.answers.display.flat_table import flat_csv, flat_table
from lapwing.answers.display.frames import frame_attributes
from lapwing.answers.display.mark_text import footnotes, noise_in_words, with_signs
from lapwing.answers.display.notebook import table_html
from lapwing.answers.display.number_format import cell_text, percent
from lapwing.answers.intervals import Interval
from lapwing.errors import LedgerError
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Account, Budget, Cost
from lapwing.receipts import Receipt, check, receipt_fields
from lapwing.statements import CellMark

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
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
        """The cost of a certified plan; zero if it was answered before."""
        paid = Cost.zero() if free else cost
        rho = decimal_text(paid.loss, LOSS_UNITS) if budget.account is Account.APPROXIMATE else None
        return cls(epsilon_of_cost(budget, paid), rho, decimal_text(paid.delta, DELTA_UNITS), free)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"epsilon": self.epsilon, "rho": None if self.rho is None else float(self.rho), "delta": float(self.delta)}


class Answer:
    """Noisy values with error bars. ``table`` is Arrow; ``intervals`` has one (lo, hi) per row for each column that can have one.

    ``marks`` has one mark or None per row for each column that comes from noisy values: a marked cell is not an ordinary value, and where
    it is meaningless the table has NULL.

    ``stored`` is the release that the table was computed from, byte for byte as stored in the ledger; ``receipt`` is signed for these
    bytes, and states their price; for the payer also who paid, when and how. Both are None where nothing was measured, and ``receipt``
    also where no signing key is declared.
    """

    def __init__(
        self,
        table: pa.Table,
        intervals: dict[str, list[Interval | None]],
        confidence: float,
        cost: CostView,
        remaining: BudgetView,
        notes: tuple[str, ...],
        *,
        marks: Mapping[str, Sequence[CellMark | None]] | None = None,
        receipt: Receipt | None = None,
        stored: bytes | None = None,
    ) -> None:
        self.table = table
        self.intervals = intervals
        self.marks = {name: list(column) for name, column in (marks or {}).items()}
        self.confidence = confidence
        self.cost = cost
        self.remaining = remaining
        self.notes = notes
        self.receipt = receipt
        self.stored = stored

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dictionary with the names of :meth:`to_arrow`."""
        return iter(self.to_arrow().to_pylist())

    def noise_only(self, column: str) -> list[bool]:
        """Which values of a column are no larger than their noise."""
        return [mark is CellMark.NOISE_ONLY for mark in self.marks.get(column, [None] * len(self))]

    def to_arrow(self) -> pa.Table:
        """A table with ``<column>_lo`` and ``<column>_hi`` after each column that has error bars, and ``<column>_mark`` after each that
        comes from noisy values."""
        return flat_table(self.table, self.intervals, self.marks)

    def to_pandas(self) -> pd.DataFrame:
        """The same as a data frame (needs pandas). ``attrs["lapwing"]`` has price and notes, and which columns are bars and marks."""
        frame = self.to_arrow().to_pandas()
        frame.attrs.update(frame_attributes(list(frame.columns), self.in_words()))
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The same as a data frame of Polars (needs polars)."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_csv(self) -> str:
        """The same as CSV; NULL is an empty field."""
        return flat_csv(self.to_dict())

    def check_receipt(self, keys: str | Path) -> None:
        """Refuse (``receipt-invalid``) unless one of the public keys in this directory signed for the stored answer.

        Answers that measure nothing have no signature.
        """
        if self.stored is None:
            return
        if self.receipt is None:
            raise LedgerError("receipt-invalid", "the answer comes without a receipt")
        check(self.receipt, Path(keys), answer=self.stored)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        rows = [[_plain(value) for value in row.values()] for row in self.table.to_pylist()]
        return {
            "columns": [{"name": field.name, "type": str(field.type)} for field in self.table.schema],
            "rows": rows,
            "intervals": {name: [None if i is None else [i.lo, i.hi] for i in bars] for name, bars in self.intervals.items()},
            "marks": {name: [None if mark is None else mark.value for mark in marks] for name, marks in self.marks.items()},
            "confidence": self.confidence,
            "cost": self.cost.to_dict(),
            "remaining": self.remaining.to_dict(),
            "notes": list(self.notes),
            "receipt": None if self.receipt is None else receipt_fields(self.receipt),
        }

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headers and text cells, with a ± column after each column that has error bars; for terminals and notebooks.

        A number with an error bar is shown to the third digit of the bar. If the bar is asymmetric, because values have a public bound,
        both sides are given: ``-0 +155``. A marked cell is followed by the sign of its mark, which :meth:`footnotes` explain.
        """
        headers: list[str] = []
        columns: list[list[str]] = []
        for name in self.table.column_names:
            values, intervals = self.table.column(name).to_pylist(), self.intervals.get(name)
            headers.append(name)
            if intervals is None:
                columns.append(with_signs([cell_text(value) for value in values], self.marks.get(name)))
                continue
            decimals = decimals_of(values, intervals)
            columns.append(with_signs([number_text(value, decimals) for value in values], self.marks.get(name)))
            headers.append(f"± {percent(self.confidence)}")
            columns.append([margin_text(value, interval, decimals) for value, interval in zip(values, intervals, strict=True)])
        return headers, [list(row) for row in zip(*columns, strict=True)] if columns else []

    def __str__(self) -> str:
        headers, rows = self.cells()
        if not headers:
            return "\n".join([self.summary(), *self._below()])
        widths = [max(len(text) for text in column) for column in zip(headers, *rows, strict=True)]
        numeric = self.right_aligned()
        lines = [_line(headers, widths, numeric), "  ".join("-" * width for width in widths)]
        lines += [_line(row, widths, numeric) for row in rows]
        return "\n".join([*lines, "", self.summary(), *self._below()])

    def footnotes(self) -> list[str]:
        """The meaning of the signs of marks in the table, a line for each sign."""
        return footnotes(self.marks)

    def _below(self) -> list[str]:
        """The receipt, the footnotes and the notes, a line each."""
        signed = [] if self.receipt is None else [receipt_line(self.receipt)]
        return [*signed, *self.footnotes(), *(f"note: {note}" for note in self.notes)]

    def right_aligned(self) -> list[bool]:
        """Flags of the printed columns with numbers."""
        from pyarrow import types

        right: list[bool] = []
        for field in self.table.schema:
            right.append(types.is_integer(field.type) or types.is_floating(field.type) or types.is_decimal(field.type))
            right += [True] if field.name in self.intervals else []
        return right

    def summary(self) -> str:
        """One line on the cost and the remaining budget."""
        if self.cost.free:
            return f"free; {self.remaining.left_text}"
        amount = "" if self.cost.rho is None else f" (rho {float(self.cost.rho):.3g})"
        return f"cost epsilon {self.cost.epsilon:.3g}{amount}; {self.remaining.left_text}"

    def in_words(self) -> list[str]:
        """For readers of the values alone: error bars, price and remaining budget in one line, then the values that are noise, then
        notes."""
        described = [bars_in_words(name, self.table.column(name).to_pylist(), bars) for name, bars in self.intervals.items()]
        bars = ", ".join(words for words in described if words)
        first = f"{bars} at {percent(self.confidence)}; {self.summary()}" if bars else self.summary()
        return [first, *noise_in_words(self.marks), *self.notes]

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        headers, rows = self.cells()
        marked = self._marked_cells()
        return table_html(headers, rows, right_aligned=self.right_aligned(), marked=marked, summary=self.summary(), below=self._below())

    def _marked_cells(self) -> list[list[bool]]:
        """Flags of the printed cells that are marked as doubtful, or are error bars of such cells."""
        columns = []
        for name in self.table.column_names:
            marks = [mark is not None and mark is not CellMark.SCALED for mark in self.marks.get(name, [None] * self.table.num_rows)]
            columns += [marks] * (2 if name in self.intervals else 1)
        return [list(row) for row in zip(*columns, strict=True)]

    def plot(self, *, value: str | None = None, ax: Axes | None = None) -> Axes:
        """Bars with error bars, or over time a line with a band, one for each value of another key (needs matplotlib). ``value`` picks
        the column; the first with error bars by default.

        Marked values are hollow, dashed or missing, and do not affect the scale.
        """
        title = f"error bars {percent(self.confidence)}; {self.summary()}"
        return plotted(self.table, self.intervals, self.marks, value=value, title=title, ax=ax)


def receipt_line(receipt: Receipt) -> str:
    """A receipt in a line: who paid, by which entry, signed with which key."""
    statement = receipt.statement
    charge = f"charge {statement.charge_id}, paid by {statement.analyst}, entry {statement.entry_id}"
    return f"receipt: {charge if statement.names_payer else 'paid by another analyst'}, signed with {receipt.key_id[:8]}"


def _line(cells: list[str], widths: list[int], numeric: list[bool]) -> str:
    padded = (text.rjust(width) if right else text.ljust(width) for text, width, right in zip(cells, widths, numeric, strict=True))
    return "  ".join(padded).rstrip()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
