"""What differs between engines: names of types, literals and the emission of every scalar function.

A dialect is a frozen record of small functions, one per difference, so that adding an engine means filling in one record and running the
engine suite. Everything else is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from lapwing.errors import Refused
from lapwing.kernel.expressions import Function
from lapwing.kernel.ir import Blocks

Emit: TypeAlias = Callable[..., str]
"""Takes the SQL of the arguments (already of the right physical type) and gives SQL."""


RANKING_KEY = "key"
"""Name of the parameter that orders rows within a unit."""
GROUP_SALT = "salt"
"""Name of the parameter by which units with too many groups choose among them."""


class SourceKind(Enum):
    """What the owner's column holds, as far as reading it goes; each engine says which of its types are which."""

    INTEGER = auto()
    """Whole numbers of any width; fixed point without decimals is this too."""
    FRACTIONAL = auto()
    """Floating point, or what is read as such."""
    DECIMAL = auto()
    """Fixed point with decimals; more digits than a double has, so an identifier is never read through one."""
    TEXT = auto()
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    """Without a time zone, or an instant: instants are read in UTC."""
    UUID = auto()
    """Read as text: small letters and hyphens, as all engines write it."""
    OTHER = auto()
    """Anything else; it is not read."""


def quoted(identifier: str) -> str:
    """An identifier in double quotes."""
    if "\x00" in identifier:
        raise Refused("column-name", "a name may not contain the character with code 0")
    return '"' + identifier.replace('"', '""') + '"'


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
    """SQL of the integer quotient of two integers, rounded towards zero, exact whatever their width; the quotient itself has at most 64
    bits.
    """
    byte_length: Callable[[str], str]
    try_cast: Callable[[str, SourceKind, str], str]
    """SQL of a source value (its SQL, what it is, the type to read it as), or NULL where that is impossible. Never an error, whatever the
    row holds.

    Called for what ``reading.readable`` allows only. Text is cast to anything but text only where it matches the grammar for that type, and
    then a number beyond a double or 64 bits and a date that does not exist are NULL, or infinite; a number below the least double is 0.
    """
    matches: Callable[[str, str], str]
    """SQL of whether a whole text (its SQL) matches a regular expression of ``reading``: ASCII classes, groups, ?, *, +, {m,n}, |."""
    whole_decimal: Callable[[str], str]
    """SQL of a fixed-point value with decimals as a 64-bit integer, exactly: NULL where it is not whole, or too large."""
    unit_hash: Callable[[str], str]
    """SQL of a whole number, of any sign, that the engine's own hash makes of a unit (its SQL). It may differ between engines and versions:
    a sample of units rests on nothing but that it is a function of the unit.
    """
    is_finite: Callable[[str], str]
    days: Callable[[str], str]
    """SQL of a date as days since 1970-01-01."""
    microseconds: Callable[[str], str]
    """SQL of a timestamp as microseconds since 1970-01-01."""
    parameter: Callable[[str], str]
    """Placeholder of a bound parameter, by name."""
    materialised: str
    """The words after AS which say that a common table expression is computed once, with a space at the end; or nothing."""
    fence: str
    """The words after a SELECT that keep an engine from copying its expressions to every place that uses them, with a space before; or
    nothing.
    """
    functions: Mapping[Function, Emit]
    """Emission of functions that are not shared (see ``expressions``)."""
    wide_as_double: Callable[[str], str]
    """SQL of a wide integer of at least 0 as the double nearest to it, halves to even."""
    table: Callable[[str], str]
    """SQL of a prepared or public table, by its name: a name or, where nothing may be stored, the SELECT that prepares it."""
    quoted: Callable[[str], str] = quoted
    """An identifier in quotes."""
    bytewise: Callable[[str], str] = lambda text: text
    """SQL of a text that sorts by its bytes."""
    product: Callable[[str, str], str] = lambda a, b: f"({a} * {b})"
    """SQL of the product of two doubles that may underflow (``magnitudes``), and cannot overflow; then it is 0, or the nearest double, and
    never an error."""
    ratio: Callable[[str, str], str] = lambda a, b: f"({a} / {b})"
    """SQL of the quotient of two doubles, the second of which is not 0; underflow as for ``product``."""
    whole_as_wide: Callable[[str, str], str] = lambda double, wide: f"CAST({double} AS {wide})"
    """SQL of a whole double from 0 to 2^64 as a wide integer (its type), exactly."""
    total: Callable[[str], str] = lambda value: f"SUM({value})"
    """SQL of the exact sum of 64-bit integers, which a certificate keeps below 2^62, or of wide ones, below 2^126; NULL over no row.

    The certificate counts on ``rows_max``. Where nothing checks that (virtual preparation), the sum must be wide for both.
    """
    extreme: Callable[[str, Sequence[str]], str] = lambda name, values: f"{name}({', '.join(values)})"
    """SQL of the ``least`` or ``greatest`` (its name) of values that are not NULL; NULL where all are."""
    blocks: Callable[[str, Blocks], str] | None = None
    """SQL of a relation that has the rows of these blocks of a prepared table, and may have others of it; None where that is the table."""
    executed: bool = True
    """Whether the statements have run on the engine, in the engine suite. No engine is registered for a dialect whose statements have
    not.
    """

    def scanned(self, name: str, blocks: Blocks | None) -> str:
        """SQL of what a scan of a prepared table reads, before its conditions."""
        return self.table(name) if blocks is None or self.blocks is None else self.blocks(name, blocks)


def standard_text_literal(value: str) -> str:
    """A text constant in standard SQL quoting (engines here run with backslashes meaning themselves)."""
    return "'" + value.replace("'", "''") + "'"


def double_literal(value: float, double: str) -> str:
    """A double as a constant that every engine reads as this very double: with an exponent, else some read it as a decimal."""
    text = repr(value)
    return f"CAST({text if 'e' in text else text + 'e0'} AS {double})"


def half_away_from_zero(value: str, digits: int, double: str) -> str:
    """SQL of round(value * 10^digits) / 10^digits, halves away from zero, for engines whose own rounding differs.

    floor(a + h) with h the largest double below 1/2 is the nearest whole number, halves up, for every double a >= 0: a + 1/2 would round
    the largest double below 1/2 up to 1.
    """
    scale = double_literal(float(10**digits), double)
    scaled = f"({value} * {scale})"
    half = double_literal(0.49999999999999994, double)
    return f"(CAST(sign({scaled}) AS {double}) * floor(abs({scaled}) + {half}) / {scale})"
