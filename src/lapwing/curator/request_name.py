"""The name of the request that is being answered, so that what it paid for before is found first, wherever the ledger is looked through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str | None] = ContextVar("lapwing_request_name", default=None)


@contextmanager
def answering(request_id: str | None) -> Iterator[None]:
    """What is looked for inside, in this thread or task, is looked for on behalf of this request."""
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)


def request_name() -> str | None:
    """The request that is being answered; None where it has no name."""
    return _current.get()
