"""A data set as its owner declared it: plain, frozen facts, already checked.

Only ``parse`` and ``load`` make a ``Declaration``, so every instance has passed the checks of ``build``: names are safe identifiers,
every unit path ends at one column, bounds are finite and fit the integer grid. None of it says anything about the rows themselves;
preparation enforces each line on whatever the source holds.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import assert_never

from lapwing.catalog.blocks import BlockDecl, BlocksDecl
from lapwing.catalog.problems import Problem
from lapwing.catalog.spellings import COMMON_SPELLING, Spelling
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account, Budget, budget_for
from lapwing.kernel.domains import Domain
from lapwing.kernel.laws import Sampler
from lapwing.kernel.neighbours import Neighbours


class EngineKind(Enum):
    """Where the rows are."""

    DUCKDB = "duckdb"
    """Parquet or CSV files, read by DuckDB."""
    POSTGRES = "postgres"
    """Tables of a PostgreSQL database."""
    SPARK = "spark"
    """Parquet files, or tables of the catalogue of a Spark session."""


class Preparation(Enum):
    """Whether preparation copies the rows."""

    STORED = "stored"
    """Clean, ranked rows are written once per version, and questions read those."""
    VIRTUAL = "virtual"
    """Nothing is copied: every question cleans and ranks the rows of the source anew, in one snapshot of the engine."""


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of a named table."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


@dataclass(frozen=True, slots=True)
class Hop:
    """One foreign key: rows belong to the rows of ``target.table`` whose ``target.column`` equals their own ``column``."""

    column: str
    target: ColumnRef


@dataclass(frozen=True, slots=True)
class UnitPath:
    """How the rows of a table reach their unit: along ``hops``, in order, then the column ``end``.

    The path is complete: a table that points at another has that table's own hops after its own.
    """

    hops: tuple[Hop, ...]
    end: ColumnRef


@dataclass(frozen=True, slots=True)
class RowUnit:
    """Every row of the table is a unit of its own. There is no owner of rows, so a person with several rows is protected for each one
    separately."""

    @property
    def hops(self) -> tuple[Hop, ...]:
        """A row belongs to no row of another table."""
        return ()


@dataclass(frozen=True, slots=True)
class ColumnDecl:
    """One column: its name in statements, its name in the source, and what preparation makes of its values."""

    name: str
    source_name: str
    domain: Domain
    """For text with ``values_from``, this domain has no values yet: ``facts`` fills them in from the public table."""
    other: str | None = None
    """Text that replaces every value outside the declared ones; None turns those into NULL."""
    values_from: ColumnRef | None = None
    """The public column that lists the values."""
    description: str = ""
    spelling: Spelling = COMMON_SPELLING
    """How values are written where the source holds text."""


@dataclass(frozen=True, slots=True)
class TableDecl:
    """A protected table."""

    name: str
    source: str
    columns: tuple[ColumnDecl, ...]
    unit: UnitPath | RowUnit
    one_row_per_unit: bool
    rows_per_unit_max: int
    rows_max: int
    description: str = ""
    appended_by: str = ""
    """The source column that only grows from one row to those that come later; empty where rows are not only appended."""
    partitions: tuple[str, ...] = ()
    """Source columns that are not in the files: their values are in the names of folders, ``name=value``."""
    delimiter: str = ","
    """The delimiter of a CSV file."""
    blocks: BlockDecl | None = None
    """Its blocks of time, if it has any; only of tables that hold their own unit column."""

    def column(self, name: str) -> ColumnDecl:
        """The column of that name, or refuse."""
        return _column(self.columns, self.name, name)


@dataclass(frozen=True, slots=True)
class PublicDecl:
    """A table that is not secret at all; it can be joined on its key, which preparation makes unique."""

    name: str
    source: str
    columns: tuple[ColumnDecl, ...]
    key: str
    description: str = ""
    partitions: tuple[str, ...] = ()
    delimiter: str = ","

    def column(self, name: str) -> ColumnDecl:
        """The column of that name, or refuse."""
        return _column(self.columns, self.name, name)


@dataclass(frozen=True, slots=True)
class DataSetDecl:
    """The data set's identity and the name of one unit."""

    id: str
    engine: EngineKind
    unit: str
    neighbours: Neighbours
    units: int | None
    """The declared number of units. Public when neighbours are bounded; otherwise an estimate used for warnings only."""
    description: str = ""
    connection: str = ""
    """How to reach the engine, where it is a server; without secrets. Empty: as the engine's own environment says."""
    preparation: Preparation = Preparation.STORED
    noise: Sampler = Sampler.LAPWING
    """The sampler of the noise of answers; the laws are the same."""


@dataclass(frozen=True, slots=True)
class BudgetDecl:
    """The promise: (epsilon, delta) now, and the largest epsilon to which it can be raised."""

    epsilon: Fraction
    delta: Fraction
    delta_keys_share: Fraction
    ceiling_epsilon: Fraction
    statistics_share: Fraction = field(default=Fraction(1, 20), kw_only=True)
    """Part of the loss that preparation spends once on histograms of rows per unit, from which bounds are chosen."""
    norms_share: Fraction = field(default=Fraction(1, 10), kw_only=True)
    """Part of a statement's price that is spent first, on how much units add to this very statement, so that its bounds fit."""
    order: int | None = field(default=None, kw_only=True)
    """The Rényi order of an account that is a union of a pure and a Rényi filter; None for one that adds up one loss."""

    @property
    def account(self) -> Account:
        """How the data set is charged."""
        return Account.APPROXIMATE if self.delta else Account.PURE


@dataclass(frozen=True, slots=True)
class DefaultsDecl:
    """The defaults of a statement."""

    epsilon: Fraction
    confidence: Fraction


@dataclass(frozen=True, slots=True)
class LedgerDecl:
    """Where the ledger is kept. Without a database it is the local one, beside the prepared versions."""

    database: str | None = None
    """Connection string of libpq, without a password; None for the local ledger."""
    anchors: str | None = None
    """Directory of the anchors, relative to the catalogue; set whenever ``database`` is."""
    keys: str | None = None
    """Directory of the key that signs receipts, relative to the catalogue; set whenever ``database`` is."""


@dataclass(frozen=True, slots=True)
class LimitsDecl:
    """How fast analysts may spend, as shares of the budget in force; None is no limit. The promise rests on the budget alone."""

    per_statement: Fraction | None = None
    """What one statement may cost."""
    per_day: Fraction | None = None
    """What one analyst may spend in a day (UTC)."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A whole catalogue file."""

    dataset: DataSetDecl
    declared_budget: BudgetDecl
    defaults: DefaultsDecl
    tables: tuple[TableDecl, ...]
    public_tables: tuple[PublicDecl, ...]
    ledger: LedgerDecl = LedgerDecl()
    limits: LimitsDecl = LimitsDecl()
    blocks: BlocksDecl | None = None
    """Blocks of time, if any table has some."""
    directory: Path | None = None
    """Where relative sources start; None when the text did not come from a file."""
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
    """Warnings for the owner; the catalogue is accepted nevertheless."""

    def budget(self) -> Budget:
        """The budget in force."""
        return self._budget(self.declared_budget.epsilon)

    def ceiling(self) -> Budget:
        """The largest budget the owner reserved the right to; the promise over the life of the data set is for this one."""
        return self._budget(self.declared_budget.ceiling_epsilon)

    @property
    def protects_rows(self) -> bool:
        """Whether every row is a unit, so that no person's rows are protected together."""
        return any(isinstance(table.unit, RowUnit) for table in self.tables)

    @property
    def protects(self) -> str:
        """The subject of the promise as text: one unit, with a caveat if a unit is a row."""
        if self.blocks is not None:
            return f"one {self.dataset.unit}'s rows of one {self.blocks.every.value}"
        return f"one {self.dataset.unit}, not a person" if self.protects_rows else f"one {self.dataset.unit}"

    @property
    def all_tables(self) -> tuple[TableDecl | PublicDecl, ...]:
        """Protected and public tables; no two have one name."""
        return (*self.tables, *self.public_tables)

    def table(self, name: str) -> TableDecl:
        """The protected table of that name, or refuse."""
        for table in self.tables:
            if table.name == name:
                return table
        raise Refused("unknown-table", f"there is no protected table {name!r} in this data set")

    def public_table(self, name: str) -> PublicDecl:
        """The public table of that name, or refuse."""
        for table in self.public_tables:
            if table.name == name:
                return table
        raise Refused("unknown-table", f"there is no public table {name!r} in this data set")

    def source_path(self, table: TableDecl | PublicDecl) -> str:
        """The file or glob of a table, made absolute when the catalogue came from a file; on a server, the name of the table."""
        if self.directory is None or not self._is_file(table.source):
            return table.source
        return str((self.directory / table.source).resolve())

    def fingerprint(self) -> str:
        """Digest of the identity of the ledger's rows: the protected sources, and nothing else.

        Equal for two catalogues that differ in anything else: id, unit, neighbours, budget, names of tables, bounds, keys, public tables.
        So registering the same rows under a new id, for another unit or with other bounds, finds the same ledger. It is computed from the
        declaration alone and reads no file.
        """
        identity = {
            "fingerprint": 1,
            "engine": self.dataset.engine.value,
            "sources": sorted({self.source_path(table) for table in self.tables}),
        }
        if self.dataset.connection:
            identity["connection"] = self.dataset.connection
        canonical = json.dumps(identity, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def _is_file(self, source: str) -> bool:
        match self.dataset.engine:
            case EngineKind.DUCKDB:
                return True
            case EngineKind.POSTGRES:
                return False
            case EngineKind.SPARK:
                return "/" in source or source.endswith(".parquet")
            case _:
                assert_never(self.dataset.engine)

    def _budget(self, epsilon: Fraction) -> Budget:
        declared = self.declared_budget
        return budget_for(epsilon=epsilon, delta=declared.delta, delta_keys_share=declared.delta_keys_share, order=declared.order)


def _column(columns: tuple[ColumnDecl, ...], table: str, name: str) -> ColumnDecl:
    for column in columns:
        if column.name == name:
            return column
    raise Refused("unknown-column", f"there is no column {name!r} in {table!r}")
