"""IN (SELECT ...) and EXISTS over rows: on the unit, along a declared key, or on the key of a public table.

A condition on rows of other units would let one unit decide which rows of others count; it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from lapwing.kernel.domains import Kind, with_null
from lapwing.kernel.expressions import Column, Function, Literal
from lapwing.kernel.ir import Filter, JoinKind, Relation
from lapwing.kernel.stability import domain_of
from lapwing.sql.rows.joined_items import joined_items
from lapwing.sql.rows.joins import Joins, Links, check_key, conjuncts
from lapwing.sql.rows.names import BindCatalog, Environment, NoisyItem, PublicItem, SubqueryResult
from lapwing.sql.rows.pairs import Pairs
from lapwing.sql.rows.subquery_results import among, decided_condition
from lapwing.sql.rows.tables import Called, Tables
from lapwing.sql.scalars.binding import Scalars, column_name
from lapwing.sql.scalars.scope import Item, PublicPending, Rows, Scope, SemiPending
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader, Session

_OTHER_UNITS = "one unit's rows could decide whether other units' rows count"


@dataclass(frozen=True, slots=True)
class Subqueries:
    """Reads conditions that contain a subquery."""

    session: Session
    known: BindCatalog
    tables: Tables
    joins: Joins
    rows_or_decided: Callable[[exp.Expr, Environment], Rows | SubqueryResult]

    def condition(self, scalars: Scalars, node: exp.Expr, environment: Environment) -> bool:
        """Take a condition of WHERE that is IN or EXISTS with a subquery, perhaps negated; return False for any other."""
        inner, negations = node, 0
        while type(inner) in (exp.Not, exp.Paren):
            negations += type(inner) is exp.Not
            inner = inner.this
        if not (type(inner) is exp.Exists or (type(inner) is exp.In and inner.args.get("query") is not None)):
            return False
        self._mark(node, inner)
        with self.session.reading(inner) as reader:
            if type(inner) is exp.Exists:
                self._exists(scalars, reader, environment, negated=negations % 2 == 1)
            else:
                self._in(scalars, reader, environment, negated=negations % 2 == 1)
        return True

    def _mark(self, node: exp.Expr, inner: exp.Expr) -> None:
        """Mark the brackets and NOTs around a condition as read."""
        while node is not inner:
            with self.session.reading(node) as reader:
                node = reader.node_of("this")

    # -- EXISTS -----------------------------------------------------------------------------------------------------------------------

    def _exists(self, scalars: Scalars, reader: Reader, environment: Environment, *, negated: bool) -> None:
        select = reader.node_of("this")
        if type(select) is exp.Subquery:
            with self.session.reading(select) as brackets:
                select = brackets.node_of("this")
        if type(select) is not exp.Select:
            raise self.session.refuse("subquery-unsupported", "EXISTS takes a single SELECT", node=select)
        with self.session.reading(select) as inner:
            inner.require_absent("with_", "group", "having", "distinct", "limit", "offset")
            self._ignored(inner.many("expressions"))
            inner.optional("order")
            other, links, pairs = self._correlated(scalars, inner, environment)
        links.require(select)
        scalars.scope.used |= {left for left, _ in links.on}
        scalars.scope.joins.append(SemiPending(other, tuple(links.on), negated, pairs.columns(), pairs.condition()))

    def _ignored(self, items: tuple[exp.Expr, ...]) -> None:
        """EXISTS asks whether there are rows, not what is in them; only constants and * may be selected, so nothing is left unread."""
        for item in items:
            if type(item) not in (exp.Literal, exp.Star):
                raise self.session.refuse("sql-unsupported", "write SELECT 1 inside EXISTS", node=item)
            with self.session.reading(item) as reader:
                if type(item) is exp.Literal:
                    reader.word("this")
                    reader.flag("is_string")

    def _correlated(self, scalars: Scalars, reader: Reader, environment: Environment) -> tuple[Relation, Links, Pairs]:
        inner, conditions, links, pairs = self.correlated(scalars, reader, environment)
        return filtered(inner, conditions), links, pairs

    def correlated(self, scalars: Scalars, reader: Reader, environment: Environment) -> tuple[Scalars, list[Typed], Links, Pairs]:
        """FROM and WHERE of a subquery over rows: its scope, the conditions on its own rows, and its links to the outer rows."""
        where, kept = reader.optional("where"), list[exp.Expr]()
        if where is not None:
            with self.session.reading(where) as clause:
                kept = conjuncts(self.session, clause.node_of("this"))
        inner, conditions, kept = joined_items(self.joins, *self._inner_items(reader, environment), kept)
        inner.answers = scalars.answers
        links, pairs = Links(self.session, self.known, scalars.scope, inner.scope), Pairs(scalars, inner)
        for node in kept:
            if links.read(node) or self.condition(inner, node, environment):
                continue
            if pairs.reaches_out(node):
                pairs.add(node)
            else:
                conditions += decided_condition(inner, node, "WHERE")
        inner.scope.used |= {right for _, right in links.on}
        return inner, conditions, links, pairs

    def _inner_items(self, reader: Reader, environment: Environment) -> tuple[list[Called], tuple[exp.Expr, ...]]:
        with self.session.reading(reader.node_of("from_")) as clause:
            called = [self.tables.item(clause.node_of("this"), environment)]
        joins = reader.many("joins")
        called += [self.tables.item(join.this, environment) for join in joins]
        if not any(isinstance(item.item, Rows) for item in called) or any(isinstance(item.item, NoisyItem) for item in called):
            raise self.session.refuse("subquery-unsupported", "EXISTS takes rows of protected tables", node=called[0].node)
        return called, joins

    # -- IN ---------------------------------------------------------------------------------------------------------------------------

    def _in(self, scalars: Scalars, reader: Reader, environment: Environment, *, negated: bool) -> None:
        value, query = reader.node_of("this"), reader.node_of("query")
        if type(query) is exp.Subquery:
            with self.session.reading(query) as brackets:
                query = brackets.node_of("this")
        public = self._public_source(query, environment)
        if public is not None:
            self.in_public(scalars, value, query, public, negated=negated)
            return
        bound = self.rows_or_decided(query, environment)
        if isinstance(bound, SubqueryResult):
            if len(bound.kinds) != 1:
                raise self.session.refuse("sql-unsupported", "the subquery of IN must select one column", node=query)
            kept = among(scalars, reader.node, scalars.bind(value), bound, 0, negated=negated)
            scalars.scope.conditions += [] if kept is None else [kept.expression]
            return
        if len(bound.names) != 1:
            raise self.session.refuse("sql-unsupported", "the subquery of IN must select one column", node=query)
        (column,) = bound.names.values()
        links = Links(self.session, self.known, scalars.scope, Scope.over(bound, ""))
        left = self._column(scalars, value)
        if left is None or not _may_link(links, left, column):
            unit = next((name for item in scalars.scope.items for name, c in item.columns.items() if c in scalars.scope.units), "")
            hint = f"compare the unit: {unit} IN (SELECT {unit} FROM ...)" if unit else "compare a declared key on the path to the unit"
            raise self.session.refuse("subquery-private", _OTHER_UNITS, node=reader.node, hint=hint)
        links.equal(left, column, value)
        links.require(reader.node)
        if negated and any(scalars.scope.columns[a].nullable or bound.columns[b].nullable for a, b in links.on):
            raise self.session.refuse(
                "subquery-unsupported", "NOT IN is not supported where a value may be NULL", node=reader.node, hint="use NOT EXISTS"
            )
        scalars.scope.used |= {a for a, _ in links.on}
        scalars.scope.joins.append(SemiPending(bound.relation, tuple(links.on), negated))

    def _column(self, scalars: Scalars, node: exp.Expr) -> str | None:
        if type(node) is not exp.Column:
            return None
        with self.session.reading(node) as reader:
            name, table = column_name(self.session, reader)
        matches = scalars.scope.lookup(name, table)
        return matches[0] if len(matches) == 1 else None

    def _public_source(self, query: exp.Expr, environment: Environment) -> Called | None:
        """The public table that a subquery selects from, if it reads nothing else."""
        if type(query) is not exp.Select or query.args.get("joins") or not isinstance(query.args.get("from_"), exp.From):
            return None
        table = query.args["from_"].this
        if type(table) is not exp.Table or (table.args.get("db") is None and environment.find(table.name) is not None):
            return None
        if not any(table.name.lower() == known.lower() for known in self.known.facts.public_tables):
            return None
        with self.session.reading(query.args["from_"]) as clause:
            return self.tables.item(clause.node_of("this"), environment)

    def in_public(self, scalars: Scalars, value: exp.Expr, query: exp.Expr, called: Called, *, negated: bool) -> None:
        """``x IN (SELECT key FROM public WHERE p)``: a LEFT JOIN on the key, and the condition that it found a row with p."""
        assert isinstance(called.item, PublicItem)
        table, scope = called.item.table, scalars.scope
        public = self.known.facts.public_table(table)
        left = scalars.bind(value)
        check_key(self.session, left, public.columns[public.key], table)
        with self.session.reading(query) as reader:
            reader.optional("from_")
            reader.require_absent("with_", "group", "having", "distinct", "limit", "offset", "order")
            items = reader.many("expressions")
            item = items[0] if items else query
            if len(items) != 1 or type(item) is not exp.Column or item.name.lower() != public.key.lower():
                hint = f"select its key, {public.key}"
                message = f"a subquery on {table!r} must select only its key"
                raise self.session.refuse("subquery-unsupported", message, node=item, hint=hint)
            names = {column: scope.free_name(table, column) for column in public.columns}
            for column, domain in public.columns.items():
                scope.columns[names[column]] = with_null(domain, True)
            own = Item(called.name, {column.lower(): name for column, name in names.items()}, called.in_schema)
            outside, scope.items = scope.items, [own]  # inside the subquery only its own columns have names
            conditions = [scalars.bind(item)]
            where = reader.optional("where")
            if where is not None:
                with self.session.reading(where) as clause:
                    conditions.append(scalars.condition(clause.node_of("this"), "WHERE"))
            scope.items = outside
        columns = tuple((name, column) for column, name in names.items())
        scope.joins.append(PublicPending(table, left.expression, JoinKind.LEFT, columns))
        key = Typed(Column(names[public.key]), scope.columns[names[public.key]], query)
        matched = scalars.call(query, Function.NOT, scalars.call(query, Function.IS_NULL, key))
        for condition in conditions[1:]:
            no = scalars.constant(query, Literal(False, Kind.BOOLEAN))
            matched = scalars.call(query, Function.AND, matched, scalars.call(query, Function.COALESCE, condition, no))
        if negated:
            known = scalars.call(query, Function.NOT, scalars.call(query, Function.IS_NULL, left))
            matched = scalars.call(query, Function.AND, known, scalars.call(query, Function.NOT, matched))
        scope.conditions.append(matched.expression)


def _may_link(links: Links, left: str, right: str) -> bool:
    """Whether equality of these two columns keeps rows within their unit."""
    by_unit = left in links.left.units and right in links.right.units
    return by_unit or links.known.along_key(links.left.origins.get(left), links.right.origins.get(right))


def filtered(scalars: Scalars, conditions: list[Typed]) -> Relation:
    """The rows of a scope where all conditions hold."""
    source = scalars.scope.relation()
    expressions = [*(condition.expression for condition in conditions), *scalars.scope.conditions]
    if not expressions:
        return source
    typed = [Typed(e, domain_of(e, scalars.scope.columns), _ANYWHERE) for e in expressions]
    whole = typed[0] if len(typed) == 1 else scalars.call(conditions[0].node if conditions else _ANYWHERE, Function.AND, *typed)
    return Filter(source, whole.expression)


_ANYWHERE = exp.Null()
