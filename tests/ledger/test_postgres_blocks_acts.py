"""What owners and workers do with blocks of time on PostgreSQL: declare, lower and raise, restore, send together, race, move."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import BudgetRefused, CatalogueError, LapwingError, LedgerError, Refused
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.block_balances import BLOCK_MAX, BLOCK_MIN, BlockSpending, BlockTerms
from lapwing.ledger.postgres import policy, transfer
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.opening import override_parameters
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import EntryKind, Request, StoredAnswer
from tests.ledger.cluster import CURATOR_ROLE
from tests.ledger.pg import Place, new_place
from tests.ledger.support import approximate_budget, new_ledger, of_standing, open_ledger, pure_budget, request, union_budget
from tests.ledger.test_postgres_orders import kept_rows, put_back

DAYS = BlockTerms("day", None)


def of_days(
    key: str, first: int, last: int, *, loss: int = 1, standing: int = 0, person: int | None = None, whole: int | None = None
) -> Request:
    """A request whose blocks each pay this, and the tables without time what is said."""
    ranges = [
        BlockCost(first, last, Cost(loss=loss, delta=0)),
        *([BlockCost(None, None, Cost(loss=standing, delta=0))] if standing else []),
    ]
    cost = Cost(loss=person if person is not None else loss, delta=0)
    return replace(request(key, loss=whole or max(loss, standing)), ranges=tuple(ranges), person=cost)


def declared(place: Place, units: int = 10, *, cap: int | None = None) -> PostgresLedger:
    ledger = place.create(pure_budget(units), pure_budget(10 * units))
    ledger.declare_blocks(BlockTerms("day", None if cap is None else Fraction(cap, LOSS_UNITS)), read=None, units=1, reason="new data")
    return ledger


def spent(ledger: PostgresLedger, block: int) -> int:
    spending = ledger.blocks()
    assert spending is not None
    return spending.most(block, block).loss


def code(act: object) -> str:
    with pytest.raises(LapwingError) as refusal:
        act()  # type: ignore[operator]
    return refusal.value.code


def sound(place: Place, ledger: PostgresLedger) -> None:
    assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


def test_each_block_pays_its_part_and_an_answer_is_stored_as_ever(place: Place) -> None:
    with declared(place, cap=25) as ledger:
        one = of_days("one", 5, 20, loss=4, standing=3, person=9, whole=11)
        permit = ledger.reserve(one)
        assert isinstance(permit, Permit) and permit.cost == Cost(loss=11, delta=0)
        ledger.commit(permit, b"answer")
        assert isinstance(ledger.reserve(one), StoredAnswer)
        assert ledger.balance().spent == Cost(loss=3, delta=0)
        assert (spent(ledger, 4), spent(ledger, 5), spent(ledger, 20), spent(ledger, 21)) == (0, 4, 4, 0)
        [entry] = [entry for entry in ledger.history() if entry.kind is EntryKind.RESERVE]
        assert entry.cost == Cost(loss=3, delta=0), "what the tables without time paid"
        [bought] = ledger.bought(version=1, limit=9)
        assert bought.cost == Cost(loss=11, delta=0)
        assert code(lambda: ledger.reserve(of_days("two", 0, 5, loss=7))) == "block-budget"
        assert code(lambda: ledger.reserve(of_days("two", 30, 31, standing=8))) == "budget-exceeded"
        assert code(lambda: ledger.reserve(of_days("two", 900, 901, person=17))) == "person-cap"
        assert isinstance(ledger.reserve(of_days("two", 6, 6, loss=6, person=16)), Permit)
        assert code(lambda: ledger.reserve(of_standing(request("standing", loss=1)))) == "person-cap", (
            "tables without time concern every year"
        )
        assert isinstance(ledger.reserve(of_days("another year", 1000, 1000, person=16)), Permit)
        sound(place, ledger)


def test_limits_of_analysts_count_the_whole_cost(place: Place) -> None:
    with declared(place) as ledger:
        policy.admit(ledger, "bo", loss_total=12)
        policy.set_limits(ledger, policy.Limits(statement_loss_max=8, day_loss_max=15))
        ask = [replace(of_days(key, 1, 2, whole=7), analyst="bo") for key in "abc"]
        assert isinstance(ledger.reserve(ask[0]), Permit)
        assert code(lambda: ledger.reserve(ask[1])) == "analyst-budget"
        assert code(lambda: ledger.reserve(of_days("d", 1, 2, whole=9))) == "statement-limit"
        assert isinstance(ledger.reserve(of_days("e", 1, 2, whole=8)), Permit)
        assert code(lambda: ledger.reserve(of_days("f", 1, 2, whole=1))) == "day-limit"
        assert ledger.balance().spent == Cost.zero()
        sound(place, ledger)


def test_ranges_are_refused_that_no_block_can_pay(place: Place) -> None:
    with place.create() as ledger:
        assert code(lambda: ledger.reserve(of_days("a", 1, 2))) == "request-invalid", "blocks were not declared"
        ledger.declare_blocks(DAYS, read=None, units=1, reason="")
        cost = Cost(loss=1, delta=0)
        for ranges in (
            (BlockCost(1, 5, cost), BlockCost(5, 6, cost)),
            (BlockCost(2, 1, cost),),
            (BlockCost(BLOCK_MIN - 1, 0, cost),),
            (BlockCost(0, BLOCK_MAX + 1, cost),),
            (BlockCost(None, None, cost), BlockCost(None, None, cost)),
            (BlockCost(0, 1, Cost.zero()),),
            (BlockCost(0, None, cost),),
        ):
            asked = replace(request("a"), ranges=ranges, person=cost)
            assert code(lambda asked=asked: ledger.reserve(asked)) == "request-invalid"
            assert code(lambda ranges=ranges: ledger.require_payable("ana", cost, ranges, cost)) == "request-invalid"
        assert isinstance(ledger.reserve(replace(request("a"), ranges=(BlockCost(BLOCK_MIN, BLOCK_MAX, cost),), person=cost)), Permit)
        with pytest.raises(psycopg.Error), place.cluster.superuser(place.database) as superuser:
            superuser.execute("SELECT lapwing.raise_tree(%s, 1, 5, 6, -1, 0, 0)", [ledger.ledger_id])
        sound(place, ledger)


@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("budget", [pure_budget(100), approximate_budget(1), union_budget(1)], ids=["pure", "approximate", "union"])
def test_blocks_and_persons_inherit_what_was_spent(place: Place, budget: object, units: int) -> None:
    with place.create(budget) as ledger:  # type: ignore[arg-type]
        ledger.reserve(request("before", loss=20, pure=30))
        ledger.declare_blocks(BlockTerms("week", Fraction(1)), read=(10, 12), units=units, reason="migrated")
        times = units if budget == pure_budget(100) else units**2
        inherited = Cost(loss=20 * times, delta=0, pure=30 * units)
        assert ledger.balance().spent == inherited
        assert ledger.blocks() == BlockSpending(BlockTerms("week", Fraction(1)), (BlockCost(10, 12, inherited),), inherited)
        sound(place, ledger)
        with place.open() as again:
            assert again.state().blocks == ledger.state().blocks


def test_what_does_not_fit_into_one_block_is_not_declared(place: Place) -> None:
    with place.create(pure_budget(30)) as ledger:
        ledger.reserve(request("before", loss=20))
        state = ledger.state()
        assert code(lambda: ledger.declare_blocks(DAYS, read=(1, 2), units=2, reason="")) == "blocks-overspent"
        assert ledger.state() == state and ledger.blocks() is None
        ledger.declare_blocks(DAYS, read=(1, 2), units=1, reason="")
        assert code(lambda: ledger.declare_blocks(BlockTerms("week", None), read=None, units=1, reason="")) == "blocks-period"
        sound(place, ledger)


def test_a_delta_that_was_spent_on_keys_is_inherited_as_it_is(place: Place) -> None:
    with place.create(approximate_budget(1)) as ledger:
        ledger.reserve(request("before", loss=20, delta=1))
        ledger.declare_blocks(DAYS, read=(1, 2), units=2, reason="")
        blocks = ledger.blocks()
        assert blocks is not None and blocks.most(1, 2) == blocks.person == Cost(80, 1) == ledger.balance().spent
        sound(place, ledger)


def test_a_cap_that_does_not_hold_what_was_spent_is_not_declared(place: Place) -> None:
    with place.create(pure_budget(30)) as ledger:
        ledger.reserve(request("before", loss=20))
        cap = BlockTerms("day", Fraction(19, LOSS_UNITS))
        assert code(lambda: ledger.declare_blocks(cap, read=None, units=1, reason="")) == "blocks-overspent"
        ledger.declare_blocks(replace(cap, person_cap=Fraction(20, LOSS_UNITS)), read=None, units=1, reason="")
        assert code(lambda: ledger.reserve(of_days("a", 1, 2))) == "person-cap"
        sound(place, ledger)


def test_one_owner_lowers_a_cap_and_two_raise_or_remove_it(place: Place) -> None:
    def to(units: int | None) -> BlockTerms:
        return BlockTerms("day", None if units is None else Fraction(units, LOSS_UNITS))

    with declared(place) as ledger:
        ledger.reserve(of_days("a", 1, 2, person=6))
        assert code(lambda: ledger.declare_blocks(to(5), read=None, units=1, reason="")) == "budget-below-spent"
        ledger.declare_blocks(to(8), read=None, units=1, reason="less")
        ledger.declare_blocks(to(6), read=None, units=1, reason="less")
        entries = ledger.state().entries
        ledger.declare_blocks(to(6), read=None, units=1, reason="the same")
        assert ledger.state().entries == entries
        assert code(lambda: ledger.reserve(of_days("b", 2, 3))) == "person-cap"
        assert code(lambda: ledger.declare_blocks(to(7), read=None, units=1, reason="")) == "second-person"
        assert code(lambda: ledger.declare_blocks(to(None), read=None, units=1, reason="")) == "second-person"
        number = policy.propose_cap(ledger, Fraction(7, LOSS_UNITS), by="olga", reason="more")
        assert code(lambda: policy.approve(ledger, number, by="olga")) == "second-person"
        with place.in_another_role(ledger) as second:
            policy.approve(second, number, by="piet")
        assert isinstance(ledger.reserve(of_days("b", 2, 3)), Permit)
        removal = policy.propose_cap(ledger, None, by="olga", reason="no cap")
        assert policy.proposals(ledger)[0].budget is None
        with place.in_another_role(ledger) as second:
            policy.approve(second, removal, by="piet")
        assert isinstance(ledger.reserve(of_days("c", 2, 3, person=10**9)), Permit)
        of_blocks = ledger.blocks()
        assert of_blocks is not None and of_blocks.terms == to(None) and of_blocks.person.loss == 10**9 + 7
        sound(place, ledger)


def test_the_budget_is_not_lowered_below_what_a_block_has_spent(place: Place) -> None:
    with declared(place) as ledger:
        ledger.reserve(of_days("a", 7, 7, loss=6))
        with pytest.raises(CatalogueError) as below:
            ledger.set_budget(pure_budget(5), reason="less")
        assert below.value.code == "budget-below-spent"
        ledger.set_budget(pure_budget(6), reason="less")
        assert code(lambda: ledger.reserve(of_days("b", 1, 9, loss=1))) == "block-budget"
        with place.in_another_role(ledger) as second:
            policy.approve(second, policy.propose_budget(ledger, pure_budget(9), by="olga", reason="x"), by="piet")
        assert isinstance(ledger.reserve(of_days("b", 1, 9, loss=3)), Permit)
        sound(place, ledger)


def test_the_database_repeats_the_decision(place: Place) -> None:
    with declared(place, cap=5) as ledger:
        for tree, units in ((1, 11), (2, 6)):
            with pytest.raises(psycopg.errors.CheckViolation), place.cluster.superuser(place.database) as superuser:
                superuser.execute("SELECT lapwing.raise_tree(%s, %s, 5, 6, %s, 0, 0)", [ledger.ledger_id, tree, units])
        sound(place, ledger)


def test_a_lost_reply_is_found_again_by_its_nonce(place: Place) -> None:
    with declared(place) as ledger:
        asked = of_days("a", 1, 9, loss=4)
        first, again = ledger._reserve(asked, "n" * 32), ledger._reserve(asked, "n" * 32)
        assert isinstance(first, Permit) and isinstance(again, Permit) and first.charge_id == again.charge_id
        assert spent(ledger, 5) == 4
        sound(place, ledger)


def test_a_batch_charges_ranges_and_refuses_each_for_itself(place: Place) -> None:
    with declared(place) as ledger:
        asked = [of_days("a", 1, 5, loss=6), of_days("b", 5, 9, loss=6), of_standing(request("c", loss=2)), of_days("d", 6, 9, loss=6)]
        results = ledger.reserve_many(asked)
        assert [one.code if isinstance(one, LapwingError) else type(one).__name__ for one in results] == [
            *("Permit", "block-budget", "Permit", "Permit"),
        ]
        assert (spent(ledger, 5), spent(ledger, 6), ledger.balance().spent.loss) == (6, 6, 2)
        answers = [(one, b"answer") for one in results if isinstance(one, Permit)]
        assert ledger.commit_many(answers) == (None,) * 3
        sound(place, ledger)


def test_threads_of_several_data_sets_lose_no_charge_over_ranges(place: Place, tmp_path: Path) -> None:
    """One data set with blocks and one without, in one process: the first is never charged in a statement for both."""
    other = new_place(place.cluster, place.database, tmp_path / "other")
    with declared(place, 24), other.create(pure_budget(100)):
        pass
    shared = [SharedPostgresLedger.open(one.dsn, source_id=one.source_id, anchors=one.anchors) for one in (place, other)]
    outcomes: list[str] = []

    def work(name: int) -> None:
        for number in range(4):
            for ledger, asked in zip(shared, (of_days(f"{name}.{number}", name, 20), request(f"{name}.{number}")), strict=True):
                try:
                    permit = ledger.reserve(asked)
                    assert isinstance(permit, Permit)
                    ledger.commit(permit, b"answer")
                    outcomes.append(ledger.ledger_id)
                except BudgetRefused as refusal:
                    outcomes.append(refusal.code)

    _at_once(work, range(8))
    assert [outcomes.count(each) for each in (shared[0].ledger_id, shared[1].ledger_id, "block-budget")] == [24, 32, 8]
    for ledger, one in zip(shared, (place, other), strict=True):
        sound(one, ledger)
        ledger.disconnect()


def test_workers_that_charge_the_same_blocks_at_once_never_overspend(place: Place) -> None:
    declared(place, 20, cap=30).disconnect()
    permits: list[int] = []

    def work(name: int) -> None:
        with place.open() as ledger:
            for number in range(10):
                try:
                    assert isinstance(ledger.reserve(of_days(f"{name}.{number}", name, 10 - name)), Permit)
                    permits.append(name)
                except BudgetRefused as refusal:
                    assert refusal.code in {"block-budget", "person-cap"}

    _at_once(work, range(4))
    assert len(permits) == 20, "block 5 is read by all"
    with place.open() as ledger:
        assert spent(ledger, 5) == 20
        sound(place, ledger)


def _at_once(work: object, names: Sequence[int]) -> None:
    threads = [threading.Thread(target=work, args=[name]) for name in names]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


TABLES = ("block_tree", "block_node")


def copied(place: Place, ledger_id: str) -> dict[str, list[tuple[object, ...]]]:
    with place.cluster.superuser(place.database) as superuser:
        trees = {
            table: superuser.execute(f"SELECT * FROM lapwing.{table} WHERE ledger_id = %s".encode(), [ledger_id]).fetchall()
            for table in TABLES
        }
    return kept_rows(place, ledger_id) | trees


def test_every_block_of_a_restored_database_is_charged_what_was_lost(place: Place) -> None:
    with declared(place, 10, cap=20) as ledger:
        ledger.reserve(of_days("kept", 5, 8, loss=8))
        ledger_id = ledger.ledger_id
    tables = copied(place, ledger_id)
    with place.open() as ledger:
        ledger.reserve(of_days("lost", 40, 50, loss=2, person=5))
        ledger.reserve(of_days("lost too", 7, 7, loss=1, standing=3, person=4))
        before, point = ledger.blocks(), ledger.state().blocks
        assert before is not None and point is not None and point.hull == (5, 50)
    put_back(place, tables, ledger_id)
    assert code(place.open) == "ledger-rolled-back"
    with place.open(override=True, reason="restored") as ledger:
        after = ledger.blocks()
        assert after is not None and ledger.balance().spent == Cost(loss=3, delta=0)
        # Three were lost: blocks that had spent eight of ten get two.
        assert [spent(ledger, block) for block in (4, 5, 8, 9, 39, 50, 51)] == [0, 10, 10, 3, 3, 3, 0]
        assert all(spent(ledger, block) >= before.most(block, block).loss for block in range(60))
        assert after.person.loss == 8 + 9 >= before.person.loss
        now = ledger.state().blocks
        assert now is not None and now.hull == (5, 50) and now.sums.blocks.loss == 8 + 3
        sound(place, ledger)


def test_a_restore_of_a_database_without_blocks_declares_them_again(place: Place) -> None:
    with place.create(pure_budget(30)) as ledger:
        ledger.reserve(request("kept", loss=2))
        ledger_id = ledger.ledger_id
    tables = copied(place, ledger_id)
    with place.open() as ledger:
        ledger.reserve(request("lost", loss=3))
        ledger.declare_blocks(BlockTerms("month", Fraction(20, LOSS_UNITS)), read=(3, 4), units=2, reason="")
        before = ledger.blocks()
        assert before is not None
    put_back(place, tables, ledger_id)
    with place.open(override=True, reason="restored") as ledger:
        after = ledger.blocks()
        assert after is not None and after.terms == before.terms
        assert ledger.balance().spent.loss >= 10 and all(after.most(block, block).covers(before.most(block, block)) for block in range(8))
        assert after.person.loss >= before.person.loss
        sound(place, ledger)


@pytest.mark.parametrize("lost", [Cost(900, 0, 10), Cost(10, 0, None)], ids=["both sums", "the pure side closed"])
def test_a_restored_union_has_nothing_left_where_more_was_lost_than_fits(place: Place, lost: Cost) -> None:
    budget = union_budget(1)
    share = Cost(budget.loss_total // 1000 * lost.loss, 0, None if lost.pure is None else (budget.pure_total or 0) // 20 * lost.pure)
    with place.create(budget) as ledger:
        ledger.declare_blocks(DAYS, read=None, units=1, reason="")
        for key, block, cost in (("loss", 1, Cost(budget.loss_total - 5, 0, 1)), ("pure", 2, Cost(5 * budget.loss_total, 0, 1))):
            ledger.reserve(replace(request(key), ranges=(BlockCost(block, block, cost),), person=cost))
        ledger_id = ledger.ledger_id
    tables = copied(place, ledger_id)
    with place.open() as ledger:
        ledger.reserve(replace(request("lost"), ranges=(BlockCost(3, 3, share),), person=share))
    put_back(place, tables, ledger_id)
    with place.open(override=True, reason="restored") as ledger:
        ledger.reopen("understood")
        sound(place, ledger)
        spending = ledger.blocks()
        assert spending is not None and spending.most(3, 3).covers(Cost(share.loss, 0, 0))
        if lost.pure is None:
            for block in (1, 2):
                for pure in (1, None):
                    part = (BlockCost(block, block, Cost(6, 0, pure)),)
                    assert code(lambda part=part: ledger.require_payable("ana", Cost(1, 0), part)) == "block-budget"


def test_anchors_of_data_sets_without_blocks_keep_their_bytes(place: Place) -> None:
    assert isinstance(place.anchors, FileAnchors)
    with place.create() as ledger:
        ledger.reserve(request("a"))
        [path] = [path for path in place.anchors.directory.glob("*.anchor") if place.anchors._path(place.source_id) == path]
        assert b'"blocks"' not in path.read_bytes()
        ledger.declare_blocks(BlockTerms("day", Fraction(1, 3)), read=(1, 4), units=1, reason="")
        for number in range(200):
            ledger.reserve(of_days(f"{number}", number, number + 3, person=1))
        assert b'"blocks"' in path.read_bytes()
        kept, milestones = place.anchors.newest(place.source_id), place.anchors.milestones(place.source_id)
        assert kept == ledger.state() and kept.blocks is not None and kept.blocks.hull == (0, 202)
        assert kept.blocks.terms.person_cap == Fraction(1, 3)
        for older in milestones:  # whichever of them a restored database has, at least what was lost is known
            parameters = override_parameters(kept, kept, [older], ["x"], has=lambda entries, head: True)
            assert f'["{kept.blocks.sums.persons.loss - older.sums.persons.loss}"' in str(parameters[-1])
        assert len(milestones) < 40


CHANGES = {
    "UPDATE lapwing.block_node SET loss_own[1] = loss_own[1] + 1 WHERE {this} AND tree = 1": "what a block has spent is not the sum",
    "UPDATE lapwing.block_node SET loss_most[1] = 0 WHERE {this} AND tree_level = 6": "a most of a node",
    "UPDATE lapwing.block_tree SET loss_most = 0 WHERE {this}": "a most of a node",
    "UPDATE lapwing.block_tree SET loss_total = 99 WHERE {this} AND tree = 1": "a total that charges are compared with",
    "UPDATE lapwing.block_tree SET loss_total = NULL WHERE {this} AND tree = 2": "a total that charges are compared with",
    "DELETE FROM lapwing.block_tree WHERE {this}": "what a block has spent is missing",
    "DELETE FROM lapwing.block_node WHERE {this} AND tree = 2 AND tree_level = 2": "what a person lost is not the sum",
    "UPDATE lapwing.data_set SET blocks_every = 'week' WHERE {this}": "the terms of blocks",
    "UPDATE lapwing.data_set SET person_budget = NULL WHERE {this}": "the terms of blocks",
    "UPDATE lapwing.data_set SET blocks_last = blocks_last - 1 WHERE {this}": "the blocks that were charged",
    "UPDATE lapwing.data_set SET persons_loss = persons_loss - 1 WHERE {this}": "the sums over blocks",
    "UPDATE lapwing.entry SET blocks = NULL WHERE {this} AND charge_id = 1": "the chain is broken",
    "UPDATE lapwing.entry SET blocks = blocks || ' ' WHERE {this} AND charge_id = 1": "what an entry says of blocks",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_behind_its_back_is_seen(place: Place, change: str) -> None:
    with declared(place, cap=25) as ledger:
        ledger.reserve(of_days("a", 5, 90, loss=4, standing=3))
        ledger.reserve(of_days("b", 7, 7, loss=2))
        place.execute("SET session_replication_role = replica", change.replace("{this}", f"ledger_id = '{ledger.ledger_id}'"))
        problems = verify(ledger.connection, place.source_id, anchors=place.anchors).problems
        assert any(problem.startswith(CHANGES[change]) for problem in problems), problems


RULES = (
    "UPDATE lapwing.data_set SET blocks_every = NULL WHERE {this}",
    "UPDATE lapwing.data_set SET blocks_first = blocks_first + 1 WHERE {this}",
    "UPDATE lapwing.data_set SET persons_loss = persons_loss - 1 WHERE {this}",
    "UPDATE lapwing.block_tree SET loss_most = loss_most - 1 WHERE {this}",
    "DELETE FROM lapwing.block_node WHERE {this}",
    "DELETE FROM lapwing.block_tree WHERE {this}",
    "TRUNCATE lapwing.block_node",
    "UPDATE lapwing.block_node SET place = place + 1 WHERE {this}",
)


@pytest.mark.parametrize("change", RULES)
def test_the_rules_of_the_tables_refuse_it_even_to_their_owner(place: Place, change: str) -> None:
    with declared(place) as ledger:
        ledger.reserve(of_days("a", 5, 90))
        with pytest.raises(psycopg.Error):
            place.execute(change.replace("{this}", f"ledger_id = '{ledger.ledger_id}'"))
        sound(place, ledger)


def test_a_local_ledger_moves_with_its_blocks(tmp_path: Path, place: Place) -> None:
    terms = BlockTerms("day", Fraction(10, LOSS_UNITS))
    with new_ledger(tmp_path, budget=pure_budget(10)) as local:
        assert isinstance(local.reserve(request("before", loss=3)), Permit)
        local.declare_blocks(terms, read=(2, 5), units=2, reason="events grow")  # twice what was spent before
        for asked in (of_days("ranges", 4, 6, loss=2, standing=1), of_standing(request("standing", loss=1))):
            assert isinstance(local.reserve(asked), Permit)
        spending, spent_before = local.blocks(), local.balance().spent
        assert spending is not None and spent_before == Cost(8, 0)
    with open_ledger(tmp_path) as local:
        moved = transfer.move(
            local,
            place.dsn,
            source_id=place.source_id,
            source_fingerprint=f"files of {place.source_id}",
            anchors=place.anchors,
            by="owner",
            was_closed=False,
        )
    with moved as ledger:
        assert ledger.blocks() == spending and ledger.balance().spent == spent_before
        assert code(lambda: ledger.reserve(request("no ranges", loss=1))) == "blocks-missing"
        sound(place, ledger)


def test_who_may_only_ask_may_not_declare(place: Place) -> None:
    declared(place).disconnect()
    with replace(place, role=CURATOR_ROLE).open() as curator:
        assert curator.blocks() is not None and isinstance(curator.reserve(of_days("a", 1, 2)), Permit)
        with pytest.raises(LedgerError) as refusal:
            curator.declare_blocks(BlockTerms("day", Fraction(1)), read=None, units=1, reason="")
        assert refusal.value.code == "ledger-role"
        with pytest.raises(Refused):
            curator.require_payable("nobody", Cost(1, 0), (BlockCost(1, 2, Cost(1, 0)),), Cost(1, 0))
