"""Answers to metadata statements."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

import pyarrow as pa

from lapwing.answers.post_processing import query_public, typed_array
from lapwing.catalog import Declaration, Settings
from lapwing.errors import Refused
from lapwing.introspection.descriptions import MetadataTable, described_table, described_tables
from lapwing.introspection.session_words import DescribeTable, IgnoredStatement, SessionWords, ShowSetting, ShowTables, read_session_words
from lapwing.introspection.system_tables import SCHEMA, SERVER_VERSION, SETTINGS, system_tables
from lapwing.kernel.domains import Domain, KeyDomain, Kind, kind_of
from lapwing.kernel.facts import Facts

FREE = "answered from the catalogue alone: free"
NO_ROW = "no row is asked for: these are the columns, free"


@dataclass(frozen=True, slots=True)
class PublicKnowledge:
    """The public facts of a data set, and the analyst."""

    declaration: Declaration
    facts: Facts
    settings: Settings
    analyst: str


def introspected(text: str, known: PublicKnowledge, *, dialect: str) -> MetadataTable | None:
    """The answer to a metadata statement; None for any other. Reads no row."""
    if len(text.encode("utf-8", "surrogatepass")) > known.settings.statement_bytes_max:
        return None
    words = read_session_words(text)
    if words is not None:
        return _to_words(words, known)
    if "privacy" in text.lower():  # a price or an accuracy applies only to measurements
        return None
    # With the parser, which takes a third of a second to import: it is needed in any case.
    from lapwing.sql.introspection import may_be_public, public_statement

    own = own_tables(known.facts)
    if not may_be_public(text, own):
        return None
    tables = system_tables(known.declaration, known.facts)
    statement = public_statement(text, tables, own, settings=known.settings, dialect=dialect, constants=_constants(known))
    if statement is None:
        return None
    return MetadataTable(query_public({place: tables[name] for place, name in statement.tables.items()}, statement.sql), (FREE,))


def columns_asked(text: str, known: PublicKnowledge, *, dialect: str) -> MetadataTable | None:
    """The columns of a SELECT of rows that requests no rows, with their types; None for any other."""
    from lapwing.sql.introspection import columns_statement
    from lapwing.sql.text.reader import Schemas

    own = own_tables(known.facts)
    schemas = Schemas.of(known.facts.source_id)
    statement = columns_statement(text, own, settings=known.settings, dialect=dialect, schemas=schemas)
    if statement is None:
        return None
    tables = {place: _without_rows(own[name]) for place, name in statement.tables.items()}
    return MetadataTable(query_public(tables, statement.sql), (NO_ROW,))


def own_tables(facts: Facts) -> dict[str, dict[str, Domain]]:
    """The columns of every table of the data set, protected or public."""
    tables = {name: dict(table.columns) for name, table in facts.tables.items()}
    return tables | {name: dict(table.columns) for name, table in facts.public_tables.items()}


def _without_rows(columns: dict[str, Domain]) -> pa.Table:
    kinds = {name: Kind.TEXT if isinstance(domain, KeyDomain) and domain.text else kind_of(domain) for name, domain in columns.items()}
    return pa.table({name: typed_array([], kind) for name, kind in kinds.items()})


def _to_words(words: SessionWords, known: PublicKnowledge) -> MetadataTable:
    match words:
        case IgnoredStatement(word):
            return MetadataTable(pa.table({}), (f"{word} is accepted and changes nothing: a session here has no state",))
        case ShowTables():
            return described_tables(known.declaration)
        case DescribeTable(table, span):
            return described_table(known.declaration, known.facts, table, span=span)
        case ShowSetting(name, span):
            if name not in SETTINGS:
                hint = "SHOW TABLES"
                raise Refused("statement-unsupported", "there is no such setting to show", hint=hint, span=span)
            return MetadataTable(pa.table({name: [SETTINGS[name]]}), (FREE,))


def _constants(known: PublicKnowledge) -> dict[str, str]:
    moment = datetime.now(UTC).replace(tzinfo=None)
    name, who = (text.replace("'", "''") for text in (known.declaration.dataset.id, known.analyst))
    now = f"CAST('{moment}' AS TIMESTAMP)"
    return {
        "version": f"'PostgreSQL {SERVER_VERSION} (as spoken by Lapwing {version('lapwing')})'",
        "current_schema": f"'{SCHEMA}'",
        "current_database": f"'{name}'",
        "current_catalog": f"'{name}'",
        "current_user": f"'{who}'",
        "session_user": f"'{who}'",
        "current_timestamp": now,
        "now": now,
        "current_date": f"CAST('{moment.date()}' AS DATE)",
    }
