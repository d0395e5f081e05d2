"""What a charge bought, also one from before there were records: then it is read from its line of the history, as it was read then."""

from __future__ import annotations

import re
from fractions import Fraction

from lapwing.answers.display.budget import epsilon_of_cost
from lapwing.curator.curator import Curator, Entry
from lapwing.kernel.accounting import Cost
from lapwing.ledger.protocol import Bought
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord

_LINES = {
    PurchaseKind.NORMS: re.compile(r"norms ([0-9a-f]+): "),
    PurchaseKind.PILOT: re.compile(r"-- pilot()"),
    PurchaseKind.FIRST: re.compile(r"first: ()"),
    PurchaseKind.RELEASE: re.compile(r"release ([^ ]*) "),
    PurchaseKind.WEIGHTS: re.compile(r"weights ()"),
    PurchaseKind.STATISTICS: re.compile(r"statistics: ()"),
}
"""How lines begin; the group is the name of what was bought."""
DIGITS = 6
"""Of a guessed price, as people write it: the charge is a whole number of small units, and nearly exact."""


def record_of(bought: Bought) -> PurchaseRecord:
    """The record of a charge; of an older one, the kind and the name that its line says."""
    return bought.purchase or of_line(bought.summary)


def of_line(line: str) -> PurchaseRecord:
    """What the line of an older charge says."""
    found = ((kind, begins.match(line)) for kind, begins in _LINES.items())
    return next((PurchaseRecord(kind, name=match[1]) for kind, match in found if match), PurchaseRecord(PurchaseKind.STATEMENT))


def guessed_epsilons(curator: Curator, entry: Entry, before: list[Entry]) -> tuple[str, ...]:
    """The epsilons an older statement may have been asked for, the likeliest first; ``before`` are older reservations, newest first.

    A statement whose bounds come from norms has two charges, the norms first; where they were bought before, it is charged its own part.
    """
    budget, of_norms = curator.balance().budget, Cost.zero()
    for earlier in before:
        if earlier.analyst == entry.analyst:
            begins = _LINES[PurchaseKind.NORMS].match(earlier.detail)
            if begins is None or earlier.detail[begins.end() :] != entry.detail:
                break
            of_norms += earlier.cost
    part = 1 - Fraction(curator.prepared.declared_budget.norms_share)
    scaled = Cost(int(entry.cost.loss / part), entry.cost.delta, None if entry.cost.pure is None else int(entry.cost.pure / part))
    costs = [entry.cost + of_norms, entry.cost, scaled]
    return tuple(dict.fromkeys(f"{epsilon_of_cost(budget, cost):.{DIGITS}g}" for cost in costs))
