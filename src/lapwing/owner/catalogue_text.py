"""The text of a catalogue file from a structured description of a data set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ID_NAME_MAX = 54
"""With a dash and eight digits, as long as an id may be."""


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A described table: keys of its section, and keys of each of its columns. Missing values are left out."""

    name: str
    keys: Mapping[str, Any]
    columns: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class DescribedDataSet:
    """A described data set, section by section."""

    dataset: Mapping[str, Any]
    budget: Mapping[str, Any]
    tables: Sequence[DescribedTable]
    introduction: Sequence[str] = field(default=())
    """Lines of remarks at the beginning."""
    limits: Mapping[str, Any] = field(default_factory=dict)


def catalogue_toml(described: DescribedDataSet) -> str:
    """The file for the description. Nothing is checked here; reading the file checks it.

    Comparisons of texts rely on this: the same description gives the same bytes, in this release and in later ones.
    """
    lines = [*(f"# {line}".rstrip() for line in described.introduction), "format = 1"]
    lines += _section("dataset", described.dataset) + _section("budget", described.budget)
    lines += _section("limits", described.limits) if described.limits else []
    for table in described.tables:
        lines += _section(f"tables.{table.name}", table.keys) + _section(f"tables.{table.name}.columns", table.columns)
    return "\n".join(lines) + "\n"


def id_of_place(name: str, directory: Path) -> str:
    """The default id of a data set: from the name and the location of its folder or file.

    A ledger is bound to the id. Folders and files of equal name in two places are two data sets, and each needs a ledger of its own.
    """
    return f"{name[:_ID_NAME_MAX]}-{hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:8]}"


def _section(heading: str, keys: Mapping[str, Any]) -> list[str]:
    return [f"[{heading}]", *(f"{key} = {toml_value(value)}" for key, value in keys.items() if value is not None)]


def toml_value(value: object) -> str:
    """A value as TOML has it; texts are escaped, so that no text becomes another line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            return f"{{ {', '.join(f'{key} = {toml_value(item)}' for key, item in value.items() if item is not None)} }}"
        case Sequence():
            return f"[{', '.join(toml_value(item) for item in value)}]"
        case _:
            return str(value)
