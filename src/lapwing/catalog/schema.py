"""The catalogue file as written: which keys exist, and of which type each is.

These pydantic models stand at the file edge only. They check shape (unknown and missing keys, types, words from a closed list); what the
values mean together is checked in ``build``, which turns them into the plain dataclasses of ``declaration``. Unknown keys are refused: a
misspelt ``max`` must never silently become "no bound".
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from lapwing.catalog.exact import read_exact
from lapwing.catalog.positions import Path

FORMAT = 1
"""The format of the file that this version reads."""


def _exact(raw: object) -> Fraction:
    number = read_exact(raw)
    if number is None:
        raise PydanticCustomError("exact_number", "an exact finite number")
    return number


def _date(raw: object) -> datetime.date:
    if isinstance(raw, datetime.date) and not isinstance(raw, datetime.datetime):
        return raw
    raise PydanticCustomError("plain_date", "a date")


def _timestamp(raw: object) -> datetime.datetime:
    if isinstance(raw, datetime.datetime) and raw.tzinfo is None:
        return raw
    raise PydanticCustomError("plain_timestamp", "a date and time without zone")


def _cap(raw: object) -> Fraction | None:
    return None if raw == "none" else _exact(raw)


Cap = Annotated[Fraction | None, PlainValidator(_cap)]
"""A number, or "none"."""
Exact = Annotated[Fraction, PlainValidator(_exact)]
Date = Annotated[datetime.date, PlainValidator(_date)]
Timestamp = Annotated[datetime.datetime, PlainValidator(_timestamp)]


class Model(BaseModel):
    """No coercion, no unknown keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DataSetModel(Model):
    """``[dataset]``"""

    id: str
    engine: Literal["duckdb", "postgres", "spark"] = "duckdb"
    connection: str = ""
    preparation: Literal["stored", "virtual"] = "stored"
    noise: Literal["lapwing", "opendp"] = "lapwing"
    unit: str
    neighbours: Literal["unbounded", "bounded"] = "unbounded"
    units: int | None = None
    description: str = ""


class CeilingModel(Model):
    """``ceiling`` in ``[budget]``"""

    epsilon: Exact


class BudgetModel(Model):
    """``[budget]``"""

    epsilon: Exact
    delta: Exact = Fraction(1, 2**40)
    ceiling: CeilingModel | None = None
    delta_keys_share: Exact | None = None
    order: int | None = None
    statistics_share: Exact | None = None
    norms_share: Exact | None = None


class DefaultsModel(Model):
    """``[defaults]``"""

    epsilon: Exact | None = None
    confidence: Exact = Fraction(95, 100)


class LedgerModel(Model):
    """``[ledger]``"""

    database: str | None = None
    anchors: str | None = None
    keys: str | None = None


class LimitsModel(Model):
    """``[limits]``"""

    per_statement: Exact | None = None
    per_day: Exact | None = None


class BlocksModel(Model):
    """``[blocks]``"""

    every: Literal["day", "week", "month"]
    person_cap: Cap
    grace_days: int = 1
    keep: int | None = None


class ColumnModel(Model):
    """What every type of column has."""

    source_name: str | None = Field(default=None, alias="from")
    null: bool = True
    description: str = ""


class KeyModel(ColumnModel):
    """``type = "key"``"""

    type: Literal["key"]
    of: Literal["integer", "text"] = "integer"


class BooleanModel(ColumnModel):
    """``type = "boolean"``"""

    type: Literal["boolean"]
    true: tuple[str, ...] = Field(default=(), strict=False)
    false: tuple[str, ...] = Field(default=(), strict=False)


class IntegerModel(ColumnModel):
    """``type = "integer"``"""

    type: Literal["integer"]
    min: int
    max: int


class RealModel(ColumnModel):
    """``type = "real"``"""

    type: Literal["real"]
    min: Exact
    max: Exact
    steps: int | None = None


class TextModel(ColumnModel):
    """``type = "text"``"""

    type: Literal["text"]
    values: tuple[str, ...] | None = Field(default=None, strict=False)
    values_from: str | None = None
    other: str | None = None


class DateModel(ColumnModel):
    """``type = "date"``"""

    type: Literal["date"]
    min: Date
    max: Date
    format: str = ""


class TimestampModel(ColumnModel):
    """``type = "timestamp"``"""

    type: Literal["timestamp"]
    min: Timestamp
    max: Timestamp
    format: str = ""


AnyColumnModel = KeyModel | BooleanModel | IntegerModel | RealModel | TextModel | DateModel | TimestampModel
Columns = dict[str, Annotated[AnyColumnModel, Field(discriminator="type")]]
COLUMN_MODELS: Mapping[str, type[ColumnModel]] = {
    "key": KeyModel,
    "boolean": BooleanModel,
    "integer": IntegerModel,
    "real": RealModel,
    "text": TextModel,
    "date": DateModel,
    "timestamp": TimestampModel,
}


class TableModel(Model):
    """``[tables.<name>]``"""

    source: str
    unit: str
    one_row_per_unit: bool = False
    rows_per_unit_max: int | None = None
    rows_max: int | None = None
    appended_by: str = ""
    blocks: str = ""
    partitions: tuple[str, ...] = Field(default=(), strict=False)
    delimiter: Literal[",", ";", "\t", "|"] = ","
    description: str = ""
    columns: Columns


class PublicModel(Model):
    """``[public.<name>]``"""

    source: str
    key: str
    partitions: tuple[str, ...] = Field(default=(), strict=False)
    delimiter: Literal[",", ";", "\t", "|"] = ","
    description: str = ""
    columns: Columns


class CatalogueModel(Model):
    """The whole file."""

    format: Literal[1]
    dataset: DataSetModel
    budget: BudgetModel
    defaults: DefaultsModel = DefaultsModel()
    ledger: LedgerModel = LedgerModel()
    limits: LimitsModel = LimitsModel()
    blocks: BlocksModel | None = None
    tables: dict[str, TableModel]
    public: dict[str, PublicModel] = {}


def model_at(path: Path) -> type[Model] | None:
    """The model of the table at ``path``, where a column's path ends in its type (as pydantic reports it)."""
    match path:
        case ():
            return CatalogueModel
        case ("dataset",):
            return DataSetModel
        case ("budget",):
            return BudgetModel
        case ("budget", "ceiling"):
            return CeilingModel
        case ("defaults",):
            return DefaultsModel
        case ("ledger",):
            return LedgerModel
        case ("limits",):
            return LimitsModel
        case ("blocks",):
            return BlocksModel
        case ("tables", _):
            return TableModel
        case ("public", _):
            return PublicModel
        case ("tables" | "public", _, "columns", _, str(kind)):
            return COLUMN_MODELS.get(kind)
        case _:
            return None


def keys_of(model: type[Model]) -> tuple[str, ...]:
    """The keys a table may have, as written in the file."""
    return tuple(info.alias or name for name, info in model.model_fields.items())


def shape(document: Mapping[str, Any]) -> CatalogueModel:
    """Read a document; raises ``pydantic.ValidationError`` with every mistake of shape in it."""
    return CatalogueModel.model_validate(document)
