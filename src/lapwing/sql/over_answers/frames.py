"""The frame of a window over noisy results: ROWS or RANGE, with constant ends."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Literal
from lapwing.sql.over_answers.dates import interval_sql, is_small
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.values import Value, literal_sql
from lapwing.sql.scalars.date_arithmetic import constant_interval
from lapwing.sql.text.reader import Reader

ROWS_MAX = 1_000_000
"""Most rows that a frame reaches."""
_NUMBERS = (Kind.INTEGER, Kind.REAL)


def frame(outputs: Outputs, node: exp.Expr, ordered: Sequence[Value]) -> str:
    """The frame as SQL; ``ordered`` is what the window is ordered by."""
    with outputs.session.reading(node) as reader:
        kind = reader.word("kind")
        if kind not in ("ROWS", "RANGE"):
            raise outputs.session.refuse("window-unsupported", "this kind of frame is not supported", node=node, hint="use ROWS or RANGE")
        start, begins = _end(outputs, reader, "start", kind, ordered)
        end, ends = _end(outputs, reader, "end", kind, ordered) if reader.node.args.get("end") is not None else ("CURRENT ROW", 0)
        reader.word("start_side")
        reader.word("end_side")
        if begins > ends or begins == 2 or ends == -2:
            message, hint = "a frame must begin before it ends", "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW"
            raise outputs.session.refuse("window-unsupported", message, node=node, hint=hint)
    return f"{kind} BETWEEN {start} AND {end}"


def measures_numbers(node: exp.Expr) -> bool:
    """Whether a frame has an end at a distance in the values that order the window."""
    return node.args.get("kind") == "RANGE" and any(isinstance(node.args.get(name), exp.Expr) for name in ("start", "end"))


def _end(outputs: Outputs, reader: Reader, name: str, kind: str, ordered: Sequence[Value]) -> tuple[str, int]:
    """One end of a frame, and on which side of the row it lies: from -2 for the first row to 2 for the last."""
    if not isinstance(reader.node.args.get(name), exp.Expr):
        word = reader.word(name)
        if word == "CURRENT ROW":
            return word, 0
        side = reader.word(f"{name}_side")
        return f"UNBOUNDED {side}", -2 if side == "PRECEDING" else 2
    side = reader.word(f"{name}_side")
    if side not in ("PRECEDING", "FOLLOWING"):
        raise outputs.session.refuse("window-unsupported", "an end of a frame must be PRECEDING or FOLLOWING", node=reader.node)
    reach = _rows(outputs, reader.node_of(name)) if kind == "ROWS" else _range(outputs, reader.node_of(name), ordered)
    return f"{reach} {side}", -1 if side == "PRECEDING" else 1


def _rows(outputs: Outputs, node: exp.Expr) -> str:
    constant = None if type(node) is exp.Interval else outputs.bind(node).constant
    if constant is None or not isinstance(constant.value, int) or not 0 <= constant.value <= ROWS_MAX:
        raise outputs.session.refuse("wrong-arguments", "a whole number of rows is needed here", node=node)
    return str(constant.value)


def _range(outputs: Outputs, node: exp.Expr, ordered: Sequence[Value]) -> str:
    by = ordered[0].kind if len(ordered) == 1 else None
    if type(node) is exp.Interval and by in (Kind.DATE, Kind.TIMESTAMP):
        count, unit = constant_interval(outputs.scalars, node)
        if count >= 0 and is_small(count, unit):
            return interval_sql(count, unit)
    elif type(node) is not exp.Interval and by in _NUMBERS:
        constant = outputs.bind(node).constant
        if constant is not None and isinstance(constant.value, int | Fraction) and constant.value >= 0:
            return literal_sql(Literal(Fraction(constant.value), Kind.REAL))
    message = "RANGE takes a constant number or interval, in a window that is ordered by one number or date"
    hint = "ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW"
    raise outputs.session.refuse("window-unsupported", message, node=node, hint=hint)
