"""Every exhibit of the collection is rejected with a witness; its right version is accepted for the same claim."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from lapwing.errors import LapwingError
from lapwing.theory.broken import FAMILIES, collection, sparse_vector
from lapwing.theory.broken.exact_sums import Factor, Relation, noisy_max, point_mass, tail, total
from lapwing.theory.broken.specimen import Specimen
from lapwing.theory.verify import Rejected, Verified, tight_delta, tight_odds, verify

DECAYS = (Fraction(1, 2), Fraction(2, 3))

ALL = [(specimen, decay) for decay in DECAYS for specimen in collection(decay)]


@pytest.mark.parametrize(("specimen", "decay"), ALL, ids=[f"{specimen.name}-{decay}" for specimen, decay in ALL])
def test_the_wrong_one_is_rejected_and_the_right_one_accepted(specimen: Specimen, decay: Fraction) -> None:
    found = verify(specimen.wrong, specimen.claim, specimen.pairs)
    assert isinstance(found, Rejected)
    # the witness convinces by itself: two laws, one set, one inequality
    assert (found.x, found.y) in specimen.pairs or (found.y, found.x) in specimen.pairs
    p, q = specimen.wrong.law(found.x), specimen.wrong.law(found.y)
    chance_x, chance_y = sum(p[s] for s in found.outputs), sum(q.get(s, Fraction(0)) for s in found.outputs)
    assert (chance_x, chance_y) == (found.probability_x, found.probability_y)
    assert chance_x - specimen.claim.odds * chance_y - specimen.claim.delta == found.shortfall > 0
    assert isinstance(verify(specimen.right, specimen.claim, specimen.pairs), Verified)


def test_the_collection_is_large_and_each_exhibit_says_what_is_wrong() -> None:
    exhibits = collection()
    assert len(exhibits) == len(FAMILIES) >= 12
    assert len({specimen.name for specimen in exhibits}) == len(exhibits)
    for specimen in exhibits:
        assert len(specimen.mistake) > 40
        assert len(specimen.remedy) > 20
        assert any(character.isdigit() for character in specimen.reference), "a reference has a year"
        assert specimen.wrong.name != specimen.right.name


# What the wrong mechanism really gives away, as a power of the decay (None: no finite epsilon).
REAL_PRICE = {
    "half-scale": 2,
    "even-grid": None,
    "suppressed-small-counts": None,
    "local-sensitivity-noise": None,
    "one-noise-for-two-answers": None,
    "asked-twice": 2,
    "exact-maximum-published": None,
    "exact-gap-published": None,
    "noise-on-the-winner-only": None,
    "sparse-no-query-noise": None,
    "sparse-one-noise-for-all-queries": None,
    "sparse-no-threshold-noise": 8,
    "keys-shown-if-present": None,
    "key-threshold-on-rows": None,
    "row-sensitivity-for-users": 4,
    "parallel-composition-for-users": 4,
}


@pytest.mark.parametrize(("specimen", "decay"), ALL, ids=[f"{specimen.name}-{decay}" for specimen, decay in ALL])
def test_what_the_wrong_one_really_costs(specimen: Specimen, decay: Fraction) -> None:
    odds = tight_odds(specimen.wrong, specimen.pairs, delta=specimen.claim.delta)
    if specimen.name in REAL_PRICE:
        power = REAL_PRICE[specimen.name]
        assert odds == (None if power is None else decay**-power)
    else:
        assert odds is not None
        assert odds > specimen.claim.odds


def test_renormalising_costs_the_ratio_of_the_constants() -> None:
    for decay in DECAYS:
        specimen = next(specimen for specimen in collection(decay) if specimen.name == "renormalised-truncation")
        # counts 0 and 1 on the range 0 to 3
        constants = [sum(decay ** abs(value - count) for value in range(4)) for count in (0, 1)]
        assert tight_odds(specimen.wrong, specimen.pairs) == constants[1] / constants[0] / decay


def test_the_delta_of_a_threshold_for_users_is_exactly_the_claimed_one() -> None:
    for decay in DECAYS:
        specimen = next(specimen for specimen in collection(decay) if specimen.name == "key-threshold-on-rows")
        assert tight_delta(specimen.right, specimen.pairs, odds=specimen.claim.odds) == specimen.claim.delta == decay**3 / (1 + decay)
        assert tight_delta(specimen.wrong, specimen.pairs, odds=specimen.claim.odds) == decay**2 / (1 + decay)


def test_without_a_cut_off_the_price_grows_with_the_stream() -> None:
    decay, prices = Fraction(1, 2), []
    for half in (1, 2, 3, 4):
        x, y = (0,) * (2 * half), (1,) * half + (-1,) * half
        answers = (True,) * half + (False,) * half
        chances = []
        for stream in (x, y):
            level = Factor(Relation.EQUALS, sparse_vector.THRESHOLD, 2)
            asked = [Factor(Relation.AT_LEAST if above else Relation.BELOW, value, 2) for value, above in zip(stream, answers, strict=True)]
            chances.append(total((level, *asked), decay))
        prices.append(chances[1] / chances[0])
    assert prices == sorted(prices)
    assert prices[-1] > 3 * prices[-2] > 9 * prices[-3]


def test_the_published_noise_costs_one_factor_for_every_answer_below() -> None:
    decay = Fraction(1, 2)
    (pair,) = [pair for pair in sparse_vector.same_noise_published(decay).pairs if len(pair[0]) == 6]
    law = sparse_vector.same_noise_published(decay).wrong
    first, second = law.law(pair[0]), law.law(pair[1])
    output = ((False,) * 5 + (True,), 0)
    assert first[output] / second[output] == decay**-5


def test_infinite_sums_agree_with_long_finite_ones() -> None:
    decay, reach = Fraction(1, 2), 40
    cases = (
        (Factor(Relation.EQUALS, 1, 2), Factor(Relation.BELOW, 0, 1), Factor(Relation.AT_LEAST, 3, 1)),
        (Factor(Relation.EQUALS, -2, 1), Factor(Relation.BELOW, 2, 3), Factor(Relation.BELOW, -1, 0)),
        (Factor(Relation.EQUALS, 0, 1), Factor(Relation.AT_LEAST, 2, 0), Factor(Relation.AT_LEAST, -1, 2)),
        (Factor(Relation.EQUALS, 0, 0), Factor(Relation.AT_LEAST, 2, 1)),
    )
    for factors in cases:
        partial = sum(math.prod(factor.at(v, decay) for factor in factors) for v in range(-reach, reach + 1))
        # what is left out has the probability of the EQUALS factor's tails, at most
        assert 0 <= total(factors, decay) - partial <= 2 * tail(reach - 3, decay)


def test_laws_of_noise_are_laws() -> None:
    for decay in DECAYS:
        assert sum(point_mass(z, decay) for z in range(-5, 6)) + 2 * tail(6, decay) == 1
        assert all(tail(z, decay) - tail(z + 1, decay) == point_mass(z, decay) for z in range(-4, 5))
        for scores in ((0, 0), (3, 1, 2), (0, 0, 0, 5)):
            assert sum(noisy_max(scores, decay).values()) == 1


def test_streams_end_where_the_mechanism_stops() -> None:
    assert list(sparse_vector.patterns(2, above_max=1)) == [(False, False), (False, True), (True,)]
    assert len(list(sparse_vector.patterns(4, above_max=4))) == 16
    assert {sum(answers) for answers in sparse_vector.patterns(5, above_max=2)} == {0, 1, 2}


@pytest.mark.parametrize("decay", [Fraction(0), Fraction(1), Fraction(3, 2), 0.5])
def test_a_family_has_a_decay_between_0_and_1(decay: Fraction) -> None:
    for family in FAMILIES:
        with pytest.raises(LapwingError) as caught:
            family(decay)
        assert caught.value.code == "decay-invalid"
