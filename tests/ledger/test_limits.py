"""How fast the local ledger lets analysts spend: the limits of the catalogue, exact to a unit and decided with the charge."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

import lapwing
from lapwing.catalog import LimitsDecl
from lapwing.demo import write_demo
from lapwing.errors import BudgetRefused
from lapwing.kernel.accounting import Budget
from lapwing.kernel.permit import Permit
from lapwing.ledger.local import rows
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.protocol import StoredAnswer
from tests.ledger.support import FINGERPRINT, SOURCE, approximate_budget, ledger_path, pure_budget, request, union_budget

FIFTH_AND_HALF = LimitsDecl(per_statement=Fraction(1, 5), per_day=Fraction(1, 2))


def _new(directory: Path, budget: Budget, allowed: LimitsDecl = FIFTH_AND_HALF) -> LocalLedger:
    return LocalLedger.create(
        ledger_path(directory),
        source_id=SOURCE,
        source_fingerprint=FINGERPRINT,
        budget=budget,
        ceiling=budget,
        home=directory / "home",
        allowed=allowed,
    )


def _open(directory: Path, allowed: LimitsDecl) -> LocalLedger:
    return LocalLedger.open(ledger_path(directory), source_id=SOURCE, home=directory / "home", allowed=allowed)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[LocalLedger]:
    with _new(tmp_path, pure_budget(1000)) as made:
        yield made


def test_one_statement_costs_a_share_of_the_budget_at_most_to_the_unit(ledger: LocalLedger) -> None:
    for asked in (lambda: ledger.reserve(request("dear", loss=201)), lambda: ledger.require_payable("ana", request("dear", loss=201).cost)):
        with pytest.raises(BudgetRefused) as refused:
            asked()
        assert refused.value.code == "statement-limit"
        assert refused.value.message == "one statement may cost 20% of the budget at most, but this one costs 20.1%"
    assert ledger.balance().spent.loss == 0 and len(ledger.history()) == 1, "nothing was charged and nothing written down"
    assert isinstance(ledger.reserve(request("fits", loss=200)), Permit)


def test_the_hint_names_an_epsilon_that_fits(tmp_path: Path) -> None:
    from lapwing.kernel.accounting import charge_loss
    from lapwing.prices import statement_loss

    budget = approximate_budget(3)
    with _new(tmp_path, budget) as ledger:
        with pytest.raises(BudgetRefused) as refused:
            ledger.reserve(request("dear", loss=budget.loss_total))
        epsilon = Fraction((refused.value.hint or "").removeprefix("ask at epsilon ").split()[0])
        loss = charge_loss(statement_loss(budget, epsilon))
        assert 0.95 * budget.loss_total / 5 < loss <= budget.loss_total / 5
        assert isinstance(ledger.reserve(request("fits", loss=loss)), Permit)


def test_an_analyst_spends_a_share_in_a_day_and_hears_of_nobody_else(ledger: LocalLedger) -> None:
    permit = ledger.reserve(request("first", loss=200))
    assert isinstance(permit, Permit)
    ledger.commit(permit, b"answer")
    ledger.reserve(request("second", loss=200))
    for other in range(2):
        ledger.reserve(request(f"of bo {other}", loss=200, analyst="bo"))
    with pytest.raises(BudgetRefused) as refused:
        ledger.reserve(request("third", loss=101))
    assert refused.value.code == "day-limit"
    assert refused.value.message == "an analyst may spend 50% of the budget per day, and 10% is left for today"
    assert "00:00 UTC" in (refused.value.hint or "")
    assert isinstance(ledger.reserve(request("third", loss=100)), Permit)
    with pytest.raises(BudgetRefused, match="0% is left"):
        ledger.reserve(request("fourth", loss=1))
    assert ledger.reserve(request("first", loss=200)) == StoredAnswer(permit.charge_id, b"answer"), "a replay is never limited"


def test_a_new_day_begins_at_midnight_and_no_day_is_given_twice(ledger: LocalLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    def on(moment: str) -> None:
        monkeypatch.setattr(rows, "now_text", lambda: f"{moment}.000+00:00")

    on("2030-01-05T23:59:59")
    for number in range(2):
        ledger.reserve(request(f"on the fifth {number}", loss=200))
    on("2030-01-04T12:00:00")  # the clock is put back
    with pytest.raises(BudgetRefused, match="10% is left"):
        ledger.reserve(request("on the fourth", loss=101))
    ledger.reserve(request("on the fourth", loss=1))
    on("2030-01-05T23:59:59")  # and right again
    with pytest.raises(BudgetRefused, match="10% is left"):
        ledger.reserve(request("late", loss=101))
    on("2030-01-06T00:00:00")
    assert isinstance(ledger.reserve(request("next day", loss=200)), Permit)


def test_many_at_once_do_not_pass_the_limit_of_a_day(ledger: LocalLedger) -> None:
    def reserve(number: int) -> bool:
        try:
            return isinstance(ledger.reserve(request(f"r{number}", loss=150)), Permit)
        except BudgetRefused as refused:
            assert refused.code == "day-limit"
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(reserve, range(8))) == 3
    assert ledger.balance().spent.loss == 450


def test_other_limits_hold_at_once_and_the_budget_always(tmp_path: Path) -> None:
    _new(tmp_path, pure_budget(1000)).disconnect()
    with _open(tmp_path, LimitsDecl(per_statement=Fraction(1))) as raised:
        assert isinstance(raised.reserve(request("most", loss=900)), Permit)
    with _open(tmp_path, LimitsDecl()) as unlimited, pytest.raises(BudgetRefused) as refused:
        unlimited.reserve(request("more", loss=101))
    assert refused.value.code == "budget-exceeded"
    with _open(tmp_path, FIFTH_AND_HALF) as limited, pytest.raises(BudgetRefused) as refused:
        limited.reserve(request("one more", loss=1))
    assert refused.value.code == "day-limit", "what was spent before the limit counts"


def test_in_an_account_with_an_order_one_side_within_is_enough(tmp_path: Path) -> None:
    budget = union_budget()
    assert budget.pure_total is not None
    loss, pure = budget.loss_total, budget.pure_total // 5
    with _new(tmp_path, budget) as ledger:
        assert isinstance(ledger.reserve(request("pure", loss=loss, pure=pure)), Permit)
        for key, amount in (("more", pure + 1), ("none", None)):
            with pytest.raises(BudgetRefused, match="one statement"):
                ledger.reserve(request(key, loss=loss, pure=amount))


def test_a_share_of_one_is_no_limit_in_what_is_explained(tmp_path: Path) -> None:
    write_demo(tmp_path / "clinic", patients=50)
    catalogue = tmp_path / "clinic" / "lapwing.toml"
    catalogue.write_text(catalogue.read_text(encoding="utf-8").replace("per_statement = 0.2", "per_statement = 1"), encoding="utf-8")
    with lapwing.open(tmp_path / "clinic", home=tmp_path / "home") as data_set:
        data_set.prepare()
        assert data_set.explain("SELECT COUNT(*) AS n FROM patients", epsilon="50").values["too_much"] == "more than is left of the budget"
