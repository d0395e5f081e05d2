"""Answers used with rows: an answer that decides which rows count is bought first, and its released rows are constants here.

Constants are public, so the rules for rows apply unchanged. A row matches at most one row of a joined answer, because it is joined on
columns that identify the rows of the answer; so a join is a condition on the row, and a column of the answer is a CASE over its keys.

Until the answer is bought, its rows are unknown: its conditions are left out then, and a placeholder constant replaces its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from lapwing.kernel.domains import Kind, with_null
from lapwing.kernel.expressions import Column, Function, Literal, Value
from lapwing.kernel.ir import JoinKind
from lapwing.sql.rows.names import SubqueryResult
from lapwing.sql.rows.tables import Called
from lapwing.sql.scalars.binding import Scalars, column_name, identifier, qualifier
from lapwing.sql.scalars.scope import Computed, Item
from lapwing.sql.scalars.typed import Typed

_SUPPOSED: dict[Kind, Value] = {
    Kind.BOOLEAN: True,
    Kind.INTEGER: 1,
    Kind.REAL: Fraction(1),
    Kind.TEXT: "x",
    Kind.DATE: 1,
    Kind.TIMESTAMP: 1,
}


def among(scalars: Scalars, node: exp.Expr, value: Typed, decided: SubqueryResult, column: int, *, negated: bool = False) -> Typed | None:
    """The condition that a value is, or is not, in a column of an answer; None if it keeps every row or the answer is not bought yet."""
    if decided.rows is None:
        scalars.call(node, Function.IN, value, _beside(scalars, _constant(scalars, node, decided.kinds[column], supposed=True), value))
        scalars.session.supposed += 1
        return None
    listed = [row[column] for row in decided.rows]
    options = {one.expression: one for one in _options(scalars, node, value, decided.kinds[column], listed)}
    if negated and (None in listed or not options):
        return None if not listed else _nothing(scalars, node)
    if not options:
        return _nothing(scalars, node)
    found = scalars.call(node, Function.IN, value, *options.values())
    return scalars.call(node, Function.NOT, found) if negated else found


def single(scalars: Scalars, node: exp.Expr, decided: SubqueryResult) -> Typed:
    """The one value of an answer with one row and one column, NULL without a row. Pre: it has one column and at most one row."""
    if decided.rows is None:
        scalars.session.supposed += 1
        return _constant(scalars, node, decided.kinds[0], supposed=True)
    return _constant(scalars, node, decided.kinds[0], decided.rows[0][0] if decided.rows else None)


def decided_condition(scalars: Scalars, node: exp.Expr, what: str) -> list[Typed]:
    """A condition on rows; none if it depends on an answer that is not bought yet."""
    supposed = scalars.session.supposed
    condition = scalars.condition(node, what)
    return [condition] if scalars.session.supposed == supposed else []


def join_answer(
    scalars: Scalars, called: Called, decided: SubqueryResult, kind: JoinKind, on: Sequence[exp.Expr], using: Sequence[exp.Expr]
) -> tuple[list[Typed], list[exp.Expr]]:
    """Join an answer to rows; returns conditions on the rows, and the conditions of ``on`` that remain to be bound."""
    session = scalars.session
    equal: dict[int, Typed] = {}
    for node in using:
        name = identifier(session, node)
        matches = scalars.scope.lookup(name, None)
        if len(matches) != 1 or name.lower() not in decided.names:
            raise session.refuse("unknown-column", "both sides of the join need this column", node=node)
        scalars.scope.used.add(matches[0])
        equal[decided.names[name.lower()]] = Typed(Column(matches[0]), scalars.scope.columns[matches[0]], node)
        scalars.scope.merged[name.lower()] = matches[0]
    rest = [node for node in on if not _equality(scalars, called, decided, node, equal)]
    if decided.apart is None or not decided.apart <= equal.keys():
        message = "the join must use all keys that the answer is grouped by: otherwise a row could count several times"
        hint = "group the answer by exactly the columns that it is joined on"
        raise session.refuse("join-not-on-key", message, node=called.node, hint=hint)
    answer = _Answer(scalars, called.node, decided, equal, kind)
    conditions = answer.conditions()
    names: dict[str, str] = {}
    for name, number in decided.names.items():
        names[name] = scalars.scope.free_name(called.name or "answer", name)
        column, is_supposed = answer.column(number), decided.rows is None and number not in equal
        scalars.scope.columns[names[name]] = column.domain
        scalars.scope.computed[names[name]] = Computed(column.expression, column.parts, is_supposed)
    scalars.scope.items.append(Item(called.name, names))
    return conditions, rest


def _equality(scalars: Scalars, called: Called, decided: SubqueryResult, node: exp.Expr, equal: dict[int, Typed]) -> bool:
    """Take an equality between a column of the answer and an expression over rows; return False for any other condition."""
    if type(node) is not exp.EQ:
        return False
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if not _is_of(scalars, called, decided, side) or any(
            _is_of(scalars, called, decided, column) for column in other.find_all(exp.Column)
        ):
            continue
        number = decided.names[side.name.lower()]
        if number in equal:
            return False
        with scalars.session.reading(node) as reader:
            reader.node_of("this")
            reader.node_of("expression")
            with scalars.session.reading(side) as column:
                column_name(scalars.session, column)
            equal[number] = scalars.bind(other)
        return True
    return False


def _is_of(scalars: Scalars, called: Called, decided: SubqueryResult, node: exp.Expr) -> bool:
    """Whether a node is a column of the answer, and of nothing else."""
    if type(node) is not exp.Column or node.name.lower() not in decided.names:
        return False
    by = qualifier(node)
    if by is not None:
        return by.table.lower() == called.name and not by.schema
    return not scalars.scope.lookup(node.name, None)


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer joined on some of its columns, each equal to an expression over rows."""

    scalars: Scalars
    node: exp.Expr
    decided: SubqueryResult
    equal: Mapping[int, Typed]
    kind: JoinKind

    def conditions(self) -> list[Typed]:
        """The conditions under which a row matches a row of the answer; none for a LEFT JOIN."""
        listed = [among(self.scalars, self.node, value, self.decided, number) for number, value in self.equal.items()]
        if self.kind is JoinKind.LEFT or self.decided.rows is None:
            return []
        if not self._met():
            return [_nothing(self.scalars, self.node)]
        conditions = [one for one in listed if one is not None]
        if len(self.equal) > 1:  # conditions on single columns allow each value; together only combinations that occur are allowed
            conditions.append(self._any([self._meets(row) for row in self._met()]))
        return conditions

    def column(self, number: int) -> Typed:
        """A column of the answer as an expression over the row."""
        if number in self.equal and (self.kind is JoinKind.INNER or self.decided.rows is None):
            value = self.equal[number]
            return value if self.kind is JoinKind.INNER else Typed(value.expression, with_null(value.domain, True), value.node)
        if self.decided.rows is None:
            return _constant(self.scalars, self.node, self.decided.kinds[number], supposed=True)
        known = [row for row in self._met() if row[number] is not None]
        kind = self.decided.kinds[number]
        if not self.equal:
            return _constant(self.scalars, self.node, kind, known[0][number] if known else None)
        if not known:  # NULL, but not a constant, so that GROUP BY on it still works
            value = next(iter(self.equal.values()))
            never = self.scalars.call(self.node, Function.NOT_EQUAL, value, value)
            return self.scalars.case(self.node, [(never, _constant(self.scalars, self.node, kind, supposed=True))], None)
        branches = [(self._meets(row), _constant(self.scalars, self.node, kind, row[number])) for row in known]
        return self.scalars.case(self.node, branches, None)

    def _met(self) -> list[tuple[Value, ...]]:
        """The rows of the answer that a row can match: NULL equals nothing."""
        return [row for row in self.decided.rows or () if all(row[number] is not None for number in self.equal)]

    def _meets(self, row: tuple[Value, ...]) -> Typed:
        """Whether a row of protected tables matches this row of the answer."""
        equalities = []
        for number, value in self.equal.items():
            (option,) = _options(self.scalars, self.node, value, self.decided.kinds[number], [row[number]])
            equalities.append(self.scalars.call(self.node, Function.EQUAL, value, option))
        return equalities[0] if len(equalities) == 1 else self.scalars.call(self.node, Function.AND, *equalities)

    def _any(self, conditions: list[Typed]) -> Typed:
        return conditions[0] if len(conditions) == 1 else self.scalars.call(self.node, Function.OR, *conditions)


def _options(scalars: Scalars, node: exp.Expr, value: Typed, kind: Kind, listed: Sequence[Value]) -> list[Typed]:
    return [_beside(scalars, _constant(scalars, node, kind, one), value) for one in listed if one is not None]


def _beside(scalars: Scalars, constant: Typed, value: Typed) -> Typed:
    return scalars.in_kind_of(constant, value)


def _constant(scalars: Scalars, node: exp.Expr, kind: Kind, value: Value = None, *, supposed: bool = False) -> Typed:
    """A released value or its placeholder; NULL becomes NULLIF of a constant with itself, since constants are not NULL."""
    if supposed or value is None:
        stands = scalars.constant(node, Literal(_SUPPOSED[kind], kind))
        return stands if supposed else scalars.call(node, Function.NULL_IF, stands, stands)
    return scalars.constant(node, Literal(Fraction(value) if kind is Kind.REAL and not isinstance(value, str) else value, kind))


def _nothing(scalars: Scalars, node: exp.Expr) -> Typed:
    """A condition that no row satisfies."""
    return scalars.constant(node, Literal(False, Kind.BOOLEAN))
