"""The faults there are: a name, and a function that causes it while clients work and gives what came of it.

A module adds its own with ``@fault("name")``; :mod:`tests.faults.campaign` imports the modules and picks from the table at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.ledger.cluster import Cluster


@dataclass(slots=True)
class Outcome:
    """What one round of a fault did."""

    counts: Counter[str] = field(default_factory=Counter)
    """How often each kind of fault happened: ``kill -9 worker``, ``kill -9 postmaster`` ..."""
    violations: list[str] = field(default_factory=list)
    histories: list[Path] = field(default_factory=list)
    """What clients saw; kept if there is a violation."""


Fault = Callable[[Cluster, Path, int], Outcome]
"""A round of some minutes: on a running server (which may be killed, but runs again at the end), in an empty directory, with a
seed."""

FAULTS: dict[str, Fault] = {}
WEIGHTS: dict[str, int] = {}
"""How often a campaign picks each, compared with the others."""


def fault(name: str, *, weight: int = 1) -> Callable[[Fault], Fault]:
    """Put a function into the table."""

    def add(function: Fault) -> Fault:
        assert name not in FAULTS, name
        FAULTS[name] = function
        WEIGHTS[name] = weight
        return function

    return add
