"""Public facts about one prepared version of a data set: all that certification may rely on.

They come from the owner's declarations and from the public tables frozen in the version; none is measured on protected rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.block_calendar import Period, within_blocks
from lapwing.kernel.domains import Domain
from lapwing.kernel.ir import Blocks
from lapwing.kernel.neighbours import Neighbours


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A prepared private table. Preparation enforces every line of it, whatever the source holds."""

    columns: Mapping[str, Domain]
    rows_per_unit_max: int
    """Rows beyond this rank were physically dropped."""
    rows_max: int
    """Declared maximum number of rows; preparation refuses a larger table."""
    blocks: tuple[int, int] | None = None
    """The first and the last closed block of a table with blocks of time. Rows are ranked within person and block, ``rows_per_unit_max`` is
    for each of them, and ``rows_max`` for each block.
    """
    times: tuple[str, Period] | None = None
    """The column of dates or timestamps that its blocks are periods of, and their period."""
    corrected: tuple[tuple[int, int], ...] = ()
    """The closed blocks whose rows were corrected, in order, each with the number of its newest correction."""

    def columns_within(self, blocks: Blocks) -> Mapping[str, Domain]:
        """The columns in rows of these blocks: their times lie within them."""
        if self.times is None:
            return self.columns
        name, every = self.times
        return {**self.columns, name: within_blocks(self.columns[name], blocks.first, blocks.last, every)}

    def blocks_between(self, first: int, last: int, *, apart: bool = False) -> Blocks:
        """These blocks of the table as a scan names them."""
        return Blocks(first, last, apart, tuple(item for item in self.corrected if first <= item[0] <= last))


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """A public table, frozen in the version; ``key`` is unique by construction."""

    columns: Mapping[str, Domain]
    key: str


@dataclass(frozen=True, slots=True)
class UnitLimits:
    """How many resources of an engine one unit's rows may take in one statement: see ``workload``."""

    rows: int = 100_000
    """Most rows of one unit in any relation of a plan."""
    work: int = 1_000_000_000
    """Most parts of expressions computed for one unit's rows, over all relations and queries of a plan."""
    size: int = 256 * 2**20
    """Most bytes that the keys and distinct values of one unit's rows take up in one query."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything public about one version of one data set."""

    source_id: str
    version: int
    neighbours: Neighbours
    account: Account
    tables: Mapping[str, TableFacts]
    public_tables: Mapping[str, PublicFacts]
    limits: UnitLimits = UnitLimits()
    order: int | None = None
    """The Rényi order of an account that is a union of filters; None for one that adds up one loss."""
    typed_numbers: bool = False
    """Whether its columns have the number types of their sources; versions prepared before these were stored compute in doubles."""
    planning_rules: int = 1
    """The rules that choose its bounds, by number: a version keeps those it was prepared under, so that what is bought is found again."""

    def table(self, name: str) -> TableFacts:
        """The private table of that name, or refuse."""
        if name not in self.tables:
            raise Refused("unknown-table", f"there is no protected table {name!r} in this data set")
        return self.tables[name]

    def public_table(self, name: str) -> PublicFacts:
        """The public table of that name, or refuse."""
        if name not in self.public_tables:
            raise Refused("unknown-table", f"there is no public table {name!r} in this data set")
        return self.public_tables[name]
