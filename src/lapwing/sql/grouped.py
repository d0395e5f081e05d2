"""SELECT with aggregates over rows: the private query, and the leaves of expressions over its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Kind, kind_of, number_type
from lapwing.kernel.expressions import Call, Case, Column, Expression, Literal
from lapwing.kernel.stability import domain_of
from lapwing.render.duckdb import DUCKDB
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.values import Value, literal_sql
from lapwing.sql.rollup import grouping_bits
from lapwing.sql.rows import algebra
from lapwing.sql.rows.aggregates import Aggregates
from lapwing.sql.rows.modes import Mode, is_mode, mode, require_shared
from lapwing.sql.scalars.binding import Scalars, column, column_name, unsupported
from lapwing.sql.scalars.same_as import same_as, tried
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.select_list import SelectItem, nth
from lapwing.sql.shifted_sums import shifted_sum
from lapwing.sql.text.reader import Reader
from lapwing.statements import QUANTILES, KeyOutput, LinearOutput, Noisy, PrivateQuery, QuantileOutput


@dataclass(frozen=True, slots=True)
class GroupedLeaves:
    """Keys and aggregates of private query number ``query``."""

    query: int
    scalars: Scalars
    aggregates: Aggregates
    keys: tuple[Typed, ...]
    levels: bool = False
    """Whether there are sub-totals."""
    sums: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many sums there are of each column, shifted by a constant or not."""
    privates: list[PrivateQuery | None] = field(default_factory=list)
    """All private queries so far."""
    modes: list[Mode] = field(default_factory=list)
    """The modes of the statement, each chosen by separate counts."""

    def leaf(self, outputs: Outputs, node: exp.Expr) -> Value | None:
        """An aggregate, or a key."""
        if type(node) is exp.Grouping:
            return self._grouping(outputs, node)
        shifted = shifted_sum(self.aggregates, node, self.query, self.sums)
        if shifted is not None:
            return shifted
        if isinstance(node, exp.Min | exp.Max):
            same = self._same_in_group(outputs, node)
            if same is not None:
                return same
        if is_mode(node):
            return self._mode(node)
        if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup):
            number, measured = self.aggregates.bind(node)
            noisy = Noisy(self.query, number)
            form = QuantileOutput(noisy) if measured.aggregate.kind in QUANTILES else LinearOutput(noisy)
            sql, kind = f"q{self.query}.a{number}", measured.kind
            if measured.words is not None:
                listed = ", ".join(literal_sql(Literal(word, Kind.TEXT)) for word in measured.words)
                sql, kind = f"([{listed}])[{sql} + 1]", Kind.TEXT
            return Value(sql, kind, form, node, mark=f"q{self.query}.m{number}", number=measured.number)
        key = self._key(node)
        if key is not None:
            return self._key_value(key, node)
        return None if outputs.computes(node) else self._of_keys(node)

    def _same_in_group(self, outputs: Outputs, node: exp.Expr) -> Value | None:
        """MIN or MAX of a key or a function of keys, which is the same in all rows of a group. It costs nothing."""
        inner = node.this
        if self.levels or not self.keys or not isinstance(inner, exp.Expr):
            return None
        key = self._key(inner)
        same = self._of_keys(inner) if key is None else self._key_value(key, node)
        if same is not None:
            with outputs.session.reading(node) as reader:
                reader.node_of("this")
        return same

    def _key_value(self, key: int, node: exp.Expr) -> Value:
        typed = self.keys[key]
        return Value(f"q{self.query}.k{key}", typed.kind, KeyOutput(key), node, number=number_type(typed.domain))

    def _mode(self, node: exp.Expr) -> Value:
        """The value with the largest noisy count; NULL where no count is above 0."""
        if self.levels:
            message, hint = "the MODE of a sub-total does not follow from those of its groups", "write a separate statement for each level"
            raise self.scalars.session.refuse("groups-unsupported", message, node=node, hint=hint)
        number = len(self.privates)
        self.privates.append(None)
        found = mode(self.scalars, node, number)
        self.modes.append(found)
        value, mark = (found.chosen(f"q{self.query}", len(self.keys), column) for column in (f"k{len(self.keys)}", "m0"))
        return Value(value, found.value.kind, algebra.COMPUTED, node, mark=f"coalesce({mark}, 0)")

    def _of_keys(self, node: exp.Expr) -> Value | None:
        """A function of keys alone, such as the name of a month in GROUP BY: it has one value in all rows of a group.

        None for keys that are real numbers, whose form in answers differs from that in rows, and for sub-totals, where keys are NULL.
        """
        if self.levels or not self.keys:
            return None
        expression, keep = tried(self.scalars, node)
        over = None if expression is None else _over_keys(expression, [key.expression for key in self.keys])
        if over is None or any(key.kind is Kind.REAL for key in self.keys):
            return None
        keep()
        columns = {f"k{number}": domain_of(key.expression, self.scalars.scope.columns) for number, key in enumerate(self.keys)}
        sql = render_expression(over, VisibleColumns(columns, f"q{self.query}", DUCKDB))
        return Value(sql, kind_of(domain_of(over, columns)), algebra.COMPUTED, node)

    def _grouping(self, outputs: Outputs, node: exp.Expr) -> Value:
        with outputs.session.reading(node) as reader:
            numbers = [(part, self._key(part)) for part in reader.many("expressions")]
        for part, number in numbers:
            if number is None:
                raise outputs.session.refuse("not-grouped", "GROUPING takes only keys of GROUP BY", node=part)
        if not self.levels:
            hint = "use GROUP BY ROLLUP (...), CUBE or GROUPING SETS"
            raise outputs.session.refuse("groups-unsupported", "GROUPING needs sub-totals, and there are none", node=node, hint=hint)
        return grouping_bits(node, self.query, [number for _, number in numbers if number is not None])

    def _key(self, node: exp.Expr) -> int | None:
        """The number of the key that the node is, or None."""
        return same_as(self.scalars, node, [key.expression for key in self.keys])

    def column(self, outputs: Outputs, reader: Reader) -> Value:
        """An alias of SELECT; any other column is refused."""
        name, table = column_name(outputs.session, reader)
        if table is None and name.lower() in outputs.aliases:
            return replace(outputs.aliases[name.lower()], node=reader.node)
        bound = column(self.scalars, reader.node, name, table)
        where = "an aggregate" if not self.keys else "an aggregate or in GROUP BY"
        hint = f"write {name} inside an aggregate such as COUNT or SUM, or add it to GROUP BY"
        raise outputs.session.refuse("not-grouped", f"the column {name!r} must appear inside {where}", node=bound.node, hint=hint)

    def refusal(self, outputs: Outputs, node: exp.Expr) -> Refused:
        """The refusal of a node that is neither an aggregate nor in GROUP BY."""
        if type(node) in self.scalars.handlers:
            self.scalars.bind(node)  # refuses first what is wrong with it as an expression over rows
            hint = "put the whole expression into GROUP BY, or inside an aggregate"
            return outputs.session.refuse("not-grouped", "this is neither an aggregate nor in GROUP BY", node=node, hint=hint)
        return unsupported(outputs.session, node)


def _over_keys(expression: Expression, keys: Sequence[Expression]) -> Expression | None:
    """The expression with columns k0, k1, .. in place of the keys; None where it needs more than these."""
    if expression in keys:
        return Column(f"k{keys.index(expression)}")
    match expression:
        case Column():
            return None
        case Literal():
            return expression
        case Call(function, arguments):
            parts = [_over_keys(argument, keys) for argument in arguments]
            return None if None in parts else Call(function, tuple(part for part in parts if part is not None))
        case Case(branches, otherwise):
            flat = [part for branch in branches for part in branch] + [otherwise]
            over = [part for part in (_over_keys(item, keys) for item in flat) if part is not None]
            if len(over) != len(flat):
                return None
            return Case(tuple(zip(over[0:-1:2], over[1:-1:2], strict=True)), over[-1])
        case _:
            assert_never(expression)


def keys_of(
    scalars: Scalars, nodes: tuple[exp.Expr, ...], items: list[SelectItem], meanings: dict[int, Expression] | None = None
) -> list[Typed]:
    """The keys of GROUP BY, each once. ``meanings`` collects the expression of each node by its id. Constants beside keys are ignored."""
    distinct: dict[Expression, Typed] = {}
    constant = [node for node in nodes if _is_constant(meant(scalars, node, items))]
    for node in nodes:
        if node in constant and len(constant) < len(nodes):
            scalars.bind(node)
            continue
        key = _key(scalars, node, items)
        distinct.setdefault(key.expression, key)
        if meanings is not None:
            meanings[id(node)] = key.expression
    return list(distinct.values())


def _is_constant(node: exp.Expr) -> bool:
    return type(node) in (exp.Literal, exp.Boolean) or (type(node) is exp.Neg and type(node.this) is exp.Literal)


def _key(scalars: Scalars, node: exp.Expr, items: list[SelectItem]) -> Typed:
    session = scalars.session
    key = scalars.bind(meant(scalars, node, items))
    require_shared(session, key, node)
    return key


def meant(scalars: Scalars, node: exp.Expr, items: list[SelectItem]) -> exp.Expr:
    """The expression behind an ordinal or an alias; a column of that name comes before an alias."""
    if type(node) is exp.Literal and not node.is_string:
        return nth(scalars.session, node, items).node
    if type(node) is exp.Column:
        with scalars.session.reading(node) as reader:
            name, table = column_name(scalars.session, reader)
        if table is None and not scalars.scope.lookup(name, None):
            return next((item.node for item in items if item.alias.lower() == name.lower()), node)
    return node
