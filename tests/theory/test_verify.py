"""The verifier: against the definition itself, over every set of outputs; and what is made of mechanisms, against its theorem."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.kernel.neighbours import Neighbours
from lapwing.mechanisms.additive import LaplaceMechanism
from lapwing.theory.broken.exact_sums import clamped
from lapwing.theory.databases import Histogram, Universe, group_pairs, neighbouring_pairs, size
from lapwing.theory.finite import (
    FiniteMechanism,
    adaptive,
    composed,
    deterministic,
    exact_law,
    from_kernel,
    mixture,
    poisson_subsampled,
    post_processed,
    randomised,
    truncated,
    uniformly_subsampled,
)
from lapwing.theory.verify import (
    Claim,
    Rejected,
    Verified,
    epsilon_at_least,
    epsilon_at_most,
    hockey_stick,
    least_odds,
    tight_delta,
    tight_odds,
    verify,
)

DECAYS = (Fraction(1, 2), Fraction(2, 3))
ANSWERS = Universe(("yes", "no"))
PAIRS = tuple(neighbouring_pairs(ANSWERS, Neighbours.UNBOUNDED, size_max=3))
REPLACED = tuple(neighbouring_pairs(ANSWERS, Neighbours.BOUNDED, size_max=3))


def noisy_count(decay: Fraction) -> FiniteMechanism[Histogram, int]:
    return FiniteMechanism("noisy count", lambda x: clamped(x[0], decay, low=0, high=3))


def laws(outputs: int = 4) -> st.SearchStrategy[dict[int, Fraction]]:
    """Laws with rational probabilities, some of them 0."""
    weights = st.lists(st.integers(0, 6), min_size=outputs, max_size=outputs).filter(any)
    return weights.map(lambda parts: {s: Fraction(part, sum(parts)) for s, part in enumerate(parts)})


odds_drawn = st.fractions(min_value=1, max_value=20, max_denominator=12)
deltas_drawn = st.fractions(min_value=0, max_value=1, max_denominator=12)


def worst_excess(p: Mapping[int, Fraction], q: Mapping[int, Fraction], odds: Fraction) -> Fraction:
    """The definition itself: the largest P[S] - odds Q[S] over every set S of outputs."""
    sets = chain.from_iterable(combinations(p, length) for length in range(len(p) + 1))
    return max(sum((p[s] - odds * q.get(s, Fraction(0)) for s in chosen), Fraction(0)) for chosen in sets)


def two_laws(p: dict[int, Fraction], q: dict[int, Fraction]) -> FiniteMechanism[str, int]:
    return FiniteMechanism("given laws", lambda database: p if database == "x" else q)


@given(laws(), laws(), odds_drawn)
def test_the_hockey_stick_is_the_worst_set_of_outputs(p: dict[int, Fraction], q: dict[int, Fraction], odds: Fraction) -> None:
    assert hockey_stick(p, q, odds) == worst_excess(p, q, odds)
    assert tight_delta(two_laws(p, q), [("x", "y")], odds=odds) == max(worst_excess(p, q, odds), worst_excess(q, p, odds))


@given(laws(), laws(), deltas_drawn, st.fractions(min_value=0, max_value=Fraction(99, 100), max_denominator=100))
def test_the_least_odds_are_enough_and_nothing_less_is(
    p: dict[int, Fraction], q: dict[int, Fraction], delta: Fraction, share: Fraction
) -> None:
    odds = least_odds(p, q, delta=delta)
    if odds is None:
        assert sum((mass for s, mass in p.items() if not q[s]), Fraction(0)) > delta
        return
    assert worst_excess(p, q, odds) <= delta
    if odds > 1:
        assert worst_excess(p, q, 1 + share * (odds - 1)) > delta
        assert delta == 0 or worst_excess(p, q, odds) == delta


@given(laws(), laws(), odds_drawn, deltas_drawn)
def test_a_verdict_agrees_with_the_definition(p: dict[int, Fraction], q: dict[int, Fraction], odds: Fraction, delta: Fraction) -> None:
    mechanism, pairs, claim = two_laws(p, q), [("x", "y")], Claim(odds, delta)
    holds = max(worst_excess(p, q, odds), worst_excess(q, p, odds)) <= delta
    verdict = verify(mechanism, claim, pairs)
    match verdict:
        case Verified():
            assert holds
            assert verdict.pairs == 1
            assert verdict.odds_needed == tight_odds(mechanism, pairs, delta=delta)
            assert verdict.odds_needed <= odds
        case Rejected():
            assert not holds
            law_x, law_y = mechanism.law(verdict.x), mechanism.law(verdict.y)
            assert {verdict.x, verdict.y} == {"x", "y"}
            assert verdict.probability_x == sum(law_x[s] for s in verdict.outputs)
            assert verdict.probability_y == sum(law_y.get(s, Fraction(0)) for s in verdict.outputs)
            assert verdict.shortfall == verdict.probability_x - odds * verdict.probability_y - delta > 0


@pytest.mark.parametrize("decay", DECAYS)
def test_the_truncated_geometric_mechanism_is_tight(decay: Fraction) -> None:
    kernel: FiniteMechanism[Histogram, int] = from_kernel(
        LaplaceMechanism(scale=Fraction(1), l1=1, clamp=(0, 3)), lambda x: x[0], decay=decay
    )
    for mechanism in (noisy_count(decay), kernel):
        assert tight_odds(mechanism, PAIRS) == tight_odds(mechanism, REPLACED) == 1 / decay
        assert isinstance(verify(mechanism, Claim(1 / decay), PAIRS), Verified)
        too_small = verify(mechanism, Claim(1 / decay - Fraction(1, 10**30)), PAIRS)
        assert isinstance(too_small, Rejected)
        assert 0 < too_small.shortfall < Fraction(1, 10**29)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("group_size", [1, 2, 3])
def test_a_group_of_k_has_the_odds_to_the_power_k(decay: Fraction, group_size: int) -> None:
    pairs = list(group_pairs(ANSWERS, Neighbours.UNBOUNDED, size_max=3, group_size=group_size))
    assert tight_odds(noisy_count(decay), pairs) == decay**-group_size


@pytest.mark.parametrize("decay", DECAYS)
def test_two_answers_multiply_their_odds(decay: Fraction) -> None:
    both = composed(noisy_count(decay), noisy_count(decay**2))
    assert tight_odds(both, PAIRS) == decay**-3


def test_the_second_mechanism_may_depend_on_the_first_answer() -> None:
    decay = Fraction(1, 2)
    chosen = adaptive(noisy_count(decay), lambda seen: noisy_count(decay ** (1 + seen)))
    assert tight_odds(chosen, PAIRS) == decay**-5, "1 for the first answer, and up to 4 for the second, after the answer 3"
    # the bound of the theorem is the product with the worst second mechanism
    assert isinstance(verify(chosen, Claim(decay**-1 * decay**-4), PAIRS), Verified)


def test_publishing_a_whole_record_passes_with_delta_one_over_n() -> None:
    for rows in (2, 3, 4):
        pairs = [pair for pair in neighbouring_pairs(ANSWERS, Neighbours.BOUNDED, size_max=rows) if size(pair[0]) == rows]

        def name_and_shame(x: Histogram) -> dict[str, Fraction]:
            return {record: Fraction(count, size(x)) for record, count in zip(ANSWERS.records, x, strict=True)}

        mechanism = FiniteMechanism("one record, whole", name_and_shame)
        assert tight_delta(mechanism, pairs, odds=Fraction(1)) == Fraction(1, rows)
        assert isinstance(verify(mechanism, Claim(Fraction(1), delta=Fraction(1, rows)), pairs), Verified)
        assert isinstance(verify(mechanism, Claim(Fraction(10**6), delta=Fraction(1, rows + 1)), pairs), Rejected)
        assert tight_odds(mechanism, pairs) is None


def test_an_exact_answer_has_no_finite_epsilon() -> None:
    exact: FiniteMechanism[Histogram, int] = deterministic(lambda x: x[0])
    assert tight_odds(exact, PAIRS) is None
    assert tight_delta(exact, PAIRS, odds=Fraction(10**9)) == 1
    assert tight_odds(deterministic(lambda _: 7), PAIRS) == 1
    assert tight_odds(exact, PAIRS, delta=Fraction(1)) == 1


@given(laws(), laws(), st.lists(laws(3), min_size=4, max_size=4), deltas_drawn)
def test_post_processing_never_costs(
    p: dict[int, Fraction], q: dict[int, Fraction], channel: list[dict[int, Fraction]], delta: Fraction
) -> None:
    before, pairs = two_laws(p, q), [("x", "y")]
    after = randomised(before, lambda output: channel[output])
    odds_before, odds_after = tight_odds(before, pairs, delta=delta), tight_odds(after, pairs, delta=delta)
    assert odds_before is None or (odds_after is not None and odds_after <= odds_before)
    for odds in (Fraction(1), Fraction(3, 2), Fraction(4)):
        assert tight_delta(after, pairs, odds=odds) <= tight_delta(before, pairs, odds=odds)


@given(laws(), laws(), laws(), laws(), st.fractions(min_value=0, max_value=1, max_denominator=12), odds_drawn)
def test_a_mixture_is_no_worse_than_its_parts(
    p: dict[int, Fraction], q: dict[int, Fraction], r: dict[int, Fraction], s: dict[int, Fraction], weight: Fraction, odds: Fraction
) -> None:
    pairs = [("x", "y")]
    first, second = two_laws(p, q), two_laws(r, s)
    mixed = mixture([(weight, first), (1 - weight, second)])
    # one direction of one pair at a time, the hockey stick is convex in the pair of laws
    bound = weight * tight_delta(first, pairs, odds=odds) + (1 - weight) * tight_delta(second, pairs, odds=odds)
    assert tight_delta(mixed, pairs, odds=odds) <= bound


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1)])
def test_a_poisson_sample_amplifies_exactly(decay: Fraction, rate: Fraction) -> None:
    sampled = poisson_subsampled(noisy_count(decay), rate=rate)
    assert tight_odds(sampled, PAIRS) == 1 + rate * (1 / decay - 1)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize(("rows", "of"), [(1, 2), (1, 3), (2, 3), (3, 3)])
def test_a_sample_without_replacement_amplifies_exactly(decay: Fraction, rows: int, of: int) -> None:
    pairs = [pair for pair in REPLACED if size(pair[0]) == of]
    sampled = uniformly_subsampled(noisy_count(decay), rows=rows)
    assert tight_odds(sampled, pairs) == 1 + Fraction(rows, of) * (1 / decay - 1)


def test_clamping_afterwards_is_the_clamped_mechanism() -> None:
    decay = DECAYS[0]
    wide: FiniteMechanism[Histogram, int] = FiniteMechanism("wide", lambda x: clamped(x[0], decay, low=-4, high=9))
    for x, _ in PAIRS:
        assert truncated(wide, low=0, high=3).law(x) == noisy_count(decay).law(x)
    rounded = post_processed(noisy_count(decay), lambda value: value // 2)
    assert rounded.law((1, 0)) == {0: Fraction(2, 3), 1: Fraction(1, 3)}


def test_reports_can_be_read() -> None:
    decay = Fraction(1, 2)
    held = verify(noisy_count(decay), Claim(Fraction(4)), PAIRS)
    assert str(held) == (
        "noisy count: verified exp(epsilon) = 4 (epsilon <= 1.386295), delta = 0 over 12 pairs of neighbours "
        "(exp(epsilon) = 2 would be enough)"
    )
    assert str(verify(noisy_count(decay), Claim(Fraction(2)), PAIRS)).endswith("over 12 pairs of neighbours (tight)")
    broken = verify(noisy_count(decay), Claim(Fraction(3, 2)), PAIRS)
    assert str(broken) == (
        "noisy count: rejected exp(epsilon) = 3/2 (epsilon <= 0.405466), delta = 0. The output is in {0} with probability 2/3 on (0, 0), "
        "with probability 1/3 on (1, 0): at least 2.00 times as often. The claim falls short by 1/6"
    )
    exact = verify(deterministic(lambda x: x[0]), Claim(Fraction(1000)), PAIRS)
    assert "never on" in str(exact)


def test_a_logarithm_is_shown_on_its_own_side() -> None:
    assert (epsilon_at_least(Fraction(3)), epsilon_at_most(Fraction(3))) == ("1.098612", "1.098613")
    assert (epsilon_at_least(Fraction(1)), epsilon_at_most(Fraction(1))) == ("0.000000", "0.000000")
    assert (epsilon_at_least(Fraction(1, 2), digits=2), epsilon_at_most(Fraction(1, 2), digits=2)) == ("-0.70", "-0.69")
    assert epsilon_at_most(Fraction(10**400), digits=1) == "921.1"


def test_what_is_no_law_or_no_claim_is_refused() -> None:
    for law in ({0: Fraction(1, 2)}, {0: Fraction(3, 2), 1: Fraction(-1, 2)}, {}):
        with pytest.raises(LapwingError) as caught:
            exact_law(law)
        assert caught.value.code == "law-invalid"
    with pytest.raises(LapwingError) as caught:
        exact_law({0: 1.0})  # type: ignore[dict-item]
    assert caught.value.code == "number-invalid"
    for odds, delta in ((Fraction(1, 2), Fraction(0)), (Fraction(2), Fraction(-1, 2)), (Fraction(2), Fraction(3, 2))):
        with pytest.raises(LapwingError) as caught:
            Claim(odds, delta)
        assert caught.value.code == "claim-invalid"
    with pytest.raises(LapwingError) as caught:
        tight_odds(noisy_count(DECAYS[0]), PAIRS, delta=Fraction(-1, 2))
    assert caught.value.code == "claim-invalid"
    with pytest.raises(LapwingError) as caught:
        poisson_subsampled(noisy_count(DECAYS[0]), rate=Fraction(3, 2))
    assert caught.value.code == "number-invalid"
    with pytest.raises(LapwingError) as caught:
        uniformly_subsampled(noisy_count(DECAYS[0]), rows=-1)
    assert caught.value.code == "number-invalid"
    with pytest.raises(LapwingError) as caught:
        truncated(noisy_count(DECAYS[0]), low=3, high=0)
    assert caught.value.code == "number-invalid"


def test_without_a_pair_nothing_is_verified() -> None:
    mechanism = noisy_count(DECAYS[0])
    for ask in (
        lambda: verify(mechanism, Claim(Fraction(2)), []),
        lambda: tight_odds(mechanism, []),
        lambda: tight_delta(mechanism, [], odds=Fraction(2)),
    ):
        with pytest.raises(LapwingError) as caught:
            ask()
        assert caught.value.code == "pairs-missing"
