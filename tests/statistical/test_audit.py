"""The auditor on laws we write down ourselves: it finds what is there, and raises false alarms no more often than it says.

Draws come from NumPy with a seed, so these tests always give the same result; the sampler that is used for answers is audited elsewhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from lapwing.audit.auditor import Draw, audit, audit_draws
from lapwing.audit.claims import Approximate, Concentrated, Gaussian, Pure
from lapwing.errors import LapwingError
from tests.support.promises import watched
from tests.support.sizes import size

RNG = np.random.Generator


def laplace(rng: RNG, scale: float) -> Draw[int, float]:
    return lambda value, runs: (value + rng.laplace(0.0, scale, runs)).tolist()


def responses(rng: RNG, truth: float) -> Draw[bool, bool]:
    return lambda value, runs: (rng.random(runs) < (truth if value else 1.0 - truth)).tolist()


def test_the_lower_bound_comes_close_to_the_truth() -> None:
    rng = np.random.default_rng(1)
    tight = audit_draws(laplace(rng, 1.0), [(0, 1)], Pure(Fraction(1)), samples=200_000)
    assert 0.93 < tight.lower_bound < 1 and not tight.caught
    coin = audit_draws(responses(rng, float(np.e / (1 + np.e))), [(False, True)], Pure(Fraction(1)), samples=100_000)
    assert 0.95 < coin.lower_bound < 1 and not coin.caught
    normal: Draw[int, float] = lambda value, runs: rng.normal(value, 1.0, runs).tolist()  # noqa: E731
    gaussian = audit_draws(normal, [(0, 1)], Gaussian(Fraction(1)), samples=200_000)
    assert 0.95 < gaussian.lower_bound < 1 and not gaussian.caught
    concentrated = audit_draws(normal, [(0, 1)], Concentrated(Fraction(1, 2)), samples=200_000)
    assert 0.3 < concentrated.lower_bound < 0.5 and not concentrated.caught


@pytest.mark.parametrize("side", [1, -1])
def test_the_same_law_with_a_smaller_claim_is_caught_in_either_direction(side: int) -> None:
    """Z-channel: an output that only one data set gives refutes every epsilon, in the direction it speaks for."""
    rng = np.random.default_rng(2)
    draw: Draw[int, bool] = lambda value, runs: (rng.random(runs) < (0.01 if value == side else 0.0)).tolist()  # noqa: E731
    found = audit_draws(draw, [(-1, 1)], Pure(Fraction(1)), samples=100_000)
    assert found.caught and found.lower_bound > 3
    assert [test.lower_bound > 1 for test in found.found] == [side == 1, side == -1]
    allowed = audit_draws(draw, [(-1, 1)], Approximate(Fraction(1), Fraction(1, 50)), samples=100_000)
    assert not allowed.caught
    assert audit_draws(draw, [(-1, 1)], Approximate(Fraction(1), Fraction(1, 500)), samples=100_000).caught
    # delta-approximate zCDP forgives exactly what delta pays for
    assert audit_draws(draw, [(-1, 1)], Concentrated(Fraction(1, 100)), samples=100_000).caught
    assert not audit_draws(draw, [(-1, 1)], Concentrated(Fraction(1, 100), Fraction(1, 50)), samples=100_000).caught


def test_every_pair_is_tried() -> None:
    rng = np.random.default_rng(3)
    found = audit_draws(laplace(rng, 1.0), [(0, 0), (0, 2), (0, 0)], Pure(Fraction(1)), samples=50_000)
    assert found.caught and found.tests == 6
    assert {test.pair for test in found.found if test.lower_bound > 1} == {1}


def test_an_event_need_not_be_an_interval() -> None:
    """The ratio of this law goes up and down: only every other output tells."""
    rng = np.random.default_rng(4)

    def draw(value: int, runs: int) -> list[int]:
        even = rng.random(runs) < (0.7 if value else 0.3)
        drawn: list[int] = (2 * rng.integers(0, 8, runs) + np.where(even, 0, 1)).tolist()
        return drawn

    found = audit_draws(draw, [(0, 1)], Pure(Fraction(1)), samples=40_000)
    assert 0.75 < found.lower_bound < np.log(7 / 3)


def test_lists_of_numbers_are_projected() -> None:
    """Four cells that move a little each: together they tell more than any one of them."""
    rng = np.random.default_rng(5)

    def draw(value: int, runs: int) -> list[tuple[float, ...]]:
        moved: npt.NDArray[np.float64] = rng.normal(0.0, 1.0, (runs, 5)) + value * np.array([0.5, -0.5, 0.5, 0.5, 0.0])
        return [tuple(row) for row in moved.tolist()]

    found = audit_draws(draw, [(0, 1)], Gaussian(Fraction(1)), samples=60_000)
    assert 0.85 < found.lower_bound < 1


def test_any_function_of_hashable_outputs() -> None:
    """One run per call; text, None and tuples of mixed kinds as outputs; outputs that never repeat tell nothing and harm nothing."""
    rng = np.random.default_rng(6)

    def leaky(rows: tuple[str, ...]) -> Hashable:
        if rng.random() < 0.9:
            return None
        return ("member", "target" in rows) if rng.random() < 0.5 else f"{rng.random()}"

    found = audit(leaky, [(("a",), ("a", "target"))], Pure(Fraction(1)), samples=20_000)
    assert found.caught
    noise = audit(lambda _rows: f"{rng.random()}", [(("a",), ("b",))], Pure(Fraction(0)), samples=2_000)
    assert noise.lower_bound == 0.0


@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(9, 10)])
def test_false_alarms_are_no_more_frequent_than_stated(confidence: Fraction) -> None:
    """Many audits of a claim that holds with equality."""
    rng = np.random.default_rng(7)
    epsilon = Fraction(1, 2)
    truth = float(np.exp(0.5) / (1 + np.exp(0.5)))
    draw, claim, quiet = responses(rng, truth), Pure(epsilon), list[bool]()

    def audited() -> list[bool]:
        quiet.append(not audit_draws(draw, [(False, True)], claim, samples=2_000, confidence=confidence).caught)
        return quiet[-1:]

    promise = "alarms of audits, half" if confidence == Fraction(1, 2) else "alarms of audits"
    watched(promise).require(audited, rounds=size("audits of a claim that holds"))
    assert not all(quiet)


def test_reusing_the_choosing_runs_would_raise_false_alarms() -> None:
    """Why runs are not used twice: with 400 outputs that tell nothing, the best of them *seems* telling on the runs that chose it."""
    rng = np.random.default_rng(8)
    runs = 4_000
    draws = [[f"output {number}" for number in rng.integers(0, 400, runs)] for _ in range(2)]
    half = [draw[: runs // 2] for draw in draws]

    def replay(rows: Sequence[Sequence[str]]) -> Draw[int, str]:
        return lambda value, _runs: list(rows[value])

    honest = audit_draws(replay(draws), [(0, 1)], Pure(Fraction(1, 10)), samples=runs)
    reused = audit_draws(replay([side + side for side in half]), [(0, 1)], Pure(Fraction(1, 10)), samples=runs)
    assert not honest.caught and reused.caught


def test_more_tests_need_more_evidence() -> None:
    rng = np.random.default_rng(9)
    rows = [laplace(rng, 1.0)(value, 20_000) for value in (0, 1)]
    bounds = [
        audit_draws(lambda value, _runs: rows[value], [(0, 1)], Pure(Fraction(1)), samples=20_000, tests=tests).lower_bound
        for tests in (2, 200, 20_000)
    ]
    assert bounds[0] > bounds[1] > bounds[2] > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": 10},
        {"samples": 100, "confidence": Fraction(1)},
        {"samples": 100, "choosing": Fraction(0)},
        {"samples": 100, "tests": 1},
    ],
)
def test_what_is_no_audit_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(LapwingError) as refused:
        audit(lambda value: value, [(0, 1)], Pure(Fraction(1)), **wrong)  # type: ignore[arg-type]
    assert refused.value.code == "audit-invalid"
    with pytest.raises(LapwingError):
        audit_draws(lambda _value, _runs: [1, 2], [(0, 1)], Pure(Fraction(1)), samples=100)
