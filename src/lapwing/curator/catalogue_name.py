"""Where a catalogue is, and the name that it gives its data set, without reading the rest of it: for those who have a thousand of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

from lapwing.catalog import Settings, load
from lapwing.curator.curator import CATALOGUE_FILE


def catalogue_directory(catalogue: Path) -> Path:
    """Where a catalogue is, by its directory or by its file. It need not be there."""
    return (catalogue.parent if catalogue.name == CATALOGUE_FILE else catalogue).resolve()


def catalogue_name(catalogue: Path) -> str:
    """The id of the data set; where it cannot be read, the error that opening the catalogue gives."""
    path = catalogue / CATALOGUE_FILE if catalogue.is_dir() else catalogue
    try:
        name = tomllib.loads(path.read_text(encoding="utf-8"))["dataset"]["id"]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError):
        name = None
    return name if isinstance(name, str) and name else load(path, settings=Settings()).dataset.id
