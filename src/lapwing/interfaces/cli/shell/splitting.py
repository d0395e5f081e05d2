"""The end of a statement: a semicolon outside of strings, names and comments."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|/\*|;""")
_COMMENT_MARK = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Split:
    """Statements that are finished, without their semicolons, and the text after them."""

    statements: tuple[str, ...]
    rest: str


def split(text: str) -> Split:
    """The finished statements of a text. Empty ones are left out."""
    statements: list[str] = []
    start = at = 0
    while (piece := _PIECE.search(text, at)) is not None:
        if piece.group() == ";":
            statements.append(text[start : piece.start()].strip())
            start = at = piece.end()
        elif piece.group() == "/*":
            at = _comment_end(text, piece.start())
        else:
            at = piece.end()
    return Split(tuple(statement for statement in statements if statement), text[start:])


def statements_of(text: str) -> tuple[str, ...]:
    """All statements of a text; the last may lack its semicolon. Comments alone are none."""
    parts = split(text)
    return tuple(statement.strip() for statement in (*parts.statements, parts.rest) if without_comments(statement).strip())


def without_comments(text: str) -> str:
    """A text with a blank in place of each comment."""
    kept: list[str] = []
    start = at = 0
    while (piece := _PIECE.search(text, at)) is not None:
        at = _comment_end(text, piece.start()) if piece.group() == "/*" else piece.end()
        if piece.group() == "/*" or piece.group().startswith("--"):
            kept.append(text[start : piece.start()])
            start = at
    return " ".join([*kept, text[start:]])


def is_command(text: str) -> bool:
    """Whether a text is one of the shell's own commands, which take one line."""
    return text.lstrip().startswith("\\")


def is_finished(text: str) -> bool:
    """Whether Enter submits a text: a command, nothing at all, or statements that end with a semicolon."""
    return is_command(text) or not split(text).rest.strip()


def without_semicolon(text: str) -> str:
    """The only statement of a text, finished or not; empty where there are several, none, or a command."""
    if is_command(text):
        return ""
    parts = split(text)
    found = [*parts.statements, *([parts.rest.strip()] if parts.rest.strip() else [])]
    return found[0] if len(found) == 1 else ""


def _comment_end(text: str, at: int) -> int:
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)
