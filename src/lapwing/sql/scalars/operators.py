"""Columns, constants, logic, comparisons and arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from lapwing.kernel.domains import BooleanDomain, Kind, number_type
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.scalars import number_types
from lapwing.sql.scalars.binding import Handler, Scalars, column, column_name, function
from lapwing.sql.scalars.date_arithmetic import dated_sum, interval, is_interval, moved, negative
from lapwing.sql.scalars.dates import as_timestamp
from lapwing.sql.scalars.durations import compare_with_interval
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text import constants
from lapwing.sql.text.reader import Reader, Session


def _column(scalars: Scalars, reader: Reader) -> Typed:
    return column(scalars, reader.node, *column_name(scalars.session, reader))


def literal(scalars: Scalars, reader: Reader) -> Typed:
    """A number or text as written."""
    written = reader.word("this")
    if reader.flag("is_string"):
        return scalars.constant(reader.node, Literal(written, Kind.TEXT))
    number = constants.number(written, scalars.session, reader.node)
    constant = scalars.constant(reader.node, number)
    if not scalars.session.typed_numbers:
        return constant
    return number_types.typed_as(constant, number_types.literal_type(number, written, scalars.session.dialect))


def _boolean(scalars: Scalars, reader: Reader) -> Typed:
    return scalars.constant(reader.node, Literal(reader.flag("this"), Kind.BOOLEAN))


def _null(scalars: Scalars, reader: Reader) -> Typed:
    return scalars.constant(reader.node, Literal(None, Kind.BOOLEAN))


def _paren(scalars: Scalars, reader: Reader) -> Typed:
    return scalars.bind(reader.node_of("this"))


def chain(reader: Reader, session: Session) -> list[exp.Expr]:
    """The operands of a chain of one connective, in order: a AND b AND c is one node per AND, and may be thousands long."""
    connective, operands = type(reader.node), []
    operands.append(reader.node_of("expression"))
    left = reader.node_of("this")
    while type(left) is connective:
        inner = Reader(left, session.source)
        operands.append(inner.node_of("expression"))
        following = inner.node_of("this")
        inner.finish()
        session.read.add(id(left))
        left = following
    operands.append(left)
    return operands[::-1]


def _connective(called: Function) -> Handler:
    def bind(scalars: Scalars, reader: Reader) -> Typed:
        bound = [scalars.condition(operand, f"an operand of {called.name}") for operand in chain(reader, scalars.session)]
        return scalars.call(reader.node, called, *bound)

    return Handler(bind)


def _not(scalars: Scalars, reader: Reader) -> Typed:
    return scalars.call(reader.node, Function.NOT, scalars.condition(reader.node_of("this"), "the operand of NOT"))


def _comparison(called: Function) -> Handler:
    def bind(scalars: Scalars, reader: Reader) -> Typed:
        sides = compared(reader, scalars.session)
        if called is Function.EQUAL and type(sides[1]) is exp.Any:
            return _any(scalars, reader.node, *sides)
        if sum(map(is_interval, sides)) == 1:
            return compare_with_interval(scalars, reader.node, called, sides)
        left, right = (scalars.bind(node) for node in sides)
        return compare(scalars, reader.node, called, left, right)

    return Handler(bind)


def _any(scalars: Scalars, node: exp.Expr, tested: exp.Expr, listed: exp.Expr) -> Typed:
    """x = ANY ([...]): as IN."""
    with scalars.session.reading(listed) as reader:
        array = reader.node_of("this")
    while type(array) is exp.Paren:
        with scalars.session.reading(array) as reader:
            array = reader.node_of("this")
    return among(scalars, node, scalars.bind(tested), list_items(scalars, array))


def list_items(scalars: Scalars, node: exp.Expr) -> tuple[exp.Expr, ...]:
    """The items of a list such as [1, 2, 3] or ARRAY[1, 2, 3], or refuse."""
    if type(node) is not exp.Array:
        message, hint = "a list of constants is needed here", "write it as [1, 2, 3], or use IN (1, 2, 3)"
        raise scalars.session.refuse("list-not-constant", message, node=node, hint=hint)
    with scalars.session.reading(node) as reader:
        return reader.many("expressions")


def compared(reader: Reader, session: Session) -> tuple[exp.Expr, exp.Expr]:
    """The two sides of a comparison. ``a < b < c`` is refused: dialects that accept it differ in its meaning."""
    sides = reader.node_of("this"), reader.node_of("expression")
    for side in sides:
        if type(side) in COMPARISONS:
            raise session.refuse("sql-syntax", "comparisons cannot be chained", node=reader.node, hint="use AND, or brackets")
    return sides


def compare(scalars: Scalars, node: exp.Expr, called: Function, left: Typed, right: Typed) -> Typed:
    """A comparison; a text constant beside a date is a date, and a date beside a timestamp its midnight."""
    left, right = scalars.in_kind_of(left, right), scalars.in_kind_of(right, left)
    if {left.kind, right.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        left, right = as_timestamp(scalars, node, left), as_timestamp(scalars, node, right)
    return scalars.call(node, called, left, right)


def _distinct(scalars: Scalars, reader: Reader) -> Typed:
    """IS [NOT] DISTINCT FROM: equality in which NULL equals NULL; never NULL itself."""
    left, right = (scalars.bind(node) for node in compared(reader, scalars.session))
    for side, other in ((left, right), (right, left)):
        if side.is_null:
            hint = "IS NULL and IS NOT NULL test for NULL"
            raise scalars.session.refuse("null-constant", "NULL is not allowed here", node=other.node, hint=hint)
    never = scalars.constant(reader.node, Literal(False, Kind.BOOLEAN))
    same = compare(scalars, reader.node, Function.EQUAL, left, right)
    if same.domain.nullable:
        same = scalars.call(reader.node, Function.COALESCE, same, never)
    if left.domain.nullable and right.domain.nullable:
        missing = scalars.call(reader.node, Function.AND, *(scalars.call(reader.node, Function.IS_NULL, side) for side in (left, right)))
        same = scalars.call(reader.node, Function.OR, same, missing)
    return same if type(reader.node) is exp.NullSafeEQ else scalars.call(reader.node, Function.NOT, same)


def _between(scalars: Scalars, reader: Reader) -> Typed:
    value, low, high = (scalars.bind(reader.node_of(name)) for name in ("this", "low", "high"))
    above = compare(scalars, reader.node, Function.GREATER_EQUAL, value, low)
    return scalars.call(reader.node, Function.AND, above, compare(scalars, reader.node, Function.LESS_EQUAL, value, high))


def _in(scalars: Scalars, reader: Reader) -> Typed:
    reader.require_absent("query", "field", "unnest")
    return among(scalars, reader.node, scalars.bind(reader.node_of("this")), reader.many("expressions"))


def among(scalars: Scalars, node: exp.Expr, value: Typed, listed: tuple[exp.Expr, ...]) -> Typed:
    """Whether a value is one of several constants."""
    limit = scalars.session.settings.list_items_max
    if len(listed) > limit:
        raise scalars.session.refuse("list-too-long", f"an IN list may have at most {limit} items", node=node)
    options: dict[Literal, Typed] = {}
    for item in listed:
        option = scalars.in_kind_of(scalars.bind(item), value)
        if not isinstance(option.expression, Literal) or option.is_null:
            message = "an IN list takes only constants other than NULL"
            raise scalars.session.refuse("list-not-constant", message, node=item, hint="use = and OR, or IS NULL")
        options.setdefault(option.expression, option)
    if not options:
        raise scalars.session.refuse("list-not-constant", "the list is empty", node=node, hint="list at least one constant")
    return scalars.call(node, Function.IN, value, *options.values())


def _is(scalars: Scalars, reader: Reader) -> Typed:
    """IS NULL, IS TRUE, IS FALSE: never NULL themselves."""
    value, tested = scalars.bind(reader.node_of("this")), scalars.bind(reader.node_of("expression"))
    if tested.is_null:
        return scalars.call(reader.node, Function.IS_NULL, value)
    if not isinstance(tested.expression, Literal) or not isinstance(tested.expression.value, bool):
        raise scalars.session.refuse("sql-unsupported", "IS takes NULL, TRUE or FALSE", node=reader.node, hint="compare with =")
    if not isinstance(value.domain, BooleanDomain):
        message = f"IS TRUE needs a boolean, not a {value.kind.value}"
        raise scalars.session.refuse("type-mismatch", message, node=value.node)
    otherwise = scalars.constant(reader.node, Literal(not tested.expression.value, Kind.BOOLEAN))
    known = scalars.call(reader.node, Function.COALESCE, value, otherwise)
    return known if tested.expression.value else scalars.call(reader.node, Function.NOT, known)


def _arithmetic(called: Function, *names: str) -> Handler:
    def bind(scalars: Scalars, reader: Reader) -> Typed:
        sides = reader.node_of("this"), reader.node_of("expression")
        if called is Function.ADD and is_interval(sides[0]):
            sides = sides[::-1]
        if called in (Function.ADD, Function.SUBTRACT) and is_interval(sides[1]):
            value, (count, unit) = scalars.bind(sides[0]), interval(scalars, sides[1])
            return moved(scalars, reader.node, value, count if called is Function.ADD else negative(scalars, reader.node, count), unit)
        left, right = (scalars.bind(side) for side in sides)
        if called in (Function.ADD, Function.SUBTRACT):
            dated = dated_sum(scalars, reader.node, called, left, right)
            if dated is not None:
                return dated
        for side in (left, right):
            if isinstance(side.domain, BooleanDomain) and not side.is_null:
                message = f"{called.value} needs numbers, not a boolean"
                raise scalars.session.refuse("type-mismatch", message, node=side.node, hint="use CASE WHEN ... THEN 1 ELSE 0 END")
        if scalars.session.typed_numbers and called in (Function.DIVIDE, Function.INTEGER_DIVIDE):
            return _quotient(scalars, reader.node, called, left, right)
        return scalars.call(reader.node, called, left, right)

    return function(bind, *names)


def _quotient(scalars: Scalars, node: exp.Expr, called: Function, left: Typed, right: Typed) -> Typed:
    """``/`` and ``//`` by the types of numbers: in DuckDB ``/`` gives a double, and ``//`` of numbers other than integers is ``/``."""
    of_integers = all(number_type(side.domain) in number_types.INTEGERS for side in (left, right))
    is_postgres = scalars.session.dialect == "postgres"
    if of_integers:
        return scalars.call(node, Function.INTEGER_DIVIDE if is_postgres else called, left, right)
    exact = number_types.divided(scalars, node, left, right) if is_postgres else None
    return scalars.call(node, Function.DIVIDE, left, right) if exact is None else exact


def _negate(scalars: Scalars, reader: Reader) -> Typed:
    """Minus; a negative constant is a constant, so it is allowed in lists."""
    value = scalars.bind(reader.node_of("this"))
    constant = value.expression
    if isinstance(constant, Literal) and isinstance(constant.value, int | Fraction) and constant.kind in (Kind.INTEGER, Kind.REAL):
        negative = scalars.constant(reader.node, Literal(-constant.value, constant.kind))
        return number_types.typed_as(negative, getattr(value.domain, "number", None))
    return scalars.call(reader.node, Function.NEGATE, value)


COMPARISONS: dict[type[exp.Expr], Function] = {
    exp.EQ: Function.EQUAL,
    exp.NEQ: Function.NOT_EQUAL,
    exp.LT: Function.LESS,
    exp.LTE: Function.LESS_EQUAL,
    exp.GT: Function.GREATER,
    exp.GTE: Function.GREATER_EQUAL,
}

CONSTANTS: dict[type[exp.Expr], Callable[[Scalars, Reader], Typed]] = {exp.Literal: literal, exp.Boolean: _boolean, exp.Null: _null}

HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Column: Handler(_column),
    **{node: Handler(bind) for node, bind in CONSTANTS.items()},
    exp.Paren: Handler(_paren),
    exp.And: _connective(Function.AND),
    exp.Or: _connective(Function.OR),
    exp.Not: Handler(_not),
    **{node: _comparison(called) for node, called in COMPARISONS.items()},
    exp.NullSafeEQ: Handler(_distinct),
    exp.NullSafeNEQ: Handler(_distinct),
    exp.Between: Handler(_between),
    exp.In: Handler(_in),
    exp.Is: Handler(_is),
    exp.Add: _arithmetic(Function.ADD),
    exp.Sub: _arithmetic(Function.SUBTRACT),
    exp.Mul: _arithmetic(Function.MULTIPLY),
    exp.Div: _arithmetic(Function.DIVIDE),
    exp.IntDiv: _arithmetic(Function.INTEGER_DIVIDE),
    exp.Mod: _arithmetic(Function.MODULO, "MOD", "%"),
    exp.Neg: Handler(_negate),
}
