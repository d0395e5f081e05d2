"""Conditions of WHERE that no row can satisfy, and a suggestion of what was meant."""

from __future__ import annotations

from difflib import get_close_matches

from lapwing.kernel.domains import TextDomain
from lapwing.kernel.expressions import Call, Column, Expression, Function, Literal
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.typed import Typed

LISTED_MAX = 1_000
"""Most declared values that are searched for a similar spelling."""


def note_undeclared(scalars: Scalars, condition: Typed) -> None:
    """Note a condition that compares a column of declared text with texts that are all undeclared."""
    compared = _compared(condition.expression)
    if compared is None:
        return
    name, texts = compared
    domain = scalars.scope.columns[name]
    if not isinstance(domain, TextDomain) or domain.values is None or any(text in domain.values for text in texts):
        return
    close = get_close_matches(texts[0], domain.values, n=1) if len(domain.values) <= LISTED_MAX else []
    meant = f"; did you mean {close[0]!r}?" if close else ""
    scalars.session.notes.append(f"{texts[0]!r} is not among the declared values of {name}{meant}")


def _compared(expression: Expression) -> tuple[str, list[str]] | None:
    """The column and the texts of ``column = text`` and ``column IN (texts)``."""
    if not isinstance(expression, Call) or expression.function not in (Function.EQUAL, Function.IN):
        return None
    columns = [part.name for part in expression.arguments if isinstance(part, Column)]
    texts = [part.value for part in expression.arguments if isinstance(part, Literal) and isinstance(part.value, str)]
    if len(columns) != 1 or len(texts) + 1 != len(expression.arguments):
        return None
    return columns[0], texts
