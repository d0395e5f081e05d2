"""Where each key and value of a TOML text is, so that a problem can point at its line.

``tomllib`` decides what the text means; this scanner only remembers places. It runs on text that ``tomllib`` has already accepted, so it
needs no error handling of its own, and a test compares the two on random documents: every path ``tomllib`` reads has a place here, and
the text at that place means the same value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

from lapwing.errors import Span

Path = tuple[str | int, ...]
"""Keys and array positions from the top of the document down."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_VALUE = re.compile(r"[^,\]}#\n]*")
_STRINGS = (
    re.compile(r'"""(?:\\.|[^\\])*?"{3,5}', re.DOTALL),
    re.compile(r"'''.*?'{3,5}", re.DOTALL),
    re.compile(r'"(?:\\.|[^"\\])*"'),
    re.compile(r"'[^']*'"),
)


@dataclass(frozen=True, slots=True)
class KeyPosition:
    """Character ranges of a key and of its value; a table's value is its header, an array element has no key of its own."""

    key: tuple[int, int]
    value: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Positions:
    """The places of all paths of one text."""

    text: str
    places: dict[Path, KeyPosition]

    def span(self, path: Path, *, of_key: bool = False) -> Span:
        """The span of ``path``, or of its nearest ancestor that stands in the text (a missing key points at its table)."""
        for length in range(len(path), 0, -1):
            place = self.places.get(path[:length])
            if place is not None:
                start, end = place.key if of_key or length < len(path) else place.value
                return self.span_at(start, end)
        return self.span_at(0, 0)

    def span_at(self, start: int, end: int) -> Span:
        """The span of a character range."""
        line_start = self.text.rfind("\n", 0, start) + 1
        return Span(start=start, end=end, line=self.text.count("\n", 0, start) + 1, column=start - line_start + 1)


def positions(text: str) -> Positions:
    """Index a text that ``tomllib.loads`` accepts. Line ends are ``\\n`` only: normalise before calling."""
    scanner = _Scanner(text)
    scanner.document()
    return Positions(text=text, places=scanner.places)


@dataclass(slots=True)
class _Scanner:
    text: str
    at: int = 0
    places: dict[Path, KeyPosition] = field(default_factory=dict)
    elements: dict[Path, int] = field(default_factory=dict)
    """How many ``[[headers]]`` each array of tables has had so far."""

    def document(self) -> None:
        table: Path = ()
        self.skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_BLANK)

    def header(self) -> Path:
        start = self.at
        is_array = self.text.startswith("[[", start)
        self.at += 2 if is_array else 1
        parts = list(self.key_parts())
        self.at += 2 if is_array else 1
        whole = (start, self.at)
        path: Path = ()
        for position, (name, begin, end) in enumerate(parts):
            path = (*path, name)
            is_last = position == len(parts) - 1
            self.note(path, key=(begin, end), value=whole, replace=is_last)
            if is_last and is_array:
                self.elements[path] = self.elements.get(path, 0) + 1
            if path in self.elements:
                path = (*path, self.elements[path] - 1)
                self.note(path, key=(begin, end), value=whole, replace=is_last)
        return path

    def pair(self, table: Path) -> None:
        path = table
        parts = list(self.key_parts())
        self.at += 1  # the equals sign: key_parts leaves us on it
        self.skip(_SPACE)
        keys = []
        for name, begin, end in parts:
            path = (*path, name)
            keys.append((path, (begin, end)))
        value = self.value(path)
        for inner, key in keys[:-1]:
            self.note(inner, key=key, value=key, replace=False)
        self.note(path, key=keys[-1][1], value=value, replace=True)

    def key_parts(self) -> Iterator[tuple[str, int, int]]:
        """The parts of a dotted key; leaves the scanner on the first character after it."""
        while True:
            self.skip(_SPACE)
            begin = self.at
            if self.text[begin] in "\"'":
                self.string()
                raw = self.text[begin : self.at]
                name = str(tomllib.loads(f"key = {raw}")["key"])
            else:
                self.skip(_BARE_KEY)
                name = self.text[begin : self.at]
            yield name, begin, self.at
            self.skip(_SPACE)
            if self.text[self.at] != ".":
                return
            self.at += 1

    def value(self, path: Path) -> tuple[int, int]:
        start = self.at
        match self.text[start]:
            case '"' | "'":
                self.string()
            case "[":
                self.array(path)
            case "{":
                self.inline_table(path)
            case _:
                self.skip(_BARE_VALUE)
                self.at = start + len(self.text[start : self.at].rstrip(" \t"))
        return start, self.at

    def array(self, path: Path) -> None:
        self.at += 1
        count = 0
        self.skip(_BLANK)
        while self.text[self.at] != "]":
            element = (*path, count)
            where = self.value(element)
            self.note(element, key=where, value=where, replace=True)
            count += 1
            self.skip_separator()
        self.at += 1

    def inline_table(self, path: Path) -> None:
        self.at += 1
        self.skip(_BLANK)
        while self.text[self.at] != "}":
            self.pair(path)
            self.skip_separator()
        self.at += 1

    def skip_separator(self) -> None:
        self.skip(_BLANK)
        if self.text[self.at] == ",":
            self.at += 1
            self.skip(_BLANK)

    def string(self) -> None:
        for pattern in _STRINGS:
            if match := pattern.match(self.text, self.at):
                self.at = match.end()
                return
        raise AssertionError("the text was not checked by tomllib first")

    def skip(self, pattern: re.Pattern[str]) -> None:
        if match := pattern.match(self.text, self.at):
            self.at = match.end()

    def note(self, path: Path, *, key: tuple[int, int], value: tuple[int, int], replace: bool) -> None:
        """Keep the first place of a table named only in passing; its own header or value wins over that."""
        if replace or path not in self.places:
            self.places[path] = KeyPosition(key=key, value=value)
