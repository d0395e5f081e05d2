"""Deliberate bugs of versions that grow: of preparation, closing, corrections, balances, and of which blocks a statement reads.

Each is seen by a test that passes without it: by the oracle over versions that grew, or by a test of a whole data set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lapwing.audit.block_growth import grown_in_duckdb
from lapwing.audit.block_shapes import block_shapes
from lapwing.audit.block_worlds import BLOCKS_OF_TIME
from lapwing.audit.runs import run_oracle
from lapwing.catalog.blocks import BlocksDecl, PreparedBlocks
from lapwing.curator import block_life
from lapwing.engines import prepare
from lapwing.engines.duckdb import block_writing
from lapwing.engines.duckdb.block_files import BlockIndex
from lapwing.kernel import block_calendar, blocks, certify, facts
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.blocks import BlocksRead, group_cost
from lapwing.kernel.calendar import to_days
from lapwing.kernel.expressions import Call, Function
from lapwing.kernel.facts import TableFacts
from lapwing.kernel.ir import Blocks, JoinKind, UnitJoin, UnitWindow
from lapwing.ledger.block_balances import BlockCharge
from lapwing.ledger.local import block_state, ledger, rows
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.sql.rows import block_ranges as statement_blocks
from lapwing.sql.rows import time_conditions
from lapwing.sql.rows.block_ranges import _Finder
from tests.properties import test_statement_blocks as statements
from tests.support.shop_of_events import Shop
from tests.unit.curator import test_blocks_of_time as life
from tests.unit.kernel import test_blocks as kernel

Test = Callable[[Path, pytest.MonkeyPatch], None]

_PRIVATE_TABLE, _RANK_OF, _BLOCK_OF_DAY = prepare.private_table, prepare.rank_of, block_calendar.block_of_day
_COSTS, _CLOSED, _DECLARE, _AFTER = blocks.costs_by_block, block_life.closed_blocks, LocalLedger.declare_blocks, BlockIndex.after
_MAY_BE, _MAY_BE_TRUE, _READ, _ENDS = time_conditions._may_be, time_conditions.may_be_true, _Finder.read, statement_blocks._ends
_WITHIN, _LAST_CLOSED = block_calendar.within_blocks, BlocksDecl.last_closed


@dataclass(frozen=True)
class GrowthMutant:
    """A bug: what is replaced, and the test that must see it."""

    name: str
    patches: tuple[tuple[object, str, Any], ...]
    seen_by: Test


def of_shop(test: Callable[..., None], **terms: str) -> Test:
    """A test of a whole data set."""

    def run(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shop = Shop(directory, monkeypatch)
        shop.declare()
        shop.users()
        shop.days(12)
        shop.today(life.day(11))
        test(shop, **terms)

    return run


def of_kernel(test: Callable[[Account], None]) -> Test:
    """A test of certificates."""
    return lambda directory, monkeypatch: test(Account.APPROXIMATE)


def of_statements(test: Callable[..., None], **terms: bool) -> Test:
    """A test of which blocks statements read."""

    def run(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with duckdb.connect() as connection:
            test(connection, **terms)

    return run


def of_oracle(*shapes: str) -> Test:
    """The oracle over versions that grew, on the shapes whose names start so."""

    def run(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        account = Account.APPROXIMATE
        outcome = run_oracle(
            family=BLOCKS_OF_TIME,
            only={name: shape for name, shape in block_shapes(account).items() if name.startswith(shapes)},
            relation="unbounded",
            account=account,
            worlds=2,
            seed=5,
            stop_at_first=True,
            neighbours_max=40,
            prepare=grown_in_duckdb,
        )
        assert outcome.breaches == []

    return run


def retired_rows_stay_away(shop: Shop) -> None:
    """Blocks that were retired do not come back with the rows of another day when the owner keeps more of them."""
    shop.declare(keep="keep = 6")
    with shop.open() as data_set:
        data_set.prepare()
    shop.declare(keep="keep = 9")
    shop.today(life.day(12))
    with shop.open() as data_set:
        data_set.prepare()
        held = data_set.curator.engine.prepared_blocks(1)
        assert held is not None and held.first == to_days(life.day(4))


def closed_days_stay_closed(shop: Shop) -> None:
    """A clock that is set back opens nothing."""
    with shop.open() as data_set:
        data_set.prepare()
        held = data_set.curator.engine.prepared_blocks(1)
        shop.today(life.day(5))
        data_set.prepare()
        assert data_set.curator.engine.prepared_blocks(1) == held


def _of_all_blocks(*terms: Any, blocks: object = None, **more: Any) -> str:
    return _PRIVATE_TABLE(*terms, **more)


def _rank_within_person(window: str) -> str:
    return _RANK_OF(window.replace(", c._block", ""))


def _old_files_stay(self: BlockIndex, prepared: Any, write: Any, files: Any, read: Any) -> BlockIndex:
    after = _AFTER(self, prepared, write, files, read)
    return replace(after, files={table: {**after.files[table], **old} for table, old in self.files.items()})


def _without_corrections(self: TableFacts, first: int, last: int, *, apart: bool = False) -> Blocks:
    return Blocks(first, last, apart)


def _fresh_balances(reaches: Any, cost: Any) -> Any:
    corrected = {block for reach in reaches for read in reach.blocks for block, _ in read.corrected}
    found = []
    for each in _COSTS(reaches, cost):
        numbers = [None] if each.first is None or each.last is None else range(each.first, each.last + 1)
        for number in numbers:
            block = number + 9_000 if number in corrected and number is not None else number
            found.append(replace(each, first=block, last=block))
    return tuple(found)


def _what_was_retired_comes_back(declaration: Any, declared: Any, held: PreparedBlocks | None = None) -> PreparedBlocks:
    closed = _CLOSED(declaration, declared, held)
    return replace(closed, first=_CLOSED(declaration, declared).first)


def _as_the_clock_says(declaration: Any, declared: Any, held: PreparedBlocks | None = None) -> PreparedBlocks:
    closed = _CLOSED(declaration, declared, held)
    return replace(closed, last=_CLOSED(declaration, declared).last)


def _no_grace(self: BlocksDecl, today: int) -> int:
    return _LAST_CLOSED(replace(self, grace_days=-1), today)


def _a_block_early(domain: Any, first: int, last: int, every: Any) -> Any:
    return _WITHIN(domain, first, max(first, last - 1), every)


def _for_each_block(queries: Any, known: Any, by_block: Any) -> Cost | None:
    number = sum(each.last - each.first + 1 for each in by_block if each.first is not None)
    return group_cost(certify.total_cost(queries), number, known.account) if by_block else None


def _left_out(queries: Any, known: Any, by_block: Any) -> Cost | None:
    return Cost.zero() if by_block else None


def _of_events_alone(ranges: Any, cost: Cost) -> Cost:
    return Cost.zero() if ranges else cost


def _as_one_unit(self: LocalLedger, terms: Any, *, read: Any, units: int, reason: str) -> None:
    _DECLARE(self, terms, read=read, units=1, reason=reason)


def _by_nobody(self: LocalLedger, terms: Any, *, read: Any, units: int, reason: str) -> None:
    _DECLARE(self, terms, read=None, units=units, reason=reason)


def _strictly(function: Function, left: Any, right: Any, columns: Any) -> bool:
    strict = {Function.LESS_EQUAL: Function.LESS, Function.GREATER_EQUAL: Function.GREATER}
    return _MAY_BE(strict.get(function, function), left, right, columns)


def _all_of_or(condition: Any, columns: Any) -> bool:
    match condition:
        case Call(Function.OR, arguments):
            return all(time_conditions.may_be_true(each, columns) for each in arguments)
        case _:
            return _MAY_BE_TRUE(condition, columns)


def _not_is_nothing(condition: Any, columns: Any) -> bool:
    match condition:
        case Call(Function.NOT, (inner,)):
            return time_conditions.may_be_true(inner, columns)
        case _:
            return _MAY_BE_TRUE(condition, columns)


def _into_windows(self: _Finder, relation: Any, conditions: Any) -> Any:
    if isinstance(relation, UnitWindow):
        return replace(relation, source=self.read(relation.source, conditions))
    return _READ(self, relation, conditions)


def _left_joins_as_inner(self: _Finder, relation: Any, conditions: Any) -> Any:
    if isinstance(relation, UnitJoin) and relation.kind is JoinKind.LEFT:
        read = _READ(self, replace(relation, kind=JoinKind.INNER), conditions)
        assert isinstance(read, UnitJoin)
        return replace(read, kind=JoinKind.LEFT)
    return _READ(self, relation, conditions)


def _without_the_last(blocks: Any, possible: Any) -> Any:
    ends = _ENDS(blocks, possible)
    return ends if ends is None else (ends[0], max(ends[0], ends[1] - 1))


_LATE = of_shop(life.test_late_rows_are_left_out_and_counted)
_CORRECTION = of_shop(life.test_a_correction_costs_its_readers_again_and_nobody_else)
_QUOTED = of_shop(life.test_the_quoted_price_is_charged_to_every_block_and_to_no_other, neighbours="unbounded", delta='"2^-40"', budget="")
_MIGRATION = of_shop(life.test_a_data_set_with_one_budget_becomes_one_with_blocks_by_the_owners_word)
_READS = of_statements(statements.test_blocks_in_which_a_time_meets_the_conditions_are_read, timed=False)
_ANSWERS = of_statements(statements.test_an_answer_over_the_blocks_that_are_read_is_that_over_all_closed_ones)

BY_DAY = next(sql for sql in life.STATEMENTS if "GROUP BY day" in sql)

MUTANTS: tuple[GrowthMutant, ...] = (
    GrowthMutant("late rows are written into closed blocks", ((block_writing, "private_table", _of_all_blocks),), _LATE),
    GrowthMutant("every write writes all blocks", ((block_writing, "common_blocks", lambda some, others: some),), _LATE),
    GrowthMutant("a correction leaves the old rows", ((BlockIndex, "after", _old_files_stay),), _LATE),
    GrowthMutant(
        "ranks within the person where a version grows",
        ((prepare, "rank_of", _rank_within_person),),
        of_oracle("ranked, by clinic", "a join within"),
    ),
    GrowthMutant("a correction keeps the digest", ((TableFacts, "blocks_between", _without_corrections),), _CORRECTION),
    GrowthMutant("a correction is not counted", ((PreparedBlocks, "with_corrections", lambda self, first, last: self),), _CORRECTION),
    GrowthMutant("a correction has a fresh balance", ((certify, "costs_by_block", _fresh_balances),), _CORRECTION),
    GrowthMutant(
        "a correction has a fresh balance, for the oracle",
        ((certify, "costs_by_block", _fresh_balances),),
        of_oracle("came in", "visits of one", "a union"),
    ),
    GrowthMutant(
        "open blocks are prepared",
        ((BlocksDecl, "last_closed", _no_grace),),
        of_shop(life.test_a_day_that_is_not_closed_is_refused_with_the_last_that_is),
    ),
    GrowthMutant(
        "retired blocks come back", ((block_life, "closed_blocks", _what_was_retired_comes_back),), of_shop(retired_rows_stay_away)
    ),
    GrowthMutant(
        "a clock that is set back opens blocks", ((block_life, "closed_blocks", _as_the_clock_says),), of_shop(closed_days_stay_closed)
    ),
    GrowthMutant("<= and >= are read as < and >", ((time_conditions, "_may_be", _strictly),), _READS),
    GrowthMutant("OR is read as AND", ((time_conditions, "may_be_true", _all_of_or),), _READS),
    GrowthMutant(
        "NOT is read as nothing",
        ((time_conditions, "may_be_true", _not_is_nothing),),
        _READS,
    ),
    GrowthMutant("the last block of a condition is not read", ((statement_blocks, "_ends", _without_the_last),), _READS),
    GrowthMutant("conditions go into windows", ((_Finder, "read", _into_windows),), _ANSWERS),
    GrowthMutant("a left join is read as an inner one", ((_Finder, "read", _left_joins_as_inner),), _ANSWERS),
    GrowthMutant(
        "times of a range end a block early",
        ((facts, "within_blocks", _a_block_early),),
        of_shop(life.test_without_noise_an_answer_is_that_of_the_closed_days, sql=BY_DAY),
    ),
    GrowthMutant("a person pays for each block", ((certify, "_cost_of_person", _for_each_block),), _QUOTED),
    GrowthMutant("a person pays nothing", ((certify, "_cost_of_person", _left_out),), _QUOTED),
    GrowthMutant("a person's cost is not added up", ((BlockCharge, "years", lambda self, every: []),), _QUOTED),
    GrowthMutant(
        "units of a person in several blocks are one",
        ((BlocksRead, "units_per_person", 1),),
        of_kernel(kernel.test_a_person_within_several_blocks_is_as_many_units),
    ),
    GrowthMutant(
        "tables without time are joined for nothing",
        tuple((module, "standing_cost", _of_events_alone) for module in (ledger, rows, block_state)),
        of_shop(life.test_a_statement_that_joins_people_is_paid_by_the_tables_without_time_too),
    ),
    GrowthMutant("what was spent before is inherited as one unit", ((LocalLedger, "declare_blocks", _as_one_unit),), _MIGRATION),
    GrowthMutant("blocks inherit nothing", ((LocalLedger, "declare_blocks", _by_nobody),), _MIGRATION),
    GrowthMutant(
        "only closed blocks inherit", ((block_life, "block_of_day", lambda day, every: _BLOCK_OF_DAY(day, every) - 2),), _MIGRATION
    ),
)
BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
