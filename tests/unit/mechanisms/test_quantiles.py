"""Quantiles by selection: the score against the definition of a quantile, its sensitivity by brute force, laws, error in rank."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.numbers import exp_upper
from lapwing.mechanisms.quantiles import QuantileSelection, SelectionRule, quantile_selection_for, quantile_sensitivity

QUANTILES = (Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(2, 3))
CANDIDATES = (1, 3, 4, 8)
VALUES = (0, 1, 2, 3, 4, 9)


def made(quantile: Fraction, *, rows_per_unit: int = 1, neighbours: Neighbours = Neighbours.UNBOUNDED, **more: Any) -> QuantileSelection:
    parameters = {"candidates": CANDIDATES, "scale": Fraction(4), **more}
    return QuantileSelection(quantile=quantile, rows_per_unit=rows_per_unit, neighbours=neighbours, **parameters)


def rank_distance(rows: list[int], value: int, quantile: Fraction) -> Fraction:
    """By the definition: by how many rows too many lie below the value, or above it."""
    below, above = sum(row < value for row in rows), sum(row > value for row in rows)
    return max(Fraction(0), below - quantile * len(rows), above - (1 - quantile) * len(rows))


@given(rows=st.lists(st.integers(-1, 10), max_size=12), quantile=st.sampled_from(QUANTILES))
@settings(max_examples=200, deadline=None)
def test_the_score_is_the_distance_in_rank(rows: list[int], quantile: Fraction) -> None:
    mechanism = made(quantile)
    scores = mechanism.scores(mechanism.counts(rows))
    assert scores == [-quantile.denominator * rank_distance(rows, value, quantile) for value in CANDIDATES]
    every_value = made(quantile, candidates=tuple(range(-1, 11)))
    assert max(every_value.scores(every_value.counts(rows))) == 0  # some value is a quantile


def test_counts_go_to_their_places() -> None:
    assert made(Fraction(1, 2)).counts([0, 1, 1, 2, 3, 9, 9, -7, 5]) == [2, 2, 1, 1, 0, 0, 1, 0, 2]


def units(rows_per_unit: int) -> Iterator[tuple[int, ...]]:
    """Everything one unit may contribute."""
    for count in range(rows_per_unit + 1):
        yield from itertools.combinations_with_replacement(VALUES, count)


def neighbours_of(others: list[int], *, rows_per_unit: int, neighbours: Neighbours) -> Iterator[tuple[list[int], list[int]]]:
    for unit in units(rows_per_unit):
        match neighbours:
            case Neighbours.UNBOUNDED:
                yield others, [*others, *unit]
            case Neighbours.BOUNDED:
                yield from (([*others, *unit], [*others, *replaced]) for replaced in units(rows_per_unit))


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("rows_per_unit", [1, 2])
def test_the_sensitivity_is_the_greatest_move_of_any_score(quantile: Fraction, neighbours: Neighbours, rows_per_unit: int) -> None:
    mechanism = made(quantile, rows_per_unit=rows_per_unit, neighbours=neighbours)
    claimed = quantile_sensitivity(quantile=quantile, rows_per_unit=rows_per_unit, neighbours=neighbours)
    worst = 0
    for others in ([], [9] * 40, [0] * 40, [0, 1, 2, 3, 4, 9] * 3, [3] * 20):
        for one, other in neighbours_of(others, rows_per_unit=rows_per_unit, neighbours=neighbours):
            scores = [mechanism.scores(mechanism.counts(rows)) for rows in (one, other)]
            worst = max(worst, *(abs(a - b) for a, b in zip(*scores, strict=True)))
    assert worst == claimed  # never above, and attained


def worst_ratio(mechanism: QuantileSelection, one: list[int], other: list[int], decay: Fraction) -> Fraction:
    p, q = mechanism.law(one, decay=decay), mechanism.law(other, decay=decay)
    return max(max(p[value] / q[value], q[value] / p[value]) for value in p)


@pytest.mark.parametrize("rule", SelectionRule)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(1, 3)])
def test_every_neighbour_is_within_the_claim(rule: SelectionRule, neighbours: Neighbours, quantile: Fraction) -> None:
    mechanism, decay = made(quantile, neighbours=neighbours, rule=rule), Fraction(1, 2)
    odds = mechanism.odds(decay=decay)
    moved = quantile_sensitivity(quantile=quantile, rows_per_unit=1, neighbours=neighbours)
    assert odds == 2 ** (2 * moved)
    compared = 0
    for others in ([], [3], [0, 9, 9], [1, 3, 3, 8], [2, 2, 2, 9, 9, 9, 9]):
        for one, other in neighbours_of(others, rows_per_unit=1, neighbours=neighbours):
            assert worst_ratio(mechanism, one, other, decay) <= odds
            compared += 1
    assert compared == 5 * (7 if neighbours is Neighbours.UNBOUNDED else 49)


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_the_claim_is_attained_and_wrong_claims_are_seen_to_fail(rows_per_unit: int) -> None:
    """Between the two candidates lies the median; a unit moves the one up by its whole sensitivity and the other down."""
    decay, others = Fraction(1, 2), [0] * 10 + [4] * 40

    def median(neighbours: Neighbours, rows: int) -> QuantileSelection:
        rule = SelectionRule.PERMUTE_AND_FLIP
        return made(Fraction(1, 2), rows_per_unit=rows, neighbours=neighbours, candidates=(1, 8), rule=rule)

    low, high = [0] * rows_per_unit, [9] * rows_per_unit
    added, replaced = median(Neighbours.UNBOUNDED, rows_per_unit), median(Neighbours.BOUNDED, rows_per_unit)
    assert worst_ratio(added, others, [*others, *low], decay) == added.odds(decay=decay)
    assert worst_ratio(replaced, [*others, *high], [*others, *low], decay) == replaced.odds(decay=decay)
    # the claim for a unit that comes or goes, where it is replaced; the claim for one row less per unit
    assert worst_ratio(replaced, [*others, *high], [*others, *low], decay) > added.odds(decay=decay)
    if rows_per_unit > 1:
        fewer = median(Neighbours.BOUNDED, rows_per_unit - 1)
        assert worst_ratio(replaced, [*others, *high], [*others, *low], decay) > fewer.odds(decay=decay)


@pytest.mark.parametrize("rule", SelectionRule)
def test_the_law_is_over_the_candidates_and_prefers_the_quantile(rule: SelectionRule) -> None:
    law = made(Fraction(1, 2), rule=rule).law([0, 3, 3, 3, 9], decay=Fraction(1, 2))
    assert tuple(law) == CANDIDATES
    assert sum(law.values()) == 1
    assert max(law, key=lambda value: law[value]) == 3


@pytest.mark.parametrize("rule", SelectionRule)
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20)])
@pytest.mark.parametrize("quantile", QUANTILES)
def test_the_error_in_rank_holds_under_the_law(rule: SelectionRule, confidence: Fraction, quantile: Fraction) -> None:
    mechanism = made(quantile, rule=rule)
    decay = Fraction(math.ceil(exp_upper(-1 / mechanism.scale) * 10**12), 10**12)
    bound = mechanism.error(confidence=confidence)
    failed_most = Fraction(0)
    for rows in ([0] * 3 + [9] * 3, [3] * 30, [0, 1, 2, 3, 4, 9] * 8, [9] * 20, [1] * 9 + [8] * 31):
        law = mechanism.law(rows, decay=decay)
        distance = {value: rank_distance(rows, value, quantile) for value in CANDIDATES}
        failed = sum((chance for value, chance in law.items() if distance[value] - min(distance.values()) > bound), Fraction(0))
        assert failed <= 1 - confidence
        failed_most = max(failed_most, failed)
    assert failed_most > 0


@pytest.mark.parametrize("rule", SelectionRule)
@pytest.mark.parametrize("account", Account)
@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_least_scale_that_fits(rule: SelectionRule, account: Account, neighbours: Neighbours) -> None:
    loss = Fraction(1, 3)
    mechanism = quantile_selection_for(
        account, loss=loss, candidates=CANDIDATES, quantile=Fraction(3, 4), rows_per_unit=5, neighbours=neighbours, rule=rule
    )
    assert mechanism.event().loss(account) <= loss
    below = Fraction(math.nextafter(float(mechanism.scale), 0.0))
    assert made(Fraction(3, 4), rows_per_unit=5, neighbours=neighbours, scale=below, rule=rule).event().loss(account) > loss


def code_of(action: Any) -> str:
    with pytest.raises(LapwingError) as refusal:
        action()
    return refusal.value.code


def test_what_is_no_quantile_is_refused() -> None:
    for quantile in (Fraction(0), Fraction(1), 0.5, 1, Fraction(1, 2**20 + 1)):
        assert code_of(lambda quantile=quantile: made(quantile)) == "mechanism-invalid"
    for candidates in ((), (1, 1), (2, 1), (1, 2.0), [1, 2], (True, 2)):
        assert code_of(lambda candidates=candidates: made(Fraction(1, 2), candidates=candidates)) == "mechanism-invalid"
    for rows_per_unit in (0, 1.0, True):
        assert code_of(lambda rows_per_unit=rows_per_unit: made(Fraction(1, 2), rows_per_unit=rows_per_unit)) == "sensitivity-invalid"
    assert code_of(lambda: made(Fraction(1, 2), scale=Fraction(1, 3))) == "scale-invalid"
    rows: Any = [1, 2.0]
    assert code_of(lambda: made(Fraction(1, 2)).law(rows, decay=Fraction(1, 2))) == "value-invalid"
    for counts in ([1] * 8, [1] * 8 + [-1], [1.0] * 9):
        assert code_of(lambda counts=counts: made(Fraction(1, 2)).scores(counts)) == "scores-invalid"


def test_order_of_rows_does_not_matter_and_repeats_do() -> None:
    rows = [0, 9, 3, 3, 1]
    mechanism = made(Fraction(1, 4))
    laws = Counter(tuple(mechanism.law(list(order), decay=Fraction(1, 2)).values()) for order in itertools.permutations(rows))
    assert len(laws) == 1
    assert mechanism.law([*rows, 9, 9], decay=Fraction(1, 2)) != mechanism.law(rows, decay=Fraction(1, 2))
