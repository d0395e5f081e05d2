"""The local ledger with blocks of time, by examples: who pays, what is refused, what is inherited, restored and upgraded."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.catalog import LimitsDecl
from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.block_balances import BLOCK_MAX, BlockTerms
from lapwing.ledger.glance import local_balance
from lapwing.ledger.local import registry
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.local.restoring import make_anew
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import Format, statements
from lapwing.ledger.local.verify import verify
from lapwing.ledger.protocol import EntryKind, Request
from tests.ledger.support import (
    FINGERPRINT,
    SOURCE,
    approximate_budget,
    ledger_path,
    new_ledger,
    of_standing,
    open_ledger,
    pure_budget,
    request,
)

NO_CAP = BlockTerms("day", None)


def over(
    key: str, *ranges: tuple[int, int, int], standing: int = 0, whole: int | None = None, person: int | None = None, digest: str = "plan"
) -> Request:
    """A request of (first, last, loss), and of what the standing block pays."""
    costs = [BlockCost(first, last, Cost(loss, 0)) for first, last, loss in ranges]
    if standing:
        costs.append(BlockCost(None, None, Cost(standing, 0)))
    most = max([standing, *(loss for _, _, loss in ranges)])
    whole = most if whole is None else whole
    return replace(request(key, loss=whole, digest=digest), ranges=tuple(costs), person=Cost(whole if person is None else person, 0))


def declared(directory: Path, terms: BlockTerms = NO_CAP, *, budget: int = 10, ceiling: int = 20) -> LocalLedger:
    ledger = new_ledger(directory, budget=pure_budget(budget), ceiling=pure_budget(ceiling))
    ledger.declare_blocks(terms, read=None, units=1, reason="data grows")
    return ledger


def spent(ledger: LocalLedger) -> dict[tuple[int | None, int | None], int]:
    blocks = ledger.blocks()
    assert blocks is not None
    return {(each.first, each.last): each.cost.loss for each in blocks.ranges}


def charge(ledger: LocalLedger, asked: Request) -> Permit:
    permit = ledger.reserve(asked)
    assert isinstance(permit, Permit)
    return permit


def refusal(act: Any) -> str:
    with pytest.raises(LapwingError) as refused:
        act()
    return refused.value.code


def test_every_block_pays_its_part_and_only_that(tmp_path: Path) -> None:
    with declared(tmp_path) as ledger:
        permit = charge(ledger, over("a", (1, 5, 3), (8, 8, 4), standing=2, whole=6))
        assert permit.cost == Cost(6, 0)
        assert spent(ledger) == {(1, 5): 3, (8, 8): 4} and ledger.balance().spent == Cost(2, 0)
        charge(ledger, over("b", (4, 8, 6)))
        assert spent(ledger) == {(1, 3): 3, (4, 5): 9, (6, 7): 6, (8, 8): 10} and ledger.balance().spent == Cost(2, 0)
        assert refusal(lambda: ledger.reserve(over("c", (1, 4, 2)))) == "block-budget"
        charge(ledger, over("d", (1, 4, 1)))
        assert refusal(lambda: ledger.reserve(over("e", (100, 200, 1), standing=9))) == "budget-exceeded"
        entries = {entry.detail: entry for entry in ledger.history()}
        assert entries["SELECT 'a'"].cost == Cost(2, 0) and len(entries["SELECT 'a'"].ranges) == 3
        assert entries["SELECT 'd'"].cost == Cost.zero() and entries["SELECT 'd'"].ranges == (BlockCost(1, 4, Cost(1, 0)),)
        ledger.commit(permit, b"answer")
        replayed = ledger.reserve(over("a", (1, 5, 3), (8, 8, 4), standing=2, whole=6))
        assert not isinstance(replayed, Permit) and replayed.payload == b"answer"
    with open_ledger(tmp_path) as ledger:
        assert spent(ledger) == {(1, 3): 4, (4, 4): 10, (5, 5): 9, (6, 7): 6, (8, 8): 10}
    assert local_balance(ledger_path(tmp_path)) is not None


def test_an_old_range_that_is_dry_leaves_new_blocks_alone(tmp_path: Path) -> None:
    with declared(tmp_path, budget=3) as ledger:
        for day in range(200):
            charge(ledger, over(f"day {day}", (day, day, 3)))
        assert refusal(lambda: ledger.reserve(over("again", (7, 7, 1)))) == "block-budget"
        assert ledger.balance().spent == Cost.zero()


def test_one_person_loses_over_a_year_what_the_owner_allows_at_most(tmp_path: Path) -> None:
    terms = BlockTerms("month", Fraction(12, LOSS_UNITS))
    with declared(tmp_path, terms) as ledger:
        charge(ledger, over("a", (0, 0, 5), person=7))
        assert refusal(lambda: ledger.reserve(over("b", (11, 11, 6)))) == "person-cap"
        assert refusal(lambda: ledger.require_payable("ana", Cost(6, 0), over("b", (11, 11, 6)).ranges, Cost(6, 0))) == "person-cap"
        charge(ledger, over("c", (12, 12, 6)))
        assert refusal(lambda: ledger.reserve(of_standing(request("d", loss=6)))) == "person-cap", "tables without time are in every year"
        charge(ledger, of_standing(request("e", loss=5)))
        blocks = ledger.blocks()
        assert blocks is not None and blocks.person == Cost(12, 0)
        assert refusal(lambda: ledger.reserve(over("f", (0, 0, 1)))) == "person-cap"
        assert refusal(
            lambda: ledger.declare_blocks(replace(terms, person_cap=Fraction(11, LOSS_UNITS)), read=None, units=1, reason="less")
        ) == ("cap-below-spent")
        ledger.declare_blocks(replace(terms, person_cap=Fraction(13, LOSS_UNITS)), read=None, units=1, reason="more")
        charge(ledger, over("f", (0, 0, 1)))
        ledger.declare_blocks(replace(terms, person_cap=None), read=None, units=1, reason="no cap")
        charge(ledger, over("g", (0, 0, 4)))
        assert [entry.detail for entry in ledger.history() if entry.kind is EntryKind.BLOCKS] == ["no cap", "more", "data grows"]
    open_ledger(tmp_path).disconnect()


INVALID = {
    "overlapping ranges": over("x", (1, 5, 1), (5, 6, 1)),
    "overlapping ranges in another order": over("x", (5, 6, 1), (1, 5, 1)),
    "a range that ends before it begins": over("x", (5, 4, 1)),
    "a block that no ledger keeps": over("x", (5, BLOCK_MAX + 1, 1)),
    "a range without a cost": over("x", (1, 2, 0), whole=1),
    "two standing blocks": replace(over("x", (1, 2, 1), standing=1), ranges=(BlockCost(None, None, Cost(1, 0)),) * 2),
    "half a range": replace(over("x", (1, 2, 1)), ranges=(BlockCost(1, None, Cost(1, 0)),)),
    "ranges and no person": replace(over("x", (1, 2, 1)), person=None),
    "a person and no ranges": replace(request("x"), person=Cost(1, 0)),
}


@pytest.mark.parametrize("what", INVALID)
def test_what_no_plan_asks_for_is_refused(tmp_path: Path, what: str) -> None:
    asked = INVALID[what]
    with declared(tmp_path) as ledger:
        assert refusal(lambda: ledger.reserve(asked)) == "request-invalid"
        assert refusal(lambda: ledger.require_payable("ana", asked.cost, asked.ranges, asked.person)) == "request-invalid"
        assert spent(ledger) == {} and ledger.balance().spent == Cost.zero()


def test_ranges_are_refused_where_no_blocks_were_declared(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        assert ledger.blocks() is None
        assert refusal(lambda: ledger.reserve(over("x", (1, 2, 1)))) == "request-invalid"
        ledger.declare_blocks(NO_CAP, read=None, units=1, reason="data grows")
        assert refusal(lambda: ledger.reserve(over("x", (1, 2, 3), whole=0))) == "zero-cost"
        charge(ledger, over("x", (1, 2, 1)))


def test_the_blocks_that_were_read_inherit_what_was_spent(tmp_path: Path) -> None:
    budget = approximate_budget(3)
    unit = budget.loss_total // 100
    with new_ledger(tmp_path, budget=budget) as ledger:
        charge(ledger, request("before", loss=5 * unit))
        ledger.declare_blocks(BlockTerms("month", None), read=(3, 6), units=4, reason="data grows")
        assert ledger.balance().spent == Cost(80 * unit, 0), "a person's rows of four months: sixteen times"
        blocks = ledger.blocks()
        assert blocks is not None and blocks.ranges == (BlockCost(3, 6, Cost(80 * unit, 0)),) and blocks.person == Cost(80 * unit, 0)
        [entry] = ledger.history(limit=1)
        assert (entry.kind, entry.cost, entry.detail) == (EntryKind.BLOCKS, Cost(75 * unit, 0), "data grows")
        ledger.declare_blocks(BlockTerms("month", None), read=(0, 9), units=9, reason="again")
        assert ledger.history(limit=1) == (entry,), "what is in force already changes nothing"
        assert refusal(lambda: ledger.declare_blocks(NO_CAP, read=None, units=1, reason="days")) == "blocks-period"
    open_ledger(tmp_path).disconnect()


def test_what_no_block_can_inherit_is_not_declared(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        charge(ledger, request("before", loss=4))
        for terms, units in ((NO_CAP, 3), (replace(NO_CAP, person_cap=Fraction(7, LOSS_UNITS)), 2)):
            assert refusal(lambda terms=terms, units=units: ledger.declare_blocks(terms, read=(1, 2), units=units, reason="x")) == (
                "blocks-overspent"
            )
        assert refusal(lambda: ledger.declare_blocks(BlockTerms("hour", None), read=(1, 2), units=1, reason="x")) == "blocks-period"
        assert refusal(lambda: ledger.declare_blocks(NO_CAP, read=(2, 1), units=1, reason="x")) == "block-invalid"
        assert refusal(lambda: ledger.declare_blocks(NO_CAP, read=(1, 2), units=0, reason="x")) == "block-invalid"
        assert refusal(lambda: ledger.declare_blocks(NO_CAP, read=(1, 2), units=1, reason=" ")) == "override-reason"
        assert ledger.blocks() is None and ledger.balance().spent == Cost(4, 0) and len(ledger.history()) == 2


def test_a_budget_below_what_a_block_has_spent_is_refused(tmp_path: Path) -> None:
    with declared(tmp_path) as ledger:
        charge(ledger, over("a", (1, 2, 7)))
        assert refusal(lambda: ledger.set_budget(pure_budget(6), reason="less")) == "budget-below-spent"
        ledger.set_budget(pure_budget(7), reason="less")
        assert refusal(lambda: ledger.reserve(over("b", (2, 3, 1)))) == "block-budget"
        ledger.set_budget(pure_budget(20), reason="more")
        charge(ledger, over("b", (2, 3, 13)))


def test_limits_count_the_price_of_the_plan(tmp_path: Path) -> None:
    declared(tmp_path).disconnect()
    allowed = LimitsDecl(per_statement=Fraction(1, 2), per_day=Fraction(8, 10))
    with LocalLedger.open(ledger_path(tmp_path), source_id=SOURCE, home=tmp_path / "home", allowed=allowed) as ledger:
        assert refusal(lambda: ledger.reserve(over("a", (1, 1, 1), whole=6))) == "statement-limit"
        charge(ledger, over("b", (1, 1, 1), whole=5))
        assert refusal(lambda: ledger.reserve(over("c", (2, 2, 1), whole=4))) == "day-limit"
        charge(ledger, over("d", (2, 2, 1), whole=3))


def test_two_processes_see_what_the_other_has_charged(tmp_path: Path) -> None:
    with declared(tmp_path) as one, open_ledger(tmp_path) as two:
        for turn in range(5):
            charge(one, over(f"one {turn}", (0, 9, 1)))
            charge(two, over(f"two {turn}", (5, 14, 1)))
        assert spent(one) == spent(two) == {(0, 4): 5, (5, 9): 10, (10, 14): 5}
        for ledger in (one, two):
            assert refusal(lambda ledger=ledger: ledger.reserve(over("dry", (5, 5, 1)))) == "block-budget"


def test_a_forked_child_goes_on_with_the_balances(tmp_path: Path) -> None:
    with declared(tmp_path) as ledger:
        charge(ledger, over("a", (0, 9, 4)))
        pid = os.fork()
        if pid == 0:
            charge(ledger, over("child", (5, 6, 5)))
            os._exit(0 if spent(ledger) == {(0, 4): 4, (5, 6): 9, (7, 9): 4} else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert refusal(lambda: ledger.reserve(over("parent", (6, 6, 2)))) == "block-budget"
        charge(ledger, over("parent", (6, 6, 1)))


def test_a_charge_that_is_rolled_back_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with declared(tmp_path) as ledger:
        with monkeypatch.context() as patched:
            patched.setattr("lapwing.ledger.local.ledger.issue", lambda *_, **__: (_ for _ in ()).throw(LedgerError("stopped", "stopped")))
            assert refusal(lambda: ledger.reserve(over("a", (0, 9, 4)))) == "stopped"
        assert spent(ledger) == {}
        charge(ledger, over("a", (0, 9, 10)))
        assert spent(ledger) == {(0, 9): 10}


def restored(directory: Path, backup: bytes) -> LocalLedger:
    ledger_path(directory).write_bytes(backup)
    assert refusal(lambda: open_ledger(directory)) == "ledger-rolled-back"
    return open_ledger(directory, override=True, reason="the disk died")


def test_every_block_is_charged_what_a_restored_file_has_lost(tmp_path: Path) -> None:
    terms = BlockTerms("month", Fraction(20, LOSS_UNITS))
    with declared(tmp_path, terms) as ledger:
        charge(ledger, over("a", (10, 12, 3), (20, 29, 8)))
        backup = ledger_path(tmp_path).read_bytes()
        charge(ledger, over("b", (14, 14, 4), person=5))
        charge(ledger, over("c", (15, 15, 1), standing=2, person=3))
        ledger.declare_blocks(BlockTerms("month", Fraction(30, LOSS_UNITS)), read=None, units=1, reason="more")
        ledger.set_budget(pure_budget(12), reason="more")
    with restored(tmp_path, backup) as ledger:
        assert ledger.balance().spent == Cost(2, 0)
        assert spent(ledger) == {(10, 12): 8, (13, 19): 5, (20, 29): 12}, "five more, or what was left"
        blocks = ledger.blocks()
        assert blocks is not None and blocks.terms.person_cap == Fraction(30, LOSS_UNITS) and blocks.person == Cost(8 + 5 + 3, 0)
        kinds = [entry.kind for entry in ledger.history(limit=4)]
        assert kinds == [EntryKind.RESTORE, EntryKind.RESTORE, EntryKind.BLOCKS, EntryKind.OVERRIDE]
        assert refusal(lambda: ledger.reserve(over("d", (29, 29, 1)))) == "block-budget"
        charge(ledger, over("d", (30, 31, 12)))
    with open_ledger(tmp_path) as ledger:
        assert spent(ledger)[20, 31] == 12
    assert verify(ledger_path(tmp_path), source_id=SOURCE, fingerprint=FINGERPRINT, home=tmp_path / "home").problems == ()


def test_a_file_from_before_there_were_blocks_is_charged_what_blocks_inherited(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        charge(ledger, request("before", loss=1))
        backup = ledger_path(tmp_path).read_bytes()
        charge(ledger, request("lost", loss=1))
        ledger.declare_blocks(NO_CAP, read=(3, 6), units=4, reason="data grows")
        charge(ledger, over("a", (5, 8, 1)))
    with restored(tmp_path, backup) as ledger:
        assert ledger.balance().spent == Cost(8, 0) and spent(ledger) == {(3, 8): 9}
        charge(ledger, over("b", (3, 8, 1)))


def test_a_lost_file_is_made_anew_with_what_blocks_have_spent(tmp_path: Path) -> None:
    with declared(tmp_path, BlockTerms("day", Fraction(9, LOSS_UNITS))) as ledger:
        for day in range(5):
            charge(ledger, over(f"day {day}", (day, day, 4), person=1))
        charge(ledger, of_standing(request("standing", loss=2)))
    ledger_path(tmp_path).unlink()
    make_anew(ledger_path(tmp_path), SOURCE, FINGERPRINT, home=tmp_path / "home", reason="lost")
    with open_ledger(tmp_path) as ledger:
        blocks = ledger.blocks()
        assert blocks is not None and blocks.person == Cost(5 + 2, 0)
        assert spent(ledger) == {(0, 4): 10} and ledger.balance().spent == Cost(2, 0)
        assert refusal(lambda: ledger.reserve(over("x", (4, 5, 1)))) == "block-budget"
        charge(ledger, over("x", (5, 5, 2)))


def test_a_second_restore_is_charged_in_full_because_balances_may_be_above_the_budget(tmp_path: Path) -> None:
    with declared(tmp_path) as ledger:
        backup = ledger_path(tmp_path).read_bytes()
        charge(ledger, over("a", (1, 1, 7)))
        charge(ledger, over("b", (2, 2, 7)))
    with restored(tmp_path, backup) as ledger:
        assert spent(ledger) == {(1, 2): 10}
        backup = ledger_path(tmp_path).read_bytes()
        charge(ledger, over("c", (3, 3, 6)))
    with restored(tmp_path, backup) as ledger:
        assert spent(ledger) == {(1, 2): 16, (3, 3): 6}
        assert refusal(lambda: ledger.reserve(over("d", (2, 2, 1)))) == "block-budget"
        ledger.set_budget(pure_budget(12), reason="more")
        assert refusal(lambda: ledger.set_budget(pure_budget(11), reason="less")) == "budget-below-spent"
    open_ledger(tmp_path).disconnect()


def parted(directory: Path) -> tuple[bytes, Path]:
    """A ledger of this registry, and a copy that another registry adopted."""
    with new_ledger(directory) as ledger:
        charge(ledger, request("before", loss=1))
    copy, home = ledger_path(directory).read_bytes(), directory / "another home"
    return copy, home


def test_what_was_spent_without_blocks_elsewhere_cannot_be_added_to_blocks(tmp_path: Path) -> None:
    copy, home = parted(tmp_path)
    with open_ledger(tmp_path) as ledger:
        ledger.declare_blocks(NO_CAP, read=None, units=1, reason="data grows")
        charge(ledger, over("a", (1, 1, 1)))
    ledger_path(tmp_path).write_bytes(copy)
    with LocalLedger.open(ledger_path(tmp_path), source_id=SOURCE, home=home, override=True, reason="moved") as elsewhere:
        charge(elsewhere, request("there", loss=1))
    assert refusal(lambda: open_ledger(tmp_path, override=True, reason="back")) == "ledger-superseded"


def test_blocks_elsewhere_cannot_be_added_to_what_was_spent_without_them(tmp_path: Path) -> None:
    copy, home = parted(tmp_path)
    with open_ledger(tmp_path) as ledger:
        charge(ledger, request("here", loss=1))
    ledger_path(tmp_path).write_bytes(copy)
    with LocalLedger.open(ledger_path(tmp_path), source_id=SOURCE, home=home, override=True, reason="moved") as elsewhere:
        elsewhere.declare_blocks(NO_CAP, read=None, units=1, reason="data grows")
    assert refusal(lambda: open_ledger(tmp_path, override=True, reason="back")) == "ledger-superseded"


def test_what_another_ledger_charged_to_blocks_is_charged_too(tmp_path: Path) -> None:
    with declared(tmp_path) as ledger:
        charge(ledger, over("a", (1, 4, 3)))
    os.rename(ledger_path(tmp_path), tmp_path / "first.sqlite")
    with LocalLedger.create(
        ledger_path(tmp_path),
        source_id=SOURCE,
        source_fingerprint=FINGERPRINT,
        budget=pure_budget(10),
        ceiling=pure_budget(20),
        home=tmp_path / "home",
        override=True,
        reason="a new study",
    ) as other:
        other.declare_blocks(NO_CAP, read=None, units=1, reason="data grows")
        charge(other, over("b", (3, 6, 4)))
    os.replace(tmp_path / "first.sqlite", ledger_path(tmp_path))
    with open_ledger(tmp_path, override=True, reason="the first one") as ledger:
        assert spent(ledger) == {(1, 2): 3, (3, 4): 7, (5, 6): 4}


def test_the_anchor_of_a_data_set_without_blocks_keeps_its_form(tmp_path: Path) -> None:
    def fields() -> set[str]:
        with closing(sqlite3.connect(tmp_path / "home" / registry.REGISTRY_FILE)) as connection:
            return set(json.loads(connection.execute("SELECT state FROM source").fetchone()[0]))

    with new_ledger(tmp_path) as ledger:
        charge(ledger, request("before"))
        form = {"budget", "ceiling", "closed", "delta_spent", "loss_spent", "pure_spent"}
        assert fields() == form
        ledger.declare_blocks(NO_CAP, read=None, units=1, reason="data grows")
        assert fields() == form | {"blocks"}


def test_a_plan_from_before_there_were_blocks_is_refused(tmp_path: Path) -> None:
    """It was certified for a version without blocks, and may read the rows of all of them."""
    with declared(tmp_path) as ledger:
        assert refusal(lambda: ledger.reserve(request("a"))) == "blocks-missing"
        assert refusal(lambda: ledger.require_payable("ana", Cost(1, 0))) == "blocks-missing"
        assert ledger.balance().spent == Cost.zero()


def test_a_ledger_that_moves_takes_the_ranges_of_its_charges_along(tmp_path: Path) -> None:
    asked = over("a", (1, 5, 3), (8, 8, 4), standing=2, whole=6)
    with declared(tmp_path) as ledger:
        ledger.commit(charge(ledger, asked), b"answer")
        ledger.commit(charge(ledger, of_standing(request("b"))), b"answer")
        state, paid = ledger.moved_out("elsewhere")
        assert [one.request for one in paid] == [asked, of_standing(request("b"))]
        assert state.blocks is not None and state.blocks.terms == NO_CAP and state.blocks.hull == (1, 8)


CHANGES = {
    "a shorter range": "UPDATE entry SET blocks = replace(blocks, '[1,5,', '[1,4,') WHERE kind = 'reserve'",
    "another part": "UPDATE entry SET blocks = replace(blocks, '\"3\"', '\"2\"') WHERE kind = 'reserve'",
    "no ranges": "UPDATE entry SET blocks = NULL WHERE kind = 'reserve'",
    "other terms": "UPDATE entry SET evidence = replace(evidence, 'day', 'week') WHERE kind = 'blocks'",
    "another sum": "UPDATE ledger SET blocks = replace(blocks, '\"4\"', '\"3\"')",
    "another hull": "UPDATE ledger SET blocks = replace(blocks, '[1,8]', '[1,7]')",
    "other terms in force": "UPDATE ledger SET blocks = replace(blocks, 'day', 'week')",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_behind_its_back_is_found(tmp_path: Path, what: str) -> None:
    with declared(tmp_path) as ledger:
        charge(ledger, over("a", (1, 5, 3), (8, 8, 4)))
    with closing(sqlite3.connect(ledger_path(tmp_path), isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        if "ledger" not in CHANGES[what].split()[1]:
            with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                connection.execute(CHANGES[what])
        for statement in (*(f"DROP TRIGGER {name}" for name, _ in triggers), CHANGES[what], *(sql for _, sql in triggers)):
            connection.execute(statement)
    assert refusal(lambda: open_ledger(tmp_path)) == "ledger-damaged"
    found = verify(ledger_path(tmp_path), source_id=SOURCE, fingerprint=FINGERPRINT, home=tmp_path / "home").problems
    assert any("ledger-damaged" in problem for problem in found)


def test_the_file_itself_never_forgets_that_there_are_blocks(tmp_path: Path) -> None:
    declared(tmp_path).disconnect()
    with closing(sqlite3.connect(ledger_path(tmp_path))) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE ledger SET blocks = NULL")


def format_3() -> Format:
    found = LEDGER_FORMAT
    while found.version > 3:
        assert found.earlier is not None
        found = found.earlier
    return found


def as_format_3(path: Path) -> None:
    """The same ledger as a file of the third format, as an earlier version wrote it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP INDEX charge_by_name")
        connection.execute("DROP TRIGGER ledger_only_grows")
        for table in ("ledger", "entry"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN blocks")
        [rule] = [one for one in statements(format_3().schema) if one.startswith("CREATE TRIGGER ledger_only_grows")]
        connection.execute(rule)
        connection.execute("PRAGMA user_version = 3")


def test_a_file_of_format_3_goes_on_in_place_with_its_chain_as_it_is(tmp_path: Path) -> None:
    path = ledger_path(tmp_path)

    def entries() -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as connection:
            names = "entry_id, at, kind, analyst, charge_id, loss, delta, detail, evidence, pure, chained"
            return connection.execute(f"SELECT {names} FROM entry ORDER BY entry_id").fetchall()

    with new_ledger(tmp_path) as ledger:
        ledger.commit(charge(ledger, request("old", loss=3)), b"answer")
        ledger.commit(charge(ledger, request("older", loss=2, pure=1)), b"answer")
    as_format_3(path)
    before = entries()
    assert local_balance(path) is None, "a glance does not upgrade it"
    with open_ledger(tmp_path) as ledger:
        assert entries() == before and ledger.blocks() is None and ledger.find("plan of old") is not None
        charge(ledger, request("new"))
        ledger.declare_blocks(NO_CAP, read=(1, 2), units=1, reason="data grows")
        assert spent(ledger) == {(1, 2): 6}
        charge(ledger, over("blocks", (1, 3, 2)))
    with open_ledger(tmp_path) as ledger:
        assert entries()[: len(before)] == before and spent(ledger) == {(1, 2): 8, (3, 3): 2}


def test_a_changed_file_of_format_3_is_not_upgraded(tmp_path: Path) -> None:
    new_ledger(tmp_path).disconnect()
    as_format_3(ledger_path(tmp_path))
    with closing(sqlite3.connect(ledger_path(tmp_path), isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entry_fixed")
    kept = ledger_path(tmp_path).read_bytes()
    assert refusal(lambda: open_ledger(tmp_path)) == "ledger-damaged"
    assert ledger_path(tmp_path).read_bytes() == kept
