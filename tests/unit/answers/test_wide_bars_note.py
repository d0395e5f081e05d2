"""The note on bars that are wider than the values says what a larger epsilon costs, and that is what it costs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lapwing.audit.worlds import declare, random_world
from lapwing.client.dataset import DataSet
from lapwing.curator.life import Curator

WIDE = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.mark.parametrize(("delta", "said", "times"), [("0", "twice as much", 2), ('"2^-30"', "about four times as much", 4)])
def test_twice_the_epsilon_costs_what_the_note_says(tmp_path: Path, delta: str, said: str, times: int) -> None:
    declare(random_world(random.Random(4)), tmp_path / "data", neighbours="unbounded", delta=delta)
    with DataSet(Curator(tmp_path / "data", home=tmp_path / "home")) as data:
        data.curator.prepare()
        answer = data.ask(WIDE, epsilon="0.001")
        assert [note for note in answer.notes if note.endswith(f"; twice the epsilon halves them and costs {said}")] != []
        once, twice = (data.explain(f"{WIDE} ORDER BY n", epsilon=epsilon).values for epsilon in ("0.01", "0.02"))
        assert twice["share_of_budget"] == pytest.approx(times * once["share_of_budget"], rel=0.15)
        assert twice["predicted_error"]["n"] == pytest.approx(once["predicted_error"]["n"] / 2, rel=0.1)
