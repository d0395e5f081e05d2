"""A whole statement: SELECT, its clauses, and the split into what touches protected rows and what is done with the noisy answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from lapwing.catalog.settings import Settings
from lapwing.errors import Refused, Span
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Expression, Function
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Filter, Relation
from lapwing.sql import algebra, constants
from lapwing.sql.aggregates import Aggregates
from lapwing.sql.census import take_census
from lapwing.sql.handlers import HANDLERS
from lapwing.sql.parse import deep_recursion, parse
from lapwing.sql.post import Outputs, Value
from lapwing.sql.reader import Reader, Session
from lapwing.sql.refusals import span_of
from lapwing.sql.scalars import Scalars, Typed, column_name, identifier, unsupported
from lapwing.sql.source import Source
from lapwing.sql.tables import Tables, columns_of
from lapwing.statements import Output, PostProcess, PrivateQuery, Statement

_T = TypeVar("_T")


def bind_statement(text: str, facts: Facts, *, settings: Settings, unit_columns: Mapping[str, str], dialect: str) -> Statement:
    """See ``lapwing.sql.bind``."""
    with deep_recursion(settings.expression_depth_max):
        try:
            source, tree = parse(text, settings=settings, dialect=dialect)
            return bind_tree(source, tree, facts, settings=settings, unit_columns=unit_columns)
        except RecursionError as error:
            message = f"nested deeper than {settings.expression_depth_max} levels"
            raise Refused("expression-too-deep", message, span=span_of(text, 0, len(text))) from error


def bind_tree(source: Source, tree: exp.Select, facts: Facts, *, settings: Settings, unit_columns: Mapping[str, str]) -> Statement:
    """The statement of a parsed tree, or refuse. Post: every node was read, and every word of the text is in some node."""
    session = Session(source, settings)
    statement = Binder(session, Tables(session, facts, unit_columns, HANDLERS)).bind(tree)
    for node in tree.walk():
        if id(node) not in session.read:
            raise session.refuse("sql-unsupported", "this part of the statement has no effect", node=node)
    take_census(source, tree)
    return statement


@dataclass(frozen=True, slots=True)
class Binder:
    """Reads one SELECT."""

    session: Session
    tables: Tables

    def bind(self, tree: exp.Select) -> Statement:
        """The statement, or refuse."""
        with self.session.reading(tree) as reader:
            return self._select(reader)

    def _select(self, reader: Reader) -> Statement:
        tree = reader.node
        reader.require_absent("with_", "distinct", "windows", "qualify")
        scalars, conditions = self.tables.read(reader.optional("from_"), reader.many("joins"), tree)
        where = reader.optional("where")
        if where is not None:
            with self.session.reading(where) as clause:
                conditions.append(scalars.condition(clause.node_of("this"), "WHERE"))
        items = [_item(self.session, node) for node in reader.many("expressions")]
        if not items:
            raise self.session.refuse("sql-syntax", "nothing is selected", node=tree)
        keys = self._keys(scalars, reader.optional("group"), items)
        aggregates = Aggregates(scalars)
        outputs = Outputs(scalars, aggregates, tuple((key.expression, key.kind) for key in keys), {})
        values = [outputs.bind(item.node) for item in items]
        names = _distinct([item.name for item in items])
        named = [Output(name, value.total_sql, algebra.derivation(value.form)) for name, value in zip(names, values, strict=True)]
        outputs.aliases = {item.alias.lower(): value for item, value in reversed(list(zip(items, values, strict=True))) if item.alias}
        having = self._having(outputs, reader.optional("having"))
        order_by = self._order(outputs, reader.optional("order"), values)
        limit, offset = self._count(reader.optional("limit")), self._count(reader.optional("offset"))
        if not aggregates.found:
            hint = "ask for an aggregate such as COUNT(*)"
            raise self.session.refuse("rows-not-aggregates", "the statement asks for no aggregate", node=items[0].node, hint=hint)
        private = PrivateQuery(
            source=_filtered(scalars, conditions, tree),
            keys=tuple((f"k{number}", key.expression) for number, key in enumerate(keys)),
            aggregates=tuple(aggregates.found),
        )
        post = PostProcess(tuple(named), having, order_by, limit, offset or 0)
        return Statement(self.session.source.text, private, post, self._spans(keys, aggregates))

    def _spans(self, keys: list[Typed], aggregates: Aggregates) -> tuple[tuple[str, Span], ...]:
        found = [(f"k{number}", self.session.source.span(key.node)) for number, key in enumerate(keys)]
        return (*found, *((f"a{number}", span) for number, span in enumerate(aggregates.spans)))

    # -- GROUP BY -------------------------------------------------------------------------------------------------------------------

    def _keys(self, scalars: Scalars, group: exp.Expr | None, items: list[_Item]) -> list[Typed]:
        if group is None:
            return []
        if type(group) is not exp.Group:
            raise unsupported(self.session, group)
        with self.session.reading(group) as reader:
            reader.require_absent("rollup", "cube", "grouping_sets", "all")
            found: dict[Expression, Typed] = {}
            for node in reader.many("expressions"):
                key = self._key(scalars, node, items)
                found.setdefault(key.expression, key)
            return list(found.values())

    def _key(self, scalars: Scalars, node: exp.Expr, items: list[_Item]) -> Typed:
        key = scalars.bind(self._meant(scalars, node, items))
        if key.kind is Kind.KEY:
            hint = "group by something that many units share"
            raise self.session.refuse("groups-by-unit", "grouping by an identifier would publish it", node=node, hint=hint)
        if not columns_of(key.expression):
            raise self.session.refuse("key-constant", "a constant makes no groups", node=node, hint="group by a column")
        return key

    def _meant(self, scalars: Scalars, node: exp.Expr, items: list[_Item]) -> exp.Expr:
        """The expression behind an ordinal or an alias; a column of that name comes before an alias."""
        if type(node) is exp.Literal and not node.is_string:
            return _nth(self.session, node, items).node
        if type(node) is exp.Column:
            with self.session.reading(node) as reader:
                name, table = column_name(self.session, reader)
            if table is None and not scalars.scope.lookup(name, None):
                return next((item.node for item in items if item.alias.lower() == name.lower()), node)
        return node

    # -- HAVING, ORDER BY, LIMIT ----------------------------------------------------------------------------------------------------

    def _having(self, outputs: Outputs, having: exp.Expr | None) -> str | None:
        if having is None:
            return None
        with self.session.reading(having) as reader:
            return outputs.condition(reader.node_of("this"), "HAVING").total_sql

    def _order(self, outputs: Outputs, order: exp.Expr | None, values: list[Value]) -> tuple[str, ...]:
        if order is None:
            return ()
        if type(order) is not exp.Order:
            raise unsupported(self.session, order)
        with self.session.reading(order) as reader:
            return tuple(self._ordered(outputs, node, values) for node in reader.many("expressions"))

    def _ordered(self, outputs: Outputs, node: exp.Expr, values: list[Value]) -> str:
        if type(node) is not exp.Ordered:
            raise unsupported(self.session, node)
        with self.session.reading(node) as reader:
            inner, descending, first = reader.node_of("this"), reader.flag("desc"), reader.flag("nulls_first")
            if type(inner) is exp.Literal and not inner.is_string:
                value = _nth(self.session, inner, values)
            else:
                value = self._sorted_by(outputs, inner)
                if value.constant is not None:
                    raise self.session.refuse("sql-unsupported", "a constant gives no order", node=inner, hint="order by a column")
        return f"{value.total_sql} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"

    def _sorted_by(self, outputs: Outputs, node: exp.Expr) -> Value:
        """In ORDER BY an alias comes before a column of that name."""
        if type(node) is exp.Column:
            with self.session.reading(node) as reader:
                name, table = column_name(self.session, reader)
            if table is None and name.lower() in outputs.aliases:
                return outputs.aliases[name.lower()]
        return outputs.bind(node)

    def _count(self, clause: exp.Expr | None) -> int | None:
        """The number of LIMIT or OFFSET."""
        if clause is None:
            return None
        if type(clause) not in (exp.Limit, exp.Offset):
            raise unsupported(self.session, clause)
        with self.session.reading(clause) as reader:
            node = reader.node_of("expression")
            return _whole_number(self.session, node)


@dataclass(frozen=True, slots=True)
class _Item:
    """One expression of SELECT: the node, its alias (or empty), and the name it has in the answer."""

    node: exp.Expr
    alias: str
    name: str


def _item(session: Session, node: exp.Expr) -> _Item:
    if type(node) is not exp.Alias:
        return _Item(node, "", _readable(session.source, node))
    with session.reading(node) as reader:
        alias = identifier(session, reader.node_of("alias"))
        return _Item(reader.node_of("this"), alias, alias)


def _distinct(names: list[str]) -> list[str]:
    """The names with a number after those that came before, so that each column of the answer can be named."""
    found: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in found:
            candidate, number = f"{name}_{number}", number + 1
        found.append(candidate)
    return found


def _whole_number(session: Session, node: exp.Expr) -> int:
    """A whole number as written, from 0 on."""
    if type(node) is exp.Literal:
        with session.reading(node) as reader:
            is_text, written = reader.flag("is_string"), reader.word("this")
        value = None if is_text else constants.number(written, session, node).value
        if isinstance(value, int) and value < 2**62:
            return value
    raise session.refuse("number-unreadable", "a whole number is needed here", node=node)


def _nth(session: Session, node: exp.Expr, items: Sequence[_T]) -> _T:
    """What an ordinal stands for."""
    number = _whole_number(session, node)
    if not 1 <= number <= len(items):
        raise session.refuse("ordinal-unknown", f"SELECT has {len(items)} columns", node=node)
    return items[number - 1]


def _readable(source: Source, node: exp.Expr) -> str:
    """The name of an output without alias: its text, in small letters but for constants."""
    if type(node) is exp.Column:
        return node.name.lower()
    span = source.span(node)
    tokens = [token for token in source.tokens if span.start <= token.start < span.end]
    pieces: list[str] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.end + 1 < token.start:
            pieces.append(" ")
        written = source.text[token.start : token.end + 1]
        pieces.append(written if token.token_type is TokenType.STRING else written.lower())
    return "".join(pieces)


def _filtered(scalars: Scalars, conditions: list[Typed], node: exp.Expr) -> Relation:
    source = scalars.scope.relation()
    if not conditions:
        return source
    whole = conditions[0] if len(conditions) == 1 else scalars.call(node, Function.AND, *conditions)
    return Filter(source, whole.expression)
