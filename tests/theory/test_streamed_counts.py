"""What streamed counts tell, verified exactly on neighbours, with public numbers that depend on what was told; wrong claims are refuted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from lapwing.errors import LapwingError
from lapwing.mechanisms.above_threshold import AboveThreshold
from lapwing.mechanisms.streamed_counts import StreamedCounts, Transcript
from lapwing.theory.finite import FiniteMechanism, from_kernel
from lapwing.theory.verify import Claim, Rejected, Verified, tight_odds, verify

DECAY = Fraction(1, 2)
QUESTIONS = ((0, 1), (1, 2), (0, 2))
"""Each counts the rows of some of three cells."""
ROWS = 4


def counts(database: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(database[cell] for cell in question) for question in QUESTIONS)


def weighed(told: Transcript) -> int:
    """The rule of multiplicative weights over three cells, doubled or halved, rounded to a whole number of rows."""
    weights = [Fraction(1)] * 3

    def estimate(question: tuple[int, ...]) -> int:
        return round(ROWS * sum(weights[cell] for cell in question) / sum(weights))

    for number, noisy in enumerate(told):
        if noisy is not None:
            factor = Fraction(2) if noisy > estimate(QUESTIONS[number]) else Fraction(1, 2)
            for cell in QUESTIONS[number]:
                weights[cell] *= factor
    return estimate(QUESTIONS[len(told)])


ABOVE = AboveThreshold(sensitivity=1, threshold=2, scale_threshold=Fraction(2), scale_query=Fraction(4))
WEIGHTS = StreamedCounts(ABOVE, 2, Fraction(4), weighed, clamp=(-1, ROWS + 1))
TABLES = [table for table in product(range(ROWS + 1), repeat=3) if sum(table) <= ROWS]
PAIRS = [(x, tuple(rows + (cell == at) for cell, rows in enumerate(x))) for x in TABLES for at in range(3) if sum(x) < ROWS]


def itself(stream: tuple[int, ...]) -> tuple[int, ...]:
    return stream


def test_weights_over_three_cells_keep_their_claim_on_all_neighbours() -> None:
    claim = Claim(WEIGHTS.odds(decay=DECAY))
    assert claim.odds == (DECAY**-4 * DECAY**-1) ** 2
    seen = verify(from_kernel(WEIGHTS, counts, decay=DECAY), claim, PAIRS)
    assert isinstance(seen, Verified)
    assert seen.pairs == len(PAIRS) == 60
    assert 4 < seen.odds_needed < claim.odds


def test_the_price_of_a_start_is_approached() -> None:
    """Far counts said to be near, then a near one said to be far, each moved by one to make that likelier; and the answer too."""
    above = replace(ABOVE, threshold=20)
    one = StreamedCounts(above, 1, Fraction(4), lambda told: 0, clamp=(0, 60))
    long: FiniteMechanism[tuple[int, ...], Transcript] = from_kernel(one, itself, decay=DECAY)
    pair = ((35, 35, 35, 35, 10), (36, 36, 36, 36, 9))
    needed = tight_odds(long, [pair])
    claim = one.odds(decay=DECAY)
    assert claim == DECAY**-5
    assert needed is not None and Fraction(9, 10) * claim < needed <= claim
    for cheaper in (DECAY**-4, DECAY**-3):  # without the factor 2; without the answer as well
        assert isinstance(verify(long, Claim(cheaper), [pair]), Rejected)


def test_a_charge_by_update_is_refuted() -> None:
    """Who pays for one start, and goes on, claims too little."""
    two = StreamedCounts(replace(ABOVE, threshold=12), 2, Fraction(4), lambda told: 0, clamp=(4, 20))
    mechanism: FiniteMechanism[tuple[int, ...], Transcript] = from_kernel(two, itself, decay=DECAY)
    pair = ((18, 18, 6, 18, 18, 6), (19, 19, 5, 19, 19, 5))
    assert isinstance(verify(mechanism, Claim(replace(two, starts=1).odds(decay=DECAY)), [pair]), Rejected)
    assert isinstance(verify(mechanism, Claim(two.odds(decay=DECAY)), [pair]), Verified)


def test_the_price_is_that_of_all_starts() -> None:
    event, one = WEIGHTS.event(), replace(WEIGHTS, starts=1).event()
    assert one.epsilon is not None and one.rho is not None
    assert Fraction(5, 4) < one.epsilon < Fraction(5, 4) * (1 + Fraction(1, 2**39))
    assert (event.epsilon, event.rho) == (2 * one.epsilon, 2 * one.rho)


def test_what_is_told_is_within_its_error() -> None:
    """With the confidence claimed, all that is told is right within the error: by the exact law, not by drawing."""
    stream = replace(WEIGHTS, near=lambda told: 2, clamp=(-20, 30))
    confidence, exact = Fraction(9, 10), (4, 2, 9)
    decay = Fraction(39, 50)  # a little above exp(-1 / 4), the decay of the scales themselves
    error = stream.error(confidence=confidence, questions=len(exact))
    right = sum(
        chance
        for told, chance in stream.law(exact, decay=decay).items()
        if all(abs((2 if noisy is None else noisy) - count) <= error for noisy, count in zip(told, exact, strict=False))
    )
    assert right >= confidence


def test_what_is_no_stream_is_refused() -> None:
    for make, code in (
        (lambda: replace(WEIGHTS, starts=0), "mechanism-invalid"),
        (lambda: replace(WEIGHTS, above=replace(ABOVE, monotone=True)), "mechanism-invalid"),
        (lambda: replace(WEIGHTS, clamp=None).law((1, 1, 1), decay=DECAY), "law-unavailable"),
        (lambda: replace(WEIGHTS, scale_answer=Fraction(3)).law((1, 1, 1), decay=DECAY), "law-unavailable"),
        (lambda: replace(WEIGHTS, clamp=(0, 2_000)).law((1, 1, 1), decay=DECAY), "law-unavailable"),
    ):
        with pytest.raises(LapwingError) as refusal:
            make()
        assert refusal.value.code == code
