"""Parse SQL, bind it (consume every part or refuse), and split it into private queries and post-processing.

Nothing here is trusted: the engine's SQL is generated from the certified plan, never from the analyst's text, so a mistake here can give a
wrong answer but never an uncharged one. Every refusal is a ``Refused`` with a stable code, the span of the offending text and a hint, and
comes before anything is charged or read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lapwing.catalog.settings import Settings
from lapwing.errors import Refused
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.statements import DecidedRows, Statement

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

__all__ = ["DIALECTS", "bind"]

DIALECTS = ("duckdb", "postgres")
"""SQL dialects of statements; numbers have the meaning that they have in the engine of the same name."""


def bind(
    text: str,
    facts: Facts,
    *,
    settings: Settings,
    unit_columns: Mapping[str, str],
    references: Mapping[tuple[str, str], tuple[str, str]] | None = None,
    dialect: str = "duckdb",
    tokens: tuple[Token, ...] | None = None,
    public_rows: Callable[[str], Mapping[str, Sequence[Value]] | None] | None = None,
    moment: int | None = None,
    decided: tuple[DecidedRows, ...] = (),
) -> Statement:
    """Bind a statement, or raise ``Refused``.

    ``unit_columns`` names the column that holds the unit, for each protected table that has one: counting its distinct values counts units.
    ``references`` are declared keys on the path to the unit, each from (table, column) to the (table, column) it refers to.
    ``dialect`` is one of ``DIALECTS``: the syntax, and the meaning of ``/`` and other functions of numbers.
    ``tokens`` are the tokens of the text, if ``read_words`` has split it already.
    ``public_rows`` reads public tables, if they are combined with answers.
    ``moment`` is the time of the request, in microseconds since 1970, in UTC: the value of CURRENT_DATE and NOW().
    ``decided`` are the rows of the answers in ``Statement.first``, as far as they are bought.
    The outcome depends on the text, the facts, public tables, the settings and the moment only; no protected data is read.
    """
    if dialect not in DIALECTS:
        raise Refused("dialect-unknown", f"unknown dialect; the dialects are {', '.join(DIALECTS)}")
    # sqlglot takes a third of a second to import, and only binding needs it.
    from lapwing.sql.statement import bind_statement

    return bind_statement(
        text,
        facts,
        settings=settings,
        unit_columns=unit_columns,
        references=references or {},
        dialect=dialect,
        tokens=tokens,
        public_rows=public_rows,
        moment=moment,
        decided=decided,
    )
