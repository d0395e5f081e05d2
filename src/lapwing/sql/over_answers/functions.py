"""Functions of numbers and text over answers, computed by the engine. They never fail: without a finite value the result is NULL."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Kind
from lapwing.sql.over_answers import marks
from lapwing.sql.over_answers.values import Binder, Value
from lapwing.sql.rows import algebra
from lapwing.sql.text.reader import Reader

Handler = Callable[[Binder, Reader], Value]
_NUMBERS = (Kind.INTEGER, Kind.REAL)
_LENGTH_MAX = 10_000
"""Largest number of characters in an argument."""


def handler(outputs: Binder, node: exp.Expr) -> Handler | None:
    """The handler of a call, or None."""
    if type(node) is exp.Anonymous:
        return _NAMED.get(outputs.session.source.called_name(node).upper())
    return _HANDLERS.get(type(node))


def _number(outputs: Binder, node: exp.Expr) -> Value:
    value = outputs.bind(node)
    if value.kind not in _NUMBERS:
        raise outputs.session.refuse("type-mismatch", "a number is needed here", node=node)
    return value


def _text(outputs: Binder, node: exp.Expr) -> Value:
    value = outputs.bind(node)
    if value.kind is not Kind.TEXT:
        raise outputs.session.refuse("type-mismatch", "text is needed here", node=node)
    return value


def _arguments(outputs: Binder, reader: Reader, many: int) -> list[Value]:
    reader.word("this")
    listed = reader.many("expressions")
    if len(listed) != many:
        raise _wrong(outputs, reader)
    return [_number(outputs, node) for node in listed]


def _wrong(outputs: Binder, reader: Reader) -> Refused:
    return outputs.session.refuse("wrong-arguments", "this function takes a different number of arguments", node=reader.node)


def _power(outputs: Binder, reader: Reader) -> Value:
    base, exponent = _arguments(outputs, reader, 2)
    power = f"pow(CAST({base.sql} AS DOUBLE), CAST({exponent.sql} AS DOUBLE))"
    for beyond in ("'inf'", "'-inf'", "'nan'"):
        power = f"nullif({power}, CAST({beyond} AS DOUBLE))"
    return Value(power, Kind.REAL, algebra.COMPUTED, reader.node, mark=marks.worst(base.mark, exponent.mark))


def _logarithm(name: str) -> Handler:
    def bind(outputs: Binder, reader: Reader) -> Value:
        (value,) = _arguments(outputs, reader, 1)
        sql = f"{name}(nullif(greatest(CAST({value.sql} AS DOUBLE), 0.0), 0.0))"
        return Value(sql, Kind.REAL, algebra.COMPUTED, reader.node, mark=value.mark)

    return bind


def _written(name: str, kind: Kind) -> Handler:
    """A function of one text."""

    def bind(outputs: Binder, reader: Reader) -> Value:
        value = _text(outputs, reader.node_of("this"))
        return Value(f"{name}({value.sql})", kind, algebra.COMPUTED, reader.node, mark=value.mark)

    return bind


def _end(name: str) -> Handler:
    """LEFT and RIGHT with a constant number of characters."""

    def bind(outputs: Binder, reader: Reader) -> Value:
        value, many = _text(outputs, reader.node_of("this")), _count(outputs, reader.node_of("expression"))
        return Value(f"{name}({value.sql}, {many})", Kind.TEXT, algebra.COMPUTED, reader.node, mark=value.mark)

    return bind


def _substring(outputs: Binder, reader: Reader) -> Value:
    value, length = _text(outputs, reader.node_of("this")), reader.optional("length")
    start = max(_count(outputs, reader.node_of("start")), 1)
    many = _LENGTH_MAX if length is None else _count(outputs, length)
    return Value(f"substring({value.sql}, {start}, {many})", Kind.TEXT, algebra.COMPUTED, reader.node, mark=value.mark)


def _joined(outputs: Binder, reader: Reader) -> Value:
    """Text || text: NULL if either is NULL."""
    reader.flag("safe")
    left, right = _text(outputs, reader.node_of("this")), _text(outputs, reader.node_of("expression"))
    mark = marks.worst(left.mark, right.mark)
    return Value(f"({left.sql} || {right.sql})", Kind.TEXT, algebra.COMPUTED, reader.node, mark=mark)


def _count(outputs: Binder, node: exp.Expr) -> int:
    constant = outputs.bind(node).constant
    number = None if constant is None else constant.value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _LENGTH_MAX:
        raise outputs.session.refuse("wrong-arguments", "a whole number of characters is needed here", node=node)
    return number


_HANDLERS: Mapping[type[exp.Expr], Handler] = {
    exp.Upper: _written("upper", Kind.TEXT),
    exp.Lower: _written("lower", Kind.TEXT),
    exp.Length: _written("length", Kind.INTEGER),
    exp.Left: _end("left"),
    exp.Right: _end("right"),
    exp.Substring: _substring,
    exp.DPipe: _joined,
}
_NAMED: Mapping[str, Handler] = {
    "POWER": _power,
    "POW": _power,
    "LOG10": _logarithm("log10"),
    "LOG": _logarithm("log10"),
    "LOG2": _logarithm("log2"),
}
