"""Numbers from a digest: the same for everybody, spread as they should be."""

from __future__ import annotations

import numpy as np

from lapwing.releases.synthetic.public_numbers import PublicNumbers


def test_the_same_digest_and_purpose_make_the_same_numbers_with_every_version_of_every_library() -> None:
    numbers = PublicNumbers(b"digest", "rows")
    assert numbers.uniform(3).tolist() == GOLDEN
    assert numbers.uniform(3).tolist() != GOLDEN
    assert PublicNumbers(b"digest", "rows").uniform(3).tolist() == GOLDEN


def test_another_digest_or_purpose_makes_others() -> None:
    streams = [PublicNumbers(digest, purpose).uniform(4).tolist() for digest in (b"a", b"b") for purpose in ("rows", "fit")]
    assert len({tuple(stream) for stream in streams}) == 4


def test_uniform_numbers_fill_the_interval_evenly() -> None:
    drawn = PublicNumbers(b"digest", "test").uniform(100_000)
    assert drawn.min() >= 0 and drawn.max() < 1
    assert np.abs(np.histogram(drawn, bins=10, range=(0, 1))[0] - 10_000).max() < 500


def test_normal_numbers_have_the_moments_of_a_standard_gaussian() -> None:
    drawn = PublicNumbers(b"digest", "test").normal(100_001)
    assert len(drawn) == 100_001
    assert abs(drawn.mean()) < 0.02 and abs(drawn.std() - 1) < 0.02 and abs((drawn**4).mean() - 3) < 0.2


def test_an_order_is_a_permutation() -> None:
    order = PublicNumbers(b"digest", "test").order(1_000)
    assert sorted(order.tolist()) == list(range(1_000))
    assert order.tolist() != list(range(1_000))


GOLDEN = [0.38746190843797723, 0.11907355387592344, 0.6345983643886529]
