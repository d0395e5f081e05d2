"""Databases over a finite universe, and which of them are neighbours.

A database has two forms. The *multiset form* is a collection of rows, each a record of the universe; the *histogram form* counts how often
each record occurs. Mechanisms of :mod:`lapwing.theory` take histograms (plain tuples of integers), because the definition
of differential privacy uses their ``l1`` distance. The order of rows is therefore not part of a database.

Some texts call databases neighbours at distance *at most* 1, others at exactly 1. Here neighbours differ: a database is not its own
neighbour. Nothing depends on it, since for equal laws the inequality of the definition holds for every epsilon >= 0 and delta >= 0.

Databases *keyed by user* record which user owns which row, so that protecting a row and protecting a user can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Generic, TypeAlias, TypeVar, assert_never

from lapwing.errors import LapwingError
from lapwing.kernel.neighbours import Neighbours

Record = TypeVar("Record", bound=Hashable)

Histogram: TypeAlias = tuple[int, ...]
"""How often each record of the universe occurs, in the universe's order."""

KeyedDatabase: TypeAlias = tuple[Histogram, ...]
"""One histogram per user; a user whose histogram is all zeros contributes nothing."""

DATABASES_MAX = 100_000
"""The most databases, or pairs of them, that one enumeration may visit."""


@dataclass(frozen=True, slots=True)
class Universe(Generic[Record]):
    """All records a row can be, in a fixed order. At least one, no two equal (code ``universe-invalid``)."""

    records: tuple[Record, ...]

    def __post_init__(self) -> None:
        if not self.records or len(set(self.records)) != len(self.records):
            raise LapwingError("universe-invalid", "a universe must have at least one record, and list each once")

    def histogram(self, rows: Iterable[Record]) -> Histogram:
        """The histogram form of a multiset of rows; refuses a row from outside the universe (code ``database-invalid``)."""
        place = {record: index for index, record in enumerate(self.records)}
        counts = [0] * len(self.records)
        for row in rows:
            if row not in place:
                raise LapwingError("database-invalid", "a row is not a record of the universe")
            counts[place[row]] += 1
        return tuple(counts)

    def rows(self, database: Histogram) -> tuple[Record, ...]:
        """The multiset form: each record as often as the histogram says, in the universe's order.

        Post: ``histogram(rows(x)) == x``.
        """
        self.require(database)
        return tuple(record for record, count in zip(self.records, database, strict=True) for _ in range(count))

    def require(self, database: Histogram) -> None:
        """Refuse (``database-invalid``) what is not a histogram over this universe."""
        if len(database) != len(self.records) or any(type(count) is not int or count < 0 for count in database):
            raise LapwingError("database-invalid", "a histogram must have one non-negative count for each record of the universe")


def size(database: Histogram) -> int:
    """The number of rows, which is the ``l1`` norm of the histogram."""
    return sum(database)


def distance(x: Histogram, y: Histogram) -> int:
    """The ``l1`` distance of two histograms over one universe: how many rows must be added or removed to make one from the other."""
    if len(x) != len(y):
        raise LapwingError("database-invalid", "databases over different universes have no distance")
    return sum(abs(a - b) for a, b in zip(x, y, strict=True))


def adjacent(x: Histogram, y: Histogram, relation: Neighbours) -> bool:
    """Whether the two are neighbours.

    Unbounded: at distance 1, one has one row more. Bounded: at distance 2 and of equal size, one row was replaced. (The kernel lets the
    replacement contribute nothing; over a universe that is an extra record, on which every query is 0.)
    """
    match relation:
        case Neighbours.UNBOUNDED:
            return distance(x, y) == 1
        case Neighbours.BOUNDED:
            return distance(x, y) == 2 and size(x) == size(y)
        case never:
            assert_never(never)


def _require_few(count: int) -> None:
    if count > DATABASES_MAX:
        raise LapwingError(
            "enumeration-too-large", f"this enumeration would visit {count} databases or pairs", hint=f"at most {DATABASES_MAX} are allowed"
        )


def _histograms(*, records: int, rows: int) -> Iterator[Histogram]:
    """All histograms of exactly this size, by the stars-and-bars enumeration."""
    for bars in combinations(range(rows + records - 1), records - 1):
        edges = (-1, *bars, rows + records - 1)
        yield tuple(right - left - 1 for left, right in pairwise(edges))


def databases(universe: Universe[Record], *, size_max: int) -> Iterator[Histogram]:
    """All databases of at most this many rows, smallest first, each once."""
    if size_max < 0:
        raise LapwingError("database-invalid", "the number of rows of a database must not be negative")
    records = len(universe.records)
    _require_few(math.comb(size_max + records, records))
    for rows in range(size_max + 1):
        yield from _histograms(records=records, rows=rows)


def neighbours(database: Histogram, relation: Neighbours, *, size_max: int) -> Iterator[Histogram]:
    """All neighbours of a database with at most ``size_max`` rows, each once."""

    def moved(index: int, step: int, other: Histogram = database) -> Histogram:
        return (*other[:index], other[index] + step, *other[index + 1 :])

    present = [index for index, count in enumerate(database) if count]
    match relation:
        case Neighbours.UNBOUNDED:
            yield from (moved(index, -1) for index in present)
            if size(database) < size_max:
                yield from (moved(index, 1) for index in range(len(database)))
        case Neighbours.BOUNDED:
            if size(database) <= size_max:
                yield from (moved(new, 1, moved(old, -1)) for old in present for new in range(len(database)) if new != old)
        case never:
            assert_never(never)


def neighbouring_pairs(universe: Universe[Record], relation: Neighbours, *, size_max: int) -> Iterator[tuple[Histogram, Histogram]]:
    """All pairs of neighbours of at most ``size_max`` rows, each unordered pair once."""
    for x in databases(universe, size_max=size_max):
        yield from ((x, y) for y in neighbours(x, relation, size_max=size_max) if x < y)


def group_pairs(
    universe: Universe[Record], relation: Neighbours, *, size_max: int, group_size: int
) -> Iterator[tuple[Histogram, Histogram]]:
    """All pairs that are ``group_size`` steps apart: a shortest chain of neighbours between them has exactly that many links.

    Unbounded: at distance ``group_size``. Bounded: of equal size, at distance ``2 * group_size``. In both cases the chain stays within
    ``size_max`` rows (remove before adding), so group privacy over these databases follows from privacy over them.
    """
    records = len(universe.records)
    _require_few(math.comb(size_max + records, records) ** 2)
    for x, y in combinations(databases(universe, size_max=size_max), 2):
        match relation:
            case Neighbours.UNBOUNDED:
                apart = distance(x, y) == group_size
            case Neighbours.BOUNDED:
                apart = size(x) == size(y) and distance(x, y) == 2 * group_size
            case never:
                assert_never(never)
        if apart:
            yield x, y


@dataclass(frozen=True, slots=True)
class Population(Generic[Record]):
    """A fixed number of users, each of whom may own up to ``rows_per_user_max`` rows."""

    universe: Universe[Record]
    users: int
    rows_per_user_max: int

    def __post_init__(self) -> None:
        if self.users < 1 or self.rows_per_user_max < 1:
            raise LapwingError("universe-invalid", "a population must have at least one user, who may have at least one row")

    def contributions(self) -> tuple[Histogram, ...]:
        """Everything that one user can contribute, including nothing."""
        return tuple(databases(self.universe, size_max=self.rows_per_user_max))

    def databases(self) -> Iterator[KeyedDatabase]:
        """All databases keyed by user, each once."""
        choices = self.contributions()
        _require_few(len(choices) ** self.users)
        yield from product(choices, repeat=self.users)

    def user_pairs(self, relation: Neighbours) -> Iterator[tuple[KeyedDatabase, KeyedDatabase]]:
        """All pairs that differ in one *user*, each unordered pair once.

        Unbounded: one of the two contributions is nothing. Bounded: any two different contributions (including nothing).
        """
        for x in self.databases():
            for user, old in enumerate(x):
                for new in self.contributions():
                    match relation:
                        case Neighbours.UNBOUNDED:
                            differ = not any(old) and any(new)
                        case Neighbours.BOUNDED:
                            differ = old < new
                        case never:
                            assert_never(never)
                    if differ:
                        yield x, (*x[:user], new, *x[user + 1 :])

    def row_pairs(self, relation: Neighbours) -> Iterator[tuple[KeyedDatabase, KeyedDatabase]]:
        """All pairs that differ in one *row* of one user, each unordered pair once."""
        for x in self.databases():
            for user, old in enumerate(x):
                for new in neighbours(old, relation, size_max=self.rows_per_user_max):
                    if old < new:
                        yield x, (*x[:user], new, *x[user + 1 :])


def without_users(database: KeyedDatabase) -> Histogram:
    """The plain histogram of all rows, without their users."""
    return tuple(sum(counts) for counts in zip(*database, strict=True))
