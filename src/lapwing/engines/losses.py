"""The rows and values that preparation leaves out and changes, counted exactly by rule and column, for the owner alone.

These are exact figures about the rows. They are read from the same sources by the same SQL as the rows that are written, in statements of
their own, so that counting changes nothing; they are handed to the caller and never stored with a version, in the ledger, or in its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from lapwing.catalog import ColumnDecl, Declaration, RowUnit, TableDecl, UnitPath
from lapwing.catalog.facts import blocks_of_table
from lapwing.engines.block_rows import SOURCE_BLOCK, common_blocks, rows_in_blocks, rows_without_block_query
from lapwing.engines.prepare import SourceTable, clean_column, link_key, raw_column, unit_links
from lapwing.engines.reading import outside, undeclared
from lapwing.kernel.domains import DateDomain, TimestampDomain
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import Dialect
from lapwing.render.relations import UNIT

COLUMNS_AT_ONCE = 100
"""Columns that one statement counts: servers limit how much a SELECT lists."""
HEAVY_SHARE = 10
"""Losing more than one row in this many needs the owner's confirmation."""

EMPTIED_SHARE = 2
"""So does a column in which more than one value in this many becomes NULL: its declaration is probably wrong."""

NULL_IN_SOURCE = "NULL in the source"
UNREADABLE = "could not be read, NULL now"
UNDECLARED = "not a declared value"
CLAMPED = "out of bounds, clamped"
OUT_OF_BOUNDS = "out of bounds, NULL now"


@dataclass(frozen=True, slots=True)
class Changed:
    """How many values of a column one rule touched, of all rows that were read."""

    column: str
    rule: str
    rows: int


@dataclass(frozen=True, slots=True)
class TableLosses:
    """One table: rows read, and why some are not kept. Each row that is not kept counts under one rule, the first that applies."""

    table: str
    rows: int
    no_unit: int
    no_parent: int
    null_not_allowed: int
    beyond_cap: int
    null_columns: Mapping[str, int]
    """Of the rows with a unit: how many are NULL, or became NULL, in each column declared ``null = false``."""
    changed: tuple[Changed, ...]
    emptied: tuple[str, ...] = ()
    """Columns of which more than half of the values became NULL."""
    no_block: int = 0
    """Rows that are in no block of time, because they have no time, or none that is declared; counted when a version is made."""
    in_source: int = 0
    """Where those are counted: all rows of the source, also those whose block is not closed."""

    @property
    def lost(self) -> int:
        """Rows that are not kept."""
        return self.no_unit + self.no_parent + self.null_not_allowed + self.beyond_cap + self.no_block

    @property
    def kept(self) -> int:
        """Rows that are kept."""
        return self.rows - self.lost

    @property
    def is_heavy(self) -> bool:
        """Whether more than a tenth is lost."""
        timed = self.rows - self.no_block
        return (self.lost - self.no_block) * HEAVY_SHARE > timed or self.no_block * HEAVY_SHARE > self.in_source

    @property
    def worries(self) -> list[str]:
        """The findings that need confirmation, as text."""
        rows = [f"more than a tenth of {self.table} would be left out"] if self.is_heavy else []
        return rows + [f"more than half of the values of {self.table}.{column} would become NULL" for column in self.emptied]


def noteworthy(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of a report, the tables that lose or change something; of changed values, those that were not NULL before."""
    tables = [{**table, "changed": [one for one in table["changed"] if one["rule"] != NULL_IN_SOURCE]} for table in report["tables"]]
    return [table for table in tables if table["lost"] or table["changed"]]


def report_of(losses: Sequence[TableLosses]) -> dict[str, Any]:
    """The owner's report, for JSON."""
    warning = "exact figures about the rows, for the owner alone: not for release"
    tables = [{**asdict(item), "kept": item.kept, "lost": item.lost, "worries": item.worries} for item in losses]
    return {"warning": warning, "tables": tables}


Witness: TypeAlias = Callable[[Sequence[TableLosses]], None]
"""Called before anything is written; an exception from it ends the preparation."""
Ask: TypeAlias = Callable[[str], Sequence[Sequence[Any]]]


def witnessed(
    witness: Witness | None,
    declaration: Declaration,
    sources: Mapping[str, SourceTable],
    facts: Facts,
    dialect: Dialect,
    ask: Ask,
    *,
    tables: Iterable[TableDecl] | None = None,
    blocks: tuple[int, int] | None = None,
) -> None:
    """Count for a witness, if there is one: all tables, or these; of those with blocks of time, rows of ``blocks``, or of all blocks."""
    if witness is None:
        return
    counted = []
    for table in declaration.tables if tables is None else tables:
        read, untimed, in_source = sources, 0, 0
        if table.blocks is not None:
            if tables is None:
                query = rows_without_block_query(table, sources[table.name], facts.table(table.name).columns, dialect)
                untimed, in_source = (int(count) for count in ask(query)[0])
            written = blocks_of_table(table) if blocks is None else common_blocks(blocks_of_table(table), blocks)
            rows = rows_in_blocks(table, sources[table.name], facts.table(table.name).columns, written, dialect)
            read = {**sources, table.name: rows}
        losses = _table_losses(table, declaration, read, facts, dialect, ask)
        counted.append(replace(losses, rows=losses.rows + untimed, no_block=untimed, in_source=in_source))
    witness(counted)


def _table_losses(
    table: TableDecl, declaration: Declaration, sources: Mapping[str, SourceTable], facts: Facts, dialect: Dialect, ask: Ask
) -> TableLosses:
    columns, source = facts.table(table.name).columns, sources[table.name]
    required = [column for column in table.columns if not columns[column.name].nullable]
    clean = {column.name: clean_column(column, source, columns[column.name], dialect) for column in required}
    rows = _rows_with_units(table, declaration, sources, clean, dialect)
    missing = [f"c.{dialect.quoted(name)} IS NULL" for name in clean]
    any_missing = f"({' OR '.join(missing)})" if missing else "(1 = 0)"
    owned = f"c.{UNIT} IS NOT NULL"
    counts = ["c._own IS NULL", f"c._own IS NOT NULL AND c.{UNIT} IS NULL", f"{owned} AND {any_missing}"]
    total, no_unit, no_parent, nulls = _counted(counts, f"({rows}) c", ask)
    cap = table.rows_per_unit_max
    owner = f"c.{UNIT}" if table.blocks is None else f"c.{UNIT}, c.{SOURCE_BLOCK}"
    units = f"SELECT COUNT(*) AS n FROM ({rows}) c WHERE {owned} AND NOT {any_missing} GROUP BY {owner}"
    is_capped = not isinstance(table.unit, RowUnit)
    beyond = int(ask(f"SELECT COALESCE(SUM(g.n - {cap}), 0) FROM ({units}) g WHERE g.n > {cap}")[0][0]) if is_capped else 0
    by_column: dict[str, int] = {}
    for chunk in _chunks(list(clean)):
        these = _rows_with_units(table, declaration, sources, {name: clean[name] for name in chunk}, dialect)
        _, *null_counts = _counted([f"{owned} AND c.{dialect.quoted(name)} IS NULL" for name in chunk], f"({these}) c", ask)
        by_column |= dict(zip(chunk, null_counts, strict=True))
    changed = tuple(change for change in _changes(table, source, facts, dialect, ask) if change.rows)
    return TableLosses(
        table.name,
        total,
        no_unit,
        no_parent,
        nulls,
        beyond,
        {name: count for name, count in by_column.items() if count},
        changed,
        tuple(column.name for column in table.columns if _is_emptied(column, total, changed)),
    )


def _is_emptied(column: ColumnDecl, rows: int, changed: Sequence[Changed]) -> bool:
    """Whether most of what a column held is NULL now. A value that is not declared is not lost where ``other`` says what becomes of it."""
    counts = {change.rule: change.rows for change in changed if change.column == column.name}
    rules = [UNREADABLE, OUT_OF_BOUNDS, *([UNDECLARED] if column.other is None else [])]
    return sum(counts.get(rule, 0) for rule in rules) * EMPTIED_SHARE > rows - counts.get(NULL_IN_SOURCE, 0)


def _rows_with_units(
    table: TableDecl, declaration: Declaration, sources: Mapping[str, SourceTable], clean: Mapping[str, str], dialect: Dialect
) -> str:
    """Every row of a source, with its own key, the unit it leads to or NULL, and the columns that must not be NULL."""
    source, path = sources[table.name], table.unit
    listed = "".join(f", {sql} AS {dialect.quoted(name)}" for name, sql in clean.items())
    if isinstance(path, RowUnit):
        return f"SELECT 1 AS {UNIT}, 1 AS _own{listed} FROM {source.sql} s"
    if not path.hops:
        unit = link_key(table, path.end.column, source, dialect)
        block = "" if table.blocks is None else f", s.{SOURCE_BLOCK}"
        return f"SELECT {unit} AS {UNIT}, {unit} AS _own{block}{listed} FROM {source.sql} s"
    hop = path.hops[0]
    own = link_key(table, hop.column, source, dialect)
    links = unit_links(hop.target.column, UnitPath(path.hops[1:], path.end), declaration, sources, hop.target.table, dialect)
    return f"SELECT l.{UNIT}, {own} AS _own{listed} FROM {source.sql} s LEFT JOIN ({links}) l ON {own} = l.link"


def _changes(table: TableDecl, source: SourceTable, facts: Facts, dialect: Dialect, ask: Ask) -> list[Changed]:
    domains = facts.table(table.name).columns
    rules = [(column.name, rule, sql) for column in table.columns for rule, sql in _rules(column, source, facts, table, dialect)]
    changes: list[Changed] = []
    for chunk in _chunks(rules):
        _, *counts = _counted([sql for _, _, sql in chunk], f"{source.sql} s", ask)
        changes += [Changed(name, rule, count) for (name, rule, _), count in zip(chunk, counts, strict=True)]
    assert {change.column for change in changes} <= set(domains)
    return changes


def _rules(column: ColumnDecl, source: SourceTable, facts: Facts, table: TableDecl, dialect: Dialect) -> list[tuple[str, str]]:
    """The possible changes of a value of a column, each with its condition in SQL."""
    domain = facts.table(table.name).columns[column.name]
    (raw, kind), clean = raw_column(column, source, dialect), clean_column(column, source, domain, dialect)
    rules = [(NULL_IN_SOURCE, f"{raw} IS NULL")]
    unlisted = undeclared(raw, kind, domain, dialect)
    if unlisted is not None:
        return [*rules, (UNDECLARED, unlisted)]
    bounds, unread = outside(raw, kind, domain, dialect, column.spelling), f"{raw} IS NOT NULL AND {clean} IS NULL"
    if bounds is None:
        return [*rules, (UNREADABLE, unread)]
    timed = isinstance(domain, DateDomain | TimestampDomain)  # numbers are moved to the nearest end, dates are not
    return [*rules, (UNREADABLE, f"{unread} AND ({bounds}) IS NOT TRUE"), (OUT_OF_BOUNDS if timed else CLAMPED, bounds)]


def _counted(conditions: Sequence[str], relation: str, ask: Ask) -> list[int]:
    """How many rows a relation has, and how many of them meet each condition."""
    sums = "".join(f", COALESCE(SUM(CASE WHEN {condition} THEN 1 ELSE 0 END), 0)" for condition in conditions)
    return [int(value) for value in ask(f"SELECT COUNT(*){sums} FROM {relation}")[0]]


def _chunks(items: list[Any]) -> list[list[Any]]:
    return [items[start : start + COLUMNS_AT_ONCE] for start in range(0, len(items), COLUMNS_AT_ONCE)]
