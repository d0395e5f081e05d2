"""Splits a text into words as PostgreSQL itself does with standard strings (which cannot be switched off here).

Lapwing and PostgreSQL must split it in the same way. So the few spellings whose meaning depends on more than the text (identifiers and
strings with Unicode escapes) are refused, and so is anything that is not a word of SQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from lapwing.errors import Refused
from lapwing.sql.text.refusals import span_of

IDENTIFIER_BYTES_MAX = 63
"""PostgreSQL truncates names to this length."""
WORDS_MAX = 20_000


class WordKind(Enum):
    """The kind of a word."""

    NAME = "name"
    """Without quotes: a keyword or a name; its value is in lower case."""
    QUOTED = "quoted name"
    TEXT = "text"
    NUMBER = "number"
    PARAMETER = "parameter"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Word:
    """A word, its place, and its value."""

    kind: WordKind
    value: str
    start: int
    end: int

    def says(self, *words: str) -> bool:
        """Whether it is one of these keywords or symbols."""
        return self.kind in (WordKind.NAME, WordKind.SIGN) and self.value in words

    @property
    def is_name(self) -> bool:
        """Whether it can name something."""
        return self.kind in (WordKind.NAME, WordKind.QUOTED)


_SPACE = re.compile(r"[ \t\n\r\f\v]+")
_LINE_COMMENT = re.compile(r"--[^\n\r]*")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_NAME = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PARAMETER = re.compile(r"\$([0-9]{1,5})")
_DOLLAR = re.compile(r"\$(?:[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)?\$")
_MACRO = re.compile(r"\$__[A-Za-z]+")
_STRING = re.compile(r"'((?:[^']|'')*)'")
_ESCAPED = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"]|"")+)"')
_OPERATOR = re.compile(r"[+\-*/<>=~!@#%^&|`?]+")
_SINGLE = "()[],;:."
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def words_of(text: str) -> list[Word]:
    """All words of a text, without white space and comments; or ``Refused``."""
    words: list[Word] = []
    at = 0
    while True:
        at = _after_gap(text, at)
        if at >= len(text):
            return words
        if len(words) >= WORDS_MAX:
            raise _refuse(text, at, len(text), "the text has too many words")
        word = _word(text, at)
        if words and word.kind is words[-1].kind is WordKind.TEXT:
            # PostgreSQL joins them, and reads the second with the escapes of the first.
            raise _refuse(text, words[-1].start, word.end, "two string literals follow each other")
        words.append(word)
        at = word.end


def statements_of(words: list[Word]) -> list[list[Word]]:
    """The words of each statement of a text; empty ones are left out."""
    parts: list[list[Word]] = [[]]
    for word in words:
        if word.says(";"):
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def _after_gap(text: str, at: int) -> int:
    while at < len(text):
        if gap := _SPACE.match(text, at) or _LINE_COMMENT.match(text, at):
            at = gap.end()
        elif text.startswith("/*", at):
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
    raise _refuse(text, at, len(text), "a comment does not end")


def _word(text: str, at: int) -> Word:
    first = text[at]
    if first == "'":
        return _string(text, at, _STRING, at)
    if first == '"':
        found = _QUOTED.match(text, at)
        if found is None:
            raise _refuse(text, at, len(text), "a quoted name does not end")
        return Word(WordKind.QUOTED, _cut(found[1].replace('""', '"')), at, found.end())
    if found := _NAME.match(text, at):
        return _named(text, at, found)
    if first == "$":
        return _dollar(text, at)
    if first.isascii() and (first.isdigit() or (first == "." and at + 1 < len(text) and text[at + 1].isdigit())):
        return _number(text, at)
    if first in _SINGLE:
        two = text[at : at + 2]
        sign = two if two in ("::", ":=", "..") else first
        return Word(WordKind.SIGN, sign, at, at + len(sign))
    if found := _OPERATOR.match(text, at):
        # A comment may begin inside what looks like one operator.
        sign = re.split(r"--|/\*", found.group())[0]
        while len(sign) > 1 and sign[-1] in "+-" and not set(sign) & set("~!@#%^&|`?"):
            sign = sign[:-1]  # =-1 is two words
        return Word(WordKind.SIGN, sign, at, at + len(sign))
    raise _refuse(text, at, at + 1, "this character is not valid in SQL")


def _named(text: str, at: int, found: re.Match[str]) -> Word:
    """A name, or a string with a letter before it."""
    follows = text[found.end() : found.end() + 2]
    letter = found.group().lower()
    if follows[:1] == "'" and letter in ("e", "b", "x", "n"):
        return _string(text, at, _ESCAPED if letter == "e" else _STRING, found.end())
    if letter == "u" and follows in ("&'", '&"'):
        raise _refuse(text, at, found.end() + 2, "strings and names with Unicode escapes are not supported here")
    return Word(WordKind.NAME, _cut(_folded(found.group())), at, found.end())


def _string(text: str, at: int, pattern: re.Pattern[str], quote: int) -> Word:
    found = pattern.match(text, quote)
    if found is None or text[found.end() : found.end() + 1] == "'":
        raise _refuse(text, at, len(text), "a string literal does not end")
    value = found[1].replace("''", "'")
    if pattern is _ESCAPED:
        value = re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), value, flags=re.DOTALL)
    return Word(WordKind.TEXT, value, at, found.end())


def _dollar(text: str, at: int) -> Word:
    if found := _PARAMETER.match(text, at):
        if _NAME.match(text, found.end()):
            raise _refuse(text, at, found.end() + 1, "a parameter is followed by a letter")
        return Word(WordKind.PARAMETER, found[1], at, found.end())
    if (macro := _MACRO.match(text, at)) and not text.startswith("$", macro.end()):
        hint = "only Grafana expands it: run the statement in a panel of Grafana, or write out the condition"
        raise _refuse(text, at, macro.end(), f"{macro.group()} is a macro of Grafana", hint=hint)
    found = _DOLLAR.match(text, at)
    end = -1 if found is None else text.find(found.group(), found.end())
    if found is None or end < 0:
        raise _refuse(text, at, len(text), "a dollar-quoted string does not end")
    return Word(WordKind.TEXT, text[found.end() : end], at, end + len(found.group()))


def _number(text: str, at: int) -> Word:
    found = _NUMBER.match(text, at)
    assert found is not None
    if _NAME.match(text, found.end()):
        raise _refuse(text, at, found.end() + 1, "a number is followed by a letter")
    return Word(WordKind.NUMBER, found.group(), at, found.end())


def _folded(name: str) -> str:
    """Lower case as in PostgreSQL with UTF-8: only ASCII letters change."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _cut(name: str) -> str:
    return name.encode("utf-8", "replace")[:IDENTIFIER_BYTES_MAX].decode("utf-8", "ignore")


def _refuse(text: str, start: int, end: int, message: str, *, hint: str = "") -> Refused:
    return Refused("sql-syntax", message, hint=hint, span=span_of(text, start, min(end, len(text))))
