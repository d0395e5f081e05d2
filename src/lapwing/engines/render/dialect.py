"""What differs between engines: names of types, literals and the emission of every scalar function.

A dialect is a frozen record of small functions, one per difference, so that adding an engine means filling in one record and running the
engine suite. Everything else is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from lapwing.errors import Refused
from lapwing.kernel.expressions import Function

Emit: TypeAlias = Callable[..., str]
"""Takes the SQL of the arguments (already of the right physical type) and gives SQL."""


RANKING_KEY = "key"
"""Name of the parameter that orders rows within a unit."""
GROUP_SALT = "salt"
"""Name of the parameter by which units with too many groups choose among them."""


class SourceKind(Enum):
    """What the owner's column holds, as far as reading it goes; each engine says which of its types are which."""

    INTEGER = auto()
    FRACTIONAL = auto()
    """Floating or fixed point."""
    TEXT = auto()
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    """Without a time zone, or an instant: instants are read in UTC."""
    OTHER = auto()
    """Anything else; it is read through the engine's text of it, or not at all."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's spelling. What belongs to one snapshot (``table``) is filled in with ``dataclasses.replace``."""

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
    try_cast: Callable[[str, SourceKind, str], str]
    """SQL of a source value (its SQL, what it is, type wanted), or NULL where that cannot be. Never an error, whatever the row holds."""
    is_finite: Callable[[str], str]
    days: Callable[[str], str]
    """SQL of a date as days since 1970-01-01."""
    microseconds: Callable[[str], str]
    """SQL of a timestamp as microseconds since 1970-01-01."""
    parameter: Callable[[str], str]
    """Placeholder of a bound parameter, by name."""
    materialised: str
    """What says that a common table expression is computed once: after AS, with a space at its end, or nothing."""
    functions: Mapping[Function, Emit]
    """Emission of functions that are not shared (see ``expressions``)."""
    table: Callable[[str], str]
    """SQL of a prepared or public table, by its name: a name, or where nothing may be stored the SELECT that prepares it."""


def quoted(identifier: str) -> str:
    """An identifier in double quotes."""
    if "\x00" in identifier:
        raise Refused("column-name", "a name may not contain the character with code 0")
    return '"' + identifier.replace('"', '""') + '"'


def standard_text_literal(value: str) -> str:
    """A text constant in standard SQL quoting (engines here run with backslashes meaning themselves)."""
    return "'" + value.replace("'", "''") + "'"
