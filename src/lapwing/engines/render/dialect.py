"""What differs between engines: names of types, literals and the emission of every scalar function.

A dialect is a frozen record of small functions, one per difference, so that adding an engine means filling in one record and running the
engine suite. Everything else is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lapwing.errors import Refused
from lapwing.kernel.expressions import Function

Emit: TypeAlias = Callable[..., str]
"""Takes the SQL of the arguments (already of the right physical type) and gives SQL."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's spelling."""

    name: str
    integer: str
    """64-bit integer type."""
    wide_integer: str
    """Integer type of at least 127 bits."""
    double: str
    boolean: str
    text: str
    date: str
    timestamp: str
    date_literal: Callable[[int], str]
    timestamp_literal: Callable[[int], str]
    text_literal: Callable[[str], str]
    keyed_hash: Callable[[str, str], str]
    """SQL of the hexadecimal SHA-256 of (key SQL, text SQL)."""
    quotient: Callable[[str, str], str]
    """SQL of the integer quotient of two integers, rounded towards zero, exact at any width."""
    byte_length: Callable[[str], str]
    try_cast: Callable[[str, str], str]
    """SQL of a cast that gives NULL where it cannot."""
    is_finite: Callable[[str], str]
    days: Callable[[str], str]
    """SQL of a date as days since 1970-01-01."""
    microseconds: Callable[[str], str]
    """SQL of a timestamp as microseconds since 1970-01-01."""
    parameter: Callable[[int], str]
    """Placeholder of the n-th bound parameter, from 0."""
    functions: Mapping[Function, Emit]
    """Emission of functions that are not shared (see ``expressions``)."""


def quoted(identifier: str) -> str:
    """An identifier in double quotes."""
    if "\x00" in identifier:
        raise Refused("column-name", "a name may not contain the character with code 0")
    return '"' + identifier.replace('"', '""') + '"'


def standard_text_literal(value: str) -> str:
    """A text constant in standard SQL quoting (engines here run with backslashes meaning themselves)."""
    return "'" + value.replace("'", "''") + "'"
