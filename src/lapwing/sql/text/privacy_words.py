"""Lapwing's own words around a statement: ``EXPLAIN PRIVACY``, ``WITH PRIVACY (..)`` and ``SHOW PRIVACY BUDGET``.

They are read at the level of tokens, before anything is parsed, and blanked out: the statement that goes on to ``lapwing.sql.bind`` has
spaces in their place, so every later refusal points at the right place of the original text. Comments stay, and are checked with the rest.
The words are recognised only by their position, so that a table, a column or a common table expression may be called ``privacy``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from lapwing.catalog.settings import Settings
from lapwing.errors import Refused
from lapwing.sql.text.privacy_terms import Clause
from lapwing.sql.text.refusals import span_of

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token


@dataclass(frozen=True, slots=True)
class ShowBudget:
    """``SHOW PRIVACY BUDGET``."""


@dataclass(frozen=True, slots=True)
class Question:
    """A statement to answer, or to explain; ``statement`` is the text with Lapwing's words blanked out."""

    statement: str
    clause: Clause | None
    explain: bool
    tokens: tuple[Token, ...] | None = field(default=None, compare=False)
    """The statement's tokens, if the text was split to find the clause; a text is split only once."""


Words: TypeAlias = ShowBudget | Question

_WORD = re.compile(r"[A-Za-z_]\w*")
_LINE_COMMENT = re.compile(r"--[^\r\n]*")
_COMMENT_MARK = re.compile(r"/\*|\*/")


def read_words(text: str, *, settings: Settings, dialect: str = "duckdb") -> Words:
    """The request in a text, or ``Refused`` with a span of it. A text without the words is an unmodified question.

    Limits come first: a text that is too long, or that cannot be split into tokens, is left for the binder to refuse.
    """
    if len(text.encode("utf-8", "surrogatepass")) > settings.statement_bytes_max:
        return Question(text, None, explain=False)
    opening = _opening(text)
    match opening.words:
        case ("SHOW", "PRIVACY", "BUDGET"):
            return _shown(text, opening)
        case ("SHOW", *_):
            raise _refuse(text, opening, "statement-unsupported", "this cannot be shown", hint="SHOW TABLES, SHOW PRIVACY BUDGET")
        case ("EXPLAIN", "PRIVACY", *_):
            blanked = _blanked(text, opening.places[:2])
            return _asked(blanked, settings=settings, dialect=dialect, explain=True)
        case ("EXPLAIN", "SELECT" | "WITH" | "FROM", *_):
            return _asked(_blanked(text, opening.places[:1]), settings=settings, dialect=dialect, explain=True)
        case ("EXPLAIN", *_):
            hint = "EXPLAIN PRIVACY shows what a statement would cost, free of charge"
            raise _refuse(text, opening, "statement-unsupported", "an engine's plan is never shown", hint=hint)
        case _:
            return _asked(text, settings=settings, dialect=dialect, explain=False)


@dataclass(frozen=True, slots=True)
class _Opening:
    """The first words of a text, at most three, in upper case, and their positions; ``rest`` is where they end."""

    words: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    rest: int


def _opening(text: str) -> _Opening:
    """The words a text starts with; white space and comments between them do not count."""
    words: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    while len(words) < 3:
        word = _WORD.match(text, after_gap(text, at))
        if word is None:
            break
        words.append(word.group().upper())
        places.append(word.span())
        at = word.end()
    return _Opening(tuple(words), tuple(places), at)


def after_gap(text: str, at: int) -> int:
    """The first place from here on that is neither white space nor part of a comment."""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif comment := _LINE_COMMENT.match(text, at):
            at = comment.end()
        elif text.startswith("/*", at) and not text.startswith("/*+", at):
            at = _comment_end(text, at)
        else:
            break
    return at


def _comment_end(text: str, at: int) -> int:
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def _shown(text: str, opening: _Opening) -> ShowBudget:
    """Nothing but semicolons may follow."""
    at = after_gap(text, opening.rest)
    while text.startswith(";", at):
        at = after_gap(text, at + 1)
    if at < len(text):
        raise Refused("privacy-words", "nothing may follow SHOW PRIVACY BUDGET", hint="remove this", span=span_of(text, at, len(text)))
    return ShowBudget()


def _asked(text: str, *, settings: Settings, dialect: str, explain: bool) -> Question:
    # The tokeniser takes a third of a second to import; most texts that do not hold the word need it for binding anyway.
    if "privacy" not in text.lower():
        return Question(text, None, explain)
    from lapwing.sql.text.privacy_clause import read_clause

    read = read_clause(text, settings=settings, dialect=dialect)
    if read is None:
        return Question(text, None, explain)
    return Question(_blanked(text, read.places), read.clause, explain, read.rest)


def _blanked(text: str, places: tuple[tuple[int, int], ...]) -> str:
    """The text with spaces at these places; every other character keeps its position and its line."""
    for start, end in places:
        kept = "".join(character if character in "\r\n" else " " for character in text[start:end])
        text = text[:start] + kept + text[end:]
    return text


def _refuse(text: str, opening: _Opening, code: str, message: str, *, hint: str) -> Refused:
    start, end = opening.places[0]
    return Refused(code, message, hint=hint, span=span_of(text, start, end))
