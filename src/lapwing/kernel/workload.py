"""What one unit's rows may cost an engine, decided before anything is read.

Memory and time of an engine are limited, and reaching a limit is observable. So no unit may bring a statement near one by its rows alone:
every relation of a plan holds at most ``limits.rows`` rows of one unit, what a query has to keep of them is at most ``limits.size`` bytes,
and what is computed for them at most ``limits.work`` parts of expressions in all. These follow from the plan and public facts. Proof:
docs/proofs/unit-work.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import OPEN_TEXT_BYTES, Domain, bytes_max
from lapwing.kernel.expressions import Expression, part_count
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Clipped,
    DiscoveredGroups,
    DistinctCount,
    Filter,
    Grouped,
    PerUnit,
    Project,
    PublicJoin,
    Query,
    Ranked,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitJoin,
    UnitNorms,
    UnitWindow,
    Weighted,
)
from lapwing.kernel.shapes import Shape
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.kernel.unit_norms import value_of

PASSES_AFTER_CELLS = 3
"""How often an engine without caching scans the cells of a unit: for their norm or number, the choice among them, their sum."""


def require_bounded_work(queries: tuple[tuple[Query, Shape], ...], facts: Facts) -> None:
    """Refuse a plan in which one unit's rows could become too many, too large, or too much work."""
    limits = facts.limits
    widest = max(shape.widest for _, shape in queries)
    if widest > limits.rows:
        hint = "count units instead of rows, ask with EXISTS, or aggregate each side per unit before joining"
        message = f"joined or repeated like this, the rows of one unit could become {widest:,}; at most {limits.rows:,} are allowed"
        raise Refused("unit-rows", message, hint=hint)
    size = sum(unit_bytes(query, shape, facts) for query, shape in queries)
    if size > limits.size:
        message = f"keys, distinct values and windows of one unit's rows could take up {size:,} bytes; at most {limits.size:,} are allowed"
        raise Refused("unit-size", message, hint="group by fewer texts, or join fewer rows of one unit")
    work = sum(unit_work(query, shape) for query, shape in queries)
    if work > limits.work:
        message = f"what is computed for the rows of one unit has {work:,} parts; at most {limits.work:,} are allowed"
        raise Refused("unit-work", message, hint="ask for less in one statement, or join fewer rows of one unit")


def kept_bytes(keys: Iterable[Expression], distinct: Iterable[Expression], columns: Mapping[str, Domain]) -> int:
    """Most bytes of a row that an engine has to keep until all rows have been read: the unit, keys, and values that are kept apart."""
    return OPEN_TEXT_BYTES + sum(bytes_max(domain_of(value, columns)) for value in (*keys, *distinct))


def unit_bytes(query: Query, shape: Shape, facts: Facts) -> int:
    """Most bytes of one unit's rows that an engine has to keep for a query."""
    distinct = [vector.measure.value for vector in query.vectors if isinstance(vector.measure, DistinctCount)]
    cells = 0
    if isinstance(query.source, UnitNorms):
        inner = shape_of(query.source.source, facts)
        cells = inner.rows_per_unit * kept_bytes((key for _, key in query.source.keys), (), inner.columns)
    cells += sum(_kept_within(part, facts) for part in parts_of(query.source))
    return cells + shape.rows_per_unit * kept_bytes((key for _, key in query.keys), distinct, shape.columns)


def _kept_within(relation: Relation, facts: Facts) -> int:
    """Bytes of one unit's rows that a relation holds together: a window all columns of its rows, rows grouped within units their keys."""
    if not isinstance(relation, UnitWindow | PerUnit) or (isinstance(relation, PerUnit) and not relation.keys):
        return 0
    shape = shape_of(relation.source, facts)
    if isinstance(relation, PerUnit):
        return shape.rows_per_unit * kept_bytes((key for _, key in relation.keys), (), shape.columns)
    row = OPEN_TEXT_BYTES * (1 + len(relation.columns)) + sum(bytes_max(domain) for domain in shape.columns.values())
    return shape.rows_per_unit * row


def parts_of(relation: Relation | UnitNorms) -> Iterator[Relation]:
    """A relation and all its parts, from left to right, repeated if used twice. Norms are not a relation, but their source is."""
    if isinstance(relation, UnitNorms):
        yield from parts_of(relation.source)
        return
    yield relation
    match relation:
        case Scan():
            return
        case Filter(source) | Project(source) | PublicJoin(source) | PerUnit(source) | UnitWindow(source):
            yield from parts_of(source)
        case UnitJoin(left, right) | SemiJoin(left, right):
            yield from parts_of(left)
            yield from parts_of(right)
        case Union(sources):
            for source in sources:
                yield from parts_of(source)
        case _:
            assert_never(relation)


def scans_of(relation: Relation | UnitNorms) -> tuple[Scan, ...]:
    """Every reading of a protected table."""
    return tuple(part for part in parts_of(relation) if isinstance(part, Scan))


def unit_work(query: Query, shape: Shape) -> int:
    """Parts of expressions computed for the rows of one unit, over all statements that a query is rendered to."""
    values = [*(key for _, key in query.keys), *(value for vector in query.vectors if (value := value_of(vector.measure)) is not None)]
    values += [item.value for item in query.quantiles]
    after = shape.after(1 + len(query.vectors) + sum(part_count(value) for value in values))
    main = 1 if query.vectors or isinstance(query.groups, DiscoveredGroups) else 0
    spread = isinstance(query.groups, DiscoveredGroups) and query.groups.spread_bits is not None
    match query.bounding:
        case Ranked() | Weighted():
            passes = main * (PASSES_AFTER_CELLS if spread else 1)
        case Clipped() | Grouped():
            passes = main * (PASSES_AFTER_CELLS + spread)
        case _:
            assert_never(query.bounding)
    return (passes + len(query.quantiles)) * after.work
