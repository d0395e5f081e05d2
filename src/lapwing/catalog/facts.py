"""The public facts of one version: the declaration, and the values of the public tables frozen in that version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lapwing.catalog.blocks import PreparedBlocks, blocks_of_domain
from lapwing.catalog.columns import with_other
from lapwing.catalog.declaration import ColumnDecl, ColumnRef, Declaration, TableDecl
from lapwing.catalog.settings import Settings
from lapwing.errors import CatalogueError
from lapwing.kernel.domains import Domain, NumberType, TextDomain, number_type, with_number
from lapwing.kernel.facts import Facts, PublicFacts, TableFacts, UnitLimits

PublicValues = Mapping[str, Mapping[str, Iterable[str | None]]]
"""For each public table, the values of its text columns as they stand in the frozen version."""
NumberTypes = Mapping[str, Mapping[str, NumberType]]
"""For each table, the types of those columns that hold numbers in the source."""
PLANNING_RULES = 2
"""The rules under which versions are prepared today. Under 2, counts of units have no longer norms than their groups allow, a count of all
rows is bounded by the statistics of the version, sums are clamped to the ranges that follow from the statement, per-unit values have norms,
and displayed values stay within the units and rows of the version."""
PLANNING_RULES_UNNUMBERED = 1
"""Those of versions that do not say."""


def facts(
    declaration: Declaration,
    public_values: PublicValues,
    *,
    version: int,
    settings: Settings | None = None,
    numbers: NumberTypes | None = None,
    rules: int = PLANNING_RULES,
    prepared: PreparedBlocks | None = None,
) -> Facts:
    """All that certification may rely on for this version; ``numbers`` is None for a version that does not say.

    Its planning ``rules`` affect accuracy only. ``prepared`` are the blocks of time that hold rows; without it, all that are declared.

    Pre: ``public_values`` comes from the public tables of the version and from nowhere else; protected rows have no way in here.
    Post: a text column of a public table has exactly its frozen values as domain, and a protected column with ``values_from`` has those
    of the public column it names, and ``other``. Values are in the order of their bytes, so equal versions give equal facts.
    """
    settings = settings or Settings()
    limit = settings.values_per_column_max

    def typed(domain: Domain, table: str, column: ColumnDecl) -> Domain:
        if numbers is None:
            return domain
        return with_number(domain, numbers.get(table, {}).get(column.name) or number_type(domain))

    public_tables = {
        table.name: PublicFacts(
            columns={
                column.name: typed(
                    _public_domain(column, ColumnRef(table=table.name, column=column.name), public_values, limit=limit), table.name, column
                )
                for column in table.columns
            },
            key=table.key,
        )
        for table in declaration.public_tables
    }
    tables = {
        table.name: TableFacts(
            columns={
                column.name: typed(_protected_domain(column, public_tables, limit=limit), table.name, column) for column in table.columns
            },
            rows_per_unit_max=table.rows_per_unit_max,
            rows_max=table.rows_max,
            **_blocks_of(table, prepared),
        )
        for table in declaration.tables
    }
    return Facts(
        source_id=declaration.dataset.id,
        version=version,
        neighbours=declaration.dataset.neighbours,
        account=declaration.declared_budget.account,
        tables=tables,
        public_tables=public_tables,
        limits=UnitLimits(rows=settings.unit_rows_max, work=settings.unit_work_max, size=settings.unit_size_max),
        order=declaration.declared_budget.order,
        typed_numbers=numbers is not None,
        planning_rules=rules,
    )


def blocks_of_table(table: TableDecl) -> tuple[int, int]:
    """The first and the last block that rows of a table can be in, by its declared times."""
    assert table.blocks is not None, "only tables with blocks have some"
    return blocks_of_domain(table.blocks, table.column(table.blocks.column).domain)


def _blocks_of(table: TableDecl, prepared: PreparedBlocks | None) -> dict[str, Any]:
    if table.blocks is None:
        return {}
    first, last = blocks_of_table(table)
    times = (table.blocks.column, table.blocks.every)
    if prepared is None:
        return {"blocks": (first, last), "times": times}
    return {"blocks": (max(first, prepared.first), min(last, prepared.last)), "times": times, "corrected": prepared.corrected}


def _public_domain(column: ColumnDecl, at: ColumnRef, public_values: PublicValues, *, limit: int) -> Domain:
    """A listed domain stays as declared (preparation maps the public table to it); an open one becomes what the table holds.

    A column with more values than the limit stays open: its values are then keys like any others that are not public, which is safe.
    """
    domain = column.domain
    if not isinstance(domain, TextDomain) or domain.values is not None:
        return domain
    frozen = public_values.get(at.table, {}).get(at.column)
    if frozen is None:
        raise CatalogueError("public-values-missing", f"the version does not hold the values of the public column `{at}`")
    values = sorted({value for value in frozen if value is not None}, key=str.encode)
    return domain if len(values) > limit else replace(domain, values=tuple(values))


def _protected_domain(column: ColumnDecl, public_tables: Mapping[str, PublicFacts], *, limit: int) -> Domain:
    domain, origin = column.domain, column.values_from
    if origin is None or not isinstance(domain, TextDomain):
        return domain
    listed = public_tables[origin.table].columns[origin.column]
    if not isinstance(listed, TextDomain) or listed.values is None:
        message = f"the public column `{origin}` has more than {limit} values"
        raise CatalogueError("catalogue-limit", message, hint="leave `values_from` out, or raise values_per_column_max")
    return replace(domain, values=with_other(listed.values, column.other))
