"""The sparse vector technique, in published variants that are not private.

A stream of counts is compared, one by one, with a threshold; the answer to each is "above" or "below". A database is the stream of exact
answers, and neighbours are streams that differ by at most 1 in every place (queries of sensitivity 1). The right version adds noise of
scale ``1 / e1`` to the threshold, fresh noise of scale ``2 / e2`` to each count, and stops at the first "above"; the price is ``e1 + e2``
for streams of any length. Lyu, Su and Li 2017 compare the variants; the numbers of their algorithms are given below.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import TypeAlias

from lapwing.mechanisms.mechanism import require_decay
from lapwing.theory.broken.exact_sums import Factor, Relation, point_mass, total
from lapwing.theory.broken.specimen import Specimen
from lapwing.theory.finite import FiniteMechanism
from lapwing.theory.verify import Claim

Stream: TypeAlias = tuple[int, ...]
Pattern: TypeAlias = tuple[bool, ...]
"""True for "above"; ends when the mechanism stops."""

THRESHOLD = 1

_SURVEY = "Lyu, Su and Li 2017"


def stream_pairs(*, length: int, value_max: int) -> tuple[tuple[Stream, Stream], ...]:
    """All pairs of streams over 0 to ``value_max`` that differ by at most 1 in every place."""
    streams = product(range(value_max + 1), repeat=length)
    return tuple((x, y) for x, y in combinations(streams, 2) if all(abs(a - b) <= 1 for a, b in zip(x, y, strict=True)))


def patterns(length: int, *, above_max: int) -> Iterator[Pattern]:
    """All answers to a stream of this length, by a mechanism that stops after this many times "above"."""
    for answers in product((False, True), repeat=length):
        stop = next((place for place in range(length) if sum(answers[: place + 1]) == above_max), length - 1)
        if not any(answers[stop + 1 :]):  # one representative of all patterns that agree up to the stop
            yield answers[: stop + 1]


def answers_law(
    stream: Stream, decay: Fraction, *, threshold_steepness: int, query_steepness: int, above_max: int
) -> dict[Pattern, Fraction]:
    """The law of the answers; noise of steepness k has scale ``1 / (k * ln(1 / decay))``, and steepness 0 means no noise."""

    def factor(value: int, above: bool) -> Factor:
        return Factor(Relation.AT_LEAST if above else Relation.BELOW, value, query_steepness)

    level = Factor(Relation.EQUALS, THRESHOLD, threshold_steepness)
    return {
        answers: total((level, *(factor(value, above) for value, above in zip(stream, answers, strict=False))), decay)
        for answers in patterns(len(stream), above_max=above_max)
    }


def _right(decay: Fraction) -> FiniteMechanism[Stream, Pattern]:
    """Above threshold with e1 = e2: threshold steepness 2, query steepness 1, odds ``decay ** -4`` (Lyu, Su and Li 2017, Algorithm 1)."""
    return FiniteMechanism(
        "above threshold", lambda stream: answers_law(stream, decay, threshold_steepness=2, query_steepness=1, above_max=1)
    )


def no_query_noise(decay: Fraction) -> Specimen:
    """Noise on the threshold only, and no cut-off."""
    require_decay(decay)
    length = 3
    return Specimen(
        name="sparse-no-query-noise",
        claim=Claim(decay**-4),
        wrong=FiniteMechanism(
            "exact counts against one noisy threshold",
            lambda stream: answers_law(stream, decay, threshold_steepness=2, query_steepness=0, above_max=length),
        ),
        right=_right(decay),
        pairs=stream_pairs(length=length, value_max=2),
        mistake="All counts meet the same threshold, so the answers sort them: a lower count is never above when a higher one is below.",
        remedy="Fresh noise on every count, and a stop.",
        reference=f"Stoddard, Chen and Machanavajjhala 2014; {_SURVEY}, Algorithm 5",
    )


def one_noise_for_all_queries(decay: Fraction) -> Specimen:
    """Query noise drawn once for the whole stream."""
    require_decay(decay)

    def level_at_least(z: int) -> Fraction:
        """P[THRESHOLD + rho - nu >= z], for the threshold's noise rho and the one query noise nu."""
        return total((Factor(Relation.EQUALS, THRESHOLD, 2), Factor(Relation.BELOW, z - 1, 1)), decay)

    def shared(stream: Stream) -> dict[Pattern, Fraction]:
        steps = sorted(set(stream))
        # the level is at or below the lowest count, between two counts, or above all of them
        survival = [Fraction(1), *(level_at_least(value + 1) for value in steps), Fraction(0)]
        law: dict[Pattern, Fraction] = {}
        for level, (here, after) in zip((*steps, steps[-1] + 1), pairwise(survival), strict=True):
            answers = tuple(value >= level for value in stream)
            first = answers.index(True) + 1 if any(answers) else len(answers)
            law[answers[:first]] = law.get(answers[:first], Fraction(0)) + here - after
        return law

    return Specimen(
        name="sparse-one-noise-for-all-queries",
        claim=Claim(decay**-4),
        wrong=FiniteMechanism("above threshold with one noise for all queries", shared),
        right=_right(decay),
        pairs=stream_pairs(length=3, value_max=2),
        mistake="Noise that is shared by all counts only moves the threshold: the comparison with each other stays exact.",
        remedy="Fresh noise on every count.",
        reference=f"{_SURVEY}, the argument against Algorithm 5",
    )


def no_threshold_noise(decay: Fraction) -> Specimen:
    """Noise on the counts only, at a price that does not grow with the stream."""
    require_decay(decay)
    return Specimen(
        name="sparse-no-threshold-noise",
        claim=Claim(decay**-4),
        wrong=FiniteMechanism(
            "noisy counts against the exact threshold",
            lambda stream: answers_law(stream, decay, threshold_steepness=0, query_steepness=2, above_max=1),
        ),
        right=_right(decay),
        pairs=stream_pairs(length=4, value_max=1),
        mistake="The proof moves the noisy threshold to pay for all answers 'below' at once. Without its noise each of them costs.",
        remedy="Noise on the threshold too.",
        reference="Dwork and Roth 2014, section 3.6",
    )


def no_cut_off(decay: Fraction) -> Specimen:
    """Continues after "above", at the same price."""
    require_decay(decay)
    length = 6
    low, high = (0,) * length, (1,) * (length // 2) + (-1,) * (length // 2)
    return Specimen(
        name="sparse-no-cut-off",
        claim=Claim(decay**-4),
        wrong=FiniteMechanism(
            "above threshold that never stops",
            lambda stream: answers_law(stream, decay, threshold_steepness=2, query_steepness=2, above_max=length),
        ),
        right=_right(decay),
        pairs=((low, high), *stream_pairs(length=3, value_max=2)),
        mistake="Moving the threshold pays for all answers 'below', and for one 'above'. Each further 'above' has to be paid for.",
        remedy="Stop at the first 'above', and pay again to start again.",
        reference=f"Chen, Xiao, Zhang and Xu 2015; {_SURVEY}, Algorithm 6",
    )


def noise_not_scaled_with_count(decay: Fraction) -> Specimen:
    """Answers "above" twice, with query noise that is too small even for one "above"."""
    require_decay(decay)
    above_max, length = 2, 4
    return Specimen(
        name="sparse-noise-not-scaled",
        claim=Claim(decay**-8),
        wrong=FiniteMechanism(
            "two times above, query noise of scale 1 / e2",
            lambda stream: answers_law(stream, decay, threshold_steepness=2, query_steepness=6, above_max=above_max),
        ),
        right=FiniteMechanism(
            "two times above, query noise of scale 4 / e2",
            lambda stream: answers_law(stream, decay, threshold_steepness=4, query_steepness=1, above_max=above_max),
        ),
        pairs=stream_pairs(length=length, value_max=1),
        mistake="With e1 = epsilon / 4 and e2 = 3 epsilon / 4 the query noise has scale 1 / e2, whatever the number c of answers 'above'.",
        remedy="Query noise of scale 2 c / e2.",
        reference=f"Lee and Clifton 2014; {_SURVEY}, Algorithm 4",
    )


def same_noise_published(decay: Fraction) -> Specimen:
    """Publishes the noisy count that was above, with the noise of the comparison."""
    require_decay(decay)
    shown, length = range(-1, 3), 6

    def with_value(stream: Stream) -> dict[tuple[Pattern, int | None], Fraction]:
        law: dict[tuple[Pattern, int | None], Fraction] = {}
        for answers, chance in answers_law(stream, decay, threshold_steepness=2, query_steepness=1, above_max=1).items():
            left = chance
            if answers[-1]:
                below = [Factor(Relation.BELOW, value, 1) for value in stream[: len(answers) - 1]]
                for value in shown:
                    # the noisy count is this value, and the threshold is at most that
                    level = (Factor(Relation.EQUALS, THRESHOLD, 2), Factor(Relation.AT_LEAST, value, 0))
                    law[answers, value] = point_mass(value - stream[len(answers) - 1], decay) * total((*level, *below), decay)
                    left -= law[answers, value]
            law[answers, None] = left  # another value, or nothing was above
        return law

    return Specimen(
        name="sparse-same-noise-published",
        claim=Claim(decay**-4),
        wrong=FiniteMechanism("above threshold, with the noisy count that was above", with_value),
        right=_right(decay),
        pairs=(((0,) * length, (1,) * (length - 1) + (0,)), *stream_pairs(length=3, value_max=2)),
        mistake="A noisy count known to be above bounds the noisy threshold from above, which the proof needs to be free to move.",
        remedy="Publish 'above' only; measure the count with fresh noise and pay for it.",
        reference=f"Roth 2011 (lecture notes); {_SURVEY}, Algorithm 3",
    )


SPECIMENS = (
    no_query_noise,
    one_noise_for_all_queries,
    no_threshold_noise,
    no_cut_off,
    noise_not_scaled_with_count,
    same_noise_published,
)
