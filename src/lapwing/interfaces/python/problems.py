"""A server's refusals as the library's own errors, with the same code, text, hint and place."""

from __future__ import annotations

import json
from typing import Any

from lapwing.errors import BudgetRefused, CallRefused, Incident, LapwingError, LedgerError, PreparationError, Refused, Span

_REFUSALS = frozenset({404, 406, 409, 413, 422, 423})
_CALLS = frozenset({"unauthenticated", "forbidden", "method-not-allowed", "too-many-requests", "busy", "not-answered-before"})
"""Errors that the caller can resolve."""


def error_of(status: int, body: bytes) -> LapwingError:
    """The error of a reply."""
    try:
        fields: Any = json.loads(body)
        code, message = str(fields["code"]), str(fields["title"])
    except (ValueError, KeyError, TypeError):
        return LedgerError("server-reply", f"the server answered {status} with a reply that is not Lapwing's")
    if code == "incident":
        return Incident()
    span = fields.get("span")
    place = None if span is None else Span(int(span["start"]), int(span["end"]), int(span["line"]), int(span["column"]))
    return _kind(status, code)(code, message, hint=str(fields.get("hint", "")), span=place)


def _kind(status: int, code: str) -> type[LapwingError]:
    """The class of the error says who must act, as for local errors."""
    if code in _CALLS:
        return CallRefused
    if code == "data-set-unavailable":
        return PreparationError
    return BudgetRefused if status == 402 else Refused if status in _REFUSALS else LapwingError
