"""Values made of a unit's rows are bounded by norms, like the rows: few units come near the product of what is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings
from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, IntegerDomain, KeyDomain, RealDomain
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Cap, Clipped, GridSum, RowCount, UnitNorms, Vector
from lapwing.kernel.neighbours import Neighbours
from lapwing.planning.drafts import CLIP_BITS
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.sql import bind

COLUMNS: dict[str, Domain] = {
    "u": KeyDomain(False),
    "x": RealDomain(Fraction(0), Fraction(5_000), False, 100),
    "score": IntegerDomain(900, 1_400, False),
    "g": IntegerDomain(1, 4, False),
}
FACTS = Facts(
    "values",
    1,
    Neighbours.UNBOUNDED,
    Account.APPROXIMATE,
    {"e": TableFacts(COLUMNS, 1_000, 10**6)},
    {},
    typed_numbers=True,
    planning_rules=2,
)


def over_units(aggregates: str, value: str = "SUM(x)") -> str:
    """Aggregates over one row per unit."""
    return f"SELECT {aggregates} FROM (SELECT u, {value} AS v FROM e GROUP BY u) AS q"


def planned(sql: str, norms: Mapping[UnitNorms, ContributionModel] | None = None, *, facts: Facts = FACTS) -> PlannedStatement:
    """The plan of a statement at a usual price."""
    return plan_statement(
        bind(sql, facts, settings=Settings(), unit_columns={"e": "u"}).privates,
        facts,
        Price(Fraction(1, 500), Fraction(1, 2**40)),
        contributions={},
        units=10_000,
        limits=GroupLimits(3_000, 100),
        finder=GroupFinder(evaluate),
        norms=norms,
    )


def with_norms(sql: str, *, up_to: int) -> PlannedStatement:
    """The plan with norms of 10,000 units that add about ``up_to`` grid integers each, and few of them up to eight times as much."""
    (wanted,) = planned(sql).wanted
    edges = [float(edge) ** 0.5 for edge in wanted.squared_edges if edge]
    units = [9_000.0 if up_to / 2 < edge <= up_to else 100.0 if up_to < edge <= 8 * up_to else 0.0 for edge in edges]
    row = float(max(edges))
    return planned(sql, {wanted: fitted_norms(NormHistogram((*edges, 2 * row), (*units, 0.0), 20.0, row=row, zeros=0.0, mixed=True))})


def vectors(found: PlannedStatement) -> tuple[Vector, ...]:
    """The vectors of its one query."""
    return tuple(item.vector for item in found.certified.queries[0].vectors)


@pytest.mark.parametrize("sql", [over_units("SUM(v) AS s"), over_units("AVG(v) AS a"), over_units("AVG(v) AS a", "AVG(x)")])
def test_sums_of_what_units_add_up_to_have_norms_under_the_new_rules(sql: str) -> None:
    (norms,) = planned(sql).wanted
    assert isinstance(norms.measure, GridSum) and norms.measure.offset == 0
    assert planned(sql, facts=replace(FACTS, planning_rules=1)).wanted == ()


@pytest.mark.parametrize(
    "sql",
    [
        over_units("COUNT(*) AS n"),
        over_units("SUM(CASE WHEN v > 100 THEN 1 ELSE 0 END) AS n"),
        over_units("COUNT(*) FILTER (WHERE v > 100) AS n"),
        over_units("AVG(v) AS a", "MAX(g)"),
        over_units("AVG(v) AS a", "COUNT(*)"),
    ],
)
def test_counts_and_flags_of_units_need_none(sql: str) -> None:
    assert planned(sql).wanted == ()


def test_norms_do_not_depend_on_the_price() -> None:
    (norms,) = planned(over_units("SUM(v) AS s")).wanted
    assert isinstance(norms.measure, GridSum) and norms.measure.upper == 5_000 * 1_000, "nothing is clamped before it is known"


def test_an_average_clips_the_sum_and_counts_every_unit_once() -> None:
    found = with_norms(over_units("AVG(v) AS a"), up_to=2**14)
    count, total = sorted(vectors(found), key=lambda vector: isinstance(vector.measure, GridSum))
    assert found.certified.queries[0].query.bounding == Clipped(CLIP_BITS)
    assert isinstance(count.measure, RowCount) and count.bound == Cap(2**CLIP_BITS)
    assert isinstance(total.bound, Cap) and total.bound.alike is None
    assert 2**13 < total.bound.limit / 2**CLIP_BITS < 5_000 * 1_000 * 100 / 500, "far below the largest value that is possible"
    assert isinstance(total.measure, GridSum) and total.measure.offset == 0
    (part,) = found.parts
    assert set(part.cuts) == {total.name} and not part.together and not found.wanted


def test_values_of_similar_size_are_summed_as_distances_from_the_middle() -> None:
    """The bound would be near the largest value; half the range is far below."""
    sql = over_units("AVG(v) AS a", "MAX(score)")
    found = with_norms(sql, up_to=1_024)
    (total,) = (vector for vector in vectors(found) if isinstance(vector.measure, GridSum))
    assert isinstance(total.measure, GridSum) and total.measure.offset == 1_150
    assert not found.parts[0].cuts


def test_a_sum_and_an_average_share_their_norms() -> None:
    found = with_norms(over_units("SUM(v) AS s, AVG(v) AS a"), up_to=2**14)
    assert all(isinstance(vector.bound, Cap) for vector in vectors(found))


def test_norms_of_values_made_of_many_rows_reach_down_to_usual_ones() -> None:
    """With twelve octaves the lowest bin of units' sums ended at 1,220, whatever they were."""
    (norms,) = planned(over_units("SUM(v) AS s")).wanted
    least = min(edge for edge in norms.squared_edges if edge) ** 0.5 / 100
    assert least < 2
    (of_rows,) = planned("SELECT SUM(x) AS s FROM e").wanted
    assert min(edge for edge in of_rows.squared_edges if edge) ** 0.5 / 100 > 5_000 / 2**13, "rows are resolved as they were"


@pytest.mark.parametrize(
    ("sql", "squares"),
    [
        ("SELECT g, COUNT(*) AS n FROM (SELECT u, g, SUM(x) AS s FROM e GROUP BY u, g) AS q GROUP BY g", (1, 2, 4)),
        ("SELECT h, COUNT(*) AS n FROM (SELECT u, g AS h, SUM(x) AS s FROM e GROUP BY u, g) AS q WHERE s > 9 GROUP BY h", (1, 2, 4)),
        ("SELECT g, COUNT(*) FILTER (WHERE s > 9) AS n FROM (SELECT u, g, SUM(x) AS s FROM e GROUP BY u, g) AS q GROUP BY g", (0, 1, 2, 4)),
        ("SELECT g, score, COUNT(*) AS n FROM (SELECT u, g, score FROM e GROUP BY u, g, score) AS q GROUP BY g, score", None),
        ("SELECT g, COUNT(*) AS n FROM (SELECT u, g, score FROM e GROUP BY u, g, score) AS q GROUP BY g", ()),
        ("SELECT g, COUNT(*) AS n FROM e GROUP BY g", ()),
    ],
)
def test_rows_of_which_a_unit_has_one_in_each_group_are_counted_like_units(sql: str, squares: tuple[int, ...] | None) -> None:
    """``()``: as far as any count of rows may go; None: as far as a unit has rows, of which it has fewer than there are groups."""
    (norms,) = planned(sql).wanted
    (before,) = planned(sql, facts=replace(FACTS, planning_rules=1)).wanted
    assert isinstance(norms.measure, RowCount) and before.squared_edges[-1] > 10**5
    most = before.squared_edges if squares == () else squares or (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000)
    assert norms.squared_edges == most
