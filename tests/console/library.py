"""A town library as such data is found: readers twice, NULLs, keys that point nowhere, names of columns with spaces and quotes."""

from __future__ import annotations

import csv
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import psycopg
from psycopg import sql

BRANCHES = ("central", "harbour", "hill", "station")
KINDS = ("book", "film")
READER_COLUMNS = ("Reader No", "District", "Year of birth")
LOAN_COLUMNS = ("Loan", "Reader No", 'Branch "where"', "Day", "Days kept")
FINE_COLUMNS = ("Loan", "Cents")
ROWS_MAX = 60
"""Loans of one reader that are declared; some have more."""


@dataclass
class Library:
    """Rows of three tables, and what is true of them."""

    readers: list[tuple[str | None, ...]] = field(default_factory=list)
    loans: list[tuple[str | None, ...]] = field(default_factory=list)
    fines: list[tuple[str | None, ...]] = field(default_factory=list)

    @property
    def known(self) -> set[str]:
        """Readers who are in the list of readers."""
        return {row[0] for row in self.readers if row[0] is not None}

    def loans_by_branch(self) -> dict[str, int]:
        """All loans, wherever they lead: what is in the raw table."""
        return dict(Counter(row[2] for row in self.loans if row[2] is not None))

    def loans_of_known_readers(self) -> dict[str, int]:
        """Loans that lead to somebody, at most so many of each: what is left after the declared rules."""
        kept: Counter[str] = Counter()
        mine: Counter[str] = Counter()
        known = self.known
        for row in self.loans:
            if row[1] in known and row[1] is not None:
                mine[row[1]] += 1
                if row[2] is not None and mine[row[1]] <= ROWS_MAX:
                    kept[row[2]] += 1
        return dict(kept)

    def write(self, directory: Path) -> None:
        """As three CSV files."""
        for name, columns, rows in self._tables():
            with (directory / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(["" if value is None else value for value in row] for row in rows)

    def write_to(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        """As three tables of the schema ``library``, without a constraint that such rows would break."""
        connection.execute("CREATE SCHEMA library")
        for name, columns, rows in self._tables():
            typed = [sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(_TYPES.get(column, "text"))) for column in columns]
            place = sql.Identifier("library", name)
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(place, sql.SQL(", ").join(typed)))
            with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(place)) as copy:
                for row in rows:
                    copy.write_row(row)

    def _tables(self) -> list[tuple[str, tuple[str, ...], list[tuple[str | None, ...]]]]:
        return [
            ("readers", READER_COLUMNS, self.readers),
            ("loans", LOAN_COLUMNS, self.loans),
            ("fines", FINE_COLUMNS, self.fines),
        ]


_TYPES = {"Year of birth": "integer", "Day": "date", "Days kept": "integer", "Cents": "integer"}


def messy_library(*, readers: int) -> Library:
    """The same library for the same number of readers."""
    rng, library = random.Random(1907), Library()
    for number in range(readers):
        row = (f"R{number:05}", rng.choice(("north", "south")), None if number % 50 == 0 else str(rng.randrange(1930, 2015)))
        library.readers += [row] * (2 if number % 40 == 0 else 1)
    library.readers.append((None, "north", "1999"))
    for number in range(readers):
        for _ in range(min(int(rng.paretovariate(1.5) * 2), 90)):
            _lend(library, rng, f"R{number:05}")
    for number in range(readers // 20):
        _lend(library, rng, f"X{number:05}" if number % 2 else None)
    return library


def _lend(library: Library, rng: random.Random, reader: str | None) -> None:
    branch = None if rng.random() < 0.01 else rng.choices(BRANCHES, (5, 3, 2, 1))[0]
    day = date(2025, 1, 1) + timedelta(rng.randrange(365))
    loan = f"L{len(library.loans):06}"
    library.loans.append((loan, reader, branch, day.isoformat(), str(min(int(rng.gammavariate(2, 9)), 140))))
    if rng.random() < 0.1:
        library.fines.append((loan if rng.random() < 0.95 else "L-nowhere", str(rng.randrange(10, 900))))
