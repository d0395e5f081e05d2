"""An expression over rows with what is known about its values."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from lapwing.kernel.domains import Domain, Kind, kind_of
from lapwing.kernel.expressions import Expression, Literal


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression with its domain. ``node`` is where it came from, for messages."""

    expression: Expression
    domain: Domain
    node: exp.Expr
    parts: int = 1
    """How many parts the expression has once it is expanded."""

    @property
    def kind(self) -> Kind:
        """The type of its values."""
        return kind_of(self.domain)

    @property
    def is_null(self) -> bool:
        """Whether it is the constant NULL, which takes its type from its surroundings."""
        return isinstance(self.expression, Literal) and self.expression.value is None
