"""SELECT over answers: aggregated subqueries, joined, filtered or aggregated again. All of it is post-processing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import mul

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.sql.over_answers.aggregates import AGGREGATES, aggregate
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.values import Value
from lapwing.sql.rows import algebra
from lapwing.sql.rows.names import NoisyField, NoisyItem, OuterAnswers
from lapwing.sql.scalars.binding import column_name, identifier, qualifier, unsupported
from lapwing.sql.scalars.scope import Qualifier
from lapwing.sql.text.reader import Reader, Session
from lapwing.statements import KeyOutput, RowsAtMost

_INSTEAD = "aggregate a subquery: SELECT MAX(n) FROM (SELECT SUM(m) AS n FROM ... GROUP BY x) AS t"


@dataclass(slots=True)
class NoisyScope:
    """The noisy tables of a FROM, by name."""

    session: Session
    items: list[tuple[str, str, NoisyItem]] = field(default_factory=list)
    """Name in the statement, name in the SQL, and the table."""
    merged: dict[str, tuple[str, NoisyField]] = field(default_factory=dict)
    around: OuterAnswers | None = None
    """The answers of the enclosing SELECT, whose columns WHERE may name; set while WHERE is read."""
    depth: int = 0
    grouped: bool = False
    """Whether there is a GROUP BY: a column outside of an aggregate is then a key, and the mark of one row is not that of its group."""

    @property
    def rows(self) -> RowsAtMost:
        """A bound on the rows of the joined tables."""
        return reduce(mul, (item.rows for _, _, item in self.items), RowsAtMost())

    def alias(self, number: int) -> str:
        """The name of a table in the SQL, different from those of all enclosing tables."""
        return f"{'s' * (self.depth + 1)}{number}"

    def find(self, name: str, table: Qualifier | None) -> list[tuple[str, NoisyField]]:
        """The columns that a name can mean: their SQL and what is known about them."""
        lowered = name.lower()
        if table is None and lowered in self.merged:
            return [self.merged[lowered]]
        return [
            (f"{alias}.{item.fields[lowered].name}", item.fields[lowered])
            for called, alias, item in self.items
            if (table is None or (called == table.table.lower() and not table.schema)) and lowered in item.fields
        ]

    def all_columns(self, node: exp.Expr, of: Qualifier | None) -> list[tuple[str, Value]]:
        """Every column by its name, or those of one table; a column that USING merged once."""
        values: dict[str, Value] = {}
        listed = []
        for called, alias, item in self.items:
            if of is not None and (called != of.table.lower() or of.schema):
                continue
            for name, known in item.fields.items():
                sql, known = self.merged.get(name, (f"{alias}.{known.name}", known))
                if name in self.merged and name in values:
                    continue
                mark = None if self.grouped else _mark(sql, known)
                values[name] = Value(sql, known.kind, _form(known), node, mark=mark, number=known.number)
                listed.append((name, values[name]))
        return listed


def _form(known: NoisyField) -> algebra.Form:
    """Rows of a nested SELECT are no longer the groups of one private query, so keys are not numbered here."""
    return algebra.COMPUTED if isinstance(known.form, KeyOutput) else known.form


def _mark(sql: str, known: NoisyField) -> str | None:
    """The mark of a column. A row that an outer join added has none."""
    return None if known.mark is None else f"coalesce({sql.removesuffix(known.name)}{known.mark}, 0)"


@dataclass(slots=True)
class NoisyLeaves:
    """Columns of noisy tables, and aggregates over their rows."""

    scope: NoisyScope
    aggregated: bool = False
    inside: bool = False
    """Whether the argument of an aggregate is being bound."""

    def leaf(self, outputs: Outputs, node: exp.Expr) -> Value | None:
        """An aggregate over noisy rows, which is not an aggregate of protected rows."""
        if type(node) is not exp.Filter and type(node) not in AGGREGATES:
            return None
        if self.inside:
            raise outputs.session.refuse("aggregate-misplaced", "an aggregate cannot contain another aggregate", node=node, hint=_INSTEAD)
        self.aggregated = self.inside = outputs.session.aggregates_answers = True
        value = aggregate(outputs, node) if type(node) is not exp.Filter else self._filtered(outputs, node)
        self.inside = False
        return value

    def _filtered(self, outputs: Outputs, node: exp.Expr) -> Value:
        """An aggregate of the rows for which FILTER is true."""
        with outputs.session.reading(node) as reader:
            called, where = reader.node_of("this"), reader.node_of("expression")
            with outputs.session.reading(where) as clause:
                condition = outputs.condition(clause.node_of("this"), "FILTER")
            if type(called) not in AGGREGATES:
                raise self.refusal(outputs, called)
            return aggregate(outputs, called, condition.sql)

    def column(self, outputs: Outputs, reader: Reader) -> Value:
        """A column of one of the noisy tables."""
        name, table = column_name(outputs.session, reader)
        matches = self.scope.find(name, table)
        if not matches and self.scope.around is not None and not self.inside:
            matches = self.scope.around.find(name, table)
        if not matches and table is None and name.lower() in outputs.aliases:
            return outputs.aliases[name.lower()]
        if len(matches) != 1:
            code = "ambiguous-column" if matches else "unknown-column"
            raise outputs.session.refuse(
                code, f"several subqueries have a column {name!r}" if matches else f"there is no column {name!r} here", node=reader.node
            )
        sql, known = matches[0]
        mark = _mark(sql, known) if self.inside or not self.scope.grouped else None
        return Value(sql, known.kind, _form(known), reader.node, mark=mark, number=known.number)

    def refusal(self, outputs: Outputs, node: exp.Expr) -> Refused:
        """The refusal of a node that cannot be computed from noisy tables."""
        if isinstance(node, exp.AggFunc):
            message, hint = "this aggregate is not supported over answers", "the SQL reference lists those that are"
            return outputs.session.refuse("aggregate-unsupported", message, node=node, hint=hint)
        return unsupported(outputs.session, node)


def join(scope: NoisyScope, outputs: Outputs, reader: Reader, name: str, item: NoisyItem, where: exp.Expr | None = None) -> str:
    """The SQL that joins one more noisy table. A comma is a CROSS JOIN; the join condition is then in ``where``."""
    session = scope.session
    side, kind = reader.word("side").upper(), reader.word("kind").upper()
    on, using = reader.optional("on"), reader.many("using")
    crossing = not side and (kind == "CROSS" or (not kind and on is None and not using))
    if side not in ("", "LEFT", "RIGHT", "FULL") or (kind not in ("", "INNER", "OUTER") and not crossing):
        raise session.refuse("join-unsupported", "this kind of join is not supported", node=reader.node)
    before = [*scope.items]
    alias = scope.alias(len(scope.items))
    scope.items.append((name, alias, item))
    word = f"{side} JOIN" if side else "JOIN"
    if not using and not (_linked(scope, alias, where) if on is None else _equates(on)):
        session.crossed.append(scope.rows)
    if crossing:
        return f" CROSS JOIN ({item.sql}) AS {alias}"
    if using:
        names = [identifier(session, node).lower() for node in using]
        parts = []
        for shared, node in zip(names, using, strict=True):
            left = [(f"{a}.{i.fields[shared].name}", i.fields[shared]) for _, a, i in before if shared in i.fields]
            if len(left) != 1 or shared not in item.fields or side not in ("", "LEFT"):
                raise session.refuse("join-unsupported", "each side of USING must have exactly one such column", node=node)
            parts.append(f"{left[0][0]} = {alias}.{item.fields[shared].name}")
            scope.merged[shared] = left[0]
        condition = " AND ".join(parts)
    elif on is not None:
        condition = outputs.condition(on, "ON").sql
    else:
        raise session.refuse("join-unconditional", "every row would be joined with every row", node=reader.node, hint="JOIN ... ON")
    return f" {word} ({item.sql}) AS {alias} ON {condition}"


def _linked(scope: NoisyScope, alias: str, where: exp.Expr | None) -> bool:
    """Whether WHERE equates a column of this table with a column of an earlier table."""
    if isinstance(where, exp.Where | exp.Paren):
        return _linked(scope, alias, where.this)
    if isinstance(where, exp.And):
        return _linked(scope, alias, where.this) or _linked(scope, alias, where.expression)
    sides = (where.this, where.expression) if isinstance(where, exp.EQ) else ()
    if not sides or not all(isinstance(side, exp.Column) for side in sides):
        return False
    tables = [{sql.split(".")[0] for sql, _ in scope.find(side.name, qualifier(side))} for side in sides]
    return all(tables) and {alias} in tables and tables[0] != tables[1]


def _equates(condition: exp.Expr) -> bool:
    """Whether a condition has an equality of columns among those joined by AND, so that not every row is compared with every other."""
    if isinstance(condition, exp.And):
        return _equates(condition.this) or _equates(condition.expression)
    if isinstance(condition, exp.Paren):
        return _equates(condition.this)
    sides = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else ()
    return bool(sides) and all(side.find(exp.Column) is not None for side in sides)
