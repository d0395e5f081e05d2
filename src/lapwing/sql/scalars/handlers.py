"""Everything that is allowed in an expression over rows: one handler for each class of node. Anything else is refused."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lapwing.sql.scalars import (
    calendar_functions,
    date_functions,
    dates,
    durations,
    functions,
    list_functions,
    moment,
    number_functions,
    operators,
    text_casts,
    text_functions,
    text_patterns,
)
from lapwing.sql.scalars.binding import Handler, Scalars, unknown_function
from lapwing.sql.scalars.named_function import Composer, NamedFunction, check_count
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader

NAMED: tuple[NamedFunction, ...] = (
    *number_functions.NAMED,
    *date_functions.NAMED,
    *calendar_functions.NAMED,
    *list_functions.NAMED,
    *text_functions.NAMED,
    *text_patterns.NAMED,
)
"""Functions that are called by name, each with everything the reference says about it."""
BY_NAME: Mapping[str, NamedFunction] = {name: entry for entry in NAMED for name in entry.meaning.names}


def _anonymous(scalars: Scalars, reader: Reader) -> Typed:
    entry, nodes = BY_NAME.get(reader.word("this").upper()), reader.many("expressions")
    if entry is None:
        raise unknown_function(scalars.session, reader.node)
    check_count(scalars, reader.node, nodes, least=entry.least, most=entry.most)
    return entry.bind(Composer(scalars, reader.node), nodes)


HANDLERS: Mapping[type[exp.Expr], Handler] = {
    **operators.HANDLERS,
    **functions.HANDLERS,
    **dates.HANDLERS,
    **durations.HANDLERS,
    **moment.MOMENTS,
    **text_functions.HANDLERS,
    **text_casts.HANDLERS,
    **text_patterns.HANDLERS,
    exp.Anonymous: Handler(_anonymous),
}
