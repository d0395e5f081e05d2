"""From private queries and a price to a certified plan: the bounds of each query, and the split of the price among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lapwing.contribution.model import ContributionModel
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.errors import Refused
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Plan, UnitNorms
from lapwing.planning.drafting_by_norms import drafted_by_norms, norm_bounds
from lapwing.planning.drafting_by_rows import drafted_by_rows
from lapwing.planning.drafts import Draft, DraftedPart, PlanningFacts, most_queries
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.group_totals import scaled_parts, totals_of
from lapwing.planning.planned import GroupLimits, Part, PlannedStatement, Price
from lapwing.planning.ratio_estimator import GroupsAndTotals
from lapwing.planning.separate_totals import TotalDraft, is_better, most_levels, share_of_totals, total_drafts
from lapwing.planning.vector_noise import KEY_SHARES
from lapwing.statements import PrivateQuery


@dataclass(frozen=True, slots=True)
class DraftedStatement:
    """The drafted queries of a statement, which can be planned at any price with any norms."""

    known: PlanningFacts
    drafts: list[Draft]
    """One for each private query; then totals to which groups are scaled, and quantiles that are measured as queries of their own."""
    quantiles: Mapping[int, int]
    """By number of a private query: the number of the draft of its quantiles."""
    pairs: Mapping[int, GroupsAndTotals]
    apart: list[TotalDraft]
    scaled_groups: bool
    queries: int
    """How many private queries the statement has: its first drafts."""

    @staticmethod
    def of(queries: Sequence[PrivateQuery], known: PlanningFacts, finder: GroupFinder, *, scaled_groups: bool = False) -> DraftedStatement:
        """The drafts of these queries, or ``Refused``. With ``scaled_groups``, counts and sums of groups are scaled to totals."""
        own = sum(most_queries(query, known.facts) for query in queries)
        most = own + sum(1 if scaled_groups else most_levels(query) for query in queries)
        split = [Draft.of(query, known, finder, queries=most).split(known.facts) for query in queries]
        drafts = [draft for draft, _ in split]
        totals, pairs = totals_of(drafts, known, finder, queries=most) if scaled_groups else ([], {})
        apart = [] if scaled_groups else [total for number, draft in enumerate(drafts) for total in total_drafts(number, draft)]
        drafts, quantiles = [*drafts, *totals], dict[int, int]()
        for number, (_, of_quantiles) in enumerate(split):
            if of_quantiles is not None:
                quantiles[number] = len(drafts)
                drafts.append(of_quantiles)
        return DraftedStatement(known, drafts, quantiles, pairs, apart, scaled_groups, len(queries))

    def plan(self, price: Price, norms: Mapping[UnitNorms, ContributionModel]) -> PlannedStatement:
        """The plan with the least predicted error for the price; its certified cost is at most the price.

        Bounds come from ``norms`` bought for this statement; the plan names those that are missing. Without them, every vector
        of the statement gets the same share of the loss, and every query that discovers groups the same share of the delta. Totals of
        ROLLUP and the like are added up from the groups, or measured separately if that is predicted to be clearly better.
        """
        known, drafts, apart = self.known, self.drafts, self.apart
        planned = _measured(drafts, known, price, norms, self.pairs)
        wanted = dict.fromkeys(norm for item in planned for norm in item.wanted)
        if wanted:
            totals = _measured([total.draft for total in apart], known, price, norms)
            wanted |= dict.fromkeys(norm for item in totals for norm in item.wanted)
        separate = _with_totals(drafts, apart, known, price, norms)
        measured = tuple(item.query for item in planned if item.query is not None)
        certified, parts = separate or (certify(Plan(measured), known.facts) if measured else None, [item.part for item in planned])
        with_quantiles = [replace(part, quantiles=parts[of] if (of := self.quantiles.get(n)) else None) for n, part in enumerate(parts)]
        return PlannedStatement(certified, tuple(with_quantiles[: self.queries]), known.facts, tuple(wanted), self.scaled_groups)


def plan_statement(
    queries: Sequence[PrivateQuery],
    facts: Facts,
    price: Price,
    *,
    contributions: Mapping[str, Contributions],
    units: int | None,
    limits: GroupLimits,
    finder: GroupFinder,
    norms: Mapping[UnitNorms, ContributionModel] | None = None,
    scaled_groups: bool = False,
) -> PlannedStatement:
    """Drafted and planned once."""
    known = PlanningFacts(facts, contributions, units, limits)
    return DraftedStatement.of(queries, known, finder, scaled_groups=scaled_groups).plan(price, norms or {})


def _with_totals(
    drafts: list[Draft], totals: list[TotalDraft], known: PlanningFacts, price: Price, norms: Mapping[UnitNorms, ContributionModel]
) -> tuple[Certified, list[Part]] | None:
    """The plan that measures separately those totals for which that is clearly better; None if there are none or it is too much work."""
    while totals:
        share = share_of_totals(drafts, totals)
        planned = _measured(drafts, known, Price((1 - share) * price.loss, price.delta), norms)
        first = sum(item.query is not None for item in planned)
        apart = _measured([total.draft for total in totals], known, Price(share * price.loss, price.delta), norms, first=first)
        pairs = list(zip(totals, apart, strict=True))
        better = [total for total, item in pairs if is_better(item.part, planned[total.of].part, terms=total.terms)]
        if len(better) < len(totals):
            totals = better  # fewer of them leave more of the price to the groups: repeat the choice
            continue
        levels = [{total.kept: item.part for total, item in pairs if total.of == number} for number in range(len(drafts))]
        parts = [replace(item.part, apart=of) for item, of in zip(planned, levels, strict=True)]
        try:
            certified = certify(Plan(tuple(item.query for item in (*planned, *apart) if item.query is not None)), known.facts)
        except Refused:
            return None
        return certified, parts
    return None


def _measured(
    drafts: Sequence[Draft],
    known: PlanningFacts,
    price: Price,
    norms: Mapping[UnitNorms, ContributionModel],
    pairs: Mapping[int, GroupsAndTotals] | None = None,
    *,
    first: int = 0,
) -> list[DraftedPart]:
    """The queries with their bounds and noise, numbered from ``first`` on, which share the price; ``pairs`` are scaled to their totals."""
    pairs = pairs or {}
    delta = price.delta / max(sum(draft.groups is None for draft in drafts), 1)
    even = price.loss / max(sum(draft.vectors for draft in drafts), 1)
    by_norms = norm_bounds(drafts, known, Price(price.loss, delta), even, norms, pairs)
    unused = {pair.totals for number, pair in pairs.items() if number not in by_norms.errors}
    vectors = [
        len(by_norms.by_query[n].needed.measures) + KEY_SHARES * (draft.groups is None) if n in by_norms.by_query else draft.vectors
        for n, draft in enumerate(drafts)
        if n not in unused
    ]
    share = price.loss / max(sum(vectors), 1)
    drafted: list[DraftedPart] = []
    for number, draft in enumerate(drafts):
        place = first + sum(item.query is not None for item in drafted)
        if (bounds := by_norms.by_query.get(number)) is not None:
            given = {name: loss for (of, name), loss in by_norms.shares.items() if of == number}
            by_profiles = tuple(wanted for wanted in draft.wanted(known, share) if wanted not in norms)
            part = drafted_by_norms(draft, bounds, known, share, given, delta, number=place)
            drafted.append(replace(part, wanted=by_profiles))
        else:
            drafted.append(drafted_by_rows(draft, known, share, delta, number=place))
        if number in unused:
            drafted[-1] = replace(drafted[-1], query=None)
    parts = scaled_parts([item.part for item in drafted], pairs, by_norms.errors)
    return [replace(item, part=part) for item, part in zip(drafted, parts, strict=True)]


def plan_query(
    query: PrivateQuery,
    facts: Facts,
    price: Price,
    *,
    contributions: Mapping[str, Contributions],
    units: int | None,
    limits: GroupLimits,
    finder: GroupFinder,
) -> PlannedStatement:
    """The plan of a statement that is one private query."""
    return plan_statement((query,), facts, price, contributions=contributions, units=units, limits=limits, finder=finder)
