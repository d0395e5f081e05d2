"""Rows of the public tables that are frozen in a version: facts like any other, read when a statement's groups depend on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lapwing.errors import PreparationError
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import PublicFacts
from lapwing.render.arrow_values import key_values
from lapwing.render.dialect import Dialect

PUBLIC_ROWS_MAX = 100_000
"""Most rows of a public table that are read; of a longer one, the domains of its columns are all that is used."""


def public_rows(run: Callable[[str], pa.Table], name: str, public: PublicFacts, dialect: Dialect) -> Mapping[str, Sequence[Value]] | None:
    """All rows of a frozen public table, by column, in a fixed order; None where they are too many."""
    columns = ", ".join(dialect.quoted(column) for column in public.columns)
    sql = f"SELECT {columns} FROM {dialect.table(name)} ORDER BY {dialect.quoted(public.key)} LIMIT {PUBLIC_ROWS_MAX + 1}"
    try:
        table = run(sql)
    except Exception as error:  # whatever an engine raises; what it says is kept from analysts
        raise PreparationError("engine-unreachable", "a public table of this version cannot be read") from error
    if table.num_rows > PUBLIC_ROWS_MAX:
        return None
    return {name: tuple(key_values(table.column(place), domain)) for place, (name, domain) in enumerate(public.columns.items())}
