"""SQL statements as plan shapes for the sensitivity oracle: bound and planned as an analyst's would be, from public facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account, budget_for
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Plan
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.prices import statement_loss
from lapwing.sql import bind
from tests.support.sql_queries import SqlQueries
from tests.support.sql_relations import RelationalQueries

FEW_ROWS = Contributions(((1.0, 900.0), (2.0, 90.0), (9.0, 10.0)))
"""Contributions under which small bounds are predicted to be best: most units have one row."""
MANY_ROWS = Contributions(((2.0, 10.0), (11.0, 1_000.0)))
"""Contributions under which large bounds are."""
PRICES = [(Fraction(e), c) for e in ("0.05", "1", "20") for c in (None, FEW_ROWS, MANY_ROWS)]
"""Prices and contributions over which statements are spread, so that every bounding plan occurs."""


@dataclass(slots=True)
class SqlShape:
    """A statement at a price. Calling it plans it for some facts; the same facts give the very same plan."""

    sql: str
    epsilon: Fraction
    contributions: Contributions | None
    unit_columns: Mapping[str, str]
    references: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    delta: Fraction = Fraction(1, 2**30)
    dialect: str = "duckdb"
    _planned: list[tuple[Facts, PlannedStatement]] = field(default_factory=list)

    def planned(self, facts: Facts) -> PlannedStatement:
        """Bind and plan."""
        approximate = facts.account is Account.APPROXIMATE
        budget = budget_for(epsilon=Fraction(100), delta=self.delta if approximate else Fraction(0))
        settings = Settings()
        statement = bind(
            self.sql, facts, settings=settings, unit_columns=self.unit_columns, references=self.references, dialect=self.dialect
        )
        known = {} if self.contributions is None else dict.fromkeys(facts.tables, self.contributions)
        return plan_statement(
            statement.privates,
            facts,
            Price(statement_loss(budget, self.epsilon), budget.delta_keys / 1024),
            contributions=known,
            units=None,
            limits=GroupLimits(settings.known_cells_max, settings.groups_max),
            finder=GroupFinder(evaluate),
        )

    def __call__(self, facts: Facts) -> Plan:
        """The plan; planned once for equal facts, because planning takes longer than running on a small world."""
        for known, planned in self._planned:
            if known == facts:
                return planned.certified.plan
        made = self.planned(facts)
        self._planned.append((facts, made))
        return made.certified.plan


def relational_shapes(
    facts: Facts, unit_columns: Mapping[str, str], references: Mapping[tuple[str, str], tuple[str, str]], *, count: int, seed: int
) -> dict[str, SqlShape]:
    """The same for statements about several tables. Those that measure nothing are left out."""
    return shapes_of(RelationalQueries(facts, unit_columns, references, seed=seed), facts, unit_columns, references, count=count)


def shapes_of(
    queries: RelationalQueries,
    facts: Facts,
    unit_columns: Mapping[str, str],
    references: Mapping[tuple[str, str], tuple[str, str]],
    *,
    count: int,
) -> dict[str, SqlShape]:
    """So many different statements of a generator that measure something, over a spread of prices and contributions."""
    found: dict[str, SqlShape] = {}
    while len(found) < count:
        epsilon, contributions = PRICES[len(found) % len(PRICES)]
        shape = SqlShape(queries.statement().text, epsilon, contributions, unit_columns, references)
        try:
            if shape.planned(facts).measured is not None:
                found[shape.sql] = shape
        except Refused:
            continue
    return found


def sql_shapes(facts: Facts, unit_columns: Mapping[str, str], *, count: int, seed: int, first: Sequence[str] = ()) -> dict[str, SqlShape]:
    """``count`` different statements that are answered, over a spread of prices and contributions, so that every bounding plan occurs.

    Those of ``first`` come first, priced as if units had many rows; on a pure account those that need a delta are left out.
    """
    queries = SqlQueries(facts, unit_columns, seed=seed)
    given = [SqlShape(text, Fraction(1), MANY_ROWS, unit_columns) for text in first]
    found: dict[str, SqlShape] = {}
    while len(found) < count:
        epsilon, contributions = PRICES[len(found) % len(PRICES)]
        shape = given.pop(0) if given else SqlShape(queries.statement().text, epsilon, contributions, unit_columns)
        try:
            if shape.planned(facts).measured is not None:
                found[shape.sql] = shape
        except Refused:
            continue
    return found
