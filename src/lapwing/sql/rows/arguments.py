"""Arguments of aggregates over rows, and the conditions under which a row counts."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from lapwing.kernel.domains import Kind, NumberType
from lapwing.kernel.expressions import Function
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader, Session
from lapwing.statements import Aggregate


@dataclass(frozen=True, slots=True)
class AggregateArgument:
    """The measure of an aggregate of a statement, and the kind of its result."""

    aggregate: Aggregate
    kind: Kind
    words: tuple[str, ...] | None = None
    """The texts of which the number is an index, from 0 on; None where the number is the answer."""
    number: NumberType | None = None
    """The type that SQL gives the number, where it is not that of its kind."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Reads the arguments of aggregates in one scope."""

    scalars: Scalars

    @property
    def session(self) -> Session:
        """The statement being bound."""
        return self.scalars.session

    def value(self, node: exp.Expr, where: Typed | None) -> tuple[Typed, Typed | None]:
        """The argument of an aggregate. CASE WHEN p THEN x END is x where p: aggregates leave NULLs out, so both are the same."""
        if type(node) is exp.Paren:
            with self.session.reading(node) as reader:
                return self.value(reader.node_of("this"), where)
        if type(node) is exp.Case and (parts := self._single_branch(node)) is not None:
            condition, value = parts
            return value, self.both(node, where, condition)
        return self.scalars.bind(node), where

    def _single_branch(self, node: exp.Expr) -> tuple[Typed, Typed] | None:
        reader = Reader(node, self.session.source)
        subject, branches, default = reader.optional("this"), reader.many("ifs"), reader.optional("default")
        if subject is not None or len(branches) != 1 or (default is not None and type(default) is not exp.Null):
            return None
        with self.session.reading(node) as whole:
            for name in ("ifs", "default"):
                whole.many(name)
            if default is not None:
                self.scalars.bind(default)
            with self.session.reading(branches[0]) as branch:
                condition = self.scalars.condition(branch.node_of("this"), "a condition of CASE")
                return condition, self.scalars.bind(branch.node_of("true"))

    def both(self, node: exp.Expr, where: Typed | None, condition: Typed) -> Typed:
        """Both conditions."""
        return condition if where is None else self.scalars.call(node, Function.AND, where, condition)
