"""Mechanisms with exactly known laws, and ways to combine them.

A :class:`FiniteMechanism` gives, for each database, the law of its output: finitely many outputs, each with a rational probability, summing
to exactly 1 (checked whenever a law is requested). An analyst sees only the output, and the law says how likely each output is, so the
definition of differential privacy can be decided, not estimated (:mod:`lapwing.theory.verify`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as cartesian
from typing import Generic, TypeAlias, TypeVar

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import require_exact
from lapwing.mechanisms.mechanism import Mechanism
from lapwing.theory.databases import Histogram, size

Database = TypeVar("Database", bound=Hashable)
Output = TypeVar("Output", bound=Hashable)
Other = TypeVar("Other", bound=Hashable)
Value = TypeVar("Value")

Law: TypeAlias = Mapping[Output, Fraction]
"""Probability of each output; outputs that are not listed have probability 0."""


def exact_law(law: Mapping[Output, Fraction]) -> dict[Output, Fraction]:
    """The law without its zeros; refuses (``law-invalid``) what is not an exact probability law."""
    require_exact(*law.values())
    if any(probability < 0 for probability in law.values()) or sum(law.values()) != 1:
        raise LapwingError("law-invalid", "the probabilities of a law must be at least 0 and sum to exactly 1")
    return {output: Fraction(probability) for output, probability in law.items() if probability}


@dataclass(frozen=True, slots=True)
class FiniteMechanism(Generic[Database, Output]):
    """A randomised map with an exact law on every database. ``name`` is for reports only."""

    name: str
    of: Callable[[Database], Mapping[Output, Fraction]]

    def law(self, database: Database) -> dict[Output, Fraction]:
        """The law of the output on this database: positive probabilities that sum to exactly 1."""
        return exact_law(self.of(database))

    def named(self, name: str) -> FiniteMechanism[Database, Output]:
        """The same mechanism, with another name in reports."""
        return FiniteMechanism(name=name, of=self.of)


def from_kernel(
    mechanism: Mechanism[Value, Output], query: Callable[[Database], Value], *, decay: Fraction
) -> FiniteMechanism[Database, Output]:
    """A mechanism of the kernel applied to an exact query, at the scale for which ``exp(-1 / scale)`` is ``decay``."""
    return FiniteMechanism(name=type(mechanism).__name__, of=lambda database: mechanism.law(query(database), decay=decay))


def deterministic(query: Callable[[Database], Output], *, name: str = "exact answer") -> FiniteMechanism[Database, Output]:
    """The exact answer, with probability 1: no finite epsilon, unless the query ignores the data."""
    return FiniteMechanism(name=name, of=lambda database: {query(database): Fraction(1)})


def pushed(law: Mapping[Output, Fraction], channel: Callable[[Output], Mapping[Other, Fraction]]) -> dict[Other, Fraction]:
    """The law of the output of ``channel`` on a draw from ``law``."""
    result: dict[Other, Fraction] = {}
    for output, probability in law.items():
        for final, share in exact_law(channel(output)).items():
            result[final] = result.get(final, Fraction(0)) + probability * share
    return result


def randomised(
    mechanism: FiniteMechanism[Database, Output], channel: Callable[[Output], Mapping[Other, Fraction]]
) -> FiniteMechanism[Database, Other]:
    """Post-processing with independent randomness: the channel sees the output and never the database."""
    return FiniteMechanism(name=f"{mechanism.name}, post-processed", of=lambda database: pushed(mechanism.law(database), channel))


def post_processed(mechanism: FiniteMechanism[Database, Output], function: Callable[[Output], Other]) -> FiniteMechanism[Database, Other]:
    """Post-processing by a function of the output alone."""
    return randomised(mechanism, lambda output: {function(output): Fraction(1)})


def truncated(mechanism: FiniteMechanism[Database, int], *, low: int, high: int) -> FiniteMechanism[Database, int]:
    """Outputs outside [low, high] moved to the nearer end: post-processing, so it costs nothing.

    (Rejecting them and drawing again is different, and costs privacy: ``lapwing.theory.broken``: ``renormalised_truncation``.)
    """
    if low > high:
        raise LapwingError("number-invalid", "the lower end of an interval of outputs must not be above its upper end")
    return post_processed(mechanism, lambda output: min(max(output, low), high))


def mixture(parts: Sequence[tuple[Fraction, FiniteMechanism[Database, Output]]]) -> FiniteMechanism[Database, Output]:
    """One of the mechanisms, chosen with these data-independent probabilities; the choice itself is not published."""
    weights = exact_law({index: weight for index, (weight, _) in enumerate(parts)})

    def of(database: Database) -> dict[Output, Fraction]:
        return pushed(weights, lambda index: parts[index][1].law(database))

    return FiniteMechanism(name="mixture", of=of)


def composed(
    first: FiniteMechanism[Database, Output], second: FiniteMechanism[Database, Other]
) -> FiniteMechanism[Database, tuple[Output, Other]]:
    """Both outputs, with independent randomness."""
    return adaptive(first, lambda _: second)


def adaptive(
    first: FiniteMechanism[Database, Output], following: Callable[[Output], FiniteMechanism[Database, Other]]
) -> FiniteMechanism[Database, tuple[Output, Other]]:
    """Both outputs, where the choice of the second mechanism may depend on the first output."""

    def of(database: Database) -> dict[tuple[Output, Other], Fraction]:
        return {
            (output, final): probability * share
            for output, probability in first.law(database).items()
            for final, share in following(output).law(database).items()
        }

    return FiniteMechanism(name=f"{first.name}, then another", of=of)


def poisson_subsampled(mechanism: FiniteMechanism[Histogram, Output], *, rate: Fraction) -> FiniteMechanism[Histogram, Output]:
    """The mechanism on a sample that keeps each row with probability ``rate``, independently; the sample itself is not published.

    If the mechanism has odds ``o`` for unbounded neighbours, this one has ``1 + rate * (o - 1)``
    (Li, Qardaji and Su 2012; proof in ``docs/proofs/exact-verification.md``).
    """
    require_exact(rate)
    if not 0 <= rate <= 1:
        raise LapwingError("number-invalid", "a sampling rate must be between 0 and 1")

    def sample(database: Histogram) -> dict[Histogram, Fraction]:
        def kept(counts: Histogram) -> Fraction:
            ways = math.prod(math.comb(count, keep) for count, keep in zip(database, counts, strict=True))
            return ways * rate ** size(counts) * (1 - rate) ** (size(database) - size(counts))

        return {counts: kept(counts) for counts in cartesian(*(range(count + 1) for count in database))}

    return FiniteMechanism(name=f"{mechanism.name}, on a sample", of=lambda database: pushed(sample(database), mechanism.law))


def uniformly_subsampled(mechanism: FiniteMechanism[Histogram, Output], *, rows: int) -> FiniteMechanism[Histogram, Output]:
    """The mechanism on ``rows`` rows chosen without replacement (on all rows if there are no more); the sample is not published.

    For bounded neighbours of ``n >= rows`` rows, odds ``o`` become ``1 + (rows / n) * (o - 1)`` (Balle, Barthe and Gaboardi 2018).
    """
    if rows < 0:
        raise LapwingError("number-invalid", "the number of rows of a sample must not be negative")

    def sample(database: Histogram) -> dict[Histogram, Fraction]:
        draws = min(rows, size(database))
        choices = (counts for counts in cartesian(*(range(count + 1) for count in database)) if size(counts) == draws)
        ways = {counts: math.prod(math.comb(count, keep) for count, keep in zip(database, counts, strict=True)) for counts in choices}
        return {counts: Fraction(way, math.comb(size(database), draws)) for counts, way in ways.items()}

    return FiniteMechanism(name=f"{mechanism.name}, on a sample", of=lambda database: pushed(sample(database), mechanism.law))
