"""Lists of statements with an expected outcome for each: the second and the third list.

*Answered* means that Lapwing plans and prices the statement and that, at a budget so large that noise vanishes, its rows are those of the
bare engine of its dialect on the same files (``lapwing.audit.lists.comparison``). If that engine does not accept the statement, the other
engine is asked. ``Uncompared`` lists the reasons for which an answer is not compared; the score counts them.
*Refused* means refused with the given code. *Known-wrong* is an answer that differs, for a reason that the list gives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any, Protocol

import duckdb

from lapwing.asking.introspection import about_itself, columns_alone
from lapwing.audit.lists.comparison import Row, comparable_row
from lapwing.audit.lists.conformance import Worlds
from lapwing.errors import LapwingError
from lapwing.sql.text.privacy_words import ShowBudget, read_words

ANSWERED = "answered"
KNOWN_WRONG = "known-wrong"
DIFFERENT = "different"
_LEFT_OPEN = re.compile(r"\b(?:APPROX_\w+\(|MODE\(|STRING_AGG\((?![^()]*ORDER BY))", re.IGNORECASE)
"""Functions whose results differ between engines: approximations, one of several equally frequent values, texts in any order."""
_ENTRY = re.compile(r"^-- (\w+) ([\w-]+)(?: (duckdb|postgres))?: ([\w-]+)\n(?:-- why: (.+)\n)?(.+);$", re.MULTILINE)


class Uncompared(StrEnum):
    """Why an answer is not compared."""

    NO_SERVER = "no PostgreSQL server was given"
    NO_ENGINE = "no bare engine accepts it"
    OWN_WORDS = "about the data set itself"
    LEFT_OPEN = "bare SQL leaves open what is right"


@dataclass(frozen=True, slots=True)
class ListedStatement:
    """A statement of a list; ``expected`` is ``ANSWERED``, ``KNOWN_WRONG`` or the code of its refusal."""

    kind: str
    name: str
    expected: str
    sql: str
    dialect: str = "duckdb"
    why: str = ""
    """Why the answer is wrong, if it is known to be wrong."""


@dataclass(frozen=True, slots=True)
class WrittenOutcome:
    """The outcome of a statement: ``found`` is ``ANSWERED``, ``DIFFERENT`` or a code."""

    listed: ListedStatement
    found: str
    uncompared: Uncompared | None = None
    detail: str = ""

    @property
    def as_written(self) -> bool:
        """Whether the outcome is the expected one. An answer that is known to be wrong may remain uncompared."""
        if self.listed.expected == KNOWN_WRONG:
            return self.found == DIFFERENT or (self.found == ANSWERED and self.uncompared is not None)
        return self.found == self.listed.expected


@dataclass(frozen=True, slots=True)
class WrittenScore:
    """All outcomes."""

    outcomes: tuple[WrittenOutcome, ...]

    @property
    def unlike(self) -> list[WrittenOutcome]:
        """The unexpected outcomes."""
        return [outcome for outcome in self.outcomes if not outcome.as_written]

    @property
    def known_wrong(self) -> list[WrittenOutcome]:
        """The answers that differ from the bare engine's, as the list expects."""
        return [outcome for outcome in self.outcomes if outcome.as_written and outcome.found == DIFFERENT]

    @property
    def refused(self) -> list[WrittenOutcome]:
        """The refused statements."""
        return [outcome for outcome in self.outcomes if outcome.found not in (ANSWERED, DIFFERENT)]

    def counts(self) -> dict[str, tuple[int, int]]:
        """By kind: the number of statements answered (as by bare SQL, or uncompared), and the number of all."""
        every = Counter(outcome.listed.kind for outcome in self.outcomes)
        answered = Counter(outcome.listed.kind for outcome in self.outcomes if outcome.found == ANSWERED)
        return {kind: (answered[kind], many) for kind, many in every.items()}

    @property
    def compared(self) -> int:
        """The number of answers that were compared with a bare engine's."""
        return sum(outcome.found in (ANSWERED, DIFFERENT) and outcome.uncompared is None for outcome in self.outcomes)

    def uncompared(self) -> dict[str, int]:
        """The number of answers that were not compared, by reason."""
        return dict(Counter(outcome.uncompared.value for outcome in self.outcomes if outcome.uncompared is not None))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kinds": {kind: {"answered": answered, "of": many} for kind, (answered, many) in self.counts().items()},
            "compared": self.compared,
            "not_compared": self.uncompared(),
            "known_wrong": {outcome.listed.name: outcome.listed.why for outcome in self.known_wrong},
            "refused": {outcome.listed.name: outcome.found for outcome in self.refused},
            "different": [outcome.listed.name for outcome in self.unlike],
        }


class BareServer(Protocol):
    """A bare engine that may not accept a statement."""

    def rows(self, statement: str) -> list[tuple[Any, ...]] | None:
        """The answer of the engine; None if it does not accept the statement."""


def written_list(file: str) -> tuple[ListedStatement, ...]:
    """The list in a file, in its order."""
    text = resources.files("lapwing.demo").joinpath(file).read_text(encoding="utf-8")
    return tuple(
        ListedStatement(kind, name, expected, sql, dialect or "duckdb", why)
        for kind, name, dialect, expected, why, sql in _ENTRY.findall(text)
    )


def run_written(worlds: Worlds, statements: Sequence[ListedStatement], *, postgres: str | None) -> Iterator[WrittenOutcome]:
    """Outcomes of statements about these worlds, compared with bare DuckDB and, if one is given, with a PostgreSQL server."""
    if postgres is None:
        yield from (_found(worlds, listed, None) for listed in statements)
        return
    from lapwing.audit.lists.bare_postgres import BarePostgres

    with closing(BarePostgres(postgres, worlds.directory / "ordinary")) as server:
        yield from (_found(worlds, listed, server) for listed in statements)


def _found(worlds: Worlds, listed: ListedStatement, postgres: BareServer | None) -> WrittenOutcome:
    """The outcome of a statement, also after an unexpected error."""
    try:
        return _outcome(worlds, listed, postgres)
    except LapwingError as error:
        return WrittenOutcome(listed, error.code, detail=error.message)
    except Exception as error:
        return WrittenOutcome(listed, f"ended-in-{type(error).__name__}", detail=str(error))


def _outcome(worlds: Worlds, listed: ListedStatement, postgres: BareServer | None) -> WrittenOutcome:
    curator, dialect = worlds.ordinary.curator, listed.dialect
    worlds.ordinary.explain(listed.sql, dialect=dialect)
    if about_itself(curator, listed.sql, dialect=dialect, analyst=None) is not None:
        return WrittenOutcome(listed, ANSWERED, Uncompared.OWN_WORDS)
    words = read_words(listed.sql, settings=curator.settings, dialect=dialect)
    if isinstance(words, ShowBudget) or words.explain or columns_alone(curator, words.statement, dialect=dialect) is not None:
        return WrittenOutcome(listed, ANSWERED, Uncompared.OWN_WORDS)
    if dialect == "postgres" and postgres is None:
        return WrittenOutcome(listed, ANSWERED, Uncompared.NO_SERVER)
    bare = _bare(worlds, words.statement, dialect, postgres)
    if bare is None:
        return WrittenOutcome(listed, ANSWERED, Uncompared.NO_ENGINE)
    why = worlds.difference(words.statement, bare, dialect=dialect, loosely=True)
    if why and _LEFT_OPEN.search(words.statement):
        return WrittenOutcome(listed, ANSWERED, Uncompared.LEFT_OPEN)
    return WrittenOutcome(listed, DIFFERENT if why else ANSWERED, detail=why)


def _bare(worlds: Worlds, sql: str, dialect: str, postgres: BareServer | None) -> Callable[[str], list[Row]] | None:
    """The first engine that accepts a statement, starting with that of the dialect; None if neither does."""

    def of_duckdb(statement: str) -> list[Row] | None:
        try:
            return worlds.bare_rows(statement)
        except duckdb.Error:
            return None

    def of_server(statement: str) -> list[Row] | None:
        rows = None if postgres is None else postgres.rows(statement)
        return None if rows is None else [comparable_row(row) for row in rows]

    engines = (of_server, of_duckdb) if dialect == "postgres" else (of_duckdb, of_server)
    accepting = next((engine for engine in engines if engine(sql) is not None), None)
    return None if accepting is None else lambda statement: accepting(statement) or []


def as_found(text: str, outcomes: Sequence[WrittenOutcome]) -> str:
    """The text of a list with the found outcomes instead of the expected ones. The author must fix or explain answers that differ."""
    for outcome in outcomes:
        listed = outcome.listed
        if not outcome.as_written and outcome.found != DIFFERENT:
            why = f"-- why: {listed.why}\n" if listed.why else ""
            before = f"{listed.expected}\n{why}{listed.sql};\n"
            text = text.replace(before, f"{outcome.found}\n{listed.sql};\n")
    return text
