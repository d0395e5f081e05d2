"""The audit: run a mechanism on neighbouring data sets many times, and test whether it reveals more than it claims.

    found = audit(mechanism, [(left, right)], Pure(Fraction(1)), samples=100_000)
    found.lower_bound    # at this confidence, the mechanism's epsilon is at least this
    found.caught         # whether that is more than it claims

A lower bound above the claim proves, at the stated confidence, that the claim is false: the mechanism, its analysis or its code is wrong.
A lower bound below the claim proves nothing: it only means that this audit, with these pairs and this many runs, found nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TypeAlias, TypeVar

import numpy as np

from lapwing.audit.bounds import lower_bound, upper_bound
from lapwing.audit.claims import Claim, evidence, parameter_of
from lapwing.audit.events import Score, choose
from lapwing.errors import LapwingError
from lapwing.kernel.numbers import require_exact

Data = TypeVar("Data")
Output = TypeVar("Output", bound=Hashable)
Draw: TypeAlias = Callable[[Data, int], Sequence[Output]]
"""Runs a mechanism on a data set a given number of times, independently."""

SAMPLES_MIN = 20
CONFIDENCE = Fraction(99, 100)


@dataclass(frozen=True, slots=True)
class EventTest:
    """One test: an event, how often it happened on each side, and the parameter that this refutes."""

    pair: int
    """Index of the pair."""
    towards_right: bool
    """Whether the event is evidence for the right data set of the pair."""
    hits: int
    hits_neighbour: int
    runs: int
    """Measuring runs on each side."""
    lower_bound: float


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit. With this confidence, all tests of the audit and of its report are right together."""

    claimed: Claim
    lower_bound: float
    """The parameter of the claim is at least this."""
    samples: int
    """Runs on each data set of each pair."""
    confidence: Fraction
    tests: int
    """Number of tests that share the confidence."""
    caught: bool
    """The claim is refuted."""
    found: tuple[EventTest, ...]


def repeated(mechanism: Callable[[Data], Output]) -> Draw[Data, Output]:
    """Turns a mechanism that runs once per call into one that runs many times."""

    def draw(data: Data, runs: int) -> list[Output]:
        return [mechanism(data) for _ in range(runs)]

    return draw


def audit(
    mechanism: Callable[[Data], Output],
    pairs: Sequence[tuple[Data, Data]],
    claim: Claim,
    *,
    samples: int,
    confidence: Fraction = CONFIDENCE,
    tests: int | None = None,
    choosing: Fraction = Fraction(1, 2),
    score: Callable[[int], Score[Output]] | None = None,
) -> Audit:
    """Audit any function that returns hashable outputs. See :func:`audit_draws`."""
    return audit_draws(
        repeated(mechanism), pairs, claim, samples=samples, confidence=confidence, tests=tests, choosing=choosing, score=score
    )


def audit_draws(
    draw: Draw[Data, Output],
    pairs: Sequence[tuple[Data, Data]],
    claim: Claim,
    *,
    samples: int,
    confidence: Fraction = CONFIDENCE,
    tests: int | None = None,
    choosing: Fraction = Fraction(1, 2),
    score: Callable[[int], Score[Output]] | None = None,
) -> Audit:
    """Audit a mechanism on pairs of neighbours, in both directions.

    Pre: runs are independent, and each pair differs in one unit. Post: if the claim is true, ``caught`` is false with probability at least
    ``confidence``, jointly with all other audits that share the total number of ``tests`` (by default two for each pair).

    ``samples`` is the number of runs on each data set. A share ``choosing`` of them chooses the event, the rest measures it. If the law is
    known, ``score`` returns, for the index of a pair, a score that grows with the likelihood ratio of right to left.
    """
    number = 2 * len(pairs) if tests is None else tests
    _require(samples, confidence, choosing, number, pairs=len(pairs))
    # two bounds per test, one on each probability
    error = float((1 - confidence) / (2 * number))
    chosen_runs = max(1, int(samples * choosing))
    event_tests: list[EventTest] = []
    for place, (left, right) in enumerate(pairs):
        known = score(place) if score is not None else None
        first = draw(left, samples), draw(right, samples)
        if any(len(outputs) != samples for outputs in first):
            raise LapwingError("audit-invalid", "the mechanism did not return the requested number of outputs")
        choosers = first[0][:chosen_runs], first[1][:chosen_runs]
        measured = first[0][chosen_runs:], first[1][chosen_runs:]
        for towards_right in (True, False):
            sides = (0, 1) if towards_right else (1, 0)
            event_tests.append(
                _test(
                    [choosers[side] for side in sides],
                    [measured[side] for side in sides],
                    claim,
                    error=error,
                    pair=place,
                    towards_right=towards_right,
                    score=known if known is None or towards_right else _negated(known),
                )
            )
    best = max(test.lower_bound for test in event_tests)
    return Audit(claim, best, samples, confidence, number, best > parameter_of(claim), tuple(event_tests))


def _negated(score: Score[Output]) -> Score[Output]:
    return lambda outputs: -score(outputs)


def _test(
    choosers: Sequence[Sequence[Output]],
    measured: Sequence[Sequence[Output]],
    claim: Claim,
    *,
    error: float,
    pair: int,
    towards_right: bool,
    score: Score[Output] | None,
) -> EventTest:
    runs = len(measured[0])
    deviations = -NormalDist().inv_cdf(error)
    event = choose(choosers[0], choosers[1], claim, runs=runs, deviations=deviations, score=score)
    against, towards = event.hits(measured[0]), event.hits(measured[1])
    p = np.array([lower_bound(towards, runs, error=error)])
    q = np.array([upper_bound(against, runs, error=error)])
    return EventTest(pair, towards_right, towards, against, runs, float(evidence(claim, p=p, q=q)[0]))


def _require(samples: int, confidence: Fraction, choosing: Fraction, tests: int, *, pairs: int) -> None:
    require_exact(confidence, choosing)
    if type(samples) is not int or samples < SAMPLES_MIN:
        raise LapwingError("audit-invalid", f"an audit needs at least {SAMPLES_MIN} runs on each side")
    if not 0 < confidence < 1 or not 0 < choosing < 1:
        raise LapwingError("audit-invalid", "the confidence and the share of choosing runs must be between 0 and 1")
    if pairs < 1 or type(tests) is not int or tests < 2 * pairs:
        raise LapwingError("audit-invalid", "an audit needs a pair of neighbours, and at least two tests for each pair")
