"""Attacks on whole releases: the best test there is reaches what was charged and no further, and two worlds look the same but for noise."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from lapwing import DataSet, Marginals, RangeTree, SyntheticTable
from lapwing.audit.plans import LOSSES, audit_pair, tiled_ratios, worst_pairs
from lapwing.audit.release_shapes import release_shapes
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.releases.report import release_html
from lapwing.releases.request import QuantileRequest
from lapwing.render.duckdb import DUCKDB
from lapwing.render.queries import render_plan
from tests.attacks.pair import CANARY, Pair, make_pair
from tests.support.sizes import size

RUNS = size("matched filter, releases")


def test_the_matched_filter_reaches_what_was_charged_and_does_not_pass_it() -> None:
    """The ratio of the laws of two worlds is the best test. With Gaussian noise its mean differs by sqrt(2 rho) of its deviations."""
    charged = math.sqrt(2.0 * float(LOSSES[Account.APPROXIMATE]))
    pairs = worst_pairs(release_shapes(), relation="unbounded", account=Account.APPROXIMATE, worlds=1, seed=4)
    reached = {}
    for name, pair in pairs.items():
        assert pair.share <= 1.0
        without, with_one = (tiled_ratios(pair, right=right, runs=RUNS) for right in (False, True))
        deviation = math.sqrt((np.var(without) + np.var(with_one)) / 2.0)
        reached[name] = abs(float(with_one.mean() - without.mean())) / deviation / charged
    # The deviation of a difference of means of so many runs, with four of them to either side.
    unsure = 4.0 * math.sqrt(2.0 / RUNS) / charged
    assert all(share <= 1.0 + unsure for share in reached.values()), reached
    assert reached["release, one row per unit"] >= 0.99 - unsure, "a row changes one cell of each table: nothing is charged for nothing"


@pytest.mark.parametrize("account", list(Account))
def test_an_audit_of_whole_releases_refutes_nothing(account: Account) -> None:
    pairs = worst_pairs(release_shapes(), relation="unbounded", account=account, worlds=1, seed=5)
    for name, pair in pairs.items():
        assert not audit_pair(pair, samples=RUNS, tests=len(pairs)).caught, name


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = make_pair(tmp_path_factory.mktemp("released"))
    yield made
    made.close()


RELEASES: list[tuple[str, QuantileRequest | tuple[QuantileRequest, ...]]] = [
    ("people", Marginals("word", "rare", "flag", "num", "d", bins={"num": 5, "d": 4})),
    ("events", Marginals("place", "day", "amount", ways=3, bins={"day": 6, "amount": 3})),
    ("people", SyntheticTable("rare", "flag", "x", bins={"x": 8})),
    ("people", Marginals("note", ways=1)),
    ("people", Marginals("big", ways=1)),
    ("events", SyntheticTable("place", "kind")),
    ("events", RangeTree("day", by="place")),
    ("people", RangeTree("num", by=("rare", "flag"), branch=3)),
    ("people", RangeTree("big")),
    ("people", (Marginals("rare", "flag"), RangeTree("num"), SyntheticTable("word", "rare"), RangeTree("d", by="flag", bins=16))),
]
ASKED = [
    "SELECT rare, COUNT(*) AS n FROM people GROUP BY rare",
    "SELECT COUNT(*) AS n FROM people WHERE flag AND num > 0",
    "SELECT COUNT(*) AS n FROM people WHERE num = 777",
    "SELECT place, COUNT(*) AS n FROM events WHERE day >= DATE '2024-07-01' GROUP BY place",
    "SELECT AVG(x) AS n FROM people",
]


def seen(data: DataSet, table: str, wanted: QuantileRequest | tuple[QuantileRequest, ...], number: int) -> list[object]:
    """All that is seen of planning, buying, listing and asking, but for noisy values."""
    try:
        plan = data.release(*(wanted if isinstance(wanted, tuple) else (wanted,)), name=f"r{number}", table=table, epsilon="0.3")
    except Refused as error:
        return [error.code, str(error)]
    facts: list[object] = [plan.explain(), plan.planned.certified.digest, [one.sql for one in render_plan(plan.planned.certified, DUCKDB)]]
    bought = plan.run()
    facts += [bought.terms.cost, bought.cells, bought.terms.notes, [one.name for one in data.releases()], data.budget.to_dict()]
    for sql in ASKED:
        try:
            answer = bought.query(sql)
            widths = [None if one is None else round(one.hi - one.lo, 6) for one in answer.intervals["n"]]
            facts.append((answer.table.column_names, answer.table.num_rows, widths, answer.notes))
        except Refused as error:
            facts.append((error.code, str(error)))
    page = release_html(bought)
    assert CANARY not in page and CANARY not in str(facts) and CANARY.encode() not in bought.terms.stored
    assert CANARY not in str(bought.table(rows=50).to_pylist())
    return [*facts, page.count("<rect"), bought.table(rows=50).schema]


def test_two_worlds_differ_in_noisy_values_alone(pair: Pair) -> None:
    for number, (table, wanted) in enumerate(RELEASES):
        with_target, without = (seen(data, table, wanted, number) for data in (pair.w1, pair.w0))
        assert with_target == without, wanted
