"""Branches of a UNION ALL that exclude one another: they are the groups of one query."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, call
from lapwing.kernel.ir import Filter, Relation
from lapwing.statements import MIRRORED, PrivateQuery, conjuncts

_OPPOSITE = {**MIRRORED, Function.EQUAL: Function.EQUAL}
_INFINITE = Fraction(10**40)


def merged(queries: Sequence[PrivateQuery]) -> PrivateQuery | None:
    """One query whose groups are the given queries; None unless these differ only in conditions that exclude one another."""
    bases = [_split(query.source) for query in queries]
    first = queries[0]
    if len(queries) < 2 or any(query.keys or query.aggregates != first.aggregates or query.groups for query in queries):
        return None
    if any(base != bases[0][0] for base, _ in bases) or any(not conditions for _, conditions in bases):
        return None
    parts = [conditions for _, conditions in bases]
    if not all(excluding(parts[i], parts[j]) for i in range(len(parts)) for j in range(i)):
        return None
    wholes = [part[0] if len(part) == 1 else call(Function.AND, *part) for part in parts]
    branches = tuple((whole, Literal(number, Kind.INTEGER)) for number, whole in enumerate(wholes))
    key = Case(branches, Literal(None, Kind.INTEGER))
    source = Filter(bases[0][0], call(Function.OR, *wholes))
    return PrivateQuery(source, (("k0", key),), first.aggregates, tuple((number,) for number in range(len(queries))))


def _split(relation: Relation) -> tuple[Relation, tuple[Expression, ...]]:
    """The relation below a filter, and the parts of its condition."""
    if not isinstance(relation, Filter):
        return relation, ()
    return relation.source, conjuncts(relation.predicate)


def excluding(left: Sequence[Expression], right: Sequence[Expression]) -> bool:
    """Whether no row can satisfy all of both: some column would have to lie in two disjoint ranges."""
    ranges: dict[str, tuple[Fraction, bool, Fraction, bool]] = {}
    for part in (*left, *right):
        interval = _range(part)
        if interval is None:
            continue
        column, (lo, lo_open, hi, hi_open) = interval
        a, a_open, b, b_open = ranges.get(column, (-_INFINITE, True, _INFINITE, True))
        lo, lo_open = max((a, a_open), (lo, lo_open))
        hi, negated = min((b, not b_open), (hi, not hi_open))
        ranges[column] = (lo, lo_open, hi, not negated)
    return any(lo > hi or (lo == hi and (lo_open or hi_open)) for lo, lo_open, hi, hi_open in ranges.values())


def _range(part: Expression) -> tuple[str, tuple[Fraction, bool, Fraction, bool]] | None:
    """A comparison of a column with a constant, or a truth value, as a range: low end, open, high end, open."""
    if isinstance(part, Column):
        return part.name, (Fraction(1), False, Fraction(1), False)
    if not isinstance(part, Call):
        return None
    if part.function is Function.NOT and isinstance(part.arguments[0], Column):
        return part.arguments[0].name, (Fraction(0), False, Fraction(0), False)
    if part.function not in _OPPOSITE or len(part.arguments) != 2:
        return None
    (left, right), function = part.arguments, part.function
    if isinstance(left, Literal):
        left, right, function = right, left, _OPPOSITE[function]
    if not isinstance(left, Column) or not isinstance(right, Literal) or isinstance(right.value, str | bool | None):
        return None
    value = Fraction(right.value)
    match function:
        case Function.LESS:
            return left.name, (-_INFINITE, True, value, True)
        case Function.LESS_EQUAL:
            return left.name, (-_INFINITE, True, value, False)
        case Function.GREATER:
            return left.name, (value, True, _INFINITE, True)
        case Function.GREATER_EQUAL:
            return left.name, (value, False, _INFINITE, True)
        case _:
            return left.name, (value, False, value, False)
