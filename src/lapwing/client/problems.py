"""What a server refuses, as the errors that the library raises itself: code, text, hint and place are the same."""

from __future__ import annotations

import json
from typing import Any

from lapwing.errors import BudgetRefused, Incident, LapwingError, LedgerError, Refused, Span

_REFUSALS = frozenset({404, 406, 409, 413, 422, 423})


def error_of(status: int, body: bytes) -> LapwingError:
    """The error that a reply stands for."""
    try:
        fields: Any = json.loads(body)
        code, message = str(fields["code"]), str(fields["title"])
    except (ValueError, KeyError, TypeError):
        return LedgerError("server-reply", f"the server answered {status}, in a way that is not Lapwing's")
    if code == "incident":
        return Incident()
    span = fields.get("span")
    place = None if span is None else Span(int(span["start"]), int(span["end"]), int(span["line"]), int(span["column"]))
    kind = BudgetRefused if status == 402 else Refused if status in _REFUSALS else LapwingError
    return kind(code, message, hint=str(fields.get("hint", "")), span=place)
