"""Many processes want the last of the budget: exactly what is there is admitted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lapwing.kernel.accounting import Cost
from tests.ledger.crashes import stampede
from tests.ledger.support import new_ledger, open_ledger, pure_budget

PROCESSES = 8


@pytest.mark.parametrize("round_number", range(5))
def test_one_unit_is_left_and_one_process_gets_it(tmp_path: Path, round_number: int) -> None:
    budget = pure_budget(1)
    new_ledger(tmp_path, budget=budget).disconnect()
    # Keys of a length divisible by three cost one unit each (and their lengths are even, so no delta).
    report = stampede(tmp_path, budget, units=(1, 0), crowd=[[f"key-{process}{round_number}"] for process in range(PROCESSES)])
    assert report.violations == Counter()
    assert (report.events["permit"], report.events["answer"]) == (1, 1)
    assert report.codes == Counter({"budget-exceeded": PROCESSES - 1})
    with open_ledger(tmp_path) as ledger:
        assert ledger.balance().remaining == Cost.zero()


@pytest.mark.slow
def test_a_crowd_spends_the_whole_budget_and_no_more(tmp_path: Path) -> None:
    budget = pure_budget(60)
    new_ledger(tmp_path, budget=budget).disconnect()
    crowd = [[f"k-{process}{number:02d}y" for number in range(12)] for process in range(PROCESSES)]
    report = stampede(tmp_path, budget, units=(1, 0), crowd=crowd)
    assert report.violations == Counter()
    assert report.events["permit"] == report.events["answer"] == 60
    assert report.codes == Counter({"budget-exceeded": PROCESSES * 12 - 60})
    with open_ledger(tmp_path) as ledger:
        assert ledger.balance().remaining == Cost.zero()


@pytest.mark.slow
def test_a_crowd_with_one_key_is_charged_once(tmp_path: Path) -> None:
    budget = pure_budget(60)
    new_ledger(tmp_path, budget=budget).disconnect()
    report = stampede(tmp_path, budget, units=(1, 0), crowd=[["same"] * 5 + [f"own {process}"] for process in range(PROCESSES)])
    assert report.violations == Counter()
    assert report.events["permit"] == 1 + PROCESSES
    assert set(report.codes) <= {"request-in-progress"}
