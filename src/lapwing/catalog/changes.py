"""The consequences of a changed catalogue for a data set in use.

The ledger always stays: no change of the catalogue gives a fresh budget. The question is only what the owner has to do for the change to
take effect. The promise is for one unit over the whole life of the data set, so a change of *whose* rows, *which* rows or *how much* may
be spent in all is never silent: it needs an override, which is an entry in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lapwing.catalog.blocks import BlocksDecl
from lapwing.catalog.declaration import BudgetDecl, ColumnDecl, Declaration, PublicDecl, RowUnit, TableDecl, UnitPath
from lapwing.kernel.neighbours import Neighbours


class Verdict(Enum):
    """What a change requires of the owner, from least to most. The ledger is kept in every case."""

    KEEPS = "keeps"
    """It takes effect at once, a budget at the next preparation; prepared versions do not change."""

    NEXT_VERSION = "next-version"
    """It takes effect with the next version the owner prepares; until then the newest one is asked as it was prepared."""

    NEEDS_PREPARE = "needs-prepare"
    """It takes effect with the next version the owner prepares; older versions keep the old facts, and nothing is asked of them."""

    NEEDS_OVERRIDE = "needs-override"
    """It changes the promise itself; the owner must override explicitly, which is recorded."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two catalogues."""

    where: str
    """The key that changed, as a dotted path in the file."""
    verdict: Verdict
    why: str

    @property
    def is_policy(self) -> bool:
        """Whether it concerns only limits on questions or their vocabulary, and nothing that is part of a version."""
        return self.verdict is Verdict.KEEPS or self.where in _AMOUNTS

    def __str__(self) -> str:
        return f"{self.where}: {self.verdict.value}: {self.why}"


def classify(old: Declaration, new: Declaration) -> tuple[Change, ...]:
    """Every difference that matters, in the order of the file; empty if the two are equivalent.

    Post: if the fingerprints differ, at least one change NEEDS_OVERRIDE; so do all changes after which the sum of what was ever admitted
    could exceed the old ceiling.
    """
    return (
        *_dataset(old, new),
        *_budget(old.declared_budget, new.declared_budget),
        *_defaults(old, new),
        *_ledger(old, new),
        *_limits(old, new),
        *_blocks(old.blocks, new.blocks),
        *_tables(old, new),
        *_public(old, new),
    )


def of_versions(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Those that a version is made of: its rows and their facts, and what shapes the plans of its questions. The others are policy."""
    return tuple(change for change in changes if not change.is_policy)


def worst(changes: Iterable[Change]) -> Verdict:
    """The strictest verdict, which covers all of them."""
    order = list(Verdict)
    return max((change.verdict for change in changes), key=order.index, default=Verdict.KEEPS)


def _dataset(old: Declaration, new: Declaration) -> list[Change]:
    before, after = old.dataset, new.dataset
    changes = []
    if before.id != after.id:
        why = "the ledger is bound to the source id; the same rows under a new id have the same ledger"
        changes.append(_override("dataset.id", why))
    if before.engine.value != after.engine.value:
        changes.append(_override("dataset.engine", "another engine reads other sources; nothing shows that they hold the same rows"))
    if before.connection != after.connection:
        changes.append(_override("dataset.connection", "nothing shows that the other server holds the same rows"))
    if before.preparation is not after.preparation:
        changes.append(_prepare("dataset.preparation", "whether rows are copied belongs to a version"))
    if before.noise is not after.noise:
        changes.append(_keeps("dataset.noise", "both samplers draw noise of the same laws"))
    if before.unit != after.unit:
        changes.append(_override("dataset.unit", "answers already given promise protection to the old unit"))
    if before.neighbours != after.neighbours:
        changes.append(_override("dataset.neighbours", "answers already given were charged under the old neighbour relation"))
    if before.units != after.units:
        if Neighbours.BOUNDED in (before.neighbours, after.neighbours):
            changes.append(_prepare("dataset.units", "the public number of units belongs to a version"))
        else:
            changes.append(_next_version("dataset.units", "bounds are chosen with the estimate, and the same question keeps its bounds"))
    if before.description != after.description:
        changes.append(_keeps("dataset.description", _WORDS_ONLY))
    return changes


def _budget(old: BudgetDecl, new: BudgetDecl) -> list[Change]:
    if old.account != new.account:
        return [_override("budget.delta", "a pure and an approximate data set are charged in different amounts")]
    changes = []
    if old.order != new.order:
        changes.append(_override("budget.order", "the order of an account is fixed when the ledger is made"))
    if old.epsilon != new.epsilon:
        changes.append(_epsilon(old, new))
    if old.ceiling_epsilon < new.ceiling_epsilon and new.epsilon <= old.ceiling_epsilon:
        changes.append(_override("budget.ceiling", "the promise was made for the old ceiling"))
    # A ceiling that was only ever the budget itself falls with it; that is one change, reported above.
    follows = (old.ceiling_epsilon, new.ceiling_epsilon) == (old.epsilon, new.epsilon)
    if old.ceiling_epsilon > new.ceiling_epsilon and not follows:
        changes.append(_keeps("budget.ceiling", "the budget can be raised less far; the promise stays the one of the old ceiling"))
    if (old.delta, old.delta_keys_share) != (new.delta, new.delta_keys_share):
        # If they could move, the rho of one time and the delta for keys of another could add up to more than was promised at any time.
        where = "budget.delta" if old.delta != new.delta else "budget.delta_keys_share"
        changes.append(_override(where, "delta and its two parts are fixed when the ledger is made"))
    if old.statistics_share != new.statistics_share:
        changes.append(_keeps("budget.statistics_share", "it is read when statistics are next bought"))
    if old.norms_share != new.norms_share:
        changes.append(_next_version("budget.norms_share", "it divides the price of a question, and the same question keeps its parts"))
    return changes


def _epsilon(old: BudgetDecl, new: BudgetDecl) -> Change:
    if new.epsilon > old.ceiling_epsilon:
        return _override("budget.epsilon", "the budget rises above the old ceiling, for which the promise was made")
    if new.epsilon > old.epsilon:
        return _keeps("budget.epsilon", "the budget rises, and stays within the ceiling")
    return _keeps("budget.epsilon", "the budget falls; it cannot fall below what is spent, and nothing is given back")


def _defaults(old: Declaration, new: Declaration) -> list[Change]:
    changes = []
    if old.defaults.epsilon != new.defaults.epsilon:
        changes.append(_keeps("defaults.epsilon", "statements may name their own; each is charged what it uses"))
    if old.defaults.confidence != new.defaults.confidence:
        changes.append(_keeps("defaults.confidence", "it changes how an answer is shown, not what is released"))
    return changes


def _ledger(old: Declaration, new: Declaration) -> list[Change]:
    if old.ledger == new.ledger:
        return []
    # Which ledger counts is not decided here: opening refuses a second one for the same source.
    return [_keeps("ledger", "it says where the ledger is kept; a source keeps the ledger that it has")]


def _limits(old: Declaration, new: Declaration) -> list[Change]:
    why = "it says how fast the budget may be spent; what was spent and what is promised stay as they are"
    return [_keeps(f"limits.{key}", why) for key in ("per_statement", "per_day") if getattr(old.limits, key) != getattr(new.limits, key)]


def _blocks(old: BlocksDecl | None, new: BlocksDecl | None) -> list[Change]:
    if old is None and new is None:
        return []
    if old is None or new is None:
        return [_override("blocks", "it changes what is protected: a unit's rows of one block, or all rows of a unit")]
    changes = []
    if old.every is not new.every:
        changes.append(_override("blocks.every", "answers already given promise protection to blocks of the old period"))
    if old.person_cap != new.person_cap:
        lowered = new.person_cap is not None and (old.person_cap is None or new.person_cap < old.person_cap)
        if lowered:
            changes.append(_keeps("blocks.person_cap", "one person can lose less than was promised; what was lost stays counted"))
        else:
            changes.append(_override("blocks.person_cap", "one person could lose more over a year than was promised"))
    if old.grace_days != new.grace_days:
        changes.append(_keeps("blocks.grace_days", "it says when later blocks close; those that are closed stay closed"))
    if old.keep != new.keep:
        changes.append(_keeps("blocks.keep", "rows of retired blocks are deleted when blocks are next prepared"))
    return changes


def _tables(old: Declaration, new: Declaration) -> list[Change]:
    before, after = {table.name: table for table in old.tables}, {table.name: table for table in new.tables}
    changes = []
    for name in sorted(before.keys() - after.keys()):
        if any(name == public.name or new.source_path(public) == old.source_path(before[name]) for public in new.public_tables):
            changes.append(_override(f"tables.{name}", "rows that were protected would become public"))
        else:
            changes.append(_override(f"tables.{name}", "the table leaves the sources that the ledger is bound to"))
    for name, table in after.items():
        if name in before:
            changes += _table(before[name], table, old, new)
        else:
            changes.append(_override(f"tables.{name}", "the table joins the sources that the ledger is bound to"))
    return changes


def _table(before: TableDecl, after: TableDecl, old: Declaration, new: Declaration) -> list[Change]:
    where = f"tables.{after.name}"
    changes = []
    if old.source_path(before) != new.source_path(after):
        why = "the ledger is bound to the source; nothing shows that another one holds the same rows"
        changes.append(_override(f"{where}.source", why))
    if before.unit != after.unit:
        changes.append(_override(f"{where}.unit", "answers already given promise protection to the old unit"))
    caps = ((before.one_row_per_unit, before.rows_per_unit_max), (after.one_row_per_unit, after.rows_per_unit_max))
    if caps[0] != caps[1]:
        key = "one_row_per_unit" if caps[0][0] != caps[1][0] else "rows_per_unit_max"
        changes.append(_prepare(f"{where}.{key}", "preparation drops the rows of a unit beyond the cap"))
    if before.rows_max != after.rows_max:
        changes.append(_prepare(f"{where}.rows_max", "preparation checks it, and the grids of real columns follow from it"))
    if before.appended_by != after.appended_by:
        changes.append(_prepare(f"{where}.appended_by", "preparation keeps how far the source was read"))
    times = [None if table.blocks is None else table.blocks.column for table in (before, after)]
    if times[0] != times[1]:
        changes.append(_override(f"{where}.blocks", "rows would move to other blocks, which were promised other budgets"))
    if before.description != after.description:
        changes.append(_keeps(f"{where}.description", _WORDS_ONLY))
    in_unit = _columns_of(before.name, old)
    changes += _file_forms(where, before, after, in_unit)
    return [*changes, *_columns(f"{where}.columns", before.columns, after.columns, in_unit=in_unit)]


def _file_forms(where: str, before: TableDecl | PublicDecl, after: TableDecl | PublicDecl, in_unit: frozenset[str]) -> list[Change]:
    changes = []
    moved = set(before.partitions) ^ set(after.partitions)
    if any(column.source_name in moved for column in after.columns if column.name in in_unit):
        changes.append(_override(f"{where}.partitions", "the unit would be read from another place"))
    elif before.partitions != after.partitions:
        changes.append(_prepare(f"{where}.partitions", "the values are read when a version is prepared"))
    if before.delimiter != after.delimiter:
        changes.append(_prepare(f"{where}.delimiter", "files are read when a version is prepared"))
    return changes


def _columns_of(table: str, declaration: Declaration) -> frozenset[str]:
    """Columns of ``table`` that some unit path goes through."""
    names = set()
    for other in declaration.tables:
        names |= _columns_on(other.unit, start=other.name, table=table)
    return frozenset(names)


def _columns_on(path: UnitPath | RowUnit, *, start: str, table: str) -> set[str]:
    if isinstance(path, RowUnit):
        return set()
    at, names = start, set()
    for hop in path.hops:
        if at == table:
            names.add(hop.column)
        at = hop.target.table
        if at == table:
            names.add(hop.target.column)
    return names | ({path.end.column} if path.end.table == table else set())


def _public(old: Declaration, new: Declaration) -> list[Change]:
    before, after = {table.name: table for table in old.public_tables}, {table.name: table for table in new.public_tables}
    changes = [_prepare(f"public.{name}", "public tables are frozen in a version") for name in sorted(before.keys() - after.keys())]
    for name, table in after.items():
        if name in before:
            changes += _public_table(before[name], table, old, new)
        else:
            changes.append(_prepare(f"public.{name}", "public tables are frozen in a version"))
    return changes


def _public_table(before: PublicDecl, after: PublicDecl, old: Declaration, new: Declaration) -> list[Change]:
    where = f"public.{after.name}"
    changes = []
    if old.source_path(before) != new.source_path(after):
        changes.append(_prepare(f"{where}.source", "public tables are frozen in a version"))
    changes += _file_forms(where, before, after, frozenset())
    if before.key != after.key:
        changes.append(_prepare(f"{where}.key", "preparation makes the key unique"))
    if before.description != after.description:
        changes.append(_keeps(f"{where}.description", _WORDS_ONLY))
    return [*changes, *_columns(f"{where}.columns", before.columns, after.columns, in_unit=frozenset())]


def _columns(where: str, old: tuple[ColumnDecl, ...], new: tuple[ColumnDecl, ...], *, in_unit: frozenset[str]) -> list[Change]:
    before, after = {column.name: column for column in old}, {column.name: column for column in new}
    changes = [_prepare(f"{where}.{name}", "the column is not in the next version") for name in sorted(before.keys() - after.keys())]
    for name, column in after.items():
        if name not in before:
            changes.append(_prepare(f"{where}.{name}", "the column is in the next version only"))
            continue
        was = before[name]
        if was.source_name != column.source_name:
            if name in in_unit:
                changes.append(_override(f"{where}.{name}.from", "the unit would be read from another source column"))
            else:
                changes.append(_prepare(f"{where}.{name}.from", "the values are read when a version is prepared"))
        meant = [(one.domain, one.other, one.values_from, one.spelling) for one in (was, column)]
        if meant[0] != meant[1]:
            changes.append(_prepare(f"{where}.{name}", "values are clamped and mapped when a version is prepared"))
        if was.description != column.description:
            changes.append(_keeps(f"{where}.{name}.description", _WORDS_ONLY))
    return changes


_WORDS_ONLY = "a description is for readers only"
_AMOUNTS = ("budget.epsilon", "budget.ceiling", "blocks.person_cap")
"""What the ledger alone decides, whatever a version was prepared with."""


def _keeps(where: str, why: str) -> Change:
    return Change(where=where, verdict=Verdict.KEEPS, why=why)


def _next_version(where: str, why: str) -> Change:
    return Change(where=where, verdict=Verdict.NEXT_VERSION, why=why)


def _prepare(where: str, why: str) -> Change:
    return Change(where=where, verdict=Verdict.NEEDS_PREPARE, why=why)


def _override(where: str, why: str) -> Change:
    return Change(where=where, verdict=Verdict.NEEDS_OVERRIDE, why=why)
