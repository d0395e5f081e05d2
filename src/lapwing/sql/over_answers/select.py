"""SELECT over answers: subqueries that are aggregates already, joined, filtered, aggregated again. All of it is post-processing."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Kind
from lapwing.sql.over_answers import marks
from lapwing.sql.over_answers.expressions import Outputs, Value
from lapwing.sql.rows import algebra
from lapwing.sql.rows.names import NoisyField, NoisyItem
from lapwing.sql.scalars.binding import column_name, identifier, unsupported
from lapwing.sql.text.reader import Reader, Session
from lapwing.statements import KeyOutput

_AGGREGATES: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}


@dataclass(slots=True)
class NoisyScope:
    """The noisy tables of a FROM, by the names they go by."""

    session: Session
    items: list[tuple[str, str, NoisyItem]] = field(default_factory=list)
    """Name in the statement, name in the SQL, and the table."""
    merged: dict[str, tuple[str, NoisyField]] = field(default_factory=dict)
    grouped: bool = False
    """Whether there is a GROUP BY: a column outside of an aggregate is then a key, and the mark of one row is not that of its group."""

    def find(self, name: str, table: str | None) -> list[tuple[str, NoisyField]]:
        """What a column name can mean: its SQL and what is known of it."""
        lowered = name.lower()
        if table is None and lowered in self.merged:
            return [self.merged[lowered]]
        return [
            (f"{alias}.{item.fields[lowered].name}", item.fields[lowered])
            for called, alias, item in self.items
            if (table is None or called == table.lower()) and lowered in item.fields
        ]

    def all_columns(self, node: exp.Expr) -> list[tuple[str, Value]]:
        """Every column by its name, a column that USING merged once."""
        values: dict[str, Value] = {}
        listed = []
        for _, alias, item in self.items:
            for name, known in item.fields.items():
                sql, known = self.merged.get(name, (f"{alias}.{known.name}", known))
                if name in self.merged and name in values:
                    continue
                values[name] = Value(sql, known.kind, _form(known), node, mark=None if self.grouped else _mark(sql, known))
                listed.append((name, values[name]))
        return listed


def _form(known: NoisyField) -> algebra.Form:
    """Rows of a nested SELECT are not the groups of one private query any more, so keys are not numbered here."""
    return algebra.COMPUTED if isinstance(known.form, KeyOutput) else known.form


def _mark(sql: str, known: NoisyField) -> str | None:
    """The marks stand beside their column. A row that an outer join filled up has none."""
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
        if type(node) not in _AGGREGATES and type(node) is not exp.Count:
            return None
        self.aggregated = self.inside = True
        with outputs.session.reading(node) as reader:
            if type(node) is exp.Count:
                value = self._count(outputs, reader)
            else:
                value = self._aggregate(outputs, reader)
        self.inside = False
        return value

    def _aggregate(self, outputs: Outputs, reader: Reader) -> Value:
        node, argument = reader.node, reader.node_of("this")
        value = outputs.number(argument) if type(node) in (exp.Sum, exp.Avg) else outputs.bind(argument)
        name, mark = _AGGREGATES[type(node)], marks.of_aggregate(value.mark)
        if name == "sum" and value.kind is Kind.INTEGER:
            return Value(f"TRY_CAST(sum({value.sql}) AS BIGINT)", Kind.INTEGER, algebra.COMPUTED, node, mark=mark)
        return Value(f"{name}({value.sql})", Kind.REAL if name == "avg" else value.kind, algebra.COMPUTED, node, mark=mark)

    def _count(self, outputs: Outputs, reader: Reader) -> Value:
        reader.flag("big_int")
        argument = reader.node_of("this")
        if type(argument) is exp.Star:
            with outputs.session.reading(argument):
                return Value("count(*)", Kind.INTEGER, algebra.COMPUTED, reader.node)
        return Value(f"count({outputs.bind(argument).sql})", Kind.INTEGER, algebra.COMPUTED, reader.node)

    def column(self, outputs: Outputs, reader: Reader) -> Value:
        """A column of one of the noisy tables."""
        name, table = column_name(outputs.session, reader)
        matches = self.scope.find(name, table)
        if not matches and table is None and name.lower() in outputs.aliases:
            return outputs.aliases[name.lower()]
        if len(matches) != 1:
            code, what = ("ambiguous-column", "several subqueries have") if matches else ("unknown-column", "there is here no")
            raise outputs.session.refuse(
                code, f"{what} a column {name!r}" if matches else f"there is no column {name!r} here", node=reader.node
            )
        sql, known = matches[0]
        mark = _mark(sql, known) if self.inside or not self.scope.grouped else None
        return Value(sql, known.kind, _form(known), reader.node, mark=mark)

    def refusal(self, outputs: Outputs, node: exp.Expr) -> Refused:
        """What cannot be computed from noisy tables."""
        if isinstance(node, exp.ArgMax | exp.ArgMin):
            message, hint = "this aggregate is not computed from answers", "SELECT ... ORDER BY n DESC LIMIT 1"
            return outputs.session.refuse("aggregate-unsupported", message, node=node, hint=hint)
        if isinstance(node, exp.AggFunc):
            message, hint = "this aggregate is not computed from answers", "SUM, AVG, MIN, MAX and COUNT are"
            return outputs.session.refuse("aggregate-unsupported", message, node=node, hint=hint)
        return unsupported(outputs.session, node)


def join(scope: NoisyScope, outputs: Outputs, reader: Reader, name: str, item: NoisyItem) -> str:
    """The SQL that joins one more noisy table."""
    session = scope.session
    side, kind = reader.word("side").upper(), reader.word("kind").upper()
    if side not in ("", "LEFT", "RIGHT", "FULL") or kind not in ("", "INNER", "OUTER"):
        raise session.refuse("join-unsupported", "this kind of join is not supported", node=reader.node)
    on, using = reader.optional("on"), reader.many("using")
    before = [*scope.items]
    alias = f"s{len(scope.items)}"
    scope.items.append((name, alias, item))
    word = f"{side} JOIN" if side else "JOIN"
    if using:
        names = [identifier(session, node).lower() for node in using]
        parts = []
        for shared, node in zip(names, using, strict=True):
            left = [(f"{a}.{i.fields[shared].name}", i.fields[shared]) for _, a, i in before if shared in i.fields]
            if len(left) != 1 or shared not in item.fields or side not in ("", "LEFT"):
                raise session.refuse("join-unsupported", "both sides of USING need this column, once", node=node)
            parts.append(f"{left[0][0]} = {alias}.{item.fields[shared].name}")
            scope.merged[shared] = left[0]
        condition = " AND ".join(parts)
    elif on is not None:
        condition = outputs.condition(on, "ON").sql
    else:
        raise session.refuse("join-unconditional", "every row would be joined to every row", node=reader.node, hint="JOIN ... ON")
    return f" {word} ({item.sql}) AS {alias} ON {condition}"
