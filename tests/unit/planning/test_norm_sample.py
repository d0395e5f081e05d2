"""How many units norms are measured on: by what is bought or declared, and enough of them after the filter."""

from __future__ import annotations

import pytest

from lapwing.contribution.rows_per_unit import Contributions
from lapwing.contribution.sampling import one_in_of
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import IntegerDomain, Kind
from lapwing.kernel.expressions import Column, Function, Literal, call
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Filter, Relation, Scan
from lapwing.kernel.neighbours import Neighbours

TABLE = TableFacts({"shop": IntegerDomain(1, 1_000, nullable=False)}, rows_per_unit_max=500, rows_max=10**9)
FACTS = Facts("shops", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"orders": TABLE}, {})
ALL: Relation = Scan("orders", 500)
ONE_SHOP: Relation = Filter(ALL, call(Function.EQUAL, Column("shop"), Literal(7, Kind.INTEGER)))


@pytest.mark.parametrize(
    ("units", "rows_each", "one_in"),
    [(1_000_000, 10.0, 8), (400_000, 10.0, 8), (399_000, 10.0, 4), (100_000, 10.0, 2), (99_000, 100.0, 1), (400_000, 2.0, 1)],
)
def test_a_sample_of_enough_units_of_a_table_with_enough_rows(units: int, rows_each: float, one_in: int) -> None:
    bought = {"orders": Contributions(((rows_each, float(units)),))}
    assert one_in_of(ALL, FACTS, bought, None) == one_in


def test_a_filter_leaves_fewer_units_to_sample_from() -> None:
    bought = {"orders": Contributions(((20.0, 1_000_000.0),))}
    assert one_in_of(ALL, FACTS, bought, None) == 8
    assert one_in_of(ONE_SHOP, FACTS, bought, None) == 1


def test_declared_units_serve_where_nothing_was_bought_and_the_largest_number_of_rows_does_not() -> None:
    assert one_in_of(ALL, FACTS, {}, 2_000_000) == 8
    assert one_in_of(ALL, FACTS, {}, 20_000) == 1
    assert one_in_of(ALL, FACTS, {}, None) == 1
