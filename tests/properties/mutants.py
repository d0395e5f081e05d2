"""Deliberate bugs. Each is a real mistake that somebody made or could make; the oracle must see every one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lapwing.engines import prepare, reading
from lapwing.kernel import certify, release, sensitivity, shapes, stability, thresholds
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.domains import Domain
from lapwing.kernel.ir import UnitJoin
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.sensitivity import RowRange, Sensitivity
from lapwing.render import cells, queries, relations

Patch = tuple[object, str, Any]


@dataclass(frozen=True)
class Mutant:
    """A bug: what is replaced, and the relation and account under which it must be seen."""

    name: str
    patches: tuple[Patch, ...]
    relation: str = "unbounded"
    account: Account = Account.APPROXIMATE
    shapes: tuple[str, ...] = ()
    """Shapes it is looked for in; empty means all."""
    order: int | None = None
    """The order of the account, where it is a union of filters."""


def _only_lower_end(integer: str, *, lo: int, hi: int) -> str:
    return f"greatest({integer}, {lo})"


def _only_upper_end(integer: str, *, lo: int, hi: int) -> str:
    return f"least({integer}, {hi})"


def _no_integer_clamp(double: str, *, steps: int, lo: int, hi: int, dialect: Any) -> str:
    clamped = f"least(greatest({double}, {lo}.0 / {steps}), 0.49999999999999994)" if hi == 0 else double
    return f"CAST(floor({clamped} * {steps} + 0.5) AS BIGINT)"


def _spread_without_nothing(self: RowRange) -> int:
    return self.hi - self.lo


def _half_range(self: RowRange) -> int:
    return (self.hi - self.lo + 1) // 2


def _weight_rounded_up(bounding: Any, dialect: Any) -> str:
    one = 2**bounding.bits
    return f"(CASE WHEN i._rows <= {bounding.rows} THEN {one} ELSE ({bounding.rows * one} // i._rows) + 1 END)"


def _first_query_only(queries_: tuple[certify.CertifiedQuery, ...]) -> Cost:
    return _TOTAL_COST(queries_[:1])


def _delta_of_first_only(queries_: tuple[certify.CertifiedQuery, ...]) -> Cost:
    return replace(_TOTAL_COST(queries_), delta=_TOTAL_COST(queries_[:1]).delta)


def _cost_rounded_down(queries_: tuple[certify.CertifiedQuery, ...]) -> Cost:
    exact = _TOTAL_COST(queries_)
    return replace(exact, loss=exact.loss - exact.loss // 1_000_000 - 1)


def _pure_of_first_only(queries_: tuple[certify.CertifiedQuery, ...]) -> Cost:
    return replace(_TOTAL_COST(queries_), pure=_TOTAL_COST(queries_[:1]).pure)


def _pure_rounded_down(queries_: tuple[certify.CertifiedQuery, ...]) -> Cost:
    exact = _TOTAL_COST(queries_)
    return replace(exact, pure=None if exact.pure is None else exact.pure - exact.pure // 1_000_000 - 1)


def _keys_without_a_say(queries_: tuple[certify.CertifiedQuery, ...]) -> Cost:
    pure = _TOTAL_COST(tuple(replace(query, keys=None) for query in queries_)).pure
    return replace(_TOTAL_COST(queries_), pure=pure)


_TOTAL_COST = certify.total_cost
_UNIT_VALUE = reading.unit_value
_ROWS_WEIGHING = sensitivity.rows_weighing
_CLIPPED = sensitivity.clipped
_GROUPED = sensitivity.grouped
_LEAST_THRESHOLD = thresholds.least_threshold
_UNIT_JOIN = shapes.joined
_UNION = shapes.united
_NORM = certify._norm
_RANKING_TEXT = prepare.ranking_text
_FLAT = queries._Input.flat
_DENSE = release.dense_vectors


def _units_clamped(raw: str, kind: Any, domain: Domain, dialect: Any) -> str:
    """Units 3, 4, 5, ... become one. Keys of visits are larger: two units that share one would not be prepared."""
    value = _UNIT_VALUE(raw, kind, domain, dialect)
    return f"(CASE WHEN {value} BETWEEN 3 AND 999 THEN 3 ELSE {value} END)"


def _unbounded_formula(function: Callable[..., Sensitivity]) -> Callable[..., Sensitivity]:
    def mutated(_: Neighbours, **facts: Any) -> Sensitivity:
        return function(Neighbours.UNBOUNDED, **facts)

    return mutated


def _always_non_negative(function: Callable[..., Sensitivity]) -> Callable[..., Sensitivity]:
    def mutated(neighbours: Neighbours, **facts: Any) -> Sensitivity:
        return function(neighbours, **{**facts, "non_negative": True})

    return mutated


def _bits_forgotten(neighbours: Neighbours, *, weight: int, row: RowRange) -> Sensitivity:
    return _ROWS_WEIGHING(neighbours, weight=weight >> 10 or weight, row=row)


def _left_join_without_fan_out(join: UnitJoin, left: stability.Shape, right: stability.Shape) -> stability.Shape:
    return replace(_UNIT_JOIN(join, left, right), rows_per_unit=left.rows_per_unit)


def _widest_part_only(shapes: tuple[stability.Shape, ...]) -> stability.Shape:
    return replace(_UNION(shapes), rows_per_unit=max(shape.rows_per_unit for shape in shapes))


def _sum_bounded_like_a_row(value: Domain, rows: int) -> Domain:
    return value


def _follower_without_row_bound(vector: Any, row: RowRange, query: Any) -> int:
    return _NORM(vector, RowRange(0, 1), query)


def _rows_as_key_count(self: Any) -> str:
    return str(_FLAT(self)).replace("COUNT(DISTINCT i._unit) AS units", "COUNT(*) AS units")


def _signed_modulo(groups_kept: int) -> str:
    signed = "(CAST(hash(p._unit, p.pick) % 9223372036854775807 AS BIGINT) - 4611686018427387904)"
    return f"({signed} % 4) < {groups_kept}"


def _only_groups_with_rows(groups: Any, table: Any) -> list[list[int]]:
    return [[value for value in vector if value != 0] for vector in _DENSE(groups, table)]


def _distinct_counted_once(neighbours: Neighbours, *, pairs: int) -> Sensitivity:
    return sensitivity.units_counted(neighbours, groups=pairs)


def _threshold_one_lower(law: Any, *, groups_per_unit: int, delta: Fraction) -> int:
    return int(_LEAST_THRESHOLD(law, groups_per_unit=groups_per_unit, delta=delta)) - 1


def _threshold_for_one_group(law: Any, *, groups_per_unit: int, delta: Fraction) -> int:
    return int(_LEAST_THRESHOLD(law, groups_per_unit=1, delta=delta))


def _one_group_per_unit(query: Any, shape: Any, cells: Any) -> int:
    return 1


BOUNDED = "bounded"
MUTANTS: tuple[Mutant, ...] = (
    Mutant("forgotten rank limit", ((relations, "rank_predicate", lambda alias, k: "TRUE"),)),
    Mutant("RANK for ROW_NUMBER", ((prepare, "rank_of", lambda window: f"RANK() OVER ({window} ORDER BY c._hash)"),)),
    Mutant("rank by position in the file", ((prepare, "rank_of", lambda window: f"ROW_NUMBER() OVER ({window})"),)),
    Mutant(
        "rank by a figure over other units",
        ((prepare, "ranking_text", lambda columns, dialect: f"(COUNT(*) OVER ()) || {_RANKING_TEXT(columns, dialect)}"),),
    ),
    Mutant("upper clamp end dropped", ((queries, "clamped", _only_lower_end), (cells, "clamped", _only_lower_end))),
    Mutant("lower clamp end dropped", ((queries, "clamped", _only_upper_end), (cells, "clamped", _only_upper_end))),
    Mutant("no second clamp as an integer", ((cells, "gridded", _no_integer_clamp),), shapes=("ranked, one group",)),
    Mutant("group choice dropped", ((queries, "choice_predicate", lambda kept: "TRUE"),)),
    Mutant("crowded units off by one", ((queries, "crowded_predicate", lambda kept: f"COUNT(*) > {kept + 1}"),)),
    Mutant("group choice by signed modulo", ((queries, "choice_predicate", _signed_modulo),)),
    Mutant("K_U - K_L for replace-one", ((RowRange, "spread", property(_spread_without_nothing)),), BOUNDED),
    Mutant("half the range without the offset", ((RowRange, "magnitude", property(_half_range)),)),
    Mutant(
        "clipping trusts the float norm",
        (
            (queries, "norm_at_least", lambda square, d: f"CAST(floor(sqrt(CAST({square} AS DOUBLE))) AS HUGEINT)"),
            (queries, "norm_check", lambda n, s: "TRUE"),
        ),
    ),
    Mutant("clipping dropped", ((queries, "scaled_cell", lambda cell, **_: cell),)),
    Mutant("weights rounded up", ((queries, "_weight", _weight_rounded_up),)),
    Mutant("weights of a capped row count ignored", ((prepare, "rows_of_unit", lambda cap: "1"),)),
    Mutant("grid of the weights forgotten", ((sensitivity, "rows_weighing", _bits_forgotten),)),
    Mutant("separate branches charged once", ((certify, "total_cost", _first_query_only),), shapes=("two queries",)),
    Mutant("delta of two discoveries charged once", ((certify, "total_cost", _delta_of_first_only),)),
    Mutant("cost rounded down", ((certify, "total_cost", _cost_rounded_down),)),
    Mutant("private join without the unit", ((relations, "unit_equality", lambda left, right: "TRUE"),)),
    Mutant("one row per unit not enforced", ((prepare, "cap_predicate", lambda cap: "TRUE"), (prepare, "rank_of", lambda w: "1"))),
    Mutant(
        "units merged by clamping",
        ((prepare, "unit_value", _units_clamped),),
    ),
    Mutant("known keys dropped when empty", ((release, "dense_vectors", _only_groups_with_rows),)),
    Mutant("threshold off by one", ((certify, "least_threshold", _threshold_one_lower),)),
    Mutant("threshold for one group of several", ((certify, "least_threshold", _threshold_for_one_group),)),
    Mutant("threshold on row counts", ((queries._Input, "flat", _rows_as_key_count),)),
    Mutant("groups per unit taken as one", ((certify, "groups_per_unit", _one_group_per_unit),)),
    Mutant("replace-one charged as add/remove, rows", ((sensitivity, "rows_weighing", _unbounded_formula(_ROWS_WEIGHING)),), BOUNDED),
    Mutant("replace-one charged as add/remove, clipped", ((sensitivity, "clipped", _unbounded_formula(_CLIPPED)),), BOUNDED),
    Mutant("replace-one charged as add/remove, grouped", ((sensitivity, "grouped", _unbounded_formula(_GROUPED)),), BOUNDED),
    Mutant("signed cells clipped as if positive", ((sensitivity, "clipped", _always_non_negative(_CLIPPED)),), BOUNDED),
    Mutant("signed cells grouped as if positive", ((sensitivity, "grouped", _always_non_negative(_GROUPED)),), BOUNDED),
    Mutant("join fan-out not counted", ((stability, "joined", _left_join_without_fan_out),)),
    Mutant("union counts its widest part only", ((stability, "united", _widest_part_only),)),
    Mutant(
        "per-unit sum bounded like one row, and trusted to be",
        ((stability, "_unit_sum", _sum_bounded_like_a_row), (cells, "is_stored", lambda column, relation: True)),
    ),
    Mutant("sum follows a count without its row bound", ((certify, "_norm", _follower_without_row_bound),)),
    Mutant("pure epsilon of the first branch only", ((certify, "total_cost", _pure_of_first_only),), order=32),
    Mutant("discovered keys have a pure epsilon", ((certify, "total_cost", _keys_without_a_say),), order=32),
    Mutant("pure epsilon of the largest cell", ((certify, "pure_loss", lambda law, *, l1: 1 / law.scale),), order=32),
    Mutant("pure epsilon rounded down", ((certify, "total_cost", _pure_rounded_down),), order=32),
    Mutant("distinct values counted as groups", ((sensitivity, "distinct_counted", _distinct_counted_once),)),
)
BY_NAME: Mapping[str, Mutant] = {mutant.name: mutant for mutant in MUTANTS}
assert len(BY_NAME) == len(MUTANTS)
