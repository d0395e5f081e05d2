"""One entry for each function that is called by name, with everything that is known about the function.

An entry is bound as a composition of the kernel's closed list, so a new function needs no new trusted code: its interval and its totality
are those that the kernel derives for the composition, and the engine sees the composition only. The parser is configured to leave these
names alone (``parse``), so that every dialect gives the same tree for them. The reference page, the check against a bare engine and the
fuzz are made from the entries too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.typed import Typed

Bind: TypeAlias = Callable[["Composer", tuple[exp.Expr, ...]], Typed]
"""Binds a call: its arguments are nodes, to be read with the composer."""

NULL_IF_ANY = "NULL in, NULL out"
"""What most functions do: NULL where an argument is NULL."""


@dataclass(frozen=True, slots=True)
class FunctionReference:
    """What the reference says about a function, and expressions that check it.

    ``checked`` are expressions over the tables of the tests, each compared with the bare engine on every row; a pair gives the engine's own
    spelling where it has another. In ``samples``, {integer}, {real}, {number}, {text}, {date} and {timestamp} denote any expression.
    """

    names: tuple[str, ...]
    """In upper case; the page is sorted by the first."""
    arguments: str
    """As the page shows them, such as ``x, digits``."""
    group: str
    """Chapter of the page."""
    gives: str
    means: str
    null: str = NULL_IF_ANY
    total: str = "nothing can fail"
    differs: str = ""
    checked: tuple[str | tuple[str, str], ...] = ()
    samples: tuple[str, ...] = ()
    dialect: str = "duckdb"
    """The dialect of ``checked``, if the other does not have the function."""


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A function that is called by name: what it means, how many arguments it takes, and how it is bound."""

    meaning: FunctionReference
    least: int
    most: int
    bind: Bind


def check_count(scalars: Scalars, node: exp.Expr, nodes: tuple[exp.Expr, ...], *, least: int, most: int) -> None:
    """Refuse any other number of arguments."""
    if not least <= len(nodes) <= most:
        allowed = str(least) if least == most else f"{least} to {most}"
        raise scalars.session.refuse("wrong-arguments", f"this function takes {allowed} argument(s)", node=node)


@dataclass(frozen=True, slots=True)
class Composer:
    """Makes an expression of the kernel's closed list for one call in a statement."""

    scalars: Scalars
    node: exp.Expr

    def bind(self, node: exp.Expr) -> Typed:
        """The expression of an argument."""
        return self.scalars.bind(node)

    def call(self, function: Function, *arguments: Typed) -> Typed:
        """A function of the closed list."""
        return self.scalars.call(self.node, function, *arguments)

    def integer(self, value: int) -> Typed:
        """A constant."""
        return self.scalars.constant(self.node, Literal(value, Kind.INTEGER))

    def real(self, value: Fraction) -> Typed:
        """A constant; the engine gets the double nearest to it."""
        return self.scalars.constant(self.node, Literal(value, Kind.REAL))

    def text(self, value: str) -> Typed:
        """A constant."""
        return self.scalars.constant(self.node, Literal(value, Kind.TEXT))

    def case(self, branches: list[tuple[Typed, Typed]], otherwise: Typed | None) -> Typed:
        """The first branch whose condition is true."""
        return self.scalars.case(self.node, branches, otherwise)

    def null_with(self, tested: Typed, value: Typed) -> Typed:
        """``value``, but NULL where ``tested`` is NULL: for expressions that would otherwise ignore a NULL."""
        if not tested.domain.nullable:
            return value
        known = self.call(Function.NOT, self.call(Function.IS_NULL, tested))
        return self.case([(known, value)], None)

    def constant_integer(self, node: exp.Expr, *, least: int, most: int) -> int:
        """A whole number written into the statement, or refuse."""
        constant = self.bind(node).expression
        if (
            isinstance(constant, Literal)
            and constant.kind is Kind.INTEGER
            and isinstance(constant.value, int)
            and least <= constant.value <= most
        ):
            return constant.value
        message = f"a constant whole number from {least} to {most} is needed here"
        raise self.scalars.session.refuse("wrong-arguments", message, node=node)

    def constant_number(self, node: exp.Expr) -> Fraction:
        """A number written into the statement, exactly, or refuse."""
        constant = self.bind(node).expression
        if isinstance(constant, Literal) and isinstance(constant.value, int | Fraction) and constant.kind in (Kind.INTEGER, Kind.REAL):
            return Fraction(constant.value)
        raise self.scalars.session.refuse("wrong-arguments", "a constant number is needed here", node=node)

    def constant_text(self, node: exp.Expr) -> str:
        """A text written into the statement, or refuse."""
        constant = self.bind(node).expression
        if isinstance(constant, Literal) and isinstance(constant.value, str):
            return constant.value
        raise self.scalars.session.refuse("wrong-arguments", "a constant text is needed here", node=node)
