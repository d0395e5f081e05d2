"""The preparation lemma against an engine: sources and their neighbours, each written, prepared by the engine and compared row for row.

For two neighbours either both are prepared, and then their tables are the same but for the rows of the units in which the sources differ,
ranks and facts included; or one of them stops by a stated rule that does apply to it. Besides, every prepared source is held against what
is known of it in Python: which rule applies, and how many rows each unit has.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Declaration, Settings
from lapwing.engines.base import silent
from lapwing.engines.duckdb import DuckDBEngine
from lapwing.engines.duckdb.prepare import write_tables
from lapwing.engines.duckdb.session import begin_session
from lapwing.errors import PreparationError
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import quoted
from tests.support.source_worlds import FIRST, TABLES, Family, Source, Unit

Rows = dict[Unit, tuple[str, ...]]
"""Prepared rows of a table by their unit, in one order."""


@dataclass(frozen=True)
class Tables:
    """What a source was prepared into."""

    facts: Facts
    rows: Mapping[str, Rows]


@dataclass(frozen=True)
class Stopped:
    """A preparation that stopped, and by which rule."""

    code: str


Prepared = Tables | Stopped
Prepare = Callable[[Declaration], Tables]


@dataclass
class Outcome:
    """What a run of the oracle saw."""

    pairs: int = 0
    stopped: int = 0
    """Pairs of which one source or both were not prepared, by a rule that applies."""
    sources: int = 0
    breaches: list[str] = field(default_factory=list)


class InDuckDB:
    """DuckDB, in memory: one database for all sources, whose tables take each other's place."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": "1"})
        begin_session(self._connection)

    def __call__(self, declaration: Declaration) -> Tables:
        """Prepare, and read all rows."""
        try:
            facts = write_tables(self._connection, declaration, version=1, ranking_key=RANKING_KEY, settings=Settings())
        except duckdb.Error as error:
            raise PreparationError("preparation-failed", "the engine could not read the source") from error
        return Tables(facts, {table: by_unit(self._connection.execute(f"SELECT * FROM {quoted(table)}").fetchall()) for table in TABLES})


def by_unit(rows: list[tuple[Any, ...]]) -> Rows:
    """Rows (unit, rank, rows of the unit, columns) by their unit."""
    found: dict[Unit, list[str]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(repr(row[1:]))
    return {unit: tuple(sorted(listed)) for unit, listed in found.items()}


class ByAppending:
    """DuckDB, in files: a version of the files that were there first, and another one made from it and the files that came later."""

    def __call__(self, declaration: Declaration) -> Tables:
        """Prepare twice, and read all rows of the second version."""
        assert declaration.directory is not None
        text = (declaration.directory / "lapwing.toml").read_text(encoding="utf-8")
        state, away = declaration.directory / ".lapwing", declaration.directory / "later"
        state.mkdir()
        away.mkdir()
        engine = DuckDBEngine(state, Settings())
        later = [path for path in declaration.directory.glob("visits-*.parquet") if not path.stem.endswith(FIRST)]
        for path in later:
            path.rename(away / path.name)
        engine.prepare(declaration, text, version=1, ranking_key=RANKING_KEY, progress=silent)
        for path in later:
            (away / path.name).rename(path)
        engine.prepare(declaration, text, version=2, ranking_key=RANKING_KEY, progress=silent, append_to=1)
        facts = engine.open(2, ranking_key=RANKING_KEY).facts
        with duckdb.connect(str(engine.path(2)), read_only=True) as connection:
            return Tables(facts, {table: by_unit(connection.execute(f"SELECT * FROM {quoted(table)}").fetchall()) for table in TABLES})


def check_family(family: Family, prepare: Prepare, outcome: Outcome, *, stop_at_first: bool = False) -> None:
    """Prepare every source of a family, each in a place of its own, and compare all neighbours."""
    prepared: list[Prepared] = []
    for number, source in enumerate(family.sources):
        with tempfile.TemporaryDirectory() as scratch:
            found = _prepared(source.write(Path(scratch) / "source", seed=number), prepare)
        outcome.sources += 1
        outcome.breaches += _differences(source, found)
        prepared.append(found)
        if stop_at_first and outcome.breaches:
            return
    for one, other, units in family.pairs:
        outcome.pairs += 1
        left, right = prepared[one], prepared[other]
        if isinstance(left, Stopped) or isinstance(right, Stopped):
            outcome.stopped += 1
        elif left.facts != right.facts:
            outcome.breaches.append("facts differ")
        else:
            outcome.breaches += [f"other units' rows of {table} differ" for table in TABLES if _differ(left, right, table, units)]


def _prepared(declaration: Declaration, prepare: Prepare) -> Prepared:
    try:
        return prepare(declaration)
    except PreparationError as error:
        return Stopped(error.code)


def _differ(left: Tables, right: Tables, table: str, units: frozenset[Unit]) -> bool:
    one, other = ({unit: rows for unit, rows in side.rows[table].items() if unit not in units} for side in (left, right))
    return one != other


def _differences(source: Source, found: Prepared) -> list[str]:
    """What is wrong with one preparation by itself."""
    if isinstance(found, Stopped):
        return [] if found.code in source.stops else [f"stopped by {found.code}, which does not apply"]
    if source.stops:
        return [f"prepared, although {', '.join(sorted(source.stops))} applies"]
    wrong = []
    for table, cap in TABLES.items():
        expected = {unit: min(records, cap) for unit, records in source.owned[table].items() if unit is not None}
        if {unit: len(rows) for unit, rows in found.rows[table].items()} != expected:
            wrong.append(f"units have other numbers of rows in {table} than records")
    return wrong


def run_preparation_oracle(
    make: Callable[[random.Random], Family], prepare: Prepare, *, pairs: int, seed: int, stop_at_first: bool = False
) -> Outcome:
    """Families until so many pairs have been compared."""
    outcome, rng = Outcome(), random.Random(seed)
    while outcome.pairs < pairs and not (stop_at_first and outcome.breaches):
        check_family(make(rng), prepare, outcome, stop_at_first=stop_at_first)
    return outcome
