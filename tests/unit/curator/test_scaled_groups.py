"""Groups scaled to a total: asked for by name, marked wherever they are shown, closer to the truth of the source where the model holds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.reliability.repeated import make_repeatable
from typer.testing import CliRunner

from lapwing.answers.answer import Answer
from lapwing.curator.curator import Curator
from lapwing.curator.stored_tables import decode
from lapwing.data_set import DataSet
from lapwing.errors import Refused
from lapwing.interfaces.cli.app import app
from lapwing.statements import CellMark
from tests.support.promises import watched
from tests.support.ranking_keys import write_ranking_key

PRODUCTS, USERS = 200, 3_000
CATALOGUE = """
format = 1
[dataset]
id = "shop"
unit = "user"
[budget]
epsilon = {epsilon}
delta = {delta}
{order}
[tables.visits]
source = "visits.parquet"
unit = "user_id"
rows_per_unit_max = {most}
rows_max = 1_000_000
[tables.visits.columns]
user_id = {{ type = "key", null = false }}
product = {{ type = "integer", min = 1, max = 200, null = false }}
name = {{ type = "text", null = false }}
amount = {{ type = "real", min = 0, max = 100, steps = 100, null = false }}
gain = {{ type = "integer", min = -5, max = 5, null = false }}
"""
COUNTS = "SELECT product, COUNT(*) AS n FROM visits GROUP BY product"
BOTH = "SELECT product, COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean FROM visits GROUP BY product"


def _write(directory: Path, *, most: int = 1_000) -> None:
    random = np.random.default_rng(5)
    rows = np.minimum(np.floor(random.uniform(size=USERS) ** (-1 / 1.3)), most).astype(int)
    user = np.repeat(np.arange(USERS), rows)
    weights = 1 / np.arange(1, PRODUCTS + 1) ** 0.9
    product = random.choice(PRODUCTS, size=len(user), p=weights / weights.sum()) + 1
    amount = np.minimum(np.round(random.lognormal(2.5, 1, size=len(user)), 2), 100.0)
    gain = random.integers(-5, 6, size=len(user))
    table = {"user_id": user, "product": product.astype(np.int32), "name": [f"p{each}" for each in product], "amount": amount, "gain": gain}
    pq.write_table(pa.table(table), directory / "visits.parquet")


def _declare(directory: Path, *, epsilon: str = "100", delta: str = '"2^-30"', order: str = "", most: int = 1_000) -> DataSet:
    directory.mkdir()
    _write(directory, most=most)
    (directory / "lapwing.toml").write_text(CATALOGUE.format(epsilon=epsilon, delta=delta, order=order, most=most))
    write_ranking_key(directory, "scaled groups")
    data = DataSet(Curator(directory, home=directory / "registry"))
    data.prepare()
    return data


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataSet]:
    with _declare(tmp_path_factory.mktemp("scaled") / "shop") as data:
        yield data


def _truth(shop: DataSet, sql: str) -> dict[int, float]:
    source = Path(shop.curator.path.parent) / "visits.parquet"
    return {int(key): float(value) for key, value, *_ in duckdb.connect().execute(sql.replace("visits", f"'{source}'")).fetchall()}


def _errors(answer: Answer, truth: dict[int, float]) -> tuple[float, int]:
    """Root mean square error of the counts, and how many bars hold the truth."""
    rows = zip(answer.table.column("product").to_pylist(), answer.table.column("n").to_pylist(), answer.intervals["n"], strict=True)
    squares, held = 0.0, 0
    for product, value, bar in rows:
        assert bar is not None
        squares += (value - truth.get(product, 0.0)) ** 2
        held += bar.lo <= truth.get(product, 0.0) <= bar.hi
    return math.sqrt(squares / PRODUCTS), held


def test_scaled_groups_are_closer_to_the_raw_truth(shop: DataSet) -> None:
    truth = _truth(shop, COUNTS)
    plain, scaled = [], []
    for number in range(4):  # another price each time, so that it is another answer
        price = str(0.5 + number / 1000)
        plain.append(_errors(shop.ask(COUNTS, epsilon=price), truth)[0])
        scaled.append(_errors(shop.ask(COUNTS, epsilon=price, scaled_groups=True), truth)[0])
    assert sum(scaled) < 0.75 * sum(plain)


def test_bars_of_scaled_groups_hold_the_raw_truth(tmp_path: Path) -> None:
    """95 % are promised if the model holds; groups of one answer err together."""
    with _declare(tmp_path / "shop") as shop:
        truth = _truth(shop, COUNTS)
        make_repeatable(shop.curator)
        watched("scaled groups").require(lambda: [_errors(shop.ask(COUNTS, epsilon="0.5", scaled_groups=True), truth)[1] / PRODUCTS])


def test_every_scaled_cell_is_marked_and_a_note_names_the_model(shop: DataSet) -> None:
    answer = shop.ask(f"{BOTH} WITH PRIVACY (epsilon = 20, scaled_groups = true)")
    for column in ("n", "total"):
        assert CellMark.SCALED in answer.marks[column]
        assert set(answer.marks[column]) <= {CellMark.SCALED, CellMark.NOISE_ONLY}
    assert CellMark.SCALED not in answer.marks["mean"]
    assert sum("groups are scaled by a model" in note for note in answer.notes) == 1
    assert "* scaled to a total by a model" in str(answer) and " *" in str(answer)
    assert "scaled" in json.loads(json.dumps(answer.to_dict()))["marks"]["n"]
    assert "scaled" in set(answer.to_pandas()["n_mark"])
    computed = shop.ask(
        "SELECT SUM(n) AS n, MAX(r) AS r FROM (SELECT product, COUNT(*) AS n, SUM(amount) / COUNT(*) AS r FROM visits GROUP BY product)"
        " WITH PRIVACY (epsilon = 2, scaled_groups = true)"
    )
    assert computed.marks["n"] == [CellMark.SCALED]


def test_scaled_groups_add_up_to_the_total_that_was_measured(shop: DataSet) -> None:
    answer = shop.ask(COUNTS, epsilon=3, scaled_groups=True)
    groups, total = decode(answer.stored or b"").tables
    assert len(groups.groups) == PRODUCTS and len(total.groups) == 1
    (column,) = total.columns
    assert sum(answer.table.column("n").to_pylist()) == pytest.approx(float(column.values[0] * column.step), abs=PRODUCTS / 2)


def test_ratios_and_expressions_of_scaled_groups_have_simulated_bars(shop: DataSet) -> None:
    few = "FROM visits WHERE product <= 20 GROUP BY product"
    answer = shop.ask(
        f"SELECT product, SUM(amount) / COUNT(*) AS r, COUNT(*) + 1 AS m, 100 * COUNT(*) AS c {few}", epsilon=9, scaled_groups=True
    )
    truth = _truth(shop, f"SELECT product, SUM(amount) / COUNT(*) {few}")
    for column in ("r", "m", "c"):
        # a cell that comes out as pure noise has none
        assert sum(bar is not None and bar.lo < bar.hi for bar in answer.intervals[column][:5]) >= 4
    held = [bar.lo <= truth[row + 1] <= bar.hi for row, bar in enumerate(answer.intervals["r"][:10]) if bar is not None]
    assert sum(held) >= 5


def test_the_price_is_that_of_the_statement_and_totals_are_a_query_of_the_same_plan(shop: DataSet) -> None:
    sql = f"{COUNTS} WITH PRIVACY (epsilon = 0.7, scaled_groups = true)"
    quoted = shop.explain(sql).to_dict()
    answer = shop.ask(sql)
    assert answer.cost.epsilon == pytest.approx(quoted["cost"]["epsilon"], rel=1e-6) and answer.cost.epsilon <= 0.7
    assert shop.ask(sql).cost.free and shop.ask(COUNTS, epsilon="0.7", scaled_groups=True).cost.free
    assert not shop.ask(COUNTS, epsilon="0.7").cost.free  # without scaling it is another plan
    explained = shop.explain(sql)
    assert explained.to_dict()["scaled"] == ["n"] and "scaled" in dict(explained.lines)


def test_nothing_is_scaled_where_nothing_is_asked_and_a_hint_says_where_it_would_help(shop: DataSet) -> None:
    answer = shop.ask(COUNTS, epsilon=4)
    assert not any(mark is CellMark.SCALED for mark in answer.marks["n"])
    hinted = any("WITH PRIVACY (scaled_groups = true) is predicted to be clearly closer" in note for note in answer.notes)
    assert hinted and "closer" in dict(shop.explain(COUNTS, epsilon=4).lines)
    assert not any("scaled" in note for note in shop.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.2").notes)


REFUSED = {
    "SELECT COUNT(*) FROM visits": "nothing to scale",
    "SELECT product, AVG(amount) FROM visits GROUP BY product": "nothing to scale",
    "SELECT product, COUNT(DISTINCT user_id) FROM visits GROUP BY product": "nothing to scale",
    "SELECT product, SUM(gain) FROM visits GROUP BY product": "nothing to scale",
    "SELECT name, COUNT(*) FROM visits GROUP BY name": "discovered",
    "SELECT product, COUNT(*) FROM visits GROUP BY ROLLUP (product)": "ROLLUP",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_scaled_is_refused_before_anything_is_charged(shop: DataSet, sql: str) -> None:
    before = shop.curator.balance().spent
    with pytest.raises(Refused) as refused:
        shop.ask(sql, epsilon="0.1", scaled_groups=True)
    assert refused.value.code == "scaled-groups-unsupported" and REFUSED[sql] in refused.value.message
    assert shop.curator.balance().spent == before


@pytest.mark.parametrize(
    ("words", "scaled"), [("scaled_groups = false", True), ("scaled_groups = true", False), ("scaled_groups = true, error = 50", None)]
)
def test_words_that_contradict_the_argument_or_ask_for_an_error_are_refused(shop: DataSet, words: str, scaled: bool | None) -> None:
    with pytest.raises(Refused) as refused:
        shop.ask(f"{COUNTS} WITH PRIVACY ({words})", scaled_groups=scaled)
    assert refused.value.code == "privacy-contradiction" and refused.value.span is not None


def test_a_pure_data_set_refuses_and_an_account_with_an_order_takes_gaussian_noise(tmp_path: Path) -> None:
    with _declare(tmp_path / "pure", delta="0") as pure:
        with pytest.raises(Refused) as refused:
            pure.ask(COUNTS, epsilon=1, scaled_groups=True)
        assert refused.value.code == "scaled-groups-unsupported" and "no delta" in refused.value.message
    with _declare(tmp_path / "order", epsilon="10", order="order = 8") as ordered:
        assert CellMark.SCALED in ordered.ask(COUNTS, epsilon=5, scaled_groups=True).marks["n"]


def test_where_nothing_is_cut_off_nothing_is_scaled_and_a_note_says_so(tmp_path: Path) -> None:
    with _declare(tmp_path / "few", most=1) as few:
        answer = few.ask(COUNTS, epsilon=1, scaled_groups=True)
    assert not any(mark is CellMark.SCALED for mark in answer.marks["n"])
    assert any("the groups are not scaled" in note for note in answer.notes)


def test_the_command_line_has_the_same_word(tmp_path: Path) -> None:
    with _declare(tmp_path / "shop"):
        place = str(tmp_path / "shop")
    runner = CliRunner(env={"LAPWING_HOME": str(tmp_path / "shop" / "registry")})
    asked = ["-C", place, "ask", COUNTS, "--epsilon", "2", "--scaled-groups", "--format", "json"]
    result = runner.invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "scaled" in json.loads(result.stdout)["marks"]["n"]
    explained = runner.invoke(app, ["-C", place, "explain", COUNTS, "--epsilon", "2", "--scaled-groups"])
    assert explained.exit_code == 0 and "scaled" in explained.stdout
