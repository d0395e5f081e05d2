"""Every exception Lapwing raises, each with a stable code.

An error is part of the interface: its code never changes meaning, it names who must act, and its text depends on public facts only
(the statement, the catalogue, the ledger), never on a value from the data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from linecache import getline
from traceback import walk_tb
from typing import Any


class Actor(Enum):
    """Who can do something about an error."""

    ANALYST = "analyst"
    OWNER = "owner"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of characters in a text; ``line`` and ``column`` count from 1."""

    start: int
    end: int
    line: int
    column: int


class LapwingError(Exception):
    """Base of all errors. ``code`` is stable; ``hint`` says what to do next."""

    actor: Actor = Actor.OPERATOR

    def __init__(self, code: str, message: str, *, hint: str = "", span: Span | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.span = span

    def __str__(self) -> str:
        text = f"[{self.code}] {self.message}"
        return f"{text} ({self.hint})" if self.hint else text

    def problem(self) -> dict[str, Any]:
        """The error for programs, as problem details (RFC 9457) have it: over HTTP and on the command line."""
        body: dict[str, Any] = {"type": f"urn:lapwing:error:{self.code}", "title": self.message, "code": self.code}
        if self.hint:
            body["hint"] = self.hint
        if self.span is not None:
            body["span"] = asdict(self.span)
        return body

    def _render_traceback_(self) -> list[str]:
        """The text that IPython shows instead of a traceback of our code: the message, the hint, and the line of the cell."""
        at = "" if self.span is None else f", at line {self.span.line}, column {self.span.column}"
        lines = [f"[{self.code}] {self.message}{at}", *([f"hint: {self.hint}"] if self.hint else [])]
        cells = [(frame, number) for frame, number in walk_tb(self.__traceback__) if frame.f_globals.get("__name__") == "__main__"]
        for frame, number in cells[-1:]:
            lines.append(f"in line {number}: {getline(frame.f_code.co_filename, number).strip()}".rstrip(": "))
        return lines


class Refused(LapwingError):
    """The statement or plan cannot be answered privately, or at all. Nothing was charged."""

    actor = Actor.ANALYST


class BudgetRefused(Refused):
    """The budget cannot pay for the statement. Nothing was charged."""


class CallRefused(LapwingError):
    """A server refuses a call before anything is asked: the caller is unknown or not permitted, or the call is invalid."""

    actor = Actor.ANALYST


class CatalogueError(LapwingError):
    """A declaration is missing or contradictory; ``span`` points into the catalogue file."""

    actor = Actor.OWNER


class PreparationError(LapwingError):
    """A snapshot could not be made or opened."""

    actor = Actor.OWNER


class LedgerError(LapwingError):
    """The ledger cannot be trusted or reached; nothing is answered until it is."""

    actor = Actor.OPERATOR


class Incident(LapwingError):
    """The engine failed after data was read. The charge is forfeited; the text is always the same."""

    actor = Actor.OWNER

    def __init__(self) -> None:
        super().__init__(
            "incident",
            "the engine failed while reading the data; the charge is kept and the data set is closed",
            hint="the data owner can find the cause in the engine's own log and re-open the data set",
        )
