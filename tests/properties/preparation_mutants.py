"""Deliberate bugs of preparation. The oracle of sources must see every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lapwing.engines import links, prepare, reading
from lapwing.engines.appending import appended_rows
from lapwing.engines.duckdb import append as appending
from lapwing.engines.duckdb import prepare as writing
from lapwing.engines.duckdb import sources
from lapwing.engines.links import LinkKey
from lapwing.engines.prepare import SourceTable
from lapwing.engines.sources import csv_headers, source_files
from lapwing.render.dialect import SourceKind, quoted
from lapwing.render.duckdb import source_kind
from tests.support.source_worlds import IDENTIFIERS, LATER, Style

Patch = tuple[object, str, Any]
PLAIN = Style(IDENTIFIERS["int"], IDENTIFIERS["int"], "key", in_folders=True, csv=False, straight=True)
GROWING = replace(PLAIN, growing=True)


@dataclass(frozen=True)
class Mutant:
    """A bug: what is replaced, and the sources in which it must be seen."""

    name: str
    patches: tuple[Patch, ...]
    style: Style = PLAIN
    brought: tuple[str, ...] = ("",)
    """What units bring that is hostile."""


_LINK_KEYS, _LINKS, _LINK_KEY = links.link_keys, prepare.unit_links, prepare.link_key
_SHARED, _UNIT_VALUE, _SOURCE = links.shared_keys_query, reading.unit_value, sources.source
_RANKING_TEXT, _ONE_OWNER_EACH = prepare.ranking_text, writing.one_owner_each
_APPENDED, _CSV_HEADERS = appended_rows, csv_headers


def _raw_keys(key: LinkKey, declaration: Any, source: SourceTable, dialect: Any) -> str:
    column, owner = (declaration.table(key.table).column(name).source_name for name in (key.column, key.owner))
    pairs = f"SELECT s.{quoted(column)} AS link, s.{quoted(owner)} AS owner, COUNT(*) AS n FROM {source.sql} s GROUP BY 1, 2"
    return f"SELECT COUNT(*), SUM(k.n) FROM (SELECT SUM(n) AS n FROM ({pairs}) WHERE link IS NOT NULL GROUP BY link HAVING COUNT(*) > 1) k"


def _known_owners_only(key: LinkKey, declaration: Any, source: SourceTable, dialect: Any) -> str:
    return _SHARED(key, declaration, source, dialect).replace("p.link IS NOT NULL", "p.link IS NOT NULL AND p.owner IS NOT NULL")


def _in_one_file(key: LinkKey, declaration: Any, source: SourceTable, dialect: Any) -> str:
    """Each file by itself, as a check that runs file by file would: here the first of them."""
    files = source.sql[source.sql.index("read_parquet([") + len("read_parquet([") :].split("]")[0]
    return _SHARED(key, declaration, SourceTable(source.sql.replace(files, files.split(", ")[0]), source.kinds), dialect)


@contextmanager
def _new_rows_only(connection: Any, declaration: Any, found: Mapping[str, SourceTable]) -> Iterator[None]:
    later = SourceTable(f"(SELECT * FROM {found['visits'].sql} WHERE seq >= {LATER})", found["visits"].kinds)
    with _ONE_OWNER_EACH(connection, declaration, {**found, "visits": later}):
        yield


def _one_owner(*args: Any) -> str:
    return f"SELECT link, MIN(_unit) AS _unit FROM ({_LINKS(*args)}) o GROUP BY link"


def _by_double(raw: str, kind: SourceKind, domain: Any, dialect: Any) -> str:
    if kind is SourceKind.DECIMAL:
        return f"TRY_CAST(CAST({raw} AS DOUBLE) AS BIGINT)"
    return _UNIT_VALUE(raw, kind, domain, dialect)


def _wrapped(text: str) -> Callable[..., str]:
    """Units and links that are text are changed by a function of the engine."""

    def mutated(raw: str, kind: SourceKind, domain: Any, dialect: Any) -> str:
        value = _UNIT_VALUE(raw, kind, domain, dialect)
        return text.format(value) if domain.text else value

    return mutated


def _any_spelling(raw: str, kind: SourceKind, domain: Any, dialect: Any) -> str:
    return f"TRY_CAST({raw} AS BIGINT)"


def _any_double(raw: str, kind: SourceKind, domain: Any, dialect: Any) -> str:
    return f"TRY_CAST({raw} AS BIGINT)" if kind is SourceKind.FRACTIONAL else _UNIT_VALUE(raw, kind, domain, dialect)


def _first_types(table: Any, files: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    first = next(iter(files.values()))
    return {column.source_name: first[column.source_name] for column in table.columns if column.source_name in first}


def _inferred(connection: Any, declaration: Any, table: Any) -> SourceTable:
    """Folders read by the engine, which finds a type that fits all of them."""
    found = _SOURCE(connection, declaration, table)
    if not table.partitions:
        return found
    rows = sources._rows(table, source_files(declaration.source_path(table)), ()).replace(
        "hive_partitioning = false", "hive_partitioning = true"
    )
    described = connection.execute(f"DESCRIBE SELECT region FROM {rows}").fetchall()[0]
    return SourceTable(f"(SELECT * FROM {rows})", {**found.kinds, "region": source_kind(described[1])})


MUTANTS: tuple[Mutant, ...] = (
    Mutant("keys of several owners not looked for", ((writing, "require_one_owner_each", lambda *_: None),), brought=("claims a visit",)),
    Mutant(
        "only the keys of the first hop looked at",
        ((links, "link_keys", lambda declaration: _LINK_KEYS(declaration)[:1]),),
        brought=("claims a code",),
    ),
    Mutant(
        "keys compared raw, not as links",
        ((links, "shared_keys_query", _raw_keys),),
        replace(PLAIN, visits=IDENTIFIERS["digits"]),
    ),
    Mutant(
        "owners that are unknown not counted", ((links, "shared_keys_query", _known_owners_only),), brought=("claims a visit as nobody",)
    ),
    Mutant("keys looked at in one file only", ((links, "shared_keys_query", _in_one_file),), brought=("claims a visit",)),
    Mutant(
        "one chosen owner for a key of several",
        ((prepare, "unit_links", _one_owner), (writing, "require_one_owner_each", lambda *_: None)),
        brought=("claims a visit",),
    ),
    Mutant(
        "keys not looked at when rows are appended",
        ((appending, "one_owner_each", lambda *_: contextmanager(lambda: iter([None]))()),),
        GROWING,
        brought=("claims a visit",),
    ),
    Mutant(
        "keys looked at among appended rows only", ((appending, "one_owner_each", _new_rows_only),), GROWING, brought=("claims a visit",)
    ),
    Mutant(
        "appended rows ranked without the older ones",
        ((appending, "appended_rows", lambda new, old, *rest: _APPENDED(new, new, *rest)),),
        GROWING,
    ),
    Mutant("type of folders inferred from all of them", ((writing, "source", _inferred),), replace(PLAIN, region="flag")),
    Mutant(
        "names of folders not looked at",
        ((sources, "require_partitions", lambda table, files: None),),
        brought=("a folder that is no text",),
    ),
    Mutant(
        "the first file decides about types",
        ((sources, "agreed_columns", _first_types),),
        brought=("another type in people", "another type in visits", "another type in drugs"),
    ),
    Mutant(
        "the first line of the first text file decides",
        ((sources, "csv_headers", lambda table, files: _CSV_HEADERS(table, files[:1])),),
        replace(PLAIN, csv=True, people=IDENTIFIERS["digits"], visits=IDENTIFIERS["digits"]),
        brought=("another order",),
    ),
    Mutant(
        "identifiers in fixed point read as doubles", ((prepare, "unit_value", _by_double),), replace(PLAIN, people=IDENTIFIERS["decimal"])
    ),
    Mutant("identifiers without their case", ((prepare, "unit_value", _wrapped("lower({})")),), replace(PLAIN, people=IDENTIFIERS["text"])),
    Mutant(
        "identifiers without their blanks", ((prepare, "unit_value", _wrapped("trim({})")),), replace(PLAIN, people=IDENTIFIERS["text"])
    ),
    Mutant("identifiers in any spelling", ((prepare, "unit_value", _any_spelling),), replace(PLAIN, people=IDENTIFIERS["digits"])),
    Mutant("identifiers rounded from any double", ((prepare, "unit_value", _any_double),), replace(PLAIN, people=IDENTIFIERS["double"])),
    Mutant("rank by position in the files", ((prepare, "rank_of", lambda window: f"ROW_NUMBER() OVER ({window})"),)),
    Mutant(
        "rank by a figure over all files",
        ((prepare, "ranking_text", lambda columns, dialect: f"(COUNT(*) OVER ()) || {_RANKING_TEXT(columns, dialect)}"),),
    ),
    Mutant("links that are not distinct", ((prepare, "unit_links", lambda *args: _LINKS(*args).replace("DISTINCT ", "")),)),
)
BY_NAME: Mapping[str, Mutant] = {mutant.name: mutant for mutant in MUTANTS}
assert len(BY_NAME) == len(MUTANTS)
