"""Rare values are one value, and counts below nothing become none."""

from __future__ import annotations

import numpy as np
import pytest

from lapwing.releases.synthetic.rare_values import MergedValues, nearest_counts


def test_values_below_three_deviations_are_one_value_which_comes_last() -> None:
    merged = MergedValues.of(np.array([40.0, 2.0, 29.0, 31.0, -5.0]), 10.0)
    assert merged.place.tolist() == [0, 2, 2, 1, 2]
    assert merged.members.tolist() == [1, 1, 3]
    assert merged.size == 3


@pytest.mark.parametrize("counts", [[50.0, 60.0, 70.0], [50.0, 1.0, 70.0]])
def test_a_single_rare_value_is_left_alone(counts: list[float]) -> None:
    assert MergedValues.of(np.array(counts), 10.0).place.tolist() == [0, 1, 2]


def test_where_all_values_are_rare_one_is_left() -> None:
    merged = MergedValues.of(np.zeros(4), 1.0)
    assert merged.place.tolist() == [0, 0, 0, 0] and merged.size == 1


def test_tables_are_added_up_along_each_axis_and_chances_are_spread_evenly() -> None:
    merged = MergedValues.of(np.array([40.0, 2.0, 29.0, 31.0]), 10.0)
    table = np.arange(8.0).reshape(2, 4)
    assert merged.sums(table, 1).tolist() == [[0, 3, 3], [4, 7, 11]]
    assert merged.sums(table[0]).tolist() == [0, 3, 3]
    assert merged.spread(np.array([[0.5, 0.3, 0.2]])).tolist() == [[0.5, 0.1, 0.1, 0.3]]


def test_nearest_counts_add_up_and_no_other_such_counts_are_nearer() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        counts = generator.normal(3, 5, 12)
        nearest = nearest_counts(counts, 20.0)
        assert nearest.min() >= 0 and nearest.sum() == pytest.approx(20)
        distance = ((counts - nearest) ** 2).sum()
        for other in generator.dirichlet(np.ones(12), 40) * 20:
            for step in (0.01, 1.0):
                assert ((counts - (nearest + step * (other - nearest))) ** 2).sum() >= distance - 1e-9


def test_counts_that_are_counts_already_stay() -> None:
    assert nearest_counts(np.array([3.0, 0.0, 7.0]), 10.0) == pytest.approx([3, 0, 7])
