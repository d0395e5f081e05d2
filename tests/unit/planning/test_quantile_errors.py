"""The scale that a loss buys for a set of quantiles, and how many ranks its choices may be off."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from lapwing.kernel.accounting import Account
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.quantile_tree import AtShare, FromGreatest, FromLeast, QuantileTree, Target
from lapwing.planning.quantile_errors import extreme_rank, rank_errors, tree_scale


@pytest.mark.parametrize("account", list(Account))
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_scale_is_the_least_that_the_loss_pays_for(account: Account, neighbours: Neighbours) -> None:
    targets = (AtShare(Fraction(1, 4)), AtShare(Fraction(1, 2)), FromGreatest(1))
    loss = Fraction(7, 10)
    scale = tree_scale(account, loss=loss, targets=targets, rows_per_unit=3, neighbours=neighbours, alone=False)
    assert QuantileTree(0, 9, targets, 3, neighbours, scale).event().loss(account) <= loss
    smaller = Fraction(math.nextafter(float(scale), 0))
    assert QuantileTree(0, 9, targets, 3, neighbours, smaller).event().loss(account) > loss


def test_errors_in_ranks_grow_with_the_scale_and_with_the_number_of_quantiles() -> None:
    one, nine = ((AtShare(Fraction(1, 2)),), tuple(AtShare(Fraction(number, 10)) for number in range(1, 10)))
    sure = Fraction(95, 100)

    def error(targets: tuple[Target, ...], scale: Fraction) -> int:
        mechanism = QuantileTree(0, 10**6, targets, 1, Neighbours.UNBOUNDED, scale)
        return max(rank_errors(mechanism, confidence=sure, rows_max=10**6))

    assert error(one, Fraction(2)) < error(one, Fraction(20)) < error(nine, Fraction(20))
    extremes = (FromLeast(1), FromGreatest(1))
    assert extreme_rank(QuantileTree(0, 10**6, extremes, 1, Neighbours.UNBOUNDED, Fraction(1, 2**20)), confidence=sure) == 1
    assert extreme_rank(QuantileTree(0, 10**6, extremes, 1, Neighbours.UNBOUNDED, Fraction(20)), confidence=sure) > 100
