"""A client connection to the shadow database: one query at a time, bounded in rows and bytes."""

from __future__ import annotations

import asyncio
import ssl
import struct
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lapwing.errors import CallRefused
from lapwing.interfaces.wire.messages import (
    CANCEL_REQUEST,
    PROTOCOL,
    TLS_REQUEST,
    FieldSpec,
    Payload,
    ProtocolError,
    message,
    read_data_row,
    read_message,
    read_row_description,
    zero_ended,
)
from lapwing.interfaces.wire.refusals import ShadowError
from lapwing.interfaces.wire.scram import MECHANISM, ClientExchange

RESULT_BYTES_MAX = 8 * 2**20
"""The total size of all messages that answer one query."""
ROWS_MAX = 50_000
_HEAD_BYTES = 5
"""A message's letter and its length."""
PIECE_BYTES = 2**16
"""Bytes read at once before other tasks run."""
CANCEL_AGAIN_SECONDS = 0.3
"""Cancellation is repeated, because PostgreSQL does not process messages while it compiles a long query (JIT)."""
STOP_SECONDS = 15.0
"""How long to wait for a cancelled query: longer than PostgreSQL itself lets it run."""


@dataclass(frozen=True, slots=True)
class ShadowAddress:
    """The address of a data set's shadow, with the role and its password."""

    host: str
    """A name, an address, or the directory of a socket."""
    port: int
    database: str
    role: str
    password: str = field(repr=False)
    encrypted: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """The shadow's description of a query before it runs."""

    parameters: tuple[int, ...]
    fields: tuple[FieldSpec, ...] | None
    """None if it returns no rows."""


@dataclass(frozen=True, slots=True)
class ShadowRows:
    """The rows of a query in the requested formats, as one sequence of unchanged messages."""

    data: bytes
    ends: Sequence[int]
    """Where each message ends."""
    tag: str = ""

    def messages(self, first: int, last: int) -> bytes:
        """The messages of these rows."""
        return self.data[self._start(first) : self._start(last)]

    def cells(self, place: int) -> list[bytes | None]:
        """The cells of a row."""
        return read_data_row(self.data[self._start(place) + _HEAD_BYTES : self.ends[place]])

    @property
    def rows(self) -> list[list[bytes | None]]:
        """The cells of all rows."""
        return [self.cells(place) for place in range(len(self.ends))]

    def _start(self, place: int) -> int:
        return self.ends[place - 1] if place else 0


class ShadowLink:
    """One connection. Not shared: a pool lends it to one session at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: ShadowAddress) -> None:
        self._reader, self._writer, self._address = reader, writer, address
        self._key = b""
        self._ahead = bytearray()
        """Bytes that were read beyond the last complete message."""
        self.idle = True
        """Whether the shadow is ready for the next query."""
        self.server_version = ""

    @classmethod
    async def open(cls, address: ShadowAddress) -> ShadowLink:
        """Connect and log in, or ``OSError``, :class:`ShadowError`, ``ScramFailed``."""
        reader, writer = await _connected(address)
        link = cls(reader, writer, address)
        words = {"user": address.role, "database": address.database, "client_encoding": "UTF8", "application_name": "lapwing wire"}
        body = struct.pack("!I", PROTOCOL) + b"".join(zero_ended(n) + zero_ended(v) for n, v in words.items()) + b"\0"
        writer.write(struct.pack("!I", len(body) + 4) + body)
        try:
            await link._log_in()
        except BaseException:
            writer.close()
            raise
        return link

    async def _log_in(self) -> None:
        exchange = ClientExchange(self._address.password)
        while True:
            letter, body = await read_message(self._reader, PIECE_BYTES)
            read = Payload(body)
            if letter == b"E":
                raise ShadowError(body)
            if letter == b"R":
                match read.int32():
                    case 0:
                        continue
                    case 10 if MECHANISM.encode() in read.rest().split(b"\0"):
                        first = exchange.first()
                        self._writer.write(message(b"p", zero_ended(MECHANISM) + struct.pack("!i", len(first)) + first))
                    case 11:
                        self._writer.write(message(b"p", exchange.final(read.rest())))
                    case 12:
                        exchange.check(read.rest())
                    case _:
                        raise ProtocolError("the shadow requires a login method that is not supported")
            elif letter == b"S" and read.text() == "server_version":
                self.server_version = read.text()
            elif letter == b"K":
                self._key = body
            elif letter == b"Z":
                return

    async def prepare(self, text: str, types: Sequence[int]) -> Prepared:
        """Have a query parsed, and receive its parameters and columns. PostgreSQL takes one statement here, never several."""
        kinds = struct.pack("!H", len(types)) + b"".join(struct.pack("!I", one) for one in types)
        self._send(message(b"P", zero_ended("") + zero_ended(text) + kinds) + message(b"D", b"S\0") + message(b"S"))
        parameters: tuple[int, ...] = ()
        fields: tuple[FieldSpec, ...] | None = None
        for letter, body in (await self._until_ready())[0]:
            if letter == b"t":
                read = Payload(body)
                parameters = tuple(read.oid() for _ in range(read.count()))
            elif letter == b"T":
                fields = tuple(read_row_description(body))
        return Prepared(parameters, fields)

    async def run(
        self, text: str, types: Sequence[int], values: Sequence[bytes | None], forms: Sequence[int], formats: Sequence[int]
    ) -> ShadowRows:
        """The rows of a query with these values of its parameters."""
        kinds = struct.pack("!H", len(types)) + b"".join(struct.pack("!I", one) for one in types)
        bound = b"\0\0" + struct.pack(f"!H{len(forms)}h", len(forms), *forms) + struct.pack("!H", len(values))
        bound += b"".join(b"\xff\xff\xff\xff" if one is None else struct.pack("!I", len(one)) + one for one in values)
        bound += struct.pack(f"!H{len(formats)}h", len(formats), *formats)
        execute = b"\0" + struct.pack("!i", ROWS_MAX + 1)  # PostgreSQL stops there, and reports it
        parts = [(b"P", zero_ended("") + zero_ended(text) + kinds), (b"B", bound), (b"E", execute), (b"S", b"")]
        self._send(b"".join(message(letter, body) for letter, body in parts))
        others, rows = await self._until_ready()
        if any(letter == b"s" for letter, _ in others):
            raise CallRefused("wire-limit", f"an answer about the catalogue has at most {ROWS_MAX:,} rows", hint=_HINT)
        tags = [Payload(body).text() for letter, body in others if letter == b"C"]
        return ShadowRows(rows.data, rows.ends, tags[-1] if tags else "")

    async def use(self, settings: Mapping[str, str]) -> None:
        """Discard the state of earlier sessions, and apply this session's settings."""
        await self.run("DISCARD ALL", (), (), (), ())
        for name, value in settings.items():
            await self.run("SELECT pg_catalog.set_config($1, $2, false)", (25, 25), (name.encode(), value.encode()), (), ())

    def _send(self, data: bytes) -> None:
        self.idle = False
        self._writer.write(data)

    async def _until_ready(self) -> tuple[list[tuple[bytes, bytes]], ShadowRows]:
        """All messages until the shadow is ready again, with rows separate; raises the shadow's error, if there is one.

        Rows stay unparsed: one object holds all of them, with none for a row or a cell. Other tasks run between pieces.
        """
        await self._writer.drain()
        others: list[tuple[bytes, bytes]] = []
        rows, ends = bytearray(), array("I")
        wrong: bytes | None = None
        left = RESULT_BYTES_MAX
        while not self.idle:
            await asyncio.sleep(0)
            piece = await self._reader.read(PIECE_BYTES)
            if not piece:
                raise EOFError
            self._ahead += piece
            at, end = 0, self._message_end(0)
            while end <= len(self._ahead) and not self.idle:
                letter = bytes(self._ahead[at : at + 1])
                if letter == b"D":
                    rows += self._ahead[at:end]
                    ends.append(len(rows))
                elif letter == b"E":
                    wrong = bytes(self._ahead[at + _HEAD_BYTES : end])
                elif letter == b"Z":
                    self.idle = True
                elif letter not in (b"N", b"S"):
                    others.append((letter, bytes(self._ahead[at + _HEAD_BYTES : end])))
                left -= end - at
                at, end = end, self._message_end(end)
            del self._ahead[:at]
            if left - (end - at) < 0 and not self.idle:
                raise CallRefused("wire-limit", f"an answer about the catalogue has at most {RESULT_BYTES_MAX // 2**20} MiB", hint=_HINT)
        if wrong is not None:
            raise ShadowError(wrong)
        return others, ShadowRows(bytes(rows), ends)

    def _message_end(self, at: int) -> int:
        """The end of the message that begins here, or of its header while the length is unknown."""
        if len(self._ahead) < at + _HEAD_BYTES:
            return at + _HEAD_BYTES
        return at + 1 + int.from_bytes(self._ahead[at + 1 : at + _HEAD_BYTES], "big")

    async def stop(self) -> None:
        """Cancel its query and close it: otherwise the cancellation might hit its next user."""
        ended = asyncio.ensure_future(self._ended())
        try:
            with suppress(OSError, EOFError, ProtocolError, TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    while not ended.done():
                        await self._cancel()
                        await asyncio.wait({ended}, timeout=CANCEL_AGAIN_SECONDS)
        finally:
            ended.cancel()
            self.close()

    async def _ended(self) -> None:
        """Return when the shadow's process has ended; its remaining output is discarded."""
        with suppress(OSError):
            self._writer.write(message(b"X"))
            while await self._reader.read(PIECE_BYTES):
                pass

    async def _cancel(self) -> None:
        reader, writer = await _connected(self._address)
        try:
            writer.write(struct.pack("!II", 16, CANCEL_REQUEST) + self._key)
            await reader.read()  # the query has been signalled
        finally:
            writer.close()

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


_HINT = "ask for fewer rows or columns: LIMIT, WHERE"


async def _connected(address: ShadowAddress) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.host.startswith("/"):
        return await asyncio.open_unix_connection(f"{address.host}/.s.PGSQL.{address.port}")
    reader, writer = await asyncio.open_connection(address.host, address.port)
    if address.encrypted:
        writer.write(struct.pack("!II", 8, TLS_REQUEST))
        if await reader.readexactly(1) != b"S":
            writer.close()
            raise ProtocolError("the shadow does not support TLS")
        await writer.start_tls(ssl.create_default_context(), server_hostname=address.host)
    return reader, writer
