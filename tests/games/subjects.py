"""Small games, by the library and by the oracle, and whether both say the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from lapwing.games import (
    CommitmentMixture,
    DigitalGoodsAuction,
    EquilibriumSelection,
    FacilityLocation,
    GameReport,
    RoadGame,
    SumOfExponentials,
    certify,
)
from lapwing.games.commitment import HeldToReports
from lapwing.games.exponentials import rational
from tests.games import oracle

PRICES = (Fraction(1), Fraction(3), Fraction(5))
SPOTS = tuple(Fraction(spot) for spot in range(6))
DETOURS = {"west": (Fraction(0), Fraction(1, 4)), "east": (Fraction(1, 3), Fraction(0))}


def auction() -> GameReport[Fraction, Fraction]:
    return certify(DigitalGoodsAuction(PRICES, epsilon=Fraction(2)), PRICES, 3)


def facility() -> GameReport[Fraction, tuple[Fraction, ...]]:
    return certify(FacilityLocation(SPOTS, facilities=2, epsilon=Fraction(1)), SPOTS, 3)


def mixture() -> GameReport[Fraction, tuple[Fraction, ...] | HeldToReports[tuple[Fraction, ...]]]:
    game = FacilityLocation(SPOTS, facilities=2, epsilon=Fraction(1))
    return certify(CommitmentMixture(game, share=Fraction(1, 200)), SPOTS, 3)


def roads() -> GameReport[str, object]:
    selection = EquilibriumSelection(RoadGame(DETOURS, slope=Fraction(1, 2)), 4, epsilon=Fraction(1))
    return certify(selection, tuple(DETOURS), 4)


class Lopsided:
    """No symmetry at all: weights and utilities from a table of residues."""

    name = "lopsided"
    outcomes = tuple(range(4))

    def weights(self, reports: Sequence[int]) -> Sequence[SumOfExponentials]:
        return [rational(oracle.residue(sum(3**report for report in reports), outcome)) for outcome in self.outcomes]

    def honest(self, type_: int, others: Sequence[int]) -> Sequence[Fraction]:
        return [Fraction(oracle.residue(type_, outcome), 10) for outcome in self.outcomes]

    def lying(self, type_: int, report: int, others: Sequence[int]) -> Sequence[Fraction]:
        return self.honest(type_, others)

    def objective(self, reports: Sequence[int]) -> Sequence[Fraction]:
        return [Fraction(sum(oracle.residue(report + 1, outcome) for report in reports)) for outcome in self.outcomes]


def lopsided() -> GameReport[int, int]:
    return certify(Lopsided(), (0, 1, 2), 3)


SUBJECTS: dict[str, tuple[Callable[[], GameReport[Any, Any]], Callable[[], oracle.Figures]]] = {
    "lopsided": (lopsided, lambda: oracle.lopsided(3, 3, 4)),
    "auction": (auction, lambda: oracle.auction([1.0, 3.0, 5.0], 3, 2.0)),
    "facility": (facility, lambda: oracle.facility(6, 3, 2, 1.0, 0.0)),
    "mixture": (mixture, lambda: oracle.facility(6, 3, 2, 1.0, 1 / 200)),
    "roads": (roads, lambda: oracle.roads([(0.0, 0.25), (1 / 3, 0.0)], 0.5, 4, 1.0)),
}


def figures_of(report: GameReport[Any, Any]) -> oracle.Figures:
    ratio, law = report.lie_ratio, report.law_ratio
    assert ratio is not None and law is not None
    return oracle.Figures(float(report.largest_gain), float(ratio), float(law), float(report.loss))


def alike(one: oracle.Figures, other: oracle.Figures) -> bool:
    pairs = ((one.gain, other.gain), (one.ratio, other.ratio), (one.law, other.law), (one.loss, other.loss))
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in pairs)
