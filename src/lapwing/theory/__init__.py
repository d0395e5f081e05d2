"""Differential privacy as a library: the textbook's definitions and theorems as functions that can be run and checked.

Results are exact where possible (rational arithmetic over finite universes), and otherwise use directed rounding. The package is for people
who teach, check or design mechanisms; no answer depends on it.

The names that lessons use most can be imported from here; they are loaded on first use. A module and its main function often
share a name (``verify``, ``sensitivity``, ``databases``): here the name is the module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lapwing.theory import attacks as attacks
    from lapwing.theory import broken as broken
    from lapwing.theory import composition as composition
    from lapwing.theory import databases as databases
    from lapwing.theory import divergences as divergences
    from lapwing.theory import filters as filters
    from lapwing.theory import finite as finite
    from lapwing.theory import gaussian as gaussian
    from lapwing.theory import guarantees as guarantees
    from lapwing.theory import iterated_weights as iterated_weights
    from lapwing.theory import loss as loss
    from lapwing.theory import meaning as meaning
    from lapwing.theory import plots as plots
    from lapwing.theory import sensitivity as sensitivity
    from lapwing.theory import tail_bounds as tail_bounds
    from lapwing.theory import verify as verify
    from lapwing.theory.composition import Rule as Rule
    from lapwing.theory.composition import how_many as how_many
    from lapwing.theory.databases import Population as Population
    from lapwing.theory.databases import Universe as Universe
    from lapwing.theory.databases import adjacent as adjacent
    from lapwing.theory.databases import distance as distance
    from lapwing.theory.databases import neighbouring_pairs as neighbouring_pairs
    from lapwing.theory.divergences import hockey_stick as hockey_stick
    from lapwing.theory.divergences import total_variation as total_variation
    from lapwing.theory.filters import AdvancedFilter as AdvancedFilter
    from lapwing.theory.filters import ConcentratedOdometer as ConcentratedOdometer
    from lapwing.theory.filters import LedgerFilter as LedgerFilter
    from lapwing.theory.finite import FiniteMechanism as FiniteMechanism
    from lapwing.theory.finite import adaptive as adaptive
    from lapwing.theory.finite import deterministic as deterministic
    from lapwing.theory.finite import from_kernel as from_kernel
    from lapwing.theory.finite import post_processed as post_processed
    from lapwing.theory.guarantees import Guarantee as Guarantee
    from lapwing.theory.loss import LossLaw as LossLaw
    from lapwing.theory.loss import loss_law as loss_law
    from lapwing.theory.meaning import in_words as in_words
    from lapwing.theory.sensitivity import Norm as Norm
    from lapwing.theory.verify import Claim as Claim
    from lapwing.theory.verify import Rejected as Rejected
    from lapwing.theory.verify import Verified as Verified
    from lapwing.theory.verify import tight_delta as tight_delta
    from lapwing.theory.verify import tight_odds as tight_odds

_MODULES = (
    "attacks",
    "broken",
    "composition",
    "databases",
    "divergences",
    "filters",
    "finite",
    "gaussian",
    "guarantees",
    "iterated_weights",
    "loss",
    "meaning",
    "plots",
    "sensitivity",
    "tail_bounds",
    "verify",
)

_HOMES = {
    "AdvancedFilter": "filters",
    "Claim": "verify",
    "ConcentratedOdometer": "filters",
    "FiniteMechanism": "finite",
    "Guarantee": "guarantees",
    "LedgerFilter": "filters",
    "LossLaw": "loss",
    "Norm": "sensitivity",
    "Population": "databases",
    "Rejected": "verify",
    "Rule": "composition",
    "Universe": "databases",
    "Verified": "verify",
    "adaptive": "finite",
    "adjacent": "databases",
    "deterministic": "finite",
    "distance": "databases",
    "from_kernel": "finite",
    "hockey_stick": "divergences",
    "how_many": "composition",
    "in_words": "meaning",
    "loss_law": "loss",
    "neighbouring_pairs": "databases",
    "post_processed": "finite",
    "tight_delta": "verify",
    "tight_odds": "verify",
    "total_variation": "divergences",
}

__all__ = [  # noqa: RUF022 - modules first; made from the tables above by hand, because tools read it without running anything
    "attacks",
    "broken",
    "composition",
    "databases",
    "divergences",
    "filters",
    "finite",
    "gaussian",
    "guarantees",
    "iterated_weights",
    "loss",
    "meaning",
    "plots",
    "sensitivity",
    "tail_bounds",
    "verify",
    "AdvancedFilter",
    "Claim",
    "ConcentratedOdometer",
    "FiniteMechanism",
    "Guarantee",
    "LedgerFilter",
    "LossLaw",
    "Norm",
    "Population",
    "Rejected",
    "Rule",
    "Universe",
    "Verified",
    "adaptive",
    "adjacent",
    "deterministic",
    "distance",
    "from_kernel",
    "hockey_stick",
    "how_many",
    "in_words",
    "loss_law",
    "neighbouring_pairs",
    "post_processed",
    "tight_delta",
    "tight_odds",
    "total_variation",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
