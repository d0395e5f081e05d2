"""kill -9 at every step, with two processes racing all the time: nothing overspent, nothing uncharged, nothing double."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lapwing.kernel.accounting import Cost
from lapwing.ledger.block_balances import BlockTerms
from tests.ledger.crashes import race
from tests.ledger.support import approximate_budget, new_ledger, open_ledger

PROTOCOL_CODES = {"budget-exceeded", "request-in-progress", "request-forfeited"}
"""Refusals a client may see here. None is about the file itself, however the processes died."""


@pytest.mark.slow
def test_kill_at_every_step(tmp_path: Path) -> None:
    """At least 300 kills: before and between all SQL statements of every phase, and at random moments from outside."""
    budget = approximate_budget()
    units = (budget.loss_total // 20_000, budget.delta_total // 10_000)
    new_ledger(tmp_path, budget=budget).disconnect()
    report = race(tmp_path, budget, units=units, kills=300, seed=1, every_step=True)
    assert report.violations == Counter()
    assert report.kills >= 300 and report.kills_from_outside >= 20
    assert report.points_missed == set()
    assert report.journals_left >= 20
    assert {phase for _, phase, _ in report.points} == {"open", "reserve", "run", "commit", "send", "disconnect"}
    assert set(report.codes) <= PROTOCOL_CODES - {"budget-exceeded"}
    assert report.events["answer"] >= 50
    with open_ledger(tmp_path) as ledger:
        assert ledger.balance().spent != Cost.zero()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "loss_share", "delta_share"), [(2, 60, 1000), (3, 1000, 15)], ids=["loss runs out", "delta runs out"])
def test_kill_while_the_budget_runs_out(tmp_path: Path, seed: int, loss_share: int, delta_share: int) -> None:
    """At least 150 kills each."""
    budget = approximate_budget()
    units = (budget.loss_total // loss_share, budget.delta_total // delta_share)
    new_ledger(tmp_path, budget=budget).disconnect()
    report = race(tmp_path, budget, units=units, kills=150, seed=seed, outside_share=0.4)
    assert report.violations == Counter()
    assert report.kills >= 150 and report.kills_from_outside >= 30
    assert report.codes["budget-exceeded"] >= 5
    assert set(report.codes) <= PROTOCOL_CODES
    assert report.events["answer"] >= 10


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "share", "every_step"), [(4, 20_000, True), (5, 16, False)], ids=["every step", "blocks run dry"])
def test_kill_while_ranges_of_blocks_are_charged(tmp_path: Path, seed: int, share: int, every_step: bool) -> None:
    """At least 100 kills each: no block is overspent, nothing is sent uncharged, and the balances are those of the charges."""
    budget = approximate_budget()
    units = (budget.loss_total // share, budget.delta_total // 10_000)
    with new_ledger(tmp_path, budget=budget) as ledger:
        ledger.declare_blocks(BlockTerms("day", None), read=None, units=1, reason="data grows")
    report = race(tmp_path, budget, units=units, kills=100, seed=seed, every_step=every_step, blocks=40)
    assert report.violations == Counter()
    assert report.kills >= 100 and report.kills_from_outside >= 10
    assert report.points_missed == set() or not every_step
    assert set(report.codes) <= PROTOCOL_CODES | {"block-budget"}
    assert report.codes["block-budget"] >= 5 or every_step
    assert report.events["answer"] >= 10
