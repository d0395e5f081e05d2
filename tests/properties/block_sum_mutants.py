"""Deliberate bugs of answers by block: of which statements add up, of names, of windows, and of error bars.

Each is seen by a test that passes without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lapwing.answers import block_sums
from lapwing.asking.by_block import answers as block_answers
from lapwing.asking.by_block import series as block_series
from lapwing.asking.by_block.evidence import BlockHistograms
from lapwing.kernel.canonical import digest
from lapwing.kernel.ir import PerUnit, SemiJoin, UnitJoin, UnitWindow
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.sql.rows import block_parts
from lapwing.sql.rows.block_parts import ADDED_UP, BlockParts, _Splitter
from lapwing.sql.rows.time_conditions import is_surely_true, may_be_true
from lapwing.statements import AggregateKind, PrivateQuery
from tests.properties import test_sums_over_time as sums
from tests.support.shop_of_events import Shop
from tests.unit.curator import test_block_answers as answers
from tests.unit.curator import test_block_windows as windows

Test = Callable[[Path, pytest.MonkeyPatch], None]

_LOCAL, _STORED, _PARTS, _DIGEST = _Splitter._is_local, BlockHistograms.stored, block_parts.block_parts, digest
_NAMED, _LAW_OF_SUM, _MAY_BE = LocalLedger.named, block_sums.law_of_sum, may_be_true


@dataclass(frozen=True)
class BlockSumMutant:
    """A bug: what is replaced, and the test that must see it."""

    name: str
    patches: tuple[tuple[object, str, Any], ...]
    seen_by: Test


def of_shop(test: Callable[..., None], *terms: Any) -> Test:
    """A test of a whole data set."""

    def run(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shop = Shop(directory, monkeypatch)
        shop.declare(epsilon="10")
        shop.users()
        shop.days(12)
        shop.today(answers.day(11))
        test(shop, *terms)

    return run


def of_bare_duckdb(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random statements, added up with bare DuckDB."""
    with duckdb.connect(config={"threads": "1"}) as connection:
        sums.with_rows(connection)
        sums.test_answers_of_blocks_add_up_to_that_of_bare_duckdb_over_the_range(connection)


def _locally(*kinds: type) -> Callable[[_Splitter, Any], bool]:
    """Relations of these kinds are within blocks if their sources are."""

    def is_local(self: _Splitter, relation: Any) -> bool:
        if not isinstance(relation, kinds):
            return _LOCAL(self, relation)
        sources = [getattr(relation, name) for name in ("source", "other", "left", "right") if hasattr(relation, name)]
        return all(is_local(self, source) for source in sources)

    return is_local


def _of_another_block(self: BlockHistograms, key: str, what: str, first: int, last: int, **more: bool) -> Any:
    for name, payload in _STORED(self, key, what, first - 1, last, **more):
        yield replace(name, block=name.block + 1), payload


def _of_any_correction(self: BlockHistograms, key: str, what: str, first: int, last: int, *, earlier: bool = False) -> Any:
    return _STORED(self, key, what, first, last, earlier=True)


def _of_the_first_version(self: LocalLedger, *terms: Any, version: int, **more: Any) -> Any:
    return _NAMED(self, *terms, version=1, **more)


def _windows_moved(first: int, last: int) -> Callable[..., tuple[BlockParts, ...]]:
    def moved(query: PrivateQuery, facts: Any) -> tuple[BlockParts, ...]:
        found = _PARTS(query, facts)
        if not found:
            return found
        (_, closed) = next(table.blocks for table in facts.tables.values() if table.blocks is not None)
        ends = replace(found[-1], last=min(found[-1].last + last, closed))
        return (
            (replace(found[0], first=found[0].first + first), *found[1:-1], ends)
            if found[1:]
            else (replace(found[0], first=found[0].first + first, last=ends.last),)
        )

    return moved


def _named_without(change: Callable[[PrivateQuery], object]) -> Callable[[BlockParts], str]:
    return lambda self: _DIGEST(change(self.query))


def _without_filters(relation: Any) -> object:
    return _without_filters(relation.source) if hasattr(relation, "source") else relation


def _one_draw(draws: Any, *, confidence: Any) -> Any:
    return _LAW_OF_SUM([(law, 1) for law, _ in draws[:1]], confidence=confidence)


def _all_groups_by_time(self: _Splitter, query: PrivateQuery) -> bool:
    return True


_SLIDES = of_shop(windows.test_windows_that_slide_are_each_the_answer_of_bare_duckdb)
_CONDITIONS = of_shop(windows.test_conditions_are_part_of_what_was_bought)
_CORRECTED = of_shop(answers.test_a_correction_is_measured_anew_and_nothing_else)
_PART_OF_A_DAY = "SELECT COUNT(*) AS n FROM events WHERE NOT (day = DATE '2026-03-04')"

MUTANTS: tuple[BlockSumMutant, ...] = (
    BlockSumMutant("the answer of one block served for the next", ((BlockHistograms, "stored", _of_another_block),), _SLIDES),
    BlockSumMutant("a correction served as it was before", ((BlockHistograms, "stored", _of_any_correction),), _CORRECTED),
    BlockSumMutant("corrections left out of names", ((BlockHistograms, "corrections", {}),), _CORRECTED),
    BlockSumMutant(
        "an earlier version served", ((LocalLedger, "named", _of_the_first_version),), of_shop(windows.test_a_new_version_is_measured_anew)
    ),
    BlockSumMutant("a window one block longer", ((block_answers, "block_parts", _windows_moved(0, 1)),), _SLIDES),
    BlockSumMutant("a window that ends a block early", ((block_answers, "block_parts", _windows_moved(0, -1)),), _SLIDES),
    BlockSumMutant("a window that begins a block late", ((block_answers, "block_parts", _windows_moved(1, 0)),), _SLIDES),
    BlockSumMutant(
        "the price left out of names",
        ((block_series, "digest", lambda value: _DIGEST(value[0] if isinstance(value, tuple) else value)),),
        of_shop(answers.test_options_and_prices_are_other_questions),
    ),
    BlockSumMutant(
        "FILTER left out of names",
        (
            (
                BlockParts,
                "name",
                _named_without(lambda query: (tuple(replace(item, where=None) for item in query.aggregates), query.source)),
            ),
        ),
        _CONDITIONS,
    ),
    BlockSumMutant(
        "conditions on rows left out of names",
        ((BlockParts, "name", _named_without(lambda query: (query.keys, query.aggregates, _without_filters(query.source)))),),
        _CONDITIONS,
    ),
    BlockSumMutant(
        "a condition on some days taken for one on all",
        ((block_parts, "is_surely_true", _MAY_BE),),
        of_shop(answers.test_without_noise_the_sum_of_blocks_is_the_answer_of_bare_duckdb, _PART_OF_A_DAY, True),
    ),
    BlockSumMutant(
        "a condition that is not decided taken for false",
        ((block_parts, "may_be_true", is_surely_true),),
        of_shop(answers.test_without_noise_the_sum_of_blocks_is_the_answer_of_bare_duckdb, _PART_OF_A_DAY, True),
    ),
    BlockSumMutant("a join across days taken as local", ((_Splitter, "_is_local", _locally(UnitJoin)),), of_bare_duckdb),
    BlockSumMutant("a semi-join across days taken as local", ((_Splitter, "_is_local", _locally(SemiJoin)),), of_bare_duckdb),
    BlockSumMutant("rows of a person over days taken as local", ((_Splitter, "_is_local", _locally(PerUnit)),), of_bare_duckdb),
    BlockSumMutant("windows across days taken as local", ((_Splitter, "_is_local", _locally(UnitWindow)),), of_bare_duckdb),
    BlockSumMutant("units added up over days", ((block_parts, "ADDED_UP", ADDED_UP | {AggregateKind.COUNT_UNITS}),), of_bare_duckdb),
    BlockSumMutant("extremes added up over days", ((block_parts, "ADDED_UP", ADDED_UP | {AggregateKind.MAX}),), of_bare_duckdb),
    BlockSumMutant("all groups taken for groups of one block", ((_Splitter, "_is_by_time", _all_groups_by_time),), of_bare_duckdb),
    BlockSumMutant(
        "the noise of a sum is that of a block",
        ((block_sums, "law_of_sum", _one_draw),),
        of_shop(windows.test_noise_grows_with_the_number_of_blocks),
    ),
)
BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
