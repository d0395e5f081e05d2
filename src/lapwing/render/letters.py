"""Small letters and capitals, letter by letter: one meaning for all engines, which differ in theirs.

DuckDB's own functions are these very ones (a test goes through all of Unicode). Other engines translate by the list of all letters that
have another case.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from lapwing.kernel.expressions import Function

_LETTERS_END = 0x1F000
"""No letter from here on has another case."""


def lower(text: str) -> str:
    """Letter by letter; a letter whose small form is several letters keeps its first."""
    return text.lower() if text.isascii() else "".join(letter.lower()[0] for letter in text)


def upper(text: str) -> str:
    """Letter by letter; a letter whose capital would be several letters has a single title form, or stays."""
    return text.upper() if text.isascii() else "".join(_capital(letter) for letter in text)


def _capital(letter: str) -> str:
    if letter == "ß":
        return "ẞ"
    return next((form for form in (letter.upper(), letter.title()) if len(form) == 1), letter)


@cache
def changed(function: Function) -> tuple[str, str]:
    """The letters that LOWER or UPPER changes, and what each becomes."""
    change = lower if function is Function.LOWER else upper
    letters = [chr(code) for code in range(_LETTERS_END) if not 0xD800 <= code <= 0xDFFF]
    pairs = [(letter, change(letter)) for letter in letters if change(letter) != letter]
    return "".join(letter for letter, _ in pairs), "".join(other for _, other in pairs)


def by_list(function: Function, text: str, literal: Callable[[str], str]) -> str:
    """SQL of a text in another case; ``literal`` is how the engine writes a text."""
    old, new = changed(function)
    return f"translate({text}, {literal(old)}, {literal(new)})"
