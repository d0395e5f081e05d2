"""Scalar expressions over protected rows: from the parser's tree to the kernel's closed list, each with the domain the kernel gives it.

This module has the parts that they share; ``operators``, ``functions``, ``dates`` and ``texts`` hold one handler for each class of node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import BooleanDomain, KeyDomain, Kind, NumberType, union, with_null
from lapwing.kernel.expressions import Call, Case, Column, Function, Literal
from lapwing.kernel.functions import result_domain
from lapwing.kernel.stability import domain_of
from lapwing.sql.scalars import number_types
from lapwing.sql.scalars.scope import Qualifier, Scope
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text import constants
from lapwing.sql.text.reader import Reader, Session

PARTS_MAX = 10_000
"""Most parts of one expression over rows, fully expanded; a long list of declared texts needs several thousand."""


@dataclass(frozen=True, slots=True)
class Handler:
    """How nodes of one class are bound, and the names under which the function may be called (empty: it is not a function)."""

    bind: Callable[[Scalars, Reader], Typed]
    names: frozenset[str] = frozenset()


def function(bind: Callable[[Scalars, Reader], Typed], *names: str) -> Handler:
    """A handler of a function. The parser has one class for several names; only names that were checked to mean the same are accepted."""
    return Handler(bind, frozenset(names))


@dataclass(slots=True)
class Scalars:
    """Binds scalar expressions within one scope."""

    session: Session
    scope: Scope
    handlers: Mapping[type[exp.Expr], Handler]
    aliases: dict[str, exp.Expr] = field(default_factory=dict, kw_only=True)
    """Expressions of SELECT by alias, in lower case, for use elsewhere in it; filled after WHERE is read, which sees no alias."""
    answers: Callable[[exp.Expr], Typed] | None = field(default=None, kw_only=True)
    """Binds a scalar subquery that is an answer; None if none is allowed."""
    _meant: dict[str, Typed | None] = field(default_factory=dict, kw_only=True)
    """The aliases bound so far; None while one is being bound."""

    def alias(self, name: str) -> Typed | None:
        """The expression of an alias of SELECT; None if there is none, or if it would refer to itself."""
        lowered = name.lower()
        if lowered not in self.aliases or (lowered in self._meant and self._meant[lowered] is None):
            return None
        if lowered not in self._meant:
            self._meant[lowered] = None
            try:
                self._meant[lowered] = self.bind(self.aliases[lowered])
            finally:
                if self._meant[lowered] is None:
                    del self._meant[lowered]
        return self._meant[lowered]

    def bind(self, node: exp.Expr) -> Typed:
        """The expression of a node, or refuse."""
        handler = self.handlers.get(type(node))
        if handler is None and type(node) is exp.Subquery and self.answers is not None:
            return self.answers(node)
        if handler is None:
            raise unsupported(self.session, node)
        self.check_name(node, handler.names)
        with self.session.reading(node) as reader:
            return handler.bind(self, reader)

    def check_name(self, node: exp.Expr, names: frozenset[str]) -> None:
        """Refuse a function under a name that is not accepted."""
        token = self.session.source.name_token(node)
        if names and token is not None and token.text.upper() not in names:
            raise unknown_function(self.session, node)

    def condition(self, node: exp.Expr, what: str) -> Typed:
        """An expression that is true, false or NULL."""
        value = self.bind(node)
        if not isinstance(value.domain, BooleanDomain):
            message = f"{what} must be true or false, not a {value.kind.value}"
            raise self.session.refuse("type-mismatch", message, node=node, hint="compare it with a value")
        return value

    def call(self, node: exp.Expr, called: Function, *arguments: Typed) -> Typed:
        """A function of the closed list, with the domain of its result."""
        for argument in arguments:
            if argument.is_null:
                raise self.session.refuse("null-constant", "NULL is not allowed here", node=argument.node, hint="test for it with IS NULL")
        folded = constants.folded(called, tuple(argument.expression for argument in arguments))
        if folded is not None and not self.session.typed_numbers:
            return self.constant(node, folded)
        if folded is not None and all(map(number_types.is_exact, arguments)):
            return number_types.typed_as(self.constant(node, folded), NumberType.DECIMAL)
        typed = number_types.called(self, node, called, arguments) if self.session.typed_numbers else None
        return self.plain_call(node, called, *arguments) if typed is None else typed

    def plain_call(self, node: exp.Expr, called: Function, *arguments: Typed) -> Typed:
        """A call of a function of the closed list, without regard to types of numbers."""
        expressions = tuple(argument.expression for argument in arguments)
        try:
            domain = result_domain(called, tuple(argument.domain for argument in arguments), expressions)
        except Refused as error:
            if error.code == "type-mismatch" and any(isinstance(argument.domain, KeyDomain) for argument in arguments):
                error.hint = "identifiers can only be joined on and counted"
            error.span = error.span or self.session.source.span(node)
            raise
        return Typed(Call(called, expressions), domain, node, self._parts(node, arguments))

    def _parts(self, node: exp.Expr, inside: Sequence[Typed]) -> int:
        """Refuse expressions that grow too large when expanded: nested functions that each use an argument twice."""
        parts = 1 + sum(argument.parts for argument in inside)
        if parts > PARTS_MAX:
            raise self.session.refuse("statement-too-large", f"once expanded, this expression has more than {PARTS_MAX} parts", node=node)
        return parts

    def constant(self, node: exp.Expr, literal: Literal) -> Typed:
        """A constant; refused here if it is out of range."""
        return Typed(literal, domain_of(literal, {}), node)

    def in_kind_of(self, value: Typed, other: Typed) -> Typed:
        """``value`` converted for use with ``other``: NULL and text constants take the type of the other operand."""
        if value.is_null and not other.is_null:
            null = self.constant(value.node, Literal(None, other.kind))
            return replace(null, domain=with_null(other.domain, nullable=True)) if other.kind is Kind.KEY else null
        if isinstance(value.expression, Literal):
            meant = constants.beside(value.expression, other.kind, self.session, value.node)
            return value if meant == value.expression else self.constant(value.node, meant)
        return value

    def alike(self, values: list[Typed]) -> list[Typed]:
        """The values, with constants in the kind of the first value that is not a constant."""
        leader = next((value for value in values if not isinstance(value.expression, Literal)), None)
        leader = leader or next((value for value in values if not value.is_null), None)
        return values if leader is None else [self.in_kind_of(value, leader) for value in values]

    def case(self, node: exp.Expr, branches: list[tuple[Typed, Typed]], otherwise: Typed | None) -> Typed:
        """First branch whose condition is true; NULL where none is and there is no ELSE."""
        null = self.constant(node, Literal(None, Kind.BOOLEAN))
        values = self.alike([*(value for _, value in branches), null if otherwise is None else otherwise])
        if all(value.is_null for value in values):
            raise self.session.refuse("null-constant", "all results of this CASE are NULL", node=node)
        conditions = [condition for condition, _ in branches]
        if not self.session.typed_numbers:
            return self._case(node, conditions, values)
        values, steps, number = number_types.chosen(self, node, values)
        chosen = self._case(node, conditions, values)
        return number_types.typed_as(chosen, number) if steps is None else number_types.of_steps(self, node, chosen, steps)

    def _case(self, node: exp.Expr, conditions: Sequence[Typed], values: Sequence[Typed]) -> Typed:
        domain = values[-1].domain
        for value in values[:-1]:
            domain = union(domain, value.domain)
        pairs = tuple((condition.expression, value.expression) for condition, value in zip(conditions, values, strict=False))
        return Typed(Case(pairs, values[-1].expression), domain, node, self._parts(node, [*conditions, *values]))


def unsupported(session: Session, node: exp.Expr) -> Refused:
    """The refusal of a node whose class is not supported here."""
    if isinstance(node, exp.Window):
        return session.refuse(
            "window-unsupported",
            "a window over rows must be a column of a subquery and stay within one unit",
            node=node,
            hint="move it into a subquery in FROM, with PARTITION BY the unit; or use GROUP BY, then a window over the answer",
        )
    if isinstance(node, exp.WithinGroup):
        hint = "use PERCENTILE_CONT or PERCENTILE_DISC"
        return session.refuse("aggregate-unsupported", "this ordered aggregate is not supported here", node=node, hint=hint)
    if isinstance(node, exp.AggFunc | exp.Filter):
        hint = "aggregates are allowed in SELECT, HAVING and ORDER BY, not inside other aggregates or functions of rows"
        return session.refuse("aggregate-misplaced", "an aggregate is not allowed here", node=node, hint=hint)
    if isinstance(node, exp.Subquery | exp.Query | exp.Exists):
        message = "a subquery inside an expression over rows must be one answer, and cannot refer to rows outside it"
        hint = "JOIN it instead: GROUP BY the columns that it compares with outer rows, and join on these"
        if isinstance(node, exp.Exists):
            hint = "EXISTS is allowed in WHERE, alone or combined with other conditions by AND"
        return session.refuse("subquery-private", message, node=node, hint=hint)
    if isinstance(node, exp.Distinct):
        hint = "COUNT(DISTINCT ...) of the unit's column is supported"
        return session.refuse("distinct-unsupported", "DISTINCT is not supported here", node=node, hint=hint)
    if isinstance(node, exp.Star):
        return session.refuse("rows-not-aggregates", "rows are never shown", node=node, hint="ask for aggregates such as COUNT(*)")
    if isinstance(node, exp.Placeholder | exp.Parameter):
        return session.refuse("parameter-unsupported", "parameters are not supported", node=node, hint="write the value into the statement")
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
        hint = "they are allowed in GROUP BY, not inside each other"
        return session.refuse("groups-unsupported", "ROLLUP, CUBE and GROUPING SETS are not allowed here", node=node, hint=hint)
    if isinstance(node, exp.Func):
        return unknown_function(session, node)
    return session.refuse("sql-unsupported", "this is not supported here", node=node)


_MOMENT_INSTEAD = "use CURRENT_DATE or NOW(), the time of the request, or write a date such as DATE '2025-06-30'"
_INSTEAD = {
    "regexp": "use REGEXP_MATCHES, REGEXP_FULL_MATCH, REGEXP_EXTRACT or REGEXP_REPLACE",
    "random": "leave it out: answers never come from a sample, and Lapwing adds the noise itself",
    "rand": "leave it out: answers never come from a sample, and Lapwing adds the noise itself",
    "current_time": _MOMENT_INSTEAD,
    "localtime": _MOMENT_INSTEAD,
    "clock_timestamp": _MOMENT_INSTEAD,
}
"""Replacements of functions, by the start of their names."""


def unknown_function(session: Session, node: exp.Expr) -> Refused:
    """The refusal of a function that is not on the list."""
    name = session.source.called_name(node) or session.source.word(node)
    spoken = f"the function {name.lower()}" if name else "this"
    hint = next((hint for start, hint in _INSTEAD.items() if name.lower().startswith(start)), "the SQL reference lists those that are")
    return session.refuse("function-unsupported", f"{spoken} is not supported", node=node, hint=hint)


def column(scalars: Scalars, node: exp.Expr, name: str, table: Qualifier | None) -> Typed:
    """A column of the scope, or refuse."""
    scope, session = scalars.scope, scalars.session
    if table is not None and not scope.has_item(table):
        raise session.refuse("unknown-table", f"there is no table {table.table!r} in this FROM", node=node)
    matches = scope.lookup(name, table)
    aliased = scalars.alias(name) if not matches and table is None else None
    if aliased is not None:
        return replace(aliased, node=node)
    if not matches:
        # where a table was named, a name without its table would be the name that was just refused
        spelt = {f"{item.name}.{known}" if table else known: known for item in scope.items for known in sorted(item.columns)}
        close = get_close_matches(name.lower(), sorted(set(spelt.values())), n=1)
        meant = next((text for text, known in spelt.items() if [known] == close), "")
        where = f"in {table.table}" if table else "here"
        hint = f"did you mean {meant!r}?" if meant else ""
        raise session.refuse("unknown-column", f"there is no column {name!r} {where}", node=node, hint=hint)
    if len(matches) > 1:
        raise session.refuse("ambiguous-column", f"several tables have a column {name!r}", node=node, hint="write table.column")
    if matches[0] in scope.virtual:
        hint = "join on it, or count its distinct values"
        raise session.refuse("type-mismatch", "the unit can only be joined on and counted", node=node, hint=hint)
    if matches[0] in scope.computed:
        return computed_column(scalars, node, matches[0])
    scope.used.add(matches[0])
    return Typed(Column(matches[0]), scope.columns[matches[0]], node)


def computed_column(scalars: Scalars, node: exp.Expr, name: str) -> Typed:
    """A column that is an expression, not a column of a relation."""
    found = scalars.scope.computed[name]
    scalars.session.supposed += found.is_supposed
    return Typed(found.expression, scalars.scope.columns[name], node, found.parts)


def column_name(session: Session, reader: Reader) -> tuple[str, Qualifier | None]:
    """Name and qualifier of a column node."""
    name, table = identifier(session, reader.node_of("this")), reader.optional("table")
    in_schema = read_schema(session, reader)
    return name, None if table is None else Qualifier(identifier(session, table), in_schema)


def is_star(node: exp.Expr) -> bool:
    """Whether a node is * or t.*."""
    return type(node) is exp.Star or (type(node) is exp.Column and type(node.this) is exp.Star)


def read_star(session: Session, node: exp.Expr) -> tuple[Qualifier | None, frozenset[str]]:
    """The qualifier of a star, and the names that EXCLUDE leaves out, in lower case. Pre: ``is_star``."""
    with session.reading(node) as reader:
        if type(node) is exp.Star:
            return None, _excluded(session, reader)
        with session.reading(reader.node_of("this")) as star:
            excluded = _excluded(session, star)
            in_schema = read_schema(session, reader)
        return Qualifier(identifier(session, reader.node_of("table")), in_schema), excluded


def _excluded(session: Session, reader: Reader) -> frozenset[str]:
    names = set()
    for node in reader.many("except_"):
        with session.reading(node) as column:
            name, table = column_name(session, column) if type(node) is exp.Column else ("", None)
        if not name or table is not None:
            raise session.refuse("sql-unsupported", "EXCLUDE takes only names of columns", node=node, hint="SELECT * EXCLUDE (cost)")
        names.add(name.lower())
    return frozenset(names)


def require_excluded(session: Session, node: exp.Expr, excluded: frozenset[str], names: Collection[str]) -> None:
    """Refuse EXCLUDE of a column that is not there."""
    missing = sorted(excluded - set(names))
    if missing:
        raise session.refuse("unknown-column", f"there is no column {missing[0]!r} here", node=node)


def qualifier(node: exp.Expr) -> Qualifier | None:
    """The qualifier of a column's name, without reading it."""
    return Qualifier(node.text("table"), node.args.get("db") is not None) if node.args.get("table") is not None else None


def read_schema(session: Session, reader: Reader) -> bool:
    """Whether a table's name has a schema; a schema other than this data set's is refused."""
    catalogue, schema = reader.optional("catalog"), reader.optional("db")
    for part, known in ((catalogue, session.schemas.catalogues), (schema, session.schemas.schemas)):
        if part is not None and identifier(session, part).lower() not in known:
            hint = f"leave it out, or write {known[0]}"
            raise session.refuse("table-unsupported", "there is no schema with this name in the data set", node=part, hint=hint)
    return schema is not None


def identifier(session: Session, node: exp.Expr) -> str:
    """The text of a name."""
    if type(node) is exp.Star:
        raise unsupported(session, node)
    if type(node) is not exp.Identifier:
        hint = "write the name of a table or column"
        raise session.refuse("sql-unsupported", "a plain name is needed here", node=node, hint=hint)
    with session.reading(node) as reader:
        reader.flag("quoted")  # names are compared without regard to case, quoted or not
        token = session.source.name_token(node)
        if token is not None and session.source.text[token.start] == "'":
            raise session.refuse("sql-syntax", "a quoted text cannot be a name", node=node, hint='names are quoted with "')
        return reader.word("this")
