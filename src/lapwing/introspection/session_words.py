"""Statements other than queries that clients send: SET, BEGIN, SHOW, DESCRIBE.

They are read by their first words. A session here has no state: statements that would change one are accepted without effect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from lapwing.errors import Refused, Span
from lapwing.sql.text.privacy_words import after_gap
from lapwing.sql.text.refusals import span_of


@dataclass(frozen=True, slots=True)
class IgnoredStatement:
    """A statement without effect here."""

    word: str


@dataclass(frozen=True, slots=True)
class ShowTables:
    """``SHOW TABLES``, or ``DESCRIBE`` alone."""


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """``DESCRIBE visits``, ``SHOW COLUMNS FROM visits``."""

    table: str
    span: Span


@dataclass(frozen=True, slots=True)
class ShowSetting:
    """``SHOW standard_conforming_strings``."""

    name: str
    span: Span


SessionWords: TypeAlias = IgnoredStatement | ShowTables | DescribeTable | ShowSetting

CHANGE_NOTHING = frozenset(
    {"SET", "RESET", "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "DISCARD", "DEALLOCATE", "SAVEPOINT", "RELEASE", "USE"}
)
"""First words of statements that are accepted and change nothing."""
_PIECE = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|[A-Za-z_][\w$-]*|\S")
_NAMES = re.compile(r"[A-Za-z_]\w*|\".*\"")


def read_session_words(text: str) -> SessionWords | None:
    """The statement of a text that starts with such a word and can be read; None otherwise."""
    pieces = _pieces(text)
    if not pieces:
        return None
    words = [piece.upper() for piece, _, _ in pieces]
    start, end = pieces[0][1], pieces[-1][2]
    if words[0] not in CHANGE_NOTHING and words[0] not in ("SHOW", "DESCRIBE", "DESC"):
        return None
    if ";" in words:
        _, at, _ = pieces[words.index(";")]
        hint = "send the statements one by one"
        raise Refused("statement-several", "there is more than one statement", hint=hint, span=span_of(text, at, end))
    place = span_of(text, start, end)
    match words:
        case [word, *_] if word in CHANGE_NOTHING:
            return IgnoredStatement(word)
        case ["SHOW", "PRIVACY", *_]:
            return None
        case ["SHOW", "TABLES"] | ["SHOW", "ALL", "TABLES"] | ["DESCRIBE" | "DESC"]:
            return ShowTables()
        case ["SHOW", "COLUMNS", "FROM" | "IN", *_]:
            return _described(text, pieces[3:])
        case ["DESCRIBE" | "DESC", *_]:
            return _described(text, pieces[2:] if words[1] == "TABLE" and len(pieces) > 2 else pieces[1:])
        case ["SHOW", "TRANSACTION", "ISOLATION", "LEVEL"]:
            return ShowSetting("transaction_isolation", place)
        case ["SHOW", "TIME", "ZONE"]:
            return ShowSetting("timezone", place)
        case ["SHOW", name] if _NAMES.fullmatch(name):
            return ShowSetting(name.strip('"').lower(), place)
        case _:
            return None


def _pieces(text: str) -> list[tuple[str, int, int]]:
    """Words, quoted texts and signs, without comments and without semicolons at the end."""
    pieces: list[tuple[str, int, int]] = []
    at = after_gap(text, 0)
    while at < len(text):
        piece = _PIECE.match(text, at)
        assert piece is not None, "whatever is no white space is a piece"
        pieces.append((piece.group(), piece.start(), piece.end()))
        at = after_gap(text, piece.end())
    while pieces and pieces[-1][0] == ";":
        pieces.pop()
    return pieces


def _described(text: str, pieces: list[tuple[str, int, int]]) -> DescribeTable:
    """The table of ``DESCRIBE schema.table``: the schema is ignored, because all tables are in one."""
    names = [piece for piece, _, _ in pieces]
    is_name = len(names) % 2 == 1 and all(sign == "." for sign in names[1::2]) and all(map(_NAMES.fullmatch, names[::2]))
    start, end = (pieces[0][1], pieces[-1][2]) if pieces else (0, len(text))
    place = span_of(text, start, end)
    if not is_name or len(names) > 5:
        raise Refused("statement-unsupported", "DESCRIBE takes the name of a table", hint="DESCRIBE visits", span=place)
    return DescribeTable(names[-1].strip('"'), place)
