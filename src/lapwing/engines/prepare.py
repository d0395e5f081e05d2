"""Preparation as SQL text: sanitise, grid, find the unit, rank, cap.

**Preparation lemma** (docs/proofs/preparation.md): prepare(D without u) = prepare(D) minus the rows of u, row for row, ranks included.
Every step below is row by row or within one unit, which is why it holds: a value is cleaned from its own row, a unit is reached through
keys whose links are pairs (key, unit), a rank is a position among the rows of one unit ordered by a keyed hash of the row's own bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from lapwing.catalog import ColumnDecl, Declaration, PublicDecl, TableDecl, UnitPath
from lapwing.engines.render.dialect import RANKING_KEY, Dialect, SourceKind, quoted
from lapwing.engines.render.expressions import clamped, gridded
from lapwing.engines.render.relations import RANK, ROWS, UNIT
from lapwing.errors import PreparationError
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    RealDomain,
    TextDomain,
    TimestampDomain,
    grid_integer,
)
from lapwing.kernel.facts import Facts

SNAPSHOT_FORMAT = 1
"""Raised whenever the meaning of a prepared table changes; a snapshot of another format is prepared again."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """Where raw rows come from: SQL of the relation, and what each of its columns holds."""

    sql: str
    kinds: Mapping[str, SourceKind]


def sanitised(raw: str, kind: SourceKind, domain: Domain, *, other: str | None, dialect: Dialect) -> str:
    """SQL of one clean value: inside ``domain`` or NULL, whatever the source holds, and never an error."""
    match domain:
        case IntegerDomain(lo, hi):
            if kind is SourceKind.INTEGER:
                wide = dialect.try_cast(raw, kind, dialect.wide_integer)
                inner = f"CAST({clamped(wide, lo=lo, hi=hi)} AS {dialect.integer})"
                return f"(CASE WHEN {wide} IS NULL THEN NULL ELSE {inner} END)"
            return gridded(_finite(raw, kind, dialect), steps=1, lo=lo, hi=hi, dialect=dialect)
        case RealDomain(lo, hi, steps=int(steps)):
            double = _finite(raw, kind, dialect)
            within = f"least(greatest({double}, {float(lo)!r}), {float(hi)!r})"
            kept = f"(CASE WHEN {double} IS NULL THEN NULL ELSE {within} END)"
            return gridded(kept, steps=steps, lo=grid_integer(lo, steps), hi=grid_integer(hi, steps), dialect=dialect)
        case RealDomain():
            raise PreparationError("grid-missing", "a real column has no grid")
        case BooleanDomain():
            return dialect.try_cast(raw, kind, dialect.boolean)
        case DateDomain(lo, hi):
            return _between(dialect.try_cast(raw, kind, dialect.date), dialect.date_literal(lo), dialect.date_literal(hi))
        case TimestampDomain(lo, hi):
            return _between(dialect.try_cast(raw, kind, dialect.timestamp), dialect.timestamp_literal(lo), dialect.timestamp_literal(hi))
        case KeyDomain(text=text):
            return dialect.try_cast(raw, kind, dialect.text if text else dialect.integer)
        case TextDomain(values):
            text_sql = dialect.try_cast(raw, kind, dialect.text)
            if values is None:
                return text_sql
            fallback = "NULL" if other is None else dialect.text_literal(other)
            listed = ", ".join(dialect.text_literal(value) for value in values) or "NULL"
            return f"(CASE WHEN {text_sql} IS NULL THEN NULL WHEN {text_sql} IN ({listed}) THEN {text_sql} ELSE {fallback} END)"
        case _:
            assert_never(domain)


def _finite(raw: str, kind: SourceKind, dialect: Dialect) -> str:
    double = dialect.try_cast(raw, kind, dialect.double)
    return f"(CASE WHEN {dialect.is_finite(double)} THEN {double} END)"


def _between(value: str, lo: str, hi: str) -> str:
    """Dates outside the declared range become NULL: a clamped date would be a false date."""
    return f"(CASE WHEN {value} BETWEEN {lo} AND {hi} THEN {value} END)"


def unit_value(raw: str, kind: SourceKind, domain: Domain, dialect: Dialect) -> str:
    """SQL of a unit or link key. Two different source values never become one: bounds do not apply, and a value that does not come back
    from the conversion unchanged (1.4, '01') is NULL, so its row has no unit and is left out.
    """
    match domain:
        case KeyDomain(text=True) | TextDomain():
            return dialect.try_cast(raw, kind, dialect.text)
        case _:
            value = dialect.try_cast(raw, kind, dialect.integer)
            if kind is SourceKind.INTEGER:
                return value
            back, given = (value, raw) if kind is SourceKind.FRACTIONAL else (f"CAST({item} AS {dialect.text})" for item in (value, raw))
            return f"(CASE WHEN {back} = {given} THEN {value} END)"


def row_bytes(columns: Mapping[str, Domain], alias: str, dialect: Dialect) -> str:
    """SQL of the row's own bytes: one text per list of values, the same on every engine."""
    parts = []
    for name, domain in columns.items():
        column = f"{alias}.{quoted(name)}"
        match domain:
            case TextDomain() | KeyDomain(text=True):
                parts.append(f"COALESCE({dialect.byte_length(column)} || ':' || {column}, 'n')")
            case BooleanDomain():
                parts.append(f"(CASE WHEN {column} THEN 't' WHEN NOT {column} THEN 'f' ELSE 'n' END)")
            case DateDomain():
                parts.append(f"COALESCE(CAST({dialect.days(column)} AS {dialect.text}), 'n')")
            case TimestampDomain():
                parts.append(f"COALESCE(CAST({dialect.microseconds(column)} AS {dialect.text}), 'n')")
            case IntegerDomain() | RealDomain() | KeyDomain():
                parts.append(f"COALESCE(CAST({column} AS {dialect.text}), 'n')")
            case _:
                assert_never(domain)
    return _joined(parts) if parts else "''"


_CHAIN_MAX = 64
"""Most texts in one chain of ||: engines read a chain as nested as it is long, and limit nesting."""


def _joined(parts: list[str]) -> str:
    """The texts with commas between them. Joining is associative, so brackets change no byte of the result."""
    if len(parts) <= _CHAIN_MAX:
        return " || ',' || ".join(parts)
    middle = len(parts) // 2
    return f"({_joined(parts[:middle])}) || ',' || ({_joined(parts[middle:])})"


def public_table(declared: PublicDecl, source: SourceTable, facts_columns: Mapping[str, Domain], dialect: Dialect) -> str:
    """SELECT of a frozen public table: clean, and with one row per key by construction."""
    clean = _clean(declared, source, facts_columns, dialect)
    key = f"c.{quoted(declared.key)}"
    listed = ", ".join(f"c.{quoted(name)}" for name in facts_columns)
    order = row_bytes(facts_columns, "c", dialect)
    required = [f"c.{quoted(name)} IS NOT NULL" for name, domain in facts_columns.items() if not domain.nullable]
    condition = " AND ".join([f"{key} IS NOT NULL", *required])
    numbered = f"SELECT {listed}, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {order}) AS _n FROM ({clean}) c WHERE {condition}"
    return f"SELECT {', '.join(quoted(name) for name in facts_columns)} FROM ({numbered}) n WHERE n._n = 1"


def _clean(declared: TableDecl | PublicDecl, source: SourceTable, domains: Mapping[str, Domain], dialect: Dialect) -> str:
    listed = [f"{_clean_column(column, source, domains[column.name], dialect)} AS {quoted(column.name)}" for column in declared.columns]
    return f"SELECT {', '.join(listed)} FROM {source.sql} s"


def _clean_column(column: ColumnDecl, source: SourceTable, domain: Domain, dialect: Dialect) -> str:
    raw, kind = _raw(column, source)
    return sanitised(raw, kind, domain, other=column.other, dialect=dialect)


def _raw(column: ColumnDecl, source: SourceTable) -> tuple[str, SourceKind]:
    if column.source_name not in source.kinds:
        raise PreparationError("source-column-missing", f"the source has no column {column.source_name!r}")
    return f"s.{quoted(column.source_name)}", source.kinds[column.source_name]


def private_table(declared: TableDecl, declaration: Declaration, sources: Mapping[str, SourceTable], facts: Facts, dialect: Dialect) -> str:
    """SELECT of a prepared private table. Its one parameter is the ranking key.

    Rows: unit, rank within the unit, rows of the unit (after the cap), then the clean columns. Rows without a unit, and rows with a NULL
    in a column declared ``null = false``, are left out before anything is ranked.
    """
    columns = facts.table(declared.name).columns
    listed = ", ".join(f"c.{quoted(name)}" for name in columns)
    required = [f"c.{quoted(name)} IS NOT NULL" for name, domain in columns.items() if not domain.nullable]
    condition = " AND ".join([f"c.{UNIT} IS NOT NULL", *required])
    clean = _owned_rows(declared, declaration, sources, columns, dialect)
    key = ranking_text(columns, dialect)
    hashed = (
        f"SELECT c.{UNIT}, {listed}, {dialect.keyed_hash(dialect.parameter(RANKING_KEY), key)} AS _hash FROM ({clean}) c WHERE {condition}"
    )
    window = f"PARTITION BY c.{UNIT}"
    ranked = f"SELECT c.{UNIT}, {rank_of(window)} AS _r, COUNT(*) OVER ({window}) AS _c, {listed} FROM ({hashed}) c"
    cap = declared.rows_per_unit_max
    small = f"CAST(c._r AS INTEGER) AS {RANK}, CAST({rows_of_unit(cap)} AS INTEGER) AS {ROWS}"
    return f"SELECT c.{UNIT}, {small}, {listed} FROM ({ranked}) c WHERE {cap_predicate(cap)}"


def cap_predicate(cap: int) -> str:
    """Rows that are written; for a table with one row per unit this is what makes it so."""
    return f"c._r <= {cap}"


def rows_of_unit(cap: int) -> str:
    """How many rows of its unit are written."""
    return f"least(c._c, {cap})"


def ranking_text(columns: Mapping[str, Domain], dialect: Dialect) -> str:
    """What is hashed with the ranking key: the unit and the row's own bytes, nothing of other rows and no position."""
    return f"CAST(c.{UNIT} AS {dialect.text}) || '|' || {row_bytes(columns, 'c', dialect)}"


def rank_of(window: str) -> str:
    """Position among the unit's rows. Equal rows are interchangeable, so ROW_NUMBER may order them as it likes; RANK would let all in."""
    return f"ROW_NUMBER() OVER ({window} ORDER BY c._hash)"


def _owned_rows(
    declared: TableDecl, declaration: Declaration, sources: Mapping[str, SourceTable], columns: Mapping[str, Domain], dialect: Dialect
) -> str:
    """Clean rows, each with its unit; a row reached by several units is copied once for each of them."""
    source = sources[declared.name]
    listed = [f"{_clean_column(column, source, columns[column.name], dialect)} AS {quoted(column.name)}" for column in declared.columns]
    path = declared.unit
    if not path.hops:
        unit = _link_key(declared, path.end.column, source, dialect)
        return f"SELECT {unit} AS {UNIT}, {', '.join(listed)} FROM {source.sql} s"
    hop = path.hops[0]
    own = _link_key(declared, hop.column, source, dialect)
    links = _links(hop.target.column, UnitPath(path.hops[1:], path.end), declaration, sources, hop.target.table, dialect)
    return f"SELECT l.{UNIT}, {', '.join(listed)} FROM {source.sql} s JOIN ({links}) l ON {own} = l.link"


def _links(column: str, path: UnitPath, declaration: Declaration, sources: Mapping[str, SourceTable], table: str, dialect: Dialect) -> str:
    """Distinct pairs (key, unit) of a parent table: all its owners, never one chosen owner."""
    declared, source = declaration.table(table), sources[table]
    link = _link_key(declared, column, source, dialect)
    if not path.hops:
        unit = _link_key(declared, path.end.column, source, dialect)
        return f"SELECT DISTINCT {link} AS link, {unit} AS {UNIT} FROM {source.sql} s"
    hop = path.hops[0]
    own = _link_key(declared, hop.column, source, dialect)
    further = _links(hop.target.column, UnitPath(path.hops[1:], path.end), declaration, sources, hop.target.table, dialect)
    return f"SELECT DISTINCT {link} AS link, l.{UNIT} FROM {source.sql} s JOIN ({further}) l ON {own} = l.link"


def _link_key(declared: TableDecl, column: str, source: SourceTable, dialect: Dialect) -> str:
    found = declared.column(column)
    return unit_value(*_raw(found, source), found.domain, dialect)
