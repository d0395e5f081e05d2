"""Invented data sets for a catalogue: neighbours for the audit of a declared data set, which use none of its rows.

Rows are invented from the declared domains. The inputs from the owner are public: the catalogue, the public tables, and the noisy
statistics bought at preparation. The audit opens neither protected rows nor the owner's ledger.
"""

from __future__ import annotations

import datetime
import json
import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import Declaration, RowUnit, TableDecl, load
from lapwing.engines.duckdb import DuckDBSnapshot
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
from lapwing.kernel.facts import Facts

BACKGROUND_UNITS = 12
ROWS_MAX = 500
"""Most rows of an invented unit in one table, whatever the cap."""
_EPOCH = datetime.date(1970, 1, 1)
_EPOCH_TIME = datetime.datetime(1970, 1, 1)
_KEYS_PER_UNIT = 10**6

Row = dict[str, Any]
Rows = dict[str, list[Row]]


class Style(Enum):
    """Kinds of invented units."""

    PLAIN = "plain"
    """A few rows of random values."""
    HIGH = "high"
    """As many rows as allowed, all with the largest values and the first of the listed ones."""
    LOW = "low"
    """As many rows as allowed, all with the least values and the last of the listed ones."""
    SPREAD = "spread"
    """As many rows as allowed, which cycle through all values."""


@dataclass(frozen=True, slots=True)
class InventedCatalogue:
    """A catalogue with its columns' domains, for inventing rows."""

    declaration: Declaration
    facts: Facts

    def unit_rows(self, unit: int, style: Style, *, seed: int, only: str | None = None) -> Rows:
        """All rows of one unit, with keys that no other unit has. With ``only``, the rows of one table."""
        chance = random.Random(f"{seed}/{unit}")
        made: Rows = {}
        keys = 0
        for table in sorted(self.declaration.tables, key=lambda table: len(table.unit.hops)):
            rows: list[Row] = []
            for position in range(_row_count(table, style, chance) if only in (None, table.name) else 0):
                row: Row = {}
                for column in table.columns:
                    domain = self.facts.table(table.name).columns[column.name]
                    keys += 1
                    row[column.name] = _value(domain, style, position, chance, key=unit * _KEYS_PER_UNIT + keys)
                    if column.name in self._named(table):
                        row[column.name] = _identifier(domain, unit * _KEYS_PER_UNIT + keys)
                if self._belongs(table, row, made, unit, chance):
                    rows.append(row)
            made[table.name] = rows
        return made

    def places(self) -> list[str | None]:
        """Where one unit can have rows: in all tables (None) or, if units are rows, in one table (its name)."""
        tables = self.declaration.tables
        return [table.name for table in tables] if any(isinstance(table.unit, RowUnit) for table in tables) else [None]

    def _named(self, table: TableDecl) -> set[str]:
        """Columns through which paths of other tables go: keys of any type that belong to one unit."""
        hops = (hop.target for other in self.declaration.tables for hop in other.unit.hops)
        return {target.column for target in hops if target.table == table.name}

    def _belongs(self, table: TableDecl, row: Row, rows: Rows, unit: int, chance: random.Random) -> bool:
        """Link the row to its unit, directly or through its foreign key; false if the unit has no row in the referenced table."""
        if isinstance(table.unit, RowUnit):
            return True
        if not table.unit.hops:
            domain = self.facts.table(table.name).columns[table.unit.end.column]
            row[table.unit.end.column] = _identifier(domain, unit)
            return True
        hop = table.unit.hops[0]
        parents = rows.get(hop.target.table, [])
        if parents:
            row[hop.column] = chance.choice(parents)[hop.target.column]
        return bool(parents)


def _row_count(table: TableDecl, style: Style, chance: random.Random) -> int:
    if table.one_row_per_unit:
        return 1
    return chance.randint(1, min(4, table.rows_per_unit_max)) if style is Style.PLAIN else min(table.rows_per_unit_max, ROWS_MAX)


def _identifier(domain: Domain, number: int) -> int | str:
    return f"u{number}" if isinstance(domain, TextDomain) or (isinstance(domain, KeyDomain) and domain.text) else number


def _value(domain: Domain, style: Style, position: int, chance: random.Random, *, key: int) -> Any:
    if style is Style.PLAIN and getattr(domain, "nullable", False) and chance.random() < 0.1:
        return None
    match domain:
        case KeyDomain():
            return _identifier(domain, key)
        case BooleanDomain():
            return _picked((True, False), style, position, chance)
        case TextDomain(values):
            listed = values if values else ("common", *(f"value {number}" for number in range(5)), "rare")
            return _picked(listed, style, position, chance)
        case IntegerDomain(lo, hi):
            return _between(lo, hi, style, position, chance)
        case RealDomain(lo, hi):
            return float(lo + (hi - lo) * _between(0, 100, style, position, chance) / 100)
        case DateDomain(lo, hi):
            return _EPOCH + datetime.timedelta(days=_between(lo, hi, style, position, chance))
        case TimestampDomain(lo, hi):
            return _EPOCH_TIME + datetime.timedelta(microseconds=_between(lo, hi, style, position, chance))
        case never:
            assert_never(never)


def _picked(values: tuple[Any, ...], style: Style, position: int, chance: random.Random) -> Any:
    match style:
        case Style.PLAIN:
            return chance.choice(values)
        case Style.HIGH:
            return values[0]
        case Style.LOW:
            return values[-1]
        case Style.SPREAD:
            return values[position % len(values)]
        case never:
            assert_never(never)


def _between(lo: int, hi: int, style: Style, position: int, chance: random.Random) -> int:
    match style:
        case Style.PLAIN:
            return chance.randint(lo, hi)
        case Style.HIGH:
            return hi
        case Style.LOW:
            return lo
        case Style.SPREAD:
            return lo + position * max(1, (hi - lo) // 16) % (hi - lo + 1)
        case never:
            assert_never(never)


_ARROW: Mapping[type, pa.DataType] = {
    BooleanDomain: pa.bool_(),
    TextDomain: pa.string(),
    IntegerDomain: pa.int64(),
    RealDomain: pa.float64(),
    DateDomain: pa.date32(),
    TimestampDomain: pa.timestamp("us"),
}


def write_rows(declaration: Declaration, units: list[Rows], directory: Path) -> None:
    """Write the protected tables of some units, one Parquet file each, with the column names of the source."""
    for table in declaration.tables:
        rows = [row for unit in units for row in unit.get(table.name, [])]
        fields = [(column.source_name, _arrow_type(column.domain)) for column in table.columns]
        listed = [{column.source_name: row[column.name] for column in table.columns} for row in rows]
        pq.write_table(pa.Table.from_pylist(listed, schema=pa.schema(fields)), directory / f"{table.name}.parquet")


def _arrow_type(domain: Domain) -> pa.DataType:
    if isinstance(domain, KeyDomain):
        return pa.string() if domain.text else pa.int64()
    return _ARROW[type(domain)]


def throwaway_catalogue(catalogue: Path, *, epsilon: int) -> str:
    """The owner's catalogue, adapted to invented rows: local sources, the same public tables, another budget, and no bought statistics."""
    load(catalogue)  # raises if the catalogue has problems
    document = tomllib.loads(catalogue.read_text(encoding="utf-8"), parse_float=Decimal)
    directory = catalogue.resolve().parent
    document["dataset"]["id"] = "audit"
    document["budget"] |= {"epsilon": epsilon, "statistics_share": 0}
    document["budget"].pop("ceiling", None)
    document.pop("ledger", None)  # an audit has its own ledger, never the owner's
    document.pop("limits", None)
    for name, table in document["tables"].items():
        table["source"] = f"{name}.parquet"
    for table in document.get("public", {}).values():
        table["source"] = str((directory / table["source"]).resolve())
    return toml_text(document)


def toml_text(document: Mapping[str, Any]) -> str:
    """A document as TOML that ``tomllib`` reads, with inline tables."""
    return "".join(f"{_toml_key(name)} = {_toml(value)}\n" for name, value in document.items())


def _toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=True)
        case datetime.datetime() | datetime.date():
            return value.isoformat()
        case list():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
        case dict():
            return "{ " + ", ".join(f"{_toml_key(name)} = {_toml(item)}" for name, item in value.items()) + " }"
        case _:
            raise TypeError("a catalogue cannot contain a value of this type")


def _toml_key(name: str) -> str:
    return json.dumps(name, ensure_ascii=True)


def invent(catalogue: Path, scratch: Path, *, epsilon: int) -> tuple[InventedCatalogue, str]:
    """The input for inventing rows, and the text of the throwaway catalogue. Public values are read from the public tables."""
    text = throwaway_catalogue(catalogue, epsilon=epsilon)
    scratch.mkdir(parents=True)
    (scratch / "lapwing.toml").write_text(text, encoding="utf-8")
    declaration = load(scratch / "lapwing.toml")
    write_rows(declaration, [], scratch)
    snapshot = DuckDBSnapshot.in_memory(declaration, version=1, ranking_key=bytes(32))
    facts = snapshot.facts
    snapshot.close()
    return InventedCatalogue(declaration, facts), text
