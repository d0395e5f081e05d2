"""Trees of counts: the same as a dense solve, with intervals that hold, and levels that are planned better than equal ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest

from lapwing.releases.tree.range_tree import MeasuredLevel, TreeSplit, TreeSynopsis, tree_split, tree_widths
from tests.support.promises import coverage

Floats = npt.NDArray[np.float64]
SHAPES = {
    "complete": (64, (64, 16, 4, 1)),
    "cut off": (50, (50, 16, 4, 1)),
    "no root": (50, (16, 4, 1)),
    "leaves only": (9, (1,)),
    "one leaf": (1, (1,)),
    "a root that is too wide": (37, (64, 8, 2, 1)),
    "uneven branches": (30, (30, 15, 3, 1)),
}


def sums(leaves: int, width: int) -> Floats:
    """The matrix from leaves to nodes."""
    held = np.arange(leaves)[None, :] // width == np.arange(-(-leaves // width))[:, None]
    return np.asarray(held, dtype=np.float64)


def instance(name: str) -> tuple[TreeSynopsis, Floats, Floats]:
    """A tree of random counts, the leaves by a dense solve, and their covariance."""
    leaves, widths = SHAPES[name]
    generator = np.random.default_rng([11, sorted(SHAPES).index(name)])
    levels = [
        MeasuredLevel(width, generator.normal(20.0, 9.0, -(-leaves // width)), float(generator.uniform(0.3, 5.0))) for width in widths
    ]
    matrix = sum((sums(leaves, each.width).T @ sums(leaves, each.width) / each.variance for each in levels), np.zeros((leaves, leaves)))
    right = sum((sums(leaves, each.width).T @ each.counts / each.variance for each in levels), np.zeros(leaves))
    covariance = np.linalg.inv(matrix).astype(np.float64)
    return TreeSynopsis(leaves, levels), covariance @ right, covariance


@pytest.mark.parametrize("name", SHAPES)
def test_leaves_ranges_and_variances_are_those_of_a_dense_solve(name: str) -> None:
    tree, leaves, covariance = instance(name)
    assert tree.leaf_counts() == pytest.approx(leaves, abs=1e-9)
    for first, end in itertools.combinations(range(0, tree.leaves + 1, max(1, tree.leaves // 7)), 2):
        estimate = tree.count(first, end)
        assert estimate.value == pytest.approx(leaves[first:end].sum(), abs=1e-8)
        assert estimate.variance == pytest.approx(covariance[first:end, first:end].sum(), rel=1e-9)
    generator = np.random.default_rng(2)
    one, other = generator.normal(size=tree.leaves), generator.normal(size=tree.leaves)
    assert tree.covariance(one, other) == pytest.approx(float(one @ covariance @ other), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("name", SHAPES)
def test_an_interval_of_a_quantile_is_that_of_a_dense_solve(name: str) -> None:
    tree, leaves, covariance = instance(name)
    for fraction, confidence in itertools.product((0.05, 0.5, 0.9), (0.5, 0.95)):
        before = np.array([(np.arange(tree.leaves) < boundary) - fraction for boundary in range(tree.leaves + 1)])
        excess = before @ leaves
        reach = NormalDist().inv_cdf(0.5 + confidence / 2) * np.sqrt(np.einsum("ij,jk,ik->i", before, covariance, before))
        held = [leaf for leaf in range(tree.leaves) if excess[leaf] <= reach[leaf] and excess[leaf + 1] >= -reach[leaf + 1]]
        found = tree.quantile(fraction, confidence=confidence)
        assert (found.low, found.high) == (held[0], held[-1])
        assert excess[found.leaf] < 0.0 <= excess[found.leaf + 1] or tree.leaves == 1


def noisy(split: TreeSplit, truth: npt.NDArray[np.int64], price: float, generator: np.random.Generator) -> TreeSynopsis:
    levels = []
    for width, variance in zip(split.widths, split.level_variances(price), strict=True):
        counts = np.add.reduceat(truth, np.arange(0, split.leaves, width), axis=-1)
        spread = math.sqrt(variance)
        noise = generator.laplace(0.0, spread / math.sqrt(2.0), counts.shape) if split.pure else generator.normal(0.0, spread, counts.shape)
        levels.append(MeasuredLevel(width, counts + noise, variance))
    return TreeSynopsis(split.leaves, levels)


@pytest.mark.parametrize("pure", [False, True], ids=["Gaussian", "pure"])
def test_intervals_hold_as_often_as_they_say(pure: bool) -> None:
    """Of 366 days, 12,000 ranges in 300 releases; 1,200 quantiles hold at least as often."""
    split = tree_split(366, pure=pure)
    generator = np.random.default_rng(12)
    truth = generator.poisson(50.0 * (1.2 + np.sin(np.arange(366) / 40.0)))
    price = 0.5 if pure else 0.0075
    ranges = [sorted(generator.choice(367, 2, replace=False).tolist()) for _ in range(40)]
    shape = noisy(split, truth, price, generator)
    reach = 1.959964 * np.array([shape.count(first, end).deviation for first, end in ranges])
    exact = np.array([truth[first:end].sum() for first, end in ranges])
    fractions = (0.1, 0.5, 0.75, 0.99)
    true_leaves = [int(np.searchsorted(np.cumsum(truth), fraction * truth.sum())) for fraction in fractions]
    inside = held = 0
    for _ in range(300):
        tree = noisy(split, truth, price, generator)
        before = np.concatenate(([0.0], np.cumsum(tree.leaf_counts())))
        estimates = np.array([before[end] - before[first] for first, end in ranges])
        inside += int((np.abs(estimates - exact) <= reach).sum())
        quantiles = [tree.quantile(fraction) for fraction in fractions]
        held += sum(each.low <= leaf <= each.high for each, leaf in zip(quantiles, true_leaves, strict=True))
        assert all(each.high - each.low < 60 for each in quantiles)
    # 40 ranges of one release share their noise: one deviation is .4 %.
    coverage("ranges of days").require(inside / 40, of=300)
    coverage("quantiles of days").require(held / 4, of=300)


def test_a_tree_for_each_cell_of_further_axes() -> None:
    """Summed over some cells it is the tree of the sums, with the variance of as many."""
    split = tree_split(20, pure=False)
    generator = np.random.default_rng(13)
    truth = generator.poisson(30.0, (3, 2, 20))
    tree = noisy(split, truth, 0.1, generator)
    assert tree.leaf_counts().shape == (3, 2, 20)
    chosen = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    summed = tree.summed(chosen)
    assert summed.leaf_counts() == pytest.approx((tree.leaf_counts() * chosen[..., None]).sum(axis=(0, 1)))
    alone = tree.summed(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    assert alone.leaf_counts() == pytest.approx(tree.leaf_counts()[0, 0])
    assert summed.count(3, 11).variance == pytest.approx(3.0 * alone.count(3, 11).variance)
    assert summed.count(3, 11).value == pytest.approx(
        float(truth[[0, 1, 1], [0, 0, 1], 3:11].sum()), abs=5.0 * summed.count(3, 11).deviation
    )
    with pytest.raises(ValueError, match="several trees"):
        tree.count(0, 1)


def mean_variance(split: TreeSplit) -> float:
    """Over all ranges, by a dense solve at a price of one."""
    leaves = split.leaves
    nodes = [(sums(leaves, width), variance) for width, variance in zip(split.widths, split.level_variances(1.0), strict=True)]
    covariance = np.linalg.inv(sum((each.T @ each / variance for each, variance in nodes), np.zeros((leaves, leaves))))
    before = np.tri(leaves + 1, leaves, -1)
    products = before @ covariance @ before.T
    variances = np.diag(products)[:, None] + np.diag(products)[None, :] - 2.0 * products
    return float(variances[np.triu_indices(leaves + 1, 1)].mean())


@pytest.mark.parametrize("pure", [False, True], ids=["Gaussian", "pure"])
@pytest.mark.parametrize("leaves", [64, 50], ids=["complete", "cut off"])
def test_no_exchange_between_levels_helps(leaves: int, pure: bool) -> None:
    """The mean is over all ranges. A tree that is cut off is planned as if it were complete, which costs nearly nothing."""
    split = tree_split(leaves, pure=pure)
    found = mean_variance(split)
    held = dict(zip(split.widths, split.shares, strict=True))
    widths = tree_widths(leaves)
    for giver, taker in itertools.product(held, widths):
        for part in (1.0, 0.3, 0.05):
            shares = {width: held.get(width, 0.0) for width in widths}
            shares[giver] -= part * held[giver]
            shares[taker] += part * held[giver]
            if giver != taker and shares[1] > 0.0:
                kept = {width: share for width, share in shares.items() if share > 0.0}
                other = TreeSplit(leaves, pure, tuple(kept), tuple(kept.values()))
                assert mean_variance(other) > found * (0.999 if leaves == 64 else 0.98)


def test_planned_levels_beat_leaves_alone_and_equal_levels() -> None:
    leaves = 366
    planned = tree_split(leaves, pure=False)
    widths = tree_widths(leaves)
    equal = TreeSplit(leaves, False, widths, (1.0 / len(widths),) * len(widths))
    flat = TreeSplit(leaves, False, (1,), (1.0,))
    assert mean_variance(planned) < 0.35**2 * mean_variance(flat)
    assert mean_variance(planned) < 0.97 * mean_variance(equal)


def test_widths_of_levels() -> None:
    assert tree_widths(366) == (366, 256, 64, 16, 4, 1)
    assert tree_widths(16) == (16, 4, 1)
    assert tree_widths(5, branch=2) == (5, 4, 2, 1)
    assert tree_widths(1) == (1,)
    assert tree_split(1, pure=False) == TreeSplit(1, False, (1,), (1.0,))


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: tree_widths(0),
        lambda: tree_widths(4, branch=1),
        lambda: TreeSynopsis(4, []),
        lambda: TreeSynopsis(4, [MeasuredLevel(2, np.zeros(2), 1.0)]),
        lambda: TreeSynopsis(4, [MeasuredLevel(1, np.zeros(4), 1.0), MeasuredLevel(1, np.zeros(4), 1.0)]),
        lambda: TreeSynopsis(
            9, [MeasuredLevel(3, np.zeros(3), 1.0), MeasuredLevel(2, np.zeros(5), 1.0), MeasuredLevel(1, np.zeros(9), 1.0)]
        ),
        lambda: TreeSynopsis(4, [MeasuredLevel(1, np.zeros(3), 1.0)]),
        lambda: TreeSynopsis(4, [MeasuredLevel(1, np.zeros(4), -1.0)]),
        lambda: TreeSynopsis(4, [MeasuredLevel(1, np.zeros(4), 1.0)]).count(3, 2),
        lambda: TreeSynopsis(4, [MeasuredLevel(1, np.zeros(4), 1.0)]).linear(np.zeros(3)),
        lambda: TreeSynopsis(4, [MeasuredLevel(1, np.zeros(4), 1.0)]).quantile(1.0),
        lambda: tree_split(4, pure=True).level_variances(0.0),
    ],
    ids=[
        *("no leaf", "no branch", "no level", "no leaves", "a level twice", "not nested", "another shape", "a negative variance"),
        *("backwards", "weights", "no fraction", "no price"),
    ],
)
def test_what_is_no_tree_is_refused(attempt: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"a tree has|leaves are|nodes of|counts of|a variance|a range|a weight|a fraction|a price"):
        attempt()
