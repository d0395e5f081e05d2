"""An answer as one flat table: each column is followed by the ends of its error bars and by its marks, where it has them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lapwing.answers.answer import Answer


def flat_table(answer: Answer) -> pa.Table:
    """The table with ``<column>_lo`` and ``<column>_hi`` after each column that has error bars, and ``<column>_mark`` after each that comes
    from noisy values."""
    names: list[str] = []
    columns: list[pa.Array | pa.ChunkedArray] = []
    for place, name in enumerate(answer.table.column_names):
        names.append(name)
        columns.append(answer.table.column(place))
        if name in answer.intervals:
            bars = answer.intervals[name]
            names += [f"{name}_lo", f"{name}_hi"]
            columns.append(pa.array([None if bar is None else bar.lo for bar in bars], pa.float64()))
            columns.append(pa.array([None if bar is None else bar.hi for bar in bars], pa.float64()))
        if name in answer.marks:
            names.append(f"{name}_mark")
            columns.append(pa.array([None if mark is None else mark.value for mark in answer.marks[name]], pa.string()))
    return pa.table(columns, names=names) if names else answer.table


def answer_csv(answer: Answer) -> str:
    """The same in CSV; NULL is an empty field."""
    values = answer.to_dict()
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
    writer.writerow(headers)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()
