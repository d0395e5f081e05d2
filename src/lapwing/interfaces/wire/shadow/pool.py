"""Connections to the shadow of one data set: a few, each lent for one query at a time, are enough for many sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from lapwing.errors import LapwingError
from lapwing.interfaces.wire.messages import ProtocolError
from lapwing.interfaces.wire.refusals import ShadowError
from lapwing.interfaces.wire.scram import ScramFailed
from lapwing.interfaces.wire.shadow.link import ShadowAddress, ShadowLink

_UNREACHABLE = "the database that answers questions about the catalogue cannot be reached"


class ShadowPool:
    """Lends connections. A cancelled query keeps its slot until it has also ended in the shadow; its connection is then closed."""

    def __init__(self, address: ShadowAddress, most: int) -> None:
        self.address = address
        self._most_of_one = max(most // 2, 1)
        self._free: list[ShadowLink] = []
        self._room = asyncio.Semaphore(most)
        self._of_people: dict[str, asyncio.Semaphore] = {}
        """One for each person, who has at most half of the connections at once."""
        self._stopping: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def lent(self, settings: Mapping[str, str], who: str) -> AsyncIterator[ShadowLink]:
        """Lend a connection with these settings to this person; ``unavailable`` if the shadow cannot be reached."""
        own = self._of_people.setdefault(who, asyncio.Semaphore(self._most_of_one))
        await own.acquire()
        try:
            await self._room.acquire()
        except BaseException:
            own.release()
            raise
        link: ShadowLink | None = None
        try:
            link = await self._open(fresh=False)
            try:
                await link.use(settings)
            except (OSError, EOFError, ProtocolError):  # it broke while idle
                link.close()
                link = await self._open(fresh=True)
                await link.use(settings)
            yield link
        finally:
            self._leave(link, own)

    async def _open(self, *, fresh: bool) -> ShadowLink:
        try:
            return self._free.pop() if self._free and not fresh else await ShadowLink.open(self.address)
        except (OSError, EOFError, ProtocolError, ScramFailed, ShadowError) as error:
            raise LapwingError("unavailable", _UNREACHABLE) from error

    def _leave(self, link: ShadowLink | None, own: asyncio.Semaphore) -> None:
        """Release a slot and its connection. The caller does not wait for an abandoned query."""
        if link is not None and not link.idle:
            task = asyncio.ensure_future(self._stopped(link, own))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)
            return
        self._release(own)
        if link is not None and self._closed:
            link.close()
        elif link is not None:
            self._free.append(link)

    async def _stopped(self, link: ShadowLink, own: asyncio.Semaphore) -> None:
        try:
            await link.stop()
        finally:
            self._release(own)

    def _release(self, own: asyncio.Semaphore) -> None:
        own.release()
        self._room.release()

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for task in self._stopping:
            task.cancel()
        for link in self._free:
            link.close()
        self._free.clear()
