"""How groups are found: by counting units where each has one group, or by the weights that units spread over theirs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.contribution.bounding import BoundingInputs, BoundingKind, choose
from lapwing.contribution.rows_per_unit import assumed
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import Domain, IntegerDomain, TextDomain
from lapwing.kernel.expressions import Column
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Clipped, DiscoveredGroups, DistinctCount, Grouped, Measure, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.kernel.neighbours import Neighbours
from lapwing.planning.key_selection import SPREAD_BITS, spread_bits

LAW = DiscreteGaussian(Fraction(8))
FOUND = DiscoveredGroups(LAW, Fraction(1, 10**9), 10)
COLUMNS: dict[str, Domain] = {"name": TextDomain(None), "n": IntegerDomain(0, 9)}


def _facts(rows_max: int = 10**6) -> Facts:
    tables = {"t": TableFacts(COLUMNS, 100, rows_max)}
    return Facts(source_id="keys", version=1, neighbours=Neighbours.UNBOUNDED, account=Account.APPROXIMATE, tables=tables, public_tables={})


def _query(rows: int = 100, measure: Measure | None = None) -> Query:
    vectors = () if measure is None else (Vector("v", measure, LAW),)
    return Query(Scan("t", rows), (("name", Column("name")),), FOUND, Ranked(), vectors)


def test_units_with_several_groups_spread_their_weight() -> None:
    for query in (_query(), _query(measure=RowCount()), replace(_query(), bounding=Grouped(2)), replace(_query(), bounding=Clipped(4))):
        bits = spread_bits(query, _facts())
        assert bits == SPREAD_BITS
        keys = certify(Plan((replace(query, groups=replace(FOUND, spread_bits=bits)),)), _facts()).queries[0].keys
        assert keys is not None and keys.weight == 2**SPREAD_BITS and keys.sensitivity.l2_squared == 4**SPREAD_BITS


def test_units_are_counted_where_each_has_one_group_or_distinct_values_are_counted() -> None:
    for query in (_query(1), replace(_query(), bounding=Grouped(1)), _query(measure=DistinctCount(Column("n")))):
        assert spread_bits(query, _facts()) is None


@pytest.mark.parametrize("rows_max", [1, 2**45, 2**46, 2**50, 2**61])
def test_weights_are_as_fine_as_the_integers_allow(rows_max: int) -> None:
    bits = spread_bits(_query(), _facts(rows_max))
    assert bits is not None and rows_max << bits < 2**62
    assert bits == SPREAD_BITS or rows_max << (bits + 2) >= 2**62
    certify(Plan((replace(_query(), groups=replace(FOUND, spread_bits=bits)),)), _facts(rows_max))


def _situation(**changes: object) -> BoundingInputs:
    contributions = assumed(rows_per_unit_max=100, rows_max=10**6, units=None)
    known = BoundingInputs(contributions, 100, 1.0, None, Account.APPROXIMATE, 0.01, has_average=False, units_only=False)
    return replace(known, **changes)  # type: ignore[arg-type]


def test_where_only_the_groups_are_asked_for_no_row_is_left_out() -> None:
    choice = choose(_situation(units_only=True, keys_only=True))
    assert (choice.kind, choice.limit) == (BoundingKind.RANKED, 100.0)


def test_discovered_groups_are_taken_to_be_as_many_as_there_are_units_to_show_them() -> None:
    few, many = _situation(loss_per_vector=1e-6), _situation(loss_per_vector=1.0)
    assert few.groups_guess == 50 < many.groups_guess
    assert choose(many).kind is BoundingKind.CLIPPED
