"""Which tables can have blocks of time: those whose rows hold their own unit and time, and lead no row of another table to its unit."""

from __future__ import annotations

from dataclasses import replace

from lapwing.catalog.blocks import BlockDecl, BlocksDecl
from lapwing.catalog.declaration import RowUnit, TableDecl
from lapwing.catalog.positions import Path
from lapwing.catalog.problems import ProblemReport
from lapwing.catalog.schema import BlocksModel, CatalogueModel
from lapwing.catalog.shape_problems import closest
from lapwing.kernel.accounting import EPSILON_MAX
from lapwing.kernel.block_calendar import Period
from lapwing.kernel.calendar import to_date
from lapwing.kernel.date_functions import days_of
from lapwing.kernel.domains import DateDomain, TimestampDomain

YEAR_MIN, YEAR_MAX = 1800, 2140
"""Ledgers keep the blocks of these years."""
GRACE_DAYS_MAX = 3_660


def build_blocks(
    report: ProblemReport, model: CatalogueModel, tables: tuple[TableDecl, ...]
) -> tuple[BlocksDecl | None, tuple[TableDecl, ...]]:
    """``[blocks]``, and the tables with the blocks that they name."""
    naming = {table.name: model.tables[table.name].blocks for table in tables if model.tables[table.name].blocks}
    if model.blocks is None:
        for name in naming:
            hint = "add [blocks] with `every` and `person_cap`, or leave `blocks` out"
            report.problem("catalogue-missing-key", ("tables", name, "blocks"), "there is no section [blocks]", hint=hint)
        return None, tables
    if not naming:
        hint = 'name the column of dates or times of a table of events: blocks = "day"'
        report.problem("catalogue-missing-key", ("blocks",), "no table names the column of its blocks", hint=hint)
    if model.dataset.preparation == "virtual":
        message = "rows that are not copied can change after their block has closed"
        report.problem("catalogue-contradiction", ("blocks",), message, hint='leave `preparation = "virtual"` out')
    declared = _declared(report, model.blocks)
    parents = {hop.target.table for table in tables for hop in table.unit.hops}
    built = []
    for table in tables:
        if table.name in naming and _can_have_blocks(report, table, naming[table.name], parents=parents):
            built.append(replace(table, blocks=BlockDecl(naming[table.name], declared.every)))
        else:
            built.append(table)
    return declared, tuple(built)


def _declared(report: ProblemReport, model: BlocksModel) -> BlocksDecl:
    if model.person_cap is not None and not 0 < model.person_cap <= EPSILON_MAX:
        hint = 'the most epsilon that one person may lose over a year, or "none"'
        report.problem("catalogue-bad-value", ("blocks", "person_cap"), "`person_cap` must be above 0", hint=hint)
    if not 0 <= model.grace_days <= GRACE_DAYS_MAX:
        message = f"`grace_days` must be from 0 to {GRACE_DAYS_MAX:,}"
        report.problem("catalogue-bad-value", ("blocks", "grace_days"), message, hint="how many days late rows may be")
    if model.keep is not None and model.keep < 1:
        report.problem("catalogue-bad-value", ("blocks", "keep"), "`keep` must be at least 1", hint="leave it out to keep all blocks")
    return BlocksDecl(Period(model.every), model.grace_days, model.person_cap, model.keep)


def _can_have_blocks(report: ProblemReport, table: TableDecl, column: str, *, parents: set[str]) -> bool:
    at: Path = ("tables", table.name, "blocks")
    before = len(report.problems)
    known = {each.name: each.domain for each in table.columns}
    if column not in known:
        meant = closest(column, known)
        hint = f"did you mean `{meant}`?" if meant else "declare it among the columns"
        report.problem("catalogue-bad-reference", at, f"there is no column `{table.name}.{column}`", hint=hint)
    elif not isinstance(domain := known[column], DateDomain | TimestampDomain):
        report.problem("catalogue-bad-value", at, f"`{table.name}.{column}` holds no dates or times", hint="blocks are periods of time")
    else:
        years = [to_date(day).year for day in days_of(domain)]
        if not YEAR_MIN <= min(years) <= max(years) <= YEAR_MAX:
            message = f"blocks are of the years {YEAR_MIN} to {YEAR_MAX}, and `min` or `max` of `{table.name}.{column}` is not"
            report.problem("catalogue-limit", at, message, hint="narrow its `min` and `max`")
    if isinstance(table.unit, RowUnit) or table.unit.hops:
        hint = "add the unit's own column to the table, or leave `blocks` out: its rows are then in the standing block"
        report.problem("catalogue-contradiction", at, f"the rows of `{table.name}` do not hold their own unit", hint=hint)
    if table.name in parents:
        hint = "rows of another table would come and go with a block of this one: give that table the unit's own column"
        report.problem("catalogue-contradiction", at, f"rows of another table reach their unit through `{table.name}`", hint=hint)
    if table.appended_by:
        report.problem("catalogue-contradiction", at, "a table with blocks is appended to by blocks", hint="leave `appended_by` out")
    return len(report.problems) == before
