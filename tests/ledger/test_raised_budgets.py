"""A budget that two owners raise, on a real PostgreSQL server: the version stays, and what was paid for is free, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.errors import BudgetRefused, CatalogueError, LedgerError
from lapwing.ledger.connect import DATABASE_VARIABLE, system_user
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import EntryKind
from tests.ledger.cluster import CURATOR_ROLE, SECOND_ROLE, Cluster
from tests.ledger.wired import BY_SEX, new_wired, server_ledger

ASKED = (BY_SEX, "SELECT code, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY code")
FOUND_KEYS = "SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug"
DEAR = "SELECT COUNT(*) AS n FROM patients"


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
@pytest.mark.parametrize("account", ["approximate", "pure"])
def test_a_raised_budget_keeps_the_version_and_what_was_answered(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, account: str, neighbours: str
) -> None:
    database = cluster.new_database()
    wired = new_wired(tmp_path, cluster.dsn(database))
    wired.edit('neighbours = "unbounded"', f'neighbours = "{neighbours}"')
    wired.edit("per_statement = 0.2", "per_statement = 1")
    if account == "pure":
        wired.edit('delta = "2^-40"', "delta = 0")
    asked = ASKED if account == "pure" else (*ASKED, FOUND_KEYS)
    with wired.open(analyst="ana") as data:
        assert data.prepare() == 1
        policy.admit(server_ledger(data), "ana")
        first = [data.ask(sql, epsilon="0.2") for sql in asked]

    def assert_free() -> None:
        with wired.open(analyst="ana") as data:
            before = data.curator.balance()
            for sql, was in zip(asked, first, strict=True):
                again = data.ask(sql, epsilon="0.2")
                assert again.cost.free and again.stored == was.stored and again.table == was.table and again.receipt == was.receipt, sql
            assert data.curator.balance() == before and data.curator.engine.versions() == (1,)

    def acts_as(role: str) -> None:
        monkeypatch.setenv(DATABASE_VARIABLE, cluster.dsn(database, role=role))

    wired.edit("epsilon = 3 ", "epsilon = 6 ")
    assert_free()
    acts_as(CURATOR_ROLE)
    with wired.open(analyst="ana") as data:
        with pytest.raises(LedgerError) as refused:
            data.prepare()
        assert refused.value.code == "ledger-role" and data.curator.balance().budget.epsilon == 3
        with pytest.raises(BudgetRefused) as dear:
            data.ask(DEAR, epsilon="3.5")
        assert dear.value.hint == "the catalogue says epsilon 6; epsilon 3 is in force until two owners decide on it"
    monkeypatch.delenv(DATABASE_VARIABLE)
    with wired.open() as data:
        assert data.curator.policy_changes() == ("budget.epsilon",), "what was refused is still to be done"
        assert data.prepare() == 1 and data.curator.balance().budget.epsilon == 3
        [waiting] = policy.proposals(server_ledger(data))
        assert (waiting.by, waiting.reason) == (system_user(), "epsilon 3 to 6: declared in the catalogue")
    acts_as(SECOND_ROLE)
    with wired.open() as data:
        policy.approve(server_ledger(data), waiting.proposal_id, by="piet", reason="read the plan")
        raised = data.history(limit=1)[0]
        assert raised.kind is EntryKind.BUDGET and raised.at
        assert raised.detail == f"proposal 1 by {system_user()}, approved by piet: epsilon 3 to 6: read the plan"
    monkeypatch.delenv(DATABASE_VARIABLE)
    assert_free()
    with wired.open(analyst="ana") as data:
        assert not data.ask(DEAR, epsilon="3.5").cost.free
        report = verify(server_ledger(data).connection, data.name, anchors=FileAnchors(wired.base / "anchors"))
        assert report.problems == () and data.curator.balance().budget.epsilon == 6
    wired.edit("epsilon = 6  ", "epsilon = 1  ")
    with wired.open() as data, pytest.raises(CatalogueError, match="budget-below-spent"):
        data.prepare()
    wired.edit("epsilon = 1  ", "epsilon = 5  ")
    with wired.open() as data:
        assert data.prepare() == 1 and data.history(limit=1)[0].kind is EntryKind.BUDGET, "one owner lowers it"
        assert data.history(limit=1)[0].detail == f"by {system_user()}: epsilon 6 to 5: declared in the catalogue"
    assert_free()
