"""A description of a data set: its tables, and the declaration of each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from fractions import Fraction
from typing import assert_never

import pyarrow as pa

from lapwing.catalog import ColumnDecl, Declaration, PublicDecl, RowUnit, TableDecl
from lapwing.errors import Refused, Span
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    RealDomain,
    TextDomain,
    TimestampDomain,
    kind_of,
)
from lapwing.kernel.facts import Facts

VALUES_SHOWN_MAX = 8
"""Maximum number of listed values of a column; of a longer list the first ones are shown with the total."""


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A table of public facts, and its notes."""

    table: pa.Table
    notes: tuple[str, ...] = ()


def described_tables(declaration: Declaration) -> MetadataTable:
    """All tables, protected ones first, with their kind and their limit on rows per unit."""
    unit = declaration.dataset.unit
    tables: list[tuple[str, str, str, int, str]] = [
        (table.name, "protected", _rows_per_unit(table), len(table.columns), table.description) for table in declaration.tables
    ]
    tables += [(table.name, "public", "", len(table.columns), table.description) for table in declaration.public_tables]
    names, kinds, rows, columns, descriptions = (list(column) for column in zip(*tables, strict=True))
    shown: dict[str, pa.Array] = {"table": pa.array(names), "kind": pa.array(kinds)}
    if not declaration.protects_rows:
        shown[f"rows per {unit}"] = pa.array(rows)
    shown["columns"] = pa.array(columns, pa.int64())
    if any(descriptions):
        shown["description"] = pa.array(descriptions)
    about = (declaration.dataset.description,) if declaration.dataset.description else ()
    return MetadataTable(pa.table(shown), (*about, f"what is protected is {declaration.protects}; public tables are no secret"))


def described_table(declaration: Declaration, facts: Facts, name: str, *, span: Span | None = None) -> MetadataTable:
    """The columns of a table: type, whether NULL is possible, declared values or bounds, and the owner's words."""
    table = table_called(declaration, name, span=span)
    domains = (facts.table(table.name) if isinstance(table, TableDecl) else facts.public_table(table.name)).columns
    rows = [_described(column, domains[column.name], _part(declaration, table, column.name)) for column in table.columns]
    names, types, nulls, values, descriptions = (list(column) for column in zip(*rows, strict=True))
    shown = {"column": names, "type": types, "NULL": nulls, "values": values}
    if any(descriptions):
        shown["description"] = descriptions
    about = (table.description,) if table.description else ()
    return MetadataTable(
        pa.table({title: pa.array(cells, pa.string()) for title, cells in shown.items()}), (*about, owned(declaration, table))
    )


def table_called(declaration: Declaration, name: str, *, span: Span | None = None) -> TableDecl | PublicDecl:
    """The table of that name, in whatever case; or refuse."""
    tables: Sequence[TableDecl | PublicDecl] = (*declaration.tables, *declaration.public_tables)
    for table in tables:
        if table.name.lower() == name.lower():
            return table
    close = get_close_matches(name.lower(), [table.name for table in tables], n=1)
    hint = f"did you mean {close[0]!r}?" if close else "SHOW TABLES lists them"
    raise Refused("unknown-table", f"there is no table {name!r} in this data set", hint=hint, span=span)


def _rows_per_unit(table: TableDecl) -> str:
    return "one" if table.one_row_per_unit else f"at most {table.rows_per_unit_max:,}"


def owned(declaration: Declaration, table: TableDecl | PublicDecl) -> str:
    """The owner of a table's rows, as text."""
    unit = declaration.dataset.unit
    if isinstance(table, PublicDecl):
        return f"public: no secret, free to join on {table.key}"
    if isinstance(table.unit, RowUnit):
        return f"protected: {declaration.protects}. Ask for aggregates: rows are never shown"
    path = [f"{hop.column} -> {hop.target}" for hop in table.unit.hops]
    way = ", ".join(path) if path else table.unit.end.column
    rows = "one row" if table.one_row_per_unit else f"at most {table.rows_per_unit_max:,} rows"
    return f"protected: a row belongs to one {unit}, by {way}; of each {unit} {rows} may count. Ask for aggregates: rows are never shown"


def _part(declaration: Declaration, table: TableDecl | PublicDecl, column: str) -> str:
    """The role of a column in its table: the unit, a key on the way to it, the key of a public table."""
    if isinstance(table, PublicDecl):
        return "the key to join on" if column == table.key else ""
    if isinstance(table.unit, RowUnit):
        return ""
    if not table.unit.hops:
        return f"the {declaration.dataset.unit}" if column == table.unit.end.column else ""
    first = table.unit.hops[0]
    if column != first.column:
        return ""
    return f"the {declaration.dataset.unit}: {first.target}" if len(table.unit.hops) == 1 else f"refers to {first.target}"


def _described(column: ColumnDecl, domain: Domain, part: str) -> tuple[str, str, str, str, str]:
    origin = "" if column.values_from is None else f", from {column.values_from}"
    values = part if part and isinstance(domain, KeyDomain) else "; ".join(text for text in (f"{_values(domain)}{origin}", part) if text)
    return column.name, kind_of(domain).value, "yes" if domain.nullable else "no", values, column.description


def _values(domain: Domain) -> str:
    match domain:
        case BooleanDomain():
            return "true, false"
        case IntegerDomain(lo, hi):
            return f"{_number(lo)} to {_number(hi)}"
        case RealDomain(lo, hi, steps=steps):
            step = "" if steps is None else f", in steps of {_number(Fraction(1, steps))}"
            return f"{_number(lo)} to {_number(hi)}{step}"
        case TextDomain(values=None):
            return "any text"
        case TextDomain(values):
            return _listed(values or ())
        case DateDomain(lo, hi):
            return f"{date(1970, 1, 1) + timedelta(days=lo)} to {date(1970, 1, 1) + timedelta(days=hi)}"
        case TimestampDomain(lo, hi):
            return f"{datetime(1970, 1, 1) + timedelta(microseconds=lo)} to {datetime(1970, 1, 1) + timedelta(microseconds=hi)}"
        case KeyDomain():
            return "identifier: to count and join on"
        case _:
            assert_never(domain)


def _listed(values: Sequence[str]) -> str:
    if len(values) <= VALUES_SHOWN_MAX:
        return ", ".join(values)
    return f"{len(values):,} values: {', '.join(values[:VALUES_SHOWN_MAX])}, .."


def _number(value: int | Fraction) -> str:
    """A number without separators, as in a statement."""
    return str(int(value)) if value == int(value) else f"{float(value):.12g}"
