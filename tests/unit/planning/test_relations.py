"""What planning takes as known of joins, unions and conditions on units; and the bounds it chooses from that."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.contribution.relations import contributions_of, fans_out, having_any, kept_of
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.kernel.accounting import Account
from lapwing.kernel.ir import Clipped, GridSum, Query, Ranked
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from tests.unit.sql.clinic import FACTS, bound

KNOWN: Mapping[str, Contributions] = {
    "visits": Contributions(((2.0, 8_000.0), (10.0, 1_500.0), (60.0, 100.0))),
    "prescriptions": Contributions(((1.0, 8_000.0), (8.0, 1_000.0))),
}
LIMITS = GroupLimits(10**6, 10**5)


def planned(text: str, loss: Fraction = Fraction(1, 1_000)) -> PlannedStatement:
    assert FACTS.account is Account.APPROXIMATE
    price = Price(loss, Fraction(1, 10**12))
    return plan_statement(bound(text).privates, FACTS, price, contributions=KNOWN, units=None, limits=LIMITS, finder=GroupFinder(evaluate))


def query_of(text: str, loss: Fraction = Fraction(1, 1_000)) -> Query:
    (query,) = planned(text, loss).certified.plan.queries
    return query


def grid_of(text: str, loss: Fraction = Fraction(1, 1_000)) -> GridSum:
    (grid,) = [vector.measure for vector in query_of(text, loss).vectors if isinstance(vector.measure, GridSum)]
    return grid


JOINED = "SELECT COUNT(*) FROM prescriptions r JOIN visits v ON r.visit_id = v.visit_id"
PER_UNIT = "(SELECT patient_id, {} AS x FROM visits GROUP BY patient_id) AS per_patient"


def test_a_join_that_fans_out_is_bounded_after_it() -> None:
    """Lowering both sides would leave the root of the limit on each, and lose most pairs."""
    assert isinstance(query_of(JOINED).bounding, Clipped)
    assert isinstance(query_of("SELECT COUNT(*) FROM visits").bounding, Ranked)
    relation = bound(JOINED).private.source
    assert fans_out(relation, FACTS)
    assert not fans_out(bound("SELECT COUNT(*) FROM visits v JOIN patients p USING (patient_id)").private.source, FACTS)


def test_a_join_has_the_rows_of_its_larger_side_and_a_union_of_both() -> None:
    joined = contributions_of(bound(JOINED).private.source, FACTS, KNOWN, None)
    assert joined.rows() == KNOWN["visits"].rows()
    both = "SELECT COUNT(*) FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM visits) AS e"
    assert contributions_of(bound(both).private.source, FACTS, KNOWN, None).rows() == pytest.approx(2 * KNOWN["visits"].rows())


def test_a_condition_on_units_leaves_units_out_and_no_rows_of_the_others() -> None:
    text = "SELECT COUNT(*) FROM visits WHERE patient_id {} (SELECT patient_id FROM visits WHERE code = 'J10')"
    relation, negated = (bound(text.format(word)).private.source for word in ("IN", "NOT IN"))
    found, others = (contributions_of(one, FACTS, KNOWN, None) for one in (relation, negated))
    assert 0 < found.units() < KNOWN["visits"].units()
    assert found.units() + others.units() == pytest.approx(KNOWN["visits"].units())
    assert kept_of(relation, FACTS) == 1.0


def test_having_any_grows_with_rows() -> None:
    assert having_any(Contributions(((1.0, 10.0),)), 0.25) == pytest.approx(0.25)
    assert having_any(Contributions(((2.0, 10.0),)), 0.25) == pytest.approx(1 - 0.75**2)
    assert having_any(Contributions(()), 0.25) == 1.0


def test_sums_of_units_are_clamped_far_below_what_is_declared() -> None:
    grid = grid_of(f"SELECT AVG(x) FROM {PER_UNIT.format('SUM(cost)')}")
    assert grid.lower == 0 and 5_000 <= grid.upper <= 200 * 5_000 / 10
    part = planned(f"SELECT AVG(x) FROM {PER_UNIT.format('SUM(cost)')}").only
    assert part.ends == {0: grid.upper}


def test_counts_of_units_are_clamped_where_few_units_have_more() -> None:
    assert 10 <= grid_of(f"SELECT SUM(x) FROM {PER_UNIT.format('COUNT(*)')}").upper < 200


def test_what_does_not_grow_with_rows_keeps_its_range() -> None:
    for inner, upper in (("MAX(cost)", 5_000), ("MIN(minutes)", 480), ("AVG(cost)", 5_000)):
        assert grid_of(f"SELECT AVG(x) FROM {PER_UNIT.format(inner)}").upper == upper


def test_without_noise_to_speak_of_nothing_is_clamped() -> None:
    assert grid_of(f"SELECT AVG(x) FROM {PER_UNIT.format('SUM(cost)')}", Fraction(10**9)).upper == 200 * 5_000


def test_an_end_the_statement_names_itself_is_kept() -> None:
    assert grid_of(f"SELECT AVG(LEAST(x, 300)) FROM {PER_UNIT.format('SUM(cost)')}").upper == 300


def test_signed_sums_are_clamped_on_both_sides() -> None:
    grid = grid_of(f"SELECT SUM(x) FROM {PER_UNIT.format('SUM(minutes - 240)')}")
    assert -200 * 240 < grid.lower < 0 < grid.upper < 200 * 240


def test_one_row_of_each_unit_shows_values_that_are_few() -> None:
    (query,) = planned("SELECT COUNT(DISTINCT clinic_id) FROM visits").certified.queries
    assert query.shape.rows_per_unit == 1
    (many,) = planned("SELECT COUNT(DISTINCT day) FROM visits WHERE minutes < 20", Fraction(1)).certified.queries
    assert many.shape.rows_per_unit > 1
