"""Group privacy, post-processing, mixtures, neighbour relations and sampling: each rule on random finite mechanisms, exactly, and where it
is tight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.theory.divergences import hockey_stick, odds_max, total_variation
from lapwing.theory.guarantees import (
    Guarantee,
    bounded_from_unbounded,
    group,
    group_holds,
    holds,
    mixture,
    post_process,
    sampled,
    size_law,
)

Law = Mapping[int, Fraction]


def normalised(weights: list[int]) -> Law:
    return {output: Fraction(weight, sum(weights)) for output, weight in enumerate(weights)}


full_laws = st.lists(st.integers(1, 9), min_size=3, max_size=3).map(normalised)
laws = st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any).map(normalised)
odds_values = st.fractions(min_value=1, max_value=4, max_denominator=8)


def least_delta(p: Law, q: Law, odds: Fraction) -> Fraction:
    return max(hockey_stick(p, q, odds=odds), hockey_stick(q, p, odds=odds))


@given(laws, laws, odds_values)
def test_holds_is_the_definition_over_all_sets(p: Law, q: Law, odds: Fraction) -> None:
    delta = least_delta(p, q, odds)
    sets = [chosen for size in range(4) for chosen in combinations(p, size)]

    def by_definition(allowed: Fraction) -> bool:
        return all(sum(a[o] for o in chosen) <= odds * sum(b[o] for o in chosen) + allowed for chosen in sets for a, b in ((p, q), (q, p)))

    assert holds(p, q, Guarantee(odds, delta)) and by_definition(delta)
    if delta:
        less = delta * Fraction(999, 1000)
        assert not holds(p, q, Guarantee(odds, less)) and not by_definition(less)


@given(st.lists(full_laws, min_size=2, max_size=5), odds_values)
def test_group_privacy_on_random_paths(path: list[Law], odds: Fraction) -> None:
    delta = max(least_delta(p, q, odds) for p, q in pairwise(path))
    assert group_holds(path, Guarantee(odds, delta))


def test_group_privacy_is_tight_for_pure_privacy() -> None:
    path = [noisy_sum((1,) * ones) for ones in range(4)]
    assert [odds_max(p, q) for p, q in pairwise(path)] == [2, 2, 2]
    assert odds_max(path[0], path[3]) == 8 == group(Guarantee(Fraction(2)), size=3).odds


def test_group_privacy_is_tight_for_delta() -> None:
    # a chain in which each step moves as much as (2, 1/100) allows: from 0, P -> 2 P + delta on the output 1
    guarantee = Guarantee(Fraction(2), Fraction(1, 100))
    chances = [Fraction(0)]
    for _ in range(3):
        chances.append(guarantee.odds * chances[-1] + guarantee.delta)
    path = [{1: chance, 0: 1 - chance} for chance in chances]
    assert group_holds(path, guarantee)
    whole = group(guarantee, size=3)
    assert chances[-1] == whole.delta == Fraction(7, 100)
    assert not holds(path[0], path[-1], Guarantee(whole.odds, whole.delta * Fraction(99, 100)))


def test_group_privacy_says_nothing_without_its_premise() -> None:
    with pytest.raises(LapwingError) as refusal:
        group_holds([{0: Fraction(1)}, {1: Fraction(1)}], Guarantee(Fraction(2)))
    assert refusal.value.code == "theory-argument"


@given(full_laws, full_laws, st.tuples(laws, laws, laws), odds_values)
def test_post_processing_never_takes_privacy_away(p: Law, q: Law, rows: tuple[Law, Law, Law], odds: Fraction) -> None:
    channel = dict(enumerate(rows))
    after_p, after_q = post_process(p, channel), post_process(q, channel)
    assert sum(after_p.values()) == 1
    assert hockey_stick(after_p, after_q, odds=odds) <= hockey_stick(p, q, odds=odds)


def test_post_processing_may_keep_or_destroy_what_there_was_to_learn() -> None:
    p, q = normalised([3, 1, 1]), normalised([1, 1, 3])
    renamed = {output: {9 - output: Fraction(1)} for output in p}
    forgotten = {output: {0: Fraction(1)} for output in p}
    assert total_variation(post_process(p, renamed), post_process(q, renamed)) == total_variation(p, q) == Fraction(2, 5)
    assert total_variation(post_process(p, forgotten), post_process(q, forgotten)) == 0


@given(full_laws, full_laws, full_laws, full_laws, st.fractions(min_value=0, max_value=1, max_denominator=9), odds_values)
def test_mixtures_keep_the_guarantee(p0: Law, q0: Law, p1: Law, q1: Law, weight: Fraction, odds: Fraction) -> None:
    delta = max(least_delta(p0, q0, odds), least_delta(p1, q1, odds))
    weights = {"a": weight, "b": 1 - weight}
    assert holds(mixture(weights, {"a": p0, "b": p1}), mixture(weights, {"a": q0, "b": q1}), Guarantee(odds, delta))


@given(full_laws, full_laws, full_laws, odds_values)
def test_replacing_is_removing_and_adding(with_one: Law, without: Law, with_other: Law, odds: Fraction) -> None:
    delta = max(least_delta(with_one, without, odds), least_delta(without, with_other, odds))
    unbounded = Guarantee(odds, delta)
    assert bounded_from_unbounded(unbounded) == Guarantee(odds**2, (1 + odds) * delta)
    assert holds(with_one, with_other, bounded_from_unbounded(unbounded))


def test_no_converse_from_bounded_to_unbounded() -> None:
    assert holds(size_law(["a", "b"]), size_law(["a", "c"]), Guarantee(Fraction(1)))
    assert odds_max(size_law(["a", "b"]), size_law(["a"])) is None
    assert total_variation(size_law(["a", "b"]), size_law(["a"])) == 1


def noisy_sum(bits: tuple[int, ...]) -> Law:
    """The number of ones with noise whose law has odds exactly 2 per step, clamped to 0..3."""
    exact = [
        [Fraction(8, 12), Fraction(2, 12), Fraction(1, 12), Fraction(1, 12)],
        [Fraction(4, 12), Fraction(4, 12), Fraction(2, 12), Fraction(2, 12)],
        [Fraction(2, 12), Fraction(2, 12), Fraction(4, 12), Fraction(4, 12)],
        [Fraction(1, 12), Fraction(1, 12), Fraction(2, 12), Fraction(8, 12)],
    ]
    return dict(enumerate(exact[sum(bits)]))


def on_a_sample(bits: tuple[int, ...], rate: Fraction) -> Law:
    kept = [chosen for size in range(len(bits) + 1) for chosen in combinations(range(len(bits)), size)]
    weights = {c: rate ** len(c) * (1 - rate) ** (len(bits) - len(c)) for c in kept}
    return mixture(weights, {c: noisy_sum(tuple(bits[i] for i in c)) for c in kept})


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("rest", [(), (0,), (1,), (1, 1), (1, 0)])
def test_sampling_amplifies(rate: Fraction, rest: tuple[int, ...]) -> None:
    claim = sampled(Guarantee(Fraction(2)), rate=rate)
    with_unit, without = on_a_sample((1, *rest), rate), on_a_sample(rest, rate)
    assert holds(with_unit, without, claim)
    if not rest:
        # one unit alone: exactly as much as the rule allows
        assert odds_max(with_unit, without) == claim.odds == 1 + rate


def test_epsilon_is_enclosed() -> None:
    guarantee = Guarantee.of_epsilon(Fraction(1, 3), Fraction(1, 10**6))
    assert guarantee.epsilon_lower() <= guarantee.epsilon_upper() <= Fraction(1, 3) + Fraction(1, 10**100)
    assert guarantee.epsilon_upper() >= Fraction(1, 3)
    assert guarantee.implies(Guarantee(Fraction(3, 2), Fraction(1, 10**6))) and not guarantee.implies(Guarantee(Fraction(3, 2)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: Guarantee(Fraction(1, 2)),
        lambda: Guarantee(Fraction(2), Fraction(-1)),
        lambda: group(Guarantee(Fraction(2)), size=0),
        lambda: sampled(Guarantee(Fraction(2)), rate=Fraction(2)),
        lambda: post_process({0: Fraction(1)}, {1: {0: Fraction(1)}}),
    ],
)
def test_what_the_rules_are_not_stated_for_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(LapwingError) as refusal:
        call()
    assert refusal.value.code == "theory-argument"
