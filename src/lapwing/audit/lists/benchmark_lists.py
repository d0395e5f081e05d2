"""Two lists of questions modelled on well-known benchmarks, with made-up data: which of them are answered as written.

The rules are those of ``lapwing.audit.lists.conformance``, with these differences. A list gives the code of each refusal, and may give the
rewrite that its hint suggests, which must be answered. If LIMIT picks rows, all rows are compared, because the order of equal rows is
undefined. The limits of the comparison for undeclared groups are in ``lapwing.audit.lists.comparison``.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

from lapwing.asking.bound_statement import bound_statement
from lapwing.audit.lists.comparison import Row, columns_of, comparable_row, difference, discovered, rows_of, slack_of, without_limit
from lapwing.audit.lists.conformance import Listed, Outcome, bare_engine
from lapwing.data_set import DataSet
from lapwing.data_set import open as open_data_set
from lapwing.demo import hits_rows, tpch_rows
from lapwing.demo.write import CATALOGUE_FILE
from lapwing.errors import LapwingError, Refused

LIMIT_EPSILON = 5 * 10**7
"""Epsilon of one statement in the limit."""
BUDGET_EPSILON = 10**9
"""The most that a catalogue can declare: enough for one list."""


@dataclass(frozen=True, slots=True)
class BenchmarkList:
    """A list: its statements, their catalogue and rows, and the number of made-up units."""

    name: str
    statements: str
    catalogue: str
    rows: Callable[[int], Mapping[str, pa.Table]]
    units: int


BENCHMARKS = {
    "tpch": BenchmarkList("tpch", "tpch.sql", "tpch.toml", tpch_rows.all_tables, 400),
    "clickbench": BenchmarkList("clickbench", "clickbench.sql", "hits.toml", hits_rows.all_tables, 1_000),
}
_ENTRY = re.compile(
    r"^-- ([a-z]\d\d): (.+)\n(?:-- (refused|lacks): (\S+)\n)?((?:(?!--).+\n)+)(?:-- instead\n((?:(?!--).+\n)+))?", re.MULTILINE
)


def benchmark_statements(benchmark: BenchmarkList) -> tuple[Listed, ...]:
    """The statements of a list, in order."""
    text = resources.files("lapwing.demo").joinpath(benchmark.statements).read_text(encoding="utf-8")
    entries = _ENTRY.findall(text)
    return tuple(
        Listed(name, title, _bare(sql), code, word == "lacks", _bare(rewrite)) for name, title, word, code, sql, rewrite in entries
    )


def run_benchmark(benchmark: BenchmarkList, directory: Path, *, names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Outcomes of all or the named statements, on new data in an empty directory, which the caller deletes."""
    worlds = BenchmarkWorlds(benchmark, directory)
    try:
        for listed in benchmark_statements(benchmark):
            if not names or listed.name in names:
                start = time.perf_counter()
                if listed.lacking and worlds.is_accepted(listed.sql):
                    listed = replace(listed, code="", rewrite="")
                why = worlds.answered(listed.sql) if listed.answered else worlds.refused(listed)
                yield Outcome(listed, why == listed.code, why, time.perf_counter() - start)
    finally:
        worlds.close()


class BenchmarkWorlds:
    """The rows of a list three times: with delta, without delta, and unprotected."""

    def __init__(self, benchmark: BenchmarkList, directory: Path) -> None:
        self.ordinary = write_benchmark(benchmark, directory / "ordinary")
        self.pure = write_benchmark(benchmark, directory / "pure", delta="0")
        self.bare = bare_engine(directory / "ordinary")

    def close(self) -> None:
        """Close files and connections."""
        self.ordinary.close()
        self.pure.close()
        self.bare.close()

    def is_accepted(self, sql: str) -> bool:
        """Whether a statement is not refused."""
        try:
            self.ordinary.explain(sql)
        except Refused:
            return False
        return True

    def answered(self, sql: str) -> str:
        """Why a statement does not pass as answered; empty if it does."""
        whole = without_limit(sql)
        try:
            self.ordinary.ask(sql)
            columns = columns_of(bound_statement(self.ordinary.curator, whole, dialect="duckdb").statement)
            ours, known = self._limit(whole)
        except LapwingError as error:
            return f"[{error.code}] {error.message}"
        except Exception as error:
            return f"ended in {type(error).__name__}"
        theirs = [comparable_row(row) for row in self.bare.sql(whole).fetchall()]
        if not known:
            ours, theirs = discovered(ours, theirs, columns=columns)
        return difference(ours, theirs, columns=columns, slack=slack_of(theirs))

    def refused(self, listed: Listed) -> str:
        """The code of the refusal, or why the statement does not pass as refused with an answered rewrite."""
        before = self.ordinary.curator.balance().spent
        try:
            self.ordinary.ask(listed.sql)
        except Refused as error:
            if error.span is None or self.ordinary.curator.balance().spent != before:
                return f"{error.code}, without a place in the text or with a charge"
            why = self.answered(listed.rewrite) if listed.rewrite else ""
            return f"the rewrite: {why}" if why else error.code
        except Exception as error:
            return f"ended in {type(error).__name__}"
        return "was answered"

    def _limit(self, sql: str) -> tuple[list[Row], bool]:
        """The answer with negligible noise, and whether its groups are declared."""
        known = True
        try:
            table = self.pure.ask(sql, epsilon=LIMIT_EPSILON).table
        except Refused as error:
            if error.code != "keys-need-delta":
                raise
            known, table = False, self.ordinary.ask(sql, epsilon=LIMIT_EPSILON).table
        return rows_of(table), known


def write_benchmark(benchmark: BenchmarkList, directory: Path, *, delta: str = "") -> DataSet:
    """Write the data of a list into this directory and prepare it, with a budget for the whole list."""
    directory.mkdir(parents=True)
    for name, table in benchmark.rows(benchmark.units).items():
        parquet.write_table(table, directory / f"{name}.parquet", compression="zstd")
    text = resources.files("lapwing.demo").joinpath(benchmark.catalogue).read_text(encoding="utf-8")
    digest = hashlib.sha256(str(directory.resolve()).encode()).hexdigest()
    changes = [("@ID@", f"{benchmark.name}-{digest[:8]}"), ("@UNITS@", str(benchmark.units))]
    changes += [
        ("\nepsilon = 3 ", f"\nepsilon = {BUDGET_EPSILON} "),
        ("ceiling = { epsilon = 6 }", f"ceiling = {{ epsilon = {BUDGET_EPSILON} }}"),
    ]
    changes += [("\nepsilon = 0.1 ", "\nepsilon = 100 ")]
    changes += [('delta = "2^-40"', f"delta = {delta}")] if delta else []
    for line, instead in changes:
        assert text.count(line) == 1, "the catalogue of a list was changed"
        text = text.replace(line, instead)
    (directory / CATALOGUE_FILE).write_text(text, encoding="utf-8")
    data_set = open_data_set(directory, home=directory / "registry")
    data_set.prepare()
    return data_set


def _bare(sql: str) -> str:
    return sql.strip().removesuffix(";")
