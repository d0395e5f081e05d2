"""A stream of counts: its price, what it refuses, and that the real thing has exactly the law which is verified."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account, Cost, charge_loss, pure_at_order
from lapwing.kernel.count_stream import CountStream, StreamPlan, certify_stream
from lapwing.kernel.domains import Kind
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Column, Function, Literal, call
from lapwing.kernel.ir import Scan
from lapwing.kernel.laws import LOSS_MARGIN, SCALE_MIN, DiscreteGaussian, DiscreteLaplace
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import issue
from tests.unit.kernel import stream_runs as runs
from tests.unit.kernel.stream_runs import FACTS, PLAN, YOUNG

APPROXIMATE = replace(FACTS, account=Account.APPROXIMATE)
SILENT = DiscreteLaplace(SCALE_MIN)
"""Noise that is 0 but for a probability below exp(-2^20)."""
EXACTLY = replace(PLAN, of_threshold=SILENT, of_distance=SILENT, of_count=SILENT)
CLAMP = (1, 5)


def code_of(act: Callable[[], Any]) -> str:
    with pytest.raises(LapwingError) as refusal:
        act()
    return refusal.value.code


@pytest.mark.parametrize("counts", [(6, 0, 3), (1, 5)], ids=str)
def test_the_real_thing_has_the_law_that_is_verified(counts: tuple[int, ...]) -> None:
    found = runs.found_law(runs.transcript(counts, clamp=CLAMP))
    law = runs.mechanism(clamp=CLAMP).law(counts, decay=runs.DECAY)
    assert found.missing < Fraction(1, 20)
    assert set(found.law) <= set(law)
    for output, chance in law.items():
        assert 0 <= chance - found.law.get(output, Fraction(0)) <= found.missing


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("relation", Neighbours)
def test_the_whole_is_charged_at_opening(rows: int, relation: Neighbours) -> None:
    plan, facts = runs.with_k_rows(rows), replace(FACTS, neighbours=relation)
    event = runs.mechanism(plan, reach=rows).event()
    for account in Account:
        assert certify_stream(plan, replace(facts, account=account)).cost == event.cost(account)
        assert certify_stream(plan, replace(facts, account=account)).reach == rows


def test_an_account_with_an_order_is_charged_in_both_sums() -> None:
    facts, event = replace(APPROXIMATE, order=8), runs.mechanism().event()
    one, answer = LOSS_MARGIN * (Fraction(1, 4) + Fraction(2, 2)), LOSS_MARGIN * Fraction(1)
    cost = certify_stream(PLAN, facts).cost
    assert event.epsilon is not None
    assert (cost.pure, cost.delta) == (charge_loss(event.epsilon), 0)
    assert cost.loss == charge_loss(2 * (pure_at_order(8, one) + pure_at_order(8, answer)))
    gaussian = certify_stream(replace(PLAN, of_count=DiscreteGaussian(Fraction(4))), facts).cost
    assert gaussian.pure is None and gaussian.loss > 0


def test_gaussian_answers_are_charged_in_rho() -> None:
    plan = replace(PLAN, of_count=DiscreteGaussian(Fraction(4)))
    one = LOSS_MARGIN * (Fraction(1, 4) + Fraction(2, 2))
    cost = certify_stream(plan, APPROXIMATE).cost
    assert cost == Cost(loss=charge_loss(2 * (one**2 / 2 + LOSS_MARGIN / 32)), delta=0)
    assert code_of(lambda: certify_stream(plan, FACTS)) == "gaussian-needs-delta"


BAD: dict[str, tuple[StreamPlan, str]] = {
    "no start": (replace(PLAN, starts=0), "stream-invalid"),
    "a threshold of nothing": (replace(PLAN, threshold=0), "stream-invalid"),
    "Gaussian thresholds": (replace(PLAN, of_threshold=DiscreteGaussian(Fraction(4))), "stream-invalid"),  # type: ignore[arg-type]
    "Gaussian distances": (replace(PLAN, of_distance=DiscreteGaussian(Fraction(4))), "stream-invalid"),  # type: ignore[arg-type]
    "a true number of starts": (replace(PLAN, starts=True), "plan-type"),
    "a float of a threshold": (replace(PLAN, threshold=2.0), "plan-type"),  # type: ignore[arg-type]
    "no such table": (replace(PLAN, rows=Scan("others", 1)), "unknown-table"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_plan_is_refused_with(name: str) -> None:
    plan, code = BAD[name]
    assert code_of(lambda: certify_stream(plan, FACTS)) == code


def test_a_stream_needs_a_permit_of_its_own() -> None:
    certified = certify_stream(PLAN, FACTS)
    short = Cost(loss=certified.cost.loss // 2, delta=0)
    assert code_of(lambda: CountStream(PLAN, FACTS, issue(1, certified.digest, short))) == "permit-mismatch"
    assert code_of(lambda: CountStream(PLAN, FACTS, issue(1, "another", certified.cost))) == "permit-mismatch"
    permit = runs.permit_for(PLAN)
    CountStream(PLAN, FACTS, permit)
    assert code_of(lambda: CountStream(PLAN, FACTS, permit)) == "permit-used"
    other = replace(FACTS, version=2)
    assert code_of(lambda: CountStream(PLAN, other, runs.permit_for(PLAN))) == "permit-mismatch"


def test_near_and_far_are_told_by_the_threshold() -> None:
    stream = runs.opened(EXACTLY)
    tell: Callable[[int, int], int | None] = lambda count, number: runs.told_of(stream, count, number, plan=EXACTLY)  # noqa: E731
    assert [tell(5, 4), tell(5, 6), tell(5, 5), stream.starts_left] == [None, None, None, 2]
    assert [tell(5, 3), stream.starts_left] == [5, 1]
    assert [tell(5, 4), tell(1, 9), stream.starts_left] == [None, 1, 0]
    assert code_of(lambda: tell(5, 5)) == "session-ended"


def test_noise_is_added_to_what_is_compared_and_to_what_is_told() -> None:
    with runs.scripted() as script:
        script[:] = [5, 1, 6, -4, 0, 0, 1, -7, 2]
        stream = runs.opened()
        assert runs.told_of(stream, 8, 3) is None  # |8 - 3| + 1 < 2 + 5
        assert runs.told_of(stream, 8, 9) == 8 - 4  # |8 - 9| + 6 >= 2 + 5; then a threshold of 2 + 0
        assert runs.told_of(stream, 8, 7) is None  # |8 - 7| + 0 < 2 + 0
        assert runs.told_of(stream, 8, 7) == 8 - 7  # |8 - 7| + 1 >= 2 + 0
        assert (script, stream.starts_left) == ([], 0)


def test_rows_that_no_engine_found_are_none() -> None:
    stream, question = runs.opened(EXACTLY), EXACTLY.question(YOUNG, FACTS)
    nothing = Exact([ExactTable(groups=[], vectors=[[]], units=None)], certified=question)
    assert stream.tell(YOUNG, nothing, near=7) == 0


def test_a_question_is_one_count_of_rows_in_scope() -> None:
    stream = runs.opened()
    male = call(Function.EQUAL, Column("sex"), Literal("M", Kind.TEXT))
    assert code_of(lambda: PLAN.question(male, FACTS)) == "stream-scope"
    wider = replace(PLAN, columns=("age", "sex"))
    assert code_of(lambda: stream.tell(male, runs.exact(wider.question(male, FACTS), 3), near=3)) == "stream-scope"
    three = runs.with_k_rows(3)
    for question in (wider.question(male, FACTS), three.question(YOUNG, FACTS), PLAN.question(YOUNG, replace(FACTS, version=2))):
        assert code_of(lambda question=question: stream.tell(YOUNG, runs.exact(question, 3), near=3)) == "engine-result"  # type: ignore[misc]
    assert code_of(lambda: stream.tell(YOUNG, runs.exact(PLAN.question(YOUNG, FACTS), 3), near=3.0)) == "engine-result"  # type: ignore[arg-type]
    assert stream.starts_left == 2


def test_a_group_twice_is_no_result() -> None:
    stream, question = runs.opened(), PLAN.question(YOUNG, FACTS)
    twice = Exact([ExactTable(groups=[(), ()], vectors=[[1, 2]], units=None)], certified=question)
    assert code_of(lambda: stream.tell(YOUNG, twice, near=1)) == "engine-result"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copied", "copied deeply", "stored"])
def test_a_stream_cannot_be(copied: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        copied(runs.opened())


def test_nothing_of_a_stream_shows() -> None:
    stream = runs.opened()
    assert repr(stream) == object.__repr__(stream)
    assert not hasattr(stream, "__dict__")


def test_a_forked_child_is_told_nothing() -> None:
    stream = runs.opened()
    child = os.fork()
    if child == 0:
        try:
            runs.told_of(stream, 3, 3)
        except Refused as refusal:
            os._exit(7 if refusal.code == "session-ended" else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert stream.starts_left == 2


def test_of_many_threads_no_more_are_answered_than_there_are_starts() -> None:
    stream, outcomes, begin = runs.opened(EXACTLY), list[int | str | None](), threading.Barrier(8)

    def ask() -> None:
        begin.wait()
        try:
            outcomes.append(runs.told_of(stream, 9, 0, plan=EXACTLY))
        except Refused as refusal:
            outcomes.append(refusal.code)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == ["9", "9", *["session-ended"] * 6]
