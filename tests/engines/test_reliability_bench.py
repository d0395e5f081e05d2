"""The instrument that measures reliability measures what it says: fresh answers, the truth of the source, and a bound that is the best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
from benchmarks.reliability.best_bound import Contributions, best_bound
from benchmarks.reliability.measure import Truth, measured_statement
from benchmarks.reliability.repeated import ForgettingLedger, make_repeatable
from benchmarks.reliability.shop import write_shop
from benchmarks.reliability.statements import COUNTRY, DEVICE, FAMILIES, REVENUE, AskedStatement, Measured, N, Output, statements

from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet

USERS = 300


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shop")
    write_shop(made, law="one extreme unit", users=USERS)
    return made


@pytest.fixture(scope="module")
def repeatable(directory: Path) -> Iterator[tuple[Curator, ForgettingLedger]]:
    with Curator(directory, home=directory / "registry") as opened:
        opened.prepare(accept_losses=False)
        yield opened, make_repeatable(opened)


@pytest.fixture(scope="module")
def curator(repeatable: tuple[Curator, ForgettingLedger]) -> Curator:
    return repeatable[0]


def test_the_same_question_is_paid_and_drawn_again(curator: Curator) -> None:
    sql = "SELECT day, COUNT(DISTINCT user_id) AS users FROM events GROUP BY day"
    answers = [DataSet(curator).ask(sql, epsilon="0.1") for _ in range(2)]
    assert [answer.cost.free for answer in answers] == [False, False]
    assert answers[0].table != answers[1].table  # 28 cells with noise of more than 10


def test_what_was_just_bought_is_recalled_for_explain_alone(repeatable: tuple[Curator, ForgettingLedger]) -> None:
    curator, ledger = repeatable
    sql = "SELECT device, COUNT(DISTINCT user_id) AS users FROM events GROUP BY device"
    ledger.forget()
    answer = DataSet(curator).ask(sql, epsilon="0.1")
    with ledger.recalled():
        assert DataSet(curator).ask(sql, epsilon="0.1").table == answer.table
    assert not DataSet(curator).ask(sql, epsilon="0.1").cost.free


def test_nothing_is_lost_at_preparation(curator: Curator) -> None:
    assert curator.losses(curator.latest()) == []


def test_the_truth_is_that_of_bare_sql_on_every_level(directory: Path) -> None:
    statement = AskedStatement("ROLLUP", "events", "user_id", (N, REVENUE), (COUNTRY, DEVICE), "amount < 20", rollup=True)
    levels = Truth(directory, ("events",)).contributions(statement)
    bare = duckdb.connect().execute(statement.sql.replace("FROM events", f"FROM '{directory}/events.parquet'")).fetchall()
    for place, output in enumerate(statement.outputs):
        found = {key: value for level in levels for key, value in level.truth(output).items()}
        assert found == pytest.approx({(country, device): row[place] for country, device, *row in bare})


def test_the_best_bound_of_equal_units_cuts_nothing_and_that_of_one_extreme_cuts_it() -> None:
    statement = AskedStatement("filtered counts", "events", "user_id", (N,))
    for most, error in ((2.0, 2.0), (1_000.0, None)):
        rows = np.array([2.0] * 99 + [most])
        level = Contributions(np.arange(100), [()] * 100, rows, {}).at_level(0)
        best = best_bound(statement, N, [level], 0, {(): 1.0}, rho=0.5)  # the noise of a cap is the cap
        assert best.error <= math.hypot(most, 0)  # cutting nothing
        if error is not None:
            assert best.error == pytest.approx(error)
        else:
            assert best.cap < most and best.error >= most / math.sqrt(2)  # noise or cut: one of them is that large


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_is_measured(repeatable: tuple[Curator, ForgettingLedger], directory: Path, family: str) -> None:
    (statement,) = statements(family, 1)
    truth = Truth(directory, ("users", "events", "orders", "items"))
    records = measured_statement(*repeatable, truth, statement, law="one extreme unit", epsilons=["3"], draws=1)
    assert len(records) == len(statement.outputs) * len(statement.levels)
    for record in records:
        assert "refused" not in record
        assert 0 <= record["covered"] <= record["answers"]
        if record["shown"]:
            assert record["error"] > 0 and record["best_error"] > 0


def test_an_output_is_asked_as_it_is_called() -> None:
    assert Output("m", Measured.AVERAGE, "amount", 10).sql("user_id") == "AVG(amount) AS m"
