"""How a new data set is described over HTTP. The catalogue's own loader checks how the fields fit together."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from lapwing.interfaces.http.shapes import Amount, StrictBody, Text

ColumnName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Bound = int | Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, Field(max_length=40)]


class ColumnBody(StrictBody):
    """A column: its source, what it holds, and which values it can have. Some types need bounds or values."""

    type: Literal["key", "boolean", "integer", "real", "text", "date", "timestamp"]
    source_name: Annotated[str, Field(alias="from", max_length=200)]
    null: bool = True
    description: Text = ""
    of: Literal["integer", "text"] | None = None
    min: Bound | None = None
    max: Bound | None = None
    """Dates and times as 2025-01-31 and 2025-01-31T12:00:00."""
    steps: Annotated[int, Field(ge=1, le=10**9)] | None = None
    values: Annotated[list[Annotated[str, Field(max_length=500)]], Field(max_length=10_000)] | None = None
    other: Annotated[str, Field(max_length=500)] | None = None

    def written(self) -> dict[str, Any]:
        """The keys of the column in a catalogue."""
        keys = {"type": self.type, "from": self.source_name, "of": self.of, "min": self._end(self.min), "max": self._end(self.max)}
        keys |= {"steps": self.steps, "values": self.values, "other": self.other}
        keys |= {"null": None if self.null else False, "description": self.description or None}
        return {key: value for key, value in keys.items() if value is not None}

    def _end(self, end: Bound | None) -> object:
        """An end of a range as a TOML value; text that is not a date stays text, which the catalogue refuses."""
        if not isinstance(end, str):
            return end
        try:
            if self.type == "date":
                return datetime.date.fromisoformat(end)
            if self.type == "timestamp":
                return datetime.datetime.fromisoformat(end)
            if self.type == "integer":
                return int(end)
        except ValueError:
            return end
        return end


class TableBody(StrictBody):
    """A protected table, from a file or folder or, if the data set has a ``database``, from one of its tables.

    ``unit`` is the column that identifies the unit, a path ``column -> table.column`` to a table that has it, or ``row``.
    """

    name: ColumnName
    file: Annotated[str, Field(max_length=500)] | None = None
    table: Annotated[str, Field(max_length=500)] | None = None
    unit: Annotated[str, Field(max_length=200)]
    one_row_per_unit: bool | None = None
    rows_per_unit_max: Annotated[int, Field(ge=1, le=10**9)] | None = None
    rows_max: Annotated[int, Field(ge=1, le=10**12)] | None = None
    description: Annotated[str, Field(max_length=1_000)] | None = None
    columns: Annotated[dict[ColumnName, ColumnBody], Field(min_length=1, max_length=1_000)]


class DeclaredBody(StrictBody):
    """A new data set: whom it protects, its budget, and its tables."""

    data_set: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
    unit: Annotated[str, Field(min_length=1, max_length=100)]
    neighbours: Literal["unbounded", "bounded"] | None = None
    units: Annotated[int, Field(ge=1, le=10**12)] | None = None
    description: Annotated[str, Field(max_length=1_000)] | None = None
    database: Annotated[str, Field(max_length=63)] | None = None
    """The operator's name for the database of the tables; without it, the tables come from files."""
    epsilon: Amount
    delta: Amount = "2^-40"
    ceiling: Amount | None = None
    tables: Annotated[list[TableBody], Field(min_length=1, max_length=20)]
    only_check: bool = False
    """Return what the catalogue would be, and write nothing."""
