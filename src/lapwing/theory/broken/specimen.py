"""What an exhibit of the collection consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lapwing.theory.finite import FiniteMechanism
from lapwing.theory.verify import Claim


@dataclass(frozen=True, slots=True)
class Specimen:
    """A mechanism with a claim it does not keep, beside one that keeps the same claim.

    ``pairs`` are neighbours, of whatever kind of database the two mechanisms take (hence ``Any``): all small ones where that is feasible,
    else a family that contains the published counter-example.
    """

    name: str
    claim: Claim
    wrong: FiniteMechanism[Any, Any]
    right: FiniteMechanism[Any, Any]
    pairs: tuple[tuple[Any, Any], ...]
    mistake: str
    """What was done, and why the argument for it fails."""
    remedy: str
    """What the right version does instead."""
    reference: str
    """Who described the mistake, or where the right version is proved."""
