"""Error bars of computed outputs hold as often as they say: 2,400 answers for each.

The whole path but the engine. False-alarm rate: a binomial share of 2,400 at 95 % has standard deviation 0.45 %; the band of 2 % either
side leaves room for the fixed points as well, which are the same in every run of this test.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.answers.assembly import AssembledAnswer, assemble
from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, IntegerDomain, RealDomain
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import GridSum, RowCount
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import issue
from lapwing.kernel.release import release
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, Price
from lapwing.sql import bind
from tests.support.promises import coverage
from tests.support.reference.evaluation import Row, evaluator, grid_sum

GROUPS, RELEASES = 1_200, 2
COLUMNS: dict[str, Domain] = {
    "g": IntegerDomain(0, GROUPS - 1, False),
    "cost": RealDomain(Fraction(0), Fraction(500), False, 100),
    "smoker": IntegerDomain(0, 1, False),
}
# 900 rows; costs of 20, 21, .. 49, as stored; a third of the rows are smokers'
ROWS: list[Row] = [{"g": 0, "cost": 100 * (20 + i % 30), "smoker": int(i % 3 == 0)} for i in range(900)]
STATEMENTS = {
    "SELECT g, ROUND(AVG(cost), 1) AS x FROM t GROUP BY g": 34.5,
    "SELECT g, COUNT(*) * COUNT(*) AS x FROM t GROUP BY g": 900.0**2,
    "SELECT g, COUNT(*) - 2 * SUM(smoker) AS x FROM t GROUP BY g": 300.0,
    "SELECT g, COUNT(*) * AVG(cost) AS x FROM t GROUP BY g": 900 * 34.5,
    """SELECT a.g, a.n * 1.0 / b.n AS x FROM (SELECT g, COUNT(*) AS n FROM t WHERE smoker = 1 GROUP BY g) a
       JOIN (SELECT g, COUNT(*) AS n FROM t GROUP BY g) b ON a.g = b.g""": 1 / 3,
}


def answered(sql: str, account: Account) -> AssembledAnswer:
    facts = Facts("computed", 1, Neighbours.UNBOUNDED, account, {"t": TableFacts(COLUMNS, 1, 10**7)}, {})
    statement = bind(sql, facts, settings=Settings(), unit_columns={})
    approximate = account is Account.APPROXIMATE
    planned = plan_statement(
        statement.privates,
        facts,
        Price(Fraction(1, 200) if approximate else Fraction(1, 10), Fraction(1, 2**40) if approximate else Fraction(0)),
        contributions={},
        units=None,
        limits=GroupLimits(GROUPS, GROUPS),
        finder=GroupFinder(evaluate),
    )
    tables = []
    for query, part in zip(planned.certified.plan.queries, planned.parts, strict=True):
        rows = [row for row in ROWS if "smoker" not in str(part.query.source) or row["smoker"] == 1]
        vectors = []
        for vector in query.vectors:
            if isinstance(vector.measure, RowCount):
                where = vector.measure.where
                vectors.append(sum(where is None or evaluator(where, COLUMNS).value(row) is True for row in rows))
            else:
                assert isinstance(vector.measure, GridSum)
                vectors.append(grid_sum(vector.measure, rows, COLUMNS))
        groups = [(i,) for i in range(GROUPS)]
        tables.append(ExactTable(groups=groups, vectors=[[value] * GROUPS for value in vectors], units=None))
    certified = planned.certified
    released = release(certified, issue(1, certified.digest, certified.cost), Exact(tables, certified=certified))
    return assemble(planned, released, statement.post, confidence=Fraction(95, 100))


@pytest.mark.slow
@pytest.mark.parametrize("account", Account)
@pytest.mark.parametrize("sql", STATEMENTS)
def test_error_bars_of_computed_outputs(sql: str, account: Account) -> None:
    truth, hits, bars = STATEMENTS[sql], 0, 0
    for _ in range(RELEASES):
        found = answered(sql, account)
        assert list(found.intervals) == ["x"], "keys have no error bars"
        for bar in found.intervals["x"]:
            assert bar is not None
            bars += 1
            hits += bar.lo <= truth <= bar.hi
    assert bars == GROUPS * RELEASES
    coverage("computed outputs").require(hits, of=bars)
