"""Functions of text on one value, as in the reference engine (DuckDB); in Python, over public values only."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from lapwing.render.letters import lower, upper

_NUMBER = re.compile(r"([+-]?)(\d{1,300}\.?\d{0,300}|\.\d{1,300})(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_SPACES = " \t\n\v\f\r"


def substring(text: str, start: int, length: int | None) -> str:
    """Characters from ``start`` on, counted from 1, or from the end if negative; a negative length takes those before."""
    first = start - 1 if start >= 0 else len(text) + start
    last = max(first, len(text)) if length is None else first + length
    first, last = min(first, last), max(first, last)
    return text[max(first, 0) : max(last, 0)]


def left(text: str, count: int) -> str:
    """The first characters, or all but the last if negative."""
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def right(text: str, count: int) -> str:
    """The last characters, or all but the first if negative."""
    return text[max(len(text) - count, 0) :] if count >= 0 else text[-count:]


def trimmed(text: str, position: str) -> str:
    """Without spaces at the start (LEADING), at the end (TRAILING) or both. Tabs and line ends are not spaces."""
    start, end = 0, len(text)
    while position != "TRAILING" and start < end and unicodedata.category(text[start]) == "Zs":
        start += 1
    while position != "LEADING" and start < end and unicodedata.category(text[end - 1]) == "Zs":
        end -= 1
    return text[start:end]


def stripped(text: str, position: str, characters: str) -> str:
    """Without any of these characters at the start (LEADING), at the end (TRAILING) or both."""
    if position != "TRAILING":
        text = text.lstrip(characters)
    return text if position == "LEADING" else text.rstrip(characters)


def padded(text: str, length: int, fill: str, *, before: bool) -> str:
    """Exactly ``length`` characters: truncated at the end, or padded before or after."""
    missing = max(length - len(text), 0)
    more = (fill * (missing // len(fill) + 1))[:missing]
    return f"{more}{text}"[:length] if before and missing else f"{text}{more}"[:length]


def split_part(text: str, separator: str, number: int) -> str:
    """The part with this number between separators, from the end if negative; empty if there is none."""
    parts = text.split(separator)
    return parts[number - 1 if number > 0 else number] if -len(parts) <= number <= len(parts) else ""


def capitalised(text: str) -> str:
    """The first letter of every word in upper case, all others in lower case; a word is letters and digits."""
    letters, inside = [], False
    for letter in text:
        letters.append(lower(letter) if inside else upper(letter))
        inside = letter.isalnum()
    return "".join(letters)


def translated(text: str, old: str, new: str) -> str:
    """Each character of ``old`` replaced by the one at the same place in ``new``, or removed if ``new`` is shorter."""
    table = {letter: new[i] if i < len(new) else "" for i, letter in reversed(list(enumerate(old)))}
    return "".join(table.get(letter, letter) for letter in text)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A LIKE pattern: parts of fixed length with any text between them. Nothing is repeated, so the time to match is bounded."""

    parts: tuple[tuple[str, ...], ...]
    """Between the % signs: characters, and the empty string for any one character."""
    compiled: tuple[re.Pattern[str], ...]

    @classmethod
    def read(cls, written: str, escape: str | None) -> Pattern | None:
        """The pattern, or None if the escape character is the last one."""
        parts: list[list[str]] = [[]]
        letters = iter(written)
        for letter in letters:
            if letter == escape:
                following = next(letters, None)
                if following is None:
                    return None
                parts[-1].append(following)
            elif letter == "%":
                parts.append([])
            else:
                parts[-1].append("" if letter == "_" else letter)
        compiled = tuple(re.compile("".join(re.escape(letter) or "." for letter in part), re.DOTALL) for part in parts)
        return cls(tuple(tuple(part) for part in parts), compiled)

    def matches(self, text: str) -> bool:
        """Whether a text matches: the first part at the start, the last at the end, each other part at its first occurrence."""
        if len(self.parts) == 1:
            return self.compiled[0].fullmatch(text) is not None
        head, tail = len(self.parts[0]), len(self.parts[-1])
        if head + tail > len(text) or not self.compiled[0].match(text) or not self.compiled[-1].match(text, len(text) - tail):
            return False
        at = head
        for part in self.compiled[1:-1]:
            match = part.search(text, at, len(text) - tail)
            if match is None:
                return False
            at = match.end()
        return True


def number(text: str) -> Fraction | None:
    """A text that is a plain decimal number, perhaps with spaces around it, exactly; None for anything else."""
    match = _NUMBER.fullmatch(text.strip(_SPACES))
    if match is None:
        return None
    sign, digits, exponent = match.groups()
    return Fraction(f"{sign}{digits.rstrip('.')}") * Fraction(10) ** int(exponent or 0)


def whole_number(text: str) -> int | None:
    """The whole number nearest to a text that is a number, halves away from zero."""
    value = number(text)
    if value is None:
        return None
    rounded = int((abs(value) + Fraction(1, 2)) // 1)
    return rounded if value >= 0 else -rounded
