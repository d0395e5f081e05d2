"""GROUP BY with several levels: ROLLUP, CUBE and GROUPING SETS. The finest groups are measured; every other level adds them up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from lapwing.errors import Refused, Span
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Expression
from lapwing.sql.over_answers.values import Value
from lapwing.sql.rows import algebra
from lapwing.sql.text.reader import Reader, Session
from lapwing.statements import QUANTILES, Aggregate, AggregateKind

_LEVELS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_NOT_ADDITIVE = frozenset({AggregateKind.COUNT_UNITS, AggregateKind.COUNT_DISTINCT}) | QUANTILES
"""Aggregates that do not follow from sums over groups. All others do: their counts, sums and moments are additive."""

_Set = tuple[exp.Expr, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys of a GROUP BY, each place of the text once, and the levels (sets of keys), if it has ROLLUP, CUBE or GROUPING SETS."""

    nodes: tuple[exp.Expr, ...]
    levels: tuple[_Set, ...] | None

    def numbered(self, keys: list[Expression], bound: dict[int, Expression]) -> tuple[tuple[int, ...], ...] | None:
        """Levels as numbers of keys, or None where the finest is the only one. ``bound`` gives the expression of each node by its id."""
        if self.levels is None:
            return None
        levels = tuple(tuple(sorted({keys.index(bound[id(node)]) for node in level})) for level in self.levels)
        return None if levels == (tuple(range(len(keys))),) else levels


def grouping(session: Session, reader: Reader, selected: list[exp.Expr]) -> Grouping:
    """The contents of a GROUP BY. ALL expands to every selected expression that depends on rows, but not through an aggregate."""
    if reader.flag("all"):
        keys = [node for node in selected if node.find(exp.Column) is not None and not has_aggregate(node)]
        return Grouping(tuple(keys), None)
    reader.require_absent("rollup", "cube", "grouping_sets")
    items = reader.many("expressions")
    if not any(isinstance(item, _LEVELS) for item in items):
        return Grouping(items, None)
    choices = [_sets(session, item) for item in items]
    limit, many = session.settings.grouping_sets_max, 1
    for sets in choices:
        many *= len(sets)
        if many > limit:
            message = f"a GROUP BY may have at most {limit} levels"
            raise session.refuse(
                "groups-unsupported", message, node=reader.node, hint="list fewer columns in CUBE, or write one statement for each level"
            )
    levels = tuple(tuple(node for part in chosen for node in part) for chosen in product(*choices))
    nodes: dict[int, exp.Expr] = {id(node): node for level in levels for node in level}
    return Grouping(tuple(nodes.values()), levels)


def _sets(session: Session, node: exp.Expr) -> list[_Set]:
    """The grouping sets of one item of GROUP BY."""
    if type(node) is exp.GroupingSets:
        with session.reading(node) as reader:
            return [grouping_set for item in reader.many("expressions") for grouping_set in _sets_within(session, item)]
    if type(node) not in (exp.Rollup, exp.Cube):
        return [(node,)]
    with session.reading(node) as reader:
        parts = [_composite(session, item) for item in reader.many("expressions")]
    limit = session.settings.grouping_sets_max
    if type(node) is exp.Rollup:
        chosen = [parts[:length] for length in range(len(parts), -1, -1)]
    elif 2 ** len(parts) <= limit:
        chosen = [list(some) for length in range(len(parts), -1, -1) for some in combinations(parts, length)]
    else:
        message = f"a GROUP BY may have at most {limit} levels"
        raise session.refuse(
            "groups-unsupported", message, node=node, hint="list fewer columns in CUBE, or write one statement for each level"
        )
    return [tuple(key for part in some for key in part) for some in chosen]


def _sets_within(session: Session, node: exp.Expr) -> list[_Set]:
    return _sets(session, node) if isinstance(node, _LEVELS) else [_composite(session, node)]


def _composite(session: Session, node: exp.Expr) -> _Set:
    """One expression, or several in brackets that form one key."""
    if type(node) is exp.Tuple:
        with session.reading(node) as reader:
            return reader.many("expressions")
    if type(node) is exp.Paren:
        with session.reading(node) as reader:
            return (reader.node_of("this"),)
    return (node,)


def require_additive(aggregates: list[Aggregate], spans: list[Span]) -> None:
    """Refuse aggregates that are not sums over groups."""
    for aggregate, span in zip(aggregates, spans, strict=True):
        if aggregate.kind in _NOT_ADDITIVE:
            message = "sub-totals are sums over the groups, which does not work here: what occurs in two groups would count twice"
            hint = "write one statement for each level"
            if aggregate.kind in (AggregateKind.COUNT_UNITS, AggregateKind.COUNT_DISTINCT):
                hint = "write one statement for each level, or use COUNT(*)"
            raise Refused("groups-unsupported", message, hint=hint, span=span)


def grouping_bits(node: exp.Expr, query: int, numbers: list[int]) -> Value:
    """GROUPING(k, ...): one bit for each key, 1 in rows that sum over it."""
    sql = " + ".join(f"{2**place} * q{query}.g{key}" for place, key in enumerate(reversed(numbers)))
    return Value(f"({sql})", Kind.INTEGER, algebra.COMPUTED, node)


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression contains an aggregate of its own SELECT."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):  # its function is not an aggregate, but may contain some
        called = node.this.this if isinstance(node.this, exp.Filter) else node.this
        inside = [*called.iter_expressions(), *(child for child in node.iter_expressions() if child is not node.this)]
        inside += [node.this.expression] if called is not node.this else []
        return any(has_aggregate(child) for child in inside)
    if isinstance(node, exp.AggFunc):
        return True
    return any(has_aggregate(child) for child in node.iter_expressions())
