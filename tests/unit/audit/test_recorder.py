"""Record and replay: honest adaptive code passes; each way to get past the noise is found, without chance."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.audit.recorder import Noise, check, record, replay
from lapwing.errors import Refused

People = tuple[int, ...]
"""Ages."""

DATA: People = (20, 31, 45, 45, 60, 72)
NEIGHBOURS: list[People] = [DATA[:i] + DATA[i + 1 :] for i in range(len(DATA))] + [(*DATA, 90), (*DATA, 0)]
SHARP = Fraction(1, 2**20)
"""A scale at which noise is 0 but for a probability below exp(-2^20): paths are then decided by the data, and tests by nothing else."""


def total(people: People) -> int:
    return sum(min(max(age, 0), 90) for age in people)


def honest(people: People, noise: Noise) -> tuple[object, ...]:
    """Adaptive: what is asked next depends on what was answered."""
    count = noise.laplace(len(people), scale=Fraction(2), l1=1)
    assert isinstance(count, int)
    ages = noise.gaussian(total(people), scale=Fraction(100), l2_squared=90**2)
    bins = tuple(sum(low <= age < low + 30 for age in people) for low in (0, 30, 60))
    best = noise.select(bins, scale=Fraction(4), score_sensitivity=1)
    if count > 5:
        young = noise.laplace((bins[0], bins[best]), scale=Fraction(3), l1=2)
        return count, ages, best, young
    first = noise.first_above(bins, threshold=2, scale_threshold=Fraction(4), scale_query=Fraction(8), sensitivity=1)
    return count, ages, best, first


def test_honest_adaptive_code_passes_and_costs_the_sum() -> None:
    assert check(honest, DATA, NEIGHBOURS, recordings=20) == []
    recording = record(honest, DATA)
    cost = recording.cost()
    assert cost.epsilon is None, "Gaussian noise has no epsilon"
    assert cost.rho is not None and cost.rho == sum(rho for call in recording.calls if (rho := call.mechanism.event().rho) is not None)
    assert len({len(record(honest, DATA).calls) for _ in range(20)}) == 1


def test_a_pure_program_has_an_epsilon() -> None:
    recording = record(lambda people, noise: noise.laplace(len(people), scale=Fraction(2), l1=1), DATA)
    assert recording.cost().epsilon == recording.calls[0].mechanism.event().epsilon


def data_dependent_branch(people: People, noise: Noise) -> object:
    if 90 in people:
        return noise.gaussian(len(people), scale=Fraction(2), l2_squared=1)
    return noise.laplace(len(people), scale=Fraction(2), l1=1)


def data_dependent_scale(people: People, noise: Noise) -> object:
    return noise.laplace(total(people), scale=Fraction(max(people)), l1=90)


def wrong_sensitivity(people: People, noise: Noise) -> object:
    return noise.laplace(sum(people), scale=Fraction(50), l1=50)


def wrong_norm(people: People, noise: Noise) -> object:
    """One age moves two sums: together by the root of two times 90."""
    return noise.gaussian((total(people), total(people)), scale=Fraction(100), l2_squared=90**2)


def early_stop(people: People, noise: Noise) -> object:
    first = noise.laplace(len(people), scale=Fraction(2), l1=1)
    return first if 90 in people else (first, noise.laplace(total(people), scale=Fraction(90), l1=90))


def one_more_call(people: People, noise: Noise) -> object:
    return [noise.laplace(1, scale=Fraction(2), l1=1) for _ in people]


def number_of_values(people: People, noise: Noise) -> object:
    return noise.laplace(people, scale=Fraction(90), l1=90)


def value_in_the_result(people: People, noise: Noise) -> object:
    return noise.laplace(len(people), scale=Fraction(2), l1=1), 90 in people


def retry_until_above(people: People, noise: Noise) -> object:
    """The sparse vector without a noisy threshold: each comparison is paid, but the exact value decides whether to go on."""
    for age in sorted(people):
        if age > 80:
            return noise.laplace(age, scale=Fraction(90), l1=90)
    return None


def scores_too_sensitive(people: People, noise: Noise) -> object:
    return noise.select((len(people), 2 * len(people)), scale=Fraction(4), score_sensitivity=1)


def stream_too_sensitive(people: People, noise: Noise) -> object:
    return noise.first_above((len(people), total(people)), threshold=5, scale_threshold=Fraction(2), scale_query=Fraction(4), sensitivity=1)


def fails_on_some(people: People, noise: Noise) -> object:
    if 90 in people:
        raise Refused("x", "y")
    return noise.laplace(len(people), scale=Fraction(2), l1=1)


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (data_dependent_branch, "different mechanism or parameters"),
        (data_dependent_scale, "different mechanism or parameters"),
        (wrong_sensitivity, "moved by 72, claimed l1 50"),
        (wrong_norm, "claimed l2_squared"),
        (early_stop, "the program stopped before"),
        (one_more_call, "recorded run did not make"),
        (number_of_values, "number of exact values"),
        (value_in_the_result, "depends on exact values"),
        (retry_until_above, "recorded run did not make"),
        (scores_too_sensitive, "claimed score_sensitivity 1"),
        (stream_too_sensitive, "claimed sensitivity 1"),
        (fails_on_some, "an error"),
    ],
)
def test_what_is_not_private_is_found(program: object, what: str) -> None:
    found = check(program, DATA, NEIGHBOURS)  # type: ignore[arg-type]
    assert any(what in breach.what for breach in found), found


def test_a_branch_on_noisy_values_is_no_breach() -> None:
    """With next to no noise the recorded answer differs between neighbours; replayed, the program follows the recorded one."""

    def program(people: People, noise: Noise) -> object:
        count = noise.laplace(len(people), scale=SHARP, l1=1)
        return noise.laplace(0, scale=SHARP, l1=0) if count == len(DATA) else count

    recording = record(program, DATA)
    assert len(recording.calls) == 2
    assert [replay(program, neighbour, recording) for neighbour in NEIGHBOURS] == [[]] * len(NEIGHBOURS)
    assert len(record(program, NEIGHBOURS[0]).calls) == 1
