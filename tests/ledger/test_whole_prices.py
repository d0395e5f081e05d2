"""A statement that is paid in two charges is refused before the first where no more than the first could be paid; and a data set with an
order, from its catalogue to its answers, on a ledger in PostgreSQL."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import BudgetRefused, Refused
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.verify import verify
from lapwing.prices import statement_loss
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place
from tests.ledger.support import new_ledger, pure_budget, request, union_budget
from tests.ledger.wired import Wired, new_wired, server_ledger

BOUNDED = "SELECT COUNT(*) AS n FROM visits WHERE cost < 100"


@pytest.fixture
def wired(cluster: Cluster, database: str, tmp_path: Path) -> Wired:
    return new_wired(tmp_path, cluster.dsn(database))


@pytest.mark.slow
def test_norms_are_not_bought_for_an_answer_that_a_limit_refuses(wired: Wired) -> None:
    with wired.open(analyst="ana") as data:
        data.prepare()
        ledger = server_ledger(data)
        price = statement_loss(data.curator.balance().budget, Fraction(1, 5)) * LOSS_UNITS
        half = int(price / 2)  # far more than the norms cost, and less than all of it
        policy.admit(ledger, "ana", loss_total=half)
        policy.admit(ledger, "bo", day_loss_max=half)
        before = data.curator.balance().spent
        for name, code in (("ana", "analyst-budget"), ("bo", "day-limit")):
            with pytest.raises(BudgetRefused) as refused:
                data.ask(BOUNDED, epsilon="0.2", analyst=name)
            assert refused.value.code == code
        with pytest.raises(Refused) as unknown:
            data.ask(BOUNDED, epsilon="0.2", analyst="eve")
        assert unknown.value.code == "analyst-unknown"
        assert data.curator.balance().spent == before
        policy.admit(ledger, "ana", loss_total=2 * half + 10)
        data.ask(BOUNDED, epsilon="0.2", analyst="ana")
        charged = [entry for entry in ledger.history() if entry.analyst == "ana" and entry.cost.loss]
        assert len(charged) > 1, "the statement bought no norms: this test asks for one that does"


@pytest.mark.slow
def test_an_account_with_an_order_from_its_catalogue_to_its_answers(wired: Wired) -> None:
    wired.edit("[budget]\n", "[budget]\norder = 32\n")
    with wired.open(analyst="ana") as data:
        data.prepare()
        ledger = server_ledger(data)
        policy.admit(ledger, "ana")
        before = ledger.balance().spent
        data.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.5")
        after = ledger.balance()
        assert after.budget.order == 32 and before.pure is not None and after.spent.pure is not None
        assert after.spent.pure > before.pure and after.spent.loss > before.loss
        anchors = FileAnchors(wired.base / "anchors")
        assert verify(ledger.connection, ledger.state().source_id, anchors=anchors).problems == ()
        assert data.budget.to_dict()["pure_epsilon"]["spent"] is not None


def test_what_could_be_paid_is_not_charged(place: Place) -> None:
    with place.create(union_budget()) as ledger:
        policy.admit(ledger, "bo", loss_total=5, pure_total=7)
        before = ledger.state()
        ledger.require_payable("bo", Cost(loss=5, delta=0))
        ledger.require_payable("bo", Cost(loss=6, delta=0, pure=7))
        for cost in (Cost(loss=6, delta=0), Cost(loss=6, delta=0, pure=8)):
            with pytest.raises(BudgetRefused) as refused:
                ledger.require_payable("bo", cost)
            assert refused.value.code == "analyst-budget"
        with pytest.raises(BudgetRefused) as of_all:
            ledger.require_payable("ana", Cost(loss=union_budget().loss_total + 1, delta=0))
        assert of_all.value.code == "budget-exceeded"
        assert ledger.state() == before
        assert isinstance(ledger.reserve(request("one", loss=5, analyst="bo")), Permit)
        ledger.close("asked")
        with pytest.raises(Refused) as closed:
            ledger.require_payable("ana", Cost(loss=1, delta=0))
        assert closed.value.code == "data-set-closed"


def test_a_local_ledger_says_the_same_of_its_budget(tmp_path: Path) -> None:
    with new_ledger(tmp_path, budget=pure_budget(10)) as ledger:
        ledger.require_payable("ana", Cost(loss=10, delta=0))
        with pytest.raises(BudgetRefused):
            ledger.require_payable("ana", Cost(loss=11, delta=0))
        assert ledger.balance().spent == Cost.zero()
        ledger.close("asked")
        with pytest.raises(Refused) as closed:
            ledger.require_payable("ana", Cost(loss=1, delta=0))
        assert closed.value.code == "data-set-closed"
