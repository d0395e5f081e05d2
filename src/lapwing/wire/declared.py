"""What is declared of a data set, as the shadow and the recogniser need it."""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.catalog import PublicDecl, TableDecl
from lapwing.client.dataset import DataSet
from lapwing.introspection.system_tables import system_tables
from lapwing.sql.text.reader import Schemas
from lapwing.wire.lexing import IDENTIFIER_BYTES_MAX
from lapwing.wire.shadow_database import DeclaredColumn, DeclaredTable


def declared_tables(data_set: DataSet) -> list[DeclaredTable]:
    """All tables of a data set, protected or public, as declared."""
    declaration, facts = data_set.curator.declaration, data_set.curator.facts
    typed = {
        (row["table_name"], row["column_name"]): (row["data_type"], row["is_nullable"] == "YES")
        for row in system_tables(declaration, facts)["information_schema.columns"].to_pylist()
    }
    tables: Sequence[TableDecl | PublicDecl] = (*declaration.tables, *declaration.public_tables)
    return [
        DeclaredTable(
            table.name,
            table.description,
            tuple(DeclaredColumn(column.name, *typed[table.name, column.name], column.description) for column in table.columns),
        )
        for table in tables
    ]


def table_names(data_set: DataSet) -> frozenset[str]:
    """Names by which statements mention a table, whole and as PostgreSQL cuts them off."""
    names = [name.casefold() for name in data_set.tables]
    return frozenset(names) | {name.encode()[:IDENTIFIER_BYTES_MAX].decode("utf-8", "ignore") for name in names}


def schema_names(data_set: DataSet) -> frozenset[str]:
    """Names that may stand before a table's."""
    known = Schemas.of(data_set.curator.declaration.dataset.id)
    return frozenset(known.schemas) | frozenset(known.catalogues)
