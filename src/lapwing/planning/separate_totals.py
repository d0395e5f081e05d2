"""Totals of ROLLUP and the like that are measured apart: which levels of groups may be, for how much, and whether adding up is worse.

A total that is added up from released groups has the noise of all of them and lacks what their bounds cut off; measured apart, for a
small part of the price, it has noise of its own and a bound that fits it. It need not equal the sum of its groups then: answers say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from lapwing.planning.drafts import Draft
from lapwing.planning.planned import Part
from lapwing.statements import PrivateQuery

LEVELS_MOST = 3
"""Levels of one query that may be measured apart: those with the fewest groups. More would leave too little of the price to each."""
SHARE = Fraction(1, 5)
"""What a level that is measured apart gets of the price of its query; the finest groups keep the rest."""
SHARES_MOST = Fraction(1, 2)
"""What all of them get at most."""
CLEARLY_BETTER = 0.8
"""The error is to be below this share of that of adding up, since the groups become noisier by it."""
RATIO_LOSS = 0.05
"""How much what is cut off matters to an average, of whose sum and count the same share is missing."""


@dataclass(frozen=True, slots=True)
class TotalDraft:
    """A level of a query of the statement, drafted as a query of its own."""

    of: int
    """Number of the query."""
    kept: tuple[int, ...]
    """Numbers of the keys that tell its groups apart."""
    draft: Draft
    terms: float
    """How many finest groups a total is of."""


def most_queries(query: PrivateQuery) -> int:
    """How many queries a private query may be measured as."""
    return 1 + min(len(_coarser(query)), LEVELS_MOST)


def _coarser(query: PrivateQuery) -> tuple[tuple[int, ...], ...]:
    """The levels above the finest, where that is asked for too: else it would be measured for nothing."""
    every = tuple(range(len(query.keys)))
    levels = tuple(dict.fromkeys(query.levels or ()))
    return tuple(kept for kept in levels if kept != every) if every in levels else ()


def total_drafts(number: int, draft: Draft) -> list[TotalDraft]:
    """The levels of a query that could be measured apart: their groups are known."""
    finest = draft.groups
    if finest is None:
        return []
    drafts = []
    for kept in _coarser(draft.query):
        groups = tuple(dict.fromkeys(tuple(group[key] for key in kept) for group in finest))
        query = replace(draft.query, keys=tuple(draft.query.keys[key] for key in kept), groups=None, levels=None)
        if 0 < len(groups) < len(finest):
            drafts.append(TotalDraft(number, kept, replace(draft, query=query, groups=groups), len(finest) / len(groups)))
    return sorted(drafts, key=lambda total: len(total.draft.groups or ()))[:LEVELS_MOST]


def share_of_totals(drafts: list[Draft], totals: list[TotalDraft]) -> Fraction:
    """What of the statement's price goes to totals that are measured apart."""
    vectors = sum(draft.vectors for draft in drafts)
    share = sum((SHARE * draft.vectors * sum(total.of == number for total in totals) for number, draft in enumerate(drafts)), Fraction(0))
    return min(share / max(vectors, 1), SHARES_MOST)


def is_better(apart: Part, groups: Part, *, terms: float) -> bool:
    """Whether a total that is measured apart is predicted to be clearly better than one that adds up ``terms`` groups."""
    if apart.number is None or bool(apart.cuts) != bool(groups.cuts):
        return False
    if not groups.cuts:
        return apart.choice.error < CLEARLY_BETTER * _error(groups.choice.noise, groups.choice.truncation, terms)
    for name, added in groups.cuts.items():
        if (own := apart.cuts.get(name)) is not None:
            matters = RATIO_LOSS if name in groups.together else 1.0
            of_sum = _error(added.choice.noise, matters * added.choice.bias, terms)
            return _error(own.choice.noise, matters * own.choice.bias, 1.0) < CLEARLY_BETTER * of_sum
    return False


def _error(noise: float, bias: float, terms: float) -> float:
    """Of so many groups added up: their noise is independent, what is cut off is not."""
    return math.hypot(noise * math.sqrt(terms), bias * terms)
