"""Source files as SQL relations. How a file is read is never guessed from its rows: one row must not change how others are read."""

from __future__ import annotations

import csv
import glob
import gzip
from pathlib import Path

from lapwing.engines.render.dialect import standard_text_literal
from lapwing.errors import PreparationError

_CSV_FIXED = "auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', comment = ''"


def is_csv(path: str) -> bool:
    """CSV by the file's name; everything else is read as Parquet."""
    return path.endswith((".csv", ".csv.gz"))


def source_reader(path: str) -> str:
    """SQL of a source file or glob."""
    literal = standard_text_literal(path)
    if not is_csv(path):
        return f"read_parquet({literal})"
    columns = ", ".join(f"{standard_text_literal(name)}: 'VARCHAR'" for name in csv_header(path))
    return f"read_csv({literal}, {_CSV_FIXED}, columns = {{{columns}}})"


def csv_header(path: str) -> list[str]:
    """Column names of a CSV file: its first line, and nothing else of it."""
    found = sorted(glob.glob(path))
    if not found:
        raise PreparationError("source-missing", "the source file does not exist")
    first = Path(found[0])
    if first.suffix == ".gz":
        with gzip.open(first, "rt", encoding="utf-8", newline="") as file:
            return next(csv.reader(file), [])
    with first.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file), [])
