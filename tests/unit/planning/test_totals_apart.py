"""Totals of ROLLUP and the like are measured apart where that is clearly better, and not otherwise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.contribution.model import ContributionModel, NormHistogram, fitted_norms
from lapwing.kernel.accounting import Account, charge_loss
from lapwing.kernel.domains import Domain, IntegerDomain, TextDomain
from lapwing.kernel.expressions import Column
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import KnownGroups, Scan, UnitNorms
from lapwing.kernel.neighbours import Neighbours
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.planning.separate_totals import LEVELS_MOST, SHARES_MOST, most_levels
from lapwing.statements import Aggregate, AggregateKind, PrivateQuery

LOSS = Fraction(1, 10)
COLUMNS: dict[str, Domain] = {
    "town": TextDomain(tuple(f"t{i:02}" for i in range(40)), False),
    "sex": TextDomain(("f", "m", "x"), False),
    "year": IntegerDomain(2020, 2029, False),
    "free": TextDomain(None, False),
}


def rolled(*keys: str, levels: tuple[tuple[int, ...], ...], rows: int = 1) -> PrivateQuery:
    named = tuple((key, Column(key)) for key in keys)
    return PrivateQuery(Scan("t", rows), named, (Aggregate(AggregateKind.COUNT),), levels=levels)


def planned(
    *queries: PrivateQuery,
    account: Account = Account.APPROXIMATE,
    norms: dict[UnitNorms, ContributionModel] | None = None,
    loss: Fraction = LOSS,
) -> PlannedStatement:
    rows = queries[0].source.rows_per_unit if isinstance(queries[0].source, Scan) else 1
    facts = Facts("t", 1, Neighbours.UNBOUNDED, account, {"t": TableFacts(COLUMNS, rows, 1_000_000)}, {})
    price = Price(loss, Fraction(1, 10**9) if account is Account.APPROXIMATE else Fraction(0))
    limits = GroupLimits(10_000, 10_000)
    return plan_statement(queries, facts, price, contributions={}, units=10_000, limits=limits, finder=GroupFinder(evaluate), norms=norms)


def test_a_total_of_many_groups_is_measured_apart_and_one_of_few_is_not() -> None:
    plan = planned(rolled("town", "sex", levels=((0, 1), (0,), ())))
    assert set(plan.only.apart) == {()}, "towns add up three groups each, which is as good"
    total = plan.only.apart[()]
    assert total.groups == ((),) and not total.query.keys and total.query.levels is None
    fine, apart = plan.certified.queries
    assert (plan.only.number, total.number) == (0, 1)
    assert fine.vectors[0].vector.law.scale ** 2 * 4 == pytest.approx(float(apart.vectors[0].vector.law.scale ** 2), rel=1e-6)
    assert planned(rolled("sex", levels=((0,), ()))).only.apart == {}
    assert plan.parts_and_totals == (plan.only, total)


@pytest.mark.parametrize("account", list(Account))
def test_the_price_is_that_of_the_statement_whatever_is_measured_apart(account: Account) -> None:
    plan = planned(rolled("town", "sex", levels=((0, 1), (0,), ())), account=account)
    assert plan.only.apart
    assert charge_loss(LOSS) * 0.99 <= plan.certified.cost.loss <= charge_loss(LOSS)


def test_groups_of_a_level_are_those_of_its_keys_in_their_order() -> None:
    plan = planned(rolled("town", "sex", levels=((0, 1), (1,), (0,), ())))
    by_sex = plan.only.apart[1,]
    assert by_sex.groups == (("f",), ("m",), ("x",)) and [name for name, _ in by_sex.query.keys] == ["sex"]
    assert by_sex.number is not None
    groups = plan.certified.queries[by_sex.number].query.groups
    assert isinstance(groups, KnownGroups) and groups.groups == by_sex.groups


def test_not_too_many_levels_are_measured_apart_and_the_groups_keep_half() -> None:
    cube = tuple(tuple(key for key in range(3) if bits >> key & 1) for bits in range(7, -1, -1))
    query = rolled("town", "sex", "year", levels=cube)
    plan = planned(query)
    assert len(plan.only.apart) == LEVELS_MOST and most_levels(query) == LEVELS_MOST
    alone = planned(replace(query, levels=None)).certified.queries[0].vectors[0].vector.law.scale
    fine = plan.certified.queries[0].vectors[0].vector.law.scale
    assert float(fine / alone) == pytest.approx(float(1 / (1 - SHARES_MOST)) ** 0.5, rel=1e-6)


def test_nothing_is_measured_apart_where_groups_are_discovered_or_the_finest_is_not_asked_for() -> None:
    assert planned(rolled("free", "sex", levels=((0, 1), (1,), ()))).only.apart == {}
    assert planned(rolled("town", "sex", levels=((0,), (1,)))).only.apart == {}
    assert planned(replace(rolled("town", levels=((0,), ())), levels=None)).only.apart == {}


def test_norms_of_every_level_are_wanted_and_decide_once_they_are_bought() -> None:
    query = rolled("town", levels=((0,), ()), rows=1_000)
    wanted = planned(query).wanted
    assert [len(norms.keys) for norms in wanted] == [1, 0]

    def fits(long: bool) -> dict[UnitNorms, ContributionModel]:
        """Units of ten rows: all in one town, or each of its own."""
        fits = {}
        for norms in wanted:
            edges = (*(edge**0.5 for edge in norms.squared_edges), 1_000.0)
            place = next(i for i, edge in enumerate(edges) if edge >= (10.0 if long or not norms.keys else 10.0**0.5))
            fits[norms] = fitted_norms(NormHistogram(edges, tuple(50_000.0 if i == place else 0.0 for i in range(len(edges))), 5.0))
        return fits

    together, spread = (planned(query, norms=fits(long), loss=LOSS / 1_000).only for long in (True, False))
    assert together.cuts and set(together.apart) == {()} and together.apart[()].cuts
    assert spread.cuts and not spread.apart, "units that are in many towns make no more noise in the sum of all than in a total"
