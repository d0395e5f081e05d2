"""The same figures, computed another way: ordered profiles of named people, floats, and the textbook formulas written out.

Nothing of :mod:`lapwing.games` is used, so a mistake there shows as a difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

Chances = Callable[[Sequence[float]], dict[object, float]]
"""Reports of everybody, in order, to the chance of each outcome."""
Worth = Callable[[float, float, object, Sequence[float]], float]
"""True type, report, outcome, reports of the others, to the utility."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The four figures of a report."""

    gain: float
    ratio: float
    law: float
    loss: float


def figures(
    types: Sequence[float],
    n: int,
    *,
    chances: Chances,
    honest: Worth,
    lying: Worth,
    value: Callable[[Sequence[float], object], float],
) -> Figures:
    """The worst cases of one liar, by going through all ordered profiles. Person 0 is the liar: people are alike, the order is not used."""
    gain, ratio, law = 0.0, 1.0, 1.0
    for others in product(types, repeat=n - 1):
        of = {report: chances((report, *others)) for report in types}
        for truth, report in product(types, repeat=2):
            law = max(law, *(chance / of[report][outcome] for outcome, chance in of[truth].items()))
            told = sum(chance * honest(truth, truth, outcome, others) for outcome, chance in of[truth].items())
            lied = sum(chance * lying(truth, report, outcome, others) for outcome, chance in of[report].items())
            gain = max(gain, lied - told)
            ratio = max(ratio, lied / told if told else 1.0)
    loss = max(
        max(value(profile, outcome) for outcome in chances(profile))
        - sum(chance * value(profile, outcome) for outcome, chance in chances(profile).items())
        for profile in product(types, repeat=n)
    )
    return Figures(gain, ratio, law, loss)


def by_score(outcomes: Sequence[object], score: Callable[[Sequence[float], object], float], rate: float) -> Chances:
    """The exponential mechanism."""

    def chances(reports: Sequence[float]) -> dict[object, float]:
        weights = {outcome: math.exp(rate * score(reports, outcome)) for outcome in outcomes}
        return {outcome: weight / math.fsum(weights.values()) for outcome, weight in weights.items()}

    return chances


def auction(values: Sequence[float], n: int, epsilon: float) -> Figures:
    """Prices and valuations are the same numbers."""

    def revenue(reports: Sequence[float], price: object) -> float:
        return sum(float(str(price)) for report in reports if report >= float(str(price)))

    def worth(truth: float, report: float, price: object, others: Sequence[float]) -> float:
        return max(0.0, truth - float(str(price)))

    chances = by_score(values, revenue, epsilon / 2 / max(values))
    return figures(values, n, chances=chances, honest=worth, lying=worth, value=revenue)


def facility(spots: int, n: int, facilities: int, epsilon: float, share: float) -> Figures:
    """Spots are 0, 1, ... on a street of length ``spots - 1``; a pair (held, places) is an outcome of the mixture."""
    length = spots - 1
    places = list(combinations(range(spots), facilities))

    def nearest(spot: float, built: Sequence[int]) -> int:
        best = built[0]
        for candidate in built[1:]:
            if abs(candidate - spot) < abs(best - spot):
                best = candidate
        return best

    def welfare(reports: Sequence[float], built: Sequence[int]) -> float:
        return sum(1 - abs(report - nearest(report, built)) / length for report in reports)

    def chances(reports: Sequence[float]) -> dict[object, float]:
        weights = {built: math.exp(epsilon * welfare(reports, built) / 2) for built in places}
        whole = math.fsum(weights.values())
        free: dict[object, float] = {(False, built): (1 - share) * weight / whole for built, weight in weights.items()}
        return free | ({(True, built): share / len(places) for built in places} if share else {})

    def worth(truth: float, report: float, outcome: object, others: Sequence[float]) -> float:
        assert isinstance(outcome, tuple)
        held, built = outcome
        return 1 - abs(truth - nearest(report if held else truth, built)) / length

    def value(reports: Sequence[float], outcome: object) -> float:
        assert isinstance(outcome, tuple)
        return welfare(reports, outcome[1])

    return figures(list(range(spots)), n, chances=chances, honest=worth, lying=worth, value=value)


def roads(detours: Sequence[tuple[float, float]], slope: float, n: int, epsilon: float) -> Figures:
    """Two roads, halves; a rule gives each type its chance of the first road."""
    rules = list(product((0.0, 0.5, 1.0), repeat=len(detours)))

    def of_road(type_: int, first: bool, share_first: float) -> float:
        return 1 - detours[type_][0 if first else 1] - slope * (share_first if first else 1 - share_first)

    def followed(type_: int, told: int, rule: Sequence[float], share_first: float) -> float:
        return rule[told] * of_road(type_, True, share_first) + (1 - rule[told]) * of_road(type_, False, share_first)

    def best(type_: int, share_first: float) -> float:
        return max(of_road(type_, True, share_first), of_road(type_, False, share_first))

    def first_share(rule: Sequence[float], people: Sequence[float]) -> float:
        return sum(rule[int(person)] for person in people) / len(people)

    def score(reports: Sequence[float], outcome: object) -> float:
        assert isinstance(outcome, tuple)
        share = first_share(outcome, reports)
        return -max(best(type_, share) - followed(type_, type_, outcome, share) for type_ in range(len(detours)))

    def honest(truth: float, report: float, outcome: object, others: Sequence[float]) -> float:
        assert isinstance(outcome, tuple)
        return followed(int(truth), int(truth), outcome, first_share(outcome, others))

    def lying(truth: float, report: float, outcome: object, others: Sequence[float]) -> float:
        assert isinstance(outcome, tuple)
        return best(int(truth), first_share(outcome, others))

    chances = by_score(rules, score, epsilon / (2 * 2 * slope / n))
    return figures(list(range(len(detours))), n, chances=chances, honest=honest, lying=lying, value=score)


def lopsided(count: int, n: int, outcomes: int) -> Figures:
    """A mechanism that has no symmetry at all: weights and utilities from a table of residues."""

    def chances(reports: Sequence[float]) -> dict[object, float]:
        weights = {outcome: residue(sum(3 ** int(report) for report in reports), outcome) for outcome in range(outcomes)}
        return {outcome: weight / sum(weights.values()) for outcome, weight in weights.items()}

    def worth(truth: float, report: float, outcome: object, others: Sequence[float]) -> float:
        assert isinstance(outcome, int)
        return residue(int(truth), outcome) / 10

    def value(reports: Sequence[float], outcome: object) -> float:
        assert isinstance(outcome, int)
        return sum(residue(int(report) + 1, outcome) for report in reports)

    return figures(list(range(count)), n, chances=chances, honest=worth, lying=worth, value=value)


def residue(a: int, b: int) -> int:
    """Some number from 1 to 23."""
    return (a * a * 7 + b * b * b * 7 + a * b * 11 + 3) % 23 + 1
