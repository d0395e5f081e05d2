"""Limits on HTTP connections of unauthenticated clients: a timeout for pending input, and a maximum number of connections.

uvicorn has no time limit for incomplete requests, nor for replies that are not read. Each worker keeps
a bounded number of connections without a valid credential and drops the oldest first: valid clients authenticate within milliseconds.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from functools import cache
from pathlib import Path
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from lapwing.errors import LapwingError

_SECONDS = {"head": 10.0, "body": 20.0, "reading": 30.0}
"""Time limits for TLS and the head of a request (of the next one, after a reply), for its body, and for the client to read a reply."""
ACCEPTED_AT_ONCE = 128
"""Connections that the event loop accepts before it reads from any."""
CONNECTED = "connected"
"""The application's callback for each connection that opens or closes."""
STRANGERS_MAX = 4 * ACCEPTED_AT_ONCE


def raise_open_files() -> None:
    """Raise the limit on open files to the maximum: services often start with a limit of 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard and hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@cache
def encryption(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS with this certificate; ``server-configuration`` if it cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        message = f"the certificate or its key cannot be used: {error.strerror or error}"
        raise LapwingError("server-configuration", message) from error
    return context


class Crowd:
    """Connections that are not authenticated yet, oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside: dict[BoundedHTTP, None] = {}

    def enter(self, one: BoundedHTTP) -> None:
        """Add this one, and drop the oldest if there are too many."""
        self._inside[one] = None
        if len(self._inside) > self._most:
            oldest = next(iter(self._inside))
            self.leave(oldest)
            oldest.drop()

    def leave(self, one: BoundedHTTP) -> None:
        """The connection closed or was authenticated."""
        self._inside.pop(one, None)


@cache
def crowds() -> tuple[Crowd, Crowd]:
    """This worker's connections that wait for a first head, and those that sent one. Each has at most a quarter of the open files."""
    most = max(min(STRANGERS_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4), 1)
    return Crowd(most), Crowd(most)


class BoundedHTTP(H11Protocol):
    """uvicorn's Python protocol with TLS inside: a handshake is timed and counted like a request head."""

    def __init__(self, *, tls: tuple[Path, Path] | None, **given: Any) -> None:
        """``tls`` are the files of a certificate and its key; the rest are uvicorn's arguments."""
        super().__init__(**given)
        self._encryption = None if tls is None else encryption(*tls)
        self._headless, self._strangers = crowds()
        self._socket: asyncio.Transport | None = None
        self._shaking: asyncio.Task[None] | None = None
        self._is_open = False
        """uvicorn knows the connection; with TLS, only after the handshake."""
        self._is_new = True
        """No request head has arrived yet."""
        self._early = b""
        self._timer: asyncio.TimerHandle | None = None
        self._owed: str | None = None
        self._unread = 0

    # -- from the first byte to the last --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection was opened."""
        self._socket = transport
        self._count(1)
        self._headless.enter(self)
        if self._encryption is None:
            self._open(transport)
        else:
            transport.pause_reading()
            self._shaking = self.loop.create_task(self._shake_hands(transport, self._encryption))
        self._watch()

    async def _shake_hands(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        try:
            encrypted = await self.loop.start_tls(transport, self, context, server_side=True)
        except OSError:  # this includes TLS errors
            self._forget()
            return
        if encrypted is None or self._socket is None:
            return  # it was closed meanwhile
        self._open(encrypted)
        early, self._early = self._early, b""
        if early:
            self.data_received(early)

    def _open(self, transport: asyncio.Transport) -> None:
        self._is_open = True
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request arrived."""
        if not self._is_open:
            self._early += data
            return
        super().data_received(data)

    def handle_events(self) -> None:
        """Parse the bytes so far."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            if self._is_new:
                self._is_new = False
                self._headless.leave(self)
                self._strangers.enter(self)
            self.scope["state"]["connection"] = self
        self._watch()

    def is_known(self) -> None:
        """A valid credential was used on this connection."""
        self._strangers.leave(self)

    def on_response_complete(self) -> None:
        """The whole reply was handed to the transport."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The client reads slowly or not at all."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection was closed."""
        self._forget()
        if self._is_open:
            super().connection_lost(exc)

    def _count(self, by: int) -> None:
        told = self.app_state.get(CONNECTED)
        if told is not None:
            told("http", by)

    def _forget(self) -> None:
        if self._socket is not None:
            self._count(-1)
        self._headless.leave(self)
        self._strangers.leave(self)
        self._socket = None
        self._watch()

    def drop(self) -> None:
        """Abort the connection, even during a request."""
        if self._socket is not None:
            self._socket.abort()

    # -- timeouts ---------------------------------------------------------------------------------------------------------

    def _left_to_read(self) -> int:
        """Bytes of replies that wait for the client."""
        if self._socket is None or not self._is_open:
            return 0
        return self._socket.get_write_buffer_size() + self.transport.get_write_buffer_size()

    def _owes(self) -> str | None:
        """What the client has to do next; None if it is the application's turn."""
        if self._socket is None:
            return None
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        if self._left_to_read():
            return "reading"
        return "head" if self._is_new or self.cycle.response_complete else None

    def _watch(self) -> None:
        """Start the timer for what the client owes now; a timer that already runs for it is not extended."""
        owed = self._owes()
        if owed == self._owed and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._owed, self._unread = owed, self._left_to_read()
        self._timer = None if owed is None else self.loop.call_later(_SECONDS[owed], self._overdue)

    def _overdue(self) -> None:
        self._timer = None
        left = self._left_to_read()
        if self._owed == self._owes() and not (self._owed == "reading" and left < self._unread):
            self.drop()
        else:
            self._watch()
