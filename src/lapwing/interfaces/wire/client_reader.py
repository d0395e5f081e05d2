"""Reads from a client, and detects when it disconnects during an answer."""

from __future__ import annotations

import asyncio


class ClientReader(asyncio.StreamReader):
    """A reader that reports the end of the client's input as soon as it arrives, even if no one is reading."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit=limit, loop=asyncio.get_running_loop())
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        """The client has closed its side."""
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        """The connection broke."""
        super().set_exception(exc)
        self.gone.set()
