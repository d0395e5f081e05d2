"""The comparison with peers, without the peers: the same rows, the truth of the source, bounds set by hand, and how answers are judged."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from benchmarks.peers.__main__ import _compared, _lapwing
from benchmarks.peers.hand_set import Bound, bounds_by_hand
from benchmarks.peers.peer_jobs import PRODUCTS, REGIONS, RHO
from benchmarks.peers.questions import QUESTIONS, read_cells, truth_of
from benchmarks.peers.report import Measured
from benchmarks.peers.visits_by_law import write_visits_of_law

from lapwing.kernel.accounting import rho_for

ROWS = 3_000


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("visits")
    write_visits_of_law(made, law="uniform", rows=ROWS)
    return made


def test_the_rho_of_peers_is_that_of_the_budget() -> None:
    most = rho_for(epsilon=Fraction(1), delta=Fraction(1, 10**8))
    assert RHO <= most < RHO + 1e-7


def test_the_truth_has_every_row_and_only_public_groups(directory: Path) -> None:
    truth = {name: truth_of(question, directory / "visits.parquet") for name, question in QUESTIONS.items()}
    assert truth["Q1"] == {((), "n"): ROWS}
    for name in ("Q5", "Q6"):
        assert sum(truth[name].values()) == ROWS
    assert {key for key, _ in truth["Q4"]} <= {(region,) for region in REGIONS}
    assert {key for key, _ in truth["Q5"]} <= {(str(product),) for product in PRODUCTS}


def test_the_best_bound_by_hand_keeps_what_is_cheap_to_keep(directory: Path) -> None:
    bounds = bounds_by_hand("Q1", directory / "visits.parquet", has_groups=False)
    assert bounds["guess"] == [Bound(20)]
    assert bounds["best"] == [Bound(30)]  # nobody has more than 25 rows


@pytest.mark.parametrize("order", [None, 32])
def test_lapwing_answers_every_question_for_the_price_of_one(directory: Path, order: int | None) -> None:
    records = list(_lapwing(directory, ["Q1", "Q4"], order=order))
    assert [(record["question"], record["output"]) for record in records] == [("Q1", "n"), ("Q4", "n"), ("Q4", "total")]
    assert all(record["error"] > 0 and record["intervals"] > 0 for record in records)


def test_a_public_group_left_out_is_a_zero_and_an_unknown_key_left_out_is_not() -> None:
    for name, expected in (("Q4", 5.0), ("Q6", 0.0)):
        question = QUESTIONS[name]
        keys = [tuple(f"{place}" for _ in question.keys) for place in range(2)]
        truth = {(keys[0], "n"): 7.0, (keys[1], "n"): 50**0.5}
        record = next(iter(_compared(question, truth, [({(keys[0], "n"): 7.0}, {(keys[0], "n"): (6.0, 6.5)})], {})))
        assert record["error"] == pytest.approx(expected)
        assert (record["intervals"], record["covered"], record["keys"]) == (1, 0, 1)


def test_the_newest_line_counts_and_most_keys_are_best(tmp_path: Path) -> None:
    common = {"law": "uniform", "table_rows": 10, "peer": "opendp", "question": "Q6", "output": "n", "error": 1.0}
    lines = [{"bound": "guess", "keys": 1}, {"bound": "best", "bound_rows": 1, "keys": 9}, {"bound": "guess", "keys": 2}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps({**common, **line}) + "\n" for line in lines), encoding="utf-8")
    measured = Measured(tmp_path / "m.jsonl")
    found = [measured.best("uniform", 10, "opendp", "Q6", "n", guessed=guessed) for guessed in (True, False)]
    assert [record and record["keys"] for record in found] == [2, 9]


def test_a_line_of_a_peer_is_read_with_and_without_an_interval() -> None:
    words, values, bars = read_cells(json.dumps({"question": "Q4", "cells": [[["a"], "n", 1.0, 0.0, 2.0], [["b"], "n", 3.0]]}))
    assert words == {"question": "Q4"}
    assert values == {(("a",), "n"): 1.0, (("b",), "n"): 3.0}
    assert bars == {(("a",), "n"): (0.0, 2.0)}
