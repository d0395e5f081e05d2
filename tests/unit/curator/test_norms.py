"""Bounds from norms: bought first for a part of the price, reused, and error bars that reach to what was cut off."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.errors import BudgetRefused

CATALOGUE = """
format = 1
[dataset]
id = "shop"
engine = "duckdb"
unit = "user"
neighbours = "{neighbours}"
units = 3_000
[budget]
epsilon = {epsilon}
delta = "{delta}"
statistics_share = 0
norms_share = {share}
[tables.orders]
source = "orders.parquet"
unit = "user_id"
rows_per_unit_max = 500
rows_max = 1_000_000
[tables.orders.columns]
user_id = {{ type = "key", null = false }}
country = {{ type = "text", values = ["at", "be", "ch", "de"], null = false }}
amount = {{ type = "real", min = 0, max = 10_000, steps = 100, null = false }}
"""
COUNT = "SELECT COUNT(*) AS n FROM orders WHERE amount < 20"
BY_COUNTRY = "SELECT country, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS a, COUNT(DISTINCT user_id) AS u FROM orders GROUP BY country"


def _declare(directory: Path, *, share: str = "0.1", epsilon: str = "100", delta: str = "2^-30", neighbours: str = "unbounded") -> DataSet:
    directory.mkdir(exist_ok=True)
    drawn = random.Random(7)
    rows: dict[str, list[object]] = {"user_id": [], "country": [], "amount": []}
    for user in range(3_000):
        home = drawn.choice(["at", "be", "ch", "de"])
        for _ in range(min(int(drawn.paretovariate(1.3)), 500)):
            rows["user_id"].append(user)
            rows["country"].append(home if drawn.random() < 0.8 else drawn.choice(["at", "be", "ch", "de"]))
            rows["amount"].append(round(min(drawn.lognormvariate(3, 1), 10_000), 2))
    pq.write_table(pa.table(rows), directory / "orders.parquet")
    words = {"share": share, "epsilon": epsilon, "delta": delta, "neighbours": neighbours}
    (directory / "lapwing.toml").write_text(CATALOGUE.format(**words))
    data = DataSet(Curator(directory, home=directory / "registry"))
    data.prepare()
    return data


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[DataSet]:
    with _declare(tmp_path / "shop") as data:
        yield data


def _spent(data: DataSet) -> int:
    return data.curator.balance().spent.loss


def _charges(data: DataSet) -> list[str]:
    return [item.summary for item in data.curator.ledger.bought(version=1, limit=100)]


def test_norms_are_bought_first_and_the_whole_is_quoted_as_one_price(shop: DataSet) -> None:
    quoted = shop.explain(COUNT, epsilon=1).to_dict()
    assert quoted["norms"]["bought"] is False and 0 < quoted["norms"]["loss"] < 0.11 * quoted["cost"]["loss"]
    answer = shop.ask(COUNT, epsilon=1)
    asked, norms = _charges(shop)
    assert asked == COUNT and norms.startswith("norms ") and norms.endswith(COUNT)
    assert answer.cost.epsilon == pytest.approx(quoted["cost"]["epsilon"], rel=1e-6) and answer.cost.epsilon <= 1
    assert any("the error bars reach to it" in note for note in answer.notes)


def test_the_same_statement_is_free_and_the_same_bit_for_bit(shop: DataSet) -> None:
    first = shop.ask(BY_COUNTRY, epsilon=1)
    spent = _spent(shop)
    again = shop.ask(BY_COUNTRY, epsilon=1)
    assert again.cost.free and _spent(shop) == spent and again.table == first.table and again.intervals == first.intervals
    assert shop.explain(BY_COUNTRY, epsilon=1).to_dict()["stored"]


def test_bought_norms_serve_other_prices_and_other_outputs_of_the_same_measure(shop: DataSet) -> None:
    shop.ask(COUNT, epsilon=1)
    assert shop.explain(COUNT, epsilon="1.2").to_dict()["norms"] == {"bought": True, "loss": 0.0, "one_in": 1}
    shop.ask(COUNT, epsilon="1.2")
    shop.ask("SELECT COUNT(*) + 1 AS m FROM orders WHERE amount < 20", epsilon="0.9")
    assert sum(summary.startswith("norms") for summary in _charges(shop)) == 1
    shop.ask(COUNT, epsilon=3)  # nine times as much: the old histogram is too noisy for that
    assert sum(summary.startswith("norms") for summary in _charges(shop)) == 2
    spent = _spent(shop)
    for epsilon in ("1", "1.2", "3"):
        assert shop.ask(COUNT, epsilon=epsilon).cost.free
    assert _spent(shop) == spent


def test_what_the_budget_cannot_pay_as_a_whole_is_refused_before_norms_are_bought(tmp_path: Path) -> None:
    with _declare(tmp_path / "poor", epsilon="1") as data:
        data.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 30", epsilon="0.9")
        spent = _spent(data)
        with pytest.raises(BudgetRefused):
            data.ask(COUNT, epsilon="0.9")
        assert _spent(data) == spent


def test_an_owner_can_do_without_norms_and_answers_then_say_what_their_bars_leave_out(tmp_path: Path) -> None:
    with _declare(tmp_path / "none", share="0") as data:
        answer = data.ask(COUNT, epsilon="0.5")
        assert len(_charges(data)) == 1 and any("error bars do not reach to it" in note for note in answer.notes)


@pytest.mark.parametrize(("delta", "neighbours"), [("2^-30", "unbounded"), ("2^-30", "bounded"), ("0", "unbounded"), ("0", "bounded")])
def test_error_bars_reach_to_the_truth_of_the_source(tmp_path: Path, delta: str, neighbours: str) -> None:
    with _declare(tmp_path / "shop", delta=delta, neighbours=neighbours, epsilon="1_000") as data:
        source = str(tmp_path / "shop" / "orders.parquet")
        statements = [COUNT.replace("20", str(20 + i)) for i in range(12)]
        statements += [f"SELECT SUM(amount) AS s FROM orders WHERE amount < {30 + i}" for i in range(8)]
        if delta != "0":
            statements += [BY_COUNTRY, BY_COUNTRY.replace("GROUP", "WHERE amount > 10 GROUP")]
        inside = answers = 0
        for sql in statements:
            answer = data.ask(sql, epsilon=1, confidence="0.99")
            truth = (
                duckdb.connect()
                .sql(sql.replace("orders", f"'{source}'") + (" ORDER BY country" if "country" in sql else ""))
                .to_arrow_table()
            )
            for name, bars in answer.intervals.items():
                for bar, true in zip(bars, truth.column(name).to_pylist(), strict=True):
                    answers += 1
                    inside += bar is not None and bar.lo <= float(true) <= bar.hi
        # With chance 0.99 each, more than three of at least twenty miss with chance 1e-5; several statements share no noise.
        assert answers >= 20 and answers - inside <= 3


def test_a_centred_sum_beside_values_of_one_size_is_scaled_with_its_count(tmp_path: Path) -> None:
    with _declare(tmp_path / "shop") as data:
        sql = "SELECT AVG(amount + 9_000) AS a FROM orders WHERE amount < 500"
        answer = data.ask(sql, epsilon=3)
        (bar,) = answer.intervals["a"]
        ((true,),) = duckdb.connect().sql(sql.replace("orders", f"'{tmp_path / 'shop' / 'orders.parquet'}'")).fetchall()
        assert bar is not None
        # Twice as far as a bar at 95 % reaches.
        assert 1.5 * bar.lo - bar.hi / 2 <= true <= 1.5 * bar.hi - bar.lo / 2 and bar.hi - bar.lo < 2_000


def test_bars_of_a_price_asked_as_an_accuracy_reach_to_what_is_missing(shop: DataSet) -> None:
    answer = shop.ask(f"{COUNT} WITH PRIVACY (error = 500)")
    assert not any("error bars do not reach to it" in note for note in answer.notes)
    assert any(summary.startswith("norms") for summary in _charges(shop))


def test_noise_is_chosen_where_the_two_plans_measure_different_vectors(tmp_path: Path) -> None:
    """With norms an average beside a sum has vectors of its own; a plan with Laplace noise over groups has no norms, and so fewer."""
    with _declare(tmp_path / "shop", share="0.1\norder = 32", epsilon="3") as data:
        answer = data.ask(BY_COUNTRY, epsilon=1)
        assert set(answer.intervals) == {"n", "s", "a", "u"}


def test_what_averages_cut_off_is_not_said_to_be_joined_rows(shop: DataSet) -> None:
    answer = shop.ask("SELECT country, SUM(amount) AS s, AVG(amount) AS a FROM orders GROUP BY country", epsilon=1)
    assert any("above the bound" in note for note in answer.notes) and not any("joined rows" in note for note in answer.notes)
