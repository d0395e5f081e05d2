"""Reads the words of a statement about the catalogue and writes our own pieces: keywords, names, literals and types."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lapwing.errors import Refused
from lapwing.interfaces.wire.catalogue.words import SCHEMA_TYPES, TYPES
from lapwing.interfaces.wire.lexing import Word, WordKind
from lapwing.sql.text.refusals import span_of

DEPTH_MAX = 40
_RESERVED_WORDS = """
all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default deferrable desc distinct
do else end except fetch for foreign from grant group having in initially intersect into lateral leading limit not offset on only or order
placing primary references returning select some symmetric table then to trailing union unique using variadic when where window with
cross full ilike inner is isnull join left like natural notnull outer overlaps right similar tablesample binary concurrently freeze
verbose authorization collation operator
"""
RESERVED = frozenset(_RESERVED_WORDS.split())
NUMBER_TYPES = frozenset({"int", "integer", "smallint", "bigint", "real", "boolean"})
SIZED_TYPES = frozenset(
    {"float", "decimal", "dec", "numeric", "varchar", "nchar", "bit", "char", "character", "timestamp", "time", "interval"}
)
_INTERVAL_FIELDS = frozenset({"year", "month", "day", "hour", "minute", "second", "to"})
_NOT_DECODED = re.compile(r"\\[0-7xXuU]")
_HINT = "statements about the catalogue may call only functions that change nothing; to ask about data, SELECT from its tables"


@dataclass(frozen=True, slots=True)
class Piece:
    """A generated text, and the place in the client's text that it replaces."""

    text: str
    place: int


class PieceWriter:
    """Reads words from the first one on, and writes pieces."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self._text, self._words = text, words
        self._at = self._depth = 0
        self._pieces: list[Piece] = []

    def _next(self, ahead: int = 0) -> Word | None:
        place = self._at + ahead
        return self._words[place] if place < len(self._words) else None

    def _says(self, *words: str, ahead: int = 0) -> bool:
        word = self._next(ahead)
        return word is not None and word.says(*words)

    def _place(self) -> int:
        word = self._next() or self._words[-1]
        return word.start

    def _write(self, text: str, place: int | None = None) -> None:
        self._pieces.append(Piece(text, self._place() if place is None else place))

    def _keyword(self, *words: str) -> str:
        """Read and write one of these keywords or symbols if it is next; otherwise do nothing."""
        word = self._next()
        if word is None or not word.says(*words):
            return ""
        self._write(word.value.upper())
        self._at += 1
        return word.value

    def _keywords(self, *words: str) -> bool:
        """Read and write all of these if they are next."""
        if not all(self._says(word, ahead=ahead) for ahead, word in enumerate(words)):
            return False
        for word in words:
            self._keyword(word)
        return True

    def _require(self, *words: str) -> str:
        found = self._keyword(*words)
        if not found:
            raise self._refuse(f"{' or '.join(words).upper()} is missing here", code="sql-syntax")
        return found

    def _is_free_name(self) -> bool:
        """Whether the next word is a name and not reserved."""
        word = self._next()
        return word is not None and word.is_name and not (word.kind is WordKind.NAME and word.value in RESERVED)

    def _name(self) -> str:
        """Read and write a name, in quotes."""
        word = self._next()
        if word is None or not self._is_free_name():
            raise self._refuse("a name is missing here", code="sql-syntax")
        self._write(quoted(word.value))
        self._at += 1
        return word.value

    def _list(self, rule: Callable[[], object]) -> None:
        rule()
        while self._keyword(","):
            rule()

    def _refuse(self, message: str, *, code: str = "wire-statement", word: Word | None = None) -> Refused:
        at = word or self._next() or self._words[-1]
        return Refused(code, message, hint=_HINT, span=span_of(self._text, at.start, at.end))

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._refuse(f"statements about the catalogue nest at most {DEPTH_MAX} deep")

    def _name_parts(self) -> list[Word]:
        """Read a name with dots, without writing it."""
        parts: list[Word] = []
        while True:
            word = self._next()
            if word is None or not word.is_name or (not parts and word.kind is WordKind.NAME and word.value in RESERVED):
                raise self._refuse("a name is missing here", code="sql-syntax")
            parts.append(word)
            self._at += 1
            if not self._says(".") or self._says("*", ahead=1):
                return parts
            self._at += 1

    def _dotted(self, parts: Sequence[Word]) -> None:
        self._write(".".join(quoted(part.value) for part in parts), parts[0].start)

    def _number(self) -> None:
        word = self._next()
        if word is None or word.kind is not WordKind.NUMBER:
            raise self._refuse("a number is missing here", code="sql-syntax")
        self._write(word.value)
        self._at += 1

    def _literal(self) -> None:
        word = self._next()
        assert word is not None
        written = self._text[word.start : word.end]
        if written[0] not in "'$eE" or (written[0] in "eE" and _NOT_DECODED.search(written.replace("\\\\", ""))):
            raise self._refuse("this form of a string literal is not supported here", code="sql-syntax")
        self._write(literal(word.value))
        self._at += 1

    def _in_brackets(self, rule: Callable[[], object]) -> None:
        self._require("(")
        rule()
        self._require(")")

    # -- types -----------------------------------------------------------------------------------------------------------------------

    def _type(self) -> None:
        word = self._next()
        if word is None or not word.is_name:
            raise self._refuse("a type is missing here", code="sql-syntax")
        if word.kind is WordKind.NAME and not self._says(".", ahead=1) and self._standard_type(word.value):
            pass
        else:
            parts = self._name_parts()
            self._known_type([part.value for part in parts], parts)
            self._sizes()
        while self._keyword("["):
            if not self._says("]"):
                self._number()
            self._require("]")

    def _standard_type(self, name: str) -> bool:
        """A type with its own syntax in the SQL standard."""
        if name == "double":
            self._keyword("double")
            self._require("precision")
        elif name in NUMBER_TYPES:
            self._keyword(name)
        elif name in SIZED_TYPES:
            self._keyword(name)
            self._keyword("varying")
            self._sizes()
            if name in ("timestamp", "time") and self._says("with", "without") and self._says("time", ahead=1):
                self._keyword("with", "without")
                self._keyword("time")
                self._require("zone")
            self._interval_fields(name)
        else:
            return False
        return True

    def _interval_fields(self, name: str) -> None:
        while name == "interval" and self._keyword(*_INTERVAL_FIELDS):
            self._sizes()

    def _sizes(self) -> None:
        if self._keyword("("):
            self._list(self._number)
            self._require(")")

    def _known_type(self, names: Sequence[str], parts: Sequence[Word]) -> None:
        schema, name = names[0] if len(names) == 2 else "pg_catalog", names[-1]
        known = TYPES if schema == "pg_catalog" else SCHEMA_TYPES if schema == "information_schema" else frozenset()
        if len(names) > 2 or name.removeprefix("_") not in known:
            raise self._refuse(f"the type {name[:63]} is not known here", word=parts[-1])
        self._write(f"{schema}.{quoted(name)}", parts[0].start)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """A string literal that does not depend on standard_conforming_strings."""
    written = value.replace("'", "''")
    return f"E'{written}'".replace("\\", "\\\\") if "\\" in value else f"'{written}'"
