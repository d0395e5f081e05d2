"""A first catalogue from the schemas of files: facts that need no rows are filled in, the rest is left to the owner.

The owner's decisions are left out and marked TODO, so that ``lapwing check`` points at every line that is not finished. Nothing is
guessed that would matter: bounds, lists of values, the unit and the budget are facts that must be known without looking at the rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from lapwing.catalog.units import ROW
from lapwing.curator.source_schemas import ColumnContents, SourceColumn

_NAME_MAX = 63
_INTRODUCTION = """\
# A draft, made by `lapwing init` from the schemas of the files. No row was read.
#
# Lines marked TODO wait for the owner of the data. `lapwing check` says what is still missing, line by line.
# Every fact declared here must be known without looking at the rows: a bound read off the data can give somebody away.
# Bounds that are too wide are safe, and cost accuracy.
#
# `null = false` says that a column is never NULL, and spares every answer by it a group NULL. It is written where the schema says so;
# add it where you know. Rows with NULL there after all, or with a value that is not declared, are left out; `lapwing prepare` counts them.
"""


@dataclass(frozen=True, slots=True)
class RequestedTable:
    """A table to declare: its preferred name, its source as written in the catalogue, its columns."""

    name: str
    source: str
    columns: Sequence[SourceColumn]
    folders: tuple[str, ...] = ()
    """What folders such as ``year=2024`` give a value to."""


@dataclass(frozen=True, slots=True)
class DraftTable:
    """The same, with a name that a catalogue accepts."""

    name: str
    source: str
    columns: tuple[SourceColumn, ...]
    folders: tuple[str, ...]


def named_tables(wished: Sequence[RequestedTable]) -> list[DraftTable]:
    """Tables with names that a catalogue accepts, all different."""
    used: set[str] = set()
    return [DraftTable(unused_name(safe_name(item.name), used), item.source, tuple(item.columns), item.folders) for item in wished]


def draft(dataset_id: str, tables: Sequence[DraftTable], *, engine: str = "duckdb", connection: str = "") -> str:
    """The text of the catalogue. If no column of any table may identify the owner of a row, rows are proposed as units."""
    names = [safe_name(column.name) for table in tables for column in table.columns]
    by_row = ROW not in names and not any(map(_may_tell_units, names))
    parts = [
        _INTRODUCTION,
        "format = 1\n",
        _dataset(dataset_id, engine, connection, by_row=by_row),
        _budget(),
        *(_table(table, by_row=by_row) for table in tables),
        _public(tables),
    ]
    return "\n".join(parts)


def count_todos(text: str) -> int:
    """How many lines wait for the owner."""
    return len(re.findall(r"# TODO", text))


def safe_name(wished: str) -> str:
    """A name that the catalogue accepts, as close as possible to the preferred one."""
    name = re.sub(r"[^a-z0-9]+", "_", wished.lower()).strip("_")[:_NAME_MAX].rstrip("_")
    if not name:
        return "column"
    return name if name[0].isalpha() else f"c_{name}"[:_NAME_MAX].rstrip("_")


def unused_name(name: str, used: set[str]) -> str:
    """The name, or one like it that is not used yet; it is used from now on."""
    candidate, number = name, 2
    while candidate in used:
        suffix = f"_{number}"
        candidate, number = name[: _NAME_MAX - len(suffix)] + suffix, number + 1
    used.add(candidate)
    return candidate


def _dataset(dataset_id: str, engine: str, connection: str, *, by_row: bool) -> str:
    unit = '# TODO unit = "patient"               a word for whom it protects: patient, customer, household'
    if by_row:
        unit = '# TODO unit = "row"                   what is protected: here single rows, not people; see `unit` of the tables below'
    reached = f"connection = {_text(connection)}     # as the role that answers; never a password\n" if connection else ""
    return f"""\
[dataset]
id = {_text(dataset_id)}
engine = {_text(engine)}
{reached}{unit}
neighbours = "unbounded"              # or "bounded", when the number of units is public
# units = 50_000                      about how many, if that is public
"""


def _budget() -> str:
    return """\
[budget]
# TODO epsilon = 1                    for all answers together, over its whole life; the smaller, the more private
delta = "2^-40"
# ceiling = { epsilon = 2 }           how far epsilon may ever be raised

[limits]
per_statement = 0.2                   # what one statement may cost, as a share of the budget
per_day = 0.5                         # what one analyst may spend in a day; 1 is no limit
"""


_UNIT_IS_ROW = """\
# TODO unit = "row"                  no column seems to say whose row it is, so every row can be a unit of its own.
#                                    This protects single rows, NOT people: whether any one row is there, and what it says, stays hidden;
#                                    whoever has ten rows is protected for each alone, and what the ten say together may come out.
#                                    Right where everybody has one row. If a column says whose row it is, name that column instead:
# unit = "..."                       the column, declared below as type = "key\""""


def _unit_lines(table: DraftTable) -> list[str]:
    identifiers = [name for name in (safe_name(column.name) for column in table.columns) if _may_tell_units(name)]
    perhaps = f" (perhaps {', '.join(identifiers)})" if identifiers else ""
    return [
        f'# TODO unit = "..."                  whose row it is: a column{perhaps},',
        '#                                    or a path to a table that knows, such as "visit_id -> visits.visit_id"',
        "# one_row_per_unit = true            when a unit has one row at most",
        "# rows_per_unit_max = 100            rows of one unit that are kept; 1,000 when left out",
    ]


def _folder_lines(table: DraftTable) -> list[str]:
    """Folders mean nothing unless the owner says so."""
    if not table.folders:
        return []
    listed, names = ", ".join(map(_text, table.folders)), " and ".join(safe_name(name) for name in table.folders)
    return [f"# partitions = [{listed}]        to read {names} from the names of folders; then declare them as columns too"]


def _table(table: DraftTable, *, by_row: bool) -> str:
    lines = [
        f"[tables.{table.name}]",
        f"source = {_text(table.source)}",
        *_folder_lines(table),
        *([_UNIT_IS_ROW] if by_row else _unit_lines(table)),
        "# rows_max = 1_000_000               a public limit on the size of the table",
        "",
        f"[tables.{table.name}.columns]",
        *_columns(table.columns),
    ]
    return "\n".join(lines) + "\n"


def _columns(columns: Sequence[SourceColumn]) -> Iterator[str]:
    used: set[str] = set()
    seen: set[str] = set()
    for column in columns:
        if column.held is ColumnContents.OTHER:
            yield f"# {_text(column.name)}: left out, a column of type {_shortened(column.described)} cannot be declared"
        elif not column.name or column.name.lower() in seen:
            yield f"# {_text(column.name)}: left out, another column has this name but for upper and lower case"
        else:
            yield _column(column, unused_name(safe_name(column.name), used))
        seen.add(column.name.lower())


_IF_NEVER_NULL = "null = false if never missing"


def _column(column: SourceColumn, name: str) -> str:
    identifier = _is_identifier(name)
    keys, remark = _declared(column.held, identifier=identifier)
    # A real number may be none (NaN) in a column without NULL, and its row would be left out. Identifiers are never groups.
    null = ", null = false" if column.required and column.held is not ColumnContents.REAL else ""
    if not (null or identifier or column.held is ColumnContents.REAL):
        remark = f"{remark}; {_IF_NEVER_NULL}" if remark else _IF_NEVER_NULL
    renamed = "" if name == column.name else f", from = {_text(column.name)}"
    line = f"{name} = {{ {keys}{null}{renamed} }}"
    return f"{line}  # {remark}" if remark else line


def _declared(held: ColumnContents, *, identifier: bool) -> tuple[str, str]:
    """The keys that the schema settles, and a remark, which starts with TODO when something is left to do."""
    match held:
        case ColumnContents.INTEGER if identifier:
            return 'type = "key"', 'an identifier; to group by it: type = "integer" with min and max'
        case ColumnContents.TEXT if identifier:
            return 'type = "key", of = "text"', 'an identifier; to group by it: type = "text"'
        case ColumnContents.INTEGER:
            return 'type = "integer"', 'TODO min and max; or type = "key" for an identifier'
        case ColumnContents.REAL:
            return 'type = "real"', "TODO min and max; steps = 100 keeps hundredths"
        case ColumnContents.BOOLEAN:
            return 'type = "boolean"', ""
        case ColumnContents.TEXT:
            return 'type = "text"', 'TODO values = ["a", "b"] if the list is public; without it rare values stay hidden'
        case ColumnContents.DATE:
            return 'type = "date"', "TODO min and max, such as 2020-01-01"
        case ColumnContents.TIMESTAMP:
            return 'type = "timestamp"', "TODO min and max, such as 2020-01-01T00:00:00"
        case ColumnContents.UNKNOWN if identifier:
            return 'type = "key", of = "text"', 'TODO of = "integer" if it holds whole numbers'
        case ColumnContents.UNKNOWN:
            return 'type = "text"', "TODO the type, which a CSV file does not say: boolean, integer, real, text, date, timestamp, key"
        case ColumnContents.OTHER:
            raise ValueError("a column that cannot be declared")
        case _:
            assert_never(held)


_WHOSE = frozenset(
    {
        "account",
        "borrower",
        "caller",
        "card",
        "citizen",
        "client",
        "customer",
        "device",
        "driver",
        "email",
        "employee",
        "family",
        "holder",
        "household",
        "imei",
        "ip",
        "login",
        "mail",
        "member",
        "nhs",
        "owner",
        "passenger",
        "passport",
        "patient",
        "payer",
        "person",
        "phone",
        "player",
        "pupil",
        "reader",
        "resident",
        "rider",
        "sender",
        "ssn",
        "student",
        "subject",
        "subscriber",
        "tenant",
        "uid",
        "user",
        "username",
        "visitor",
        "voter",
        "worker",
    }
)
"""Words in names of columns that often identify the owner of a row."""


def _may_tell_units(name: str) -> bool:
    """Whether a column of this name may identify the owner of a row."""
    return _is_identifier(name) or not _WHOSE.isdisjoint(name.split("_"))


def _is_identifier(name: str) -> bool:
    return name in ("id", "key", "uuid") or name.endswith(("_id", "_key", "_uuid"))


def _public(tables: Sequence[DraftTable]) -> str:
    example = tables[0].name if tables else "shops"
    return f"""\
# A table that is no secret at all can be joined freely. Rename its two headings to [public.{example}] and [public.{example}.columns],
# and replace `unit` and the lines on rows by key = "the column to join on".
"""


def _text(value: str) -> str:
    """A TOML string."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _shortened(described: str) -> str:
    line = " ".join(described.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
