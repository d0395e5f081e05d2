"""The content of an exhibit of the collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lapwing.theory.finite import FiniteMechanism
from lapwing.theory.verify import Claim


@dataclass(frozen=True, slots=True)
class Specimen:
    """A mechanism that breaks its claim, and one that satisfies the same claim.

    ``pairs`` are neighbours, of whatever kind of database the two mechanisms take (hence ``Any``): all small ones where that is feasible,
    else a family that contains the published counter-example.
    """

    name: str
    claim: Claim
    wrong: FiniteMechanism[Any, Any]
    right: FiniteMechanism[Any, Any]
    pairs: tuple[tuple[Any, Any], ...]
    mistake: str
    """What was done wrong, and why the argument for it fails."""
    remedy: str
    """What the correct version does instead."""
    reference: str
    """The source that describes the mistake, or proves the correct version."""
