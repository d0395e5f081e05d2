"""The statistics that preparation buys: noisy profiles of the rows of each table with several rows per unit."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

from lapwing.catalog import Declaration
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.curator.charged_release import ChargedRelease
from lapwing.curator.stored_tables import decode
from lapwing.engines.state import StateDirectory
from lapwing.errors import BudgetRefused
from lapwing.kernel.accounting import LOSS_UNITS
from lapwing.kernel.canonical import digest
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Plan
from lapwing.kernel.release import NoisyTable
from lapwing.ledger.connect import OWNER_ANALYST, admit_owner
from lapwing.ledger.protocol import Ledger
from lapwing.ledger.purchases import BlockName, PurchaseKind, PurchaseRecord
from lapwing.planning.noise_choice import pure_facts, pure_share
from lapwing.planning.profiles import block_profile_plan, profile_figures, profile_plan

PROFILED_AT_FIRST = 32
"""Blocks of a new version that get profiles; those that close later get theirs."""
SHARE_OF_A_BLOCK = Fraction(1, 16)
"""The part of ``statistics_share`` for the profiles of a block: those of a month are used together, and a person pays for each block."""
_PROFILE = "p"
ROWS_GUESSED = 10**6
"""Assumed rows of a table for which only an upper bound is known."""


def rows_of_table(name: str, table: TableFacts, bought: Mapping[str, Contributions], units: int | None) -> float:
    """The approximate public number of rows of a table: bought, declared, or else a fixed guess. Of one with blocks, of a block."""
    if name in bought:
        return bought[name].rows()
    if table.rows_per_unit_max == 1 and (units is not None or bought):
        return float(units) if units is not None else max(item.units() for item in bought.values())
    return float(min(table.rows_max, ROWS_GUESSED))


class PreparedData(Protocol):
    """What a curator knows of a prepared version, and its answers to plans."""

    @property
    def declaration(self) -> Declaration: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def state(self) -> StateDirectory: ...
    def answer(self, plan: Plan, *, summary: str, purchase: PurchaseRecord, analyst: str) -> ChargedRelease: ...


def buy_statistics(curator: PreparedData, *, anew: bool) -> None:
    """Buy the profiles of every table without any, or of all. They are public; that of its rows helps to plan on all later versions.

    Of tables with blocks of time, those of the blocks that have closed since.
    """
    _buy_block_profiles(curator)
    known = curator.state.statistics()
    unknown = [table for table in _profiled_tables(curator) if anew or table not in known]
    budget, share = curator.declaration.budget(), curator.declaration.declared_budget.statistics_share
    if not unknown or not share:
        return
    admit_owner(curator.ledger)
    facts, loss = curator.facts, Fraction(int(budget.loss_total * share / len(unknown)), LOSS_UNITS)
    if budget.order is not None:  # with Laplace noise, so that the pure side of the account stays open
        facts, loss = pure_facts(facts), pure_share(budget, loss)
    for table in unknown:
        plan, record = profile_plan(table, facts, loss=loss), PurchaseRecord(PurchaseKind.STATISTICS, name=table)
        summary = f"statistics: rows per unit of {table}"
        try:
            released = curator.answer(plan, summary=summary, purchase=record, analyst=OWNER_ANALYST).released
        except BudgetRefused:
            continue
        known[table] = profile_figures(table, facts, released)
        curator.state.save_statistics(known)


def _buy_block_profiles(curator: PreparedData) -> None:
    """Buy the profiles of the blocks that have closed since the newest that has some; at first, of the newest blocks.

    Blocks that were passed over stay without: what bounds were chosen from does not change afterwards.
    """
    budget, share = curator.declaration.budget(), curator.declaration.declared_budget.statistics_share
    facts = curator.facts
    tables = {name: table for name, table in facts.tables.items() if table.rows_per_unit_max > 1 and table.blocks is not None}
    if not tables or not share:
        return
    admit_owner(curator.ledger)
    loss = Fraction(int(budget.loss_total * share * SHARE_OF_A_BLOCK / len(tables)), LOSS_UNITS)
    facts, loss = (facts, loss) if budget.order is None else (pure_facts(facts), pure_share(budget, loss))
    for name, table in tables.items():
        assert table.blocks is not None
        known = block_profiles(curator.ledger, facts, name, *table.blocks)
        first = max(known) + 1 if known else max(table.blocks[0], table.blocks[1] - PROFILED_AT_FIRST + 1)
        corrected = dict(table.corrected)
        for block in range(first, table.blocks[1] + 1):
            bought = BlockName(profiles_key(name), _PROFILE, block, corrected.get(block, 0))
            plan = block_profile_plan(name, block, facts, loss=loss)
            try:
                record = PurchaseRecord(PurchaseKind.BLOCK, name=str(bought))
                curator.answer(plan, summary=f"statistics: profiles of a block of {name}", purchase=record, analyst=OWNER_ANALYST)
            except BudgetRefused:
                break


def profiles_key(table: str) -> str:
    """The first part of the names of a table's profiles."""
    return digest(("profiles", table))[:32]


def block_profiles(ledger: Ledger, facts: Facts, table: str, first: int, last: int) -> dict[int, tuple[NoisyTable, ...]]:
    """The bought profiles of these blocks; of a corrected one, those from before. They are public."""
    found: dict[int, tuple[NoisyTable, ...]] = {}
    ends = BlockName.ends(profiles_key(table), _PROFILE, first, last)
    for item in ledger.named(*ends, version=facts.version):
        found.setdefault(BlockName.of_text(item.name).block, decode(item.stored.payload).tables)
    return found


def tables_without_profiles(curator: PreparedData) -> list[str]:
    """The tables of which only another version has profiles, or that have statistics from before there were any."""
    known, version = curator.state.statistics(), curator.facts.version
    return [table for table in _profiled_tables(curator) if table in known and known[table].get("version") != version]


def _profiled_tables(curator: PreparedData) -> list[str]:
    return [name for name, table in curator.facts.tables.items() if table.rows_per_unit_max > 1 and table.blocks is None]
