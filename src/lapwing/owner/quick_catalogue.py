"""A data set from one file and a few arguments: writes the corresponding catalogue beside the file and opens it.

The directory ``<file>.lapwing`` then holds the catalogue, the ledger and the versions: opening the same file again finds the same budget.
With other arguments the existing catalogue is not overwritten; the owner edits it by hand, so that the change is visible.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lapwing.catalog.units import ROW
from lapwing.curator.source_schemas import UnreadableSource, read_columns
from lapwing.errors import CatalogueError, PreparationError
from lapwing.owner.catalogue_text import DescribedDataSet, DescribedTable, catalogue_toml, id_of_place

Number = str | int | float
_NAME = re.compile(r"[^a-z0-9_]+")
_ID_LINE = re.compile(r'^id = ".*"$', re.MULTILINE)


def quick_catalogue(
    source: Path, *, unit: str, columns: Mapping[str, Mapping[str, Any]], epsilon: Number, delta: Number, rows_max: int | None
) -> Path:
    """The catalogue file for these arguments; written the first time, compared afterwards."""
    if unit == ROW:
        _require_no_column(source)
    text = catalogue_text(source, unit=unit, columns=columns, epsilon=epsilon, delta=delta, rows_max=rows_max)
    directory = source.with_name(source.name + ".lapwing")
    path = directory / "lapwing.toml"
    if not path.exists():
        directory.mkdir(mode=0o700, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    elif _without_id(path.read_text(encoding="utf-8")) != _without_id(text):
        raise CatalogueError(
            "catalogue-differs",
            f"{directory.name} was made with other words",
            hint=f"open {path.name} in that directory instead, and change it there if the declaration is to change",
        )
    return path


def catalogue_text(
    source: Path, *, unit: str, columns: Mapping[str, Mapping[str, Any]], epsilon: Number, delta: Number, rows_max: int | None
) -> str:
    """The TOML for the arguments. The unit column is an identifier unless ``columns`` declares another type; the unit "row" is not a
    column."""
    name = _NAME.sub("_", source.name.split(".")[0].lower()).strip("_") or "data"
    identifier = {} if unit == ROW else {unit: {"type": "key"}}
    declared = {**identifier, **{column: dict(keys) for column, keys in columns.items()}}
    table = DescribedTable(name, {"source": "../" + source.name, "unit": unit, "rows_max": rows_max}, declared)
    dataset = {"id": id_of_place(name.replace("_", "-"), source.parent), "unit": unit}
    return catalogue_toml(DescribedDataSet(dataset, {"epsilon": str(epsilon), "delta": str(delta)}, [table]))


def _without_id(text: str) -> str:
    """The compared parts of a catalogue. Its id is not one of them: earlier releases took the name of the file alone, and a folder may be
    moved."""
    return _ID_LINE.sub("", text, count=1)


def _require_no_column(source: Path) -> None:
    """Refuse if ``row`` could refer to a column: single rows would be protected instead of all rows of a person."""
    try:
        names = [column.name.lower() for column in read_columns(source)]
    except UnreadableSource as error:
        raise PreparationError("source-missing", str(error)) from None
    if ROW in names:
        hint = f"write a catalogue, where the column can have another name: lapwing init {source.name}"
        raise CatalogueError("catalogue-bad-unit", f'the file has a column "{ROW}", but unit="{ROW}" does not refer to it', hint=hint)
