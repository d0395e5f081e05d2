"""From the first byte to a login: TLS, the identity, and the data set."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from lapwing.errors import CallRefused
from lapwing.interfaces.http.access import AppState, count_failure
from lapwing.interfaces.http.identity.rights import Act, Identity
from lapwing.interfaces.http.identity.scram_verifiers import salt_of
from lapwing.interfaces.wire.messages import (
    CANCEL_REQUEST,
    GSS_REQUEST,
    PROTOCOL,
    STARTUP_BYTES_MAX,
    TLS_REQUEST,
    Payload,
    ProtocolError,
    message,
    read_message,
    zero_ended,
)
from lapwing.interfaces.wire.refusals import error_message
from lapwing.interfaces.wire.scram import MECHANISM, ScramFailed, ServerExchange

FIRST_SECONDS = 5.0
"""A client must send its startup message within these seconds."""
_WRONG = CallRefused("unauthenticated", "the name or the key is wrong", hint="the user is the person's name, the password is the API key")


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """A client's request to cancel a statement of another connection."""

    process: int
    secret: int


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """An authenticated client: its identity and key, the data set, and its first settings."""

    identity: Identity
    key_id: str
    data_set: str
    settings: dict[str, str] = field(default_factory=dict)


class LoginRefused(Exception):
    """The client was sent the refusal, and the connection ends."""


async def first_words(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, encryption: ssl.SSLContext | None, heard: Callable[[], None]
) -> CancelRequest | dict[str, str]:
    """A client's first message, after TLS if there is a certificate: a cancel request, or its settings.

    ``heard`` is called when it has sent something plausible.
    """
    encrypted = False
    while True:
        async with asyncio.timeout(FIRST_SECONDS):
            length = int.from_bytes(await reader.readexactly(4), "big")
            if not 8 <= length <= STARTUP_BYTES_MAX:
                raise ProtocolError("this is not a startup message of PostgreSQL's protocol")
            read = Payload(await reader.readexactly(length - 4))
        heard()
        match read.oid():
            case code if code == TLS_REQUEST and encryption is not None and not encrypted:
                if getattr(reader, "_buffer", b""):  # data sent before TLS may come from somebody else
                    raise ProtocolError("the client sent data before TLS")
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(encryption)
                encrypted = True
            case code if code in (TLS_REQUEST, GSS_REQUEST):
                writer.write(b"N")
                await writer.drain()
            case code if code == CANCEL_REQUEST:
                return CancelRequest(read.oid(), read.oid())
            case code if code >> 16 == PROTOCOL >> 16:
                if encryption is not None and not encrypted:
                    raise CallRefused("unauthenticated", "this server requires TLS", hint="use sslmode=require")
                words = _words(read)
                if code != PROTOCOL or any(name.startswith("_pq_.") for name in words):
                    others = [name for name in words if name.startswith("_pq_.")]
                    writer.write(message(b"v", struct.pack("!II", PROTOCOL, len(others)) + b"".join(map(zero_ended, others))))
                return {name: value for name, value in words.items() if not name.startswith("_pq_.")}
            case _:
                raise ProtocolError("this is not a startup message of PostgreSQL's protocol")


def _words(read: Payload) -> dict[str, str]:
    words: dict[str, str] = {}
    while name := read.text():
        words[name] = read.text()
    return words


async def log_in(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, app_state: AppState, secret: bytes, words: dict[str, str]
) -> LoggedIn:
    """Authenticate the client and check that it may see the data set; :class:`LoginRefused` if not. A hidden one looks missing."""
    address = str((writer.get_extra_info("peername") or ("local",))[0])
    name, data_set = words.get("user", ""), words.get("database") or words.get("user", "")
    known = await asyncio.to_thread(app_state.identities.verifiers_of, name)
    exchange = ServerExchange(salt_of(secret, name), known)
    try:
        key_id = await _exchanged(reader, writer, exchange)
        identity = await asyncio.to_thread(app_state.identities.of_key_id, key_id)
    except ScramFailed:
        identity, key_id = None, ""
    refusal = None
    if identity is None:
        refusal = _WRONG
        try:
            count_failure(app_state, address)
        except CallRefused as wait:
            refusal = wait
    elif app_state.desk.of(data_set) is None or not identity.may(Act.SEE, data_set):
        refusal = CallRefused("not-found", "there is no such data set, or you may not see it")
    credential, who = ("", "") if identity is None else (identity.credential, identity.name)
    outcome = "00000" if refusal is None else refusal.code
    said = {"who": who, "credential": credential, "act": "connect", "data_set": data_set[:200], "outcome": outcome}
    app_state.audit.write(**said, request="wire", charges=(), address=address)
    if refusal is not None:
        await _refuse(writer, refusal)
    assert identity is not None
    return LoggedIn(identity, key_id, data_set, {one: value for one, value in words.items() if one not in ("user", "database")})


async def _exchanged(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, exchange: ServerExchange) -> str:
    """The id of the client's key."""
    writer.write(message(b"R", struct.pack("!i", 10) + zero_ended(MECHANISM) + b"\0"))
    await writer.drain()
    read = Payload(await _told(reader))
    if read.text() != MECHANISM:
        raise ScramFailed("another mechanism")
    first = read.counted()
    if first is None:
        raise ScramFailed("nothing was said")
    writer.write(message(b"R", struct.pack("!i", 11) + exchange.first(first)))
    await writer.drain()
    key_id, last = exchange.final(await _told(reader))
    writer.write(message(b"R", struct.pack("!i", 12) + last) + message(b"R", struct.pack("!i", 0)))
    return key_id


async def _told(reader: asyncio.StreamReader) -> bytes:
    letter, body = await read_message(reader, STARTUP_BYTES_MAX)
    if letter != b"p":
        raise ProtocolError("a login is expected here")
    return body


async def _refuse(writer: asyncio.StreamWriter, error: CallRefused) -> None:
    writer.write(error_message(error, severity="FATAL"))
    await writer.drain()
    raise LoginRefused
