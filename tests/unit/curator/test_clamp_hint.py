"""The hint on long bars names both ends, and typing it in gives about the bars that it predicts."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing
from lapwing.answers.notes.clamping import _round_number
from lapwing.data_set import DataSet

SESSIONS = "(SELECT user_id, session_id, epoch(MAX(ended)) - epoch(MIN(started)) AS v FROM events GROUP BY user_id, session_id) AS q"
"""A session ends after it started, which is not declared."""


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataSet]:
    """2,000 users with a few sessions of some minutes."""
    place, draws = tmp_path_factory.mktemp("events"), np.random.default_rng(3)
    users = np.repeat(np.arange(2_000), draws.integers(1, 8, 2_000))
    started = np.datetime64("2025-01-01", "us") + draws.integers(0, 300 * 86_400, len(users)).astype("timedelta64[s]")
    ended = started + np.minimum(draws.lognormal(5, 1, len(users)), 7_200).astype(int).astype("timedelta64[s]")
    rows = pa.table({"user_id": users, "session_id": np.arange(len(users)), "started": started, "ended": ended})
    pq.write_table(rows, place / "events.parquet")
    moment = {"type": "timestamp", "min": datetime.datetime(2025, 1, 1), "max": datetime.datetime(2025, 12, 31)}
    columns: dict[str, dict[str, Any]] = {"user_id": {"type": "key"}, "session_id": {"type": "key"}, "started": moment, "ended": moment}
    with lapwing.open(place / "events.parquet", unit="user_id", columns=columns, epsilon=20, rows_max=100_000, home=place / "home") as data:
        yield data


def half_bar(data: DataSet, aggregate: str) -> tuple[float, tuple[str, ...]]:
    """Half the length of a bar, and the notes."""
    answer = data.ask(f"SELECT {aggregate} AS a FROM {SESSIONS}", epsilon="0.5")
    (bar,) = answer.intervals["a"]
    assert bar is not None
    return (bar.hi - bar.lo) / 2, answer.notes


def test_typing_in_the_hint_gives_the_bars_it_predicts(events: DataSet) -> None:
    before, notes = half_bar(events, "AVG(v)")
    note = next(note for note in notes if "clamp" in note)
    found = re.search(r"(AVG\(GREATEST\(0, LEAST\(x, \d+\)\)\)) is predicted to have bars of about ±([\d,.]+)", note)
    assert found is not None, note
    assert "which may be from -31,450,000 to 31,450,000" in note
    predicted = float(found[2].replace(",", ""))
    after, later = half_bar(events, found[1].replace("x", "v"))
    assert predicted / 5 < after < 1.5 * predicted and after < before / 1_000
    assert not any("clamp" in note for note in later)


def test_a_difference_of_the_same_moment_needs_no_hint(events: DataSet) -> None:
    answer = events.ask(
        "SELECT AVG(v) AS a FROM (SELECT user_id, epoch(MAX(ended)) - epoch(MIN(ended)) AS v FROM events GROUP BY user_id) AS q",
        epsilon="0.5",
    )
    (bar,) = answer.intervals["a"]
    assert bar is not None and bar.lo >= 0 and bar.hi - bar.lo < answer.table["a"][0].as_py()
    assert not any("clamp" in note for note in answer.notes)


@pytest.mark.parametrize(("value", "end"), [(0.3, "1/2"), (1, "1"), (1.1, "2"), (230, "500"), (5_001, "10000"), (99_000, "100000")])
def test_ends_are_round(value: float, end: str) -> None:
    assert str(_round_number(value)) == end
