"""A drafted query: its groups and measures, before its bounds and noise are chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from lapwing.contribution.bounding import BoundingInputs, unit_noise_of
from lapwing.contribution.deduplication import fitting, lost_by_lowering, without_repeats
from lapwing.contribution.dominance import column_within, table_within
from lapwing.contribution.histograms import name_of, norms_of, norms_of_rows
from lapwing.contribution.model import NormHistogram
from lapwing.contribution.relations import computes_rows, contributions_of, fans_out, keeps_rows, kept_of, tables_of
from lapwing.contribution.row_sample import RankError
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.contribution.sampling import one_in_of
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.blocks import reach_of
from lapwing.kernel.domains import Domain, RealDomain
from lapwing.kernel.expressions import Column, Value, not_null
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Filter, GridSum, Measure, Query, Scan, UnitNorms
from lapwing.kernel.stability import Shape, domain_of, shape_of
from lapwing.kernel.workload import scans_of
from lapwing.planning.centres import Centre, centres_of
from lapwing.planning.grids import grid_of
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.group_enumeration.listing import TooManyGroups
from lapwing.planning.loss_weights import weight_of
from lapwing.planning.measures import CountMeasure, Measured, measured
from lapwing.planning.per_unit_values import narrowed
from lapwing.planning.planned import GroupLimits, Part
from lapwing.planning.quantile_bars import rank_noise
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.planning.value_ranges import ranges_of
from lapwing.planning.vector_bounds import QueryToBound, wanted_norms
from lapwing.planning.vector_noise import KEY_SHARES
from lapwing.statements import QUANTILES, AggregateKind, PrivateQuery

LISTED_BEFORE = 20_000
"""Most listed values of a key before there was a setting: older versions keep this limit."""
CLIP_BITS = 10
"""Clipped shares of a unit are rounded to this many binary places."""


@dataclass(frozen=True, slots=True)
class PlanningFacts:
    """The public inputs of planning."""

    facts: Facts
    contributions: Mapping[str, Contributions]
    """Rows per unit of tables whose statistics were bought."""
    units: int | None
    limits: GroupLimits
    profiles: Mapping[str, NormHistogram] = field(default_factory=dict)
    """Norms of whole tables that preparation bought, by the name of the norms."""
    norms_share: Fraction = Fraction(1, 10)
    """The part of a price that norms may cost."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A query before its bounds and noise are chosen."""

    query: PrivateQuery
    shape: Shape
    needed: Measured
    groups: tuple[tuple[Value, ...], ...] | None
    lost: float
    """Predicted share of the rows left out to limit the rows of one unit in every step."""
    too_many: TooManyGroups | None = None
    """The reason why its groups are discovered although all of them are declared; None otherwise."""
    nothing_to_sum: Mapping[int, frozenset[tuple[Value, ...]]] = field(default_factory=dict)
    """By number of a SUM: the groups in which no row can have a value, by declaration."""
    centres: Mapping[str, Centre] = field(default_factory=dict)
    """By sum of an average: where it is centred if its bound is chosen from norms."""

    @staticmethod
    def of(query: PrivateQuery, known: PlanningFacts, finder: GroupFinder, *, queries: int) -> Draft:
        """One of ``queries`` private queries of a statement."""
        facts, limits = known.facts, known.limits
        whole = without_repeats(query, facts)
        query = fitting(whole, facts, queries=queries)
        lost = lost_by_lowering(whole.source, query.source, facts, known.contributions, known.units)
        shape = shape_of(query.source, facts)
        groups, too_many = query.groups, None
        if groups is None:
            values_max = limits.key_values_max if facts.typed_numbers else LISTED_BEFORE
            possible = finder.find(query.source, query.keys, facts, cells_max=limits.known_cells_max, values_max=values_max)
            groups, too_many = possible.groups, possible.too_many if facts.typed_numbers else None
        if groups is None:
            _require_discoverable(too_many, facts)
        if groups is None and any(isinstance(domain_of(key, shape.columns), RealDomain) for _, key in query.keys):
            message, hint = "a real number makes too many groups to know them beforehand", "bin it into whole numbers, as in FLOOR(x / 10)"
            raise Refused("groups-by-real", message, hint=hint)
        needed = measured(query.aggregates, shape, ranges_of(query.source, facts) if facts.planning_rules >= 2 else None)
        nothing = _nothing_to_sum(query, groups, shape, known, finder)
        if groups == ():  # no row can meet the conditions: there is nothing to measure
            return Draft(query, shape, replace(needed, measures={}, quantiles={}), groups, lost, too_many, nothing, {})
        return Draft(query, shape, needed, groups, lost, too_many, nothing, centres_of(needed, query.source, facts, known.profiles))

    def certified_for(self, facts: Facts) -> Facts:
        """The facts that it is certified for: over several blocks of time neighbours replace a unit's rows, in either relation."""
        return reach_of(self.query.source).facts(facts)

    def split(self, facts: Facts) -> tuple[Draft, Draft | None]:
        """What it counts and adds up, and its quantiles as a draft of their own; None if both are best bounded together.

        Quantiles need a low limit on the rows of a unit, counts and sums a high bound from norms. Groups that are discovered are
        discovered once, and totals of ROLLUP have one query, so these keep one bound.
        """
        if not _is_splittable(self.query, facts) or self.groups is None or self.shape.rows_per_unit == 1 or not self.vectors:
            return self, None
        of_quantiles = tuple(recipe for recipe in self.needed.recipes if isinstance(recipe, QuantileMeasure))
        quantiles = replace(self, needed=replace(self.needed, measures={}, recipes=of_quantiles), centres={}, nothing_to_sum={})
        return replace(self, needed=replace(self.needed, quantiles={})), quantiles

    def query_to_bound(self, known: PlanningFacts) -> QueryToBound:
        """The query for which bounds are chosen from norms."""
        facts, contributions = known.facts, known.contributions
        cells = None if self.groups is None else len(self.groups)
        source = self.query.source
        allowed = max(scan.rows_per_unit for scan in scans_of(source))
        bought = all(table in contributions for table in tables_of(source))
        rows = contributions_of(source, facts, contributions, None).rows() if bought else None
        one_in = one_in_of(source, facts, contributions, known.units)
        within = table_within(source, facts) if known.profiles else None
        return QueryToBound(
            source,
            self.query.keys,
            self.shape,
            self.needed,
            cells,
            facts.account,
            allowed,
            rows,
            one_in,
            facts.planning_rules,
            known.profiles,
            None if within is None else known.profiles.get(name_of(norms_of_rows(within, facts))),
            {} if within is None else self._sum_profiles(within, known),
            self.centres,
        )

    def _sum_profiles(self, within: Scan, known: PlanningFacts) -> dict[Measure, NormHistogram]:
        """By sum of this query: the profile of the same column in the table that its rows are from."""
        shape, found = shape_of(within, known.facts), dict[Measure, NormHistogram]()
        for measure in self.needed.measures.values():
            column = column_within(self.query.source, measure)
            if column is None or not isinstance(measure, GridSum):
                continue
            grid = grid_of(Column(column), shape)
            profile = known.profiles.get(name_of(norms_of(within, (), grid, shape, rules=known.facts.planning_rules)))
            if profile is not None and measure.lower == grid.lower >= 0 and measure.steps == grid.steps:
                found[replace(measure, offset=0)] = profile
        return found

    def wanted(self, known: PlanningFacts, share: Fraction) -> tuple[UnitNorms, ...]:
        """The norms to buy for it if each vector gets this share of the loss."""
        account, loss = known.facts.account, float(share * known.norms_share)
        norms_noise = unit_noise_of(account, loss, self.certified_for(known.facts).neighbours) if loss else math.inf
        return wanted_norms(self.query_to_bound(known), unit_noise=self.situation(known, share).unit_noise, norms_noise=norms_noise)

    def _ranks(self, facts: Facts, share: Fraction) -> tuple[RankError, ...]:
        """The errors in ranks by which the limit on rows is chosen, if only quantiles are requested."""
        if facts.planning_rules < 2 or self.needed.measures or not self.needed.quantiles or share <= 0:
            return ()
        facts = self.certified_for(facts)
        return rank_noise(self.needed.quantiles, facts, share, alone=self.groups is not None and len(self.groups) == 1)

    @property
    def vectors(self) -> int:
        """How many vectors and sets of quantiles share the loss; discovering groups counts as ``KEY_SHARES`` of them."""
        return len(self.needed.measures) + len(self.needed.quantiles) + (KEY_SHARES if self.groups is None else 0)

    def narrowed(self, known: PlanningFacts, situation: BoundingInputs) -> tuple[Draft, dict[int, Fraction]]:
        """With narrower ends for what is added up over per-unit rows, and those ends."""
        cells = situation.groups_guess if situation.cells is None else max(situation.cells, 1)
        source, noise = self.query.source, situation.unit_noise
        needed, ends = narrowed(
            self.needed, source, known.facts, contributions=known.contributions, units=known.units, noise=noise, cells=cells
        )
        return replace(self, needed=needed), ends

    def rows(self, known: PlanningFacts, situation: BoundingInputs) -> float | None:
        """The predicted number of rows, from bought statistics."""
        if any(table not in known.contributions for table in tables_of(self.query.source)):
            return None
        bought = situation.contributions
        return situation.kept * (bought.units() if self.shape.rows_per_unit == 1 else bought.rows())

    def situation(self, known: PlanningFacts, share: Fraction) -> BoundingInputs:
        """The inputs of the choice of bounds if each vector gets this share of the loss."""
        query, needed, facts = self.query, self.needed, known.facts
        return BoundingInputs(
            contributions=contributions_of(query.source, facts, known.contributions, known.units),
            rows_per_unit_max=self.shape.rows_per_unit,
            kept=kept_of(query.source, facts),
            cells=None if self.groups is None else len(self.groups),
            account=facts.account,
            loss_per_vector=float(share),
            has_average=needed.has_average,
            units_only=needed.units_only,
            keys_only=self.groups is None and not needed.measures and not needed.quantiles,
            fans_out=fans_out(query.source, facts),
            keeps_rows=keeps_rows(query.source),
            blocks=max(scan.blocks_per_unit for scan in scans_of(query.source)),
            values=max((r.most for r in needed.recipes if isinstance(r, CountMeasure) and r.most is not None), default=None),
            distinct=needed.has_distinct,
            ratios=needed.has_moments or bool(needed.quantiles),
            ranks=self._ranks(facts, share),
            computed=computes_rows(query.source),
            real_keys=any(_is_computed_real(domain_of(key, self.shape.columns)) for _, key in query.keys),
            loss_weight=weight_of(needed, of_noise=False),
            noise_weight=weight_of(needed, of_noise=True),
        )


def most_queries(query: PrivateQuery, facts: Facts) -> int:
    """The maximum number of queries that measure the groups of one private query."""
    return 2 if _is_splittable(query, facts) else 1


def _is_splittable(query: PrivateQuery, facts: Facts) -> bool:
    """Whether it has quantiles beside other aggregates."""
    return facts.planning_rules >= 2 and query.levels is None and len({item.kind in QUANTILES for item in query.aggregates}) == 2


def _nothing_to_sum(
    query: PrivateQuery, groups: tuple[tuple[Value, ...], ...] | None, shape: Shape, known: PlanningFacts, finder: GroupFinder
) -> dict[int, frozenset[tuple[Value, ...]]]:
    """By number of a SUM: the groups that have no row with a value, because the declaration rules it out. SQL's sum of those is NULL."""
    found: dict[int, frozenset[tuple[Value, ...]]] = {}
    if not groups or query.groups is not None or query.levels is not None or not known.facts.typed_numbers:
        return found
    limits = known.limits
    for number, aggregate in enumerate(query.aggregates):
        if aggregate.kind is AggregateKind.SUM and aggregate.value is not None and domain_of(aggregate.value, shape.columns).nullable:
            there = Filter(query.source, not_null(aggregate.value))
            possible = finder.find(there, query.keys, known.facts, cells_max=limits.known_cells_max, values_max=limits.key_values_max)
            if possible.groups is not None:
                found[number] = frozenset(groups) - frozenset(possible.groups)
    return found


def _require_discoverable(too_many: TooManyGroups | None, facts: Facts) -> None:
    """Refuse groups that are not known beforehand and are not to be discovered: a declared list that is too long, or without a delta."""
    if too_many is not None and too_many.is_list:
        message = f"{too_many}: groups that are declared are listed, never discovered"
        hint = f"keep fewer of them with WHERE, group by something with fewer values, or let the owner raise {too_many.setting}"
        raise Refused("too-many-groups", message, hint=hint)
    if facts.account is not Account.PURE:
        return
    if too_many is not None:
        message = f"{too_many}; this data set has no delta to discover groups with"
        hint = f"group by something with fewer values, as in FLOOR(x / 10), or let the owner raise {too_many.setting}"
        raise Refused("keys-need-delta", message, hint=hint)
    raise Refused(
        "keys-need-delta",
        "the values of a GROUP BY key are not declared, and this data set has no delta to discover them with",
        hint="group by a declared column, or let the owner declare its values",
    )


@dataclass(frozen=True, slots=True)
class DraftedPart:
    """A part with the query that measures it, in which every vector has its noise; None where nothing is measured."""

    part: Part
    query: Query | None
    wanted: tuple[UnitNorms, ...] = ()
    """The wanted norms: those that would bound it if they were bought."""


def _is_computed_real(domain: Domain) -> bool:
    return isinstance(domain, RealDomain) and domain.steps is None
