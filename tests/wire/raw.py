"""A client that speaks the protocol byte for byte, to say what libraries never say."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Self

from lapwing.interfaces.wire.messages import Payload, message, zero_ended
from lapwing.interfaces.wire.scram import ClientExchange

Message = tuple[bytes, bytes]


class RawClient:
    """A connection; logged in unless told otherwise."""

    def __init__(self, port: int, user: str, password: str, database: str, *, log_in: bool = True, options: str = "") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self.key = b""
        if log_in:
            words = {"user": user, "database": database, **({"options": options} if options else {})}
            body = struct.pack("!I", 196_608) + b"".join(zero_ended(n) + zero_ended(v) for n, v in words.items()) + b"\0"
            self.send(struct.pack("!I", len(body) + 4) + body)
            self.greeting = self._log_in(password)

    def _log_in(self, password: str) -> list[Message]:
        exchange, seen = ClientExchange(password), []
        while True:
            letter, body = self.read()
            seen.append((letter, body))
            code = struct.unpack("!i", body[:4])[0] if letter == b"R" else None
            if code == 10:
                first = exchange.first()
                self.send(message(b"p", zero_ended("SCRAM-SHA-256") + struct.pack("!i", len(first)) + first))
            elif code == 11:
                self.send(message(b"p", exchange.final(body[4:])))
            elif code == 12:
                exchange.check(body[4:])
            elif letter == b"K":
                self.key = body
            elif letter in (b"Z", b"E"):
                return seen

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self.socket.sendall(data)

    def read(self) -> Message:
        """The next message; an empty letter where the server closed."""
        while len(self._buffer) < 5 or len(self._buffer) < 1 + struct.unpack("!I", self._buffer[1:5])[0]:
            more = self.socket.recv(65_536)
            if not more:
                return b"", b""
            self._buffer += more
        end = 1 + struct.unpack("!I", self._buffer[1:5])[0]
        letter, body, self._buffer = self._buffer[:1], self._buffer[5:end], self._buffer[end:]
        return letter, body

    def until(self, last: bytes = b"Z") -> list[Message]:
        """All messages to one of these, or to the end."""
        seen: list[Message] = []
        while not seen or seen[-1][0] not in (last, b""):
            seen.append(self.read())
        return seen

    def simple(self, text: str) -> list[Message]:
        """What comes of a simple query."""
        self.send(message(b"Q", zero_ended(text)))
        return self.until()


def parse(text: str, name: str = "", types: tuple[int, ...] = ()) -> bytes:
    """Read a statement."""
    return message(b"P", zero_ended(name) + zero_ended(text) + struct.pack(f"!H{len(types)}I", len(types), *types))


def bind(
    values: tuple[bytes | None, ...] = (),
    *,
    portal: str = "",
    statement: str = "",
    forms: tuple[int, ...] = (),
    formats: tuple[int, ...] = (),
) -> bytes:
    """Give a statement its values."""
    body = zero_ended(portal) + zero_ended(statement) + struct.pack(f"!H{len(forms)}h", len(forms), *forms) + struct.pack("!H", len(values))
    body += b"".join(b"\xff\xff\xff\xff" if one is None else struct.pack("!I", len(one)) + one for one in values)
    return message(b"B", body + struct.pack(f"!H{len(formats)}h", len(formats), *formats))


def describe(kind: str = "S", name: str = "") -> bytes:
    """Ask for columns."""
    return message(b"D", kind.encode() + zero_ended(name))


def execute(most: int = 0, portal: str = "") -> bytes:
    """Run a portal."""
    return message(b"E", zero_ended(portal) + struct.pack("!i", most))


SYNC, FLUSH = message(b"S"), message(b"H")


def letters(messages: list[Message]) -> str:
    """The letters of messages."""
    return b"".join(letter for letter, _ in messages).decode()


def error_fields(body: bytes) -> dict[str, str]:
    """The fields of an error."""
    read, fields = Payload(body), {}
    while (letter := read.take(1)) != b"\0":
        fields[letter.decode()] = read.text()
    return fields
