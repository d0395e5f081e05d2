"""Results on their way out: rows of an answer, encoded by ourselves, and rows of the shadow, as it sent them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lapwing.answers.answer import Answer
from lapwing.curator.asked_columns import AskedColumns
from lapwing.errors import CallRefused, LapwingError
from lapwing.wire.commands import CopyOut
from lapwing.wire.messages import FieldSpec, data_row
from lapwing.wire.shadow_link import ShadowRows
from lapwing.wire.values import FLOAT8, SIZES, TEXT, encoded, type_of

CELL_BYTES = 64
"""Of a cell of an answer, beside what its table takes."""
_COPY_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack("!II", 0, 0)


class RowsToSend(Protocol):
    """Rows that can be sent in formats."""

    @property
    def size(self) -> int:
        """Bytes that they take, about."""

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
    """Rows of the shadow, in the formats that it was asked for: sent on as they came."""

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
            raise CallRefused("wire-statement", "rows of this cursor were fetched in another format before")


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """What came of a statement: rows, if it gives any, the words that end it, and notices that come before."""

    tag: str
    fields: tuple[FieldSpec, ...] | None = None
    rows: RowsToSend | None = None
    notices: tuple[str, ...] = ()
    status: tuple[str, str] | None = None
    """A setting that clients are told of."""
    copied: CopyOut | None = None
    """Rows are sent as a copy."""


def fields_of(columns: AskedColumns, beside: Sequence[str]) -> tuple[FieldSpec, ...]:
    """The columns of an answer, and beside each that is measured those that are asked for: ends of error bars, marks."""
    fields: list[FieldSpec] = []
    for field in columns.schema:
        of = type_of(field.type)
        fields.append(FieldSpec(field.name, of, SIZES.get(of, -1)))
        if field.name in columns.measured:
            types = [TEXT if end == "_mark" else FLOAT8 for end in beside]
            fields += [FieldSpec(field.name + end, of, SIZES.get(of, -1), beside=end) for end, of in zip(beside, types, strict=True)]
    return tuple(fields)


def rows_of(
    answer: Answer, told: Sequence[FieldSpec] | None, beside: Sequence[str], *, noise_as_null: bool
) -> tuple[tuple[FieldSpec, ...], AnswerRows]:
    """The rows of an answer and their columns, which must be those that were told before."""
    schema, rows = answer.table.schema, answer.table.num_rows
    fields = tuple(told or fields_of(AskedColumns(schema, (*answer.intervals, *answer.marks)), beside))
    if [(one.name, one.type_oid) for one in fields if not one.beside] != [(one.name, type_of(one.type)) for one in schema]:
        raise LapwingError("internal", "the columns of the answer are not those that were told")
    columns: list[list[Any]] = []
    name, nothing, own = "", [None] * rows, iter(answer.table.columns)
    for field in fields:
        if field.beside == "_mark":
            columns.append([None if mark is None else mark.value for mark in answer.marks.get(name, nothing)])
        elif field.beside:
            columns.append([None if bar is None else getattr(bar, field.beside[1:]) for bar in answer.intervals.get(name, nothing)])
        else:
            name = field.name
            values = next(own).to_pylist()
            if noise_as_null:
                values = [None if noise else value for value, noise in zip(values, answer.noise_only(name), strict=True)]
            columns.append(values)
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
    """Pre: the first escape is of the sign that all of them begin with. Quick for a text of many MiB."""
    for sign, escape in escapes.items():
        text = text.replace(sign, escape)
    return text


def _quoted(text: str, delimiter: str, null: str) -> str:
    """A field of CSV; what would be read as NULL is quoted."""
    plain = text != null and text != "\\." and not any(sign in text for sign in (delimiter, '"', "\n", "\r"))
    return text if plain else '"' + text.replace('"', '""') + '"'
