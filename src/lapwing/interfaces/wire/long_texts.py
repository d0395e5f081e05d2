"""Long texts are parsed in a thread, so that other clients of the worker do not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

LONG_CHARACTERS = 2_000
Result = TypeVar("Result")


async def apart(text: str, work: Callable[[], Result]) -> Result:
    """The result of work on a text."""
    return work() if len(text) <= LONG_CHARACTERS else await asyncio.to_thread(work)
