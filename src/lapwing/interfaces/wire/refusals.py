"""Errors in PostgreSQL's form: SQLSTATE, position, hint, and Lapwing's own code in the detail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lapwing.errors import BudgetRefused, CallRefused, Incident, LapwingError, Refused
from lapwing.interfaces.wire.messages import field_list, message

_STATES = {
    "unauthenticated": "28P01",
    "forbidden": "42501",
    "not-found": "3D000",
    "too-many-requests": "53400",
    "busy": "53300",
    "audit-unwritable": "53100",
    "unavailable": "57P03",
    "data-set-unavailable": "57P03",
    "data-set-closed": "57P03",
    "request-in-progress": "55006",
    "internal": "XX000",
    "ledger-role": "XX000",
    "identities-role": "XX000",
    "sql-syntax": "42601",
    "statement-several": "42601",
    "unknown-table": "42P01",
    "unknown-column": "42703",
    "wire-statement": "0A000",
    "wire-setting": "22023",
    "wire-function": "42501",
    "wire-cancelled": "57014",
    "wire-time-over": "57014",
    "wire-idle": "57P05",
    "wire-limit": "53400",
    "wire-name": "34000",
    "wire-protocol": "08P01",
    "wire-transaction": "25P02",
    "wire-parameter": "22P02",
}
"""The SQLSTATE of codes; other codes get it from their class."""


def state_of(error: LapwingError) -> str:
    """The SQLSTATE of an error."""
    if error.code in _STATES:
        return _STATES[error.code]
    if isinstance(error, BudgetRefused):
        return "53400"
    if isinstance(error, Incident):
        return "58000"
    if isinstance(error, Refused | CallRefused):
        return "0A000"
    return "57P03"


def error_message(error: LapwingError, *, severity: str = "ERROR", position: int | None = None) -> bytes:
    """The error as a message; ``position`` counts characters of the text from 1."""
    fields = [("S", severity), ("V", severity), ("C", state_of(error)), ("M", error.message), ("D", f"lapwing code: {error.code}")]
    if error.hint:
        fields.append(("H", error.hint))
    if position is not None:
        fields.append(("P", str(position)))
    return message(b"E", field_list(fields))


def notice(text: str, *, detail: str = "") -> bytes:
    """A notice beside a result."""
    fields = [("S", "NOTICE"), ("V", "NOTICE"), ("C", "00000"), ("M", text)]
    return message(b"N", field_list([*fields, ("D", detail)] if detail else fields))


class LocatedError(Exception):
    """One of Lapwing's errors with its position in the client's text, in characters from 1."""

    def __init__(self, error: LapwingError, position: int | None) -> None:
        super().__init__(error.message)
        self.error, self.position = error, position


class ShadowError(Exception):
    """The shadow database refused a statement; ``body`` is its error message, which cannot hold values, as there are no rows."""

    def __init__(self, body: bytes) -> None:
        super().__init__("the shadow refused")
        self.body = body

    @property
    def code(self) -> str:
        """Its SQLSTATE."""
        return next((part[1:].decode() for part in self.body.split(b"\0") if part[:1] == b"C"), "")

    def placed(self, original: Callable[[int], int]) -> ShadowError:
        """The same error, pointing into the client's text; fields that point elsewhere are dropped."""
        fields = [part for part in self.body.split(b"\0") if part and part[:1] not in b"pqW"]
        return ShadowError(b"\0".join(map(partial(_moved, original), fields)) + b"\0\0")


def _moved(original: Callable[[int], int], field: bytes) -> bytes:
    return b"P%d" % (original(int(field[1:]) - 1) + 1) if field[:1] == b"P" else field
