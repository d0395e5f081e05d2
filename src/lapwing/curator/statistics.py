"""The statistics that preparation buys: noisy profiles of the rows of each table with several rows per unit."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

from lapwing.catalog import Declaration
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.curator.charged_release import ChargedRelease
from lapwing.engines.state import StateDirectory
from lapwing.errors import BudgetRefused
from lapwing.kernel.accounting import LOSS_UNITS
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Plan
from lapwing.ledger.connect import OWNER_ANALYST, admit_owner
from lapwing.ledger.protocol import Ledger
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.planning.noise_choice import pure_facts, pure_share
from lapwing.planning.profiles import profile_figures, profile_plan

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
    """Buy the profiles of every table without any, or of all. They are public; that of its rows helps to plan on all later versions."""
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


def tables_without_profiles(curator: PreparedData) -> list[str]:
    """The tables of which only another version has profiles, or that have statistics from before there were any."""
    known, version = curator.state.statistics(), curator.facts.version
    return [table for table in _profiled_tables(curator) if table in known and known[table].get("version") != version]


def _profiled_tables(curator: PreparedData) -> list[str]:
    return [name for name, table in curator.facts.tables.items() if table.rows_per_unit_max > 1 and table.blocks is None]
