"""Separately measured totals of ROLLUP and the like: the eligible levels, their price, and whether adding up is worse.

A total added up from released groups has the noise of all of them and their clipping bias; measured separately, for a
small part of the price, it has its own noise and a suitable bound. It need not equal the sum of its groups then, as the answer notes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from lapwing.planning.drafts import Draft
from lapwing.planning.planned import Part
from lapwing.statements import PrivateQuery

LEVELS_MOST = 3
"""Maximum number of separately measured levels of one query: those with the fewest groups. More would leave too little of the price to
each."""
SHARE = Fraction(1, 5)
"""A separately measured level's share of the price of its query; the finest groups keep the rest."""
SHARES_MOST = Fraction(1, 2)
"""The maximum share of all of them."""
CLEARLY_BETTER = 0.8
"""The error must be below this share of the error of adding up, since the groups become noisier."""
RATIO_LOSS = 0.05
"""Weight of clipping bias for an average, whose sum and count lack the same share."""


@dataclass(frozen=True, slots=True)
class TotalDraft:
    """A level of a query of the statement, drafted as a query of its own."""

    of: int
    """Number of the query."""
    kept: tuple[int, ...]
    """Numbers of the keys that distinguish its groups."""
    draft: Draft
    terms: float
    """The number of finest groups in a total."""


def most_levels(query: PrivateQuery) -> int:
    """The maximum number of separately measured levels of one private query."""
    return min(len(_coarser(query)), LEVELS_MOST)


def _coarser(query: PrivateQuery) -> tuple[tuple[int, ...], ...]:
    """The levels above the finest, if that is requested too: otherwise it would be measured in vain."""
    every = tuple(range(len(query.keys)))
    levels = tuple(dict.fromkeys(query.levels or ()))
    return tuple(kept for kept in levels if kept != every) if every in levels else ()


def total_drafts(number: int, draft: Draft) -> list[TotalDraft]:
    """The levels of a query that could be measured separately: their groups are known."""
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
    """The share of the statement's price for separately measured totals."""
    vectors = sum(draft.vectors for draft in drafts)
    share = sum((SHARE * draft.vectors * sum(total.of == number for total in totals) for number, draft in enumerate(drafts)), Fraction(0))
    return min(share / max(vectors, 1), SHARES_MOST)


def is_better(apart: Part, groups: Part, *, terms: float) -> bool:
    """Whether a separately measured total is predicted to be clearly better than the sum of ``terms`` groups."""
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
    """The error of the sum of that many groups: their noise is independent, their clipping bias is not."""
    return math.hypot(noise * math.sqrt(terms), bias * terms)
