"""The ledger on PostgreSQL, one process: what the model does not say (analysts, limits, two people, incidents, lost replies, rights)."""

from __future__ import annotations

import os
import warnings
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import BudgetRefused, CatalogueError, LapwingError, LedgerError, Refused
from lapwing.kernel.accounting import DELTA_UNITS, Cost, budget_for
from lapwing.kernel.permit import Permit
from lapwing.ledger import limits
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.policy import Limits
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import EntryKind, StoredAnswer
from tests.ledger.cluster import OWNER_ROLE, Cluster
from tests.ledger.pg import Place
from tests.ledger.support import approximate_budget, pure_budget, request


def permit_for(
    ledger: PostgresLedger, key: str, *, loss: int = 1, delta: int = 0, analyst: str = "ana", digest: str | None = None
) -> Permit:
    outcome = ledger.reserve(request(key, loss=loss, delta=delta, analyst=analyst, digest=digest))
    assert isinstance(outcome, Permit)
    return outcome


def refused_with(code: str, ledger: PostgresLedger, key: str, *, loss: int = 1, delta: int = 0, analyst: str = "ana") -> None:
    with pytest.raises(LapwingError) as refusal:
        ledger.reserve(request(key, loss=loss, delta=delta, analyst=analyst))
    assert refusal.value.code == code


def test_amounts_beyond_64_bits_are_exact(place: Place) -> None:
    budget = budget_for(epsilon=Fraction(10**9), delta=Fraction(1, 2), delta_keys_share=Fraction(999, 1000))
    assert budget.loss_total > 2**64 and budget.delta_total > 2**64
    with place.create(budget) as ledger:
        permit_for(ledger, "almost all", loss=budget.loss_total - 1, delta=budget.delta_total - 1)
        assert ledger.balance().remaining == Cost(loss=1, delta=1)
        refused_with("budget-exceeded", ledger, "too much", loss=1, delta=2)
        refused_with("budget-exceeded", ledger, "absurd", loss=10**60, delta=10 * DELTA_UNITS)
        permit_for(ledger, "the rest", loss=1, delta=1)
        assert ledger.balance().remaining == Cost.zero()


def test_nobody_asks_who_was_not_admitted(place: Place) -> None:
    with place.create() as ledger:
        refused_with("analyst-unknown", ledger, "one", analyst="eve")
        ledger.commit(permit_for(ledger, "one"), b"answer")
        policy.admit(ledger, "ana", suspended=True, by="olga", reason="left")
        refused_with("analyst-unknown", ledger, "one")
        assert ledger.find("plan of one", analyst="ana") is None
        assert ledger.balance().spent == Cost(loss=1, delta=0)


def test_stored_answers_go_only_to_those_who_may_see_them(place: Place) -> None:
    with place.create() as ledger:
        ledger.commit(permit_for(ledger, "one"), b"answer")
        answer = StoredAnswer(charge_id=1, payload=b"answer")
        assert ledger.find("plan of one") == answer
        assert ledger.find("plan of one", analyst="bo") == answer
        assert ledger.find("plan of one", analyst="eve") is None
        policy.set_limits(ledger, Limits(answers_shared=False))
        assert ledger.find("plan of one", analyst="bo") is None
        assert ledger.find("plan of one", analyst="ana") == answer
        ledger.close("closed")
        assert ledger.find("plan of one", analyst="ana") is None


def test_sub_budgets_bind_beneath_the_cap_and_may_oversubscribe(place: Place) -> None:
    with place.create(pure_budget(10)) as ledger:
        policy.set_group(ledger, "team", loss_total=8)
        policy.admit(ledger, "ana", group="team", loss_total=6)
        policy.admit(ledger, "bo", group="team", loss_total=6)
        policy.admit(ledger, "cy", loss_total=9)
        permit_for(ledger, "a", loss=5)
        refused_with("analyst-budget", ledger, "b", loss=2)
        refused_with("group-budget", ledger, "c", loss=4, analyst="bo")
        permit_for(ledger, "d", loss=3, analyst="bo")
        refused_with("budget-exceeded", ledger, "e", loss=3, analyst="cy")
        permit_for(ledger, "f", loss=2, analyst="cy")
        assert ledger.balance().remaining == Cost.zero()
        share, team = policy.analyst_share(ledger, "bo"), policy.group_share(ledger, "team")
        assert share == policy.Share(loss_total=6, delta_total=None, spent=Cost(loss=3, delta=0))
        assert team == policy.Share(loss_total=8, delta_total=None, spent=Cost(loss=8, delta=0))
        with pytest.raises(CatalogueError) as refusal:
            policy.set_group(ledger, "team", loss_total=7)
        assert refusal.value.code == "budget-below-spent"
        with pytest.raises(CatalogueError) as refusal:
            policy.admit(ledger, "ana", group="team", loss_total=4)
        assert refusal.value.code == "budget-below-spent"
        with pytest.raises(CatalogueError) as refusal:
            policy.admit(ledger, "dee", group="nobody's")
        assert refusal.value.code == "group-unknown"


def test_a_statement_and_a_day_have_limits(place: Place) -> None:
    with place.create(pure_budget(100)) as ledger:
        policy.set_limits(ledger, Limits(statement_loss_max=5, day_loss_max=9))
        policy.admit(ledger, "bo", day_loss_max=2)
        refused_with("statement-limit", ledger, "a", loss=6)
        permit_for(ledger, "b", loss=5)
        refused_with("day-limit", ledger, "c", loss=3, analyst="bo")
        permit_for(ledger, "d", loss=2, analyst="bo")
        refused_with("day-limit", ledger, "e", loss=3)
        permit_for(ledger, "f", loss=2)
        # Yesterday is over, and the clock that says so is the server's.
        tables = ("data_set", "analyst")
        ids = f"ledger_id = '{ledger.ledger_id}'"
        place.execute(*(f"UPDATE lapwing.{table} SET day = day - 1 WHERE {ids}" for table in tables))
        permit_for(ledger, "g", loss=5)
        # A clock put back a day does not give that day's limit again.
        place.execute(*(f"UPDATE lapwing.{table} SET day = day + 2 WHERE {ids}" for table in tables))
        refused_with("day-limit", ledger, "h", loss=5)


def test_raising_needs_a_second_person_and_lowering_stops_at_what_is_spent(place: Place) -> None:
    with place.create(pure_budget(10), pure_budget(20)) as ledger, place.second() as second:
        permit_for(ledger, "one", loss=8)
        with pytest.raises(CatalogueError) as refusal:
            ledger.set_budget(pure_budget(11), reason="more")
        assert refusal.value.code == "second-person"
        with pytest.raises(CatalogueError) as refusal:
            ledger.set_budget(pure_budget(7), reason="less")
        assert refusal.value.code == "budget-below-spent"
        ledger.set_budget(pure_budget(8), reason="less")
        number = policy.propose_budget(ledger, pure_budget(20), by="olga", reason="more")
        with pytest.raises(CatalogueError) as refusal:
            policy.approve(second, number, by="olga")
        assert refusal.value.code == "second-person"
        with pytest.raises(CatalogueError) as refusal:
            policy.approve(ledger, number, by="piet")
        assert refusal.value.code == "second-person", "another name in a session of the same role is the same person"
        refused_with("budget-exceeded", ledger, "two", loss=1)
        policy.approve(second, number, by="piet")
        assert ledger.balance().budget == pure_budget(20)
        for act in (policy.approve, policy.deny):
            with pytest.raises(CatalogueError) as refusal:
                act(ledger, number, by="piet")
            assert refusal.value.code == "proposal-unknown"
        with pytest.raises(CatalogueError) as refusal:
            policy.propose_budget(ledger, pure_budget(21), by="olga", reason="more")
        assert refusal.value.code == "budget-above-ceiling"
        with pytest.raises(CatalogueError) as refusal:
            ledger.raise_ceiling(pure_budget(30), reason="more")
        assert refusal.value.code == "second-person"
        policy.approve(second, policy.propose_ceiling(ledger, pure_budget(30), by="olga", reason="more"), by="piet")
        assert ledger.balance().ceiling == pure_budget(30)
        denied = policy.propose_budget(ledger, pure_budget(30), by="olga", reason="more")
        policy.deny(second, denied, by="piet", reason="enough")
        assert ledger.balance().budget == pure_budget(20)
        assert [proposal.state for proposal in policy.proposals(ledger)] == ["denied", "approved", "approved"]


def test_more_than_nine_proposals_are_verified_in_their_order(place: Place) -> None:
    with place.create(pure_budget(10), pure_budget(40)) as ledger:
        for total in range(11, 23):
            policy.propose_budget(ledger, pure_budget(total), by="olga", reason="more")
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


def test_the_database_itself_lowers_no_ceiling(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a program that is not ours has left out what we check before."""
    monkeypatch.setattr(limits, "require_within", lambda one, other: None)
    with place.create(pure_budget(10), pure_budget(20)) as ledger, place.in_another_role(ledger) as second:
        number = policy.propose_ceiling(ledger, pure_budget(15), by="olga", reason="less")
        with pytest.raises(CatalogueError) as refusal:
            policy.approve(second, number, by="piet")
        assert refusal.value.code == "ceiling-lowered"
        assert ledger.balance().ceiling == pure_budget(20)


def test_an_analyst_asks_for_more_and_an_owner_decides(place: Place) -> None:
    with place.create(pure_budget(10)) as ledger:
        policy.admit(ledger, "ana", loss_total=2)
        refused_with("analyst-budget", ledger, "one", loss=3)
        number = policy.request_budget(ledger, "ana", Cost(loss=5, delta=0), reason="a longer study")
        with pytest.raises(CatalogueError):
            policy.approve(ledger, number, by="ana")
        policy.approve(ledger, number, by="olga")
        permit_for(ledger, "one", loss=3)
        with pytest.raises(Refused) as refusal:
            policy.request_budget(ledger, "eve", Cost(loss=5, delta=0), reason="please")
        assert refusal.value.code == "analyst-unknown"


def test_an_incident_closes_the_data_set_until_the_owner_reopens_it(place: Place) -> None:
    with place.create() as ledger:
        ledger.forfeit(permit_for(ledger, "one"), incident=True)
        refused_with("data-set-closed", ledger, "two")
        ledger.reopen("understood")
        permit_for(ledger, "two")
        assert [entry.kind for entry in ledger.history(limit=4)] == [
            EntryKind.RESERVE,
            EntryKind.REOPEN,
            EntryKind.CLOSE,
            EntryKind.FORFEIT,
        ]


def test_lost_workers_close_the_data_set_only_after_a_declared_number(place: Place) -> None:
    with place.create(pure_budget(100)) as ledger:
        policy.set_limits(ledger, Limits(lost_workers_max=2))
        for number, closed in ((1, False), (2, True)):
            lost = place.open()
            permit = permit_for(lost, f"key {number}")
            assert place.declare_dead(permit.charge_id)
            place.open().disconnect()
            assert ledger.balance().closed is closed
            with pytest.raises(LedgerError) as refusal:
                lost.commit(permit, b"too late")
            assert refusal.value.code == "charge-not-open"
            lost.disconnect()
        # One that had nothing reserved is no loss.
        ledger.reopen("understood")
        idle = place.open()
        place.execute("UPDATE lapwing.worker SET lease_until = '2000-01-01' WHERE ended_at IS NULL")
        place.open().disconnect()
        assert not ledger.balance().closed
        idle.disconnect()


def test_a_worker_that_was_taken_for_dead_goes_on_as_a_new_one(place: Place) -> None:
    with place.create() as ledger, place.open() as other:
        permit = permit_for(ledger, "one")
        assert place.declare_dead(permit.charge_id)
        refused_with("request-forfeited", other, "one")
        with pytest.raises(LedgerError):
            ledger.commit(permit, b"too late")
        ledger.commit(permit_for(ledger, "two"), b"in time")
        assert other.reserve(request("two")) == StoredAnswer(charge_id=2, payload=b"in time")


def test_settling_twice_with_the_same_bytes_is_settling_once(place: Place) -> None:
    """That is how a worker that lost the reply finds out."""
    with place.create() as ledger:
        permit = permit_for(ledger, "one")
        ledger.commit(permit, b"answer")
        entries = ledger.state().entries
        ledger.commit(permit, b"answer")
        assert ledger.state().entries == entries
        with pytest.raises(LedgerError):
            ledger.commit(permit, b"another answer")
        with pytest.raises(LedgerError):
            ledger.forfeit(permit, incident=False)


def test_a_lost_connection_is_opened_again_and_the_call_finds_its_own_charge(place: Place) -> None:
    with place.create() as ledger:
        backend = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'lapwing_app'"
        place.execute(backend)
        permit = permit_for(ledger, "one", loss=3)
        place.execute(backend)
        ledger.commit(permit, b"answer")
        place.execute(backend)
        assert ledger.reserve(request("one", loss=3)) == StoredAnswer(charge_id=1, payload=b"answer")
        place.execute(backend)
        with pytest.raises(LedgerError) as refusal:
            ledger.close("not to be done twice")
        assert refusal.value.code == "reply-lost"
        assert ledger.balance().spent == Cost(loss=3, delta=0)


def test_the_same_call_sent_again_gets_the_same_permit(place: Place) -> None:
    """What a retry after a lost reply sends: the same nonce. Another call with the same key is another call."""
    with place.create() as ledger:
        permit = permit_for(ledger, "one", loss=3)
        for nonce, expected in ((permit.nonce, "permit"), ("another", "in-progress")):
            rows = ledger.connection.ask(
                "SELECT outcome, o_charge_id FROM lapwing.reserve(%s, %s, %s, 'ana', 'one', 'plan of one', 1, '', 3, 0, NULL, 0, '', NULL)",
                [ledger.ledger_id, ledger.epoch, nonce],
                again=True,
            )
            assert rows == [(expected, permit.charge_id)]
        assert ledger.balance().spent == Cost(loss=3, delta=0)


@pytest.mark.parametrize(
    "setting", ["synchronous_commit = off", "synchronous_commit = local", "default_transaction_isolation = 'serializable'"]
)
def test_a_server_that_forgets_is_not_used(cluster: Cluster, place: Place, setting: str) -> None:
    with place.create() as ledger:
        place.execute(f"ALTER ROLE lapwing_app IN DATABASE {place.database} SET {setting}")
        try:
            with pytest.raises(LedgerError) as refusal:
                place.open()
            assert refusal.value.code == "ledger-not-durable"
        finally:
            place.execute(f"ALTER ROLE lapwing_app IN DATABASE {place.database} RESET ALL")
        # Behind a pooler the setting may be another session's: the statement itself looks too.
        ledger.connection.ask(f"SET {setting}", again=False)
        with pytest.raises(LedgerError) as refusal:
            ledger.reserve(request("one"))
        assert refusal.value.code == "ledger-not-durable"
        assert ledger.balance().spent == Cost.zero()
        ledger.connection.ask("RESET ALL", again=False)


def test_a_source_has_one_ledger(place: Place, tmp_path: Path) -> None:
    place.create().disconnect()
    with pytest.raises(CatalogueError) as refusal:
        place.create()
    assert refusal.value.code == "source-registered"

    def create(**more: object) -> PostgresLedger:
        arguments = {"source_id": f"{place.source_id} again", "budget": pure_budget(1), "ceiling": pure_budget(1), **more}
        return PostgresLedger.create(
            place.dsn,
            source_fingerprint=f"files of {place.source_id}",
            anchors=place.anchors,
            **arguments,  # type: ignore[arg-type]
        )

    with pytest.raises(CatalogueError) as refusal:
        create()
    assert refusal.value.code == "source-registered"
    with create(override=True, reason="another unit") as second:
        assert second.history()[0].detail == "source-registered: another unit"
    with create(source_id=place.source_id, override=True, reason="anew"):
        pass
    with pytest.raises(LedgerError) as unknown:
        PostgresLedger.open(place.dsn, source_id=place.source_id, anchors=FileAnchors(tmp_path / "elsewhere"))
    assert unknown.value.code == "anchor-missing"


def test_an_empty_database_is_no_fresh_budget(cluster: Cluster, place: Place) -> None:
    place.create().disconnect()
    empty = Place(cluster, cluster.new_database(), place.anchors, place.source_id)
    with pytest.raises(CatalogueError) as refusal:
        empty.create()
    assert refusal.value.code == "source-registered"
    with pytest.raises(LedgerError) as missing:
        empty.open()
    assert missing.value.code == "ledger-missing"
    cluster.drop_database(empty.database)


def test_the_role_that_answers_cannot_change_a_table(place: Place) -> None:
    with place.create() as ledger:
        ledger.commit(permit_for(ledger, "one"), b"answer")
    statements = [
        "UPDATE lapwing.data_set SET loss_spent = 0",
        "DELETE FROM lapwing.entry",
        "INSERT INTO lapwing.analyst (ledger_id, analyst) SELECT ledger_id, 'eve' FROM lapwing.data_set",
        "TRUNCATE lapwing.charge",
        "SELECT lapwing.append(d, 'override', '', NULL, 0, 0, '', '') FROM lapwing.data_set d",
    ]
    for statement in statements:
        with psycopg.connect(place.dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lapwing.entry SET detail = ''",
        "DELETE FROM lapwing.entry",
        "TRUNCATE lapwing.entry",
        "DELETE FROM lapwing.charge",
        "UPDATE lapwing.charge SET state = 'reserved', payload = NULL, payload_digest = NULL",
        "UPDATE lapwing.charge SET loss = 1",
        "UPDATE lapwing.data_set SET loss_spent = 0",
        "UPDATE lapwing.data_set SET loss_spent = loss_total + 1",
        "UPDATE lapwing.data_set SET loss_spent = 'NaN'",
        "UPDATE lapwing.data_set SET loss_total = loss_ceiling + 1",
        "UPDATE lapwing.data_set SET loss_total = 9",
        "DELETE FROM lapwing.fingerprint",
        "INSERT INTO lapwing.charge SELECT ledger_id, 2, analyst, NULL, request_id, 'other', 1, '', '', 1, 0, epoch, 'n', 'reserved'"
        " FROM lapwing.charge",
    ],
)
def test_not_even_the_owner_of_the_schema_breaks_a_rule(place: Place, statement: str) -> None:
    with place.create(pure_budget(10), pure_budget(20)) as ledger:
        ledger.commit(permit_for(ledger, "one", loss=4), b"answer")
    with psycopg.connect(place.cluster.dsn(place.database, role=OWNER_ROLE)) as connection, pytest.raises(psycopg.Error) as refusal:
        connection.execute(statement.encode())
    assert refusal.value.sqlstate in {"LW009", "23514", "23505"}


def test_a_child_of_a_fork_is_a_worker_of_its_own(place: Place) -> None:
    with place.create() as ledger:
        permit = permit_for(ledger, "one")
        with warnings.catch_warnings():
            # Newer Pythons warn: the test runner has threads, which the child never uses.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            status = 1
            try:
                ledger.commit(permit, b"not the child's")
            except LedgerError as error:
                if error.code == "charge-not-open":
                    ledger.commit(permit_for(ledger, "two"), b"the child's")
                    status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        ledger.commit(permit, b"the parent's")
        assert ledger.reserve(request("two")) == StoredAnswer(charge_id=2, payload=b"the child's")


def test_delta_runs_out_on_its_own(place: Place) -> None:
    budget = approximate_budget()
    with place.create(budget) as ledger:
        permit_for(ledger, "all of delta", loss=1, delta=budget.delta_total)
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("one unit of delta", loss=1, delta=1))
        permit_for(ledger, "no delta", loss=budget.loss_total - 1)
