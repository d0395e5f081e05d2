"""The life cycle of a data set: open, prepare, answer certified plans, retire, close.

The owner's operations are here, and the answer to a finished plan; statements go through ``lapwing.asking.ask``.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lapwing.answers.display.budget import BudgetView
from lapwing.catalog import Declaration, Settings, load
from lapwing.catalog.changes import Change, Verdict, classify, of_versions
from lapwing.contribution.model import NormHistogram
from lapwing.contribution.rows_per_unit import Contributions, contributions_of_tables
from lapwing.curator.block_life import (
    HeldBlocks,
    apply_blocks,
    charged_blocks,
    closed_blocks,
    held_blocks,
    payable_days_named,
    spent_by,
    standing_part,
    write_closed,
)
from lapwing.curator.budget_views import blocks_read_view, newest_block_view
from lapwing.curator.charged_release import ChargedRelease, charged_release, replayed
from lapwing.curator.charged_stream import ChargedStream
from lapwing.curator.cost_estimate import announce_charge, note_reservation
from lapwing.curator.prepared_declarations import PreparedDeclarations, require_never_prepared
from lapwing.curator.request_locks import QuestionQueue
from lapwing.curator.request_name import request_name
from lapwing.curator.statistics import buy_statistics, rows_of_table
from lapwing.curator.version_use import OpenedVersions, one_version
from lapwing.engines.base import Progress, Snapshot, silent
from lapwing.engines.losses import TableLosses, noteworthy, report_of
from lapwing.engines.marks import shared_sources
from lapwing.engines.registry import engine_of
from lapwing.engines.state import StateDirectory
from lapwing.errors import CatalogueError, LedgerError, PreparationError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlocksRead, costs_by_block
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.count_stream import CertifiedStream, StreamPlan, certify_stream
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Plan
from lapwing.kernel.release import require_sampler
from lapwing.ledger.block_balances import BlockSpending
from lapwing.ledger.connect import (
    apply_budget,
    apply_limits,
    default_analyst,
    open_ledger,
    place_of,
    require_owner,
    system_user,
)
from lapwing.ledger.limits import HISTORY_ENTRIES_MAX, require_name
from lapwing.ledger.local.sources import claim, require_unclaimed
from lapwing.ledger.protocol import Balance, Bought, Entry, EntryKind, Ledger, Request, StoredAnswer
from lapwing.ledger.purchases import PurchaseRecord
from lapwing.ledger.settling import PendingCommits
from lapwing.planning.profiles import profiles_of
from lapwing.receipts import Receipt, sign

CATALOGUE_FILE = "lapwing.toml"

__all__ = ["CATALOGUE_FILE", "Balance", "Curator", "Entry", "EntryKind", "Progress", "silent", "system_user"]


class Curator:
    """An opened data set: its declaration, its newest prepared version and its ledger. With ``shared``, many threads ask it at once."""

    def __init__(
        self, catalogue: str | Path, *, settings: Settings | None = None, home: str | Path | None = None, shared: bool = False
    ) -> None:
        path = Path(catalogue)
        self.path = path / CATALOGUE_FILE if path.is_dir() else path
        self.settings = settings or Settings()
        self.declaration: Declaration = load(self.path, settings=self.settings)
        self._text = self.path.read_text(encoding="utf-8")
        require_sampler(self.declaration.dataset.noise)
        self.state = StateDirectory(self.path.resolve().parent)
        self.engine = engine_of(self.declaration, self.state.directory, self.settings)
        self.place = place_of(
            self.declaration,
            local=self.state.ledger_path,
            home=None if home is None else Path(home),
            query_timeout_seconds=self.settings.query_timeout_seconds,
        )
        self.declarations = PreparedDeclarations(self.engine, self.state, self.path, self.settings)
        self._shared = shared
        self._opening = threading.RLock()  # among concurrent threads, one opens
        self._ledger: Ledger | None = None
        self._prepared: dict[int, Declaration] = {}
        self._versions = OpenedVersions(self.state.directory, latest=self.latest, opened=self._opened, end_sessions=self._end_sessions)
        self._settling = PendingCommits()
        self.questions, self.planning = QuestionQueue(), QuestionQueue()
        """Locks with which equal questions may wait for one another, and threads that plan for one analyst do."""
        self.before_closing: list[Callable[[], None]] = []
        """Callbacks to run while version and ledger are still open: sessions store their answers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close files and connections."""
        self._end_sessions()
        ledger, self._ledger = self._ledger, None
        try:
            self._versions.forget_newest()
            self.engine.close()
        finally:  # the ledger is closed for this worker even if the engine raises
            if ledger is not None:
                self._settling.finish(ledger)
                ledger.disconnect()

    def _end_sessions(self) -> None:
        """End the sessions on the version: their answers are stored, and the rows they would read are about to be deleted."""
        for act in tuple(self.before_closing):
            with contextlib.suppress(LedgerError):  # the answers are kept, and storing is retried when the ledger is closed
                act()

    def prepare(
        self,
        *,
        progress: Progress = silent,
        override: str = "",
        append: bool = False,
        accept_losses: bool = True,
        new_version: bool = False,
        profiles: bool = False,
        correct: tuple[date, date] | None = None,
    ) -> int:
        """Write a new version from the sources and open it. The first time this also registers the source and makes its ledger.

        If the catalogue has changed only in policy (see :meth:`policy_changes`), the change is applied and the newest version stays:
        its number is returned, and its stored answers stay free. With ``append``, ``new_version`` or ``profiles`` there is a version in any
        case. ``profiles`` buys the profiles of its tables anew, for ``statistics_share`` of the budget.

        A changed declaration always keeps the ledger. A change that needs the owner's override (another unit, other sources, ...) is
        refused unless ``override`` gives the reason, which becomes an entry. With ``append``, tables that declare ``appended_by`` are made
        from the newest version and the rows appended to the source since; without an older version, or for other tables, nothing changes.

        A data set with blocks of time grows: the blocks that have closed since are written, rows beyond ``keep`` are deleted, and the
        version stays with its answers. ``correct`` writes the blocks of these days (first, last) again; they keep their balances.

        Before anything else is written, a report for the owner alone records what is left out and changed. Losing more than a tenth of a
        table, or more than half of the values of a column, is refused (``rows-lost``) unless ``accept_losses``.
        """
        with self.state.preparing():
            overridden = self.declarations.to_override(self.declaration, override)
            if not (append or new_version or profiles) and self.grows():
                return self._grown(overridden, progress=progress, override=override, accept_losses=accept_losses, correct=correct)
            if correct is not None:
                raise PreparationError("blocks-missing", "there are no blocks of time that could be corrected", hint="run prepare first")
            if append or new_version or profiles or self.policy_changes() is None:
                version = self._new_version(overridden, progress=progress, override=override, append=append, accept_losses=accept_losses)
                buy_statistics(self, anew=profiles)
                return version
            require_owner(self.place)
            ledger = self._open_ledger(override=override, create=self.place.server is not None)
            self._apply_policy(ledger, overridden, override)
            self.state.remember_declared(self._text)
            return self.latest()

    def _grown(
        self, overridden: Sequence[Change], *, progress: Progress, override: str, accept_losses: bool, correct: tuple[date, date] | None
    ) -> int:
        """The newest version with the blocks that have closed since, or with some written again."""
        require_owner(self.place)
        ledger = self._open_ledger(override=override)
        self._apply_policy(ledger, overridden, override)
        self.state.remember_declared(self._text)
        version = self.latest()
        witness = partial(self._witness, version, accepted=accept_losses)
        written = write_closed(self.engine, self.state, self.declaration, version, correct=correct, progress=progress, witness=witness)
        if written is not None:
            ledger.record(EntryKind.VERSION, f"version {version}: {written}")
            self._end_sessions()
            self._versions.forget_newest()
        buy_statistics(self, anew=False)
        return version

    def _apply_policy(self, ledger: Ledger, overridden: Sequence[Change], override: str) -> None:
        """Bring the ledger in line with the catalogue: overrides, the budget, limits, and blocks of time."""
        for change in overridden:
            ledger.record(EntryKind.OVERRIDE, f"{change.where}: {override}")
        apply_budget(ledger, self.declaration.budget(), by=system_user())
        apply_limits(ledger, self.declaration.limits, by=system_user())
        apply_blocks(ledger, self.declaration, reason=override)

    def newest_blocks(self) -> HeldBlocks | None:
        """The blocks of time of the newest version; None if there are none."""
        return held_blocks(self.engine, self.declaration.blocks)

    def late_rows(self) -> dict[str, int]:
        """How many rows came after their block was prepared, by table: exact, for the owner alone."""
        newest = self.newest_blocks()
        return {} if newest is None else self.engine.late_rows(self.declaration, newest.version)

    def policy_changes(self) -> tuple[str, ...] | None:
        """The keys of the catalogue that :meth:`prepare` would apply without a new version; None where it would make one or add blocks."""
        return self.declarations.policy_changes(self.declaration, self._text)

    def grows(self) -> bool:
        """Whether :meth:`prepare` would add blocks of time to the newest version."""
        return self.declarations.grow_to(self.declaration)

    def stored_answers(self) -> int:
        """The number of stored answers about the newest version; these are free."""
        return len(self.ledger.bought(version=self.latest(), limit=HISTORY_ENTRIES_MAX))

    def _new_version(self, overridden: Sequence[Change], *, progress: Progress, override: str, append: bool, accept_losses: bool) -> int:
        source_id, home = self.declaration.dataset.id, self.place.home
        by_table = self.engine.source_marks(self.declaration)
        for shared in shared_sources(self.declaration, by_table):
            raise shared
        marks = frozenset().union(*(by_table[table.name] for table in self.declaration.tables))
        by_source = {self.declaration.source_path(table): by_table[table.name] for table in self.declaration.all_tables}
        require_unclaimed(home, source_id, by_source, override=override)
        require_owner(self.place)
        # A prepared state had a ledger. Without it and without a record of it, the spending is unknown.
        is_new = self.place.server is not None or self.declarations.last() is None
        ledger = self._open_ledger(override=override, create=is_new)
        claim(home, ledger, source_id, marks, override=override)
        if self.declarations.last() is None:
            require_never_prepared(ledger, override)
        self._apply_policy(ledger, overridden, override)
        existing = self.engine.versions()
        version, key, newest = self.state.next_version(existing), self.state.ranking_key(), max(existing, default=None)
        append_to = newest if append else None
        declared = self.declaration.blocks
        blocks = None if declared is None else closed_blocks(self.declaration, declared)
        self.engine.prepare(
            self.declaration,
            self._text,
            version=version,
            ranking_key=key,
            progress=progress,
            append_to=append_to,
            blocks=blocks,
            witness=partial(self._witness, version, accepted=accept_losses),
        )
        # Only now: a preparation can fail because of a row, so a failed one must not leave a gap in the version numbers that analysts see.
        self.state.remember(version)
        self.state.remember_declared(self._text)
        if blocks is not None:
            self.state.remember_blocks(version, blocks)
        ledger.record(EntryKind.VERSION, f"version {version} prepared")
        self._end_sessions()
        self._versions.forget_newest()
        return version

    def _witness(self, version: int, losses: Sequence[TableLosses], *, accepted: bool) -> None:
        """Write the owner's report, and stop if too much is lost. Neither the ledger nor analysts get the figures."""
        path = self.state.save_report(version, report_of(losses))
        worries = [worry for item in losses for worry in item.worries]
        if worries and not accepted:
            message = f"{', and '.join(worries)}; .lapwing/{path.name} says why, for the owner alone"
            raise PreparationError("rows-lost", message, hint="mend the catalogue or the source, or accept the losses")

    def losses(self, version: int) -> list[dict[str, Any]]:
        """The lines of the owner's report on tables that lose or change rows. The figures are exact: for the owner alone."""
        report = self.state.report(version)
        return [] if report is None else noteworthy(report)

    def contributions(self) -> dict[str, Contributions]:
        """The bought histograms of rows per unit, by table."""
        return contributions_of_tables(self.state.statistics())

    def profiles(self) -> dict[str, NormHistogram]:
        """The profiles that were bought of the newest version, by the name of their norms."""
        return profiles_of(self.state.statistics(), self.facts)

    def rows_known(self, table: str) -> float:
        """The approximate public number of rows of a table: bought, declared, or else a fixed guess."""
        return rows_of_table(table, self.facts.table(table), self.contributions(), self.prepared.dataset.units)

    def retire(self, version: int) -> None:
        """Delete a version's rows; its charges stay. Running questions of this process finish first."""
        require_owner(self.place)
        with self._versions.unread(version):
            self.state.remember(version)
            if self.state.declared() is None and version == self.latest():
                self.state.remember_declared(self.engine.stored_text(version))
            self.engine.retire(version)
        self.ledger.record(EntryKind.RETIRE, f"version {version} retired")

    def reopen(self, reason: str) -> None:
        """Open the data set to analysts again after an incident."""
        self.ledger.reopen(reason)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the source."""
        return self._open_ledger()

    def _open_ledger(self, *, override: str = "", create: bool = False) -> Ledger:
        with self._opening:
            if self._ledger is None:
                self._ledger = open_ledger(self.place, self.declaration, override=override, create=create, shared=self._shared)
            return self._ledger

    def latest(self) -> int:
        """The newest version; raises an error with the hint to prepare one."""
        self.state.require_usable()
        versions = self.engine.versions()
        if not versions:
            raise PreparationError("not-prepared", "the data set has no prepared version", hint="run prepare first")
        return versions[-1]

    @property
    def analyst_default(self) -> str:
        """The default analyst."""
        return default_analyst(self.place)

    def receipt(self, stored: StoredAnswer, *, analyst: str) -> Receipt | None:
        """The receipt for a stored answer, if this analyst may read it; None if no keys are configured."""
        return None if self.place.keys is None else sign(self.ledger.statement(stored.charge_id).seen_by(analyst), self.place.keys)

    def receipt_of_charge(self, charge_id: int) -> Receipt | None:
        """The receipt of a charge; None if no keys are configured, ``receipt-missing`` if there is no such charge."""
        return None if self.place.keys is None else sign(self.ledger.statement(charge_id), self.place.keys)

    @property
    def snapshot(self) -> Snapshot:
        """The newest prepared version; inside a question, the version that it started with."""
        return self._versions.snapshot

    def _opened(self, version: int) -> Snapshot:
        prepared = self.declarations.of(version)
        outdated = [one for one in of_versions(classify(prepared, self.declaration)) if one.verdict is not Verdict.NEXT_VERSION]
        if outdated:
            listed = ", ".join(change.where for change in outdated)
            raise PreparationError("snapshot-outdated", f"the catalogue changed since the last version: {listed}", hint="run prepare")
        self._prepared[version] = prepared
        return self.engine.open(version, ranking_key=self.state.ranking_key())

    @property
    def prepared(self) -> Declaration:
        """The declaration that the version in use was prepared from.

        Everything that shapes a plan is read from here, not from today's catalogue: the same question has the same plan while the version
        is used, so its stored answer is found. Its budget defines the shares of the account; the ledger holds the amount that may be spent.
        """
        return self._prepared[self.facts.version]

    @property
    def facts(self) -> Facts:
        """Public facts of the newest version."""
        return self.snapshot.facts

    def balance(self, *, override: str = "") -> Balance:
        """The budget and the amount spent. With an owner's ``override``, also for a ledger that opens only with one."""
        return self._open_ledger(override=override).balance()

    def budget(self) -> BudgetView:
        """The same as text; of a data set with blocks of time, of the newest block."""
        facts = self.facts if self.declaration.blocks is not None and self.engine.versions() else None
        return newest_block_view(self.view_of(self.balance()), self.declaration.blocks, self.block_spending(), facts)

    def budget_of(self, reads: Iterable[BlocksRead]) -> BudgetView:
        """The budget after a statement that reads this: of the block that has the least left."""
        balance, spending = self.balance(), self.block_spending()
        left = spent_by(reads, balance, spending)
        return blocks_read_view(self.view_of(balance), self.declaration.blocks, spending, self.facts, left)

    def balance_for(self, reads: Iterable[BlocksRead]) -> Balance:
        """The balance from which queries are paid: of blocks of time, the most that any of those that they read has spent."""
        balance = self.balance()
        return replace(balance, spent=spent_by(reads, balance, self.block_spending()))

    def block_spending(self) -> BlockSpending | None:
        """What blocks of time have spent; the ledger is not asked where none are declared."""
        return None if self.declaration.blocks is None else self.ledger.blocks()

    def budget_waiting(self) -> str:
        """A note on a higher budget in the catalogue that is not yet in force; empty if there is none."""
        declared, in_force = self.declaration.declared_budget.epsilon, self.balance().budget.epsilon
        if declared <= in_force:
            return ""
        by = "an owner prepares" if self.place.server is None else "two owners decide on it"
        return f"the catalogue says epsilon {float(declared):g}; epsilon {float(in_force):g} is in force until {by}"

    def view_of(self, balance: Balance) -> BudgetView:
        """A balance of this data set as text."""
        unit, is_row = self.declaration.dataset.unit, self.declaration.protects_rows
        return BudgetView(balance.budget, balance.ceiling, balance.spent, balance.closed, unit, is_row)

    def history(self, *, limit: int = 100) -> tuple[Entry, ...]:
        """Newest entries of the ledger first."""
        return self.ledger.history(limit=limit)

    def preview(self, plan: Plan) -> Certified:
        """Certify without touching data or budget."""
        return certify(plan, self.facts)

    def released_before(
        self, is_wanted: Callable[[Bought], bool], *, limit: int, analyst: str | None = None
    ) -> tuple[tuple[Bought, ChargedRelease], ...]:
        """The releases about this version for the wanted statements, newest first, among the newest ``limit`` answers. Free.

        Only those that this analyst may see.
        """
        ledger, who = self.ledger, self.analyst_default if analyst is None else analyst
        if ledger.balance().closed:
            return ()
        bought = ledger.bought(version=self.facts.version, limit=limit, analyst=who)
        stored_answers = [(item, self._found(item.digest, who)) for item in bought if is_wanted(item)]
        return tuple((item, replayed(stored)) for item, stored in stored_answers if stored is not None)

    def stored(self, certified: Certified, *, analyst: str) -> ChargedRelease | None:
        """The earlier release for this exact plan, if this analyst may see it. Free."""
        found = None if self.ledger.balance().closed else self._found(certified.digest, analyst)
        return None if found is None else replayed(found)

    def _found(self, digest: str, analyst: str, request_id: str | None = None) -> StoredAnswer | None:
        """The stored release: the one bought by the present request, otherwise by any request."""
        return self.ledger.find(digest, analyst=analyst, request_id=request_name() or request_id)

    @one_version()
    def answer(
        self,
        plan: Plan,
        *,
        summary: str,
        purchase: PurchaseRecord | None = None,
        analyst: str | None = None,
        request_id: str | None = None,
    ) -> ChargedRelease:
        """The release of a plan; free if the same plan was answered before and this analyst may see that answer."""
        certified = self.preview(plan)
        self.snapshot.check(certified)
        ledger, who = self.ledger, self.analyst_default if analyst is None else analyst
        require_name(who)
        self._settling.require_settled(ledger)
        stored = self._settling.pending(ledger, analyst=who, digest=certified.digest)
        balance = ledger.balance()
        if stored is None and not balance.closed:
            stored = self._found(certified.digest, who, request_id)
        if stored is not None:
            note_reservation(stored.charge_id)
            return replayed(stored)
        request, hold = self._charge(certified, balance, who, request_id, summary, purchase), announce_charge(certified, self.rows_known)
        snapshot, sampler, settling = self.snapshot, self.declaration.dataset.noise, self._settling
        with payable_days_named(self.declaration.blocks, ledger, certified.blocks):
            return charged_release(certified, request, ledger=ledger, snapshot=snapshot, settling=settling, sampler=sampler, hold=hold)

    def require_payable(self, analyst: str, cost: Cost, reads: Sequence[BlocksRead], person: Cost | None = None) -> None:
        """Refuse, before anything is charged, queries that read these blocks at this cost in all (the ``person``: all or more)."""
        ranges = costs_by_block(reads, lambda _: cost) or standing_part(cost, self.facts)
        with payable_days_named(self.declaration.blocks, self.ledger, ranges):
            self.ledger.require_payable(analyst, cost, ranges, (person or cost) if ranges else None)

    def _charge(
        self, certified: Certified | CertifiedStream, by: Balance, who: str, name: str | None, summary: str, purchase: PurchaseRecord | None
    ) -> Request:
        """The charge for a plan or a stream on the open version, paid by this balance; ``name`` is the request's."""
        ranges, person = charged_blocks(certified, self.facts)
        if self.facts.order != by.budget.order:
            raise CatalogueError("budget-account", "the version is charged at another order than the ledger", hint="run prepare")
        return Request(
            analyst=who,
            request_id=secrets.token_hex(16) if name is None else name,
            digest=certified.digest,
            cost=certified.cost,
            version=self.facts.version,
            summary=summary,
            purchase=purchase,
            ranges=ranges,
            person=person,
        )

    @one_version()
    def open_stream(self, plan: StreamPlan, *, summary: str, purchase: PurchaseRecord, analyst: str | None = None) -> ChargedStream:
        """Charge for a whole stream of counts and open it. Each call opens and charges a new stream."""
        certified = certify_stream(plan, self.facts)
        ledger, who = self.ledger, self.analyst_default if analyst is None else analyst
        require_name(who)
        self._settling.require_settled(ledger)
        request = self._charge(certified, ledger.balance(), who, None, summary, purchase)
        version = self._versions.kept()
        try:
            return ChargedStream(plan, request, ledger=ledger, version=version, settling=self._settling, rows=self.rows_known)
        except BaseException:
            version.give_back()
            raise
