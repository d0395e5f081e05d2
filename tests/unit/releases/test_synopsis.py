"""The closed form is generalised least squares: the same values and the same covariances as a dense solve, on small random instances."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from lapwing.releases.marginals.synopsis import VARIANCE_MIN, MeasuredMarginal, Synopsis

Floats = npt.NDArray[np.float64]

# Sizes of the axes, and the sets that are measured. Some hold an axis of one bin, some lack a set of the closure, one is measured twice.
INSTANCES: dict[str, tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]] = {
    "all pairs": ((2, 3, 4), ((0, 1), (0, 2), (1, 2))),
    "closure": ((3, 2, 2), ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))),
    "missing closures": ((3, 4, 2, 2), ((0, 1, 2), (3,), (1, 3))),
    "an axis of one bin": ((3, 1, 4), ((0, 1), (1, 2), (0, 1, 2))),
    "only axes of one bin": ((1, 1), ((0,), (0, 1))),
    "twice": ((2, 5), ((0, 1), (0, 1), (1,))),
    "apart": ((4, 3), ((0,), (1,))),
    "a total": ((6,), ((), (0,))),
}


@dataclass(frozen=True)
class Dense:
    """The same instance, written out: one row for each measured cell, solved with a pseudo-inverse."""

    sizes: tuple[int, ...]
    tables: tuple[MeasuredMarginal, ...]

    def sums(self, axes: tuple[int, ...]) -> Floats:
        """The matrix from the joint table to its marginal."""
        factors = [np.eye(size) if axis in axes else np.ones((1, size)) for axis, size in enumerate(self.sizes)]
        matrix: Floats = np.ones((1, 1))
        for factor in factors:
            matrix = np.kron(matrix, factor).astype(np.float64)
        return matrix

    def solved(self) -> tuple[Floats, Floats]:
        """A joint table of least squares, and the covariance of it. Where several are best, what is covered is the same in all."""
        rows = np.vstack([self.sums(table.axes) / math.sqrt(table.variance) for table in self.tables])
        seen = np.concatenate([np.asarray(table.counts, dtype=float).ravel() / math.sqrt(table.variance) for table in self.tables])
        covariance: Floats = np.linalg.pinv(rows.T @ rows, rcond=1e-10).astype(np.float64)
        return covariance @ rows.T @ seen, covariance


def instance(name: str, seed: int = 1) -> tuple[Dense, Synopsis]:
    sizes, sets = INSTANCES[name]
    generator = np.random.default_rng([seed, sorted(INSTANCES).index(name)])
    tables = tuple(
        MeasuredMarginal(axes, generator.normal(50.0, 30.0, [sizes[axis] for axis in axes]), float(generator.uniform(0.2, 9.0)))
        for axes in sets
    )
    return Dense(sizes, tables), Synopsis(sizes, tables)


def covered(dense: Dense, synopsis: Synopsis) -> list[tuple[int, ...]]:
    axes = range(len(dense.sizes))
    every = [part for count in range(len(dense.sizes) + 1) for part in itertools.combinations(axes, count)]
    return [part for part in every if synopsis.covers(part)]


@pytest.mark.parametrize("name", INSTANCES)
def test_values_and_variances_are_those_of_a_dense_solve(name: str) -> None:
    dense, synopsis = instance(name)
    joint, covariance = dense.solved()
    generator = np.random.default_rng(7)
    for axes in covered(dense, synopsis):
        sums = dense.sums(axes)
        shape = tuple(dense.sizes[axis] for axis in axes)
        assert synopsis.marginal(axes) == pytest.approx((sums @ joint).reshape(shape), abs=1e-8)
        variances = np.diag(sums @ covariance @ sums.T)
        assert variances == pytest.approx(np.full(variances.shape, synopsis.cell_variance(axes)), rel=1e-9)
        first, second = generator.normal(size=shape), generator.normal(size=shape)
        estimate = synopsis.linear(axes, first)
        assert estimate.value == pytest.approx(float(first.ravel() @ sums @ joint), abs=1e-7)
        assert estimate.variance == pytest.approx(float(first.ravel() @ sums @ covariance @ sums.T @ first.ravel()), rel=1e-9)
        assert synopsis.covariance(axes, first, second) == pytest.approx(
            float(first.ravel() @ sums @ covariance @ sums.T @ second.ravel()), rel=1e-8, abs=1e-10
        )


@pytest.mark.parametrize("name", ["all pairs", "missing closures", "apart", "an axis of one bin"])
def test_covariances_between_different_sets_are_those_of_a_dense_solve(name: str) -> None:
    dense, synopsis = instance(name)
    _, covariance = dense.solved()
    generator = np.random.default_rng(8)
    for axes, others in itertools.product(covered(dense, synopsis), repeat=2):
        first = generator.normal(size=[dense.sizes[axis] for axis in axes])
        second = generator.normal(size=[dense.sizes[axis] for axis in others])
        exact = float(first.ravel() @ dense.sums(axes) @ covariance @ dense.sums(others).T @ second.ravel())
        assert synopsis.covariance_between(axes, first, others, second) == pytest.approx(exact, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("name", INSTANCES)
def test_marginals_agree_with_each_other(name: str) -> None:
    dense, synopsis = instance(name)
    compared = 0
    for axes in covered(dense, synopsis):
        for place in range(len(axes)):
            fewer = axes[:place] + axes[place + 1 :]
            assert synopsis.marginal(axes).sum(axis=place) == pytest.approx(synopsis.marginal(fewer), abs=1e-8)
            compared += 1
    assert compared > 0


def test_a_set_is_covered_where_a_measured_table_holds_it() -> None:
    _, synopsis = instance("missing closures")
    for axes in ((), (0,), (0, 2), (0, 1, 2), (1, 3), (3,)):
        assert synopsis.covers(axes), axes
    for axes in ((0, 3), (2, 3), (0, 1, 3)):
        assert not synopsis.covers(axes), axes
        with pytest.raises(ValueError, match="no measured table"):
            synopsis.marginal(axes)
    assert not Synopsis((2, 3), ()).covers(())


def test_an_axis_of_one_bin_is_covered_everywhere() -> None:
    synopsis = Synopsis((3, 1), (MeasuredMarginal((0,), np.array([4.0, 5.0, 6.0]), 2.0),))
    assert synopsis.marginal((0, 1)) == pytest.approx(np.array([[4.0], [5.0], [6.0]]))
    assert synopsis.cell_variance((0, 1)) == pytest.approx(2.0)


def test_one_table_alone_is_returned_as_it_is() -> None:
    counts = np.arange(12, dtype=np.int64).reshape(3, 4) - 5
    synopsis = Synopsis((3, 4), (MeasuredMarginal((0, 1), counts, 7.0),))
    assert synopsis.marginal((0, 1)) == pytest.approx(counts)
    assert synopsis.cell_variance((0, 1)) == pytest.approx(7.0)
    assert synopsis.cell_variance(()) == pytest.approx(7.0 * 12)


def test_variances_are_those_of_repeated_noise() -> None:
    """2,000 releases of the same table: the mean is the truth, and the spread is what was said, for a cell and for a weighted sum."""
    sizes, sets = (3, 4, 2), ((), (0, 1), (1, 2), (0, 1, 2))
    variances = (4.0, 9.0, 2.0, 25.0)
    generator = np.random.default_rng(5)
    truth = generator.poisson(40.0, sizes).astype(float)
    weights = generator.integers(0, 3, (3, 4)).astype(float)
    exact = float((weights * truth.sum(axis=2)).sum())
    marginals = [truth.sum(axis=tuple(axis for axis in range(3) if axis not in axes)) for axes in sets]

    def released() -> Synopsis:
        tables = (
            MeasuredMarginal(axes, counts + generator.normal(0.0, math.sqrt(variance), counts.shape), variance)
            for axes, counts, variance in zip(sets, marginals, variances, strict=True)
        )
        return Synopsis(sizes, tuple(tables))

    releases = [released() for _ in range(2_000)]
    values = [each.linear((0, 1), weights).value for each in releases]
    cells = [float(each.marginal((0, 1))[1, 2]) for each in releases]
    synopsis = releases[0]
    said = synopsis.linear((0, 1), weights)
    # The sample variance of 2,000 normal draws is within 10 % (three deviations) of the true one.
    assert np.var(values) == pytest.approx(said.variance, rel=0.1)
    assert np.mean(values) == pytest.approx(exact, abs=4.0 * said.deviation / math.sqrt(2_000))
    assert np.var(cells) == pytest.approx(synopsis.cell_variance((0, 1)), rel=0.1)
    assert said.variance < float((weights**2).sum()) * 9.0, "together the tables know more than the one over these axes"


def test_noise_that_is_too_small_for_a_float_is_not_infinitely_precise() -> None:
    tables = (MeasuredMarginal((0,), np.array([3.0, 4.0]), 0.0), MeasuredMarginal((), np.array(9.0), 5.0))
    synopsis = Synopsis((2,), tables)
    assert synopsis.marginal((0,)) == pytest.approx(np.array([3.0, 4.0]), abs=1e-9)
    assert 0.0 < synopsis.cell_variance((0,)) <= VARIANCE_MIN


@pytest.mark.parametrize(
    ("sizes", "axes", "counts", "variance"),
    [
        ((2, 0), (0,), [1.0, 2.0], 1.0),
        ((2, 3), (0,), [1.0, 2.0, 3.0], 1.0),
        ((2, 2), (1, 0), [[1.0, 2.0], [1.0, 2.0]], 1.0),
        ((2, 2), (0, 0), [[1.0, 2.0], [1.0, 2.0]], 1.0),
        ((2,), (0,), [1.0, 2.0], -1.0),
        ((2,), (0,), [1.0, 2.0], math.nan),
    ],
    ids=["no bins", "another shape", "descending", "an axis twice", "a negative variance", "no number"],
)
def test_what_is_no_table_is_refused(sizes: tuple[int, ...], axes: tuple[int, ...], counts: list[float], variance: float) -> None:
    with pytest.raises(ValueError, match=r"an axis has|counts have|axes are|a variance is"):
        Synopsis(sizes, (MeasuredMarginal(axes, np.array(counts), variance),))


def test_weights_have_the_shape_of_the_marginal() -> None:
    _, synopsis = instance("all pairs")
    with pytest.raises(ValueError, match="weights have"):
        synopsis.linear((0, 1), np.ones((3, 2)))
