"""A relay between a client and the wire that keeps every statement and what came of it: never a row, a password or a value of an answer."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104


@dataclass
class Sent:
    """A statement, and what came of it: ``outcome`` is a command's tag without numbers, or ``SQLSTATE code`` of a refusal."""

    statement: str
    outcome: str = ""
    by: str = "session"
    """Who answered: ``curator`` where a price was told, else the session or the shadow."""
    price: str = ""


@dataclass
class Recorder:
    """Statements in the order in which they came."""

    target: int
    port: int = 0
    sent: list[Sent] = field(default_factory=list)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        waiting: list[Sent] = []
        try:
            await asyncio.gather(self._up(reader, up_writer, up_reader, writer, waiting))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            up_writer.close()

    async def _up(
        self,
        reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        waiting: list[Sent],
    ) -> None:
        while True:
            head = await reader.readexactly(8)
            length, kind = struct.unpack("!ii", head)
            up_writer.write(head + await reader.readexactly(length - 8))
            if kind not in (SSL_REQUEST, GSS_REQUEST):
                break
            writer.write(await up_reader.readexactly(1))
        down = asyncio.create_task(self._down(up_reader, writer, waiting))
        try:
            while True:
                letter, body = await _message(reader)
                if letter in (b"Q", b"P"):
                    text = body if letter == b"Q" else body[body.index(b"\0") + 1 :]
                    one = Sent(text[: text.index(b"\0")].decode())
                    self.sent.append(one)
                    waiting.append(one)
                up_writer.write(letter + struct.pack("!i", len(body) + 4) + body)
        finally:
            up_writer.close()
            await asyncio.wait([down], timeout=5)
            down.cancel()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, waiting: list[Sent]) -> None:
        try:
            while True:
                letter, body = await _message(reader)
                if waiting:
                    _note(waiting[0], letter, body)
                    if letter == b"Z":
                        waiting.pop(0)
                writer.write(letter + struct.pack("!i", len(body) + 4) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def _note(one: Sent, letter: bytes, body: bytes) -> None:
    if letter == b"C":
        one.outcome = body[:-1].decode().rstrip(" 0123456789")
    elif letter == b"N":
        one.by, one.price = "curator", _fields(body).get("M", "")
    elif letter == b"E":
        fields = _fields(body)
        one.outcome = f"{fields.get('C', '')} {fields.get('D', '').removeprefix('lapwing code: ')}".strip()


def _fields(body: bytes) -> dict[str, str]:
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], await reader.readexactly(struct.unpack("!i", head[1:])[0] - 4)


@contextmanager
def recording(target: int) -> Iterator[Recorder]:
    """A relay to the wire on this port, in a thread of its own."""
    recorder, loop, begun = Recorder(target), asyncio.new_event_loop(), threading.Event()

    async def main() -> None:
        server = await asyncio.start_server(recorder._serve, "127.0.0.1", 0)
        recorder.port = server.sockets[0].getsockname()[1]
        begun.set()

    def run() -> None:
        loop.create_task(main())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    begun.wait()
    try:
        yield recorder
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
