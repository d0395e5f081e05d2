"""Connections to the shadow of one data set: few, lent for one query at a time, so that many sessions need no more of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from lapwing.errors import LapwingError
from lapwing.wire.messages import ProtocolError
from lapwing.wire.refusals import ShadowError
from lapwing.wire.scram import ScramFailed
from lapwing.wire.shadow_link import ShadowAddress, ShadowLink

_UNREACHABLE = "the database that answers questions about the catalogue cannot be reached"


class ShadowPool:
    """Lends connections. A connection whose query was broken off is closed, never lent again."""

    def __init__(self, address: ShadowAddress, most: int) -> None:
        self.address = address
        self._free: list[ShadowLink] = []
        self._room = asyncio.Semaphore(most)
        self._closed = False

    @asynccontextmanager
    async def lent(self, settings: Mapping[str, str]) -> AsyncIterator[ShadowLink]:
        """A connection with these settings; ``unavailable`` where there is none."""
        async with self._room:
            link = await self._link(settings)
            try:
                yield link
            except ShadowError:
                self._give_back(link)  # the statement was refused; the connection is as before
                raise
            except BaseException:
                link.close()
                raise
            self._give_back(link)

    async def _link(self, settings: Mapping[str, str]) -> ShadowLink:
        for fresh in (False, True):
            try:
                link = self._free.pop() if self._free and not fresh else await ShadowLink.open(self.address)
            except (OSError, EOFError, ProtocolError, ScramFailed, ShadowError) as error:
                raise LapwingError("unavailable", _UNREACHABLE) from error
            try:
                await link.use(settings)
            except ShadowError:
                self._give_back(link)
                raise
            except (OSError, EOFError, ProtocolError) as error:
                link.close()  # it broke while nobody had it
                if fresh:
                    raise LapwingError("unavailable", _UNREACHABLE) from error
                continue
            return link
        raise LapwingError("unavailable", _UNREACHABLE)

    def _give_back(self, link: ShadowLink) -> None:
        if self._closed:
            link.close()
        else:
            self._free.append(link)

    def close(self) -> None:
        """Give up all of them."""
        self._closed = True
        for link in self._free:
            link.close()
        self._free.clear()
