"""Draws of a test repeat, differ from test to test, and differ in a run of another name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.meta.small_runs import run

DRAWS = """
from fractions import Fraction
import pytest
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.kernel.noise.entropy import random_below
from lapwing.kernel.noise.vectors import draw_noise

@pytest.fixture(scope="module")
def shared():
    return random_below(10**9)

@pytest.mark.parametrize("case", range(2))
def test_seeded(case, shared):
    print("drawn:", case, shared, random_below(10**9), draw_noise(DiscreteGaussian(Fraction(2**30)), 2).tolist())
    assert False

@pytest.mark.unseeded("asks for the source itself")
def test_unseeded():
    print("drawn: unseeded", random_below(10**9))
    assert False
"""


def drawn(directory: Path, *options: str, seed: str | None = None) -> dict[str, str]:
    """What each test drew, by the first word that it printed."""
    _, text = run(directory, "tests/test_one.py", DRAWS, *options, seed=seed)
    assert f"LAPWING_SEED={seed or 'every day'!r} pytest 'tests/test_one.py::test_seeded[1]'" in text or "-k" in options
    return dict(re.findall(r"^drawn: (\S+) (.*)$", text, re.MULTILINE))


@pytest.mark.slow
def test_a_test_draws_the_same_noise_in_every_run_of_one_name(tmp_path: Path) -> None:
    first, again, workers, other = (
        drawn(tmp_path),
        drawn(tmp_path, "-k", "unseeded or 1"),
        drawn(tmp_path, "-n", "2", "--dist", "load"),
        drawn(tmp_path, seed="another night"),
    )
    assert first.keys() == workers.keys() == other.keys() == {"0", "1", "unseeded"}
    for name in ("0", "1"):
        assert first[name] == workers[name] != other[name]
    assert first["1"] == again["1"], "whatever ran before it, and whichever test used the shared fixture first"
    assert first["0"].split()[1:] != first["1"].split()[1:]
    assert len({run["unseeded"] for run in (first, again, workers, other)}) == 4
