"""What an analyst asked, in our own terms: one private query, and what is done with its noisy answer afterwards.

The SQL front makes these and planning turns the private part into a plan. Nothing here is trusted: a mistake can give a wrong answer, never
an uncharged one, because only the finished plan is certified and run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from lapwing.errors import Span
from lapwing.kernel.expressions import Expression
from lapwing.kernel.ir import Relation


class AggregateKind(Enum):
    """The aggregates of the first part."""

    COUNT = "count"
    """Rows, or non-NULL values when there is a value."""
    COUNT_UNITS = "count_units"
    """Distinct units."""
    SUM = "sum"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of the private query; ``where`` is its FILTER. Equal aggregates appear once."""

    kind: AggregateKind
    value: Expression | None = None
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class PrivateQuery:
    """The only part that touches protected rows. Every Scan stands at its table's cap; planning lowers it."""

    source: Relation
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class KeyOutput:
    """The output is key number ``key``."""

    key: int


@dataclass(frozen=True, slots=True)
class LinearOutput:
    """The output is scale * aggregate + shift."""

    aggregate: int
    scale: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class RatioOutput:
    """The output is scale * numerator / denominator, both aggregates."""

    numerator: int
    denominator: int
    scale: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class ComputedOutput:
    """Anything else computed from the noisy columns: no error bar is given."""


Derivation: TypeAlias = KeyOutput | LinearOutput | RatioOutput | ComputedOutput


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer. ``sql`` is DuckDB SQL over the noisy columns k0, k1, .. and a0, a1, .. of the table ``noisy``."""

    name: str
    sql: str
    derivation: Derivation


@dataclass(frozen=True, slots=True)
class PostProcess:
    """HAVING, ORDER BY, LIMIT and expressions over aggregates; run on the noisy table alone."""

    outputs: tuple[Output, ...]
    having: str | None = None
    order_by: tuple[str, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Statement:
    """A bound statement."""

    text: str
    private: PrivateQuery
    post: PostProcess
    spans: tuple[tuple[str, Span], ...] = ()
    """Where named parts stand in the text, for messages."""
