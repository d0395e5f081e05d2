"""The bounds an audit rests on: never on the wrong side of SciPy's, close to them, and right as often as they say."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from lapwing.audit.bounds import RUNS_MAX, lower_bound, tail_upper, upper_bound
from lapwing.audit.claims import Approximate, Claim, Concentrated, Gaussian, Pure, claim_of, evidence, measure_of, parameter_of
from lapwing.errors import LapwingError
from lapwing.kernel.event import Event


def test_bounds_are_clopper_and_pearsons_rounded_outwards() -> None:
    chance = random.Random(1)
    for _ in range(150):
        runs = chance.choice([1, 2, 10, 1000, 10**5, 10**6, 10**8])
        hits = chance.choice([0, 1, runs, runs // 2, runs // 1000, chance.randint(0, runs)])
        error = chance.choice([1e-9, 1e-5, 0.01, 0.3])
        high, low = upper_bound(hits, runs, error=error), lower_bound(hits, runs, error=error)
        right = 1.0 if hits == runs else float(stats.beta.isf(error, hits + 1, runs - hits))
        left = 0.0 if hits == 0 else float(stats.beta.ppf(error, hits, runs - hits + 1))
        width = right - left
        assert right * (1 - 1e-12) <= high <= right + 1e-4 * width, (hits, runs, error)
        assert left - 1e-4 * width - 1e-15 <= low <= left * (1 + 1e-12), (hits, runs, error)


def test_the_tail_is_never_below_the_exact_one() -> None:
    chance = random.Random(2)
    for _ in range(60):
        runs = chance.randint(1, 400)
        hits = chance.randint(0, runs - 1)
        probability = Fraction(chance.randint(hits * 100 // runs + 1, 100), 101)
        if probability < Fraction(hits, runs):
            continue
        exact = sum(math.comb(runs, k) * probability**k * (1 - probability) ** (runs - k) for k in range(hits + 1))
        found = tail_upper(hits, runs, float(probability))
        assert float(exact) <= found <= float(exact) * (1 + 2e-5) + 1e-300


@pytest.mark.parametrize(
    ("hits", "runs", "error"), [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, RUNS_MAX + 1, 0.1), (1, 5, 0.0), (1, 5, 1.0)]
)
def test_what_is_no_count_is_refused(hits: int, runs: int, error: float) -> None:
    with pytest.raises(LapwingError) as refused:
        upper_bound(hits, runs, error=error)
    assert refused.value.code == "audit-invalid"


def evidence_of(claim: Claim, p: float, q: float) -> float:
    return float(evidence(claim, p=np.array([p]), q=np.array([q]))[0])


def test_evidence_is_the_parameter_that_just_allows_the_event() -> None:
    """Events that meet a definition with equality."""
    e = math.exp
    assert evidence_of(Pure(Fraction(1)), 0.1 * e(1), 0.1) == pytest.approx(1)
    assert evidence_of(Approximate(Fraction(2), Fraction(1, 100)), 0.01 + 0.1 * e(2), 0.1) == pytest.approx(2)
    normal = stats.norm
    assert evidence_of(Gaussian(Fraction(3, 2)), normal.sf(-0.5), normal.sf(1.0)) == pytest.approx(1.5)
    p, q, order = 0.7, 0.2, 3.0
    divergence = math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)
    assert evidence_of(Concentrated(Fraction(1)), p, q) >= divergence / order * (1 - 1e-9)
    # no more than any Gaussian mechanism that allows the event: rho = mu^2/2
    assert evidence_of(Concentrated(Fraction(1)), normal.sf(-0.5), normal.sf(1.0)) <= 1.5**2 / 2


def test_a_claim_that_holds_with_equality_is_not_refuted_by_its_own_law() -> None:
    """Exact probabilities of every event of k-ary randomised response, of two-point (epsilon, delta) laws and of Gaussians."""
    epsilon, delta = 1.3, 1e-3
    q = np.linspace(1e-6, 1 - 1e-6, 1000)
    assert evidence(Pure(Fraction(1)), p=np.minimum(1.0, math.exp(epsilon) * q), q=q).max() <= epsilon
    assert evidence(Approximate(Fraction(1), Fraction(1, 1000)), p=np.minimum(1.0, math.exp(epsilon) * q + delta), q=q).max() <= epsilon
    for mu in (0.1, 1.0, 2.0):
        p = stats.norm.sf(stats.norm.isf(q) - mu)
        assert evidence(Gaussian(Fraction(1)), p=p, q=q).max() <= mu * (1 + 1e-6)
        assert evidence(Concentrated(Fraction(1)), p=p, q=q).max() <= mu**2 / 2
        assert evidence(Concentrated(Fraction(1), Fraction(1, 1000)), p=p, q=q).max() <= evidence(Concentrated(Fraction(1)), p=p, q=q).max()


def test_nothing_is_refuted_by_an_event_that_is_no_likelier() -> None:
    for claim in (Pure(Fraction(1)), Approximate(Fraction(1), Fraction(1, 9)), Concentrated(Fraction(1)), Gaussian(Fraction(1))):
        assert evidence_of(claim, 0.2, 0.2) == 0.0
        assert evidence_of(claim, 0.0, 0.3) == 0.0
        assert evidence_of(claim, 0.3, 1.0) == 0.0


def test_claims_of_events() -> None:
    assert claim_of(Event.pure(Fraction(1))) == Pure(Fraction(1))
    assert claim_of(Event.pure(Fraction(1)), concentrated=True) == Concentrated(Fraction(1, 2))
    assert claim_of(Event(Fraction(1), None, Fraction(1, 8))) == Approximate(Fraction(1), Fraction(1, 8))
    assert claim_of(Event(None, Fraction(1, 3), Fraction(1, 8))) == Concentrated(Fraction(1, 3), Fraction(1, 8))
    with pytest.raises(LapwingError):
        claim_of(Event(None, None))
    assert [measure_of(claim) for claim in (Pure(Fraction(1)), Concentrated(Fraction(1)), Gaussian(Fraction(1)))] == [
        "epsilon",
        "rho",
        "mu",
    ]
    assert parameter_of(Gaussian(Fraction(7))) == 7
    for wrong in (
        lambda: Pure(Fraction(-1)),
        lambda: Approximate(Fraction(1), Fraction(1)),
        lambda: Concentrated(Fraction(1), Fraction(-1)),
    ):
        with pytest.raises(LapwingError):
            wrong()
