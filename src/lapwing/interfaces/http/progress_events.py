"""The progress of long work as server-sent events: one for each step, then one with the result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from lapwing.errors import LapwingError
from lapwing.interfaces.http.problems import problem, shown, status_of

MEDIA_TYPE = "text/event-stream"
SILENCE_SECONDS = 10.0
"""After this time without a step a comment is sent, so that proxies do not close the connection."""
Step = Callable[[str, int, int], None]
"""What is being done, how many steps are done, and how many there are."""


async def events(work: Callable[[Step], dict[str, Any]], *, silence: float = SILENCE_SECONDS) -> AsyncIterator[str]:
    """Run ``work`` in a thread: ``progress`` for each step, then ``done`` or ``problem``. A disconnected client does not stop it."""
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[str] = asyncio.Queue()

    def step(what: str, done: int, total: int) -> None:
        loop.call_soon_threadsafe(told.put_nowait, _event("progress", {"what": what, "done": done, "total": total}))

    def run() -> str:
        try:
            return _event("done", work(step))
        except Exception as error:
            seen = shown(error, to_owner=isinstance(error, LapwingError))
            return _event("problem", problem(seen, status_of(seen)))

    ended = asyncio.ensure_future(asyncio.to_thread(run))
    while not ended.done() or not told.empty():
        waiting = asyncio.ensure_future(told.get())
        await asyncio.wait({waiting, ended}, timeout=silence, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            yield waiting.result()
            continue
        waiting.cancel()
        if not ended.done():
            yield ": still at it\n\n"
        else:
            await asyncio.sleep(0)  # a step that was reported just before the end
    yield ended.result()


def _event(name: str, fields: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(fields, ensure_ascii=True)}\n\n"
