"""The noise that shares of the loss buy for the vectors, keys and quantiles of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import derived_queries
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import DiscoveredGroups, Plan, Query
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.planning.quantiles import with_scale
from lapwing.prices import Family, law_for

KEY_SHARES = 2
"""Discovering groups uses as much of the loss as so many vectors: a suppressed group is lost entirely."""


def placeholder(facts: Facts) -> Law:
    """Noise of the right kind for a draft, whose sensitivities are still to be derived."""
    return DiscreteLaplace(Fraction(1)) if facts.account is Account.PURE else DiscreteGaussian(Fraction(1))


def with_noise(draft: Query, facts: Facts, share: Fraction, given: Mapping[str, Fraction] | None = None) -> Query:
    """Give every vector and set of quantiles the noise that its share of the loss buys, or the loss that is ``given`` for its name.

    The certifier itself derives the sensitivities.
    """
    derived = derived_queries(Plan((draft,)), facts)[0]
    family = Family.LAPLACE if facts.account is Account.PURE else Family.GAUSSIAN

    def law(l1: int, l2_squared: int, loss: Fraction = share) -> Law:
        return law_for(facts.account, loss=loss, l1=max(l1, 1), l2_squared=max(l2_squared, 1), family=family)

    losses = given or {}
    vectors = tuple(
        replace(item.vector, law=law(item.sensitivity.l1, item.sensitivity.l2_squared, losses.get(item.vector.name, share)))
        for item in derived.vectors
    )
    groups = draft.groups
    if isinstance(groups, DiscoveredGroups) and derived.keys is not None:
        groups = replace(groups, law=law(derived.keys.sensitivity.l1, derived.keys.sensitivity.l2_squared, KEY_SHARES * share))
    quantiles = tuple(with_scale(item, facts, losses.get(item.quantiles.name, share)) for item in derived.quantiles)
    return replace(draft, vectors=vectors, groups=groups, quantiles=quantiles)
