"""Binds any query of a statement: rows of units, or an answer. Each SELECT is either private or post-processing.

A SELECT over protected tables without aggregates, or grouped by the unit, gives *rows*: unit-local relations that only another SELECT may
use. With aggregates it gives an *answer*: one private query, and from there on post-processing. A SELECT over answers is post-processing
as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from sqlglot import exp

from lapwing.errors import Refused, Span
from lapwing.kernel.expressions import Expression
from lapwing.kernel.ir import Filter, Relation
from lapwing.kernel.window_columns import OrderKey
from lapwing.sql.grouped import GroupedLeaves, keys_of, meant
from lapwing.sql.nested_groups import Keys, NestedGroups, distinct_rows
from lapwing.sql.over_answers.answers import AnsweredSelect, named_rows
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.listed import public_item
from lapwing.sql.over_answers.windows import named_windows, window
from lapwing.sql.over_select import ONE_ROW, AnswerSelects, ScalarSubqueries, finish
from lapwing.sql.rollup import Grouping, grouping, has_aggregate, require_additive
from lapwing.sql.row_items import row_items
from lapwing.sql.row_refusals import row_refusal
from lapwing.sql.rows.aggregates import Aggregates
from lapwing.sql.rows.impossible_conditions import note_undeclared
from lapwing.sql.rows.joined_items import joined_items
from lapwing.sql.rows.joins import Joins, conjuncts
from lapwing.sql.rows.names import BindCatalog, Environment, Named, NoisyItem, PublicItem, SubqueryResult
from lapwing.sql.rows.per_unit import UnitAggregates, unit_scalars
from lapwing.sql.rows.subqueries import Subqueries, filtered
from lapwing.sql.rows.subquery_results import decided_condition, single
from lapwing.sql.rows.tables import Called, Tables
from lapwing.sql.rows.unit_windows import UnitWindows
from lapwing.sql.scalars.binding import Handler, Scalars, identifier, qualifier, unsupported
from lapwing.sql.scalars.scope import Rows
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.select_list import SelectItem, bound_in_order, later_names, select_item
from lapwing.sql.set_operations import compared, united_once
from lapwing.sql.shifted_sums import shifted_columns
from lapwing.sql.staged_queries import DECIDING_MAX, PriorBinding, decided
from lapwing.sql.text.reader import Reader, Session, is_set
from lapwing.sql.unions import union_of_answers, union_of_rows
from lapwing.sql.unit_values import UnitValues
from lapwing.statements import PostProcess, PrivateQuery, RowsAtMost, Statement


@dataclass(slots=True)
class Queries:
    """Binds the queries of one statement; ``privates`` collects the private queries."""

    session: Session
    known: BindCatalog
    handlers: Mapping[type[exp.Expr], Handler]
    whole: exp.Expr | None = None
    """The statement as a whole: requests for rows are refused at any level."""
    privates: list[PrivateQuery | None] = field(default_factory=list)
    spans: list[tuple[str, Span]] = field(default_factory=list)

    @property
    def tables(self) -> Tables:
        """Reads items of FROM."""
        return Tables(self.session, self.known, self.bind_item)

    @property
    def joins(self) -> Joins:
        """Reads joins of rows."""
        return Joins(self.session, self.known, self.handlers)

    @property
    def subqueries(self) -> Subqueries:
        """Reads conditions with subqueries."""
        return Subqueries(self.session, self.known, self.tables, self.joins, self.rows_or_decided)

    @property
    def of_units(self) -> UnitValues:
        """Reads subqueries for values of units."""
        return UnitValues(self.known, self.subqueries)

    @property
    def inside(self) -> NestedGroups:
        """Reads groups and distinct rows within units."""
        return NestedGroups(self.session, self.known)

    @property
    def over_answers(self) -> AnswerSelects:
        """Reads SELECTs over answers."""
        return AnswerSelects(self.session, self.handlers, self.privates, self.bind)

    def bind_item(self, node: exp.Expr, environment: Environment) -> Rows | NoisyItem:
        """A query in FROM or IN."""
        bound = self.bind(node, environment)
        return bound.item if isinstance(bound, AnsweredSelect) else bound

    def rows_or_decided(self, node: exp.Expr, environment: Environment) -> Rows | SubqueryResult:
        """A query used with rows: rows, or an answer, which is then a separate statement that is bought first."""
        before = PriorBinding.of(self.session, environment, len(self.privates), len(self.spans))
        bound = self.bind_item(node, environment)
        if isinstance(bound, Rows):
            return bound
        self._return_to(before)
        return self._decided(node, environment)

    def _return_to(self, before: PriorBinding) -> None:
        before.return_to(self.session)
        del self.privates[before.privates :], self.spans[before.spans :]

    def _decided(self, node: exp.Expr, environment: Environment) -> SubqueryResult:
        """An answer that is used with rows."""
        session = self.session
        session.deciding += 1
        if session.deciding > DECIDING_MAX:
            raise session.refuse("statement-too-large", f"more than {DECIDING_MAX} answers are used with rows", node=node)
        apart = Queries(session, self.known, self.handlers)
        crossed, aggregates = session.crossed, session.aggregates_answers
        session.crossed, session.aggregates_answers = [], False
        with environment.apart():
            answered = apart.bind(node, environment)
        assert isinstance(answered, AnsweredSelect)
        privates = tuple(query for query in apart.privates if query is not None)
        post = replace(answered.post, aggregates=session.aggregates_answers, crossed=tuple(session.crossed))
        session.crossed, session.aggregates_answers = crossed, aggregates
        span = session.source.span(node)
        statement = Statement(session.source.text, privates, post, (("", span), *apart.spans))
        return decided(session, node, answered, privates, post, statement)

    def _value(self, environment: Environment, scalars: Scalars, node: exp.Expr) -> Typed:
        """A scalar subquery used with rows: a value of each unit, or an answer."""
        with self.session.reading(node) as reader:
            reader.require_absent("alias")
            inner = reader.node_of("this")
            if self.of_units.reaches_out(scalars, inner):
                return self._value_of_unit(environment, scalars, node, inner)
            try:
                found = self.rows_or_decided(inner, environment)
            except Refused as error:
                outside = [column for column in inner.find_all(exp.Column) if scalars.scope.lookup(column.name, qualifier(column))]
                if error.code not in ("unknown-table", "unknown-column") or not outside:
                    raise
                raise unsupported(self.session, node) from error
        if isinstance(found, Rows):
            raise unsupported(self.session, node)
        if len(found.kinds) != 1:
            raise self.session.refuse("sql-unsupported", "a scalar subquery must select one column", node=node)
        if found.apart != frozenset():
            message = "a scalar subquery must have one row"
            raise self.session.refuse("sql-unsupported", message, node=node, hint=ONE_ROW)
        return single(scalars, node, found)

    def _value_of_unit(self, environment: Environment, scalars: Scalars, node: exp.Expr, inner: exp.Expr) -> Typed:
        """A correlated subquery, which refers to rows of the same unit outside it."""
        try:
            return self.of_units.value(scalars, inner, environment)
        except Refused as error:
            if error.code != "join-private":
                raise
            raise unsupported(self.session, node) from error

    def _value_of_groups(self, scalars: Scalars, node: exp.Expr) -> Typed:
        """A scalar subquery over groups within units: an answer is the same for all groups, but a value of single rows is not defined."""
        if scalars.answers is None or self.of_units.reaches_out(scalars, node.this):
            raise unsupported(self.session, node)
        return scalars.answers(node)

    def bind(self, node: exp.Expr, environment: Environment) -> Rows | AnsweredSelect:
        """Any query."""
        if type(node) is exp.Subquery:
            with self.session.reading(node) as reader:
                return self.bind(reader.node_of("this"), environment)
        if type(node) is exp.Union:
            with self.session.reading(node) as reader:
                return self._union(reader, environment)
        if type(node) in (exp.Except, exp.Intersect):
            with self.session.reading(node) as reader:
                return self._compared(reader, environment)
        if type(node) is not exp.Select:
            raise self.session.refuse("union-unsupported", "this set operation is not supported", node=node)
        with self.session.reading(node) as reader:
            return self._select(reader, environment)

    def _with(self, reader: Reader, environment: Environment) -> Environment:
        node = reader.optional("with_")
        if node is None:
            return environment
        inside = Environment(outer=environment)
        with self.session.reading(node) as clause:
            if clause.flag("recursive"):
                message = "WITH RECURSIVE is not supported: the influence of one row would have no bound"
                raise self.session.refuse("with-unsupported", message, node=node, hint="write each level as a subquery")
            for item in clause.many("expressions"):
                if type(item) is not exp.CTE:
                    raise unsupported(self.session, item)
                with self.session.reading(item) as named:
                    alias = named.node_of("alias")
                    with self.session.reading(alias) as table:
                        name = identifier(self.session, table.node_of("this")).lower()
                    if name in inside.names:
                        raise self.session.refuse("ambiguous-table", f"WITH defines the name {name!r} twice", node=item)
                    # A name can refer to earlier ones, never to itself.
                    before = Environment(dict(inside.names), environment)
                    inside.names[name] = Named(named.node_of("this"), before)
        return inside

    # -- SELECT -----------------------------------------------------------------------------------------------------------------------

    def _select(self, reader: Reader, outside: Environment) -> Rows | AnsweredSelect:
        environment = self._with(reader, outside)
        first, joins = reader.optional("from_"), reader.many("joins")
        if first is None:
            return self.over_answers.select(reader, environment, [], joins)
        limit = self.session.settings.joins_max
        if len(joins) > limit:
            raise self.session.refuse("too-many-joins", f"a statement may have at most {limit} joins", node=joins[limit])
        before = PriorBinding.of(self.session, environment, len(self.privates), len(self.spans))
        laterals = tuple(join for join in joins if type(join) is exp.Join and type(join.this) is exp.Lateral)
        joins = tuple(join for join in joins if not any(join is lateral for lateral in laterals))
        called = self._items(first, joins, environment)
        if self._decide(called, environment):
            self._return_to(before)
            return self._over_rows(reader, environment, self._items(first, joins, environment, deciding=True), joins, laterals)
        if any(isinstance(item.item, NoisyItem) for item in called) or all(isinstance(item.item, PublicItem) for item in called):
            called = [self._beside_answers(item) for item in called]
            if laterals:
                message = "LATERAL works only with rows of protected tables"
                raise self.session.refuse("table-unsupported", message, node=laterals[0], hint="use JOIN to combine answers")
            return self.over_answers.select(reader, environment, called, joins)
        return self._over_rows(reader, environment, called, joins, laterals)

    def _items(self, first: exp.Expr, joins: tuple[exp.Expr, ...], environment: Environment, *, deciding: bool = False) -> list[Called]:
        with self.session.reading(first) as clause:
            called = [self._item(clause.node_of("this"), environment, deciding=deciding)]
        for join in joins:
            if type(join) is not exp.Join:
                raise unsupported(self.session, join)
            called.append(self._item(join.this, environment, deciding=deciding))
        return called

    def _decide(self, called: list[Called], environment: Environment) -> bool:
        """Whether answers of this FROM can be used with rows: subqueries and names of WITH can, constants and pivots cannot."""
        answers = [item.node for item in called if isinstance(item.item, NoisyItem)]
        named = [type(node) is exp.Table and type(node.this) is exp.Identifier and environment.find(node.name) for node in answers]
        queries = [type(node) is exp.Subquery and not is_set(node.args.get("pivots")) for node in answers]
        return bool(answers) and all(map(any, zip(named, queries, strict=True))) and any(isinstance(item.item, Rows) for item in called)

    def _item(self, node: exp.Expr, environment: Environment, *, deciding: bool = False) -> Called:
        before = PriorBinding.of(self.session, environment, len(self.privates), len(self.spans))
        called = self._any_item(node, environment)
        if not deciding or not isinstance(called.item, NoisyItem):
            return called
        self._return_to(before)
        named = environment.find(node.name) if type(node) is exp.Table else None
        return replace(called, item=self._decided(node.this, environment) if named is None else self._decided(named.node, named.inside))

    def _any_item(self, node: exp.Expr, environment: Environment) -> Called:
        if type(node) is exp.Subquery and is_set(node.args.get("pivots")):
            return self._pivoted(node, environment)
        return self.over_answers.listed(node, environment) or self.tables.item(node, environment)

    def _pivoted(self, node: exp.Expr, environment: Environment) -> Called:
        """A subquery with PIVOT, which must be an answer."""
        with self.session.reading(node) as reader:
            item, pivots, inner = self.bind_item(reader.node_of("this"), environment), reader.many("pivots"), reader.optional("alias")
            if inner is not None:
                self.tables.alias(inner)  # the alias of the pivoted query: nothing outside can refer to it
            if not isinstance(item, NoisyItem) or len(pivots) != 1 or type(pivots[0]) is not exp.Pivot:
                hint = "use one aggregate with FILTER for each column"
                raise self.session.refuse("sql-unsupported", "PIVOT works only on an answer, and only once", node=node, hint=hint)
            table, alias = self.over_answers.pivoted(pivots[0], item, environment)
        return Called(table, "" if alias is None else self.tables.alias(alias), node)

    def _beside_answers(self, called: Called) -> Called:
        """A public table that is joined with answers, or used alone, is read as a table of constants."""
        if not isinstance(called.item, PublicItem):
            return called
        self.session.reads_public = True
        table = called.item.table
        rows = None if self.known.public_rows is None else self.known.public_rows(table)
        return replace(called, item=public_item(self.session, called.node, self.known.facts.public_table(table), rows))

    def _over_rows(
        self,
        reader: Reader,
        environment: Environment,
        called: list[Called],
        joins: tuple[exp.Expr, ...],
        laterals: tuple[exp.Expr, ...],
    ) -> Rows | AnsweredSelect:
        where = reader.optional("where")
        kept: list[exp.Expr] = []
        if where is not None:
            with self.session.reading(where) as clause:
                kept = conjuncts(self.session, clause.node_of("this"))
        value = partial(self._value, environment)
        scalars, conditions, kept = joined_items(self.joins, called, joins, kept, value)
        for lateral in laterals:
            conditions += self.of_units.lateral(scalars, lateral, environment, self.tables.alias)
        for node in kept:
            if not self.subqueries.condition(scalars, node, environment):
                conditions += decided_condition(scalars, node, "WHERE")
        for condition in conditions:
            note_undeclared(scalars, condition)
        items = [select_item(self.session, node) for node in reader.many("expressions")]
        if not items:
            raise self.session.refuse("sql-syntax", "SELECT lists nothing", node=reader.node)
        scalars.aliases.update(later_names(items))
        group = reader.optional("group")
        grouped = Grouping((), None)
        if group is not None:
            if type(group) is not exp.Group:
                raise unsupported(self.session, group)
            with self.session.reading(group) as clause:
                grouped = grouping(self.session, clause, [item.node for item in items])
        if grouped.nodes and grouped.levels is None:
            keys = self.inside.keys(scalars, conditions, grouped.nodes, items)
            if keys is not None:
                return self._per_unit(reader, scalars, conditions, items, keys)
        distinct = reader.optional("distinct")
        if distinct is not None and group is None and not any(has_aggregate(item.node) for item in items):
            outputs = self.inside.distinct(scalars, conditions, distinct, items)
            if outputs is not None:
                self._plain(reader)
                return distinct_rows(scalars, self.known.facts, filtered(scalars, conditions), outputs)
        if (
            group is None
            and distinct is None
            and not any(has_aggregate(item.node) for item in items)
            and reader.node.args.get("having") is None
        ):
            return self._rows(reader, scalars, conditions, items)
        if distinct is not None and group is None and reader.node is not self.whole:
            first_rows = self._first_rows(reader, scalars, conditions, items, distinct)
            if first_rows is not None:
                return first_rows
        return self._grouped(reader, environment, scalars, conditions, items, grouped, distinct)

    # -- rows -------------------------------------------------------------------------------------------------------------------------

    def _plain(self, reader: Reader, *names: str) -> None:
        """Refuse ORDER BY and LIMIT of rows. A whole statement that asks for rows is refused for that reason instead."""
        if reader.node is self.whole and any(reader.node.args.get(name) for name in ("order", "limit", "offset")):
            raise row_refusal(self.session, reader.node, self.known.facts)
        reader.require_absent(*(names or ("qualify", "order", "limit", "offset", "distinct")))

    def _rows(self, reader: Reader, scalars: Scalars, conditions: list[Typed], items: list[SelectItem]) -> Rows:
        self._plain(reader, "order", "limit", "offset", "distinct")
        windows = UnitWindows(scalars, self.known.facts, lambda: filtered(scalars, conditions))
        outputs = row_items(windows.scalars(), items)
        qualify = reader.optional("qualify")
        if qualify is not None:
            windows.keep(qualify)
        label = "_".join(item.name for item in scalars.scope.items if item.name) or "rows"
        return named_rows(windows.relation(), label, outputs, scalars.scope)

    def _first_rows(
        self, reader: Reader, scalars: Scalars, conditions: list[Typed], items: list[SelectItem], distinct: exp.Expr
    ) -> Rows | None:
        """DISTINCT ON the unit and perhaps more: the first row of each combination. None if the unit is not listed."""
        windows = UnitWindows(scalars, self.known.facts, lambda: filtered(scalars, conditions))
        on = distinct.args.get("on")
        if not isinstance(on, exp.Tuple) or not any(windows.is_unit(node) for node in on.expressions):
            return None
        self._plain(reader, "qualify", "limit", "offset")
        with self.session.reading(distinct) as clause, self.session.reading(clause.node_of("on")) as listed:
            partition = windows.partition(listed.many("expressions"), distinct)
        order = reader.optional("order")
        keys: tuple[OrderKey, ...] = ()
        if order is not None:
            with self.session.reading(order) as clause:
                keys = windows.order(clause.many("expressions"), lambda node: meant(scalars, node, items))
        outputs = row_items(windows.scalars(), items)
        windows.keep_first(distinct, partition, keys)
        return named_rows(windows.relation(), "first_rows", outputs, scalars.scope)

    def _per_unit(self, reader: Reader, scalars: Scalars, conditions: list[Typed], items: list[SelectItem], keys: Keys) -> Rows:
        self._plain(reader)
        aggregates = UnitAggregates(scalars, self.known.facts, lambda: filtered(scalars, conditions), keys)
        units = {name for item in scalars.scope.items for name, column in item.columns.items() if column in scalars.scope.units}
        outer = unit_scalars(aggregates, units)
        outer.answers = partial(self._value_of_groups, scalars)
        outputs = [(item.name.lower(), outer.bind(item.node)) for item in items]
        having, kept = reader.optional("having"), list[Typed]()
        if having is not None:
            with self.session.reading(having) as clause:
                kept = decided_condition(outer, clause.node_of("this"), "HAVING")
        relation: Relation = aggregates.relation()
        for condition in kept:
            relation = Filter(relation, condition.expression)
        return named_rows(relation, "per_unit", outputs, outer.scope)

    # -- answers ----------------------------------------------------------------------------------------------------------------------

    def _grouped(
        self,
        reader: Reader,
        environment: Environment,
        scalars: Scalars,
        conditions: list[Typed],
        items: list[SelectItem],
        grouped: Grouping,
        distinct: exp.Expr | None,
    ) -> AnsweredSelect:
        number = len(self.privates)
        self.privates.append(None)
        meanings: dict[int, Expression] = {}
        keys = keys_of(scalars, grouped.nodes, items, meanings)
        levels = grouped.numbered([key.expression for key in keys], meanings)
        if distinct is not None and not grouped.nodes and not any(has_aggregate(item.node) for item in items):
            if is_set(distinct.args.get("on")):
                message, hint = (
                    "DISTINCT ON picks rows, and rows are never shown",
                    "add GROUP BY: DISTINCT ON then picks rows of the answer",
                )
                raise self.session.refuse("distinct-unsupported", message, node=distinct, hint=hint)
            keys = keys_of(scalars, tuple(item.node for item in items), items)
        aggregates = Aggregates(scalars)
        sums = shifted_columns(item.node for item in items)
        leaves = GroupedLeaves(number, scalars, aggregates, tuple(keys), levels is not None, sums, self.privates)
        scalar = ScalarSubqueries(self.over_answers, environment, [])
        outputs = Outputs(scalars, leaves, scalar, window, windows=named_windows(self.session, reader))
        values = bound_in_order(outputs, items)
        post = finish(reader, outputs, items, values, distinct)
        if not aggregates.collected and not keys and not leaves.modes:
            hint = "ask for an aggregate such as COUNT(*)"
            raise self.session.refuse("rows-not-aggregates", "the statement has no aggregate", node=items[0].node, hint=hint)
        if levels is not None:
            require_additive(aggregates.collected, aggregates.spans)
        source = filtered(scalars, conditions)
        for chosen in leaves.modes:
            self.privates[chosen.query] = chosen.counts(source, [key.expression for key in keys])
            self.spans.append((f"q{chosen.query}", self.session.source.span(chosen.value.node)))
        self.privates[number] = PrivateQuery(
            source=source,
            keys=tuple((f"k{i}", key.expression) for i, key in enumerate(keys)),
            aggregates=tuple(aggregates.collected),
            levels=levels,
        )
        self.spans.append((f"q{number}", self.session.source.span(reader.node)))
        self.spans += [(f"q{number}.k{i}", self.session.source.span(key.node)) for i, key in enumerate(keys)]
        self.spans += [(f"q{number}.a{i}", span) for i, span in enumerate(aggregates.spans)]
        return AnsweredSelect(
            PostProcess(
                post.outputs,
                source=scalar.beside(f"q{number}"),
                rows_of=number,
                where=post.having,
                qualify=post.qualify,
                distinct=distinct is not None and not post.distinct_on and (bool(aggregates.collected) or levels is not None),
                distinct_on=post.distinct_on,
                order_by=post.order_by,
                limit=post.limit,
                percent=post.percent,
                offset=post.offset,
            ),
            tuple(values),
            RowsAtMost(len(levels or ((),)), (number,) if keys else ()),
        )

    # -- UNION, EXCEPT, INTERSECT ---------------------------------------------------------------------------------------------------------

    def _union(self, reader: Reader, outside: Environment) -> Rows | AnsweredSelect:
        environment = self._with(reader, outside)
        once = reader.flag("distinct")
        parts = [self.bind(node, environment) for node in (reader.node_of("this"), reader.node_of("expression"))]
        reader.require_absent("order", "limit", "offset", "by_name", "side", "kind", "on")
        rows, answers = [part for part in parts if isinstance(part, Rows)], [part for part in parts if isinstance(part, AnsweredSelect)]
        if rows and answers:
            raise self.session.refuse("union-unsupported", "UNION cannot combine rows with answers", node=reader.node)
        if rows:
            united = union_of_rows(self.session, self.known.facts, rows, reader.node)
            return united_once(self.session, self.known.facts, united, reader.node) if once else united
        if once:
            message = "UNION of answers would remove equal rows"
            raise self.session.refuse("union-unsupported", message, node=reader.node, hint="use UNION ALL")
        return union_of_answers(self.session, self.privates, answers, reader.node)

    def _compared(self, reader: Reader, outside: Environment) -> Rows:
        environment = self._with(reader, outside)
        if not reader.flag("distinct"):
            message = "EXCEPT ALL and INTERSECT ALL count how often a row occurs, which is not supported"
            raise self.session.refuse("union-unsupported", message, node=reader.node, hint="leave ALL out")
        parts = [self.bind(node, environment) for node in (reader.node_of("this"), reader.node_of("expression"))]
        reader.require_absent("order", "limit", "offset", "by_name", "side", "kind", "on")
        rows = [part for part in parts if isinstance(part, Rows)]
        if len(rows) != len(parts):
            message = "EXCEPT and INTERSECT work on rows of units, not on answers"
            raise self.session.refuse("union-unsupported", message, node=reader.node, hint="compare answers with a JOIN")
        return compared(self.session, self.known.facts, rows, reader.node, negated=type(reader.node) is exp.Except)
