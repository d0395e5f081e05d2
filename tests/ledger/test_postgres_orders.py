"""Ledgers on PostgreSQL of accounts with an order: two sums over the same charges, in one transaction, for all and for each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import BudgetRefused, CatalogueError, LapwingError
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.permit import Permit, issue
from lapwing.ledger.amounts import budget_text
from lapwing.ledger.postgres import overview, policy
from lapwing.ledger.postgres.anchors import AnchorPoint, FileAnchors, Milestone
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.opening import lost_since
from lapwing.ledger.postgres.transfer import move
from lapwing.ledger.postgres.verify import verify
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import approximate_budget, new_ledger, open_ledger, request, union_budget

BUDGET = union_budget()
LOSS = BUDGET.loss_total
PURE = LOSS_UNITS // 4
"""A quarter of the epsilon."""


def refused(ledger: PostgresLedger, key: str, **amounts: int) -> str:
    with pytest.raises(BudgetRefused) as refusal:
        ledger.reserve(request(key, **amounts))  # type: ignore[arg-type]
    return refusal.value.code


def problems(place: Place, ledger: PostgresLedger) -> tuple[str, ...]:
    return verify(ledger.connection, place.source_id, anchors=place.anchors).problems


def test_one_side_within_its_total_is_enough(place: Place) -> None:
    with place.create(BUDGET) as ledger:
        for key in "abcd":
            permit = ledger.reserve(request(key, loss=LOSS, pure=PURE))
            assert isinstance(permit, Permit)
            ledger.commit(permit, key.encode())
        assert ledger.balance().spent == Cost(loss=4 * LOSS, delta=0, pure=4 * PURE)
        assert refused(ledger, "one unit more", loss=1, pure=1) == "budget-exceeded"
        assert refused(ledger, "no pure amount", loss=1) == "budget-exceeded"
        assert {entry.cost.pure for entry in ledger.history() if entry.cost.loss} == {PURE}
        assert {bought.cost.pure for bought in ledger.bought(version=1, limit=9)} == {PURE}
        assert problems(place, ledger) == ()
    with place.open() as ledger:
        assert ledger.balance().spent.pure == 4 * PURE


def test_what_has_no_pure_amount_closes_the_pure_side_for_good(place: Place) -> None:
    with place.create(BUDGET) as ledger:
        ledger.reserve(request("gaussian", loss=LOSS - 1))
        assert refused(ledger, "laplace", loss=2, pure=1) == "budget-exceeded"
        ledger.reserve(request("the last unit", loss=1, pure=1))
        assert ledger.balance().spent == Cost(loss=LOSS, delta=0)
        assert problems(place, ledger) == ()
        for change in (
            "pure_spent = 0",
            "pure_total = NULL, pure_ceiling = NULL",
            "loss_spent = loss_total + 1",
            "pure_ceiling = pure_ceiling + 1",
        ):
            with pytest.raises(psycopg.Error):
                place.execute(f"UPDATE lapwing.data_set SET {change} WHERE ledger_id = '{ledger.ledger_id}'")


def test_a_permit_is_committed_with_the_pure_amount_it_was_reserved_with(place: Place) -> None:
    with place.create(BUDGET) as ledger:
        permit = ledger.reserve(request("a", loss=5, pure=PURE))
        assert isinstance(permit, Permit)
        for other in (None, PURE - 1):
            with pytest.raises(LapwingError) as not_open:
                ledger.commit(issue(permit.charge_id, permit.digest, Cost(loss=5, delta=0, pure=other), nonce=permit.nonce), b"answer")
            assert not_open.value.code == "charge-not-open"
        ledger.commit(permit, b"answer")


def test_limits_of_all_of_a_group_and_of_an_analyst_have_two_sides_too(place: Place) -> None:
    with place.create(BUDGET) as ledger:
        policy.set_limits(ledger, policy.Limits(statement_loss_max=10, statement_pure_max=PURE, day_loss_max=50, day_pure_max=3 * PURE))
        policy.set_group(ledger, "red", loss_total=20, pure_total=2 * PURE)
        policy.admit(ledger, "ana", group="red", loss_total=15, pure_total=PURE, day_loss_max=14)
        assert refused(ledger, "a", loss=11, pure=PURE + 1) == "statement-limit"
        assert refused(ledger, "a", loss=15, pure=PURE) == "day-limit"
        policy.admit(ledger, "ana", group="red", loss_total=15, pure_total=PURE)
        assert isinstance(ledger.reserve(request("a", loss=30, pure=PURE)), Permit)
        assert refused(ledger, "b", loss=1, pure=1) == "analyst-budget"
        policy.admit(ledger, "ana", group="red")
        assert isinstance(ledger.reserve(request("b", loss=30, pure=PURE)), Permit)
        assert refused(ledger, "c", loss=1, pure=1) == "group-budget"
        policy.admit(ledger, "ana")
        assert isinstance(ledger.reserve(request("c", loss=30, pure=PURE)), Permit)
        assert refused(ledger, "d", loss=10, pure=1) == "day-limit"
        share = policy.analyst_share(ledger, "ana")
        assert share is not None and share.spent == Cost(loss=90, delta=0, pure=3 * PURE)
        [group] = overview.groups(ledger)
        assert (group.share.pure_total, group.share.spent.pure) == (2 * PURE, 2 * PURE)
        assert overview.limits_in_force(ledger).day_pure_max == 3 * PURE
        with pytest.raises(CatalogueError) as below:
            policy.set_group(ledger, "red", loss_total=59, pure_total=2 * PURE - 1)
        assert below.value.code == "budget-below-spent"
        number = policy.request_budget(ledger, "ana", Cost(loss=5, delta=0, pure=3 * PURE), reason="more")
        policy.approve(ledger, number, by="olga")
        assert (policy.analyst_share(ledger, "ana") or share).pure_total == 3 * PURE
        assert problems(place, ledger) == ()


def test_several_at_once_are_decided_as_one_by_one(place: Place) -> None:
    with place.create(BUDGET) as ledger:
        all_fit = ledger.reserve_many([request(key, loss=LOSS, pure=PURE) for key in "abc"])
        assert [type(one) for one in all_fit] == [Permit] * 3
        some = ledger.reserve_many([request("d", loss=1), request("e", loss=1, pure=PURE), request("f", loss=1, pure=1)])
        assert [one.code if isinstance(one, LapwingError) else "permit" for one in some] == ["budget-exceeded", "permit", "budget-exceeded"]
        assert ledger.balance().spent == Cost(loss=3 * LOSS + 1, delta=0, pure=4 * PURE)
        assert problems(place, ledger) == ()


def test_a_budget_may_be_lowered_to_what_one_side_allows_and_no_further(place: Place) -> None:
    with place.create(union_budget(2), union_budget(2)) as ledger:
        ledger.reserve(request("a", loss=union_budget(2).loss_total, pure=4 * PURE))
        ledger.set_budget(BUDGET, reason="less")
        with pytest.raises(CatalogueError) as below:
            ledger.set_budget(union_budget(Fraction(999_999, 1_000_000)), reason="less still")
        assert below.value.code == "budget-below-spent"
        with pytest.raises(CatalogueError) as second:
            ledger.set_budget(union_budget(2), reason="more")
        assert second.value.code == "second-person"
        with pytest.raises(CatalogueError) as account:
            ledger.set_budget(approximate_budget(), reason="another account")
        assert account.value.code == "budget-account"


def test_workers_that_race_for_the_last_pure_units_get_them_once(place: Place) -> None:
    """Every request asks for far more loss than is left, so that the pure side alone decides."""
    place.create(BUDGET).disconnect()
    permits: list[Permit] = []
    codes: list[str] = []

    def work(name: int) -> None:
        with place.open() as ledger:
            for number in range(8):
                try:
                    permit = ledger.reserve(request(f"{name}.{number}", loss=2 * LOSS, pure=PURE // 4))
                except BudgetRefused as refusal:
                    codes.append(refusal.code)
                else:
                    assert isinstance(permit, Permit)
                    ledger.commit(permit, b"answer")
                    permits.append(permit)

    threads = [threading.Thread(target=work, args=[name]) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(permits), set(codes)) == (16, {"budget-exceeded"})
    with place.open() as ledger:
        assert ledger.balance().spent == Cost(loss=32 * LOSS, delta=0, pure=4 * PURE)
        assert problems(place, ledger) == ()


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Place]:
    """A server of its own, which may be killed and puts nothing on its disk unless somebody waits for it."""
    cluster = Cluster(["wal_writer_delay=10s"])
    try:
        yield new_place(cluster, cluster.new_database(), tmp_path)
    finally:
        cluster.close()


@pytest.mark.slow
def test_both_sums_are_there_after_the_server_was_killed(killed: Place) -> None:
    ledger = killed.create(BUDGET)
    permit = ledger.reserve(request("paid", loss=2 * LOSS, pure=PURE))
    assert isinstance(permit, Permit)
    ledger.commit(permit, b"answer")
    ledger.reserve(request("open", loss=LOSS, pure=PURE))
    ledger.connection.close()
    killed.cluster.crash()
    with killed.open() as again:
        assert again.balance().spent == Cost(loss=3 * LOSS, delta=0, pure=2 * PURE)
        assert refused(again, "too much", loss=1, pure=2 * PURE + 1) == "budget-exceeded"
        assert refused(again, "no pure amount", loss=1) == "budget-exceeded"
        assert isinstance(again.reserve(request("rest", loss=1, pure=2 * PURE)), Permit)
        assert problems(killed, again) == ()


def put_back(place: Place, tables: dict[str, list[tuple[object, ...]]], ledger_id: str) -> None:
    """The rows of a ledger as they were: what restoring an older dump of the database does."""
    with place.cluster.superuser(place.database) as connection:
        connection.execute("SET session_replication_role = replica")
        for table, rows in tables.items():
            connection.execute(f"DELETE FROM lapwing.{table} WHERE ledger_id = %s".encode(), [ledger_id])
            for row in rows:
                connection.execute(f"INSERT INTO lapwing.{table} VALUES ({', '.join(['%s'] * len(row))})".encode(), row)


def kept_rows(place: Place, ledger_id: str) -> dict[str, list[tuple[object, ...]]]:
    with place.cluster.superuser(place.database) as connection:
        return {
            table: connection.execute(f"SELECT * FROM lapwing.{table} WHERE ledger_id = %s".encode(), [ledger_id]).fetchall()
            for table in ("data_set", "analyst", "worker", "charge", "entry")
        }


@pytest.mark.parametrize(
    ("lost", "spent", "closed"),
    [
        (Cost(LOSS, 0, PURE), Cost(LOSS + 10, 0, 2 * PURE), False),
        (Cost(LOSS - 10, 0, None), Cost(LOSS, 0, None), False),
    ],
    ids=["both sums", "the pure side closed"],
)
def test_what_a_restored_database_lost_is_charged_again_on_both_sides(place: Place, lost: Cost, spent: Cost, closed: bool) -> None:
    with place.create(BUDGET) as ledger:
        ledger.reserve(request("a", loss=10, pure=PURE))
        ledger_id = ledger.ledger_id
    tables = kept_rows(place, ledger_id)
    with place.open() as ledger:
        ledger.reserve(request("b", loss=lost.loss, pure=lost.pure))
    put_back(place, tables, ledger_id)
    with pytest.raises(LapwingError) as rolled_back:
        place.open()
    assert rolled_back.value.code == "ledger-rolled-back"
    with place.open(override=True, reason="restored") as ledger:
        assert (ledger.balance().spent, ledger.balance().closed) == (spent, closed)
        assert refused(ledger, "c", loss=1, pure=2 * PURE + 1) == "budget-exceeded"
        assert problems(place, ledger) == ()


@pytest.mark.parametrize("spent", [Cost(2 * LOSS, 0, 3 * PURE), Cost(LOSS, 0, None), Cost(10, 0, PURE), Cost(LOSS, 0, 5 * PURE)])
@pytest.mark.parametrize("lost", [Cost(2 * LOSS, 0, 4 * PURE), Cost(2 * LOSS, 0, None)])
def test_more_lost_than_the_budget_has_left_leaves_nothing_on_either_side(place: Place, spent: Cost, lost: Cost) -> None:
    with place.create(BUDGET) as ledger:
        ledger.reserve(request("a", loss=spent.loss, pure=spent.pure))
        [(anchors,)] = ledger.connection.look("SELECT anchors FROM lapwing.data_set WHERE ledger_id = %s", [ledger.ledger_id])
        budget = budget_text(BUDGET)
        ledger.change(
            "lapwing.accept_override(%s, 'restored', NULL, true, %s::numeric, 0, %s::numeric, %s, %s, false, %s::text[])",
            [lost.loss, lost.pure, budget, budget, anchors],
        )
        balance = ledger.balance()
        assert balance.closed and balance.spent.covers(spent)
        ledger.reopen("after all")
        for pure in (1, None):
            assert refused(ledger, f"c {pure}", loss=1, pure=pure) == "budget-exceeded"  # type: ignore[arg-type]
        assert problems(place, ledger) == ()


def test_what_was_lost_is_known_from_the_newest_common_state() -> None:
    point = AnchorPoint("s", "l", 9, "h9", BUDGET, BUDGET, Cost(100, 5, None), False)
    milestones = [Milestone(7, "h7", Cost(90, 5, None)), Milestone(3, "h3", Cost(40, 0, 30))]
    assert lost_since(milestones, point, has=lambda entries, head: head == "h3") == Cost(60, 5, None)
    assert lost_since(milestones, point, has=lambda entries, head: head == "h7") == Cost(10, 0, None)
    assert lost_since(milestones, replace(point, spent=Cost(50, 0, 45)), has=lambda entries, head: head == "h3") == Cost(10, 0, 15)


def test_an_anchor_keeps_the_pure_amounts_of_its_milestones(tmp_path: Path) -> None:
    anchors = FileAnchors(tmp_path)
    spent = [Cost.zero(), Cost(5, 0, 3), Cost(50, 1, 400), Cost(51, 1, 401), Cost(60, 1, None)]
    for number, cost in enumerate(spent):
        point = AnchorPoint("s", "l", number, f"h{number}", BUDGET, BUDGET, cost, False)
        assert anchors.advance(point, holds=lambda _: True) == point
        assert anchors.newest("s") == point
    for milestone in anchors.milestones("s"):
        assert milestone.spent == spent[milestone.entries]


def test_a_local_ledger_with_an_order_moves_with_both_sums(tmp_path: Path, place: Place) -> None:
    with new_ledger(tmp_path, budget=BUDGET) as local:
        permit = local.reserve(request("a", loss=2 * LOSS, pure=PURE))
        assert isinstance(permit, Permit)
        local.commit(permit, b"answer")
    with open_ledger(tmp_path) as local:
        moved = move(
            *(local, place.dsn),
            source_id=place.source_id,
            source_fingerprint=f"files of {place.source_id}",
            anchors=place.anchors,
            was_closed=False,
        )
    with moved as ledger:
        assert ledger.balance().budget == BUDGET
        assert ledger.balance().spent == Cost(loss=2 * LOSS, delta=0, pure=PURE)
        assert refused(ledger, "b", loss=1, pure=3 * PURE + 1) == "budget-exceeded"
        assert isinstance(ledger.reserve(request("c", loss=1, pure=3 * PURE)), Permit)
        assert problems(place, ledger) == ()
