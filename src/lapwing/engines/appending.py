"""Preparing again after rows were appended: only the units that have new rows are ranked again.

The kept rows of a unit are those with the ``cap`` smallest hashes. So the kept rows after an append are the ``cap`` smallest among the kept
rows before and the new rows, and what the cap removed earlier is not needed (docs/proofs/preparation.md). Where every row is a unit, new
rows are numbered on from the equal rows that are there already: counting from 1 again would make two rows one unit. The owner declares
which column of a source only grows; how far a version read it is its *mark*, which is data and stays inside the version. That there are
still as many rows up to the mark is checked; that they are the same rows is the owner's promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lapwing.catalog import Declaration, TableDecl
from lapwing.engines.prepare import DIGEST, DIGEST_CHARACTERS, SourceTable, ranked_rows, row_units
from lapwing.errors import PreparationError
from lapwing.kernel.domains import Domain
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import Dialect, SourceKind
from lapwing.render.relations import UNIT


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a source was read: the largest value of its growing column (None: no row has one), the number of all rows, and what the
    declared columns held.
    """

    position: int | None
    rows: int
    kinds: tuple[str, ...]


def marks_value(body: Mapping[str, Any]) -> dict[str, Mark]:
    """Marks as a version keeps them, by table."""
    return {name: Mark(mark["position"], mark["rows"], tuple(mark["kinds"])) for name, mark in body.items()}


def undeclared(old: Declaration, new: Declaration) -> list[str]:
    """Tables of an older version that the newer declaration does not have."""
    were, kept = ({table.name for table in one.tables} | {public.name for public in one.public_tables} for one in (old, new))
    return sorted(were - kept)


def kinds_of(declared: TableDecl, source: SourceTable) -> tuple[str, ...]:
    """What the declared columns of a source hold: rows read as one kind are not what another would have made of them."""
    return tuple(source.kinds[column.source_name].name for column in declared.columns if column.source_name in source.kinds)


def growing(declared: TableDecl, source: SourceTable, dialect: Dialect) -> str:
    """SQL of the growing column of a row ``s`` as a whole number: itself, days, or microseconds."""
    if declared.appended_by not in source.kinds:
        raise PreparationError("source-column-missing", f"the source has no column {declared.appended_by!r}")
    raw, kind = f"s.{dialect.quoted(declared.appended_by)}", source.kinds[declared.appended_by]
    match kind:
        case SourceKind.INTEGER:
            return dialect.try_cast(raw, kind, dialect.integer)
        case SourceKind.DATE:
            return dialect.days(dialect.try_cast(raw, kind, dialect.date))
        case SourceKind.TIMESTAMP:
            return dialect.microseconds(dialect.try_cast(raw, kind, dialect.timestamp))
        case _:
            hint = "name a column that holds whole numbers, dates or timestamps"
            raise PreparationError(
                "appended-by-type", f"the source of table {declared.name!r} cannot be followed by that column", hint=hint
            )


def mark_query(grows: str, source: SourceTable) -> str:
    """SELECT of a mark: largest position, rows."""
    return f"SELECT MAX({grows}), COUNT(*) FROM {source.sql} s"


def rows_before_query(grows: str, source: SourceTable, mark: Mark) -> str:
    """SELECT of the number of rows at or before a mark, including those without a position."""
    return f"SELECT COUNT(*) FROM {source.sql} s WHERE {at_or_before(grows, mark)}"


def read_up_to(grows: str, source: SourceTable, mark: Mark) -> SourceTable:
    """The source as it was when the mark was taken: rows written during the reading do not count and are read next time."""
    return SourceTable(f"(SELECT * FROM {source.sql} s WHERE {at_or_before(grows, mark)})", source.kinds)


def read_between(grows: str, source: SourceTable, before: Mark, after: Mark) -> SourceTable:
    """The rows after one mark, up to another."""
    later = "TRUE" if before.position is None else f"{grows} > {before.position}"
    upper = "FALSE" if after.position is None else f"{grows} <= {after.position}"
    return SourceTable(f"(SELECT * FROM {source.sql} s WHERE {later} AND {upper})", source.kinds)


def at_or_before(grows: str, mark: Mark) -> str:
    """SQL of whether a row existed when the mark was taken; one without a position counts as existing."""
    return f"{grows} IS NULL" if mark.position is None else f"({grows} <= {mark.position} OR {grows} IS NULL)"


def require_append_only(declared: TableDecl, before: Mark, rows_now: int) -> None:
    """Refuse if the number of rows up to the mark has changed: rows were deleted, or came late."""
    if rows_now != before.rows:
        message = f"the source of table {declared.name!r} has other rows than when it was last read, not only later ones"
        raise PreparationError("append-not-only", message, hint="prepare without --append")


def can_append(declared: TableDecl, old: Declaration, old_facts: Facts, facts: Facts) -> bool:
    """Whether the rows of the older version are what a preparation from nothing would make of the rows before the mark.

    Tables that reach their unit through another table are prepared from nothing: a new row of that table can own old rows of this one.
    """
    if not declared.appended_by or declared.unit.hops or declared not in old.tables:
        return False
    return old_facts.table(declared.name) == facts.table(declared.name)


def appended_rows(new: str, old: str, declared: TableDecl, columns: Mapping[str, Domain], dialect: Dialect) -> str:
    """SELECT of all rows, ranked and capped, of the units that have new rows. Its one parameter is the ranking key.

    ``new`` is SQL of a table of clean new rows with their units, ``old`` of the prepared table of the older version.
    """
    listed = ", ".join([UNIT, *(dialect.quoted(name) for name in columns)])
    affected = f"SELECT {listed} FROM {old} o WHERE o.{UNIT} IN (SELECT n.{UNIT} FROM {new} n)"
    return ranked_rows(f"SELECT {listed} FROM {new} UNION ALL {affected}", declared, columns, dialect)


def appended_row_units(new: str, old: str, columns: Mapping[str, Domain], dialect: Dialect) -> str:
    """SELECT of the new rows of a table whose rows are units; rows that were there keep their units.

    ``new`` is SQL of a table of digested new rows (``digested_rows``), ``old`` of the prepared table of the older version.
    """
    digest = f"substr(o.{UNIT}, 1, {DIGEST_CHARACTERS})"
    counted = f"SELECT {digest} AS {DIGEST}, COUNT(*) AS n FROM {old} o WHERE {digest} IN (SELECT n.{DIGEST} FROM {new} n) GROUP BY 1"
    return row_units(f"SELECT * FROM {new}", columns, dialect, earlier=counted)
