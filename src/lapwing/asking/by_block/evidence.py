"""What bounds and error bars of answers by block are computed from: histograms of norms that statements buy, and profiles of preparation.

Those of several blocks are pooled: a block has few units and much noise, a month of them has a shape. Post-processing of released values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from lapwing.answers.block_sums import summed
from lapwing.contribution.histograms import histogram_of, name_of
from lapwing.contribution.model import NormHistogram
from lapwing.curator.curator import Curator
from lapwing.curator.statistics import block_profiles
from lapwing.curator.stored_tables import decode
from lapwing.kernel.canonical import digest
from lapwing.kernel.ir import UnitNorms
from lapwing.kernel.release import NoisyTable
from lapwing.ledger.purchases import FIRST_BLOCK, BlockName
from lapwing.planning.profiles import block_norms
from lapwing.sql.rows.block_parts import of_no_block
from lapwing.statements import with_scans

EVIDENCE_MAX = 32
"""Most blocks whose histograms choose the bounds of a query."""
PRECISE = 20.0
"""The histograms of some blocks are used without those of others where their noise is less than one in so many units."""
HISTOGRAM = "n"
"""What histograms are called in names."""
Tables: TypeAlias = tuple[NoisyTable, ...]
"""The profiles of a block, in the order of ``block_norms``."""
_NONE = range(0)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The blocks whose histograms chose the bounds of an answer; none where no bound is chosen from histograms."""

    norms: range = _NONE
    """Blocks with histograms of the norms of a query."""
    key: str = ""
    """The name of that query: where conditions on time differ from block to block, it is the part that most of them have."""
    profiles: range = _NONE
    """Blocks with profiles of their tables."""

    @property
    def ranges(self) -> tuple[range, range]:
        """Both."""
        return self.norms, self.profiles

    @property
    def last(self) -> int:
        """The newest of them."""
        return max(self.norms.stop, self.profiles.stop) - 1

    def __str__(self) -> str:
        ends = [FIRST_BLOCK + end for blocks in (self.norms, self.profiles) for end in (blocks.start, blocks.stop)]
        return "-".join([*map(str, ends), self.key])

    @staticmethod
    def of_text(text: str) -> Evidence:
        """The evidence that a name tells."""
        *ends, key = text.split("-")
        starts = [int(end) - FIRST_BLOCK for end in ends]
        return Evidence(range(starts[0], starts[1]), key, range(starts[2], starts[3]))


@dataclass(frozen=True, slots=True)
class BlockHistograms:
    """The histograms of blocks that the ledger has, for one analyst."""

    curator: Curator
    analyst: str
    confidence: Fraction
    _profiles: dict[tuple[str, int, int], dict[int, Tables]] = field(default_factory=dict)

    @property
    def corrections(self) -> dict[int, int]:
        """The number of the newest correction, by corrected block."""
        return {block: number for table in self.curator.facts.tables.values() for block, number in table.corrected}

    def stored(self, key: str, what: str, first: int, last: int, *, earlier: bool = False) -> Iterator[tuple[BlockName, bytes]]:
        """What was bought under a key in these blocks; nothing while the data set is closed.

        With ``earlier``, also of rows that were corrected since, the earliest first.
        """
        corrections, version = self.corrections, self.curator.facts.version
        if self.curator.ledger.balance().closed:
            return
        for item in self.curator.ledger.named(*BlockName.ends(key, what, first, last), version=version, analyst=self.analyst):
            name = BlockName.of_text(item.name)
            if earlier or name.correction == corrections.get(name.block, 0):
                yield name, item.stored.payload

    def of_norms(self, key: str, first: int, last: int, *, earlier: bool = False) -> dict[int, dict[str, bytes]]:
        """The stored histograms by block and name of the norms."""
        found: dict[int, dict[str, bytes]] = {}
        for name, payload in self.stored(key, HISTOGRAM, first, last, earlier=earlier):
            found.setdefault(name.block, {}).setdefault(name.rest, payload)
        return found

    def of_profiles(self, tables: Iterable[str], first: int, last: int) -> dict[int, dict[str, Tables]]:
        """The profiles of blocks that have them for all of these tables."""
        by_table = {table: self._of_table(table, first, last) for table in tables}
        blocks = set.intersection(*(set(found) for found in by_table.values())) if by_table else set()
        return {block: {table: found[block] for table, found in by_table.items()} for block in sorted(blocks)}

    def _of_table(self, table: str, first: int, last: int) -> dict[int, Tables]:
        place = (table, first, last)
        if place not in self._profiles:
            self._profiles[place] = block_profiles(self.curator.ledger, self.curator.facts, table, first, last)
        return self._profiles[place]

    def pooled(self, held: Mapping[int, Mapping[str, bytes]], wanted: Sequence[UnitNorms]) -> dict[UnitNorms, tuple[NormHistogram, int]]:
        """The histograms of several blocks as one, and how many there are, by norms."""
        found = {}
        for norms in wanted:
            name = norms_name(norms)
            tables = [decode(of_block[name]).tables[0] for of_block in held.values() if name in of_block]
            if tables:
                found[norms] = self._as_one(norms, tables), len(tables)
        return found

    def pooled_profiles(self, held: Mapping[int, Mapping[str, Tables]], at: int, *, blocks: float) -> dict[str, NormHistogram]:
        """The profiles as those of so many blocks, by the name of their norms in the block ``at``, for which a query is planned."""
        found = {}
        for table in {table for of_block in held.values() for table in of_block}:
            for number, norms in enumerate(block_norms(table, at, self.curator.facts)):
                tables = [of_block[table][number] for of_block in held.values()]
                found[name_of(norms)] = self._as_one(norms, tables).scaled(blocks / len(tables))
        return found

    def _as_one(self, norms: UnitNorms, tables: Sequence[NoisyTable]) -> NormHistogram:
        return histogram_of(norms, summed(tables, tables[0].groups, confidence=self.confidence), self.curator.facts)


def is_precise(histogram: NormHistogram | None) -> bool:
    """Whether the noise of all bins together is small beside the units."""
    if histogram is None:
        return False
    units = sum(max(each, 0.0) for each in histogram.noisy) + max(histogram.zeros or 0.0, 0.0)
    return histogram.deviation * math.sqrt(len(histogram.noisy)) * PRECISE <= units


def norms_name(norms: UnitNorms) -> str:
    """The name of norms, the same in every block."""
    return digest((with_scans(norms.source, of_no_block), norms.keys, norms.measure))[:16]


def run_to(last: int, known: Iterable[int]) -> range:
    """The longest run of known blocks that ends with ``last``, of at most ``EVIDENCE_MAX``."""
    blocks, first = set(known), last
    while first - 1 in blocks and last - first + 1 < EVIDENCE_MAX:
        first -= 1
    return range(first, last + 1) if last in blocks else _NONE


def weight_of(blocks: int, *, by_time: bool) -> float:
    """Of how many blocks evidence is taken to be: where groups add up over blocks, the errors of a window add up by their squares, and what
    bounds cut off as it is. So bounds for a block that are the best ones for a window of as many blocks as the evidence has are those for
    the root of their number."""
    return 1.0 if by_time else math.sqrt(blocks)
