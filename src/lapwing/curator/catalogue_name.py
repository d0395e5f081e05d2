"""The path of a catalogue and the id of its data set, read without the rest of the file: fast for thousands of catalogues."""

from __future__ import annotations

import tomllib
from pathlib import Path

from lapwing.catalog import Settings, load
from lapwing.curator.curator import CATALOGUE_FILE


def catalogue_directory(catalogue: Path) -> Path:
    """The path of a catalogue, given its directory or its file. It need not exist."""
    return (catalogue.parent if catalogue.name == CATALOGUE_FILE else catalogue).resolve()


def catalogue_name(catalogue: Path) -> str:
    """The id of the data set. If it cannot be read, this raises the same error as opening the catalogue."""
    path = catalogue / CATALOGUE_FILE if catalogue.is_dir() else catalogue
    try:
        name = tomllib.loads(path.read_text(encoding="utf-8"))["dataset"]["id"]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError):
        name = None
    return name if isinstance(name, str) and name else load(path, settings=Settings()).dataset.id
