"""The way to a synthetic table is chosen from sizes, rows and price, and from nothing else."""

from __future__ import annotations

import inspect
import math

import pytest

from lapwing.errors import Refused
from lapwing.prices import Family
from lapwing.releases.synthetic.method import NOISE_MAX, SyntheticMethod, chosen, deviation, ones_share, pair_shares

FAMILIES = (Family.GAUSSIAN, Family.LAPLACE)
SIZES = (2, 9, 30, 16)


@pytest.mark.parametrize("family", FAMILIES)
def test_many_rows_or_a_high_price_make_pairs_worth_measuring(family: Family) -> None:
    def at(loss: float, rows: float) -> SyntheticMethod:
        return chosen(SIZES, loss=loss, rows=rows, family=family).method

    assert at(1.0, 100_000) is SyntheticMethod.PAIRS
    assert at(1.0, 50) is SyntheticMethod.INDEPENDENT
    assert at(1e-7, 100_000) is SyntheticMethod.INDEPENDENT


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", SyntheticMethod)
def test_shares_add_up_to_the_whole_price(family: Family, method: SyntheticMethod) -> None:
    plan = chosen(SIZES, loss=0.5, rows=10_000, family=family, method=method)
    assert sum(plan.shares.values()) == pytest.approx(1)
    assert {(axis,) for axis in range(4)} <= plan.shares.keys()
    assert len(plan.shares) == (4 if plan.method is SyntheticMethod.INDEPENDENT else 10)


def test_auto_without_a_number_of_rows_is_refused_and_a_named_method_is_not() -> None:
    with pytest.raises(Refused) as refusal:
        chosen(SIZES, loss=1.0, rows=None, family=Family.GAUSSIAN)
    assert refusal.value.code == "release-rows-unknown" and "pairs" in refusal.value.hint
    named = chosen(SIZES, loss=1.0, rows=None, family=Family.GAUSSIAN, method=SyntheticMethod.PAIRS)
    assert named.method is SyntheticMethod.PAIRS and named.noise is None


def test_a_single_column_is_measured_alone() -> None:
    plan = chosen((7,), loss=1.0, rows=1_000, family=Family.GAUSSIAN)
    assert (plan.method, plan.shares) == (SyntheticMethod.INDEPENDENT, {(0,): 1.0})


@pytest.mark.parametrize("family", FAMILIES)
def test_no_other_shares_make_the_sum_of_errors_less(family: Family) -> None:
    best = pair_shares(SIZES, family)

    def error(shares: dict[tuple[int, ...], float]) -> float:
        return sum(SIZES[a] * SIZES[b] * deviation(share, loss=1.0, family=family) for (a, b), share in shares.items())

    for moved in best:
        for other in best.keys() - {moved}:
            step = min(best[moved], best[other]) / 20
            assert error(best | {moved: best[moved] - step, other: best[other] + step}) > error(best)


def test_the_length_of_noise_as_a_share_of_the_rows_decides() -> None:
    plan = chosen((10, 10), loss=0.005, rows=1_000, family=Family.GAUSSIAN)
    assert plan.noise == pytest.approx(10 * 10 / 1_000)
    assert chosen((10, 10), loss=0.1, rows=1_000, family=Family.LAPLACE).noise == pytest.approx(10 * 10 * math.sqrt(2) / 1_000)
    least = 1_000 * 0.1 / NOISE_MAX
    methods = [chosen((10, 10), loss=0.005, rows=least * factor, family=Family.GAUSSIAN).method for factor in (0.99, 1.01)]
    assert methods == [SyntheticMethod.INDEPENDENT, SyntheticMethod.PAIRS]


def test_nothing_but_public_facts_can_be_given() -> None:
    assert set(inspect.signature(chosen).parameters) == {"sizes", "loss", "rows", "family", "method"}


def test_the_noisier_the_pairs_the_more_is_for_the_columns_alone() -> None:
    assert [ones_share(noise) for noise in (None, 0.0, 0.025, 0.1, 0.2)] == pytest.approx([0.1, 0.1, 0.2, 0.5, 0.5])
    plan = chosen(SIZES, loss=0.01, rows=10_000, family=Family.GAUSSIAN)
    alone = sum(share for axes, share in plan.shares.items() if len(axes) == 1)
    assert plan.noise is not None and alone == pytest.approx(ones_share(plan.noise))
