"""The sampler, through ``add_noise``: exactly the certified law, always an integer, never undercharged, never repeated.

Each test below that depends on chance raises a false alarm with probability at most 1e-6 (they are independent of any seed: there is none).
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import SCALE_MAX, SCALE_MIN, DiscreteGaussian, DiscreteLaplace, Law, Sampler, loss
from lapwing.kernel.noise import additive as noise
from lapwing.kernel.noise.reference import opendp_loss
from lapwing.spread import variance
from tests.statistical.samples import MILLION_LAWS, noise_of, noisy_ones

FALSE_ALARM = 1e-6
SCALES = (Fraction(1, 2), Fraction(float.fromhex("0x1.d333333333333p2")), Fraction(100))
LAWS: tuple[Law, ...] = (*MILLION_LAWS, *(make(scale) for make in (DiscreteLaplace, DiscreteGaussian) for scale in SCALES))


def add_noise_at_cost(law: Law, values: list[int], sampler: Sampler = Sampler.LAPWING) -> list[int]:
    """Noise for sensitivity 1, charged exactly its cost."""
    account = Account.APPROXIMATE
    cost = loss(law, account, l1=1, l2_squared=1)
    return noise.add_noise(law, values, account=account, l1=1, l2_squared=1, charged=cost, sampler=sampler)


def probabilities(law: Law, reach: int, *, scale_factor: float = 1.0) -> npt.NDArray[np.float64]:
    """P[Z = z] for |z| <= reach from the definition of the law, normalised by summing far beyond; independent of ``spread.pmf``."""
    scale = float(law.scale) * scale_factor
    z = np.arange(-60 * math.ceil(scale) - reach, 60 * math.ceil(scale) + reach + 1, dtype=np.float64)
    weights = np.exp(-np.abs(z) / scale) if isinstance(law, DiscreteLaplace) else np.exp(-((z / scale) ** 2) / 2)
    inside: npt.NDArray[np.float64] = (weights / weights.sum())[np.abs(z) <= reach]
    return inside


def chi_squared_p_value(law: Law, sample: npt.NDArray[np.int64], *, expected_min: float, scale_factor: float = 1.0) -> float:
    """P-value of the sample under the law (its scale times the factor), in cells of integers expected at least this often."""
    n = len(sample)
    reach = int(np.abs(sample).max()) + 1
    expected = n * probabilities(law, reach, scale_factor=scale_factor)
    expected[[0, -1]] += (n - expected.sum()) / 2  # beyond the sample on either side
    observed = np.bincount(sample + reach, minlength=2 * reach + 1)
    # cut into cells from the left, each as narrow as may be; what is left at the right joins the last full one
    cell, cells, filled = np.zeros(len(expected), dtype=np.int64), 0, 0.0
    for index, amount in enumerate(expected):
        cell[index] = cells
        filled += amount
        if filled >= expected_min:
            cells, filled = cells + 1, 0.0
    cell = np.minimum(cell, cells - 1)
    expected_cells, observed_cells = np.bincount(cell, weights=expected), np.bincount(cell, weights=observed)
    statistic = float(((observed_cells - expected_cells) ** 2 / expected_cells).sum())
    return float(stats.chi2.sf(statistic, len(expected_cells) - 1))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_sampler_draws_the_certified_law(law: Law) -> None:
    """In the finest cells, which see a flaw of the grid, and in at most 80, which see a flaw of the scale."""
    sample = noise_of(law)
    assert chi_squared_p_value(law, sample, expected_min=25) > FALSE_ALARM / 2
    assert chi_squared_p_value(law, sample, expected_min=len(sample) / 80) > FALSE_ALARM / 2


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_wrong_law_would_be_seen(law: Law) -> None:
    """The check above can fail: a scale off by 5 %, or noise on the even integers only. (Missed with probability far below 1e-6.)"""
    sample = noise_of(law)
    for factor in (0.95, 1.05):
        assert chi_squared_p_value(law, sample, expected_min=len(sample) / 80, scale_factor=factor) < FALSE_ALARM / 2
    assert chi_squared_p_value(law, 2 * (sample // 2), expected_min=25) < FALSE_ALARM / 2


@pytest.mark.slow
@pytest.mark.parametrize("law", MILLION_LAWS, ids=str)
def test_no_output_is_off_the_grid_in_a_million(law: Law) -> None:
    results = noisy_ones(law)
    assert len(results) == 1_000_000
    assert sum(type(value) is not int for value in results) == 0


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_of_one_vector_are_independent_of_their_neighbours(law: Law) -> None:
    sample = noise_of(law) / math.sqrt(variance(law))
    for lag in (1, 2, 7):
        correlation = float((sample[:-lag] * sample[lag:]).mean()) * math.sqrt(len(sample) - lag)
        assert abs(correlation) < stats.norm.isf(FALSE_ALARM / 6) * 1.05  # 1.05: heavier tails of a product at finite n


@pytest.mark.parametrize("sampler", Sampler, ids=str)
def test_the_value_is_the_centre(sampler: Sampler) -> None:
    """At the least scale noise is 0 but for a probability below exp(-2^20): values come back as they are, up to the largest."""
    values = [0, 1, -1, 12345, -(10**12), 2**62, -(2**62), 2**31, 2**53 + 1]
    for law in (DiscreteLaplace(SCALE_MIN), DiscreteGaussian(SCALE_MIN)):
        assert add_noise_at_cost(law, values, sampler) == values
        assert add_noise_at_cost(law, [], sampler) == []


@pytest.mark.parametrize("sampler", Sampler, ids=str)
def test_the_largest_noise_on_the_largest_value_does_not_wrap_around(sampler: Sampler) -> None:
    for law in (DiscreteLaplace(SCALE_MAX), DiscreteGaussian(SCALE_MAX)):
        result = add_noise_at_cost(law, [2**62] * 500 + [-(2**62)] * 500, sampler)
        assert all(type(value) is int for value in result)
        # wrapping around would flip signs; a draw of 2^62 = 64 scales has probability exp(-64)
        assert min(result[:500]) > 0 > max(result[500:])


@pytest.mark.parametrize("value", [2**62 + 1, -(2**62) - 1, 10**30])
def test_a_value_too_large_is_refused_without_its_value(value: int) -> None:
    with pytest.raises(LapwingError) as refusal:
        add_noise_at_cost(DiscreteLaplace(Fraction(1)), [1, value])
    assert refusal.value.code == "value-too-large"
    assert str(abs(value)) not in str(refusal.value)


@pytest.mark.parametrize("value", [1.0, True, "7777", None, np.int64(3), np.float64(2.0)])
def test_only_integers_are_taken(value: Any) -> None:
    with pytest.raises(LapwingError) as refusal:
        add_noise_at_cost(DiscreteLaplace(Fraction(1)), [1, value])
    assert refusal.value.code == "value-invalid"
    assert repr(value) not in str(refusal.value)


def test_two_accountants_agree_before_anything_is_drawn() -> None:
    """Over random laws and sensitivities, OpenDP's own map never exceeds our loss; and one part in 2^39 less is refused by both."""
    chance = random.Random(3)
    for _ in range(400):
        scale = Fraction(math.ldexp(chance.uniform(1.0, 2.0), chance.randrange(-20, 56)))
        l1 = chance.choice([1, 3, 2**53 + 1, 2**62, chance.randrange(1, 2**62), chance.randrange(1, 10**6)])
        l2_squared = chance.choice([1, 2, l1, l1**2, chance.randrange(1, l1**2 + 1)])
        for law, account in (
            (DiscreteLaplace(scale), Account.PURE),
            (DiscreteLaplace(scale), Account.APPROXIMATE),
            (DiscreteGaussian(scale), Account.APPROXIMATE),
        ):
            cost = loss(law, account, l1=l1, l2_squared=l2_squared)
            assert opendp_loss(law, account, l1=l1, l2_squared=l2_squared) <= cost
            for sampler in Sampler:
                terms: dict[str, Any] = {"account": account, "l1": l1, "l2_squared": l2_squared, "sampler": sampler}
                assert noise.add_noise(law, [], charged=cost, **terms) == []
                with pytest.raises(LapwingError) as refusal:
                    noise.add_noise(law, [], charged=cost * (1 - Fraction(1, 2**39)), **terms)
                assert refusal.value.code == "noise-undercharged"


def test_the_map_of_the_other_library_is_held_against_the_charge_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "opendp_loss", lambda *_laws, **_sensitivities: Fraction(10**6))
    assert add_noise_at_cost(DiscreteLaplace(SCALE_MIN), [5]) == [5]
    with pytest.raises(LapwingError) as refusal:
        add_noise_at_cost(DiscreteLaplace(Fraction(1)), [5], Sampler.OPENDP)
    assert refusal.value.code == "noise-undercharged"


def test_the_margin_is_needed() -> None:
    """Without it the sampler's float map, which rounds up, would sometimes exceed the exact cost: the check above is not idle."""
    chance = random.Random(4)
    above = 0
    for _ in range(200):
        law = DiscreteGaussian(Fraction(chance.uniform(1.0, 100.0)))
        l2_squared = chance.randrange(1, 10**6)
        mapped = opendp_loss(law, Account.APPROXIMATE, l1=0, l2_squared=l2_squared)
        above += mapped > Fraction(l2_squared) / (2 * law.scale**2)
    assert above > 0


def test_refused_before_drawing() -> None:
    with pytest.raises(Refused) as refused:
        noise.add_noise(DiscreteGaussian(Fraction(1)), [1], account=Account.PURE, l1=1, l2_squared=1, charged=Fraction(10**6))
    assert refused.value.code == "gaussian-needs-delta"
    with pytest.raises(LapwingError) as wrong:
        noise.add_noise(DiscreteLaplace(Fraction(1)), [1], account=Account.PURE, l1=2**62 + 1, l2_squared=1, charged=Fraction(2**80))
    assert wrong.value.code == "sensitivity-invalid"
    a_float: Any = 2.0
    with pytest.raises(LapwingError) as wrong:
        noise.add_noise(DiscreteLaplace(Fraction(1)), [1], account=Account.PURE, l1=1, l2_squared=1, charged=a_float)
    assert wrong.value.code == "number-invalid"


FORKING = """
import json, os
from fractions import Fraction
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace
from lapwing.kernel.noise.additive import add_noise

def stream():
    return [
        add_noise(law, [0] * 20, account=Account.APPROXIMATE, l1=1, l2_squared=1, charged=Fraction(1))
        for law in (DiscreteLaplace(Fraction(2**40)), DiscreteGaussian(Fraction(2**40)))
    ]

stream()  # whatever the sampler keeps in memory exists before the fork
streams = []
for _ in range(2):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, json.dumps(stream()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        streams.append(json.loads(pipe.read()))
    os.wait()
print(json.dumps([*streams, stream()]))
"""


def test_forked_children_and_their_parent_draw_different_streams() -> None:
    """No stream of 20 draws of scale 2^40 repeats, and hardly a single draw does (each pair collides with probability below 2^-40)."""
    finished = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True, timeout=300)
    children_and_parent = json.loads(finished.stdout)
    assert len(children_and_parent) == 3
    for family in (0, 1):
        values = [value for streams in children_and_parent for value in streams[family]]
        assert len(values) == len(set(values)) == 60


@pytest.mark.unseeded("asks whether the product's own source can be seeded")
def test_there_is_no_seed() -> None:
    """Seeding every generator in reach changes nothing: two runs after the same seeds differ."""
    runs = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)
        runs.append(add_noise_at_cost(DiscreteLaplace(Fraction(2**40)), [0] * 20))
    assert not set(runs[0]) & set(runs[1])
