"""The terms of a charge: the ledger holds the statement, and the price follows from the charge in one of a few ways.

A statement with bounds from norms has two charges, the norms first; if they were bought before, only its own part is charged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.answers.display.budget import epsilon_of_cost
from lapwing.curator.curator import Curator, Entry, EntryKind
from lapwing.kernel.accounting import Cost

_NORMS = re.compile(r"norms [0-9a-f]+: ")
DIGITS = 6
"""Digits of a price as people write it: the charge is a whole number of small units and nearly exact."""


@dataclass(frozen=True, slots=True)
class ReplayTerms:
    """A statement that was charged, and the epsilons it may have been asked for, the likeliest first."""

    sql: str
    epsilons: tuple[str, ...]


def asked_before(curator: Curator, entries: Sequence[Entry], charge: int) -> ReplayTerms | None:
    """The terms of a charge among these entries, newest first; None if it is not for a statement."""
    reserved = [entry for entry in entries if entry.kind is EntryKind.RESERVE]
    place = next((place for place, entry in enumerate(reserved) if entry.charge_id == charge), None)
    if place is None or _NORMS.match(reserved[place].detail):
        return None
    entry, budget = reserved[place], curator.balance().budget
    own = [one for one in reserved[place + 1 :] if one.analyst == entry.analyst]
    before = Cost.zero()
    for earlier in own:
        if _NORMS.sub("", earlier.detail, count=1) != entry.detail or earlier.detail == entry.detail:
            break
        before += earlier.cost
    part = 1 - Fraction(curator.prepared.declared_budget.norms_share)
    scaled = Cost(int(entry.cost.loss / part), entry.cost.delta, None if entry.cost.pure is None else int(entry.cost.pure / part))
    costs = [entry.cost + before, entry.cost, scaled]
    return ReplayTerms(entry.detail, tuple(dict.fromkeys(f"{epsilon_of_cost(budget, cost):.{DIGITS}g}" for cost in costs)))
