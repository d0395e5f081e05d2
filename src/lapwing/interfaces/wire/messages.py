"""Messages of PostgreSQL's protocol, version 3: read with bounded lengths, and written."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STARTUP_BYTES_MAX = 10_000
PROTOCOL = 196_608
"""Version 3.0."""
CANCEL_REQUEST = 80_877_102
TLS_REQUEST = 80_877_103
GSS_REQUEST = 80_877_104
UNLIMITED = 0


class ProtocolError(Exception):
    """The client sent something that is not a message of the protocol; it ends the connection."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A column of a result, as in a row description."""

    name: str
    type_oid: int
    type_size: int = -1
    type_modifier: int = -1
    table_oid: int = 0
    column_number: int = 0
    part: str = ""
    """Which part of a measured value is sent instead of the value: ``lo`` or ``hi`` of its error bar, or its ``mark``."""
    added: bool = False
    """Whether the column was added beside one of the answer."""


class Payload:
    """The body of a message, read from its beginning; reading beyond its end is a :class:`ProtocolError`."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        if count < 0 or self._at + count > len(self._body):
            raise ProtocolError("a message is shorter than its fields")
        taken = self._body[self._at : self._at + count]
        self._at += count
        return taken

    def text(self) -> str:
        """A text that ends in a zero byte."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolError("a string does not end")
        taken = self._body[self._at : end]
        self._at = end + 1
        try:
            return taken.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolError("a string is not in UTF-8") from error

    def int16(self) -> int:
        """A number of two bytes."""
        return int(struct.unpack("!h", self.take(2))[0])

    def int32(self) -> int:
        """A number of four bytes."""
        return int(struct.unpack("!i", self.take(4))[0])

    def oid(self) -> int:
        """An unsigned number of four bytes."""
        return int(struct.unpack("!I", self.take(4))[0])

    def count(self) -> int:
        """How many things follow."""
        return int(struct.unpack("!H", self.take(2))[0])

    def counted(self) -> bytes | None:
        """A value with its length before it; None for NULL."""
        length = self.int32()
        return None if length == -1 else self.take(length)

    def rest(self) -> bytes:
        """The remaining bytes."""
        return self.take(len(self._body) - self._at)

    def end(self) -> None:
        """Require that no bytes are left."""
        if self._at != len(self._body):
            raise ProtocolError("a message is longer than it should be")


async def read_message(reader: asyncio.StreamReader, most: int) -> tuple[bytes, bytes]:
    """The next message: its letter and its body of at most ``most`` bytes."""
    head = await reader.readexactly(5)
    length = int.from_bytes(head[1:], "big")
    if not 4 <= length <= most + 4:
        raise ProtocolError("a message is too long")
    return head[:1], await reader.readexactly(length - 4)


def message(letter: bytes, body: bytes = b"") -> bytes:
    """A message."""
    return letter + struct.pack("!I", len(body) + 4) + body


def zero_ended(text: str) -> bytes:
    """A zero-terminated text. A zero byte inside would end it early, so it is left out."""
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def field_list(fields: Iterable[tuple[str, str]]) -> bytes:
    """The fields of an error or a notice, each with its letter."""
    return b"".join(letter.encode("ascii") + zero_ended(text) for letter, text in fields) + b"\0"


def parameter_status(name: str, value: str) -> bytes:
    """The message that reports a setting."""
    return message(b"S", zero_ended(name) + zero_ended(value))


def ready(status: str) -> bytes:
    """The message that invites the next statement; ``status`` is the transaction state."""
    return message(b"Z", status.encode("ascii"))


def row_description(fields: Sequence[FieldSpec], formats: Sequence[int]) -> bytes:
    """The columns of a result; ``formats`` has one for each."""
    body = struct.pack("!H", len(fields))
    for field, form in zip(fields, formats, strict=True):
        numbers = (field.table_oid, field.column_number, field.type_oid, field.type_size, field.type_modifier, form)
        body += zero_ended(field.name) + struct.pack("!IhIhih", *numbers)
    return message(b"T", body)


def read_row_description(body: bytes) -> list[FieldSpec]:
    """The columns in a row description."""
    read = Payload(body)
    fields = []
    for _ in range(read.count()):
        name = read.text()
        table, column, of, size, modifier, _form = struct.unpack("!IhIhih", read.take(18))
        fields.append(FieldSpec(name, of, size, modifier, table, column))
    return fields


def data_row(cells: Sequence[bytes | None]) -> bytes:
    """A row."""
    parts = [struct.pack("!H", len(cells))]
    for cell in cells:
        parts.append(b"\xff\xff\xff\xff" if cell is None else struct.pack("!I", len(cell)) + cell)
    return message(b"D", b"".join(parts))


def read_data_row(body: bytes) -> list[bytes | None]:
    """The cells of a row."""
    read = Payload(body)
    return [read.counted() for _ in range(read.count())]


def parameter_description(types: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return message(b"t", struct.pack("!H", len(types)) + b"".join(struct.pack("!I", one) for one in types))


def formats_of(codes: Sequence[int], columns: int) -> list[int]:
    """One format for each column: without any all are text, a single one applies to all."""
    if not codes:
        return [0] * columns
    if len(codes) == 1:
        return [codes[0]] * columns
    if len(codes) != columns:
        raise ProtocolError("the number of formats differs from the number of columns")
    return list(codes)
