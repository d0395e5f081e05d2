"""Which statements may go to the shadow: queries that name no table of the data set and call only functions that change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.errors import Refused, Span
from lapwing.sql.text.refusals import span_of
from lapwing.wire.lexing import Word, WordKind

CATALOGUES = ("pg_catalog", "information_schema")
_CHANGES = frozenset({"into", "insert", "update", "delete", "merge", "lock", "copy", "call", "do", "grant", "revoke", "truncate", "nowait"})
_BEFORE_BRACKET_WORDS = """
all and any array as asc between bigint bit bpchar by case cast char character coalesce collate cross cube decimal desc distinct dec
else end except exists extract fetch filter first float for from full group grouping groups having ilike in inner int integer intersect
interval is isnull join last lateral left like limit materialized minus natural next nchar not notnull null nullif numeric offset on
only operator or order ordinality outer over overlay overlaps partition position precision preceding range recursive right rollup row
rows select sets similar smallint some substring symmetric then time timestamp to treat trim unbounded union using values varchar
varying when where window with within xmlelement year zone
"""
_BEFORE_BRACKET = frozenset(_BEFORE_BRACKET_WORDS.split())
"""Keywords that may stand before a bracket and call nothing, or call what is written into the grammar."""
_NOT_CALLED_AFTER = (")", "as", "ordinality", "with", "recursive")
"""After these a name with a bracket is an alias with the names of its columns."""
_VOLATILE_ALLOWED_WORDS = """
pg_is_in_recovery pg_relation_size pg_table_size pg_total_relation_size pg_indexes_size pg_database_size pg_tablespace_size
clock_timestamp timeofday pg_is_wal_replay_paused random pg_advisory_unlock_all
"""
VOLATILE_ALLOWED = frozenset(_VOLATILE_ALLOWED_WORDS.split())
"""Functions that PostgreSQL takes for volatile and that change nothing."""
_DENIED_FUNCTIONS_WORDS = """
table_to_xml table_to_xmlschema table_to_xml_and_xmlschema schema_to_xml schema_to_xmlschema schema_to_xml_and_xmlschema
database_to_xml database_to_xmlschema database_to_xml_and_xmlschema query_to_xml query_to_xmlschema query_to_xml_and_xmlschema
cursor_to_xml cursor_to_xmlschema ts_stat ts_rewrite repeat lpad rpad xmlserialize pg_stat_get_activity pg_lock_status pg_cursor
pg_prepared_statement pg_prepared_xact currval lastval pg_current_logfile inet_client_addr pg_blocking_pids pg_safe_snapshot_blocking_pids
pg_describe_object pg_identify_object pg_identify_object_as_address pg_get_object_address pg_tablespace_databases pg_get_replication_slots
"""
DENIED_FUNCTIONS = frozenset(_DENIED_FUNCTIONS_WORDS.split())
"""Functions that PostgreSQL takes for stable, that read tables by name, tell of other sessions or databases, or make very long texts."""
DENIED_RELATIONS = (
    "pg_stat",
    "pg_largeobject",
    "pg_locks",
    "pg_cursors",
    "pg_prepared",
    "pg_replication",
    "pg_hba",
    "pg_ident",
    "pg_file",
    "pg_db_role_setting",
    "pg_shdepend",
    "pg_shseclabel",
    "pg_subscription",
)
"""How names of relations begin that tell of other sessions or of other databases of the server, and that tools do without."""
ALLOWED_RELATIONS = ("pg_statistic_ext", "pg_statistic_ext_data", "pg_stat_get_numscans")


@dataclass(frozen=True, slots=True)
class OwnNames:
    """What statements are compared with: the tables of the data set, their schemas, and the functions that the shadow may run."""

    tables: frozenset[str]
    """In small letters."""
    schemas: frozenset[str]
    functions: frozenset[str]

    def mentioned(self, words: Sequence[Word]) -> bool:
        """Whether a table of the data set is named anywhere, by any name without a schema or in a schema of ours."""
        for place, word in enumerate(words):
            if word.is_name and word.value.casefold() in self.tables:
                qualified = place >= 2 and words[place - 1].says(".") and words[place - 2].is_name
                if not qualified or words[place - 2].value.casefold() in self.schemas:
                    return True
        return False


def require_harmless(text: str, words: Sequence[Word], own: OwnNames) -> None:
    """Refuse what the shadow may not be asked. Pre: no table of the data set is mentioned."""
    for place, word in enumerate(words):
        before = words[place - 1] if place else None
        if word.kind is WordKind.NAME and word.value in _CHANGES and not (before is not None and before.says("as", ".")):
            raise _refuse(text, word, f"{word.value.upper()} has no place in a question about the catalogue")
        if word.is_name and word.value.startswith(DENIED_RELATIONS) and word.value not in ALLOWED_RELATIONS:
            raise _refuse(text, word, f"{word.value} tells nothing here", hint="SHOW TABLES and DESCRIBE say what is declared")
        if not word.is_name or place + 1 >= len(words) or not words[place + 1].says("("):
            continue
        if before is not None and before.says(*_NOT_CALLED_AFTER):
            continue
        if before is not None and before.says(".") and words[place - 2].value.casefold() not in CATALOGUES:
            raise _refuse(text, word, "only functions of PostgreSQL's own catalogue are called here")
        keyword = word.kind is WordKind.NAME and word.value in _BEFORE_BRACKET and not (before is not None and before.says("."))
        if not keyword and word.value not in own.functions:
            raise Refused("wire-function", f"the function {word.value} is not called here", hint=_HINT, span=_place(text, word))


_HINT = "questions about the catalogue may call functions that change nothing; answers about data come from SELECT on its tables"


def _refuse(text: str, word: Word, message: str, *, hint: str = _HINT) -> Refused:
    return Refused("wire-statement", message, hint=hint, span=_place(text, word))


def _place(text: str, word: Word) -> Span:
    return span_of(text, word.start, word.end)
