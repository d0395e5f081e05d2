"""Post-processing: expressions over noisy keys and aggregates, as DuckDB SQL generated from a short list of nodes.

The SQL is generated here from checked types; only quoted constants are copied from the analyst's text. It never fails: a division by 0 and
an integer overflow give NULL, because nothing may fail once the statement is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Kind, NumberType, number_type
from lapwing.kernel.expressions import Function, Literal
from lapwing.kernel.functions import EXP_LIMIT
from lapwing.sql.over_answers import dates, functions, marks
from lapwing.sql.over_answers.values import Value, literal_sql
from lapwing.sql.rows import algebra
from lapwing.sql.scalars import number_types
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.functions import decimal_places, type_name
from lapwing.sql.scalars.moment import MOMENTS
from lapwing.sql.scalars.operators import COMPARISONS, CONSTANTS, chain, compared
from lapwing.sql.text import constants
from lapwing.sql.text.reader import Reader, Session
from lapwing.statements import LinearOutput

_NUMBERS = (Kind.INTEGER, Kind.REAL)


class Leaves(Protocol):
    """The leaves of expressions over noisy tables, apart from constants: keys and aggregates, or columns of subqueries."""

    def leaf(self, outputs: Outputs, node: exp.Expr) -> Value | None:
        """The value of a node that is a leaf, or None."""
        ...

    def column(self, outputs: Outputs, reader: Reader) -> Value:
        """The value of a column that is not a leaf, or refuse."""
        ...

    def refusal(self, outputs: Outputs, node: exp.Expr) -> Refused:
        """The refusal of a node whose class has no handler."""
        ...


class ScalarSubquery(Protocol):
    """Binds a scalar subquery or, if ``listed``, a subquery for the values of one column."""

    def __call__(self, node: exp.Expr, *, listed: bool = False) -> Value:
        """The value, or refuse."""
        ...


@dataclass(slots=True)
class Outputs:
    """Binds the expressions of SELECT, HAVING and ORDER BY. ``aliases`` are the outputs by name, once SELECT has been read.

    ``scalars`` reads constants and checks names; ``scalar_subquery`` binds a scalar subquery, ``window`` a window.
    """

    scalars: Scalars
    leaves: Leaves
    scalar_subquery: ScalarSubquery
    window: Callable[[Outputs, exp.Expr], Value]
    aliases: Mapping[str, Value] = field(default_factory=dict)
    windows: Mapping[str, exp.Expr] = field(default_factory=dict)
    """The windows of WINDOW by name, in lower case."""

    @property
    def session(self) -> Session:
        """The statement being bound."""
        return self.scalars.session

    def bind(self, node: exp.Expr) -> Value:
        """The value of a node, or refuse."""
        leaf = self.leaves.leaf(self, node)
        if leaf is not None:
            return leaf
        if type(node) is exp.Subquery:
            return self.scalar_subquery(node)
        if type(node) is exp.Window:
            return self.window(self, node)
        handler = _HANDLERS.get(type(node)) or functions.handler(self, node)
        if handler is None:
            raise self.leaves.refusal(self, node)
        self.scalars.check_name(node, self.scalars.handlers[type(node)].names)
        with self.session.reading(node) as reader:
            return handler(self, reader)

    def computes(self, node: exp.Expr) -> bool:
        """Whether a node is computed from answers."""
        return type(node) in _HANDLERS

    def condition(self, node: exp.Expr, what: str) -> Value:
        """A value that is true, false or NULL."""
        value = self.bind(node)
        if value.kind is not Kind.BOOLEAN:
            raise self.session.refuse("type-mismatch", f"{what} must be true or false", node=node, hint="compare it with a value")
        return value

    def alike(self, values: list[Value]) -> tuple[list[Value], Kind | None]:
        """The values with constants converted to a common type, and that type; or refuse."""
        leader = next((value for value in values if value.constant is None), None)
        leader = leader or next((value for value in values if value.kind is not None), values[0])
        if leader.kind is not None:
            values = [self._beside(value, leader.kind) for value in values]
        kinds = {value.kind for value in values if value.kind is not None}
        if kinds == {Kind.DATE, Kind.TIMESTAMP}:  # a date is its midnight
            values = [dates.cast(value, Kind.TIMESTAMP, value.node) if value.kind is Kind.DATE else value for value in values]
            kinds = {Kind.TIMESTAMP}
        if len(kinds) > 1 and not kinds <= set(_NUMBERS):
            odd = next(value for value in values if value.kind not in (leader.kind, None))
            spoken = " and ".join(sorted(kind.value for kind in kinds))
            raise self.session.refuse("type-mismatch", f"{spoken} cannot be combined", node=odd.node)
        return values, Kind.REAL if len(kinds) > 1 else next(iter(kinds), None)

    def _beside(self, value: Value, kind: Kind) -> Value:
        if value.constant is None:
            return value
        literal = constants.beside(value.constant, kind, self.session, value.node)
        return replace(value, constant=literal, kind=value.kind and literal.kind, sql=literal_sql(literal))

    def number(self, node: exp.Expr) -> Value:
        """A value that is a number."""
        return self.numeric(self.bind(node))

    def numeric(self, value: Value) -> Value:
        """The value itself if it is a number, or refuse."""
        if value.kind not in _NUMBERS:
            what = "NULL" if value.kind is None else f"a {value.kind.value}"
            raise self.session.refuse("type-mismatch", f"a number is needed here, not {what}", node=value.node)
        return value


Handler = Callable[[Outputs, Reader], Value]


def _column(outputs: Outputs, reader: Reader) -> Value:
    return outputs.leaves.column(outputs, reader)


def _constant(outputs: Outputs, reader: Reader) -> Value:
    typed = outputs.scalars.handlers[type(reader.node)].bind(outputs.scalars, reader)
    literal = typed.expression
    assert isinstance(literal, Literal)
    form: algebra.Form = algebra.COMPUTED
    if literal.kind in _NUMBERS and isinstance(literal.value, int | Fraction):
        form = algebra.Constant(Fraction(literal.value))
    kind = None if literal.value is None else literal.kind
    return Value(literal_sql(literal), kind, form, reader.node, constant=literal, number=number_type(typed.domain))


def _paren(outputs: Outputs, reader: Reader) -> Value:
    return outputs.bind(reader.node_of("this"))


def _wide(value: Value) -> str:
    """A 64-bit integer as one of 128 bits, which can hold the result of any operation here on two of them."""
    return value.sql if value.constant is not None else f"CAST({value.sql} AS HUGEINT)"


def _whole(sql: str) -> str:
    """Back to 64 bits; NULL where it does not fit."""
    return f"TRY_CAST(({sql}) AS BIGINT)"


def _arithmetic(sign: str) -> Handler:
    def bind(outputs: Outputs, reader: Reader) -> Value:
        first, second = reader.node_of("this"), reader.node_of("expression")
        left = outputs.bind(first)
        if sign in ("+", "-") and left.kind in (Kind.DATE, Kind.TIMESTAMP):
            return dates.moved(outputs, reader.node, sign, left, second)
        left, right = outputs.numeric(left), outputs.number(second)
        number = number_types.widest([left.number_type, right.number_type])
        if sign == "/" and number in number_types.INTEGERS and outputs.session.typed_numbers and outputs.session.dialect == "postgres":
            divisor = f"NULLIF({marks.clear(_wide(right), right.mark)}, 0)"
            mark = marks.of_quotient(left.mark, right.mark)
            return Value(_whole(f"{_wide(left)} // {divisor}"), Kind.INTEGER, algebra.COMPUTED, reader.node, mark=mark, number=number)
        if sign == "/":
            never_zero = isinstance(right.form, algebra.Constant | algebra.Divisor) and right.form != algebra.Constant(Fraction(0))
            divisor = marks.clear(right.sql, right.mark)
            sql = f"({left.sql} / {divisor})" if never_zero else f"({left.sql} / NULLIF({divisor}, 0))"
            mark = marks.of_quotient(left.mark, right.mark)
            number = number_types.average_type(number, outputs.session.dialect)
            return Value(sql, Kind.REAL, algebra.divide(left.form, right.form), reader.node, mark=mark, number=number)
        if sign == "*":
            form, mark = algebra.multiply(left.form, right.form), marks.worst(left.mark, right.mark)
        else:
            form = algebra.add(left.form, right.form if sign == "+" else algebra.multiply(right.form, algebra.Constant(Fraction(-1))))
            mark = marks.of_sum(left.mark, right.mark)
        if left.kind is right.kind is Kind.INTEGER:
            return Value(_whole(f"{_wide(left)} {sign} {_wide(right)}"), Kind.INTEGER, form, reader.node, mark=mark, number=number)
        return Value(f"({left.sql} {sign} {right.sql})", Kind.REAL, form, reader.node, mark=mark, number=number)

    return bind


def _negate(outputs: Outputs, reader: Reader) -> Value:
    value = outputs.number(reader.node_of("this"))
    form = algebra.multiply(value.form, algebra.Constant(Fraction(-1)))
    literal = value.constant
    if literal is not None and isinstance(literal.value, int | Fraction):
        literal = Literal(-literal.value, literal.kind)
        return Value(literal_sql(literal), value.kind, form, reader.node, constant=literal, number=value.number)
    sql = _whole(f"- {_wide(value)}") if value.kind is Kind.INTEGER else f"(- {value.sql})"
    return Value(sql, value.kind, form, reader.node, mark=value.mark, number=value.number)


def _comparison(sign: str) -> Handler:
    def bind(outputs: Outputs, reader: Reader) -> Value:
        sides = [outputs.bind(node) for node in compared(reader, outputs.session)]
        return _compared(outputs, reader.node, sign, sides)

    return bind


def _compared(outputs: Outputs, node: exp.Expr, sign: str, sides: list[Value]) -> Value:
    for side in sides:
        if side.kind is None:
            raise outputs.session.refuse("null-constant", "NULL is not allowed here", node=side.node, hint="test for it with IS NULL")
    (left, right), _ = outputs.alike(sides)
    return Value(f"({left.sql} {sign} {right.sql})", Kind.BOOLEAN, algebra.COMPUTED, node)


def _between(outputs: Outputs, reader: Reader) -> Value:
    value, low, high = (outputs.bind(reader.node_of(name)) for name in ("this", "low", "high"))
    above, below = _compared(outputs, reader.node, ">=", [value, low]), _compared(outputs, reader.node, "<=", [value, high])
    return Value(f"({above.sql} AND {below.sql})", Kind.BOOLEAN, algebra.COMPUTED, reader.node)


def _in(outputs: Outputs, reader: Reader) -> Value:
    reader.require_absent("field", "unnest")
    value, listed, query = outputs.bind(reader.node_of("this")), reader.many("expressions"), reader.optional("query")
    if query is not None:
        answer = outputs.scalar_subquery(query, listed=True)
        outputs.alike([value, answer])
        return Value(f"({value.sql} IN {answer.sql})", Kind.BOOLEAN, algebra.COMPUTED, reader.node)
    limit = outputs.session.settings.list_items_max
    if len(listed) > limit:
        raise outputs.session.refuse("list-too-long", f"an IN list may have at most {limit} items", node=reader.node)
    options = [outputs.bind(item) for item in listed]
    for option in options:
        if option.constant is None or option.kind is None:
            message = "an IN list takes only constants other than NULL"
            raise outputs.session.refuse("list-not-constant", message, node=option.node, hint="use = and OR, or IS NULL")
    (value, *options), _ = outputs.alike([value, *options])
    sql = f"({value.sql} IN ({', '.join(option.sql for option in options)}))"
    return Value(sql, Kind.BOOLEAN, algebra.COMPUTED, reader.node)


def _like(outputs: Outputs, reader: Reader) -> Value:
    """LIKE and ILIKE with a constant pattern."""
    negated, value, pattern = reader.flag("negate"), outputs.bind(reader.node_of("this")), outputs.bind(reader.node_of("expression"))
    if value.kind is not Kind.TEXT or pattern.constant is None or pattern.kind is not Kind.TEXT:
        raise outputs.session.refuse("type-mismatch", "LIKE takes text and a constant pattern", node=reader.node)
    word = "ILIKE" if type(reader.node) is exp.ILike else "LIKE"
    sql = f"({value.sql} {'NOT ' if negated else ''}{word} {pattern.sql})"
    return Value(sql, Kind.BOOLEAN, algebra.COMPUTED, reader.node)


def _connective(word: str) -> Handler:
    def bind(outputs: Outputs, reader: Reader) -> Value:
        parts = [outputs.condition(operand, f"an operand of {word}") for operand in chain(reader, outputs.session)]
        sql = f" {word} ".join(part.sql for part in parts)
        return Value(f"({sql})", Kind.BOOLEAN, algebra.COMPUTED, reader.node)

    return bind


def _not(outputs: Outputs, reader: Reader) -> Value:
    value = outputs.condition(reader.node_of("this"), "the operand of NOT")
    return Value(f"(NOT {value.sql})", Kind.BOOLEAN, algebra.COMPUTED, reader.node)


def _is(outputs: Outputs, reader: Reader) -> Value:
    value, tested = outputs.bind(reader.node_of("this")), outputs.bind(reader.node_of("expression"))
    if tested.kind is not None:
        raise outputs.session.refuse("sql-unsupported", "only IS NULL is supported here", node=reader.node, hint="compare with =")
    return Value(f"({value.sql} IS NULL)", Kind.BOOLEAN, algebra.COMPUTED, reader.node)


def _listed(name: str) -> Handler:
    """COALESCE, LEAST and GREATEST."""

    def bind(outputs: Outputs, reader: Reader) -> Value:
        if name != "COALESCE":
            reader.flag("ignore_nulls")
        values = [outputs.bind(node) for node in (reader.node_of("this"), *reader.many("expressions"))]
        values, kind = outputs.alike(values)
        if name != "COALESCE" and kind not in _NUMBERS:
            raise outputs.session.refuse("type-mismatch", f"{name} takes numbers", node=reader.node)
        sql = f"{name}({', '.join(value.sql for value in values)})"
        if name == "COALESCE":
            mark = marks.of_first([(value.sql, value.mark) for value in values])
        else:
            mark = marks.worst(*(value.mark for value in values))
            sql = marks.unless_withheld(sql, mark)  # the engine's function ignores NULL
        number = number_types.widest([value.number_type for value in values if value.kind is not None])
        return Value(sql, kind, algebra.COMPUTED, reader.node, mark=mark, number=number)

    return bind


def _null_if(outputs: Outputs, reader: Reader) -> Value:
    values = [outputs.bind(reader.node_of("this")), outputs.bind(reader.node_of("expression"))]
    (left, right), _ = outputs.alike(values)
    is_divisor = isinstance(left.form, LinearOutput) and left.form.shift == 0 and right.form == algebra.Constant(Fraction(0))
    form: algebra.Form = algebra.COMPUTED
    if is_divisor and isinstance(left.form, LinearOutput):
        form = algebra.Divisor(left.form)
    return Value(f"NULLIF({left.sql}, {right.sql})", left.kind, form, reader.node, mark=left.mark, number=left.number)


def _one(name: str) -> Handler:
    """ABS, FLOOR and CEIL."""

    def bind(outputs: Outputs, reader: Reader) -> Value:
        value = outputs.number(reader.node_of("this"))
        if value.kind is Kind.INTEGER:
            number = _rounded_type(outputs, value, _ROUNDINGS.get(name))
            return Value(_whole(f"{name}({_wide(value)})"), value.kind, algebra.COMPUTED, reader.node, mark=value.mark, number=number)
        return Value(f"{name}({value.sql})", value.kind, algebra.COMPUTED, reader.node, mark=value.mark, number=value.number)

    return bind


_ROUNDINGS = {"FLOOR": Function.FLOOR, "CEIL": Function.CEILING}


def _rounded_type(outputs: Outputs, value: Value, function: Function | None) -> NumberType | None:
    """The type of a rounded number."""
    number = value.number_type
    if function is None or number not in number_types.INTEGERS:
        return value.number
    return number_types.rounded_integer(function, number, outputs.session.dialect)


def _where(name: str, condition: str) -> Handler:
    """A function of reals that is NULL where ``condition`` does not hold of its argument."""

    def bind(outputs: Outputs, reader: Reader) -> Value:
        argument = outputs.number(reader.node_of("this"))
        value = f"CAST({argument.sql} AS DOUBLE)"
        sql = f"{name}(CASE WHEN {value} {condition} THEN {value} END)"
        return Value(sql, Kind.REAL, algebra.COMPUTED, reader.node, mark=argument.mark)

    return bind


def _sign(outputs: Outputs, reader: Reader) -> Value:
    value = outputs.number(reader.node_of("this"))
    number = _rounded_type(outputs, value, Function.SIGN) if outputs.session.dialect == "postgres" else None
    return Value(f"CAST(SIGN({value.sql}) AS BIGINT)", Kind.INTEGER, algebra.COMPUTED, reader.node, mark=value.mark, number=number)


def _round(outputs: Outputs, reader: Reader) -> Value:
    value, places = outputs.number(reader.node_of("this")), reader.optional("decimals")
    digits = 0
    if places is not None:
        constant = outputs.bind(places).constant
        if constant is None or not isinstance(constant.value, int) or not 0 <= constant.value <= 9:
            raise outputs.session.refuse("wrong-arguments", "ROUND takes a number of digits from 0 to 9", node=places)
        digits = constant.value
    number = _rounded_type(outputs, value, Function.ROUND)
    return Value(f"ROUND({value.sql}, {digits})", value.kind, algebra.COMPUTED, reader.node, mark=value.mark, number=number)


def _case(outputs: Outputs, reader: Reader) -> Value:
    subject, default = reader.optional("this"), reader.optional("default")
    compared = None if subject is None else outputs.bind(subject)
    conditions, values = [], []
    for node in reader.many("ifs"):
        with outputs.session.reading(node) as branch:
            when, then = branch.node_of("this"), branch.node_of("true")
            if compared is None:
                conditions.append(outputs.condition(when, "a condition of CASE"))
            else:
                conditions.append(_compared(outputs, when, "=", [compared, outputs.bind(when)]))
            values.append(outputs.bind(then))
    if default is not None:
        values.append(outputs.bind(default))
    values, kind = outputs.alike(values)
    branches = " ".join(f"WHEN {when.sql} THEN {then.sql}" for when, then in zip(conditions, values, strict=False))
    otherwise = f" ELSE {values[-1].sql}" if default is not None else ""
    mark = marks.of_case([when.sql for when in conditions], [value.mark for value in values])
    number = number_types.widest([value.number_type for value in values if value.kind is not None])
    return Value(f"(CASE {branches}{otherwise} END)", kind, algebra.COMPUTED, reader.node, mark=mark, number=number)


def _cast(outputs: Outputs, reader: Reader) -> Value:
    to, inner = reader.node_of("to"), reader.node_of("this")
    places = decimal_places(outputs.scalars, to) if outputs.session.typed_numbers else None
    if places is not None:
        value = outputs.number(inner)
        sql = f"ROUND(CAST({value.sql} AS DOUBLE), {places[1]})"
        return Value(sql, Kind.REAL, algebra.COMPUTED, reader.node, mark=value.mark, number=NumberType.DECIMAL)
    target = type_name(outputs.scalars, to)
    if target in (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ):
        dated = outputs.bind(inner)
        if dated.kind in (Kind.DATE, Kind.TIMESTAMP) and dated.constant is None:
            return dates.cast(dated, Kind.DATE if target is exp.DType.DATE else Kind.TIMESTAMP, reader.node)
        return _date_constant(outputs, reader.node, target, dated)
    value = outputs.number(inner)
    if target in (exp.DType.DOUBLE, exp.DType.FLOAT):
        return Value(f"CAST({value.sql} AS DOUBLE)", Kind.REAL, value.form, reader.node, mark=value.mark)
    if target is exp.DType.DECIMAL and outputs.session.dialect == "postgres":
        return Value(f"CAST({value.sql} AS DOUBLE)", Kind.REAL, value.form, reader.node, mark=value.mark, number=NumberType.DECIMAL)
    if target in (exp.DType.BIGINT, exp.DType.INT):
        # decimals round halves away from 0, doubles to even
        is_decimal = value.number_type is NumberType.DECIMAL and outputs.session.typed_numbers
        whole = f"ROUND({value.sql})" if is_decimal else value.sql
        number = NumberType.BIGINT if target is exp.DType.BIGINT else NumberType.INTEGER
        return Value(f"TRY_CAST({whole} AS BIGINT)", Kind.INTEGER, algebra.COMPUTED, reader.node, mark=value.mark, number=number)
    hint = "CAST to DOUBLE or BIGINT"
    raise outputs.session.refuse("cast-unsupported", "an answer cannot be cast to this type", node=reader.node, hint=hint)


def _date_constant(outputs: Outputs, node: exp.Expr, target: exp.DType, value: Value) -> Value:
    if value.constant is None or not isinstance(value.constant.value, str):
        raise outputs.session.refuse("cast-unsupported", "an answer cannot be cast to a date", node=node)
    read = constants.date if target is exp.DType.DATE else constants.timestamp
    literal = read(value.constant.value, outputs.session, value.node)
    return Value(literal_sql(literal), literal.kind, algebra.COMPUTED, node, constant=literal)


_HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Column: _column,
    **dict.fromkeys((*CONSTANTS, *MOMENTS), _constant),
    exp.Paren: _paren,
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _arithmetic("/"),
    exp.Neg: _negate,
    **{node: _comparison(called.value) for node, called in COMPARISONS.items()},
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.And: _connective("AND"),
    exp.Or: _connective("OR"),
    exp.Not: _not,
    exp.Is: _is,
    exp.Coalesce: _listed("COALESCE"),
    exp.Least: _listed("LEAST"),
    exp.Greatest: _listed("GREATEST"),
    exp.Nullif: _null_if,
    exp.Abs: _one("ABS"),
    exp.Floor: _one("FLOOR"),
    exp.Ceil: _one("CEIL"),
    exp.Round: _round,
    exp.Extract: dates.extract,
    exp.Year: dates.part("year"),
    exp.Quarter: dates.part("quarter"),
    exp.Month: dates.part("month"),
    exp.Day: dates.part("day"),
    exp.DayOfWeek: dates.part("dow"),
    exp.TimestampTrunc: dates.truncate,
    exp.DateTrunc: dates.truncate,
    exp.Sign: _sign,
    exp.Sqrt: _where("SQRT", ">= 0"),
    exp.Ln: _where("LN", "> 0"),
    exp.Exp: _where("EXP", f"<= {EXP_LIMIT}"),
    exp.Case: _case,
    exp.Cast: _cast,
}
