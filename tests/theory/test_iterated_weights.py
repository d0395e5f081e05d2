"""Multiplicative weights: models, updates, and the exact price of rounds on small universes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import ln_upper
from lapwing.theory import Claim, FiniteMechanism, Rejected, Verified
from lapwing.theory.databases import Histogram
from lapwing.theory.iterated_weights import PrivateWeights, Round, answered, uniform, updated, updates_max
from lapwing.theory.verify import tight_odds, verify

HALF = Fraction(1, 2)
QUERIES = ((1, 0, 0), (0, 1, 0))
WEIGHTS = PrivateWeights(cells=3, queries=QUERIES, n=3, rounds=2, rate=HALF, threshold=Fraction(3, 2), clamp=(0, 3))
DATABASES = [counts for counts in product(range(4), repeat=3) if sum(counts) == 3]
NEIGHBOURS = [(a, b) for a in DATABASES for b in DATABASES if a < b and sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 2]


def mechanism(weights: PrivateWeights) -> FiniteMechanism[Histogram, tuple[Round, ...]]:
    return FiniteMechanism(name="weights", of=lambda database: weights.law(database, decay=HALF))


def test_answers_of_a_model_are_inner_products() -> None:
    assert answered(uniform(4), (1, 0, 1, 0)) == HALF and answered(uniform(4), (0,) * 4) == 0
    assert updated(uniform(2), (1, 0), above=True, rate=HALF) == (Fraction(1, 3), Fraction(2, 3))
    assert updated(uniform(2), (1, 0), above=False, rate=HALF) == (Fraction(3, 5), Fraction(2, 5))


@pytest.mark.parametrize("rounds", [1, 2])
def test_rounds_keep_their_claim_on_all_neighbours(rounds: int) -> None:
    weights = replace(WEIGHTS, rounds=rounds)
    assert isinstance(verify(mechanism(weights), Claim(weights.odds(decay=HALF)), NEIGHBOURS), Verified)


def test_a_price_for_the_choices_alone_is_refuted() -> None:
    """The noisy counts cost as well: 2 for each choice is not enough."""
    weights = replace(WEIGHTS, rounds=1)
    assert isinstance(verify(mechanism(weights), Claim(Fraction(2)), NEIGHBOURS), Rejected)
    needed = tight_odds(mechanism(WEIGHTS), NEIGHBOURS)
    assert needed is not None and Fraction(2) ** 2 < needed <= WEIGHTS.odds(decay=HALF)


def test_exact_choices_or_counts_would_cost_everything() -> None:
    """A transcript with the true count, or the query that is truly worst, has no finite epsilon."""
    exact: FiniteMechanism[Histogram, int] = FiniteMechanism(
        name="worst query", of=lambda database: {max(range(2), key=WEIGHTS.scores(database, uniform(3)).__getitem__): Fraction(1)}
    )
    assert isinstance(verify(exact, Claim(Fraction(10**9)), NEIGHBOURS), Rejected)


def test_the_model_is_computed_from_what_was_seen() -> None:
    assert WEIGHTS.model(()) == uniform(3)
    assert WEIGHTS.model([(0, 2)]) == uniform(3), "1 expected, 2 counted: nearer than the threshold"
    (first, second, third) = WEIGHTS.model([(0, 3)])
    assert first > Fraction(1, 3) > second == third, "three counted where 1 was expected"
    assert WEIGHTS.model([(0, 3), (1, 3)])[1] > second


def test_scores_move_by_one() -> None:
    for model in (uniform(3), (Fraction(1, 7), Fraction(2, 7), Fraction(4, 7))):
        moves = [abs(x - y) for a, b in NEIGHBOURS for x, y in zip(WEIGHTS.scores(a, model), WEIGHTS.scores(b, model), strict=True)]
        assert max(moves) == 1


def test_how_many_updates() -> None:
    assert updates_max(2, alpha=Fraction(1)) == 2 and updates_max(1, alpha=HALF) == 0
    assert updates_max(33_600, alpha=Fraction(1, 20)) == int(4 * ln_upper(Fraction(33_600)) * 400)


@pytest.mark.parametrize(
    "act",
    [
        lambda: uniform(0),
        lambda: updated(uniform(2), (1, 0), above=True, rate=Fraction(1)),
        lambda: updates_max(2, alpha=Fraction(0)),
        lambda: replace(WEIGHTS, rounds=0),
        lambda: replace(WEIGHTS, cells=4),
    ],
)
def test_refusals(act: object) -> None:
    assert callable(act)
    with pytest.raises(LapwingError) as error:
        act()
    assert error.value.code == "theory-argument"
