"""Whole releases for the sensitivity oracle: several tables over the same rows, each with its own noise, under one charge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from lapwing.audit.plan_shapes import law_of
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Column, Function, Literal, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Bounding, Filter, Plan, Ranked, Relation, Scan, Weighted
from lapwing.kernel.stability import shape_of
from lapwing.releases.marginals.axes import Axis, axis_of
from lapwing.releases.marginals.measurements import CountTable, release_plan, whole_plan
from lapwing.releases.tree.axes import tree_axes

Shape: TypeAlias = Callable[[Facts], Plan]
BITS = 10
ALL_PAIRS = ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
WITH_TRIPLE = (*ALL_PAIRS, (0, 1, 2))
COST_EDGES = (Fraction(1), Fraction(12), Fraction(499))


def _visit_axes(facts: Facts) -> list[Axis]:
    """Axes: a column with a bin for each value, ranges of money, ranges of days."""
    columns = shape_of(Scan("visits", 1), facts).columns
    return [
        axis_of("clinic", columns["clinic"]),
        axis_of("cost", columns["cost"], bins=COST_EDGES),
        axis_of("day", columns["day"], bins=3),
    ]


def _released(
    rows: Relation, axes: Sequence[Axis], tables: Sequence[tuple[int, ...]], bounding: Bounding, facts: Facts, *, section: int = 0
) -> Plan:
    """Tables with more axes have more noise, so that tables cannot be confused."""
    law = law_of(facts)
    laws = [replace(law, scale=law.scale * (1 + place)) for place in range(len(tables))]
    return release_plan(rows, axes, [CountTable(*one) for one in zip(tables, laws, strict=True)], bounding, section=section)


def _people(facts: Facts) -> Plan:
    columns = shape_of(Scan("people", 1), facts).columns
    axes = [axis_of("sex", columns["sex"]), axis_of("age", columns["age"], bins=4), axis_of("score", columns["score"], bins=5)]
    return _released(Scan("people", 1), axes, WITH_TRIPLE, Ranked(), facts)


def _tree(facts: Facts) -> Plan:
    """A tree over days for each clinic: each level is a table over its own axis."""
    columns = shape_of(Scan("visits", 1), facts).columns
    axes = [axis_of("clinic", columns["clinic"]), *tree_axes("day", columns["day"], branch=4, bins=64)]
    return _released(Scan("visits", 3), axes, [(0, number) for number in range(1, len(axes))], Ranked(), facts)


def _several(facts: Facts) -> Plan:
    """Marginals and two trees under one charge; one tree is over a column of the marginals, in other bins."""
    columns, rows, bounding = shape_of(Scan("visits", 1), facts).columns, Scan("visits", 12), Weighted(2, BITS)
    days = [axis_of("clinic", columns["clinic"]), *tree_axes("day", columns["day"], branch=4, bins=16)]
    costs = tree_axes("cost", columns["cost"], branch=2, bins=4)
    return whole_plan(
        [
            _released(rows, _visit_axes(facts), ((0,), (0, 1), (0, 2)), bounding, facts),
            _released(rows, days, [(0, number) for number in range(1, len(days))], bounding, facts, section=1),
            _released(rows, costs, [(number,) for number in range(len(costs))], bounding, facts, section=2),
        ]
    )


def release_shapes() -> dict[str, Shape]:
    """Every kind of release: one row per unit, several rows, weighted rows, filtered rows, a tree, several parts."""
    july = call(Function.EQUAL, call(Function.MONTH, Column("day")), Literal(7, Kind.INTEGER))
    return {
        "release, one row per unit": _people,
        "release, ranked rows": lambda f: _released(Scan("visits", 3), _visit_axes(f), WITH_TRIPLE, Ranked(), f),
        "release, weighted rows": lambda f: _released(Scan("visits", 12), _visit_axes(f), ALL_PAIRS, Weighted(2, BITS), f),
        "release, some rows": lambda f: _released(Filter(Scan("visits", 3), july), _visit_axes(f), ALL_PAIRS, Ranked(), f),
        "release, a tree": _tree,
        "release, several parts": _several,
    }
