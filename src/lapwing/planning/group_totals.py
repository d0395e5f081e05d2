"""Totals that are measured in addition to the groups scaled to them: as drafts of a statement, and in its finished parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lapwing.planning.drafts import Draft, PlanningFacts
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.planned import Part
from lapwing.planning.ratio_estimator import GroupsAndTotals, Scaling, nothing_to_scale, paired, require_scalable, total_query


def totals_of(
    drafts: Sequence[Draft], known: PlanningFacts, finder: GroupFinder, *, queries: int
) -> tuple[list[Draft], dict[int, GroupsAndTotals]]:
    """Drafts of the totals to which groups are scaled, to be appended to the others; and each pair by the number of its query of groups.

    ``queries``: the most queries of the statement.
    """
    totals: list[Draft] = []
    pairs: dict[int, GroupsAndTotals] = {}
    for number, draft in enumerate(drafts):
        query = total_query(draft.query, draft.needed)
        if query is not None:
            require_scalable(draft.query, None if draft.groups is None else len(draft.groups), known.facts.account)
            total = Draft.of(query, known, finder, queries=queries)
            pairs[number] = paired(draft.needed, total.needed, len(drafts) + len(totals))
            totals.append(total)
    if not pairs:
        raise nothing_to_scale()
    return totals, pairs


def scaled_parts(
    parts: Sequence[Part], pairs: Mapping[int, GroupsAndTotals], errors: Mapping[int, Mapping[str, float]]
) -> tuple[Part, ...]:
    """The parts, with the totals to which groups are scaled. ``errors`` are the predicted errors of scaled vectors."""
    scaled = list(parts)
    for number, pair in pairs.items():
        totals = parts[pair.totals]
        if number in errors and totals.number is not None:
            of = {name: Scaling(totals.number, vector, totals.cuts[vector], errors[number][name]) for name, vector in pair.vectors.items()}
            scaled[number] = replace(parts[number], scaled=of)
    return tuple(scaled)
