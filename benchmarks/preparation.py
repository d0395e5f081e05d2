"""Ways to write the same prepared table: what each costs, and that it stores the same rows.

    python -m benchmarks.preparation --rows 1_000_000 --repetitions 5

Every variant starts from the SELECT that preparation really runs and changes one thing. A variant that stores other rows, or other ranks,
is reported as different: it would be another snapshot format and not a faster one.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
from benchmarks.files import RANKING_KEY, Files, write_source
from benchmarks.markdown import megabytes, show, table
from benchmarks.spent import spent

from lapwing.catalog import Declaration, load
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.prepare import SourceTable, private_table, ranking_text, row_bytes
from lapwing.render.dialect import Dialect
from lapwing.render.duckdb import DUCKDB, source_kind

_FINAL_ORDER = " ORDER BY _rank, _unit"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way; ``keyed_hash`` and ``joined`` give SQL for the hash of a row and for the text that is hashed."""

    name: str
    keyed_hash: Callable[[str, str], str] = DUCKDB.keyed_hash
    joined: Callable[[Sequence[str]], str] | None = None
    final_order: str = _FINAL_ORDER


def _bars(parts: Sequence[str]) -> str:
    return " || ".join(parts)


def _concat(parts: Sequence[str]) -> str:
    return f"concat({', '.join(parts)})"


VARIANTS = (
    Variant("as shipped"),
    Variant("text joined piece by piece", keyed_hash=lambda key, text: f"sha256({key} || '|' || {text})", joined=_bars),
    Variant("text joined at once (concat)", keyed_hash=lambda key, text: f"sha256(concat({key}, '|', {text}))", joined=_concat),
    Variant("hash as 32 bytes", keyed_hash=lambda key, text: f"unhex({DUCKDB.keyed_hash(key, text)})"),
    Variant("first 128 bits of the hash, as text", keyed_hash=lambda key, text: f"left({DUCKDB.keyed_hash(key, text)}, 32)"),
    Variant(
        "first 128 bits of the hash, as an integer",
        keyed_hash=lambda key, text: f"CAST('0x' || left({DUCKDB.keyed_hash(key, text)}, 32) AS UHUGEINT)",
    ),
    Variant(
        "first 64 bits of the hash, as an integer",
        keyed_hash=lambda key, text: f"CAST('0x' || left({DUCKDB.keyed_hash(key, text)}, 16) AS UBIGINT)",
    ),
    Variant("rows written by rank alone", final_order=" ORDER BY _rank"),
    Variant("rows written as they come", final_order=""),
)


def select_of(variant: Variant, declaration: Declaration, source: SourceTable) -> str:
    """SQL of the prepared table under a variant."""
    declared, facts = declaration.table("visits"), declared_facts(declaration, {}, version=1)
    dialect: Dialect = replace(DUCKDB, keyed_hash=variant.keyed_hash)
    sql = private_table(declared, declaration, {"visits": source}, facts, dialect)
    columns = facts.table("visits").columns
    if variant.joined is not None:
        pieces = [piece for name, domain in columns.items() for piece in ("','", row_bytes({name: domain}, "c", dialect))]
        text = variant.joined([f"CAST(c._unit AS {dialect.text})", "'|'", *pieces[1:]])
        sql = _replaced(sql, ranking_text(columns, dialect), text)
    return sql + variant.final_order


def _replaced(sql: str, old: str, new: str) -> str:
    if sql.count(old) != 1:
        raise ValueError("preparation has changed: this benchmark must follow it")
    return sql.replace(old, new)


def run(files: Files, *, rows: int, repetitions: int) -> None:
    """Write the table once per variant and repetition, in turn."""
    write_source(files, rows=rows)
    declaration = load(files.catalogue)
    reader = "read_parquet('" + str(files.source).replace("'", "''") + "')"
    with duckdb.connect() as connection:
        kinds = {str(row[0]): source_kind(str(row[1])) for row in connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()}
    selects = {variant: select_of(variant, declaration, SourceTable(reader, kinds)) for variant in VARIANTS}
    times: dict[Variant, list[float]] = {variant: [] for variant in VARIANTS}
    stored: dict[Variant, tuple[int, int]] = {}
    for _ in range(repetitions):
        for variant, select in selects.items():
            cpu_seconds, stored[variant] = _write(files.directory / "variant.duckdb", select)
            times[variant].append(cpu_seconds)
    shipped, body = VARIANTS[0], []
    for variant, figures in times.items():
        ratio = statistics.median(ours / theirs for ours, theirs in zip(figures, times[shipped], strict=True))
        same = "yes" if stored[variant][0] == stored[shipped][0] else "NO"
        size = megabytes(stored[variant][1])
        body.append([variant.name, f"{min(figures):.2f}", f"{statistics.median(figures):.2f}", f"{ratio:.2f}", size, same])
    head = ["variant", "least CPU s", "median CPU s", "median ratio", "size MB", "same rows and ranks"]
    table(f"Preparation of {rows:,} rows, {repetitions} repetitions", head, body)


def _write(target: Path, select: str) -> tuple[float, tuple[int, int]]:
    """CPU seconds of writing, a checksum of what was stored (in any order of rows), and the size."""
    target.unlink(missing_ok=True)
    with duckdb.connect(str(target)) as connection:
        connection.execute("SET preserve_insertion_order = false")

        def write() -> None:
            connection.execute(f"CREATE TABLE visits AS {select}", {"key": RANKING_KEY.hex()})
            connection.execute("CHECKPOINT")

        cpu_seconds = spent(write).cpu_seconds
        checksum = connection.execute("SELECT SUM(CAST(hash(v) AS HUGEINT)) FROM visits v").fetchall()[0][0]
    return cpu_seconds, (int(checksum), target.stat().st_size)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="CPU time of ways to write the same prepared table.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run(Files(Path(scratch)), rows=arguments.rows, repetitions=arguments.repetitions)
    show("")


if __name__ == "__main__":
    main()
