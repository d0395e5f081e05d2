"""What bounds by norms cost: the histogram beside the plan it serves, and the plan with its caps beside bare SQL.

Statements are planned the way the product plans them: statistics of rows per unit are bought, then the norms that the planner wants (of a
sample of units, where it decides so), then caps are chosen from them. All of it is at a price of epsilon 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.engines_places import Place

from lapwing.answers.post_processing import evaluate
from lapwing.asking.bound_statement import unit_columns
from lapwing.catalog import parse
from lapwing.contribution.histograms import histogram_of, norms_plan
from lapwing.contribution.model import ContributionModel, fitted_norms
from lapwing.contribution.rows_per_unit import UNITS, bin_edges, fitted, histogram_plan
from lapwing.engines.base import Snapshot
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.ir import Plan, UnitNorms
from lapwing.kernel.permit import issue
from lapwing.kernel.release import Released, release
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.prices import statement_loss
from lapwing.spread import variance
from lapwing.sql import bind

NORMS_GOAL = 0.2
"""The histogram takes at most this share of the plan it serves."""
_MARCH = " WHERE day >= DATE '2024-03-01' AND day <= DATE '2024-03-31'"
STATEMENTS = {
    "COUNT by region": ("SELECT region, COUNT(*) FROM {visits} GROUP BY region", 5.0),
    "SUM by region": ("SELECT region, SUM(amount) FROM {visits} GROUP BY region", 5.0),
    "COUNT, SUM by region": ("SELECT region, COUNT(*), SUM(amount) FROM {visits} GROUP BY region", 5.0),
    "SUM": ("SELECT SUM(amount) FROM {visits}", 5.0),
    "COUNT by region, 1/12": (f"SELECT region, COUNT(*) FROM {{visits}}{_MARCH} GROUP BY region", 4.0),
    "COUNT, SUM by region, 1/12": (f"SELECT region, COUNT(*), SUM(amount) FROM {{visits}}{_MARCH} GROUP BY region", 4.0),
    "SUM, 1/12": (f"SELECT SUM(amount) FROM {{visits}}{_MARCH}", 4.0),
}
"""Bare SQL, and the largest ratio to it that is hoped for."""


@dataclass(frozen=True, slots=True)
class Served:
    """A statement as it is planned: the plans that buy its norms, and the plan with caps from them."""

    name: str
    bare: str
    goal: float
    norms: tuple[Certified, ...]
    one_in: int
    plan: Certified


def served_statements(place: Place, snapshot: Snapshot) -> tuple[Served, ...]:
    """Every statement, planned on this version."""
    declaration = parse(place.text("stored"))
    loss = statement_loss(declaration.budget(), Fraction(1))
    edges = bin_edges(snapshot.facts.table("visits").rows_per_unit_max)
    bought = _released(snapshot, histogram_plan("visits", snapshot.facts, loss=loss)).tables[0].column(UNITS)
    known = {"visits": fitted(edges, [float(value) for value in bought.values], float(variance(bought.law)) ** 0.5)}
    columns = unit_columns(declaration)

    def planned(text: str, norms: Mapping[UnitNorms, ContributionModel]) -> PlannedStatement:
        statement = bind(text.format(visits="visits"), snapshot.facts, settings=place.settings, unit_columns=columns)
        return plan_statement(
            statement.privates,
            snapshot.facts,
            Price(loss, Fraction(1, 2**41)),
            contributions=known,
            units=None,
            limits=GroupLimits(place.settings.known_cells_max, place.settings.groups_max),
            finder=GroupFinder(evaluate),
            norms=norms,
        )

    served = []
    for name, (text, goal) in STATEMENTS.items():
        wanted = planned(text, {}).wanted
        plans = {norms: norms_plan(norms, snapshot.facts, loss=loss / 10 / len(wanted)) for norms in wanted}
        fits = {
            norms: fitted_norms(histogram_of(norms, _released(snapshot, plan).tables[0], snapshot.facts)) for norms, plan in plans.items()
        }
        buying = tuple(certify(plan, snapshot.facts) for plan in plans.values())
        one_in = max((norms.one_in for norms in wanted), default=1)
        served.append(Served(name, text, goal, buying, one_in, planned(text, fits).certified))
    return tuple(served)


def _released(snapshot: Snapshot, plan: Plan) -> Released:
    certified = certify(plan, snapshot.facts)
    return release(certified, issue(1, certified.digest, certified.cost), snapshot.run(certified))
