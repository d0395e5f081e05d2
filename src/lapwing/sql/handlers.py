"""Everything that may stand in an expression over rows: one handler for each class of node. Anything else is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from lapwing.sql import dates, functions, operators, texts
from lapwing.sql.reader import Reader
from lapwing.sql.scalars import Handler, Scalars, Typed, unknown_function

BY_NAME: Mapping[str, Callable[[Scalars, exp.Expr, exp.Expr, exp.Expr], Typed]] = {
    "date_part": dates.date_part_of,
    "datepart": dates.date_part_of,
    "prefix": lambda scalars, node, text, start: texts.tested(scalars, node, text, start, str.startswith),
    "suffix": lambda scalars, node, text, end: texts.tested(scalars, node, text, end, str.endswith),
}
"""Functions of two arguments that the parser has no class for."""


def _anonymous(scalars: Scalars, reader: Reader) -> Typed:
    bind, arguments = BY_NAME.get(reader.word("this").lower()), reader.many("expressions")
    if bind is None:
        raise unknown_function(scalars.session, reader.node)
    if len(arguments) != 2:
        raise scalars.session.refuse("wrong-arguments", "this function takes two arguments", node=reader.node)
    return bind(scalars, reader.node, *arguments)


HANDLERS: Mapping[type[exp.Expr], Handler] = {
    **operators.HANDLERS,
    **functions.HANDLERS,
    **dates.HANDLERS,
    **texts.HANDLERS,
    exp.Anonymous: Handler(_anonymous),
}
