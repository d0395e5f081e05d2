"""Selections of the best candidate that reveal more than claimed."""

from __future__ import annotations

from fractions import Fraction

from lapwing.kernel.neighbours import Neighbours
from lapwing.mechanisms.mechanism import require_decay
from lapwing.theory.broken.exact_sums import clamped, noisy_max
from lapwing.theory.broken.specimen import Specimen
from lapwing.theory.databases import Histogram, Universe, neighbouring_pairs
from lapwing.theory.finite import FiniteMechanism, adaptive
from lapwing.theory.verify import Claim

ROWS_MAX = 3

_UNIVERSE = Universe(("red", "green", "blue"))


def _pairs(relation: Neighbours) -> tuple[tuple[Histogram, Histogram], ...]:
    return tuple(neighbouring_pairs(_UNIVERSE, relation, size_max=ROWS_MAX))


def _winner(decay: Fraction) -> FiniteMechanism[Histogram, int]:
    """The most frequent record by noisy counts, noise of scale 2 / epsilon: odds ``decay ** -2``."""
    return FiniteMechanism("noisy max", lambda x: noisy_max(x, decay))


def exact_maximum_published(decay: Fraction) -> Specimen:
    """Noisy max that publishes the winner's exact count."""
    require_decay(decay)

    def with_exact_count(database: Histogram) -> dict[tuple[int, int], Fraction]:
        return {(winner, database[winner]): share for winner, share in noisy_max(database, decay).items()}

    return Specimen(
        name="exact-maximum-published",
        claim=Claim(decay**-2),
        wrong=FiniteMechanism("noisy max, with the winner's exact count", with_exact_count),
        right=_winner(decay),
        pairs=_pairs(Neighbours.UNBOUNDED),
        mistake="The noise of the competition protects which candidate wins, not the score it won with.",
        remedy="Publish the index only; measure the winner's count in a separate release.",
        reference="Dwork and Roth 2014, section 3.3 (report noisy max)",
    )


def exact_gap_published(decay: Fraction) -> Specimen:
    """Noisy max that publishes by how much the winner's exact count leads."""
    require_decay(decay)

    def with_exact_gap(database: Histogram) -> dict[tuple[int, int], Fraction]:
        def lead(winner: int) -> int:
            return database[winner] - max(count for index, count in enumerate(database) if index != winner)

        return {(winner, lead(winner)): share for winner, share in noisy_max(database, decay).items()}

    return Specimen(
        name="exact-gap-published",
        claim=Claim(decay**-2),
        wrong=FiniteMechanism("noisy max, with its exact lead", with_exact_gap),
        right=_winner(decay),
        pairs=_pairs(Neighbours.UNBOUNDED),
        mistake="The lead over the second was computed from the exact counts. (The lead in the noisy scores would be free: it is another "
        "mechanism, with its own proof.)",
        remedy="Publish the index only.",
        reference="Ding, Wang, Zhang and Kifer 2019 (the noisy gap)",
    )


def noise_on_the_winner_only(decay: Fraction) -> Specimen:
    """The true winner, with a noisy count."""
    require_decay(decay)

    def value_of(winner: int) -> FiniteMechanism[Histogram, int]:
        return FiniteMechanism("count", lambda x: clamped(x[winner], decay, low=-2, high=5))

    def true_winner(database: Histogram) -> dict[int, Fraction]:
        return {database.index(max(database)): Fraction(1)}

    return Specimen(
        name="noise-on-the-winner-only",
        claim=Claim(decay**-3),
        wrong=adaptive(FiniteMechanism("exact winner", true_winner), value_of).named("the true winner, with its noisy count"),
        right=adaptive(_winner(decay), value_of).named("noisy max, then the noisy count of its winner"),
        pairs=_pairs(Neighbours.UNBOUNDED),
        mistake="Only the published number got noise; which candidate it belongs to was decided exactly.",
        remedy="Noisy max, then a noisy count of its winner: the two prices add.",
        reference="McSherry and Talwar 2007",
    )


def permute_and_flip_law(scores: tuple[int, ...], decay: Fraction) -> dict[int, Fraction]:
    """Candidates in random order, each accepted with probability ``decay ** (best - score)``, until one is.

    Computed from the definition, not from a formula: the best candidate is always accepted, so one random order of n candidates decides.
    """
    best = max(scores)

    def chosen(left: frozenset[int]) -> dict[int, Fraction]:
        law = dict.fromkeys(left, Fraction(0))
        for index in left:
            accepted = decay ** (best - scores[index])
            law[index] += accepted / len(left)
            if accepted != 1:
                for later, share in chosen(left - {index}).items():
                    law[later] += (1 - accepted) * share / len(left)
        return law

    return chosen(frozenset(range(len(scores))))


def exponential_law(scores: tuple[int, ...], decay: Fraction) -> dict[int, Fraction]:
    """Each candidate with probability proportional to ``decay ** -score``."""
    weights = [decay**-score for score in scores]
    return {index: weight / sum(weights) for index, weight in enumerate(weights)}


_MONOTONE_MISTAKE = (
    "Half the noise is enough when one person moves all scores the same way. Here a row is replaced: one count rises and another falls."
)


def permute_and_flip_monotone_scale(decay: Fraction) -> Specimen:
    """Permute-and-flip with the scale for monotone scores, on scores that are not."""
    require_decay(decay)
    return Specimen(
        name="permute-and-flip-monotone-scale",
        claim=Claim(decay**-2),
        wrong=FiniteMechanism("permute-and-flip at scale 1 / epsilon", lambda x: permute_and_flip_law(x, decay**2)),
        right=FiniteMechanism("permute-and-flip at scale 2 / epsilon", lambda x: permute_and_flip_law(x, decay)),
        pairs=_pairs(Neighbours.BOUNDED),
        mistake=_MONOTONE_MISTAKE,
        remedy="The scale 2 * sensitivity / epsilon.",
        reference="McKenna and Sheldon 2020",
    )


def exponential_monotone_scale(decay: Fraction) -> Specimen:
    """The exponential mechanism with the scale for monotone scores, on scores that are not."""
    require_decay(decay)
    return Specimen(
        name="exponential-monotone-scale",
        claim=Claim(decay**-2),
        wrong=FiniteMechanism("exponential mechanism at scale 1 / epsilon", lambda x: exponential_law(x, decay**2)),
        right=FiniteMechanism("exponential mechanism at scale 2 / epsilon", lambda x: exponential_law(x, decay)),
        pairs=_pairs(Neighbours.BOUNDED),
        mistake=_MONOTONE_MISTAKE + " The normalising sum moves against the weight.",
        remedy="The scale 2 * sensitivity / epsilon.",
        reference="McSherry and Talwar 2007",
    )


SPECIMENS = (
    exact_maximum_published,
    exact_gap_published,
    noise_on_the_winner_only,
    permute_and_flip_monotone_scale,
    exponential_monotone_scale,
)
