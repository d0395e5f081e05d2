"""How far one unit can move the answer to a query, by enumeration of every pair of neighbours.

The result is exact for the databases that were enumerated. For databases of any size it is a lower bound, which can refute a claimed
sensitivity and check a proof, but not replace one. The rules of :mod:`lapwing.kernel.sensitivity` have proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Generic, TypeAlias, TypeVar, assert_never

from lapwing.errors import LapwingError
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.numbers import require_exact
from lapwing.theory.databases import Histogram, Record, Universe, neighbouring_pairs, neighbours

Database = TypeVar("Database", bound=Hashable)

Number: TypeAlias = int | Fraction
Answer: TypeAlias = Number | tuple[Number, ...]
"""The answer of a query: one exact number, or a vector of them."""


class Norm(Enum):
    """How the difference of two answers is measured."""

    L1 = "l1"
    L2_SQUARED = "l2-squared"
    """The square of the Euclidean norm: the norm itself is rarely rational."""
    LINF = "linf"


@dataclass(frozen=True, slots=True)
class WitnessedSensitivity(Generic[Database]):
    """The largest difference found, and a pair of neighbours that shows it (None when no pair differs)."""

    value: Fraction
    norm: Norm
    witness: tuple[Database, Database] | None

    def __str__(self) -> str:
        if self.witness is None:
            return f"{self.norm.value} sensitivity 0: no pair of neighbours has different answers"
        x, y = self.witness
        return f"{self.norm.value} sensitivity {self.value}, between {x} and {y}"


def _coordinates(answer: Answer) -> tuple[Number, ...]:
    vector = answer if isinstance(answer, tuple) else (answer,)
    require_exact(*vector)
    return vector


def difference(left: Answer, right: Answer, norm: Norm) -> Fraction:
    """The size of ``left - right`` in the norm (squared for ``L2_SQUARED``), exactly."""
    a, b = _coordinates(left), _coordinates(right)
    if len(a) != len(b):
        raise LapwingError("query-invalid", "a query must return vectors of the same length on every database")
    steps = [abs(Fraction(u) - Fraction(v)) for u, v in zip(a, b, strict=True)]
    match norm:
        case Norm.L1:
            return sum(steps, Fraction(0))
        case Norm.L2_SQUARED:
            return sum((step**2 for step in steps), Fraction(0))
        case Norm.LINF:
            return max(steps, default=Fraction(0))
        case never:
            assert_never(never)


def sensitivity_over(
    query: Callable[[Database], Answer], pairs: Iterable[tuple[Database, Database]], *, norm: Norm
) -> WitnessedSensitivity[Database]:
    """The largest difference of the query's answers over these pairs, with the first pair that attains it."""
    largest, witness = Fraction(0), None
    answers: dict[Database, Answer] = {}
    for pair in pairs:
        for database in pair:
            if database not in answers:
                answers[database] = query(database)
        apart = difference(answers[pair[0]], answers[pair[1]], norm)
        if apart > largest:
            largest, witness = apart, pair
    return WitnessedSensitivity(value=largest, norm=norm, witness=witness)


def sensitivity(
    query: Callable[[Histogram], Answer], universe: Universe[Record], relation: Neighbours, *, size_max: int, norm: Norm
) -> WitnessedSensitivity[Histogram]:
    """The sensitivity of a query over all databases of at most ``size_max`` rows, with a pair of neighbours that attains it."""
    return sensitivity_over(query, neighbouring_pairs(universe, relation, size_max=size_max), norm=norm)


def local_sensitivity(
    query: Callable[[Histogram], Answer], database: Histogram, relation: Neighbours, *, size_max: int, norm: Norm
) -> WitnessedSensitivity[Histogram]:
    """The largest difference between *this* database and a neighbour of at most ``size_max`` rows.

    It depends on the data: noise of this size is not private (``lapwing.theory.broken``: ``local_sensitivity_noise``).
    """
    return sensitivity_over(query, ((database, other) for other in neighbours(database, relation, size_max=size_max)), norm=norm)
