"""Estimates of plain aggregates: how much of an error bar is rounding, and that a column is widened as its cells are."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.answers.assembly import AssembledAnswer, assemble
from lapwing.answers.intervals import all_widened, widened
from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, RealDomain
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.release import NoisyColumn, NoisyTable, Released
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.spread import half_width
from lapwing.sql import bind

COLUMNS: dict[str, Domain] = {"cost": RealDomain(Fraction(0), Fraction(500), True, 100)}
ROWS_MAX = 10_000_000
ROWS = 70_000


def assembled(listed: str) -> tuple[PlannedStatement, AssembledAnswer]:
    """An answer in which every count came out as ROWS and every sum as ten times that, in steps."""
    facts = Facts("estimates", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"t": TableFacts(COLUMNS, 1, ROWS_MAX)}, {})
    statement = bind(f"SELECT {listed} FROM t", facts, settings=Settings(), unit_columns={})
    planned = plan_statement(
        statement.privates,
        facts,
        Price(Fraction(1, 10), Fraction(1, 2**40)),
        contributions={},
        units=None,
        limits=GroupLimits(10, 10),
        finder=GroupFinder(evaluate),
    )
    query = planned.certified.queries[0]
    columns = tuple(
        NoisyColumn(v.vector.name, (ROWS if v.step == 1 else 10 * ROWS,), v.vector.law, v.step, v.rounding) for v in query.vectors
    )
    released = Released(planned.certified.digest, (NoisyTable((), ((),), columns, None, query.shape.rows_max),))
    return planned, assemble(planned, released, statement.post, confidence=Fraction(95, 100))


@pytest.mark.parametrize("count", ["COUNT(*)", "COUNT(cost)"])
def test_a_released_count_bounds_the_rounding_of_a_sum(count: str) -> None:
    planned, found = assembled(f"SUM(cost) AS s, {count} AS n")
    laws = {v.step: v.vector.law for v in planned.certified.queries[0].vectors}
    noise = half_width(laws[Fraction(1, 100)], confidence=Fraction(95, 100)) / 100
    most = ROWS + half_width(laws[Fraction(1)], confidence=Fraction(99_995, 100_000))
    (bar,) = found.intervals["s"]
    assert bar is not None
    assert (bar.hi - bar.lo) / 2 == pytest.approx(noise + most * 0.005)


def test_without_a_count_of_its_rows_the_declared_maximum_does() -> None:
    for listed in ("SUM(cost) AS s", "SUM(cost) AS s, COUNT(*) FILTER (WHERE cost > 5) AS n"):
        planned, found = assembled(listed)
        law = next(v.vector.law for v in planned.certified.queries[0].vectors if v.step != 1)
        noise = half_width(law, confidence=Fraction(95, 100)) / 100
        (bar,) = found.intervals["s"]
        assert bar is not None
        assert (bar.hi - bar.lo) / 2 == pytest.approx(noise + ROWS_MAX * 0.005)


@pytest.mark.parametrize("step", [Fraction(1), Fraction(1, 100), Fraction(3, 1024), Fraction(1, 10**9)])
@pytest.mark.parametrize("rounding", [Fraction(0), Fraction(1, 200), Fraction(1, 7)])
def test_a_column_is_widened_as_its_cells_are(step: Fraction, rounding: Fraction) -> None:
    values, rows = [-(10**15), -3, 0, 7, 10**17 + 1], [0, 5, -2, 10**6, 3]
    found = all_widened(values, 12, step=step, rounding=rounding, rows_upper=rows)
    assert found == [widened(value, 12, step=step, rounding=rounding, rows_upper=n) for value, n in zip(values, rows, strict=True)]
