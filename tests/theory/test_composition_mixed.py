"""The rho that mechanisms of every kind are charged, against dp-accounting on 10,000 random mixed sequences."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import dp_accounting
from dp_accounting import rdp

from lapwing.kernel.accounting import LOSS_UNITS, Account, Cost
from lapwing.kernel.event import Event
from lapwing.mechanisms.additive import GaussianMechanism, LaplaceMechanism
from lapwing.mechanisms.response import RandomisedResponse
from lapwing.mechanisms.selection import ExponentialMechanism
from lapwing.prices import epsilon_for
from tests.support.sizes import size
from tests.unit.kernel.test_accounting import float_order

SEQUENCES = size("composed sequences")


def random_mechanism(chance: random.Random) -> tuple[str, Event, dp_accounting.DpEvent]:
    """One mechanism: its kind, our event and theirs. Theirs has no exponential mechanism, so a selection is its rho there too."""
    scale = Fraction(math.floor(math.exp(chance.uniform(1.0, 5.0)) * 2**10), 2**10)
    match chance.randrange(4):
        case 0:
            return "laplace", LaplaceMechanism(scale=scale, l1=1).event(), dp_accounting.LaplaceDpEvent(float(scale))
        case 1:
            return "gaussian", GaussianMechanism(scale=scale, l2_squared=1).event(), dp_accounting.GaussianDpEvent(float(scale))
        case 2:
            selection = ExponentialMechanism(scale=scale, score_sensitivity=1, candidates=5)
            return "selection", selection.event(), dp_accounting.ZCDpEvent(0.5 / float(scale) ** 2)
        case _:
            noise = Fraction(chance.randrange(700, 1000), 1024)
            response = RandomisedResponse(categories=2, truth=1 - noise / 2)
            return "response", response.event(), dp_accounting.RandomizedResponseDpEvent(float(noise), 2)


def test_thousands_of_mixed_sequences() -> None:
    """Ours is never below theirs by more than float error, and equal where theirs is charged by rho alone (Gaussian and selection)."""
    chance = random.Random(20261115)
    seen: set[str] = set()
    by_rho_alone = strictly_above = 0
    for _ in range(SEQUENCES):
        parts = [random_mechanism(chance) for _ in range(chance.randrange(1, 7))]
        kinds = {kind for kind, _, _ in parts}
        seen |= kinds
        spent = sum((event.cost(Account.APPROXIMATE) for _, event, _ in parts), Cost.zero())
        rho, delta = Fraction(spent.loss, LOSS_UNITS), Fraction(1, 10 ** chance.randrange(4, 16))
        ours = float(epsilon_for(rho=rho, delta=delta))
        # their orders contain the best order of the zCDP curve, so theirs is not looser for want of orders
        orders = [2.0, 8.0, 32.0, float_order(rho=float(rho), delta=float(delta))]
        # replace-one, because their randomised response has no other neighbours; their additive events are stated per sensitivity
        theirs = rdp.RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_ONE)
        for _, _, event in parts:
            theirs.compose(event)
        found = theirs.get_epsilon(float(delta))
        assert ours >= found * (1 - 1e-9)
        if kinds <= {"gaussian", "selection"}:
            by_rho_alone += 1
            assert ours <= found * (1 + 1e-9)
        strictly_above += ours > found * (1 + 1e-6)
    assert seen == {"laplace", "gaussian", "selection", "response"}
    assert by_rho_alone > SEQUENCES // 10
    assert strictly_above > SEQUENCES // 10
