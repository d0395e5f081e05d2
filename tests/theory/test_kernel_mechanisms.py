"""The kernel's mechanisms under the exact verifier: their claimed odds, and their laws against ones written apart from the kernel."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TypeAlias

import pytest

from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.neighbours import Neighbours
from lapwing.mechanisms.above_threshold import AboveThreshold, SparseVector
from lapwing.mechanisms.additive import LaplaceMechanism
from lapwing.mechanisms.key_set import KeySet
from lapwing.mechanisms.mechanism import Mechanism
from lapwing.mechanisms.noisy_max import NoisyMax
from lapwing.mechanisms.quantiles import QuantileSelection, SelectionRule, quantile_sensitivity
from lapwing.mechanisms.response import RandomisedResponse, two_coin
from lapwing.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from lapwing.mechanisms.top_k import TopK
from lapwing.theory.broken.exact_sums import noisy_max, tail
from lapwing.theory.broken.selection import exponential_law, permute_and_flip_law
from lapwing.theory.broken.sparse_vector import THRESHOLD, answers_law, stream_pairs
from lapwing.theory.databases import Histogram, KeyedDatabase, Population, Universe, neighbouring_pairs, without_users
from lapwing.theory.finite import FiniteMechanism, from_kernel
from lapwing.theory.sensitivity import Norm, sensitivity_over
from lapwing.theory.verify import Claim, Rejected, Verified, tight_delta, tight_odds, verify

DECAYS = (Fraction(1, 2), Fraction(2, 3))
SCALE = Fraction(2)  # the scale decides what a run costs; the law is asked for at a decay

COLOURS = Universe(("red", "green", "blue"))
ADDED = tuple(neighbouring_pairs(COLOURS, Neighbours.UNBOUNDED, size_max=4))
REPLACED = tuple(neighbouring_pairs(COLOURS, Neighbours.BOUNDED, size_max=4))

SCORES = tuple(product(range(4), repeat=3))


Vector: TypeAlias = tuple[int, ...]
"""Scores, counts or answers; mechanisms that also take a single integer are asked for vectors."""


def itself(value: Vector) -> Vector:
    return value


def answer_pairs(*, people: int, categories: int) -> list[tuple[Vector, Vector]]:
    """Answers of so many people, and the same with one person's answer replaced."""
    everything = list(product(range(categories), repeat=people))
    return [(x, y) for x in everything for y in everything if x < y and sum(a != b for a, b in zip(x, y, strict=True)) == 1]


def test_two_coins_have_odds_3() -> None:
    response: Mechanism[Vector, Vector] = two_coin()
    mechanism = from_kernel(response, itself, decay=DECAYS[0])
    for people in (1, 2, 3):
        assert tight_odds(mechanism, answer_pairs(people=people, categories=2)) == 3 == two_coin().odds()


@pytest.mark.parametrize("categories", [2, 3, 5])
def test_k_ary_response_has_the_claimed_odds(categories: int) -> None:
    truth = Fraction(3, 4)
    response: Mechanism[Vector, Vector] = RandomisedResponse(categories=categories, truth=truth)
    mechanism = from_kernel(response, itself, decay=DECAYS[0])
    assert (
        tight_odds(mechanism, answer_pairs(people=2, categories=categories))
        == truth * (categories - 1) / (1 - truth)
        == response.odds(decay=DECAYS[0])
    )


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize(("pairs", "l1"), [(ADDED, 1), (REPLACED, 2)], ids=["unbounded", "bounded"])
def test_a_noisy_histogram_has_the_claimed_odds(decay: Fraction, pairs: tuple[tuple[Histogram, Histogram], ...], l1: int) -> None:
    laplace: Mechanism[Vector, Vector] = LaplaceMechanism(scale=SCALE, l1=l1, clamp=(0, 4))
    mechanism = from_kernel(laplace, itself, decay=decay)
    # the first pairs are those of the smallest databases; with 125 outputs each they are enough to attain the claim
    assert tight_odds(mechanism, pairs[:40]) == laplace.odds(decay=decay) == decay**-l1


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize(("relation", "moved"), [(Neighbours.UNBOUNDED, 3), (Neighbours.BOUNDED, 5)], ids=["unbounded", "bounded"])
def test_a_clamped_sum_has_the_claimed_odds(decay: Fraction, relation: Neighbours, moved: int) -> None:
    values = Universe((-2, 1, 3))
    pairs = tuple(neighbouring_pairs(values, relation, size_max=3))

    def total(database: Histogram) -> int:
        return sum(values.rows(database))

    laplace = LaplaceMechanism(scale=SCALE, l1=moved, clamp=(-7, 10))
    mechanism: FiniteMechanism[Histogram, int] = from_kernel(laplace, total, decay=decay)
    assert tight_odds(mechanism, pairs) == laplace.odds(decay=decay) == decay**-moved
    assert isinstance(verify(mechanism, Claim(decay ** (1 - moved)), pairs), Rejected)


@pytest.mark.parametrize("decay", DECAYS)
def test_selection_laws_agree_with_ones_written_from_their_definitions(decay: Fraction) -> None:
    exponential = ExponentialMechanism(scale=SCALE, score_sensitivity=1, candidates=3)
    flipping = PermuteAndFlip(scale=SCALE, score_sensitivity=1, candidates=3)
    noisy = NoisyMax(scale=SCALE, score_sensitivity=1, candidates=3)
    for scores in SCORES:
        assert exponential.law(scores, decay=decay) == exponential_law(scores, decay)
        assert flipping.law(scores, decay=decay) == permute_and_flip_law(scores, decay)
        assert noisy.law(scores, decay=decay) == noisy_max(scores, decay)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip, NoisyMax])
def test_selection_keeps_its_claim_for_counts(
    decay: Fraction, kind: type[ExponentialMechanism] | type[PermuteAndFlip] | type[NoisyMax]
) -> None:
    general = kind(scale=SCALE, score_sensitivity=1, candidates=3)
    assert general.odds(decay=decay) == decay**-2
    replaced: FiniteMechanism[Histogram, int] = from_kernel(general, itself, decay=decay)
    assert isinstance(verify(replaced, Claim(decay**-2), REPLACED), Verified)
    # adding a row moves the counts one way, so half the price is enough; replacing one does not
    monotone = kind(scale=SCALE, score_sensitivity=1, candidates=3, monotone=True)
    assert monotone.odds(decay=decay) == decay**-1
    added: FiniteMechanism[Histogram, int] = from_kernel(monotone, itself, decay=decay)
    assert isinstance(verify(added, Claim(decay**-1), ADDED), Verified)
    assert isinstance(verify(added, Claim(decay**-1), REPLACED), Rejected)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip, NoisyMax])
def test_no_smaller_claim_would_hold_for_selection(
    decay: Fraction, kind: type[ExponentialMechanism] | type[PermuteAndFlip] | type[NoisyMax]
) -> None:
    mechanism: FiniteMechanism[Vector, int] = from_kernel(kind(scale=SCALE, score_sensitivity=1, candidates=2), itself, decay=decay)

    def price(lead: int) -> Fraction:
        odds = tight_odds(mechanism, [((0, lead), (1, lead - 1))])
        assert odds is not None
        return odds

    if kind is PermuteAndFlip:
        assert price(4) == decay**-2
    else:
        # approached, never reached, as the lead grows
        assert price(4) < price(8) < price(64) < decay**-2
        assert 1 - price(64) * decay**2 < Fraction(1, 20)


@pytest.mark.parametrize("decay", DECAYS)
def test_the_top_two_cost_two_choices(decay: Fraction) -> None:
    top = TopK(k=2, scale=SCALE, score_sensitivity=1, candidates=3)
    mechanism: FiniteMechanism[Histogram, tuple[int, ...]] = from_kernel(top, itself, decay=decay)
    assert top.odds(decay=decay) == decay**-4
    assert isinstance(verify(mechanism, Claim(decay**-4), REPLACED), Verified)
    for scores in SCORES[:20]:
        first = exponential_law(scores, decay)
        law = top.law(scores, decay=decay)
        for winner, chance in first.items():
            assert sum(share for chosen, share in law.items() if chosen[0] == winner) == chance


@pytest.mark.parametrize("decay", DECAYS)
def test_above_threshold_keeps_its_claim_and_has_the_law_of_its_definition(decay: Fraction) -> None:
    # query noise of twice the threshold's scale: at the decay of the query noise, the threshold's is its square
    above = AboveThreshold(sensitivity=1, threshold=THRESHOLD, scale_threshold=Fraction(2), scale_query=Fraction(4))
    assert above.odds(decay=decay) == decay**-4
    mechanism: FiniteMechanism[Vector, int | None] = from_kernel(above, itself, decay=decay)
    pairs = stream_pairs(length=3, value_max=2)
    assert isinstance(verify(mechanism, Claim(decay**-4), pairs), Verified)
    for stream in {stream for pair in pairs for stream in pair}:
        reference = answers_law(stream, decay, threshold_steepness=2, query_steepness=1, above_max=1)
        by_index = {answers.index(True) if any(answers) else None: share for answers, share in reference.items()}
        assert above.law(stream, decay=decay) == by_index


@pytest.mark.parametrize("decay", DECAYS)
def test_a_set_of_keys_has_exactly_the_claimed_delta(decay: Fraction) -> None:
    keys = KeySet(noise=DiscreteLaplace(SCALE), groups_per_unit=1, threshold=3)

    def shown(database: Histogram) -> dict[frozenset[int], Fraction]:
        return dict(keys.law(database, decay=decay).items())

    mechanism = FiniteMechanism("keys above a threshold", shown)
    odds, delta = keys.odds(decay=decay), keys.delta_at(decay=decay)
    assert delta == tail(2, decay)
    assert isinstance(verify(mechanism, Claim(odds, delta), ADDED), Verified)
    assert tight_delta(mechanism, ADDED, odds=odds) == delta


@pytest.mark.parametrize("decay", DECAYS)
def test_a_restarted_stream_pays_for_each_start(decay: Fraction) -> None:
    above = AboveThreshold(sensitivity=1, threshold=THRESHOLD, scale_threshold=Fraction(2), scale_query=Fraction(4))
    sparse = SparseVector(above=above, starts=2)
    mechanism: FiniteMechanism[Vector, Vector] = from_kernel(sparse, itself, decay=decay)
    pairs = stream_pairs(length=3, value_max=2)
    assert sparse.odds(decay=decay) == decay**-8
    assert isinstance(verify(mechanism, Claim(decay**-8), pairs), Verified)

    def first_above(stream: Vector) -> dict[int | None, Fraction]:
        law = answers_law(stream, decay, threshold_steepness=2, query_steepness=1, above_max=1)
        return {answers.index(True) if any(answers) else None: share for answers, share in law.items()}

    # the second start sees only what the first has left, with a threshold of its own
    stream = (0, 2, 1)
    once = first_above(stream)
    assert sparse.law(stream, decay=decay)[1, 2] == once[1] * first_above(stream[2:])[0]
    assert sparse.law(stream, decay=decay)[0,] == once[0] * first_above(stream[1:])[None]
    assert sparse.law(stream, decay=decay)[()] == once[None]


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("rows_per_unit", [1, 2])
@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(1, 3)])
def test_a_selected_quantile_has_the_claimed_sensitivity_and_odds(relation: Neighbours, rows_per_unit: int, quantile: Fraction) -> None:
    population = Population(Universe((0, 2, 5)), users=2, rows_per_user_max=rows_per_unit)
    pairs = tuple(population.user_pairs(relation))

    def rows(database: KeyedDatabase) -> Vector:
        return population.universe.rows(without_users(database))

    for rule in SelectionRule:
        chosen = QuantileSelection(
            candidates=(0, 1, 3, 6), quantile=quantile, rows_per_unit=rows_per_unit, neighbours=relation, scale=SCALE, rule=rule
        )

        def scores(database: KeyedDatabase, chosen: QuantileSelection = chosen) -> Vector:
            return tuple(chosen.scores(chosen.counts(rows(database))))

        claimed = quantile_sensitivity(quantile=quantile, rows_per_unit=rows_per_unit, neighbours=relation)
        assert sensitivity_over(scores, pairs, norm=Norm.LINF).value == claimed
        mechanism: FiniteMechanism[KeyedDatabase, int] = from_kernel(chosen, rows, decay=DECAYS[0])
        assert chosen.odds(decay=DECAYS[0]) == DECAYS[0] ** (-2 * claimed)
        assert isinstance(verify(mechanism, Claim(chosen.odds(decay=DECAYS[0])), pairs), Verified)
