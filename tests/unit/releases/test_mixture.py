"""Mixtures: they explain pairs as well as the noise lets them, and rows are spread as their chances are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from lapwing.releases.marginals.synopsis import MeasuredMarginal
from lapwing.releases.synthetic.mixture import COMPONENTS_FEW, COMPONENTS_MANY, STEPS_MAX, Mixture, fitted, product_of
from lapwing.releases.synthetic.public_numbers import PublicNumbers

ROWS = 20_000


def _numbers(purpose: str = "test") -> PublicNumbers:
    return PublicNumbers(b"digest", purpose)


def _table(sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """Columns that depend on one hidden class."""
    generator = np.random.default_rng(1)
    hidden = generator.integers(0, 4, ROWS)
    columns = [(hidden * size // 4 + generator.integers(0, max(1, size // 2), ROWS)) % size for size in sizes]
    return np.stack(columns, 1)


def _measured(
    rows: npt.NDArray[np.int64], sizes: Sequence[int], deviation: float
) -> tuple[dict[tuple[int, int], MeasuredMarginal], list[MeasuredMarginal]]:
    generator = np.random.default_rng(2)

    def noisy(axes: tuple[int, ...]) -> MeasuredMarginal:
        shape = [sizes[axis] for axis in axes]
        return MeasuredMarginal(axes, _counts(rows, axes, sizes) + generator.normal(0, deviation, shape), deviation**2)

    pairs = {(a, b): noisy((a, b)) for a, b in combinations(range(len(sizes)), 2)}
    return pairs, [noisy((axis,)) for axis in range(len(sizes))]


def _counts(rows: npt.NDArray[np.int64], axes: tuple[int, ...], sizes: Sequence[int]) -> npt.NDArray[np.float64]:
    shape = [sizes[axis] for axis in axes]
    place = np.ravel_multi_index([rows[:, axis] for axis in axes], shape)
    return np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(float)


def _distance(rows: npt.NDArray[np.int64], others: npt.NDArray[np.int64], sizes: Sequence[int]) -> float:
    """Mean total variation over all pairs."""
    far = [
        np.abs(_counts(rows, pair, sizes) / len(rows) - _counts(others, pair, sizes) / len(others)).sum() / 2
        for pair in combinations(range(len(sizes)), 2)
    ]
    return float(np.mean(far))


SIZES = (8, 5, 12, 2)


@pytest.fixture(scope="module")
def rows() -> npt.NDArray[np.int64]:
    return _table(SIZES)


def test_pairs_with_little_noise_are_reproduced(rows: npt.NDArray[np.int64]) -> None:
    pairs, ones = _measured(rows, SIZES, 20.0)
    mixture = fitted(SIZES, pairs, ones, ROWS, _numbers())
    assert mixture.fit is not None and mixture.fit.residual <= 1.2 and mixture.fit.steps < STEPS_MAX
    made = mixture.rows(ROWS, _numbers("rows"))
    apart = product_of(ones).rows(ROWS, _numbers("rows"))
    assert _distance(rows, made, SIZES) < 0.02
    assert _distance(rows, apart, SIZES) > 0.2
    for a, b in pairs:
        assert np.abs(mixture.pair(a, b) * ROWS - _counts(made, (a, b), SIZES)).max() < 0.01 * ROWS


def test_pairs_that_are_all_noise_are_not_fitted(rows: npt.NDArray[np.int64]) -> None:
    pairs, ones = _measured(rows, SIZES, 3_000.0)
    truth = [MeasuredMarginal((axis,), _counts(rows, (axis,), SIZES), 1.0) for axis in range(len(ones))]
    mixture = fitted(SIZES, pairs, truth, ROWS, _numbers())
    assert mixture.fit is not None and mixture.fit.steps < STEPS_MAX
    apart = product_of(truth).rows(ROWS, _numbers("rows"))
    assert _distance(apart, mixture.rows(ROWS, _numbers("rows")), SIZES) < 0.1


def test_the_same_release_makes_the_same_rows_and_another_digest_makes_others(rows: npt.NDArray[np.int64]) -> None:
    pairs, ones = _measured(rows, SIZES, 50.0)
    first, again = (fitted(SIZES, pairs, ones, ROWS, _numbers()).rows(500, _numbers("rows")) for _ in range(2))
    assert np.array_equal(first, again)
    other = fitted(SIZES, pairs, ones, ROWS, PublicNumbers(b"other", "test")).rows(500, PublicNumbers(b"other", "rows"))
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("number", [0, 1, 7, 40, 4_001])
def test_in_each_component_a_value_occurs_as_often_as_its_chance_says(number: int) -> None:
    chances = np.random.default_rng(3).dirichlet(np.ones(6), 10)
    label = np.eye(10)  # a column that tells the component
    made = Mixture((chances, label)).rows(number, _numbers())
    assert made.shape == (number, 2) and (made >= 0).all()
    for component in range(10):
        of_it = made[made[:, 1] == component, 0]
        assert abs(len(of_it) - number / 10) < 1
        assert np.abs(np.bincount(of_it, minlength=6) - len(of_it) * chances[component]).max() < 2


def test_independent_columns_are_spread_as_their_counts_without_those_below_nothing() -> None:
    made = product_of([MeasuredMarginal((0,), np.array([60, -7, 47]), 1.0), MeasuredMarginal((1,), np.array([0.0, 100.0]), 1.0)]).rows(
        100, _numbers()
    )
    counts = np.bincount(made[:, 0], minlength=3)
    assert counts[1] == 0 and abs(counts[0] - 56.5) <= 1
    assert (made[:, 1] == 1).all()


def test_a_release_in_which_everything_is_below_nothing_still_makes_a_table() -> None:
    ones = [MeasuredMarginal((0,), np.array([-5.0, -9.0, -2.0]), 1.0), MeasuredMarginal((1,), np.array([-1.0, -1.0]), 1.0)]
    pairs = {(0, 1): MeasuredMarginal((0, 1), np.full((3, 2), -4.0), 1.0)}
    for mixture in (fitted((3, 2), pairs, ones, -20.0, _numbers(), steps=20), product_of(ones)):
        assert all(np.isfinite(chances).all() for chances in mixture.chances)
        assert mixture.rows(5, _numbers()).shape == (5, 2)


def test_a_column_without_its_own_table_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="own table"):
        fitted((3, 2), {}, [MeasuredMarginal((0,), np.zeros(3), 1.0)], 10.0, _numbers())


def test_a_fit_with_very_many_values_has_fewer_steps(monkeypatch: pytest.MonkeyPatch, rows: npt.NDArray[np.int64]) -> None:
    pairs, ones = _measured(rows, SIZES, 0.1)
    values = sum(SIZES)
    monkeypatch.setattr("lapwing.releases.synthetic.mixture.WORK_MAX", 30.0 * COMPONENTS_MANY * values**2)
    mixture = fitted(SIZES, pairs, ones, ROWS, _numbers())
    assert mixture.fit is not None and mixture.fit.steps == 30 and mixture.components == COMPONENTS_MANY
    monkeypatch.setattr("lapwing.releases.synthetic.mixture.FEW_VALUES", values - 1)
    assert fitted(SIZES, pairs, ones, ROWS, _numbers(), steps=2).components == COMPONENTS_FEW
