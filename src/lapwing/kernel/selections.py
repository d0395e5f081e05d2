"""What a set of quantiles costs: the part of certification that is about selections instead of noise on integers.

Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.domains import DOUBLE_EXACT_LIMIT, INTEGER_LIMIT, DateDomain, Domain, TimestampDomain, grid_integer, is_numeric, kind_of
from lapwing.kernel.facts import Facts
from lapwing.kernel.grid_functions import STEPS_MAX
from lapwing.kernel.ir import DiscoveredGroups, QuantileSet, Query, Ranked
from lapwing.kernel.quantile_tree import QuantileTree
from lapwing.kernel.stability import Shape, domain_of


@dataclass(frozen=True, slots=True)
class CertifiedQuantiles:
    """A set of quantiles with the mechanism that selects them."""

    quantiles: QuantileSet
    mechanism: QuantileTree
    loss: Fraction
    step: Fraction
    """What one integer of a value stands for."""
    rounding: Fraction
    """Most by which a value was rounded to the grid."""
    pure: Fraction | None = None
    """Its epsilon, where the account has an order."""


def certify_quantiles(quantiles: QuantileSet, query: Query, shape: Shape, facts: Facts) -> CertifiedQuantiles:
    """The mechanism and its price. Only rows are counted, so the one bound that matters is the number of rows of a unit.

    Pre: the bounding of the query is a limit on rows. Post: choices for all groups together cost ``loss``.
    """
    if not isinstance(query.bounding, Ranked):
        raise Refused("measure-unsupported", "quantiles are taken with ranked bounding only")
    domain = domain_of(quantiles.value, shape.columns)
    lower, upper = quantile_bounds(quantiles, domain)
    alone = len(quantiles.targets) == 1 and not isinstance(query.groups, DiscoveredGroups) and query.groups.cells == 1
    mechanism = QuantileTree(lower, upper, quantiles.targets, shape.rows_per_unit, facts.neighbours, quantiles.scale, alone)
    rounding = Fraction(1, 2 * quantiles.steps) if is_numeric(domain) else Fraction(0)
    event = mechanism.event()
    pure = None if facts.order is None else event.epsilon
    return CertifiedQuantiles(quantiles, mechanism, event.loss(facts.account), Fraction(1, quantiles.steps), rounding, pure)


def quantile_bounds(quantiles: QuantileSet, domain: Domain) -> tuple[int, int]:
    """[K_L, K_U]: the integers among which the quantiles are selected."""
    is_day = isinstance(domain, DateDomain | TimestampDomain)
    if not is_day and not is_numeric(domain):
        raise Refused("type-mismatch", f"a quantile needs a number or a date, not a {kind_of(domain).value}")
    if not 1 <= quantiles.steps <= (1 if is_day else STEPS_MAX) or quantiles.lower > quantiles.upper:
        raise Refused("quantile-invalid", "a quantile needs a positive grid and a lower bound below its upper bound")
    lower, upper = grid_integer(quantiles.lower, quantiles.steps), grid_integer(quantiles.upper, quantiles.steps)
    if max(abs(lower), abs(upper)) >= (INTEGER_LIMIT if is_day else DOUBLE_EXACT_LIMIT):
        raise Refused("range-too-wide", "the grid of a quantile is too fine for its bounds")
    return lower, upper
