"""Planted leaks: the blind run sees each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import lapwing as lw
from tests.blind import statements as asked
from tests.blind.conversation import RELEASES, Transcript, asks, books, differences, weights
from tests.blind.doors import DrawnElsewhere, Size
from tests.blind.leaks import LEAKS, Plant
from tests.blind.test_blind import DIFFERENT, FIRST, heard
from tests.blind.worlds import KINDS, signing_keys

KIND = KINDS["unbounded, approximate"]


def _talk(data: lw.DataSet) -> Transcript:
    """The part of a conversation that is enough for every leak."""
    transcript = Transcript()
    asks(transcript, data, (*asked.FEW[:2], "SELECT SUM(cost) AS s FROM visits WHERE kind = 'a'"))
    for name, table, wanted in RELEASES:
        transcript.put(f"release {name}", "price", data.release(*wanted, name=name, table=table, epsilon=2).explain())
    transcript.run("weights", lambda: weights(transcript, data), transcript.text)
    books(transcript, data)
    return transcript


def _seen(directory: Path) -> list[str]:
    """By what two worlds are told apart."""
    signing_keys(directory / "keys")
    try:
        one, other = (heard(directory / world, world, KIND, Size.MIXED, _talk) for world in (FIRST, DIFFERENT))
    except DrawnElsewhere as error:
        return [str(error)]
    return differences(one, other)


def test_nothing_is_seen_where_nothing_is_planted(tmp_path: Path) -> None:
    assert _seen(tmp_path) == []


@pytest.mark.parametrize("plant", LEAKS, ids=lambda plant: plant.__name__)
def test_a_leak_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plant: Plant) -> None:
    plant(monkeypatch)
    assert _seen(tmp_path) != []
