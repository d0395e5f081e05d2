"""Differential privacy as a tool for mechanism design: what can people gain by lying to a mechanism?

:func:`certify` enumerates all reports of a small game and finds the worst lie, exactly. The package contains a digital-goods auction,
facility location, the mixture with a commitment mechanism that makes truth dominant, and the choice of an equilibrium of a large game. It
uses only the standard library and fractions; no answer depends on it.
"""

from lapwing.games.auction import DigitalGoodsAuction
from lapwing.games.certification import certify
from lapwing.games.commitment import (
    CommitmentMixture,
    commitment_mechanism,
    expected_gap,
    is_truthful_share,
    largest_cost_gap,
    least_share,
)
from lapwing.games.exponentials import ExactNumber, SumOfExponentials
from lapwing.games.facility import FacilityLocation
from lapwing.games.report import GameHolds, GameRefuted, GameReport, LiesGainAtMost, LiesLose, LiesMultiplyBy, LosesAtMost, PrivateFor
from lapwing.games.roads import EquilibriumSelection, RoadGame

__all__ = [
    "CommitmentMixture",
    "DigitalGoodsAuction",
    "EquilibriumSelection",
    "ExactNumber",
    "FacilityLocation",
    "GameHolds",
    "GameRefuted",
    "GameReport",
    "LiesGainAtMost",
    "LiesLose",
    "LiesMultiplyBy",
    "LosesAtMost",
    "PrivateFor",
    "RoadGame",
    "SumOfExponentials",
    "certify",
    "commitment_mechanism",
    "expected_gap",
    "is_truthful_share",
    "largest_cost_gap",
    "least_share",
]
