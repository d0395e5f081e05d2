"""Parameters of statements for the curator: infers types that the client does not give, and writes the values into the text.

Only Lapwing's own parser reads the text with its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lapwing.errors import CallRefused
from lapwing.interfaces.wire.lexing import Word, WordKind, words_of
from lapwing.interfaces.wire.values import BOOL, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, VARCHAR

PARAMETERS_MAX = 1_000
FILLED_CHARACTERS_MAX = 2**20
"""A limit is needed because a long value may be used many times."""
TYPE_NAMES = {
    "bool": BOOL,
    "boolean": BOOL,
    "int": INT4,
    "integer": INT4,
    "int2": INT2,
    "int4": INT4,
    "int8": INT8,
    "bigint": INT8,
    "smallint": INT2,
    "float4": FLOAT4,
    "float8": FLOAT8,
    "real": FLOAT4,
    "double": FLOAT8,
    "float": FLOAT8,
    "numeric": NUMERIC,
    "decimal": NUMERIC,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "text": TEXT,
    "varchar": VARCHAR,
    "character": VARCHAR,
}
_SAMPLES = {
    BOOL: "TRUE",
    DATE: "DATE '2024-01-01'",
    TIMESTAMP: "TIMESTAMP '2024-01-01 00:00:00'",
    TIMESTAMPTZ: "TIMESTAMP '2024-01-01 00:00:00'",
    INT2: "1",
    INT4: "1",
    INT8: "1",
    FLOAT4: "1.0",
    FLOAT8: "1.0",
    NUMERIC: "1.0",
}
"""Placeholders for unknown values, to derive the columns of an answer."""


@dataclass(frozen=True, slots=True)
class FilledText:
    """A text with values in place of its parameters, and the position of each."""

    text: str
    edits: tuple[tuple[int, int, int], ...] = ()
    """The position of a parameter, its length, and the length of its value."""

    def original(self, place: int) -> int:
        """The place in the client's text."""
        shift = 0
        for start, before, after in self.edits:
            if place < start + shift:
                break
            if place < start + shift + after:
                return start
            shift += after - before
        return place - shift


def count_of(words: Sequence[Word]) -> int:
    """The number of parameters, which is the highest one used."""
    numbers = [int(word.value) for word in words if word.kind is WordKind.PARAMETER]
    if any(not 1 <= number <= PARAMETERS_MAX for number in numbers):
        raise CallRefused("wire-parameter", f"parameters are numbered from 1 to {PARAMETERS_MAX}")
    return max(numbers, default=0)


def parameter_types(text: str, given: Sequence[int], columns: Mapping[str, int]) -> tuple[int, ...]:
    """The type of each parameter: as given, as cast, that of the column beside it, or text."""
    words = words_of(text)
    types = list(given) + [0] * (count_of(words) - len(given))
    for place, word in enumerate(words):
        if word.kind is WordKind.PARAMETER and types[int(word.value) - 1] == 0:
            types[int(word.value) - 1] = _guessed(words, place, columns)
    return tuple(one or TEXT for one in types)


def _guessed(words: Sequence[Word], place: int, columns: Mapping[str, int]) -> int:
    after = words[place + 1 : place + 3]
    if len(after) == 2 and after[0].says("::") and after[1].value in TYPE_NAMES:
        return TYPE_NAMES[after[1].value]
    if after and after[0].says("as") and len(after) == 2 and after[1].value in TYPE_NAMES:
        return TYPE_NAMES[after[1].value]  # CAST($1 AS type)
    if place and words[place - 1].says("limit", "offset"):
        return INT8
    for near in reversed(words[max(place - 12, 0) : place]):
        if near.is_name and near.value in columns:
            return columns[near.value]
        if near.says("where", "and", "or", "select", "having") and not _inside_between(words, place):
            break
    following = next((word for word in words[place + 1 : place + 5] if word.is_name and word.value in columns), None)
    beside = len(words) > place + 1 and words[place + 1].says("=", "<", ">", "<=", ">=", "<>", "!=")
    return columns[following.value] if following is not None and beside else 0


def _inside_between(words: Sequence[Word], place: int) -> bool:
    return any(word.says("between") for word in words[max(place - 6, 0) : place])


def filled(text: str, literals: Sequence[str]) -> FilledText:
    """The text with these values; ``wire-parameter`` if one is missing."""
    parts: list[str] = []
    edits: list[tuple[int, int, int]] = []
    at = 0
    left = FILLED_CHARACTERS_MAX - len(text)
    for word in words_of(text):
        if word.kind is WordKind.PARAMETER:
            number = int(word.value)
            if not 1 <= number <= len(literals):
                raise CallRefused("wire-parameter", f"there is no parameter ${number}")
            value = literals[number - 1]
            left -= len(value)
            if left < 0:
                raise CallRefused("wire-limit", f"a statement has at most {FILLED_CHARACTERS_MAX:,} characters, with its values")
            parts += [text[at : word.start], value]
            edits.append((word.start, word.end - word.start, len(value)))
            at = word.end
    return FilledText("".join([*parts, text[at:]]), tuple(edits))


def sampled(text: str, types: Sequence[int]) -> FilledText:
    """The text with placeholders for the values of its parameters."""
    return filled(text, [_SAMPLES.get(one, "'x'") for one in types])
