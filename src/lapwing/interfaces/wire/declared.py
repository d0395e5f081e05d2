"""The declarations of a data set, in the form that the shadow and the statement parser need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lapwing.asking.bound_statement import references_of
from lapwing.catalog import ColumnDecl, PublicDecl, RowUnit, TableDecl
from lapwing.data_set import DataSet
from lapwing.interfaces.wire.lexing import IDENTIFIER_BYTES_MAX
from lapwing.interfaces.wire.shadow.database import DeclaredColumn, DeclaredTable
from lapwing.introspection.descriptions import owned
from lapwing.introspection.system_tables import system_tables
from lapwing.sql.text.reader import Schemas


def declared_tables(data_set: DataSet) -> list[DeclaredTable]:
    """All tables of a data set, protected or public, as declared."""
    declaration, facts = data_set.curator.declaration, data_set.curator.facts
    typed = {
        (row["table_name"], row["column_name"]): (row["data_type"], row["is_nullable"] == "YES")
        for row in system_tables(declaration, facts)["information_schema.columns"].to_pylist()
    }
    tables: Sequence[TableDecl | PublicDecl] = (*declaration.tables, *declaration.public_tables)
    references = references_of(declaration)
    keys = {table.name: _key(table, references.values()) for table in tables}
    return [
        DeclaredTable(
            table.name,
            table.description or owned(declaration, table),
            tuple(DeclaredColumn(column.name, *typed[table.name, column.name], column.description) for column in table.columns),
            keys[table.name],
            tuple(
                (column.name, *target)
                for column in table.columns
                if (target := references.get((table.name, column.name)) or _listed_in(column)) is not None
                and keys[target[0]] == target[1]
                and typed[target][0] == typed[table.name, column.name][0]
            ),
        )
        for table in tables
    ]


def _key(table: TableDecl | PublicDecl, targets: Iterable[tuple[str, str]]) -> str:
    """The column that other tables refer to, or that preparation keeps unique; empty if there is none.

    Rows that share a unit share the unit's column: it is a key only if a unit has one row.
    """
    if isinstance(table, PublicDecl):
        return table.key
    if isinstance(table.unit, RowUnit):
        return ""
    own = table.unit.hops[0].column if table.unit.hops else table.unit.end.column
    if table.one_row_per_unit:
        return own
    return next((column for name, column in targets if name == table.name and column != own), "")


def _listed_in(column: ColumnDecl) -> tuple[str, str] | None:
    """The public column that has every value of this one."""
    return None if column.values_from is None or column.other is not None else (column.values_from.table, column.values_from.column)


def table_names(data_set: DataSet) -> frozenset[str]:
    """Names by which statements mention a table, in full and as truncated by PostgreSQL."""
    names = [name.casefold() for name in data_set.tables]
    return frozenset(names) | {name.encode()[:IDENTIFIER_BYTES_MAX].decode("utf-8", "ignore") for name in names}


def schema_names(data_set: DataSet) -> frozenset[str]:
    """Names that may qualify a table's."""
    known = Schemas.of(data_set.curator.declaration.dataset.id)
    return frozenset(known.schemas) | frozenset(known.catalogues)
