"""A ledger on PostgreSQL that an earlier program wrote: put back from its dump, it agrees with its old anchors and gives back what it has.

README.md says what is kept and what to do when a test here fails: it is never the kept data that is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import CatalogueError, LedgerError, Refused
from lapwing.kernel.accounting import Account, budget_for
from lapwing.kernel.blocks import exchange_cost
from lapwing.ledger.connect import DATABASE_VARIABLE
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.install import SCHEMA_VERSION
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.protocol import EntryKind
from lapwing.owner.ledger_admin import verified
from tests.kept.kept import (
    ON_SERVER,
    REASON,
    Kept,
    apart_from_balance,
    assert_as_kept,
    change_catalogue,
    differences,
    index_of,
    lost_request,
    seen_balance,
    seen_history,
    unpacked,
    version_again,
)
from tests.kept.server import put_back
from tests.kept.with_blocks import assert_becomes_blocks, declare_blocks
from tests.ledger.cluster import MONITOR_ROLE, SECOND_ROLE, Cluster

DATABASE = "kept"
INDEX = index_of(ON_SERVER)
LARGER = Fraction(1_000)
"""An epsilon of which four times what was spent leaves much."""


@pytest.fixture
def kept(shared_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    copied = unpacked(ON_SERVER, tmp_path / ON_SERVER)
    assert put_back(shared_cluster, DATABASE, copied.dump) == SCHEMA_VERSION
    monkeypatch.setenv(DATABASE_VARIABLE, shared_cluster.dsn(DATABASE))
    try:
        yield copied
    finally:
        shared_cluster.drop_database(DATABASE)


def problems(cluster: Cluster, kept: Kept) -> tuple[str, ...]:
    """What ``lapwing ledger verify`` finds wrong, against the anchors that were kept beside the dump."""
    [report] = verified(cluster.dsn(DATABASE, role=MONITOR_ROLE), anchors=[kept.anchors], names=[INDEX["source_id"]])
    assert report.anchored_entries is not None
    return report.problems


def approve_all(cluster: Cluster, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second owner approves what was proposed."""
    with monkeypatch.context() as second:
        second.setenv(DATABASE_VARIABLE, cluster.dsn(DATABASE, role=SECOND_ROLE))
        with kept.curator() as curator:
            assert isinstance(curator.ledger, PostgresLedger)
            for waiting in reversed([one for one in policy.proposals(curator.ledger) if one.state == "open"]):
                policy.approve(curator.ledger, waiting.proposal_id, by="piet")


def change(cluster: Cluster, statement: str) -> None:
    """Change one row behind the back of what guards the tables."""
    with cluster.superuser(DATABASE) as connection:
        connection.execute("SET session_replication_role = replica")
        assert connection.execute(statement.encode()).rowcount == 1


def test_a_kept_database_agrees_with_its_old_anchors_and_opens(shared_cluster: Cluster, kept: Kept) -> None:
    [report] = verified(shared_cluster.dsn(DATABASE, role=MONITOR_ROLE), anchors=[kept.anchors], names=[])
    assert report.problems == ()
    answers = sum(len(version["again"]["charges"]) for version in INDEX["versions"])
    assert (report.source_id, report.entries, report.answers) == (INDEX["source_id"], len(INDEX["history"]), answers)
    assert report.anchored_entries is not None and 0 <= report.entries - report.anchored_entries <= 1
    with pytest.raises(CatalogueError) as changed, kept.curator() as curator:
        curator.balance()
    assert changed.value.code == "source-changed"
    kept.accept()
    with kept.curator() as curator:
        *history, accepted = seen_history(curator)
        assert differences(INDEX["history"], history) == []
        # That the files are elsewhere is all that there was to accept: nothing was lost, and nothing is charged again.
        assert accepted["kind"] == EntryKind.OVERRIDE and accepted["detail"].startswith("source-changed: ")
        assert REASON in accepted["detail"]
        assert differences(INDEX["balance"], seen_balance(curator)) == []
        with pytest.raises(Refused) as lost:
            curator.ledger.reserve(lost_request(INDEX))
        assert lost.value.code == "request-forfeited"
    assert problems(shared_cluster, kept) == ()


def test_everything_that_was_bought_is_free_and_the_same(shared_cluster: Cluster, kept: Kept) -> None:
    kept.accept()
    for version in INDEX["versions"]:
        with kept.opened(analyst=INDEX["analyst"], version=version["again"]["version"]) as data:
            assert_as_kept(version, version_again(data, version["questions"], version["queries"]))
            assert differences(INDEX["balance"], seen_balance(data.curator)) == []
    assert problems(shared_cluster, kept) == ()


def test_everything_is_free_and_the_same_after_two_owners_raised_budget_and_ceiling(
    shared_cluster: Cluster, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.accept()
    change_catalogue(kept, "\nepsilon = 110\n", "\nepsilon = 115\n")
    with kept.curator() as curator:
        assert curator.prepare() == 2 and curator.engine.versions() == (1, 2) and curator.balance().budget.epsilon == 110
        assert isinstance(curator.ledger, PostgresLedger)
        declared = curator.declaration.declared_budget
        ceiling = budget_for(epsilon=Fraction(130), delta=declared.delta, delta_keys_share=declared.delta_keys_share)
        policy.propose_ceiling(curator.ledger, ceiling, by="olga", reason="a second study")
    monkeypatch.setenv(DATABASE_VARIABLE, shared_cluster.dsn(DATABASE, role=SECOND_ROLE))
    with kept.curator() as curator:
        assert isinstance(curator.ledger, PostgresLedger)
        for waiting in reversed([one for one in policy.proposals(curator.ledger) if one.state == "open"]):
            policy.approve(curator.ledger, waiting.proposal_id, by="piet")
        raised, budget = curator.history(limit=2)
        assert (raised.kind, budget.kind) == (EntryKind.CEILING, EntryKind.BUDGET)
        assert budget.detail.endswith("approved by piet: epsilon 110 to 115") and raised.detail.endswith("piet: epsilon 120 to 130")
    monkeypatch.setenv(DATABASE_VARIABLE, shared_cluster.dsn(DATABASE))
    for version in INDEX["versions"]:
        with kept.opened(analyst=INDEX["analyst"], version=version["again"]["version"]) as data:
            again = version_again(data, version["questions"], version["queries"])
            assert differences(apart_from_balance(version["again"]), apart_from_balance(again)) == []
            balance = data.curator.balance()
            assert balance.budget.epsilon == 115 and balance.ceiling.epsilon == 130
            assert seen_balance(data.curator)["spent"] == INDEX["balance"]["spent"]
    assert problems(shared_cluster, kept) == ()


def test_a_changed_entry_and_a_changed_answer_are_noticed(shared_cluster: Cluster, kept: Kept) -> None:
    change(shared_cluster, "UPDATE lapwing.entry SET detail = 'version 3 prepared' WHERE detail = 'version 1 prepared'")
    assert problems(shared_cluster, kept) == ("the chain is broken",)
    charge = INDEX["versions"][0]["again"]["charges"][0]["charge_id"]
    change(shared_cluster, f"UPDATE lapwing.charge SET payload = set_byte(payload, 20, 63) WHERE charge_id = {charge}")
    assert problems(shared_cluster, kept) == ("an answer is not the one that was committed", "the chain is broken")
    kept.accept()
    with kept.opened(analyst=INDEX["analyst"]) as data, pytest.raises(LedgerError) as damaged:
        version_again(data, INDEX["versions"][0]["questions"], {})
    assert damaged.value.code == "ledger-damaged"


def test_a_missing_end_is_noticed(shared_cluster: Cluster, kept: Kept) -> None:
    newest, before = INDEX["history"][-1], INDEX["history"][-2]
    assert (newest["kind"], newest["charge_id"]) == ("commit", before["charge_id"])
    for entry in (newest, before):
        change(shared_cluster, f"DELETE FROM lapwing.entry WHERE entry_id = {entry['entry_id']}")
    assert "the ledger is behind its anchor" in problems(shared_cluster, kept)
    with pytest.raises(LedgerError) as damaged, kept.curator() as curator:
        curator.balance()
    assert damaged.value.code == "ledger-damaged"


def test_blocks_of_time_are_refused_while_the_budget_does_not_hold_what_they_inherit(kept: Kept) -> None:
    kept.accept()
    with kept.curator() as curator:
        spent = curator.balance().spent
        assert exchange_cost(spent, 2, Account.APPROXIMATE).loss > curator.balance().budget.loss_total
    declare_blocks(kept)
    with kept.curator() as curator:
        with pytest.raises(CatalogueError) as refusal:
            curator.prepare(override=REASON)
        assert refusal.value.code == "blocks-overspent"
        assert curator.balance().spent == spent and curator.ledger.blocks() is None


def test_blocks_of_time_are_given_once_two_owners_have_raised_the_budget(
    shared_cluster: Cluster, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.accept()
    with kept.curator() as curator:
        assert isinstance(curator.ledger, PostgresLedger)
        declared = curator.declaration.declared_budget
        larger = budget_for(epsilon=LARGER, delta=declared.delta, delta_keys_share=declared.delta_keys_share)
        for propose in (policy.propose_ceiling, policy.propose_budget):
            propose(curator.ledger, larger, by="olga", reason="visits grow")
            approve_all(shared_cluster, kept, monkeypatch)
    change_catalogue(kept, "\nepsilon = 110\n", f"\nepsilon = {LARGER}\n")
    change_catalogue(kept, "ceiling = { epsilon = 120 }", f"ceiling = {{ epsilon = {LARGER} }}")
    assert_becomes_blocks(kept, analyst=INDEX["analyst"])
    assert problems(shared_cluster, kept) == ()
