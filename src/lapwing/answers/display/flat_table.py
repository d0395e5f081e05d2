"""An answer as one flat table: each column is followed by the ends of its error bars and by its marks, where it has them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lapwing.answers.intervals import Interval
from lapwing.statements import CellMark


def flat_table(
    table: pa.Table, intervals: Mapping[str, Sequence[Interval | None]], marks: Mapping[str, Sequence[CellMark | None]]
) -> pa.Table:
    """The table with ``<column>_lo`` and ``<column>_hi`` after each column that has error bars, and ``<column>_mark`` after each that comes
    from noisy values."""
    names: list[str] = []
    columns: list[pa.Array | pa.ChunkedArray] = []
    for place, name in enumerate(table.column_names):
        names.append(name)
        columns.append(table.column(place))
        if name in intervals:
            bars = intervals[name]
            names += [f"{name}_lo", f"{name}_hi"]
            columns.append(pa.array([None if bar is None else bar.lo for bar in bars], pa.float64()))
            columns.append(pa.array([None if bar is None else bar.hi for bar in bars], pa.float64()))
        if name in marks:
            names.append(f"{name}_mark")
            columns.append(pa.array([None if mark is None else mark.value for mark in marks[name]], pa.string()))
    return pa.table(columns, names=names) if names else table


_FORMULA = re.compile("[=+@\\t\\r\\n-]")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")


def flat_csv(values: Mapping[str, Any], *, for_sheets: bool = False) -> str:
    """The same in CSV, from the JSON form of an answer; NULL is an empty field.

    With ``for_sheets`` spreadsheets do not read a text as a formula: a text that could be one gets a leading apostrophe.
    """
    headers: list[str] = []
    columns: list[Sequence[Any]] = []
    for place, column in enumerate(values["columns"]):
        name = column["name"]
        headers.append(name)
        columns.append([row[place] for row in values["rows"]])
        if name in values["intervals"]:
            bounds = [(None, None) if pair is None else pair for pair in values["intervals"][name]]
            headers += [f"{name}_lo", f"{name}_hi"]
            columns += [[lo for lo, _ in bounds], [hi for _, hi in bounds]]
        if name in values["marks"]:
            headers.append(f"{name}_mark")
            columns.append(values["marks"][name])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = ([*headers], *zip(*columns, strict=True))
    writer.writerows(([_no_formula(cell) for cell in row] for row in rows) if for_sheets else rows)
    return text.getvalue()


def _no_formula(cell: object) -> object:
    is_one = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_one else cell
