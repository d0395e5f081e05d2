"""An owner's answers to the questions about a new data set, as form fields, and the declaration that they make.

Tables are chosen by fields ``take:file:NAME`` and ``take:table:DATABASE:NAME``. The names of other fields contain the name of the table
or column in the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lapwing.errors import CallRefused
from lapwing.interfaces.http.declaring_shapes import ColumnBody, DeclaredBody, TableBody
from lapwing.interfaces.http.new_data_sets import NewDataSets

ROW = "row"
TABLES_MAX = 20
Place = tuple[str, str]
"""A table and a column of it, by their names in the catalogue."""
KINDS = {
    "skip": "leave it out",
    "list": "one of a list of words",
    "text": "words without a list",
    "whole": "a whole number",
    "number": "a number with decimals",
    "date": "a date",
    "moment": "a date with a time",
    "yes-no": "yes or no",
}
_TYPES = {"list": "text", "text": "text", "whole": "integer", "number": "real", "date": "date", "moment": "timestamp", "yes-no": "boolean"}
_BY_TYPE = {"integer": "whole", "real": "number", "boolean": "yes-no", "date": "date", "timestamp": "moment", "text": "text"}
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,9})?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAY_LIKE = re.compile(r"(^|_)(day|date|on|born|birthday)(_|$)")
_MOMENT_LIKE = re.compile(r"(^|_)(at|time|timestamp|datetime)(_|$)")
_COUNT_LIKE = re.compile(r"(^|_)(age|year|count|days|number|minutes|hours|months|size|total)(_|$)")
_DAY_ENDS = "23:59:59.999999"
_LINE_END = re.compile(r"\r\n|\r|\n")
_SAME_NAME = "A guess: both columns have the same name"
_KEY_LIKE = re.compile(r"(^|_)(id|key|uuid|nr|no|number|code)$")


@dataclass(frozen=True, slots=True)
class TableChoice:
    """A table to declare: its name in the catalogue, its source, and its columns."""

    name: str
    source: str
    columns: tuple[dict[str, Any], ...]

    def column(self, name: str) -> dict[str, Any]:
        """The column of this name; refused if there is none."""
        for column in self.columns:
            if column["name"] == name:
                return column
        raise CallRefused("body-invalid", f"{self.name} has no column {name[:63]}")


@dataclass(frozen=True, slots=True)
class ProposedLink:
    """The column that leads from a row to a person, and why it is proposed: the database's keys, its name, or no reason."""

    column: str = ""
    to: str = ""
    why: str = ""


class OwnerAnswers:
    """All answers so far. A missing or invalid answer raises a refusal when it is needed."""

    def __init__(self, new_data: NewDataSets, said: Mapping[str, str]) -> None:
        self._new_data = new_data
        self.said = said

    # -- which tables ---------------------------------------------------------------------------------------------------------------

    @cached_property
    def _taken(self) -> tuple[str | None, list[str]]:
        """The database (None: files) and the sources that were chosen."""
        files = [name.removeprefix("take:file:") for name in self.said if name.startswith("take:file:")]
        tables = [name.removeprefix("take:table:").partition(":") for name in self.said if name.startswith("take:table:")]
        databases = {database for database, _, _ in tables}
        if not files and not tables:
            raise CallRefused("body-invalid", "choose at least one file or table")
        if len(databases) + bool(files) > 1:
            raise CallRefused("body-invalid", "choose files, or tables of one database: others cannot be in one data set")
        chosen = files or [table for _, _, table in tables]
        if len(chosen) > TABLES_MAX:
            raise CallRefused("body-invalid", f"choose at most {TABLES_MAX} tables")
        return (databases.pop() if databases else None), chosen

    @cached_property
    def tables(self) -> list[TableChoice]:
        """The tables that were chosen, with the columns of their schemas."""
        database, chosen = self._taken
        found = self._new_data.sources(chosen, database)
        return [TableChoice(one.name, source, one.columns) for one, source in zip(found, chosen, strict=True)]

    def table(self, name: str) -> TableChoice:
        """One of the tables."""
        for table in self.tables:
            if table.name == name:
                return table
        raise CallRefused("body-invalid", f"you have not chosen a table {name[:63]}")

    @cached_property
    def references(self) -> dict[Place, Place]:
        """The database's foreign keys, by names in the catalogue."""
        database, _ = self._taken
        if database is None:
            return {}
        places = {(table.source, column["from"]): (table.name, column["name"]) for table in self.tables for column in table.columns}
        pairs = self._new_data.tables(database).references
        return {places[one]: places[other] for one, other in pairs if one in places and other in places}

    @property
    def proposed_name(self) -> str:
        """A name for the data set, from its only table, its database, or the table of the people it protects."""
        database, _ = self._taken
        only = self.tables[0].name if len(self.tables) == 1 or not self.people else self.people[0]
        return (database or only).replace("_", "-").strip("-")

    # -- who is protected -----------------------------------------------------------------------------------------------------------

    @property
    def proposed_people(self) -> str:
        """The column that most foreign keys of the database refer to; empty if there are none."""
        pointed = [".".join(place) for place in self.references.values() if place not in self.references]
        return max(pointed, key=pointed.count, default="")

    @cached_property
    def people(self) -> Place | None:
        """The table and column that identify the protected people; None if single rows are protected."""
        whose = self.said.get("whose", "")
        if whose == ROW:
            return None
        if not whose:
            raise CallRefused(
                "body-invalid", "choose the column that identifies the person of a row, or that every row is a different person"
            )
        return self._place(whose)

    @property
    def unit(self) -> str:
        """The name of a unit."""
        called = self.said.get("unit", "").strip()
        if not called:
            raise CallRefused("body-invalid", "name the unit that the data set protects, such as patient or customer")
        return called

    def _place(self, written: str) -> Place:
        table, _, column = written.partition(".")
        return table, self.table(table).column(column)["name"]

    # -- how tables lead to them ----------------------------------------------------------------------------------------------------

    @property
    def others(self) -> list[TableChoice]:
        """Tables that must lead to the table of units."""
        return [] if self.people is None else [table for table in self.tables if table.name != self.people[0]]

    def proposed_link(self, table: TableChoice) -> ProposedLink:
        """The column that leads from this table to a person: by the database's keys, otherwise by equal names."""
        assert self.people is not None
        for column in table.columns:
            target = self.references.get((table.name, column["name"]))
            if target is not None and target[0] != table.name:
                return ProposedLink(column["name"], ".".join(target), "Proposed because it is a foreign key in the database")
        names = {column["name"] for column in table.columns}
        if self.people[1] in names:
            return ProposedLink(self.people[1], ".".join(self.people), _SAME_NAME)
        for other in self.others:
            for number, column in enumerate(other.columns):
                key_like = number == 0 or _KEY_LIKE.search(column["name"]) is not None
                if other.name != table.name and key_like and column["name"] in names:
                    return ProposedLink(column["name"], f"{other.name}.{column['name']}", _SAME_NAME)
        return ProposedLink(to=".".join(self.people))

    @cached_property
    def links(self) -> dict[str, tuple[str, Place]]:
        """For each other table, the linking column and its target."""
        found = {}
        for table in self.others:
            column, to = self.said.get(f"link-{table.name}", ""), self.said.get(f"to-{table.name}", "")
            if not column or not to:
                raise CallRefused("body-invalid", f"choose the column of {table.name} that identifies the person of a row")
            target = self._place(to)
            if target[0] == table.name:
                raise CallRefused("body-invalid", f"{table.name} cannot link to itself", hint="choose a column of another table")
            found[table.name] = table.column(column)["name"], target
        return found

    @cached_property
    def keys(self) -> dict[Place, str]:
        """Columns that identify or link to a person, and their types: both ends of a link have the same type."""
        if self.people is None:
            return {}
        steps = {(table, column): target for table, (column, target) in self.links.items()}
        known = {place: self.table(place[0]).column(place[1])["holds"] for place in {self.people, *steps, *steps.values()}}
        held = {}
        for place in known:
            same = [place, *self._same(place, steps)]
            holds = [known[one] for one in same if known[one] != "unknown"]
            held[place] = "integer" if holds and all(one == "integer" for one in holds) else "text"
        return held

    def _same(self, place: Place, steps: Mapping[Place, Place]) -> Iterator[Place]:
        """All columns that links connect to this one, directly or indirectly."""
        seen, waiting = {place}, [place]
        while waiting:
            here = waiting.pop()
            for one, other in steps.items():
                for near, far in ((one, other), (other, one)):
                    if near == here and far not in seen:
                        seen.add(far)
                        waiting.append(far)
                        yield far

    # -- which values ---------------------------------------------------------------------------------------------------------------

    def proposed_column(self, column: dict[str, Any]) -> dict[str, Any]:
        """A column with the kind that its type determines or its name suggests."""
        kind, name = _BY_TYPE.get(column["holds"]), column["name"]
        likely = {"moment": _MOMENT_LIKE, "date": _DAY_LIKE, "whole": _COUNT_LIKE}
        guessed = next((guess for guess, pattern in likely.items() if pattern.search(name)), "skip")
        return {**column, "proposed": kind or guessed, "guessed": kind is None}

    def asked_columns(self, table: TableChoice) -> list[dict[str, Any]]:
        """The columns whose values the form asks about: all except keys."""
        return [self.proposed_column(column) for column in table.columns if (table.name, column["name"]) not in self.keys]

    def columns(self, table: TableChoice, *, keys_alone: bool = False) -> dict[str, ColumnBody]:
        """The columns to keep, as catalogues declare them."""
        kept: dict[str, ColumnBody] = {}
        for column in table.columns:
            name, place = column["name"], (table.name, column["name"])
            if place in self.keys:
                kept[name] = ColumnBody(**{"type": "key", "of": self.keys[place], "from": column["from"]})
                continue
            field = f"{table.name}-{name}"
            kind = "skip" if keys_alone else self.said.get(f"kind-{field}", self.proposed_column(column)["proposed"])
            if kind == "skip":
                continue
            if kind not in _TYPES:
                raise CallRefused("body-invalid", f"choose what {name} holds")
            kept[name] = ColumnBody(**{"type": _TYPES[kind], "from": column["from"], **self._values(name, field, kind)})
        if not kept and not keys_alone:
            raise CallRefused("body-invalid", f"keep at least one column of {table.name}")
        return kept

    def _values(self, name: str, field: str, kind: str) -> dict[str, Any]:
        """The values that a column can have, if its kind needs them."""
        if kind == "list":
            return {"values": _words(name, self.said.get(f"words-{field}", ""))}
        if kind in ("whole", "number", "date", "moment"):
            least, most = self.said.get(f"least-{field}", "").strip(), self.said.get(f"most-of-{field}", "").strip()
            if not least or not most:
                message = f"give the smallest and the largest value that {name} can have"
                raise CallRefused("body-invalid", message, hint="a range that is too wide is safe; if in doubt, leave the column out")
            if kind == "moment":  # a date without a time means the whole day
                least, most = (f"{end}T{time}" if _DAY.fullmatch(end) else end for end, time in ((least, "00:00:00"), (most, _DAY_ENDS)))
            if kind in ("whole", "number") and not (_NUMBER.fullmatch(least) and _NUMBER.fullmatch(most)):
                raise CallRefused("body-invalid", f"the smallest and the largest value of {name} must be numbers")
            return {"min": least, "max": most}
        return {}

    # -- all of it ------------------------------------------------------------------------------------------------------------------

    def body(self, *, only_check: bool = False, keys_alone: bool = False) -> DeclaredBody:
        """All answers, as the HTTP interface takes them; ``keys_alone`` leaves out what has not been asked yet."""
        database, _ = self._taken
        said = self.said
        body = {
            "data_set": said.get("name", "").strip() or self.proposed_name,
            "unit": ROW if self.people is None else self.unit,
            "units": _whole(said.get("units", ""), "the approximate number of units"),
            "description": said.get("description", "").strip()[:1_000] or None,
            "database": database,
            "epsilon": said.get("epsilon", "").strip() or "1",
            "only_check": only_check,
        }
        tables = [self._table(table, database, keys_alone=keys_alone) for table in self.tables]
        try:
            return DeclaredBody(**body, tables=tables)
        except ValueError:
            hint = "use lower-case letters, digits and hyphens, beginning with a letter"
            raise CallRefused("body-invalid", "the name of the data set cannot be used", hint=hint) from None

    def _table(self, table: TableChoice, database: str | None, *, keys_alone: bool) -> TableBody:
        is_people = self.people is not None and self.people[0] == table.name
        most = _whole(
            self.said.get("most" if is_people else f"rows-{table.name}", ""), f"the number of rows of {table.name} that one unit can have"
        )
        if self.people is None:
            unit, most = ROW, None
        elif is_people:
            unit = self.people[1]
        else:
            column, target = self.links[table.name]
            unit = f"{column} -> {'.'.join(target)}"
        return TableBody(
            name=table.name,
            unit=unit,
            one_row_per_unit=True if most == 1 else None,
            rows_per_unit_max=None if most == 1 else most,
            columns=self.columns(table, keys_alone=keys_alone),
            **{"file" if database is None else "table": table.source},
        )


def _words(name: str, written: str) -> list[str]:
    """The words of a list, one per line. Blanks around a word are dropped, unless it is in quotes; a quote inside is doubled."""
    lines = [line.strip() for line in _LINE_END.split(written) if line.strip()]
    if not lines:
        raise CallRefused("body-invalid", f"list the words that {name} can be", hint="or choose words without a list")
    if len(lines) == 1 and "," in lines[0] and not _is_in_quotes(lines[0]):  # a common mistake: it would be one long word
        hint = "write each word on a separate line; if the comma belongs to the only word, put the word in quotes"
        raise CallRefused("body-invalid", f"the words of {name} are on one line", hint=hint)
    return list(dict.fromkeys(line[1:-1].replace('""', '"') if _is_in_quotes(line) else line for line in lines))


def _is_in_quotes(line: str) -> bool:
    return len(line) > 1 and line[0] == line[-1] == '"'


def _whole(written: str, what: str) -> int | None:
    text = written.strip().replace(",", "").replace(" ", "")
    if not text:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= 10**9:
        raise CallRefused("body-invalid", f"{what} must be a whole number or empty")
    return int(text)
