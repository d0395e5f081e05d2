"""TRY_CAST: a public look-up for declared text, a cast that cannot fail for anything else."""

from __future__ import annotations

from sqlglot import exp

from lapwing.kernel.domains import Kind, TextDomain
from lapwing.kernel.expressions import Literal
from lapwing.sql.scalars import text_values
from lapwing.sql.scalars.binding import Handler, Scalars
from lapwing.sql.scalars.functions import INTEGER_BITS, REALS, cast, type_name
from lapwing.sql.scalars.text_functions import is_text_function, lookup
from lapwing.sql.scalars.text_tables import Result, emit, mapped
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader


def _try_cast(scalars: Scalars, reader: Reader) -> Typed:
    """A cast that gives NULL where it fails: a look-up for text with declared values, a cast that cannot fail for anything else."""
    reader.flag("safe")
    target, inner = type_name(scalars, reader.node_of("to")), reader.node_of("this")
    if not is_text_function(inner):
        value = scalars.bind(inner)
        if not isinstance(value.domain, TextDomain) or isinstance(value.expression, Literal):
            return cast(scalars, reader.node, value, target)
    table = lookup(scalars, inner)
    if target in REALS:
        table = mapped(scalars, reader.node, table, lambda text: _in_range(text_values.number(text), 2**300))
        return emit(scalars, reader.node, table, Kind.REAL)
    if target in INTEGER_BITS:
        limit = 2 ** (min(INTEGER_BITS[target], 63) - 1)
        table = mapped(scalars, reader.node, table, lambda text: _in_range(text_values.whole_number(text), limit))
        return emit(scalars, reader.node, table, Kind.INTEGER)
    raise scalars.session.refuse("cast-unsupported", "text can be cast to numbers only", node=reader.node)


def _in_range(number: Result, limit: int) -> Result:
    return number if not isinstance(number, str) and number is not None and -limit <= number < limit else None


HANDLERS: dict[type[exp.Expr], Handler] = {exp.TryCast: Handler(_try_cast)}
