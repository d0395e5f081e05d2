"""Results to send: rows of an answer, which Lapwing encodes, and rows of the shadow, as it sent them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lapwing.answers.answer import Answer
from lapwing.asking.result_columns import ResultColumns
from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.wire.commands import CopyOut
from lapwing.interfaces.wire.messages import FieldSpec, data_row
from lapwing.interfaces.wire.settings import AnswerShape
from lapwing.interfaces.wire.shadow.link import ShadowRows
from lapwing.interfaces.wire.values import FLOAT8, SIZES, TEXT, encoded, type_of

CELL_BYTES = 64
"""Bytes of a cell of an answer, besides those of its table."""
ENDS = {"_lo": "lo", "_hi": "hi", "__yhat_lower": "lo", "__yhat_upper": "hi"}
"""Suffixes of columns that hold ends of error bars; Superset draws a band between the last two."""
_COPY_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack("!II", 0, 0)


class RowsToSend(Protocol):
    """Rows that can be sent in given formats."""

    @property
    def size(self) -> int:
        """Their approximate size in bytes."""

    def __len__(self) -> int: ...

    def cells(self, place: int, formats: Sequence[int]) -> list[bytes | None]:
        """A row in these formats."""

    def messages(self, first: int, last: int, formats: Sequence[int]) -> bytes:
        """Some rows as messages."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AnswerRows:
    """Rows of an answer."""

    columns: tuple[list[Any], ...]
    types: tuple[int, ...]
    count: int
    size: int = 0

    def __len__(self) -> int:
        return self.count

    def cells(self, place: int, formats: Sequence[int]) -> list[bytes | None]:
        return [encoded(column[place], of, form) for column, of, form in zip(self.columns, self.types, formats, strict=True)]

    def messages(self, first: int, last: int, formats: Sequence[int]) -> bytes:
        return b"".join(data_row(self.cells(place, formats)) for place in range(first, last))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ShadowCells:
    """Rows of the shadow in the requested formats, forwarded unchanged."""

    given: ShadowRows
    formats: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.given.data) + 4 * len(self)

    def __len__(self) -> int:
        return len(self.given.ends)

    def cells(self, place: int, formats: Sequence[int]) -> list[bytes | None]:
        self._require(formats)
        return self.given.cells(place)

    def messages(self, first: int, last: int, formats: Sequence[int]) -> bytes:
        self._require(formats)
        return self.given.messages(first, last)

    def _require(self, formats: Sequence[int]) -> None:
        if tuple(formats) != self.formats:
            raise CallRefused("wire-statement", "rows of this cursor were fetched before in another format")


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """The outcome of a statement: its rows, if any, its completion tag, and the notices that precede it."""

    tag: str
    fields: tuple[FieldSpec, ...] | None = None
    rows: RowsToSend | None = None
    notices: tuple[str, ...] = ()
    status: tuple[str, str] | None = None
    """A setting to report to the client."""
    copied: CopyOut | None = None
    """Set if the rows are sent as a copy."""


def fields_of(columns: ResultColumns, shape: AnswerShape) -> tuple[FieldSpec, ...]:
    """The columns of an answer, and beside each measured one the requested parts: ends of error bars, marks."""
    fields: list[FieldSpec] = []
    for field in columns.schema:
        measured = field.name in columns.measured
        part = next((part for end, part in ENDS.items() if field.name.endswith(end)), "") if shape.named and measured else ""
        of = FLOAT8 if part else type_of(field.type)
        fields.append(FieldSpec(field.name, of, SIZES.get(of, -1), part=part))
        for part in shape.added if measured else ():
            of = TEXT if part == "mark" else FLOAT8
            fields.append(FieldSpec(f"{field.name}_{part}", of, SIZES.get(of, -1), part=part, added=True))
    return tuple(fields)


def rows_of(answer: Answer, told: Sequence[FieldSpec] | None, shape: AnswerShape) -> tuple[tuple[FieldSpec, ...], AnswerRows]:
    """The rows of an answer and their columns, which must be those described before."""
    rows = answer.table.num_rows
    fields = tuple(told or fields_of(ResultColumns(answer.table.schema, (*answer.intervals, *answer.marks)), shape))
    own = [field for field in fields if not field.added]
    found = [(one.name, one.part or type_of(of)) for one, of in zip(own, answer.table.schema.types, strict=False)]
    if answer.table.column_names != [one.name for one in own] or found != [(one.name, one.part or one.type_oid) for one in own]:
        raise LapwingError("internal", "the columns of the answer are not those described before")
    columns: list[list[Any]] = []
    name, nothing, values = "", [None] * rows, iter(answer.table.columns)
    for field in fields:
        column = [] if field.added else next(values).to_pylist()
        name = name if field.added else field.name
        if field.part == "mark":
            column = [None if mark is None else mark.value for mark in answer.marks.get(name, nothing)]
        elif field.part:
            column = [None if bar is None else getattr(bar, field.part) for bar in answer.intervals.get(name, nothing)]
        elif shape.noise_as_null:
            column = [None if noise else value for value, noise in zip(column, answer.noise_only(name), strict=True)]
        columns.append(column)
    size = answer.table.nbytes + CELL_BYTES * rows * len(columns)
    return fields, AnswerRows(tuple(columns), tuple(field.type_oid for field in fields), rows, size)


def copied(copy: CopyOut, fields: Sequence[FieldSpec], rows: RowsToSend) -> Iterator[bytes]:
    """The pieces of a copy."""
    formats = [int(copy.form == "binary")] * len(fields)
    head = _COPY_SIGNATURE if copy.form == "binary" else b""  # goes with the first row, as PostgreSQL sends it
    if copy.header and copy.form != "binary":
        yield _line(copy, [field.name.encode() for field in fields])
    for place in range(len(rows)):
        cells = rows.cells(place, formats)
        if copy.form == "binary":
            lengths = (b"\xff\xff\xff\xff" if cell is None else struct.pack("!I", len(cell)) + cell for cell in cells)
            yield head + struct.pack("!H", len(cells)) + b"".join(lengths)
            head = b""
        else:
            yield _line(copy, cells)
    if copy.form == "binary":
        yield head + b"\xff\xff"


def _line(copy: CopyOut, cells: Sequence[bytes | None]) -> bytes:
    if copy.form == "text":
        null, delimiter = ("\\N" if copy.null is None else copy.null), copy.delimiter or "\t"
        escapes = {"\\": "\\\\", delimiter: f"\\{delimiter}"} | {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
        texts = (null if cell is None else _replaced(cell.decode(), escapes) for cell in cells)
        return (delimiter.join(texts) + "\n").encode()
    null, delimiter = copy.null or "", copy.delimiter or ","
    return (delimiter.join(null if cell is None else _quoted(cell.decode(), delimiter, null) for cell in cells) + "\n").encode()


def _replaced(text: str, escapes: Mapping[str, str]) -> str:
    """Replace characters by their escapes, fast even for many MiB. Pre: the first escape is that of the escape character itself."""
    for sign, escape in escapes.items():
        text = text.replace(sign, escape)
    return text


def _quoted(text: str, delimiter: str, null: str) -> str:
    """A field of CSV; what would be read as NULL is quoted."""
    plain = text != null and text != "\\." and not any(sign in text for sign in (delimiter, '"', "\n", "\r"))
    return text if plain else '"' + text.replace('"', '""') + '"'
