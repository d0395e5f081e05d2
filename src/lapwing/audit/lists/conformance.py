"""The project's own list of statements, run on a demonstration data set: which are answered, and which are refused as expected.

*Answered* means accepted, as accurate as its words request and, at a budget so large that noise vanishes, equal to the result of bare
DuckDB on the same files: every row of bare SQL occurs, with the same values. Rows that only Lapwing returns are empty declared groups.
*Refused* means refused with the position in the text, and nothing charged. Everything else is reported as failed.

A false alarm has a probability below 1e-9 in a run of the whole list. The made-up rows are always the same, so only the noise is random:
a statement is compared at ``LIMIT_EPSILON`` if all its noise is 0 except with probability ``CHANCE_OF_NOISE``, and otherwise at
``LIMIT_EPSILON_SUMS``. There, except with a probability below 1e-12, no draw moves a value by half of what ``TOLERANCE`` allows, nor an
empty group by 0.5 (tests compute both from the plans). Accuracy is requested, and judged, at the highest possible confidence.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from lapwing.answers.answer import Answer
from lapwing.asking.ask import plan_of
from lapwing.asking.bound_statement import bound_statement
from lapwing.audit.lists.bare import define
from lapwing.audit.lists.comparison import (
    Row,
    columns_of,
    comparable_row,
    difference,
    discovered,
    rows_of,
    slack_of,
    sorted_alike,
    without_limit,
)
from lapwing.catalog.confidences import CONFIDENCE_MAX
from lapwing.data_set import DataSet
from lapwing.data_set import open as open_data_set
from lapwing.demo.write import CATALOGUE_FILE, write_demo
from lapwing.errors import LapwingError, Refused
from lapwing.kernel.certify import Certified
from lapwing.kernel.ir import KnownGroups
from lapwing.kernel.laws import tail_upper
from lapwing.sql.text.privacy_terms import ErrorTerm, ShareTerm
from lapwing.sql.text.privacy_words import Question, ShowBudget, read_words
from lapwing.statements import QUANTILES

PATIENTS = 5_000
"""Enough that some units satisfy every condition of the list, and few enough to stay within all bounds of the catalogue."""
LIMIT_EPSILON = 10**7
"""Epsilon of one statement in the limit, on a data set without delta, if this leaves no noise."""
LIMIT_EPSILON_SUMS = 10**8
"""The same if some noise remains: sums of values on a fine grid."""
CHANCE_OF_NOISE = Fraction(1, 10**12)
"""Largest probability of noise in a statement that counts as free of noise in the limit."""
LIMIT_EPSILON_GAUSSIAN = 10**8
"""Epsilon of one statement in the limit, on a data set with delta."""
LIMIT_EPSILON_MOST = 9 * 10**8
"""Epsilon of one statement that has remaining noise and its own budget."""
BUDGET_EPSILON = 10**9
DEFAULT_EPSILON = 100
"""Epsilon of a statement that names none: with so few people, the demonstration's default would give no accuracy."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A statement of a list. ``answered`` is its expected outcome."""

    name: str
    title: str
    sql: str
    code: str = ""
    """The expected code of the refusal, if the list gives one."""
    lacking: bool = False
    """Whether it is refused because Lapwing lacks a feature, not for privacy: it may also be answered."""
    rewrite: str = ""
    """The rewrite that the hint of the refusal suggests, which must be answered."""

    @property
    def answered(self) -> bool:
        """Whether it should be answered; otherwise it should be refused."""
        return not self.code and not self.name.startswith("r")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a statement; ``detail`` is the code of a refusal, or why it failed."""

    listed: Listed
    passed: bool
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Score:
    """All outcomes."""

    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> list[str]:
        """Names of the statements that failed."""
        return [outcome.listed.name for outcome in self.outcomes if not outcome.passed]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        passed = [outcome.listed.answered for outcome in self.outcomes if outcome.passed]
        rewritten = sum(bool(outcome.listed.rewrite) for outcome in self.outcomes if outcome.passed)
        instead = {"rewritten": rewritten} if rewritten else {}
        return {"answered": sum(passed), "refused": len(passed) - sum(passed), **instead, "failed": self.failed}


def listed_statements() -> tuple[Listed, ...]:
    """The list, in its order."""
    text = resources.files("lapwing.demo").joinpath("conformance.sql").read_text(encoding="utf-8")
    entries = re.findall(r"^-- ([cr]\d\d): (.+)\n((?:(?!--).+\n)+)", text, re.MULTILINE)
    return tuple(Listed(name, title, sql.strip().removesuffix(";")) for name, title, sql in entries)


def run_list(directory: Path, *, names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Outcomes of all or the named statements, on new demonstrations in an empty directory, which the caller deletes."""
    worlds = Worlds(directory)
    try:
        for listed in listed_statements():
            if not names or listed.name in names:
                start = time.perf_counter()
                why = _answered(worlds, listed) if listed.answered else _refused(worlds.ordinary, listed)
                yield Outcome(listed, why.passed, why.text, time.perf_counter() - start)
    finally:
        worlds.close()


class Worlds:
    """The same rows three times: as in the demonstration with a budget for the whole list, without delta, and unprotected.

    Without delta, noise shrinks as 1 / epsilon and not as its root, so the limit is taken there, except for undeclared groups.
    ``make`` writes and prepares the rows in a directory; a delta that is not empty replaces the declared one.
    """

    def __init__(self, directory: Path, make: Callable[[Path, str], DataSet] | None = None) -> None:
        self.directory, self.copies, self.make = directory, 0, make or _demonstration
        self.ordinary = self.make(directory / "ordinary", "")
        self.pure = self._another("0")
        self.bare = bare_engine(directory / "ordinary")

    def close(self) -> None:
        """Close files and connections."""
        self.ordinary.close()
        self.pure.close()
        self.bare.close()

    def limit(self, sql: str, *, dialect: str = "duckdb") -> pa.Table:
        """The answer with negligible noise."""
        try:
            epsilon = self.limit_epsilon(sql, dialect=dialect)
        except Refused as error:
            if error.code != "keys-need-delta":
                raise
            if self._is_spent(self.ordinary, LIMIT_EPSILON_GAUSSIAN):
                self.ordinary.close()
                self.ordinary = self._another("")
            return self.ordinary.ask(sql, epsilon=LIMIT_EPSILON_GAUSSIAN, dialect=dialect).table
        return self.pure_with(epsilon).ask(sql, epsilon=epsilon, dialect=dialect).table

    def pure_with(self, epsilon: int) -> DataSet:
        """The data set without delta, with a new budget if less than ``epsilon`` is left."""
        if self._is_spent(self.pure, epsilon):
            self.pure.close()
            self.pure = self._another("0")
        return self.pure

    def bare_rows(self, sql: str) -> list[Row]:
        """The result of bare DuckDB."""
        return [comparable_row(row) for row in self.bare.sql(sql).fetchall()]

    def difference(self, sql: str, bare: Callable[[str], list[Row]], *, dialect: str = "duckdb", loosely: bool = False) -> str:
        """The difference of the answer in the limit, or an empty text. Undeclared groups are compared only if they are shown.

        ``loosely``: a statement that is not exact at any epsilon is asked again with its own budget, and may be off by ``SLACK``: sums of
        values on a fine grid keep some noise, and a quantile may be any value between its neighbours in rank.
        """
        columns = columns_of(bound_statement(self.ordinary.curator, sql, dialect=dialect).statement)
        ours, theirs = rows_of(self.limit(sql, dialect=dialect)), bare(sql)
        why, whole = difference(ours, theirs, columns=columns), without_limit(sql)
        if why and whole != sql and sorted_alike(ours, theirs, columns=columns):
            sql, ours, theirs = whole, rows_of(self.limit(whole, dialect=dialect)), bare(whole)
            why = difference(ours, theirs, columns=columns)
        if not why or not loosely:
            return why
        try:
            inexact = self._is_inexact(sql, dialect)
        except Refused:  # undeclared groups
            return difference(*discovered(ours, theirs, columns=columns), columns=columns)
        if inexact:
            with self._another("0") as roomy:
                ours = rows_of(roomy.ask(sql, epsilon=LIMIT_EPSILON_MOST, dialect=dialect).table)
            why = difference(ours, theirs, columns=columns, slack=slack_of(theirs))
        return why

    def _is_inexact(self, sql: str, dialect: str) -> bool:
        """Whether noise remains on the data set without delta, or quantiles are selected."""
        statement, _ = plan_of(self.pure.curator, sql, LIMIT_EPSILON, dialect=dialect)
        selects = any(aggregate.kind in QUANTILES for query in statement.privates for aggregate in query.aggregates)
        return selects or self.limit_epsilon(sql, dialect=dialect) == LIMIT_EPSILON_SUMS

    def limit_epsilon(self, sql: str, *, dialect: str = "duckdb") -> int:
        """The epsilon at which a statement is compared, on the data set without delta."""
        _, planned = plan_of(self.pure.curator, sql, LIMIT_EPSILON, dialect=dialect)
        noisy = planned.measured is not None and chance_of_noise(planned.measured) > CHANCE_OF_NOISE
        return LIMIT_EPSILON_SUMS if noisy else LIMIT_EPSILON

    def _is_spent(self, data_set: DataSet, epsilon: int) -> bool:
        """Whether the remaining budget is too small for ``epsilon``."""
        return (1 - data_set.budget.share_spent) * BUDGET_EPSILON < 1.01 * epsilon

    def _another(self, delta: str) -> DataSet:
        """The same rows with a new budget."""
        self.copies += 1
        return self.make(self.directory / f"copy{self.copies}", delta)


def chance_of_noise(certified: Certified) -> Fraction:
    """At least the chance that some noise of a plan with declared groups is not 0. Selected values are not included.

    A quantile is drawn with weights exp(epsilon * score / 2 per rank that one unit can move): in the limit, the best score is certain.
    """
    chance = Fraction(0)
    for query in certified.queries:
        assert isinstance(query.query.groups, KnownGroups), "groups that are not declared need a delta"
        cells = len(query.query.groups.groups)
        chance += sum((2 * cells * tail_upper(vector.vector.law, 1) for vector in query.vectors), Fraction(0))
    return chance


@dataclass(frozen=True, slots=True)
class _Why:
    passed: bool
    text: str


def _demonstration(directory: Path, delta: str) -> DataSet:
    """A demonstration, prepared, with another budget."""
    write_demo(directory, patients=PATIENTS)
    catalogue = directory / CATALOGUE_FILE
    text = catalogue.read_text(encoding="utf-8")
    changes = [
        ("\nepsilon = 3 ", f"\nepsilon = {BUDGET_EPSILON} "),
        ("\nepsilon = 0.1 ", f"\nepsilon = {DEFAULT_EPSILON} "),
        ("ceiling = { epsilon = 6 }", f"ceiling = {{ epsilon = {BUDGET_EPSILON} }}"),
        ("\nper_statement = 0.2 ", "\nper_statement = 1 "),
        ("\nper_day = 0.5 ", "\nper_day = 1 "),
    ]
    changes += [('delta = "2^-40"', f"delta = {delta}")] if delta else []
    for line, instead in changes:
        assert text.count(line) == 1, "the demonstration's catalogue was changed"
        text = text.replace(line, instead)
    catalogue.write_text(text, encoding="utf-8")
    data_set = open_data_set(directory, home=directory / "registry")
    data_set.prepare()
    return data_set


def bare_engine(directory: Path) -> duckdb.DuckDBPyConnection:
    """DuckDB over the files of a demonstration, without any protection."""
    bare = duckdb.connect(config={"threads": "1"})
    # Tools qualify the names of tables with database and schema.
    bare.execute("ATTACH ':memory:' AS clinic; USE clinic; CREATE SCHEMA public")
    for path in sorted(directory.glob("*.parquet")):
        quoted = str(path).replace("'", "''")
        for name in (path.stem, f"public.{path.stem}"):
            bare.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{quoted}')")
    define(bare)
    return bare


def _refused(data_set: DataSet, listed: Listed) -> _Why:
    before = data_set.curator.balance().spent
    try:
        data_set.ask(listed.sql)
    except Refused as error:
        charged = data_set.curator.balance().spent != before
        pointed = error.span is not None and 0 <= error.span.start < error.span.end <= len(listed.sql)
        return _Why(pointed and not charged, error.code if pointed else f"{error.code}, without a place in the text")
    except Exception as error:
        return _Why(False, f"ended in {type(error).__name__}")
    return _Why(False, "was answered")


def _answered(worlds: Worlds, listed: Listed) -> _Why:
    ordinary = worlds.ordinary
    before = ordinary.curator.balance().spent
    words = read_words(listed.sql, settings=ordinary.curator.settings)
    try:
        answer = ordinary.ask(listed.sql)
        if isinstance(words, ShowBudget) or words.explain:
            free = ordinary.curator.balance().spent == before
            return _Why(free and answer.table.num_rows > 0, "" if free else "was charged")
        target = surely(words)
        if target is not None and missed(ordinary.ask(f"{words.statement} {target}"), words):
            return _Why(False, "an error bar is longer than asked for")
        # Words request an ordinary accuracy; the comparison uses the statement inside them.
        why = worlds.difference(words.statement, worlds.bare_rows)
    except LapwingError as error:
        return _Why(False, f"[{error.code}] {error.message}")
    except Exception as error:
        return _Why(False, f"ended in {type(error).__name__}")
    return _Why(not why, why)


def surely(words: Question) -> str | None:
    """Words that request the same accuracy at the highest confidence; None if a statement requests none."""
    match None if words.clause is None else words.clause.asked:
        case ErrorTerm(half_width):
            error = f"{float(half_width)!r}"
        case ShareTerm(share):
            error = f"'{float(100 * share)!r}%'"
        case _:
            return None
    return f"WITH PRIVACY (error = {error}, confidence = {float(CONFIDENCE_MAX)!r})"


def missed(answer: Answer, words: Question) -> bool:
    """Whether an answer misses the accuracy that the words request."""
    asked = None if words.clause is None else words.clause.asked
    if not isinstance(asked, ErrorTerm | ShareTerm):
        return False
    for name, intervals in answer.intervals.items():
        for value, bar in zip(answer.table.column(name).to_pylist(), intervals, strict=True):
            allowed = float(asked.half_width) if isinstance(asked, ErrorTerm) else float(asked.share) * abs(value or 0.0)
            if value is None or bar is None or max(value - bar.lo, bar.hi - value) > allowed:
                return True
    return not answer.intervals
