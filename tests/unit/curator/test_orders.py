"""A data set whose account is a union of filters, from its catalogue to its answers."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.audit.worlds import declare, random_world
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.errors import BudgetRefused, CatalogueError
from lapwing.kernel.accounting import LOSS_UNITS

COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    declare(random_world(random.Random(4)), tmp_path / "data", neighbours="unbounded", delta='"1e-8"\norder = 32')
    return tmp_path / "data"


def opened(directory: Path) -> Curator:
    return Curator(directory, home=directory.parent / "home")


def test_preparation_buys_its_statistics_with_laplace_noise(directory: Path) -> None:
    with opened(directory) as curator:
        curator.prepare()
        spent = curator.balance().spent
        assert spent.pure is not None and 0 < spent.pure <= LOSS_UNITS // 20
        assert curator.contributions()
        assert 0.008 < curator.budget().share_spent < 0.05, "several histograms: what is spent of rho falls with the square of epsilon"


def test_few_questions_are_answered_with_laplace_noise_and_replayed(directory: Path) -> None:
    with opened(directory) as curator:
        curator.prepare()
        lines = dict(DataSet(curator).explain(COUNT, epsilon="0.6").lines)
        assert "laplace" in lines["noise"] and "account" not in lines
        first = DataSet(curator).ask(COUNT, epsilon="0.6")
        spent = curator.balance().spent
        assert spent.pure is not None and first.cost.epsilon == pytest.approx(0.37, abs=0.02)
        assert curator.history()[0].cost.loss == 0 and curator.history()[1].cost.pure == round(first.cost.epsilon * LOSS_UNITS)
        DataSet(curator).ask(COUNT + " WHERE age > 30", epsilon="0.6")
        assert curator.balance().spent == spent + curator.history()[1].cost
        again = DataSet(curator).ask(COUNT, epsilon="0.6")
        assert again.cost.free and again.table == first.table


def test_norms_are_bought_with_the_noise_of_their_statement(directory: Path) -> None:
    with opened(directory) as curator:
        curator.prepare()
        before = curator.balance().spent
        lines = dict(DataSet(curator).explain("SELECT COUNT(*) AS n FROM visits WHERE cost < 100", epsilon="0.6").lines)
        assert lines["norms"].startswith("10% of it first buys") and "laplace" in lines["noise"]
        answer = DataSet(curator).ask("SELECT COUNT(*) AS n FROM visits WHERE cost < 100", epsilon="0.6")
        spent = curator.balance().spent
        assert before.pure is not None and spent.pure is not None
        assert (spent.pure - before.pure) / LOSS_UNITS == pytest.approx(answer.cost.epsilon)
        assert [entry.cost.pure is not None for entry in curator.history() if entry.cost.loss][:2] == [True, True]


def test_gaussian_noise_closes_the_pure_side_and_explain_says_so(directory: Path) -> None:
    small = COUNT + " WHERE age > 30"
    with opened(directory) as curator:
        curator.prepare()
        lines = dict(DataSet(curator).explain(small, epsilon="0.1").lines)
        assert "gaussian" in lines["noise"] and lines["account"].startswith("no pure epsilon: 99.0")
        DataSet(curator).ask(small, epsilon="0.1")
        assert curator.balance().spent.pure is None
        assert curator.budget().to_dict()["pure_epsilon"]["spent"] is None and "closed by Gaussian noise" in str(curator.budget())
        assert "gaussian" in dict(DataSet(curator).explain(COUNT, epsilon="0.6").lines)["noise"]


def test_the_account_is_never_overspent(directory: Path) -> None:
    with opened(directory) as curator:
        curator.prepare()
        asked = 0
        with pytest.raises(BudgetRefused):
            for age in range(200):
                DataSet(curator).ask(f"{COUNT} WHERE age > {age}", epsilon="0.5")
                asked += 1
        budget, spent = curator.balance().budget, curator.balance().spent
        within_pure = spent.pure is not None and budget.pure_total is not None and spent.pure <= budget.pure_total
        assert asked >= 3 and (spent.loss <= budget.loss_total or within_pure)


def test_an_accuracy_is_bought_where_the_least_price_reaches_it(directory: Path) -> None:
    with opened(directory) as curator:
        curator.prepare()
        answer = DataSet(curator).ask(f"{COUNT} WITH PRIVACY (error = 10)")
        (bar,) = answer.intervals["n"]
        assert bar is not None and bar.hi - bar.lo <= 21
        assert curator.balance().spent.pure is not None
        assert DataSet(curator).ask(f"{COUNT} WITH PRIVACY (error = 10)").cost.free


def test_another_order_than_the_ledgers_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(directory) as curator:
        curator.prepare()
    catalogue = directory / "lapwing.toml"
    catalogue.write_text(catalogue.read_text().replace("order = 32", "order = 33"))
    with opened(directory) as curator, pytest.raises(CatalogueError) as refused:
        curator.prepare(override="for a test")
    assert refused.value.code == "budget-account"
    catalogue.write_text(catalogue.read_text().replace("order = 33", "order = 32"))
    with opened(directory) as curator:
        balance = curator.balance()
        other = replace(balance, budget=replace(balance.budget, order=33))
        monkeypatch.setattr(type(curator.ledger), "balance", lambda self: other)
        with pytest.raises(CatalogueError) as wrong:
            DataSet(curator).ask(COUNT, epsilon="0.6")
        assert wrong.value.code == "budget-account"
