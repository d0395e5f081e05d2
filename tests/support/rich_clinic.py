"""The demonstration with a budget that tests do not use up, and the exact answers of bare DuckDB about it."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

import lapwing
from lapwing.demo import write_demo


def write_rich_clinic(directory: Path, *, patients: int, epsilon: int, more: str = "") -> Path:
    """The catalogue and its files; ``more`` is written to the catalogue's end."""
    catalogue = write_demo(directory, patients=patients)[0]
    text = catalogue.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^epsilon = 3 .*$", f"epsilon = {epsilon}", text, count=1)
    text = re.sub(r"(?m)^ceiling = .*$", f"ceiling = {{ epsilon = {epsilon} }}", text, count=1)
    text = re.sub(r"(?m)^\[limits\]\n(per_.*\n)*", "", text)
    catalogue.write_text(text + more, encoding="utf-8")
    return catalogue


def prepare_rich_clinic(base: Path, *, patients: int = 2_000, epsilon: int = 1_000_000_000, more: str = "") -> Path:
    """The same below ``base / "clinic"``, prepared, with its ledger in ``base / "home"``; gives ``base``."""
    write_rich_clinic(base / "clinic", patients=patients, epsilon=epsilon, more=more)
    with lapwing.open(base / "clinic", home=base / "home") as data_set:
        data_set.prepare(accept_losses=True)
    return base


def exact_rows(base: Path, sql: str) -> list[tuple[object, ...]]:
    """What bare DuckDB answers from its files."""
    with duckdb.connect() as exact:
        for file in (base / "clinic").glob("*.parquet"):
            exact.execute(f"CREATE VIEW {file.stem} AS FROM '{file}'")
        return exact.execute(sql).fetchall()
