"""The campaign counts, goes on where it was, and does not end well when something was found."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.campaign import MODULES, Counts, campaign
from tests.faults.table import FAULTS, WEIGHTS, Outcome, fault
from tests.ledger.cluster import Cluster

NAMES = {
    "kill workers",
    "kill backends",
    "kill postmasters",
    "sleeping workers",
    "connection cut",
    "disk full",
    "clock jump",
    "backup restored",
    "duplicate and reordered retries",
    "served over HTTP and the wire",
}


@pytest.fixture
def made_up() -> Iterator[None]:
    """Three faults of the tests' own: one that passes, one with a violation, one that breaks."""

    @fault("made up: passes")
    def passes(cluster: Cluster, directory: Path, seed: int) -> Outcome:
        outcome = Outcome()
        outcome.counts["made up"] += 2
        return outcome

    @fault("made up: violates")
    def violates(cluster: Cluster, directory: Path, seed: int) -> Outcome:
        (directory / "history.jsonl").write_text(f"of seed {seed}")
        return Outcome(violations=["overspent"], histories=[directory / "history.jsonl"])

    @fault("made up: breaks")
    def breaks(cluster: Cluster, directory: Path, seed: int) -> Outcome:
        (directory / "history.jsonl").write_text("half")
        raise RuntimeError("broken")

    yield
    for name in [name for name in FAULTS if name.startswith("made up")]:
        del FAULTS[name], WEIGHTS[name]


def test_every_fault_is_in_the_table() -> None:
    for module in MODULES:
        importlib.import_module(module)
    assert set(FAULTS) >= NAMES


@pytest.mark.slow
def test_counts_go_on_and_violations_are_kept(made_up: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "faults.json"

    def run(only: str, *, rounds: int = 10, kills: int = 10**9) -> int:
        counts = Counts.read(path)
        return campaign(minutes=5, kills=kills, rounds=rounds, seed=None, only=only, counts=counts)

    assert run("made up: passes", kills=4) == 0
    assert run("made up: passes", rounds=1) == 0
    assert json.loads(path.read_text())["faults"] == {"made up": 6}
    assert run("made up: violates", rounds=1) == 1
    assert run("made up: breaks", rounds=1) == 1
    stored = json.loads(path.read_text())
    assert (stored["seed"], stored["rounds"]) == (5, {"made up: passes": 3, "made up: violates": 1, "made up: breaks": 1})
    assert stored["violations"][0] == "made up: violates, seed 3: overspent"
    assert "RuntimeError: broken" in stored["violations"][1]
    assert (tmp_path / "faults" / "made-up:-violates-3-history.jsonl").read_text() == "of seed 3"
    assert (tmp_path / "faults" / "made-up:-breaks-4-history.jsonl").read_text() == "half"
    assert "VIOLATION in made up: violates, seed 3: overspent" in capsys.readouterr().out
