"""The name of the present request, so that every search of the ledger finds the answers it paid for first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str | None] = ContextVar("lapwing_request_name", default=None)


@contextmanager
def answering(request_id: str | None) -> Iterator[None]:
    """Searches of this thread or task inside the context are made for this request."""
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)


def request_name() -> str | None:
    """The name of the present request; None if it has none."""
    return _current.get()
