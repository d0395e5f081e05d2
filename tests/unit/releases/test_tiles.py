"""Squares of products: the same sums as of whole matrices, in pieces that no library shares among threads."""

from __future__ import annotations

import numpy as np
import pytest

from lapwing.releases.synthetic.tiles import PRODUCT_MAX, Tiles


@pytest.mark.parametrize(("values", "components"), [(1, 1), (7, 5), (130, 100), (64, 4_000), (257, 60)])
def test_loss_and_gradient_are_those_of_the_whole_matrix(values: int, components: int) -> None:
    generator = np.random.default_rng(values)
    rows = generator.random((components, values)).astype(np.float32)
    wanted, weights = generator.random((2, values, values))
    upper = np.triu(weights)  # squares below the diagonal are not kept
    tiles = Tiles(values, components)
    loss, gradient = tiles.gradient(rows, tiles.squares(wanted * (upper > 0)), tiles.squares(upper), with_loss=True)
    exact = rows.astype(float)
    difference = exact.T @ exact / components - wanted
    pull = difference * upper
    assert loss == pytest.approx(float((difference * pull).sum()), rel=1e-4)
    assert np.allclose(gradient, exact @ (pull + pull.T), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("components", [1, 60, 100, 200, 5_000])
def test_every_product_is_small(components: int) -> None:
    tiles = Tiles(1_500, components)
    assert tiles.width**2 * components <= PRODUCT_MAX
    assert tiles.count * tiles.width >= 1_500


def test_rows_are_cut_and_joined_again() -> None:
    rows = np.arange(5 * 130, dtype=np.float32).reshape(5, 130)
    tiles = Tiles(130, 5)
    tiles.width, tiles.count = 50, 3
    assert tiles.cut(rows).shape == (3, 5, 50)
    assert np.array_equal(tiles.joined(tiles.cut(rows)), rows)
