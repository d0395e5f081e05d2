"""Values over noisy columns: an expression as SQL, with its type and what is known about its error; and constants as SQL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.domains import Kind, NumberType
from lapwing.kernel.expressions import Literal
from lapwing.sql.rows import algebra
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.text.reader import Session


@dataclass(frozen=True, slots=True)
class Value:
    """An expression over noisy columns: its SQL, its type (None for NULL), and what is known about its error."""

    sql: str
    kind: Kind | None
    form: algebra.Form
    node: exp.Expr
    constant: Literal | None = None
    mark: str | None = None
    """SQL for the code of its mark (``lapwing.statements.CellMark``); None if it does not come from noisy values."""
    number: NumberType | None = None
    """The type that SQL gives a number, where it is not that of its kind."""

    @property
    def number_type(self) -> NumberType | None:
        """The type that SQL gives it; None if it is not a number."""
        by_kind = {Kind.INTEGER: NumberType.BIGINT, Kind.REAL: NumberType.DOUBLE}
        return self.number or (None if self.kind is None else by_kind.get(self.kind))


class Binder(Protocol):
    """Binds expressions over noisy columns."""

    @property
    def session(self) -> Session:
        """The statement being bound."""
        ...

    @property
    def scalars(self) -> Scalars:
        """Reads constants."""
        ...

    def bind(self, node: exp.Expr) -> Value:
        """The value of a node, or refuse."""
        ...


def as_real(value: Value) -> Value:
    """A number as a real one."""
    return value if value.kind is Kind.REAL else replace(value, sql=f"CAST({value.sql} AS DOUBLE)", kind=Kind.REAL)


def literal_sql(literal: Literal) -> str:
    """A constant as DuckDB reads it: reals as doubles, dates and text in quotes."""
    match literal.kind, literal.value:
        case _, None:
            return "NULL"
        case Kind.BOOLEAN, bool(truth):
            return "TRUE" if truth else "FALSE"
        case Kind.DATE, int(days):
            return f"DATE '{calendar.to_date(days).isoformat()}'"
        case Kind.TIMESTAMP, int(moment):
            return f"make_timestamp({moment})"
        case Kind.TEXT, str(text):
            return "'" + text.replace("'", "''") + "'"
        case Kind.INTEGER, int(number):
            return str(number) if number >= 0 else f"({number})"
        case _, (int() | Fraction()) as number:
            written = repr(float(number))
            written = written if "e" in written else f"{written}e0"
            return written if number >= 0 else f"({written})"
        case _:
            raise Refused("type-mismatch", f"a constant does not fit the type {literal.kind.value}")
