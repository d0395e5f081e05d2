"""Releases under the ledger: planned for free, bought with one charge, and served from the ledger afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.answers.answer import CostView
from lapwing.answers.display.budget import BudgetView
from lapwing.answers.display.number_format import figure
from lapwing.asking.bound_statement import unit_columns
from lapwing.asking.older_charges import record_of
from lapwing.asking.options import Number, exact_number
from lapwing.curator.charged_release import ChargedRelease
from lapwing.curator.curator import Curator
from lapwing.curator.version_use import one_version
from lapwing.errors import Refused
from lapwing.kernel.accounting import Cost
from lapwing.ledger.protocol import Bought
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.prices import statement_loss
from lapwing.releases.explanation import explained
from lapwing.releases.plan import PlannedRelease, planned_release
from lapwing.releases.released import Release, ReleaseTerms, facts_of_table
from lapwing.releases.request import QuantileRequest, ReleaseRequest
from lapwing.releases.sections import sections_of, table_axes, table_section

LISTED_MAX = 10_000
"""Newest answers of a version that are searched for releases."""
ROWS_A_SECOND = {"duckdb": 2e7, "postgres": 1e6, "spark": 2e6}
"""Rows that one table of a release reads in a second on a slow and busy machine: at most a third of the measured rate."""
TIME_SHARE = 0.5
"""The share of an engine's time limit that a release may be expected to take."""
CUT_OFF = 0.05
"""The predicted share of rows left out by the default bound on the rows of a unit."""


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """A release with its price, before it is paid."""

    curator: Curator
    planned: PlannedRelease
    analyst: str
    rows: float | None

    @property
    def cost(self) -> CostView:
        """Its cost; nothing if it was bought before."""
        free = self.curator.stored(self.planned.certified, analyst=self.analyst) is not None
        return CostView.of(self.planned.certified.cost, self.curator.balance().budget, free=free)

    def explain(self) -> str:
        """The measures, their noise and the cost. Free; reads no data."""
        return explained(self.planned, self.cost, self.curator.budget(), rows=self.rows, notes=_notes(self.curator, self.planned.request))

    def __str__(self) -> str:
        return self.explain()

    @one_version()
    def run(self, *, request_id: str | None = None) -> Release:
        """Buy it: one charge for all of it. The same release again is free."""
        planned, curator = self.planned, self.curator
        text = planned.request.text()
        record = PurchaseRecord(PurchaseKind.RELEASE, name=planned.request.name)
        answered = curator.answer(planned.certified.plan, summary=text, purchase=record, analyst=self.analyst, request_id=request_id)
        return _release(curator, planned.request, planned.tables, answered, planned.certified.cost, curator.budget(), analyst=self.analyst)


@one_version()
def plan_release(
    curator: Curator,
    wanted: Sequence[QuantileRequest],
    *,
    name: str,
    table: str | None = None,
    epsilon: Number | None = None,
    rows_per_unit: int | None = None,
    shares: Sequence[Number] = (),
    analyst: str | None = None,
) -> ReleasePlan:
    """The plan of a release of one table, at the price of one statement of this epsilon."""
    facts = curator.facts
    if not wanted:
        raise Refused("release-parts", "the release has no parts: add marginals, trees of ranges or synthetic tables")
    of_table = table_of(curator, wanted, table)
    divided = tuple(exact_number(share, "share") for share in shares)
    request = ReleaseRequest(name, of_table, tuple(wanted), _rows_per_unit(curator, of_table, rows_per_unit), divided)
    asked = curator.declaration.defaults.epsilon if epsilon is None else exact_number(epsilon, "epsilon")
    loss = statement_loss(curator.prepared.budget(), asked)
    rows = rows_of(curator, of_table)
    planned = planned_release(request, facts, loss=loss, rows=rows)
    _require_time(curator, planned)
    curator.snapshot.check(planned.certified)
    return ReleasePlan(curator, planned, curator.analyst_default if analyst is None else analyst, rows)


@one_version()
def releases(curator: Curator, *, analyst: str | None = None) -> tuple[Release, ...]:
    """Releases of the newest version that this analyst may see, newest first. Free."""
    found = curator.released_before(is_release, limit=LISTED_MAX, analyst=analyst)
    budget, who = curator.budget(), curator.analyst_default if analyst is None else analyst
    return tuple(_found(curator, bought, answered, budget, analyst=who) for bought, answered in found)


@one_version()
def release_named(curator: Curator, name: str, *, analyst: str | None = None) -> Release:
    """The newest release of this name; ``release-unknown`` where there is none."""
    found = curator.released_before(lambda bought: is_release(bought, name), limit=LISTED_MAX, analyst=analyst)
    if not found:
        raise unknown_release(name)
    return _found(curator, *found[0], curator.budget(), analyst=curator.analyst_default if analyst is None else analyst)


def is_release(bought: Bought, name: str | None = None) -> bool:
    """Whether a charge bought a release; with ``name``, that of this name."""
    record = record_of(bought)
    return record.kind is PurchaseKind.RELEASE and name in (None, record.name)


def unknown_release(name: str) -> Refused:
    """The refusal of a release that does not exist or may not be seen."""
    return Refused("release-unknown", f"there is no release {name!r} of the newest version", hint="see which ones there are")


@one_version()
def release_of(curator: Curator, bought: Bought, *, analyst: str) -> Release | None:
    """A release that the ledger lists; None if this analyst may no longer see it."""
    found = curator.released_before(lambda one: one.summary == bought.summary, limit=LISTED_MAX, analyst=analyst)
    budget = curator.budget()
    return next((_found(curator, one, answered, budget, analyst=analyst) for one, answered in found if one.digest == bought.digest), None)


def rows_of(curator: Curator, table: str) -> float | None:
    """The approximate public number of rows of a table; None if it is unknown."""
    facts, bought = curator.facts.table(table), curator.contributions()
    if table in bought:
        return bought[table].rows()
    units = curator.prepared.dataset.units
    return float(units) if facts.rows_per_unit_max == 1 and units is not None else None


def table_of(curator: Curator, wanted: Sequence[QuantileRequest], table: str | None) -> str:
    """The table that is named, or the only one that has all of the columns."""
    if table is not None:
        curator.facts.table(table)
        return table
    columns = {column for part in wanted for column in part.columns}
    holding = [name for name, facts in curator.facts.tables.items() if columns <= set(facts.columns)]
    if len(holding) != 1:
        message = f"{'no table has' if not holding else 'several tables have'} all of these columns"
        raise Refused("release-table", message, hint="name the table")
    return holding[0]


def _require_time(curator: Curator, planned: PlannedRelease) -> None:
    """Refuse, by public facts, a release that could exceed the engine's time limit: that would be an incident after the charge."""
    rows = curator.rows_known(planned.request.table) * len(planned.tables)
    seconds = rows / ROWS_A_SECOND[curator.declaration.dataset.engine.value]
    allowed = curator.settings.query_timeout_seconds * TIME_SHARE
    if seconds > allowed:
        message = (
            f"{len(planned.tables):,} tables of so many rows could take {seconds:,.0f} seconds; at most {allowed:,.0f} are planned for"
        )
        raise Refused("release-size", message, hint="release fewer columns or ways at a time, or let the owner raise query_timeout_seconds")


def _rows_per_unit(curator: Curator, table: str, asked: int | None) -> int:
    """The bound on the rows of a unit: as requested, otherwise so high that few rows are predicted to be left out."""
    most, known = curator.facts.table(table).rows_per_unit_max, curator.contributions().get(table)
    if asked is not None:
        if asked < 1:
            raise Refused("rows-per-unit", "a unit counts for at least one row")
        return min(asked, most)
    if known is None:
        return most
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if known.excess(middle) <= CUT_OFF * known.rows() else (middle + 1, high)
    return low


def _notes(curator: Curator, request: ReleaseRequest) -> tuple[str, ...]:
    """The note of every answer on contribution bounding."""
    rows, known = request.rows_per_unit, curator.contributions().get(request.table)
    if rows == curator.facts.table(request.table).rows_per_unit_max:
        return ()
    lost = "" if known is None else f": about {figure(100 * known.excess(rows) / max(known.rows(), 1.0), digits=2)} % is predicted missing"
    unit = curator.declaration.dataset.unit
    return (f"a {unit} counts for at most {rows} rows in this release{lost}, and the error bars do not reach to it",)


def _found(curator: Curator, bought: Bought, answered: ChargedRelease, budget: BudgetView, *, analyst: str) -> Release:
    """A release from the bytes in the ledger; its tables name their contents."""
    request = ReleaseRequest.of_text(bought.summary)
    sections = sections_of(request, curator.facts)
    tables = tuple(table_axes(table, sections[table_section(table, sections)]) for table in answered.released.tables)
    return _release(curator, request, tables, answered, bought.cost, budget, analyst=analyst)


def _release(
    curator: Curator,
    request: ReleaseRequest,
    tables: tuple[tuple[int, ...], ...],
    answered: ChargedRelease,
    cost: Cost,
    budget: BudgetView,
    *,
    analyst: str,
) -> Release:
    named = {name: column for name, column in unit_columns(curator.declaration).items() if name == request.table}
    terms = ReleaseTerms(
        request,
        facts_of_table(curator.facts, request.table),
        named,
        sections_of(request, curator.facts),
        tables,
        _notes(curator, request),
        CostView.of(cost, budget.budget, free=False),
        budget,
        answered.stored.payload,
        curator.receipt(answered.stored, analyst=analyst),
    )
    return Release(terms, answered.released)
