"""Variances of sums read off a tree, for many groups at once: the same as of a dense solve over all cells."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from lapwing.kernel.domains import IntegerDomain
from lapwing.releases.marginals.synopsis import MeasuredMarginal
from lapwing.releases.marginals.variances import GroupedSums
from lapwing.releases.serving.tree_counts import TreeCounts
from lapwing.releases.tree import variances as tree_spreads
from lapwing.releases.tree.axes import leaf_width, tree_axes
from lapwing.releases.tree.range_tree import MeasuredLevel, TreeSynopsis
from lapwing.releases.tree.variances import TreeLevel, TreeSpreads

Floats = npt.NDArray[np.float64]
SIZES = (2, 3, 38)
LEAVES = 37
LEVELS = [TreeLevel(1, 2.5), TreeLevel(4, 1.5), TreeLevel(16, 0.7), TreeLevel(37, 4.0)]
AXES = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]


def dense(sizes: tuple[int, ...], levels: list[TreeLevel]) -> Floats:
    """The covariance of all leaves, and of NULL, over all cells of further axes."""
    one = np.zeros((sizes[-1], sizes[-1]))
    for level in levels:
        held = np.arange(LEAVES)[None, :] // level.width == np.arange(-(-LEAVES // level.width))[:, None]
        one[:LEAVES, :LEAVES] += held.T.astype(np.float64) @ held / level.variance
        one[LEAVES:, LEAVES:] += 1 / level.variance
    return np.asarray(np.kron(np.eye(int(np.prod(sizes[:-1]))), np.linalg.inv(one)), dtype=np.float64)


def grouped(axes: tuple[int, ...], seed: int, groups: int = 3) -> GroupedSums:
    generator = np.random.default_rng(seed)
    shape = [SIZES[axis] for axis in axes]
    return GroupedSums(axes, generator.integers(-1, 3, shape), groups, generator.normal(size=shape))


def matrix(sums: GroupedSums, weights: Floats) -> Floats:
    """Groups by all cells."""
    spread = [SIZES[axis] if axis in sums.axes else 1 for axis in range(3)]
    rows = [np.where(sums.group == group, weights, 0.0).reshape(spread) for group in range(sums.groups)]
    return np.array([np.broadcast_to(row, SIZES).ravel() for row in rows])


@pytest.mark.parametrize("groups", [3, 3_000], ids=["few groups", "many groups, most of them empty"])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_of_one_query(axes: tuple[int, ...], groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_spreads, "DENSE_MAX", 1_000)
    spreads, first = TreeSpreads(SIZES, LEAVES, LEVELS), grouped(axes, 1, groups)
    second = GroupedSums(axes, first.group, first.groups, np.random.default_rng(2).normal(size=first.group.shape))
    one, other = matrix(first, first.weights), matrix(second, second.weights)
    exact = one @ dense(SIZES, LEVELS) @ one.T
    whole, smearing = spreads.variances_of(first)
    assert whole == pytest.approx(np.diag(exact), rel=1e-9) and not smearing.any(), "noise of one or two counts is not smooth"
    assert spreads.covariance(first, second) == pytest.approx(np.diag(one @ dense(SIZES, LEVELS) @ other.T), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(("axes", "other"), list(product(AXES, AXES)), ids=str)
def test_of_two_queries(axes: tuple[int, ...], other: tuple[int, ...]) -> None:
    spreads, first, second = TreeSpreads(SIZES, LEAVES, LEVELS), grouped(axes, 3), grouped(other, 4)
    exact = matrix(first, first.weights) @ dense(SIZES, LEVELS) @ matrix(second, second.weights).T
    assert spreads.covariances(first, second) == pytest.approx(exact, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("levels", [[TreeLevel(1, 2.0)], [TreeLevel(1, 2.0), TreeLevel(4, 1e-30)]], ids=["leaves only", "hardly any noise"])
def test_of_few_levels_and_without_null(levels: list[TreeLevel]) -> None:
    spreads = TreeSpreads((LEAVES,), LEAVES, levels)
    found = spreads.variances_of(GroupedSums((0,), np.arange(LEAVES) // 4, 10, np.ones(LEAVES)))[0]
    expected = [8.0] * 9 + [2.0] if len(levels) == 1 else [0.0] * 10
    assert found == pytest.approx(expected, abs=1e-6)


def test_noise_of_many_counts_is_smooth() -> None:
    spreads = TreeSpreads((LEAVES,), LEAVES, [TreeLevel(1, 900.0), TreeLevel(37, 900.0)])
    whole, smearing = spreads.variances_of(GroupedSums((0,), np.zeros(LEAVES, dtype=np.int64), 1, np.ones(LEAVES)))
    assert np.array_equal(whole, smearing) and whole > 400


def test_leaves_must_be_measured() -> None:
    for sizes, levels in (((37,), [TreeLevel(4, 1.0)]), ((39,), LEVELS), ((37,), [])):
        with pytest.raises(ValueError, match="leaves, which are measured"):
            TreeSpreads(sizes, LEAVES, levels)


def test_one_tree_gives_the_same_by_either_way() -> None:
    generator = np.random.default_rng(5)
    leaf_axes = tree_axes("x", IntegerDomain(0, 49, False), branch=4, bins=None)
    measured = [MeasuredMarginal((number,), generator.normal(9.0, 3.0, axis.size), 1.0 + number) for number, axis in enumerate(leaf_axes)]
    counts = TreeCounts.of("t", leaf_axes, measured, laplace=False, notes=())
    levels = [
        MeasuredLevel(leaf_width(axis, leaf_axes[-1]), each.counts, each.variance) for axis, each in zip(leaf_axes, measured, strict=True)
    ]
    synopsis, one, other = TreeSynopsis(50, levels), generator.normal(size=50), generator.normal(size=50)
    assert counts.marginal((0,)) == pytest.approx(synopsis.leaf_counts())
    assert counts.covariance((0,), one, other) == pytest.approx(synopsis.covariance(one, other), rel=1e-8)
    assert counts.linear((0,), one).variance == pytest.approx(synopsis.linear(one).variance, rel=1e-9)
