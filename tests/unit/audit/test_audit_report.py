"""Reports: measured once, kept, taken up again; and what they say."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from benchmarks.audit_report import page

from lapwing.audit import report
from lapwing.audit.auditor import Audit
from lapwing.audit.claims import Claim, Concentrated, Pure
from lapwing.audit.mechanisms import cases
from lapwing.audit.plan_shapes import shapes
from lapwing.audit.plans import whole_releases
from lapwing.audit.report import (
    TESTS,
    AuditItem,
    Line,
    headline,
    is_wrong,
    line_of,
    measured,
    mechanism_items,
    mistake_items,
    plan_items,
    read_state,
)
from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account


def found(claim: Claim, bound: float, samples: int) -> Audit:
    return Audit(claim, bound, samples, Fraction(99, 100), 2, bound > float(getattr(claim, "epsilon", 1)), ())


def counting(name: str, log: list[tuple[str, int]]) -> AuditItem:
    def audited(samples: int) -> Audit:
        log.append((name, samples))
        return found(Pure(Fraction(1)), 0.5, samples)

    return AuditItem("mechanism", name, "family", audited)


def test_a_run_is_taken_up_where_it_was(tmp_path: Path) -> None:
    state, log = tmp_path / "build" / "audit.json", list[tuple[str, int]]()
    items = [counting(name, log) for name in ("a", "b", "c")]
    run = measured(items, samples=100, state=state)
    next(run), next(run)  # and then it is stopped
    assert log == [("a", 100), ("b", 100)] and list(read_state(state)) == ["mechanism/family/a", "mechanism/family/b"]
    assert [line.name for line in measured(items, samples=100, state=state)] == ["a", "b", "c"]
    assert log == [("a", 100), ("b", 100), ("c", 100)]
    # more runs are measured anew, fewer are not; a choice leaves the others alone
    assert [line.samples for line in measured(items, samples=1_000, state=state, wanted=lambda item: item.name == "b")] == [1_000]
    assert [line.samples for line in measured(items, samples=50, state=state)] == [100, 1_000, 100]
    assert len(log) == 4
    stored = json.loads(state.read_text())
    state.write_text(json.dumps({**stored, "version": "0"}))
    assert read_state(state) == {}, "another version is another report"


def test_everything_is_in_the_report_and_within_its_number_of_tests() -> None:
    items = [*mechanism_items(), *mistake_items(Fraction(11, 10)), *plan_items()]
    keys = [item.key() for item in items]
    assert len(set(keys)) == len(keys)
    assert sum(item.area == "plan" for item in items) == 2 * sum(len(shapes(account)) for account in Account)
    assert sum(item.area == "mechanism" for item in items) == len(cases())
    # two tests for each line, and room for measuring every line with three numbers of runs
    assert 3 * 2 * len(items) <= TESTS


def lines() -> list[Line]:
    return [
        line_of(found(Pure(Fraction(1)), 0.9, 1_000), area="mechanism", name="Laplace", setting="Laplace"),
        line_of(found(Concentrated(Fraction(1), Fraction(1, 20)), 0.4, 500), area="plan", name="ranked", setting="approximate, bounded"),
        line_of(found(Pure(Fraction(1)), 1.05, 1_000), area="mistake", name="Laplace", setting="1.1 times the claim"),
    ]


def test_a_page_says_what_was_found() -> None:
    text = page(lines())
    assert "**None of 2 claims is refuted. 1 of 1 planted mistakes are found.**" in text
    assert "| Laplace | Laplace | epsilon 1 | 0.900 | 1,000 | stands |" in text
    assert "| ranked | approximate, bounded | rho 1, delta 0.05 | 0.400 | 500 | stands |" in text
    assert "| Laplace | 1.1 times the claim | epsilon 1 | 1.050 | 1,000 | refuted |" in text
    assert [is_wrong(line) for line in lines()] == [False, False, False]


def test_what_is_wrong_is_said_first() -> None:
    refuted = line_of(found(Pure(Fraction(1)), 1.2, 1_000), area="plan", name="ranked", setting="pure, bounded")
    missed = line_of(found(Pure(Fraction(1)), 0.8, 1_000), area="mistake", name="Laplace", setting="1.1 times the claim")
    assert is_wrong(refuted) and is_wrong(missed)
    assert headline([refuted, missed]) == "1 of 1 claims are refuted: ranked. 0 of 1 planted mistakes are found."


def test_releases_that_follow_another_law_than_those_drawn_at_once_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "shapes", lambda account: {"filter": shapes(account)["filter"]})
    item = plan_items(worlds=1, whole_releases_each=400)[0]
    assert item.audited(100).samples == 100
    monkeypatch.setattr(report, "whole_releases", lambda pair, *, right, runs: whole_releases(pair, right=right, runs=runs) + 1.0)
    with pytest.raises(LapwingError) as error:
        item.audited(100)
    assert error.value.code == "audit-paths-differ"
