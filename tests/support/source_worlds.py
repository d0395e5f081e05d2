"""Sources as owners have them, made to break preparation: many files, folders that are columns, mixed schemas, identifiers that look alike.

A *family* is a set of sources and the pairs of them that are neighbours: some units that are there or not, and one place that is empty or
holds one of several contents. A unit brings records, into files that others write to as well or into files and folders of its own; some
contents bring what preparation must refuse (a key that somebody else holds, a file with another type, a folder whose name is no text).
``Source.stops`` says which of the stated rules apply, and ``Source.owned`` whose record each is; both are worked out here, in Python.
"""

from __future__ import annotations

import csv
import itertools
import random
import re
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import Declaration, load
from lapwing.kernel.domains import KeyDomain
from tests.support.reference import Raw, Stored
from tests.support.reference.sanitising import unit_of

Record = dict[str, Raw]
Unit = Stored
Key = Callable[[Record], Unit]
FIRST = "-0"
"""How the names of the files end that are there before any other."""
LATER = 10**6
"""Where the numbers of records start that come later."""
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_DECIMAL = {"decimal": pa.decimal128(24, 2), "wide": pa.decimal128(20, 0)}
_ARROW: Mapping[str, pa.DataType] = {"int": pa.int64(), "small": pa.int32(), "text": pa.string(), "double": pa.float64(), **_DECIMAL}


@dataclass(frozen=True)
class Identifiers:
    """One way in which a source stores the identifiers of units."""

    arrow: str
    is_text: bool
    values: tuple[Raw, ...]
    """Each a unit of its own."""
    nobody: tuple[Raw, ...]
    """Values that are no unit."""


_WHOLE = (2**53, 2, 10**17, 1, 77, 2**53 + 1, 10**17 + 1, 0, -1, 2**63 - 1)
"""Whole numbers of which a double would make fewer."""
_DIGITS = ("1", "9007199254740992", "-1", "2", "77", "9007199254740993", "0", "9223372036854775807", "10", "3")
_NO_DIGITS = (None, "01", "+1", " 1", "1.0", "1e0", "", "9223372036854775808", "-0")
_DOUBLES = (1.0, 2.0, 3.0, 0.0, -1.0, 2.0**53, 2.0**53 - 1, -(2.0**53), 10.0, 77.0)
_TEXTS = ("a", "\u00e1", "1", "NULL", "it's", "A", "a ", "a\u0301", "01", " a")
_FIXED = tuple(map(Decimal, _WHOLE))
IDENTIFIERS: Mapping[str, Identifiers] = {
    "int": Identifiers("int", False, _WHOLE, (None,)),
    "decimal": Identifiers("decimal", False, _FIXED, (None, Decimal("1.50"), Decimal("0.01"), Decimal(10**20))),
    "wide": Identifiers("wide", False, _FIXED, (None, Decimal(2**63))),
    "double": Identifiers("double", False, _DOUBLES, (None, 1.5, 2.0**60, -0.5)),
    "digits": Identifiers("text", False, _DIGITS, _NO_DIGITS),
    "text": Identifiers("text", True, _TEXTS, (None,)),
}


@dataclass(frozen=True)
class File:
    """One file of a table: where it lies, the types of its columns in their order, and its records."""

    table: str
    name: str
    types: tuple[tuple[str, str], ...]
    records: tuple[Record, ...] = ()
    folder: str | None = None
    """What the folder says about the region, as it is written in the path."""


@dataclass(frozen=True)
class Style:
    """What the sources of one family have in common."""

    people: Identifiers
    visits: Identifiers
    region: str
    """How the region is declared: listed, whole, key or flag."""
    in_folders: bool
    csv: bool
    straight: bool
    """Whether visits hold their unit themselves, or reach it through people."""
    growing: bool = False
    """Whether visits have a number that grows from file to file, so that they can be appended to."""

    def types(self, table: str) -> tuple[tuple[str, str], ...]:
        """The columns of a file of a table, with the names of their types."""
        person, visit = ("person", self.people.arrow), ("visit", self.visits.arrow)
        inside = () if self.in_folders else (("region", "text"),)
        columns: Mapping[str, tuple[tuple[str, str], ...]] = {
            "people": (person, ("age", "int"), *inside),
            "visits": (visit, person, ("cost", "double"), *((("seq", "int"),) if self.growing else ())),
            "drugs": (visit, ("code", "text"), ("dose", "int")),
            "packets": (("code", "text"), ("size", "int")),
        }
        return columns[table]

    def catalogue(self) -> str:
        """The declaration of every source of the family."""
        regions = {
            "listed": 'type = "text", values = ["north", "7"]',
            "whole": 'type = "integer", min = 0, max = 9',
            "key": _key(True),
            "flag": 'type = "boolean"',
        }
        visits = "person" if self.straight else "person -> people.person"
        people = "people/*/*.parquet" if self.in_folders else "people.parquet"
        return _CATALOGUE.format(
            people=people,
            partitions='partitions = ["region"]' if self.in_folders else "",
            person=_key(self.people.is_text),
            visit=_key(self.visits.is_text),
            region=regions[self.region],
            unit=visits,
            many="-*" if self.in_folders else "",
            visits_suffix="csv" if self.csv else "parquet",
            appended='appended_by = "seq"' if self.growing else "",
        )


def _key(is_text: bool) -> str:
    return 'type = "key", of = "text"' if is_text else 'type = "key"'


TABLES = {"people": 1, "visits": 3, "drugs": 4, "packets": 3}
"""Protected tables, and most rows of a unit in each."""
_CATALOGUE = """
format = 1
[dataset]
id = "sources"
unit = "person"
[budget]
epsilon = 1
[tables.people]
source = "{people}"
unit = "person"
one_row_per_unit = true
rows_max = 10_000
{partitions}
[tables.people.columns]
person = {{ {person} }}
age = {{ type = "integer", min = 0, max = 90 }}
region = {{ {region} }}
[tables.visits]
source = "visits{many}.{visits_suffix}"
unit = "{unit}"
rows_per_unit_max = 3
rows_max = 10_000
{appended}
[tables.visits.columns]
visit = {{ {visit} }}
person = {{ {person} }}
cost = {{ type = "real", min = 0, max = 100, steps = 4 }}
[tables.drugs]
source = "drugs{many}.parquet"
unit = "visit -> visits.visit"
rows_per_unit_max = 4
rows_max = 10_000
[tables.drugs.columns]
visit = {{ {visit} }}
code = {{ type = "key", of = "text" }}
dose = {{ type = "integer", min = 0, max = 9 }}
[tables.packets]
source = "packets{many}.parquet"
unit = "code -> drugs.code"
rows_per_unit_max = 3
rows_max = 10_000
[tables.packets.columns]
code = {{ type = "key", of = "text" }}
size = {{ type = "integer", min = 0, max = 9 }}
"""


@dataclass(frozen=True)
class Source:
    """Everything that an owner has in one place."""

    style: Style
    files: tuple[File, ...]

    def __add__(self, more: Iterable[File]) -> Source:
        """The source with more records: into the files that are there, or into new ones."""
        found = {(file.table, file.folder, file.name): file for file in self.files}
        for file in more:
            place = (file.table, file.folder, file.name)
            older = found.get(place)
            found[place] = file if older is None else replace(older, records=older.records + file.records)
        return Source(self.style, tuple(found.values()))

    def records(self, table: str) -> list[Record]:
        """All records of a table, with what their folders say."""
        return [
            {**record, "region": _folder_value(file.folder)} if file.folder is not None else record
            for file in self.files
            if file.table == table
            for record in file.records
        ]

    @cached_property
    def owned(self) -> dict[str, Counter[Unit]]:
        """How many records of each table every unit has; None for records of nobody. Of no use where a key has several owners."""
        person, visit, code = self._keys()
        people = {person(record): person(record) for record in self.records("people")}
        visits, drugs = dict[Unit, Unit](), dict[Unit, Unit]()
        owned = {"people": Counter(people[person(record)] for record in self.records("people"))}

        def of_visit(record: Record) -> Unit:
            return person(record) if self.style.straight else people.get(person(record))

        for record in self.records("visits"):
            visits[visit(record)] = of_visit(record)
        for record in self.records("drugs"):
            drugs[code(record)] = None if visit(record) is None else visits.get(visit(record))
        owned["visits"] = Counter(of_visit(record) for record in self.records("visits"))
        owned["drugs"] = Counter(None if visit(record) is None else visits.get(visit(record)) for record in self.records("drugs"))
        owned["packets"] = Counter(None if code(record) is None else drugs.get(code(record)) for record in self.records("packets"))
        return owned

    def _keys(self) -> tuple[Key, Key, Key]:
        """The unit that a record names, the key of its visit, and its code."""

        def of(column: str, is_text: bool) -> Key:
            return lambda record: unit_of(None if self.style.csv and record[column] == "" else record[column], KeyDomain(text=is_text))

        return of("person", self.style.people.is_text), of("visit", self.style.visits.is_text), of("code", True)

    @cached_property
    def stops(self) -> frozenset[str]:
        """Codes of the stated rules by which preparation of this source stops."""
        person, visit, code = self._keys()
        found = set()
        for table, key, owner in (("visits", visit, person), ("drugs", code, visit)):
            owners: dict[Unit, set[Unit]] = {}
            for record in self.records(table):
                owners.setdefault(key(record), set()).add(owner(record))
            if any(len(claimed) > 1 for value, claimed in owners.items() if value is not None):
                found.add("link-key-shared")
        for table in TABLES:
            kinds = {self._agreement(file) for file in self.files if file.table == table}
            if len(kinds) > 1:
                found.add("source-files-differ")
        if any(file.folder is not None and not _is_folder(file.folder) for file in self.files):
            found.add("source-partition")
        return frozenset(found)

    def _agreement(self, file: File) -> object:
        """What all files of a table must share: the types of declared columns; of text files the first line."""
        if file.table == "visits" and self.style.csv:
            return tuple(name for name, _ in file.types)
        declared = {name for name, _ in self.style.types(file.table)}
        return frozenset((name, kind) for name, kind in file.types if name in declared)

    def write(self, directory: Path, *, seed: int) -> Declaration:
        """Write the files, each in an order that depends on ``seed`` only, and read the catalogue."""
        directory.mkdir(parents=True)
        order = random.Random(seed)
        for file in self.files:
            place = directory / file.table / f"region={file.folder}" if file.folder is not None else directory
            place.mkdir(parents=True, exist_ok=True)
            records = order.sample(file.records, len(file.records))
            if file.table == "visits" and self.style.csv:
                _write_csv(place / f"{file.name}.csv", file, records)
            else:
                _write_parquet(place / f"{file.name}.parquet", file, records)
        (directory / "lapwing.toml").write_text(self.style.catalogue(), encoding="utf-8")
        return load(directory / "lapwing.toml")


def _write_parquet(path: Path, file: File, records: list[Record]) -> None:
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in file.types])
    columns = [pa.array([_as(record.get(name), kind) for record in records], schema.field(name).type) for name, kind in file.types]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)


def _as(value: object, kind: str) -> object:
    """A value in the type of its file; a file with another type than the family's holds what it can of it."""
    try:
        if value is None or kind not in ("int", "small", "double", "text"):
            return value
        return {"int": int, "small": lambda v: int(v) % 2**31, "double": float, "text": str}[kind](value)  # type: ignore[operator]
    except (ValueError, OverflowError):
        return None


def _write_csv(path: Path, file: File, records: list[Record]) -> None:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow([name for name, _ in file.types])
        writer.writerows([["" if record.get(name) is None else record[name] for name, _ in file.types] for record in records])


def _is_folder(written: str) -> bool:
    try:
        return bool(re.fullmatch(r"(?:[^%]|%[0-9A-Fa-f]{2})*", written)) and "\x00" not in urllib.parse.unquote(written, errors="strict")
    except UnicodeDecodeError:
        return False


def _folder_value(written: str) -> str | None:
    return None if written == NULL_FOLDER else urllib.parse.unquote(written)


@dataclass(frozen=True)
class Family:
    """Sources, and which pairs of them are neighbours: two positions, and the units in which they may differ."""

    sources: tuple[Source, ...]
    pairs: tuple[tuple[int, int, frozenset[Unit]], ...]


@dataclass
class Maker:
    """Makes the units of one family."""

    rng: random.Random
    style: Style
    files: int = 2
    """Files of a table that many units write to."""
    _codes: itertools.count[int] = field(default_factory=itertools.count)
    _seq: itertools.count[int] = field(default_factory=itertools.count)

    def unit(self, number: int, *, hostile: str = "") -> tuple[list[File], list[File], Unit]:
        """What a unit brings: records that are its own, children that may stay behind without it, and the unit."""
        rng, style = self.rng, self.style
        raw = style.people.values[number % len(style.people.values)]
        unit = unit_of(raw, KeyDomain(text=style.people.is_text))
        own = [self._file("people", {"person": raw, "age": rng.choice([0, 90, 45, 900, None]), "region": self._region()}, hostile)]
        if rng.random() < 0.3:
            own.append(self._file("people", {"person": raw, "age": 1, "region": "7"}, ""))
        visits = [self._visit_key(number, turn) for turn in range(rng.choice([0, 1, 2, 6] if number > 1 else [1, 2, 6]))]
        for key in visits:
            for _ in range(rng.choice([1, 1, 3])):  # one line for each diagnosis, say
                own.append(self._file("visits", {"visit": key, "person": raw, "cost": rng.choice([0.0, 1.5, 1e9, None])}, hostile))
        if hostile.startswith("claims a visit"):
            claimant = raw if hostile == "claims a visit" else None
            own.append(self._file("visits", {"visit": self._visit_key(rng.choice([0, 1]), 0), "person": claimant, "cost": 1.0}, ""))
        children = []
        for key in visits:
            for _ in range(rng.choice([0, 1, 5])):
                code = f"{number}-{next(self._codes) % 7}-{key!r}"
                children.append(self._file("drugs", {"visit": key, "code": code, "dose": rng.choice([0, 9, 99, None])}, hostile))
                children += [self._file("packets", {"code": code, "size": rng.choice([1, 8])}, "") for _ in range(rng.choice([0, 1, 2]))]
        if hostile == "claims a code" and visits:
            code = f"{number}-claimed"
            own += [self._file("drugs", {"visit": key, "code": code, "dose": 1}, "") for key in (visits[0], self._visit_key(number, 9))]
        return own, children, unit

    def _visit_key(self, number: int, turn: int) -> Raw:
        """A key of one unit's own, near the keys of others."""
        plain = 10 * number + turn + (2**53 if self.style.visits.arrow in ("int", "decimal", "wide") else 0)
        match self.style.visits.arrow:
            case "decimal" | "wide":
                return Decimal(plain)
            case "double":
                return float(plain)
            case "text":
                return ("v" if self.style.visits.is_text else "") + str(plain)
            case _:
                return plain

    def _region(self) -> str | None:
        """Most folders of regions that are flags look like numbers, and one that does not must change nothing."""
        many = ["0", "1", "7"] if self.style.region == "flag" else ["north", "7", "north", "south", "", None, "%", "07"]
        found: str | None = self.rng.choice([*many, *many, "unknown"])
        return found

    def _file(self, table: str, record: Record, hostile: str) -> File:
        """One record in its file: of the family, or of the unit's own where that is what makes it hostile."""
        types = self.style.types(table)
        if not self.style.in_folders:
            return File(table, table, types, (record,))
        name, folder, kept = f"{table}-{self.rng.randrange(self.files)}", None, record
        if table == "people":
            region = record["region"]
            written = NULL_FOLDER if region is None else urllib.parse.quote(str(region), safe="")
            folder = "%zz" if hostile == "a folder that is no text" else written
            kept = {column: value for column, value in record.items() if column != "region"}
        if hostile == f"another type in {table}":
            name, types = f"{table}-own", tuple((column, "text" if kind != "text" else "int") for column, kind in types)
        if hostile == "another order":
            name, types = f"{table}-own", tuple(reversed(types))
        if hostile == "a column more":
            name, types = f"{table}-own", (*types, ("extra", "text"))
        if self.style.growing and table == "visits":
            kept = {**kept, "seq": (0 if name.endswith(FIRST) else LATER) + next(self._seq)}
        return File(table, name, types, (kept,), folder)

    def strangers(self) -> list[File]:
        """Files that are there whoever is in them, with records of nobody."""
        style, made = self.style, []
        for table in TABLES:
            for number in range(self.files if style.in_folders else 1):
                name, folder = (f"{table}-{number}", "7" if table == "people" else None) if style.in_folders else (table, None)
                made.append(File(table, name, style.types(table), (), folder))
        for nobody in style.people.nobody:
            made.append(self._file("people", {"person": nobody, "age": 7, "region": "7"}, ""))
        for nothing, owner in itertools.product(style.visits.nobody, style.people.values[:2]):  # no key, so it may stand anywhere
            made.append(self._file("visits", {"visit": nothing, "person": owner, "cost": 2.0}, ""))
        made.append(self._file("drugs", {"visit": self._visit_key(900, 0), "code": "dangling", "dose": 1}, ""))
        made.append(self._file("packets", {"code": None, "size": 1}, ""))
        return made


HOSTILE = (
    *("claims a visit", "claims a visit as nobody", "claims a code", "a folder that is no text"),
    *("another type in people", "another type in visits", "another type in drugs", "another order", "a column more"),
)


def random_style(rng: random.Random, *, in_folders: bool = True, with_csv: bool = True) -> Style:
    """How the sources of a family are laid out and typed."""
    csv_chosen = in_folders and with_csv and rng.random() < 0.25
    kinds = ("digits", "text") if csv_chosen else tuple(IDENTIFIERS)
    people, visits = rng.choice(kinds), rng.choice(kinds)
    region = rng.choice(["listed", "whole", "key", "flag"])
    return Style(IDENTIFIERS[people], IDENTIFIERS[visits], region, in_folders, csv_chosen, rng.random() < 0.5)


def random_family(
    rng: random.Random, style: Style, *, optional: int, contents: int, hostile: float, kinds: Sequence[str] = HOSTILE
) -> Family:
    """Units that are always there, ``optional`` ones that may be, and a place that is empty or holds one of ``contents`` contents."""
    make = Maker(rng, style)
    rest = Source(style, ()) + make.strangers()
    for number in range(2):
        own, children, _ = make.unit(number)
        rest += [*own, *children]
    free: list[tuple[list[File], Unit]] = []
    for number in range(2, 2 + optional):
        own, children, unit = make.unit(number)
        if rng.random() < 0.5:  # the children stay behind when the unit is not there
            rest, children = rest + children, []
        free.append(([*own, *children], unit))
    places: list[tuple[list[File], Unit]] = [([], None)]
    for _ in range(contents):
        own, children, unit = make.unit(rng.choice([5, 5, 5, 6, 7]), hostile=rng.choice(kinds) if rng.random() < hostile else "")
        places.append(([*own, *children], unit))
    sources, at = list[Source](), dict[tuple[int, int], int]()
    for chosen, (place, (brought, _)) in itertools.product(range(2**optional), enumerate(places)):
        at[chosen, place] = len(sources)
        whole = rest
        for bit, (records, _) in enumerate(free):
            whole = whole + records if chosen >> bit & 1 else whole
        sources.append(whole + brought)
    pairs = []
    for chosen in range(2**optional):
        for one, other in itertools.combinations(range(len(places)), 2):
            pairs.append((at[chosen, one], at[chosen, other], frozenset({places[one][1], places[other][1]})))
        for place, bit in itertools.product(range(len(places)), range(optional)):
            if not chosen >> bit & 1:
                pairs.append((at[chosen, place], at[chosen | 1 << bit, place], frozenset({free[bit][1]})))
    return Family(tuple(sources), tuple(pairs))
