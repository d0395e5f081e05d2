"""Metadata statements for every interface: tables, columns, settings. Free; no row is read and nothing is recorded."""

from __future__ import annotations

from lapwing.answers.assembly import empty_answer
from lapwing.asking.bound_statement import bound_statement
from lapwing.curator.curator import Curator
from lapwing.errors import Refused
from lapwing.introspection.descriptions import MetadataTable, described_table, described_tables
from lapwing.introspection.introspect import NO_ROW, PublicKnowledge, columns_asked, introspected
from lapwing.prices import statement_loss


def about_itself(curator: Curator, sql: str, *, dialect: str, analyst: str | None) -> MetadataTable | None:
    """The answer to a metadata statement; None for any other."""
    return introspected(sql, _knowledge(curator, analyst), dialect=dialect)


def columns_alone(curator: Curator, sql: str, *, dialect: str) -> MetadataTable | None:
    """The columns of a statement that requests no rows, which is free; None for any other."""
    from lapwing.sql.introspection import asks_no_row

    if not asks_no_row(sql, settings=curator.settings, dialect=dialect):
        return None
    try:
        bound = bound_statement(curator, sql, dialect=dialect)
        planned = bound.checked_plan(statement_loss(bound.budget, curator.declaration.defaults.epsilon))
    except Refused:
        return columns_asked(sql, _knowledge(curator, None), dialect=dialect)
    return MetadataTable(empty_answer(planned, bound.statement.post), (NO_ROW,))


def description(curator: Curator, table: str | None = None) -> MetadataTable:
    """All tables, or the columns of one."""
    declaration = curator.declaration
    return described_tables(declaration) if table is None else described_table(declaration, curator.facts, table)


def _knowledge(curator: Curator, analyst: str | None) -> PublicKnowledge:
    who = curator.analyst_default if analyst is None else analyst
    return PublicKnowledge(curator.declaration, curator.facts, curator.settings, who)
