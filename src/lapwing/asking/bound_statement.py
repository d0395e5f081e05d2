"""A statement bound once, to be planned at any price. Plans depend only on public facts and bought statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial

from lapwing.answers.assembly import check_post
from lapwing.answers.post_processing import evaluate
from lapwing.asking.accuracy_targets import PlanAt
from lapwing.catalog import Declaration, RowUnit, UnitPath
from lapwing.catalog.facts import blocks_of_table
from lapwing.contribution.model import ContributionModel, NormHistogram
from lapwing.curator.curator import Curator
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account, Budget
from lapwing.kernel.blocks import BlocksRead, reach_of
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Measure, Query, UnitNorms
from lapwing.planning.drafts import PlanningFacts
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.key_delta import delta_for_keys
from lapwing.planning.noise_choice import with_better_noise
from lapwing.planning.plan import DraftedStatement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.sql import bind
from lapwing.sql.rows.block_ranges import with_blocks
from lapwing.sql.text.privacy_words import Question
from lapwing.sql.text.refusals import span_in
from lapwing.statements import DecidedRows, PrivateQuery, Statement


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A bound statement that can be planned at any loss."""

    statement: Statement
    plan_at: PlanAt
    budget: Budget
    """The budget in force when it was bound."""
    plan_with: Callable[[Fraction, Mapping[UnitNorms, ContributionModel]], PlannedStatement]
    """The plan at a loss, with bounds from these norms, or from those that preparation bought."""
    plan_without_profiles: Callable[[Fraction, Mapping[UnitNorms, ContributionModel]], PlannedStatement]
    """The same, with bounds from these norms alone."""
    reads: tuple[BlocksRead, ...] = ()
    """Which blocks of time its queries read, and the tables without time."""
    moment: int = 0
    """The time of the request, in microseconds since 1970, in UTC."""

    def without_profiles(self) -> BoundStatement:
        """The same without profiles, for prices that are solved for an accuracy: their steps are norms, pilots and answers."""
        plan_with = self.plan_without_profiles
        return replace(self, plan_at=lambda loss: plan_with(loss, {}), plan_with=plan_with)

    def checked_plan(self, loss: Fraction) -> PlannedStatement:
        """The plan at this loss, whose answer is known to be computable; or ``Refused``."""
        planned = self.plan_at(loss)
        check_post(planned, self.statement.post)
        return planned


def bound_statement(
    curator: Curator,
    asked: Question | str,
    *,
    dialect: str,
    scaled_groups: bool = False,
    moment: int | None = None,
    decided: tuple[DecidedRows, ...] = (),
) -> BoundStatement:
    """The statement of a question, or of a text without Lapwing's words; or ``Refused``. No protected data is read.

    Asked at this ``moment``, or now. ``decided`` are the bought rows of the subqueries that decide which rows count.
    """
    question = Question(asked, None, explain=False) if isinstance(asked, str) else asked
    declaration, facts, settings = curator.declaration, curator.facts, curator.settings
    units, references = unit_columns(declaration), references_of(declaration)
    public_rows = cache(curator.snapshot.public_rows)
    asked_at = moment_of_asking() if moment is None else moment
    statement = bind(
        question.statement,
        facts,
        settings=settings,
        unit_columns=units,
        references=references,
        dialect=dialect,
        tokens=question.tokens,
        public_rows=public_rows,
        moment=asked_at,
        decided=decided,
    )
    statement = with_blocks(statement, facts, {table.name: blocks_of_table(table) for table in declaration.tables if table.blocks})
    return replace(planned_at_will(curator, statement, scaled_groups=scaled_groups, public_rows=public_rows), moment=asked_at)


def planned_at_will(
    curator: Curator,
    statement: Statement,
    *,
    scaled_groups: bool = False,
    public_rows: Callable[[str], Mapping[str, Sequence[Value]] | None] | None = None,
) -> BoundStatement:
    """A statement that can be planned at any loss."""
    prepared, facts, settings = curator.prepared, curator.facts, curator.settings
    public_rows = public_rows or cache(curator.snapshot.public_rows)
    finder = GroupFinder(evaluate, public_rows)
    reads = tuple(reach_of(query.source) for query in statement.privates)
    balance, contributions, of_version = curator.balance_for(reads), curator.contributions(), curator.profiles()
    scale, first_ceiling = prepared.budget(), prepared.ceiling()
    norms_share = prepared.declared_budget.norms_share
    limits = GroupLimits(settings.known_cells_max, settings.groups_max, settings.key_values_max)

    def was_bought(digest: str) -> bool:
        return curator.ledger.find(digest) is not None

    drafted: dict[tuple[Account, bool], DraftedStatement] = {}

    def plan_with(
        loss: Fraction, norms: Mapping[UnitNorms, ContributionModel], profiles: Mapping[str, NormHistogram] = of_version
    ) -> PlannedStatement:
        def plan(facts: Facts, price: Price) -> PlannedStatement:
            by = facts.account, bool(profiles)
            if by not in drafted:
                known = PlanningFacts(facts, contributions, prepared.dataset.units, limits, profiles, norms_share)
                drafted[by] = DraftedStatement.of(statement.privates, known, finder, scaled_groups=scaled_groups)
            return drafted[by].plan(price, norms)

        try:
            # the present spending: norms may have been bought since the statement was bound
            spent = balance.spent if scale.order is None else curator.balance_for(reads).spent

            def plan_under(ceiling: Budget) -> PlannedStatement:
                price = Price(loss, delta_for_keys(ceiling, loss))
                return with_better_noise(plan, facts, price, scale=scale, budget=balance.budget, spent=spent, was_bought=was_bought)

            planned = plan_under(balance.ceiling)
            if first_ceiling == balance.ceiling or not planned.discovers_keys or was_bought(planned.certified.digest):
                return planned
            before = plan_under(first_ceiling)  # the ceiling was raised since: the earlier purchase is found
            return before if was_bought(before.certified.digest) else planned
        except Refused as error:
            error.span = error.span or span_in(statement, error.code)
            raise

    return BoundStatement(statement, lambda loss: plan_with(loss, {}), scale, plan_with, partial(plan_with, profiles={}), reads)


class SteadyPlanner:
    """Plans private queries with known groups so that their plan depends on nothing that was spent: the same today and in a year."""

    def __init__(self, curator: Curator) -> None:
        prepared, settings = curator.prepared, curator.settings
        limits = GroupLimits(settings.known_cells_max, settings.groups_max, settings.key_values_max)
        share = prepared.declared_budget.norms_share
        self._known = PlanningFacts(curator.facts, curator.contributions(), prepared.dataset.units, limits, {}, share)
        self._finder = GroupFinder(evaluate, cache(curator.snapshot.public_rows))
        self._drafted: dict[PrivateQuery, DraftedStatement] = {}

    def groups(self, query: PrivateQuery | Query) -> tuple[tuple[Value, ...], ...] | None:
        """Its groups, where they are known beforehand."""
        assert not isinstance(query.source, UnitNorms)
        limits = self._known.limits
        cells, values = limits.known_cells_max, limits.key_values_max
        return self._finder.find(query.source, query.keys, self._known.facts, cells_max=cells, values_max=values).groups

    def plan(
        self,
        query: PrivateQuery,
        loss: Fraction,
        norms: Mapping[UnitNorms, ContributionModel] | None = None,
        profiles: Mapping[str, NormHistogram] | None = None,
    ) -> PlannedStatement:
        """The plan at this loss, with bounds from these norms and profiles. In an account with an order its noise is Gaussian."""
        return self._draft(query, profiles or {}).plan(Price(loss, Fraction(0)), norms or {})

    def fits(
        self, query: PrivateQuery, norms: Mapping[UnitNorms, ContributionModel], profiles: Mapping[str, NormHistogram]
    ) -> dict[Measure, ContributionModel]:
        """The fitted norms of each measure of the query, from these norms and profiles."""
        drafted = self._draft(query, profiles)
        return drafted.drafts[0].query_to_bound(drafted.known).all_fits(norms)

    def _draft(self, query: PrivateQuery, profiles: Mapping[str, NormHistogram]) -> DraftedStatement:
        if query not in self._drafted:
            self._drafted[query] = DraftedStatement.of((query,), self._known, self._finder)
        drafted = self._drafted[query]
        return replace(drafted, known=replace(self._known, profiles=profiles))


def moment_of_asking() -> int:
    """The present time in microseconds since 1970, in UTC."""
    return time.time_ns() // 1_000


def unit_columns(declaration: Declaration) -> dict[str, str]:
    """Each protected table's own column that holds the unit, where there is one."""
    return {table.name: column for table in declaration.tables if (column := unit_column(table.unit)) is not None}


def references_of(declaration: Declaration) -> dict[tuple[str, str], tuple[str, str]]:
    """Declared keys on the way to the unit."""
    hops = [(table.name, table.unit.hops[0]) for table in declaration.tables if table.unit.hops]
    return {(name, hop.column): (hop.target.table, hop.target.column) for name, hop in hops}


def unit_column(path: UnitPath | RowUnit) -> str | None:
    """The table's own column that holds the unit: the end of the path, or a foreign key directly to it."""
    if isinstance(path, RowUnit):
        return None
    if not path.hops:
        return path.end.column
    if len(path.hops) == 1 and path.hops[0].target == path.end:
        return path.hops[0].column
    return None
