"""Preparation as SQL text: sanitise, grid, find the unit, rank, cap.

**Preparation lemma** (docs/proofs/preparation.md): prepare(D without u) = prepare(D) minus the rows of u, row for row, ranks included.
Every step below is row by row or within one unit, which is why it holds: a value is cleaned from its own row, a unit is reached through
keys whose links are pairs (key, unit), a rank is a position among the rows of one unit ordered by a keyed hash of the row's own bytes.

Where every row is a unit (``unit = "row"``), removing a record removes exactly one prepared row, and with it one unit: the n-th of several
equal rows is the unit (digest of the row's bytes, n), so of n equal rows always the units 1 to n are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lapwing.catalog import ColumnDecl, Declaration, PublicDecl, RowUnit, TableDecl, UnitPath
from lapwing.catalog.blocks import BlockDecl, days_of_block, number_of_block
from lapwing.catalog.facts import NumberTypes
from lapwing.engines.reading import sanitised, unit_value
from lapwing.errors import PreparationError
from lapwing.kernel.domains import Domain, NumberType, number_type
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import RANKING_KEY, Dialect, SourceKind
from lapwing.render.encoding import encoded
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.render.relations import BLOCK, RANK, ROWS, UNIT

SNAPSHOT_FORMAT = 3
"""Raised whenever the meaning of a prepared table changes; a snapshot of another format is prepared again."""


DIGEST = "_digest"
"""Column of rows that are units on their way into a version: what equal rows have in common, and unequal ones do not."""
DIGEST_CHARACTERS = 64
"""Length of a digest, which is what a unit that is a row starts with."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """Where raw rows come from: SQL of the relation, and what each of its columns holds."""

    sql: str
    kinds: Mapping[str, SourceKind]


def numbers_declared(table: TableDecl | PublicDecl, types: Mapping[str, NumberType | None]) -> dict[str, NumberType]:
    """The number types of the declared columns of a table, from those of the source's columns."""
    found = {column.name: types.get(column.source_name) for column in table.columns}
    return {name: number for name, number in found.items() if number is not None}


def number_types_body(facts: Facts) -> dict[str, dict[str, str]]:
    """The number types of all columns, as a version keeps them."""
    columns = {name: table.columns for name, table in facts.tables.items()} | {name: t.columns for name, t in facts.public_tables.items()}
    found = {name: {column: number_type(domain) for column, domain in domains.items()} for name, domains in columns.items()}
    return {name: {column: number.value for column, number in numbers.items() if number} for name, numbers in found.items()}


def number_types_value(body: Mapping[str, Mapping[str, str]] | None) -> NumberTypes | None:
    """Inverse of :func:`number_types_body`; None where a version does not say."""
    if body is None:
        return None
    return {table: {column: NumberType(number) for column, number in columns.items()} for table, columns in body.items()}


def row_bytes(columns: Mapping[str, Domain], alias: str, dialect: Dialect) -> str:
    """SQL of the row's own bytes: one text per list of values, the same on every engine."""
    parts = [encoded(f"{alias}.{dialect.quoted(name)}", domain, dialect) for name, domain in columns.items()]
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
    key = f"c.{dialect.quoted(declared.key)}"
    listed = ", ".join(f"c.{dialect.quoted(name)}" for name in facts_columns)
    order = dialect.bytewise(row_bytes(facts_columns, "c", dialect))
    required = [f"c.{dialect.quoted(name)} IS NOT NULL" for name, domain in facts_columns.items() if not domain.nullable]
    condition = " AND ".join([f"{key} IS NOT NULL", *required])
    numbered = f"SELECT {listed}, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {order}) AS _n FROM ({clean}) c WHERE {condition}"
    return f"SELECT {', '.join(dialect.quoted(name) for name in facts_columns)} FROM ({numbered}) n WHERE n._n = 1"


def _clean(declared: TableDecl | PublicDecl, source: SourceTable, domains: Mapping[str, Domain], dialect: Dialect) -> str:
    listed = [
        f"{clean_column(column, source, domains[column.name], dialect)} AS {dialect.quoted(column.name)}" for column in declared.columns
    ]
    return f"SELECT {', '.join(listed)} FROM {source.sql} s"


def clean_column(column: ColumnDecl, source: SourceTable, domain: Domain, dialect: Dialect) -> str:
    """SQL of the clean value of a column of a raw row ``s``."""
    raw, kind = raw_column(column, source, dialect)
    return sanitised(raw, kind, domain, other=column.other, dialect=dialect, spelling=column.spelling)


def raw_column(column: ColumnDecl, source: SourceTable, dialect: Dialect) -> tuple[str, SourceKind]:
    """SQL of a column of a raw row ``s`` as the source has it, and what it holds."""
    if column.source_name not in source.kinds:
        raise PreparationError("source-column-missing", f"the source has no column {column.source_name!r}")
    return f"s.{dialect.quoted(column.source_name)}", source.kinds[column.source_name]


def private_table(
    declared: TableDecl,
    declaration: Declaration,
    sources: Mapping[str, SourceTable],
    facts: Facts,
    dialect: Dialect,
    *,
    blocks: tuple[int, int] | None = None,
) -> str:
    """SELECT of a prepared private table; of one with blocks of time, the rows of ``blocks`` alone. Its one parameter is the ranking key.

    Rows: unit, rank within the unit, rows of the unit (after the cap), then the clean columns. Rows without a unit, and rows with a NULL
    in a column declared ``null = false``, are left out before anything is ranked.
    """
    columns = facts.table(declared.name).columns
    if isinstance(declared.unit, RowUnit):
        return row_units(digested_rows(declared, sources[declared.name], columns, dialect), columns, dialect)
    if declared.blocks is not None and blocks is not None:
        sources = {**sources, declared.name: rows_near(declared, sources[declared.name], blocks, dialect)}
    return ranked_rows(_owned_rows(declared, declaration, sources, columns, dialect), declared, columns, dialect, blocks=blocks)


def rows_near(declared: TableDecl, source: SourceTable, blocks: tuple[int, int], dialect: Dialect) -> SourceTable:
    """All rows of a source that are in these blocks and, where it holds dates or times, few others: by a condition on the raw column that
    indexes and the statistics of files serve. The block itself follows from the clean value.
    """
    assert declared.blocks is not None
    column = declared.column(declared.blocks.column)
    raw, kind = raw_column(column, source, dialect)
    if kind not in (SourceKind.DATE, SourceKind.TIMESTAMP):
        return source
    first, after = (dialect.date_literal(day) for day in days_near(declared.blocks, blocks))
    return SourceTable(f"(SELECT * FROM {source.sql} s WHERE {raw} >= {first} AND {raw} < {after})", source.kinds)


def days_near(declared: BlockDecl, blocks: tuple[int, int]) -> tuple[int, int]:
    """The first day that rows of these blocks may have, and the first after them.

    A day more on both sides: an instant has its date in UTC, and an engine may compare it in another zone.
    """
    return days_of_block(blocks[0], declared.every)[0] - 1, days_of_block(blocks[1], declared.every)[1] + 2


def owned_rows(declared: TableDecl, declaration: Declaration, sources: Mapping[str, SourceTable], facts: Facts, dialect: Dialect) -> str:
    """SELECT of the clean rows of a private table with their units, not yet ranked."""
    return _owned_rows(declared, declaration, sources, facts.table(declared.name).columns, dialect)


def ranked_rows(
    clean: str, declared: TableDecl, columns: Mapping[str, Domain], dialect: Dialect, *, blocks: tuple[int, int] | None = None
) -> str:
    """SELECT of clean rows with their ranks, capped: what a prepared table holds."""
    listed = ", ".join(f"c.{dialect.quoted(name)}" for name in columns)
    required = [f"c.{dialect.quoted(name)} IS NOT NULL" for name, domain in columns.items() if not domain.nullable]
    condition = " AND ".join([f"c.{UNIT} IS NOT NULL", *required])
    key = ranking_text(columns, dialect)
    hash_ = dialect.keyed_hash(dialect.parameter(RANKING_KEY), key)
    block, owner = "", f"c.{UNIT}"
    if declared.blocks is not None:
        clean = f"SELECT c.*, {block_number(declared.blocks, columns, dialect)} AS {BLOCK} FROM ({clean}) c"
        condition += f" AND c.{BLOCK} IS NOT NULL" if blocks is None else f" AND c.{BLOCK} BETWEEN {blocks[0]} AND {blocks[1]}"
        block, owner = f"c.{BLOCK}, ", f"c.{UNIT}, c.{BLOCK}"
    hashed = f"SELECT c.{UNIT}, {block}{listed}, {hash_} AS _hash FROM ({clean}) c WHERE {condition}"
    window = f"PARTITION BY {owner}"
    ranked = f"SELECT c.{UNIT}, {block}{rank_of(window)} AS _r, COUNT(*) OVER ({window}) AS _c, {listed} FROM ({hashed}) c"
    cap = declared.rows_per_unit_max
    small = f"CAST(c._r AS INTEGER) AS {RANK}, CAST({rows_of_unit(cap)} AS INTEGER) AS {ROWS}"
    return f"SELECT c.{UNIT}, {block}{small}, {listed} FROM ({ranked}) c WHERE {cap_predicate(cap)}"


def block_number(blocks: BlockDecl, columns: Mapping[str, Domain], dialect: Dialect) -> str:
    """SQL of the number of the block that a clean row ``c`` is in; NULL where its time is."""
    number = render_expression(number_of_block(blocks), VisibleColumns(columns, "c", dialect))
    return f"CAST({number} AS INTEGER)"


def digested_rows(declared: TableDecl, source: SourceTable, columns: Mapping[str, Domain], dialect: Dialect) -> str:
    """SELECT of the clean rows of a table whose rows are units, each with its digest. Its one parameter is the ranking key.

    The name of the table is hashed too: a row of one table is never the unit of a row of another.
    """
    listed = ", ".join(f"c.{dialect.quoted(name)}" for name in columns)
    required = [f"c.{dialect.quoted(name)} IS NOT NULL" for name, domain in columns.items() if not domain.nullable]
    text = f"{dialect.text_literal(declared.name)} || '|' || {row_bytes(columns, 'c', dialect)}"
    digest = dialect.keyed_hash(dialect.parameter(RANKING_KEY), text)
    clean = _clean(declared, source, columns, dialect)
    return f"SELECT {digest} AS {DIGEST}, {listed} FROM ({clean}) c{' WHERE ' if required else ''}{' AND '.join(required)}"


def row_units(digested: str, columns: Mapping[str, Domain], dialect: Dialect, *, earlier: str | None = None) -> str:
    """SELECT of rows that are units, as a prepared table holds them: each has rank 1 among the one row of its unit.

    ``earlier`` is SQL of a relation (digest, n) of how many equal rows the table holds already; copies are numbered on from there.
    """
    listed = ", ".join(f"c.{dialect.quoted(name)}" for name in columns)
    number = copy_number("c")
    if earlier is not None:
        number = f"{number} + COALESCE(e.n, 0)"
    unit = f"c.{DIGEST} || ':' || CAST({number} AS {dialect.text})"
    counted = "" if earlier is None else f" LEFT JOIN ({earlier}) e ON e.{DIGEST} = c.{DIGEST}"
    one = "CAST(1 AS INTEGER)"
    return f"SELECT {unit} AS {UNIT}, {one} AS {RANK}, {one} AS {ROWS}, {listed} FROM ({digested}) c{counted}"


def copy_number(alias: str) -> str:
    """Which of several equal rows it is, from 1. They are interchangeable, so they may be numbered anyhow."""
    return f"ROW_NUMBER() OVER (PARTITION BY {alias}.{DIGEST} ORDER BY {alias}.{DIGEST})"


def require_rows_max(rows: int, table: TableDecl) -> None:
    """Refuse a prepared table, or a block of time of one, with this many rows: certificates rest on the declared number."""
    if rows > table.rows_max:
        part = "" if table.blocks is None else "a block of time of "
        raise PreparationError("rows-max", f"{part}table {table.name!r} has more rows than its declared rows_max", hint="raise rows_max")


def rows_max_query(table: TableDecl, stored: str, *, blocks: tuple[int, int] | None = None) -> str:
    """SELECT of how many rows a stored table has (its SQL), or the largest of its blocks of time, or of these blocks of it."""
    if table.blocks is None:
        return f"SELECT COUNT(*) FROM {stored}"
    within = "" if blocks is None else f" WHERE p.{BLOCK} BETWEEN {blocks[0]} AND {blocks[1]}"
    return f"SELECT COALESCE(MAX(b.n), 0) FROM (SELECT COUNT(*) AS n FROM {stored} p{within} GROUP BY p.{BLOCK}) b"


def cap_predicate(cap: int) -> str:
    """Rows that are written; this is what leaves a table with one row per unit only one."""
    return f"c._r <= {cap}"


def rows_of_unit(cap: int) -> str:
    """How many rows of its unit are written."""
    return f"least(c._c, {cap})"


def ranking_text(columns: Mapping[str, Domain], dialect: Dialect) -> str:
    """What is hashed with the ranking key: the unit and the row's own bytes, nothing of other rows and no position."""
    return f"CAST(c.{UNIT} AS {dialect.text}) || '|' || {row_bytes(columns, 'c', dialect)}"


def rank_of(window: str) -> str:
    """Position among the unit's rows. Equal rows are interchangeable, so ROW_NUMBER may order them anyhow; RANK would keep them all."""
    return f"ROW_NUMBER() OVER ({window} ORDER BY c._hash)"


def _owned_rows(
    declared: TableDecl, declaration: Declaration, sources: Mapping[str, SourceTable], columns: Mapping[str, Domain], dialect: Dialect
) -> str:
    """Clean rows, each with its unit: the one its key leads to, which ``engines.links`` makes sure of."""
    source = sources[declared.name]
    listed = [
        f"{clean_column(column, source, columns[column.name], dialect)} AS {dialect.quoted(column.name)}" for column in declared.columns
    ]
    path = declared.unit
    assert isinstance(path, UnitPath), "rows that are units have no owner"
    if not path.hops:
        unit = link_key(declared, path.end.column, source, dialect)
        return f"SELECT {unit} AS {UNIT}, {', '.join(listed)} FROM {source.sql} s"
    hop = path.hops[0]
    own = link_key(declared, hop.column, source, dialect)
    links = unit_links(hop.target.column, UnitPath(path.hops[1:], path.end), declaration, sources, hop.target.table, dialect)
    return f"SELECT l.{UNIT}, {', '.join(listed)} FROM {source.sql} s JOIN ({links}) l ON {own} = l.link"


def unit_links(
    column: str, path: UnitPath, declaration: Declaration, sources: Mapping[str, SourceTable], table: str, dialect: Dialect
) -> str:
    """Distinct pairs (key, unit) of a parent table. No key is in two of them: preparation stops where one would be (``engines.links``)."""
    declared, source = declaration.table(table), sources[table]
    link = link_key(declared, column, source, dialect)
    if not path.hops:
        unit = link_key(declared, path.end.column, source, dialect)
        return f"SELECT DISTINCT {link} AS link, {unit} AS {UNIT} FROM {source.sql} s"
    hop = path.hops[0]
    own = link_key(declared, hop.column, source, dialect)
    further = unit_links(hop.target.column, UnitPath(path.hops[1:], path.end), declaration, sources, hop.target.table, dialect)
    return f"SELECT DISTINCT {link} AS link, l.{UNIT} FROM {source.sql} s JOIN ({further}) l ON {own} = l.link"


def link_key(declared: TableDecl, column: str, source: SourceTable, dialect: Dialect) -> str:
    """SQL of a key or unit of a raw row ``s`` as links are matched by it."""
    key = declared.column(column)
    return unit_value(*raw_column(key, source, dialect), key.domain, dialect)
