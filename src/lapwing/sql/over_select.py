"""SELECT over answers as a whole, and what it shares with SELECT over rows: names, HAVING, QUALIFY, ORDER BY, LIMIT, scalar subqueries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from lapwing.sql.over_answers.answers import AnsweredSelect
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.listed import listed_item
from lapwing.sql.over_answers.pivots import pivoted
from lapwing.sql.over_answers.select import NoisyLeaves, NoisyScope, join
from lapwing.sql.over_answers.values import Value
from lapwing.sql.over_answers.windows import named_windows, window
from lapwing.sql.rollup import grouping
from lapwing.sql.rows import algebra
from lapwing.sql.rows.names import Environment, NoisyItem
from lapwing.sql.rows.tables import Called
from lapwing.sql.scalars.binding import Handler, Scalars, column_name, is_star, read_star, require_excluded, unsupported
from lapwing.sql.scalars.scope import Rows, Scope
from lapwing.sql.select_list import SelectItem, distinct_names, keeps_ties, order_by, row_count, row_share, select_item, sorted_by
from lapwing.sql.text.reader import Reader, Session
from lapwing.statements import Output, PostProcess, PrivateQuery, RowsAtMost

ONE_ROW = "select an aggregate such as MAX(n) without GROUP BY, or add LIMIT 1"
BindAny = Callable[[exp.Expr, Environment], Rows | AnsweredSelect]


@dataclass(frozen=True, slots=True)
class AnswerSelects:
    """Binds SELECTs over answers. ``bind`` binds nested queries; ``privates`` are the private queries so far."""

    session: Session
    handlers: Mapping[type[exp.Expr], Handler]
    privates: list[PrivateQuery | None]
    bind: BindAny

    def select(self, reader: Reader, environment: Environment, called: list[Called], joins: tuple[exp.Expr, ...]) -> AnsweredSelect:
        """A SELECT over answers, or over nothing."""
        for item in called:
            if not isinstance(item.item, NoisyItem):
                message, hint = "constants and pivoted answers cannot be joined to rows", "list the constants in WHERE: x IN (1, 2)"
                raise self.session.refuse("join-private", message, node=item.node, hint=hint)
        around = environment.around
        scope = NoisyScope(self.session, depth=0 if around is None else around.depth + 1)
        leaves = NoisyLeaves(scope)
        scalar = ScalarSubqueries(self, Environment(outer=environment, answers=scope) if called else environment, None if called else [])
        outputs = self._outputs(leaves, scalar)
        outputs.windows = named_windows(self.session, reader)
        source = self._source(scope, outputs, called, joins, reader.node.args.get("where"))
        where, group, distinct = reader.optional("where"), reader.optional("group"), reader.optional("distinct")
        kept = None
        if where is not None:
            scope.around = around
            with self.session.reading(where) as clause:
                kept = outputs.condition(clause.node_of("this"), "WHERE").sql
            scope.around = None
        if leaves.aggregated:
            raise self.session.refuse("aggregate-misplaced", "an aggregate is not allowed in WHERE", node=where, hint="use HAVING")
        items = [select_item(self.session, node) for node in reader.many("expressions")]
        keys: list[str] = []
        scope.grouped = group is not None
        if group is not None:
            with self.session.reading(group) as clause:
                grouped = grouping(self.session, clause, [item.node for item in items])
                if grouped.levels is not None:
                    hint = "compute the sub-totals in the subquery"
                    raise self.session.refuse("groups-unsupported", "answers can be grouped by one level only", node=group, hint=hint)
                keys = [outputs.bind(self._key(scope, node, items)).sql for node in grouped.nodes]
        listed = [pair for item in items for pair in self._values(scope, outputs, item)]
        items, values = [item for item, _ in listed], [value for _, value in listed]
        post = finish(reader, outputs, items, values, distinct)
        answer = PostProcess(
            post.outputs,
            source=scalar.beside(source),
            rows_of=None,
            where=kept,
            group_by=tuple(keys),
            having=post.having,
            qualify=post.qualify,
            distinct=distinct is not None and not post.distinct_on,
            distinct_on=post.distinct_on,
            order_by=post.order_by,
            limit=post.limit,
            percent=post.percent,
            offset=post.offset,
        )
        return AnsweredSelect(answer, tuple(values), self._rows(answer, scope, aggregated=leaves.aggregated), leaves.aggregated)

    def _rows(self, answer: PostProcess, scope: NoisyScope, *, aggregated: bool) -> RowsAtMost:
        if aggregated and not answer.group_by:
            return RowsAtMost()
        return scope.rows if answer.limit is None else RowsAtMost(answer.limit)

    def listed(self, node: exp.Expr, environment: Environment) -> Called | None:
        """A table of constants in FROM, or None."""
        return listed_item(self._outputs(NoisyLeaves(NoisyScope(self.session)), ScalarSubqueries(self, environment, [])), node)

    def pivoted(self, node: exp.Expr, item: NoisyItem, environment: Environment) -> tuple[NoisyItem, exp.Expr | None]:
        """An answer with PIVOT applied, and the alias of the result."""
        scope = NoisyScope(self.session)
        leaves = NoisyLeaves(scope, aggregated=True)
        return pivoted(self._outputs(leaves, ScalarSubqueries(self, environment, [])), scope, node, item)

    def _outputs(self, leaves: NoisyLeaves, scalar: ScalarSubqueries) -> Outputs:
        empty = Scalars(self.session, Scope(source=None, items=[], columns={}), self.handlers)  # type: ignore[arg-type]
        return Outputs(empty, leaves, scalar, window)

    def _source(
        self, scope: NoisyScope, outputs: Outputs, called: list[Called], joins: tuple[exp.Expr, ...], where: exp.Expr | None
    ) -> str:
        source = ""
        for number, item in enumerate(called):
            assert isinstance(item.item, NoisyItem)
            if any(name == item.name and name for name, _, _ in scope.items):
                hint = "give one an alias"
                raise self.session.refuse("ambiguous-table", f"two tables are called {item.name!r}", node=item.node, hint=hint)
            if number == 0:
                scope.items.append((item.name, scope.alias(0), item.item))
                source = f"({item.item.sql}) AS {scope.alias(0)}"
                continue
            with self.session.reading(joins[number - 1]) as clause:
                clause.node_of("this")
                clause.require_absent("method")
                source += join(scope, outputs, clause, item.name, item.item, where)
        return source

    def _values(self, scope: NoisyScope, outputs: Outputs, item: SelectItem) -> list[tuple[SelectItem, Value]]:
        """The values of one item of SELECT over answers: one, or all columns for *."""
        if not is_star(item.node) or not scope.items:
            return [(item, outputs.bind(item.node))]
        meant_by, excluded = read_star(self.session, item.node)
        listed = scope.all_columns(item.node, meant_by)
        if not listed:
            raise self.session.refuse("unknown-table", "there is no table with this name in this FROM", node=item.node)
        require_excluded(self.session, item.node, excluded, [name for name, _ in listed])
        return [(SelectItem(item.node, "", name), value) for name, value in listed if name not in excluded]

    def _key(self, scope: NoisyScope, node: exp.Expr, items: list[SelectItem]) -> exp.Expr:
        if type(node) is exp.Column and not node.table and not scope.find(node.name, None):
            aliased = next((item.node for item in items if item.alias.lower() == node.name.lower()), None)
            if aliased is not None:
                with self.session.reading(node) as reader:
                    column_name(self.session, reader)
                return aliased
        return node


def finish(reader: Reader, outputs: Outputs, items: list[SelectItem], values: list[Value], distinct: exp.Expr | None) -> PostProcess:
    """The clauses that all answers share: names, HAVING, QUALIFY, DISTINCT ON, ORDER BY, LIMIT."""
    session = outputs.session
    names = distinct_names([item.name for item in items])
    named = tuple(Output(name, value.sql, algebra.derivation(value.form), value.mark) for name, value in zip(names, values, strict=True))
    outputs.aliases = {item.alias.lower(): value for item, value in reversed(list(zip(items, values, strict=True))) if item.alias}
    having, qualify = reader.optional("having"), reader.optional("qualify")
    condition = kept = None
    if having is not None:
        with session.reading(having) as clause:
            condition = outputs.condition(clause.node_of("this"), "HAVING").sql
    if qualify is not None:
        with session.reading(qualify) as clause:
            # The engine refuses QUALIFY without a window, so one is always written here.
            kept = f"({outputs.condition(clause.node_of('this'), 'QUALIFY').sql} AND row_number() OVER () > 0)"
        if not any(node.find(exp.Window) for node in (qualify, *(item.node for item in items))):
            message = "QUALIFY needs a window function, and there is none"
            raise session.refuse("window-unsupported", message, node=qualify, hint="use HAVING")
    order = reader.optional("order")
    on = () if distinct is None else tuple(sorted_by(outputs, node, values).sql for node in _distinct_on(session, distinct))
    if on and order is None:
        message = "DISTINCT ON without ORDER BY would keep an arbitrary row"
        raise session.refuse("distinct-unsupported", message, node=distinct, hint="add ORDER BY: the first row of each group is kept")
    ordered = order_by(outputs, order, values)
    limited, offset = reader.optional("limit"), row_count(session, reader.optional("offset"))
    percent = row_share(session, limited)
    limit = row_count(session, limited) if percent is None else None
    if keeps_ties(limited):
        if order is None or offset or distinct is not None:
            message, hint = "WITH TIES needs ORDER BY, and neither OFFSET nor DISTINCT", "ORDER BY n DESC FETCH FIRST 3 ROWS WITH TIES"
            raise session.refuse("sql-unsupported", message, node=limited, hint=hint)
        tied = f"rank() OVER (ORDER BY {', '.join(ordered)}) <= {limit}"
        kept, limit = tied if kept is None else f"({kept} AND {tied})", None
    return PostProcess(
        named, having=condition, qualify=kept, distinct_on=on, order_by=ordered, limit=limit, offset=offset or 0, percent=percent
    )


def _distinct_on(session: Session, node: exp.Expr) -> tuple[exp.Expr, ...]:
    """The expressions of DISTINCT ON, none for DISTINCT alone."""
    if type(node) is not exp.Distinct:
        raise unsupported(session, node)
    with session.reading(node) as reader:
        on = reader.optional("on")
    if on is None:
        return ()
    if type(on) is not exp.Tuple:
        raise unsupported(session, on)
    with session.reading(on) as reader:
        return reader.many("expressions")


@dataclass(frozen=True, slots=True)
class ScalarSubqueries:
    """Binds a scalar subquery over an answer.

    Over one private query, or without FROM, the values become columns of one more row in FROM, so they are computed once. Elsewhere
    (``subqueries`` is None) they stay where they are written.
    """

    selects: AnswerSelects
    environment: Environment
    subqueries: list[str] | None

    def beside(self, source: str) -> str:
        """The FROM clause, with the row of values."""
        if not self.subqueries:
            return source
        row = f"(SELECT {', '.join(f'({sql}) AS s{i}' for i, sql in enumerate(self.subqueries))}) AS v"
        return f"{source}, {row}" if source else row

    def __call__(self, node: exp.Expr, *, listed: bool = False) -> Value:
        """The value of a subquery or, if ``listed``, the SQL of the values of its one column."""
        session = self.selects.session
        with session.reading(node) as reader:
            reader.require_absent("alias")
            answered = self.selects.bind(reader.node_of("this"), self.environment)
        if not isinstance(answered, AnsweredSelect):
            raise session.refuse(
                "rows-not-aggregates", "this subquery returns rows", node=node, hint="ask for an aggregate such as COUNT(*)"
            )
        if len(answered.values) != 1:
            raise session.refuse("sql-unsupported", "a scalar subquery must select one column", node=node)
        value, post = answered.values[0], answered.post
        if listed:
            return Value(f"({post.sql(numbered=False)})", value.kind, algebra.COMPUTED, node)
        if not self._is_single(answered):
            message = "a scalar subquery must have one row"
            raise session.refuse("sql-unsupported", message, node=node, hint=ONE_ROW)
        columns = [post.sql(numbered=False), *(f"SELECT m{i} FROM ({post.sql(numbered=False, marked=post.marked)})" for i in post.marked)]
        if self.subqueries is None:
            sql, *mark = [f"({one})" for one in columns]
        else:
            sql, *mark = [f"v.s{len(self.subqueries) + i}" for i in range(len(columns))]
            self.subqueries.extend(columns)
        return Value(sql, value.kind, value.form, node, mark=mark[0] if mark else None, number=value.number)

    def _is_single(self, answered: AnsweredSelect) -> bool:
        """Whether an answer has at most one row, whatever the noise: aggregates without groups, or LIMIT 1. Without a row it is NULL."""
        post = answered.post
        if post.limit in (0, 1):
            return True
        if post.rows_of is None:
            return answered.aggregated and not post.group_by
        query = self.selects.privates[post.rows_of]
        return query is not None and not query.keys
