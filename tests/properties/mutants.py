"""Deliberate bugs. Each is a real mistake that somebody made or could make; the oracle must see every one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lapwing.audit import plan_shapes
from lapwing.engines import prepare, reading
from lapwing.kernel import certify, release, sensitivity, shapes, stability, thresholds
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.domains import Domain
from lapwing.kernel.ir import Cap, Clipped, UnitJoin
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.sensitivity import RowRange, Sensitivity
from lapwing.render import cells, key_weights, queries, relations

Patch = tuple[object, str, Any]
DECIMALS = "ranked, a product of decimals"


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


def _a_row_too_many(certified: certify.CertifiedQuery) -> int:
    return _NEVER_SCALED(certified) and _NEVER_SCALED(certified) + 1


def _rows_by_the_count(certified: certify.CertifiedQuery) -> int:
    bounding, caps = certified.query.bounding, [item.bound.limit for item in certified.query.vectors if isinstance(item.bound, Cap)]
    return min(caps) // 2**bounding.bits if isinstance(bounding, Clipped) and _NEVER_SCALED(certified) else 0


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
_LEAST_SPREAD_THRESHOLD = thresholds.least_spread_threshold
_UNITS_SPREAD = sensitivity.units_spread
_JOINED_WEIGHTS = queries._joined_weights
_TOTAL = queries._total
_NEVER_SCALED = queries.rows_never_scaled
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


def _spread_threshold_one_lower(law: Any, **asked: Any) -> int:
    return int(_LEAST_SPREAD_THRESHOLD(law, **asked)) - 1


def _spread_threshold_at(groups: Callable[[int], int]) -> Callable[..., int]:
    """The threshold that a unit with one number of groups needs, for all."""

    def mutated(law: Any, *, bits: int, groups_per_unit: int, delta: Fraction) -> int:
        number = groups(groups_per_unit)
        return int(_LEAST_THRESHOLD(law, groups_per_unit=number, delta=delta)) - 1 + thresholds.spread_weight(bits, number)

    return mutated


def _number_of_shown_groups(self: Any, bits: int, **kept: Any) -> str:
    """A unit's groups are counted among those that other units have too."""
    joined = str(_JOINED_WEIGHTS(self, bits, **kept))
    shared = "EXISTS (SELECT 1 FROM cells o WHERE o.k0 IS NOT DISTINCT FROM n.k0 AND o._unit <> n._unit)"
    return joined.replace("FROM cells GROUP BY _unit", f"FROM cells n WHERE {shared} GROUP BY _unit")


def _number_of_units_in_the_cell(self: Any, bits: int, **kept: Any) -> str:
    joined = str(_JOINED_WEIGHTS(self, bits, **kept)).replace("_unit", "k0")
    return joined.replace("c.k0 = u.k0", "c.k0 IS NOT DISTINCT FROM u.k0")


def _weight_of_each_row(weights: str, dialect: Any) -> str:
    return str(_TOTAL(weights, dialect)).replace("THEN u.w ", "THEN u.w * c.c0 ")


def _one_group_per_unit(query: Any, shape: Any, cells: Any) -> int:
    return 1


BOUNDED = "bounded"
FEW_ROWS = ("clipped, units of few rows apart",)
BY_WEIGHT = tuple(name for name in plan_shapes.shapes(Account.APPROXIMATE) if name.startswith("discovered by weight"))
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
    Mutant("decimals above their bound count", ((cells, "clamped", _only_lower_end),), shapes=(DECIMALS,)),
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
    Mutant("units never scaled, with a row too many", ((queries, "rows_never_scaled", _a_row_too_many),), shapes=FEW_ROWS),
    Mutant("no unit scaled, whatever rows it has", ((queries, "few_rows", lambda alias, rows: "TRUE"),), shapes=FEW_ROWS),
    Mutant("units never scaled, as if every row added 1", ((queries, "rows_never_scaled", _rows_by_the_count),), shapes=FEW_ROWS),
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
    Mutant(
        "weights by which groups are found rounded up",
        (
            (queries, "weight_at_most", lambda groups, bits, d: f"CAST(ceil(sqrt({4**bits}.0 / {groups})) AS BIGINT)"),
            (key_weights, "weight_check", lambda *_: "TRUE"),
        ),
        shapes=BY_WEIGHT,
    ),
    Mutant(
        "weights by which groups are found not divided by the root",
        ((queries, "weight_at_most", lambda groups, bits, d: f"{2**bits}"), (key_weights, "weight_check", lambda *_: "TRUE")),
        shapes=BY_WEIGHT,
    ),
    Mutant("threshold as if weights were divided by d", ((thresholds, "spread_weight", lambda b, d: 2**b // d),), shapes=BY_WEIGHT),
    Mutant("threshold of weights off by one", ((certify, "least_spread_threshold", _spread_threshold_one_lower),), shapes=BY_WEIGHT),
    Mutant(
        "threshold of weights for one group only",
        ((certify, "least_spread_threshold", _spread_threshold_at(lambda most: 1)),),
        shapes=BY_WEIGHT,
    ),
    Mutant(
        "threshold of weights for most groups only",
        ((certify, "least_spread_threshold", _spread_threshold_at(lambda most: most)),),
        shapes=BY_WEIGHT,
    ),
    Mutant("groups of a unit counted among shared ones", ((queries, "_joined_weights", _number_of_shown_groups),), shapes=BY_WEIGHT),
    Mutant("weight by the units of a cell", ((queries, "_joined_weights", _number_of_units_in_the_cell),), shapes=BY_WEIGHT),
    Mutant("weight of each row", ((queries, "_total", _weight_of_each_row),), shapes=BY_WEIGHT),
    Mutant("weights over all groups, of which few are kept", ((queries, "choice_predicate", lambda kept: "TRUE"),), shapes=BY_WEIGHT),
    Mutant(
        "replace-one charged as add/remove, weights",
        ((sensitivity, "units_spread", _unbounded_formula(_UNITS_SPREAD)),),
        BOUNDED,
        shapes=BY_WEIGHT,
    ),
    Mutant("groups found, clipping dropped", ((queries, "scaled_cell", lambda cell, **_: cell),), shapes=BY_WEIGHT),
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
        ((stability, "unit_sum", _sum_bounded_like_a_row), (cells, "is_stored", lambda column, relation: True)),
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
