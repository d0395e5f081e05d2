"""Hostile sources: tables whose rows hold whatever could make an engine raise, overflow, round the wrong way or leave a declared range.

Anyone may be a row, so preparation and every expression must be total on these. ``SOURCES`` lists, for every type a Parquet file can give
a column, its worst values; ``hostile_rows`` fills the columns of a declared table from it, each with a source type of its own, right or
wrong, and ``write_rows`` writes them. ``CATALOGUE`` declares one table with a column of every kind, for fuzzing expressions over.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import PublicDecl, TableDecl
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    RealDomain,
    TextDomain,
    TimestampDomain,
)
from tests.support.reference import Raw, RawDay, RawMoment
from tests.support.reference.calendar_parts import DAY_MICROSECONDS
from tests.support.reference.sanitising import DAY_INFINITE, MOMENT_INFINITE

TEXTS: tuple[str, ...] = (
    *("", " ", "a", "A", "á", "a\u0301", "ß", "ſ", "İ", "🦩", "👩‍👩‍👧", "\u202eabc", "\ufeff", "\u00a0", "\u3000", "\U0010ffff", "\ue000"),
    *("'", "''", "it's", '"', '""', "\\", "\\'", "\\n", "a\nb", "\r\n", "\t", "\x01", "\x1b[2J", "\x7f", "a\x00b", "\x00"),
    *("'; DROP TABLE t; --", "/*", "--", ";", "$1", "?", "%", "_", "{}", "NULL", "null", "None"),
    *("0", "-0", "1", "12", " 12 ", "\t3\n", "1_000", "1__0", "1,5", "+5", ".5", "5.", "1e5", "1e", "--5", "12abc", "0.5", "-2.5", "١٢"),
    *("NaN", "nan", "-nan", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e-400", "4.9e-324", "-0.0"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551615", "1" * 60, "0." + "3" * 60),
    *("2024-02-29", "2023-02-29", "2024-02-30", "0001-01-01", "9999-12-31", "10000-01-01", "infinity", "-infinity", "0000-01-01"),
    *("2024-06-01 12:30:00", "2024-06-01T12:30:00", "2024-06-01 25:00:00", "1969-12-31 23:59:59.999999", "24:00:00", "2024-13-01"),
    *("true", "TRUE", "t", "f", "no", "yes", "2", "f ", "F", "x", "other"),
    "long" * 25_000,
)
_DOUBLES: tuple[float, ...] = (
    *(0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 0.3, 1 / 3, 0.49999999999999994, 12.34, 99.995, 1e-9, -1e-9, 100.0, 4999.995),
    *(5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 1e300, 1e308, -1e308, 1.7976931348623157e308),
    *(float("nan"), float("inf"), float("-inf")),
    *(2.0**31, 2.0**52 - 0.5, 2.0**52, 2.0**53, -(2.0**53), 2.0**62, 2.0**63, -(2.0**63), 2.0**64, 2.0**127, -(2.0**127)),
)
_DAYS: tuple[int, ...] = (
    *(0, -1, 1, 19_723, 19_782, 20_000, -719_162, -719_163, 2_932_896, 2_932_897),
    *(DAY_INFINITE, -DAY_INFINITE, DAY_INFINITE - 1, 100_000_000),
)
_MOMENTS: tuple[int, ...] = (
    *(0, -1, 1, 1_717_245_000_000_000, 86_399_999_999, -86_400_000_000, -62_135_596_800_000_000, -62_135_596_800_000_001),
    *(253_402_300_799_999_999, 253_402_300_800_000_000, MOMENT_INFINITE, -MOMENT_INFINITE, 2**62, -(2**62)),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A type that a source column can have, with its hostile values (NULL comes on top)."""

    arrow: pa.DataType
    values: tuple[Raw, ...]

    def array(self, values: Sequence[Raw]) -> pa.Array:
        """The values as a column of this type."""
        plain = [_number_of_day(value) for value in values]
        if pa.types.is_date32(self.arrow):
            return pa.array(plain, pa.int32()).view(self.arrow)
        if pa.types.is_timestamp(self.arrow):
            factors = {"s": (1, 1_000_000), "ms": (1, 1_000), "us": (1, 1), "ns": (1_000, 1)}
            times, over = factors[self.arrow.unit]
            scaled = [None if value is None else int(str(value)) * times // over for value in plain]
            return pa.array(scaled, pa.int64()).view(self.arrow)
        return pa.array(plain, self.arrow)


def _number_of_day(value: Raw) -> object:
    match value:
        case RawDay(days):
            return days
        case RawMoment(microseconds):
            return microseconds
        case _:
            return value


def _integers(low: int, high: int) -> tuple[int, ...]:
    wanted = (0, 1, -1, 2, 5, 7, 100, -100, 127, 255, 2**31, 2**52, -(2**52), 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64 - 1)
    return tuple(sorted({low, high, *(number for number in wanted if low <= number <= high)}))


def _moments(*, digits: int) -> tuple[Raw, ...]:
    """Moments that a unit of ``10**-digits`` seconds can hold: whole units, and no infinity but in microseconds."""
    unit = 10 ** (6 - digits) if digits <= 6 else 1
    limit = 2**63 if digits <= 6 else 2**63 // 1_000
    kept = [moment for moment in _MOMENTS if moment % unit == 0 and abs(moment) < limit and (digits == 6 or abs(moment) < 2**61)]
    return tuple(RawMoment(moment) for moment in kept)


SOURCES: Mapping[str, Source] = {
    "boolean": Source(pa.bool_(), (True, False)),
    "int8": Source(pa.int8(), _integers(-(2**7), 2**7 - 1)),
    "int32": Source(pa.int32(), _integers(-(2**31), 2**31 - 1)),
    "int64": Source(pa.int64(), _integers(-(2**63), 2**63 - 1)),
    "uint8": Source(pa.uint8(), _integers(0, 2**8 - 1)),
    "uint64": Source(pa.uint64(), _integers(0, 2**64 - 1)),
    "float": Source(pa.float32(), tuple(v for v in _DOUBLES if v != v or abs(v) in (0.0, 0.5, 1.5, 2.5, 2.0**31, 2.0**63, float("inf")))),
    "double": Source(pa.float64(), _DOUBLES),
    "decimal": Source(pa.decimal128(38, 0), tuple(Decimal(n) for n in (0, 5, -5, 2**63, 2**64 - 1, 10**38 - 1, 1 - 10**38))),
    "decimal_cents": Source(pa.decimal128(18, 2), tuple(Decimal(n).scaleb(-2) for n in (0, 50, 150, 250, -250, 1234, 10**18 - 1))),
    "text": Source(pa.string(), TEXTS),
    "large_text": Source(pa.large_string(), TEXTS),
    "dictionary": Source(pa.dictionary(pa.int32(), pa.string()), TEXTS),
    "bytes": Source(pa.binary(), (b"", b"a", b"\x00\xff", b"12", b"true")),
    "date": Source(pa.date32(), tuple(RawDay(day) for day in _DAYS)),
    "seconds": Source(pa.timestamp("ms"), _moments(digits=0)),
    "timestamp": Source(pa.timestamp("us"), _moments(digits=6)),
    "nanoseconds": Source(pa.timestamp("ns"), _moments(digits=9)),
    "zoned": Source(pa.timestamp("us", tz="UTC"), _moments(digits=6)),
    "time": Source(pa.time64("us"), (datetime.time(0, 0), datetime.time(23, 59, 59, 999_999))),
    "list": Source(pa.list_(pa.int64()), ([], [1], [1, 2])),
    "record": Source(pa.struct([("a", pa.int64())]), ({"a": 1},)),
    "nothing": Source(pa.null(), ()),
}
"""Every type a hostile column can have, by a name of our own."""


def natural_sources(domain: Domain) -> tuple[str, ...]:
    """Source types whose values can be read as the domain; all others give NULL or text."""
    match domain:
        case IntegerDomain() | RealDomain():
            return ("int64", "uint64", "double", "float", "decimal", "decimal_cents", "text", "int8")
        case BooleanDomain():
            return ("boolean", "text", "int8")
        case DateDomain() | TimestampDomain():
            return ("date", "timestamp", "text", "nanoseconds")
        case KeyDomain(text=False):
            return ("int64", "double", "text")
        case _:
            return ("text", "large_text", "dictionary")


def ordinary(domain: Domain, source: str, choose: random.Random) -> Raw:
    """A value of the source type near or inside the domain, so that not every row is extreme."""
    kind, anything = SOURCES[source].arrow, choose.choice((None, *SOURCES[source].values))
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    match domain:
        case TextDomain(values) if values and is_text:
            return choose.choice(values)
        case BooleanDomain() if is_text:
            return choose.choice(("true", "false"))
        case RealDomain(lo, hi):
            number = choose.uniform(float(lo), float(hi))
            return f"{number:.4f}" if is_text else _as_floating(number, kind, anything)
        case IntegerDomain(lo, hi):
            whole = choose.randint(lo, hi)
            return str(whole) if is_text else whole if pa.types.is_int64(kind) else _as_floating(whole, kind, anything)
        case DateDomain(lo, hi):
            return _as_moment(choose.randint(lo, hi) * DAY_MICROSECONDS, kind, anything)
        case TimestampDomain(lo, hi):
            return _as_moment(choose.randint(lo, hi), kind, anything)
        case _:
            return anything


def _as_floating(number: float, kind: pa.DataType, otherwise: Raw) -> Raw:
    if not pa.types.is_floating(kind):
        return otherwise
    return _as_single(number) if kind == pa.float32() else float(number)


def _as_moment(microseconds: int, kind: pa.DataType, otherwise: Raw) -> Raw:
    if pa.types.is_date32(kind):
        return RawDay(microseconds // DAY_MICROSECONDS)
    if kind == pa.timestamp("us"):
        return RawMoment(microseconds)
    if pa.types.is_string(kind):
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=microseconds)).isoformat(sep=" ")
    return otherwise


def _as_single(number: float) -> float:
    """The nearest single-precision number, as a double."""
    single: float = pa.array([number], pa.float32())[0].as_py()
    return single


def hostile_rows(
    table: TableDecl | PublicDecl, *, rows: int, seed: int, sources: Mapping[str, str], numbered: str | None = None
) -> list[dict[str, Raw]]:
    """Raw rows of a declared table, keyed by source column: about half hostile, a third ordinary, the rest NULL.

    ``sources`` names the source type of each column; the column ``numbered`` holds the number of its row.
    """
    choose = random.Random(seed)
    columns: dict[str, list[Raw]] = {}
    for column in table.columns:
        if column.name == numbered:
            columns[column.source_name] = [*range(rows)]
        else:
            columns[column.source_name] = [*_values(column.domain, sources[column.name], rows, choose)]
    return [{name: values[i] for name, values in columns.items()} for i in range(rows)]


def _values(domain: Domain, source: str, rows: int, choose: random.Random) -> Iterator[Raw]:
    hostile = list(SOURCES[source].values)
    for _ in range(rows):
        lot = choose.random()
        if not hostile or lot < 0.15:
            yield None
        elif lot < 0.5:
            yield ordinary(domain, source, choose)
        else:
            yield choose.choice(hostile)


def write_rows(path: Path, rows: Sequence[Mapping[str, Raw]], types: Mapping[str, str]) -> None:
    """Write raw rows as one Parquet file; ``types`` names the source type of each source column."""
    arrays = {name: SOURCES[source].array([row[name] for row in rows]) for name, source in types.items()}
    pq.write_table(pa.table(arrays), path)


def write_equal_rows(path: Path, row: Mapping[str, Raw], types: Mapping[str, str], *, count: int) -> None:
    """Write one row many times over."""
    write_rows(path, [row] * count, types)


CATALOGUE = """
format = 1
[dataset]
id = "hostile"
unit = "row owner"
[budget]
epsilon = 1
[tables.hostile]
source = "hostile.parquet"
unit = "owner"
rows_max = 1000
[tables.hostile.columns]
row_id = { type = "integer", min = 0, max = 999, null = false }
owner = { type = "key" }
badge = { type = "key", of = "text" }
flag = { type = "boolean" }
switch = { type = "boolean" }
small = { type = "integer", min = -5, max = 5 }
count = { type = "integer", min = 0, max = 1000000 }
debt = { type = "integer", min = -100, max = -1 }
wide = { type = "integer", min = -4503599627370495, max = 4503599627370495 }
price = { type = "real", min = 0, max = 5000, steps = 100 }
ratio = { type = "real", min = -1, max = 1, steps = 1000000000000 }
coarse = { type = "real", min = 0, max = 0.9, steps = 1 }
third = { type = "real", min = -0.3333333333333333333333, max = 0.9999999999999999999999, steps = 7 }
large = { type = "real", min = -1000000000, max = 1000000000, steps = 1024 }
sex = { type = "text", values = ["f", "m", "it's", "a\\u0301"], other = "other" }
note = { type = "text" }
recent = { type = "date", min = 2024-01-01, max = 2024-12-31 }
born = { type = "date", min = 0001-01-01, max = 9999-12-31 }
started = { type = "timestamp", min = 1969-01-01T00:00:00, max = 2024-12-31T23:59:59 }
ended = { type = "timestamp", min = 0001-01-01T00:00:00, max = 9999-12-31T23:59:59.999999 }
[public.places]
source = "places.parquet"
key = "place"
[public.places.columns]
place = { type = "integer", min = -5, max = 5 }
name = { type = "text" }
"""
"""A catalogue with every kind of column; ``row_id`` tells the rows apart."""

CATALOGUE_SOURCES: Mapping[str, str] = {
    "row_id": "int64",
    "owner": "int64",
    "badge": "text",
    "flag": "boolean",
    "switch": "text",
    "small": "int8",
    "count": "double",
    "debt": "text",
    "wide": "uint64",
    "price": "double",
    "ratio": "double",
    "coarse": "float",
    "third": "decimal_cents",
    "large": "int64",
    "sex": "text",
    "note": "text",
    "recent": "timestamp",
    "born": "date",
    "started": "timestamp",
    "ended": "text",
}
"""A source type for each column of the table ``hostile``, some of them not the declared one."""
PLACES_SOURCES: Mapping[str, str] = {"place": "int8", "name": "text"}
"""The same for the public table ``places``."""
