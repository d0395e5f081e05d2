"""A connection to the shadow database, from our side: one query at a time, bounded in rows and bytes."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lapwing.wire.messages import (
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
from lapwing.wire.refusals import ShadowError
from lapwing.wire.scram import MECHANISM, ClientExchange

MESSAGE_BYTES_MAX = 16 * 2**20
RESULT_BYTES_MAX = 64 * 2**20
ROWS_MAX = 200_000


@dataclass(frozen=True, slots=True)
class ShadowAddress:
    """Where the shadow of a data set is, and who asks it."""

    host: str
    """A name, an address, or the directory of a socket."""
    port: int
    database: str
    role: str
    password: str = field(repr=False)
    encrypted: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the shadow says of a query before it runs."""

    parameters: tuple[int, ...]
    fields: tuple[FieldSpec, ...] | None
    """None where it gives no rows."""


@dataclass(frozen=True, slots=True)
class ShadowRows:
    """What a query gave, in the formats that were asked for."""

    rows: list[list[bytes | None]]
    tag: str


class ShadowLink:
    """One connection. Not shared: a pool lends it to one session at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: ShadowAddress) -> None:
        self._reader, self._writer, self._address = reader, writer, address
        self._key = b""
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
            letter, body = await read_message(self._reader, MESSAGE_BYTES_MAX)
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
                        raise ProtocolError("the shadow wants a login that is not spoken here")
            elif letter == b"S" and read.text() == "server_version":
                self.server_version = read.text()
            elif letter == b"K":
                self._key = body
            elif letter == b"Z":
                return

    async def prepare(self, text: str, types: Sequence[int]) -> Prepared:
        """Have a query read, and hear of its parameters and columns. PostgreSQL takes one statement here, never several."""
        kinds = struct.pack("!H", len(types)) + b"".join(struct.pack("!I", one) for one in types)
        self._writer.write(message(b"P", zero_ended("") + zero_ended(text) + kinds) + message(b"D", b"S\0") + message(b"S"))
        parameters: tuple[int, ...] = ()
        fields: tuple[FieldSpec, ...] | None = None
        for letter, body in await self._until_ready():
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
        execute = b"\0" + struct.pack("!i", ROWS_MAX)
        parts = [(b"P", zero_ended("") + zero_ended(text) + kinds), (b"B", bound), (b"E", execute), (b"S", b"")]
        self._writer.write(b"".join(message(letter, body) for letter, body in parts))
        rows: list[list[bytes | None]] = []
        tag = ""
        for letter, body in await self._until_ready():
            if letter == b"D":
                rows.append(read_data_row(body))
            elif letter == b"C":
                tag = Payload(body).text()
            elif letter == b"s":
                raise ProtocolError("the shadow has more rows than are sent on")
        return ShadowRows(rows, tag)

    async def use(self, settings: Mapping[str, str]) -> None:
        """Forget whatever was done here before, and answer as for the session with these settings."""
        await self.run("DISCARD ALL", (), (), (), ())
        for name, value in settings.items():
            await self.run("SELECT pg_catalog.set_config($1, $2, false)", (25, 25), (name.encode(), value.encode()), (), ())

    async def _until_ready(self) -> list[tuple[bytes, bytes]]:
        """All messages until the shadow is ready again; its error, if one is among them."""
        await self._writer.drain()
        found: list[tuple[bytes, bytes]] = []
        wrong: bytes | None = None
        left = RESULT_BYTES_MAX
        while True:
            letter, body = await read_message(self._reader, MESSAGE_BYTES_MAX)
            left -= len(body) + 64
            if left < 0:
                raise ProtocolError("the shadow says more than is sent on")
            if letter == b"Z":
                break
            if letter == b"E":
                wrong = body
            elif letter not in (b"N", b"S"):
                found.append((letter, body))
        if wrong is not None:
            raise ShadowError(wrong)
        return found

    async def cancel(self) -> None:
        """Ask it to stop what it does."""
        _, writer = await _connected(self._address)
        writer.write(struct.pack("!II", 16, CANCEL_REQUEST) + self._key)
        await writer.drain()
        writer.close()

    def close(self) -> None:
        """Give it up."""
        self._writer.close()


async def _connected(address: ShadowAddress) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.host.startswith("/"):
        return await asyncio.open_unix_connection(f"{address.host}/.s.PGSQL.{address.port}")
    reader, writer = await asyncio.open_connection(address.host, address.port)
    if address.encrypted:
        writer.write(struct.pack("!II", 8, TLS_REQUEST))
        if await reader.readexactly(1) != b"S":
            writer.close()
            raise ProtocolError("the shadow speaks no TLS")
        await writer.start_tls(ssl.create_default_context(), server_hostname=address.host)
    return reader, writer
