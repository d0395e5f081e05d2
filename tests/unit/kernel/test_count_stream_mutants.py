"""Mistakes that somebody could make in a stream of counts: each is planted in the real thing, and a test sees it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lapwing.kernel import count_stream
from lapwing.kernel.accounting import Cost
from lapwing.kernel.count_stream import CertifiedStream, CountStream, StreamPlan
from lapwing.kernel.facts import Facts
from lapwing.kernel.neighbours import Neighbours
from tests.unit.kernel import test_count_stream as checks
from tests.unit.kernel.stream_runs import PLAN

_CERTIFY = count_stream.certify_stream
_START = CountStream._start
_NOISE = CountStream._noise
_QUESTION = StreamPlan.question

Patch = tuple[Any, str, Any]


def _tell(answer: Callable[[CountStream, int, int, int], int | None]) -> Any:
    """A stream that compares as it should, and tells something else: from itself, the count, the number and the noisy distance."""

    def tell(self: CountStream, condition: Any, exact: Any, *, near: int) -> int | None:
        count = exact._tables[0]._vectors[0][0]
        noisy = abs(count - near) + self._noise(self._plan.of_distance, 2 * self._reach)
        if noisy >= self._threshold:
            self.starts_left -= 1
            self._start()
        return answer(self, count, near, noisy)

    return tell


def _gap(self: CountStream, count: int, near: int, noisy: int) -> int | None:
    return noisy - self._threshold


def _same_noise(self: CountStream, count: int, near: int, noisy: int) -> int | None:
    return None if noisy < self._threshold else near + (noisy if count > near else -noisy)


def _exact_answer(self: CountStream, count: int, near: int, noisy: int) -> int | None:
    return None if noisy < self._threshold else count


def _never_refreshed(self: CountStream) -> None:
    if self.starts_left == self._plan.starts:
        _START(self)


def _no_noise_on(law: str) -> Any:
    def noise(self: CountStream, drawn: Any, moved: int) -> int:
        return 0 if drawn == getattr(PLAN, law) else _NOISE(self, drawn, moved)

    return noise


class _OneNoise:
    """The noise of the first distance serves for all of them."""

    def __init__(self) -> None:
        self.of: dict[int, int] = {}

    def __get__(self, stream: CountStream, _: object) -> Any:
        def noise(law: Any, moved: int) -> int:
            if law != PLAN.of_distance:
                return _NOISE(stream, law, moved)
            if stream.starts_left == PLAN.starts and id(stream) not in self.of:
                self.of = {id(stream): _NOISE(stream, law, moved)}
            return self.of.get(id(stream), 0)

        return noise


def _priced(change: Callable[[StreamPlan, Facts], CertifiedStream]) -> Any:
    return change


def _without_the_two(plan: StreamPlan, facts: Facts) -> CertifiedStream:
    halved = replace(plan, of_distance=replace(plan.of_distance, scale=2 * plan.of_distance.scale))
    return replace(_CERTIFY(plan, facts), cost=_CERTIFY(halved, facts).cost)


def _one_start(plan: StreamPlan, facts: Facts) -> CertifiedStream:
    """Charged for what is used first, the rest when it is used."""
    return replace(_CERTIFY(plan, facts), cost=_CERTIFY(replace(plan, starts=1), facts).cost)


def _by_comparison(plan: StreamPlan, facts: Facts) -> CertifiedStream:
    """Answers are thought to be part of the comparison."""
    loud = replace(plan, of_count=replace(plan.of_count, scale=2 * plan.of_count.scale))
    cost = _CERTIFY(plan, facts).cost
    return replace(_CERTIFY(plan, facts), cost=Cost(loss=2 * _CERTIFY(loud, facts).cost.loss - cost.loss, delta=0, pure=cost.pure))


def _as_one_row(plan: StreamPlan, facts: Facts) -> CertifiedStream:
    return _CERTIFY(replace(plan, rows=replace(plan.rows, rows_per_unit=1)), facts)


def _any_column(self: StreamPlan, condition: Any, facts: Facts) -> Any:
    return _QUESTION(replace(self, columns=tuple(facts.table("people").columns)), condition, facts)


def _law() -> None:
    checks.test_the_real_thing_has_the_law_that_is_verified((1, 5))


def _price() -> None:
    checks.test_the_whole_is_charged_at_opening(3, Neighbours.UNBOUNDED)


def _nothing(*_: object) -> None:
    pass


MUTANTS: dict[str, tuple[tuple[Patch, ...], Callable[[], None]]] = {
    "the threshold is not refreshed": (((CountStream, "_start", _never_refreshed),), _law),
    "the gap is published": (((CountStream, "tell", _tell(_gap)),), _law),
    "the noise of the comparison is published": (((CountStream, "tell", _tell(_same_noise)),), _law),
    "the answer has no noise": (((CountStream, "tell", _tell(_exact_answer)),), _law),
    "no noise on the threshold": (((CountStream, "_noise", _no_noise_on("of_threshold")),), _law),
    "no noise on the distance": (((CountStream, "_noise", _no_noise_on("of_distance")),), _law),
    "one noise for all distances": (((CountStream, "_noise", _OneNoise()),), _law),
    "noise on distances without the factor 2": (((count_stream, "certify_stream", _priced(_without_the_two)),), _price),
    "charged by the start, when it is used": (((count_stream, "certify_stream", _priced(_one_start)),), _price),
    "answers are free": (((count_stream, "certify_stream", _priced(_by_comparison)),), _price),
    "many rows are charged as one": (((count_stream, "certify_stream", _priced(_as_one_row)),), _price),
    "the permit is not taken": (((count_stream, "take", _nothing),), checks.test_a_stream_needs_a_permit_of_its_own),
    "any column is in scope": (((StreamPlan, "question", _any_column),), checks.test_a_question_is_one_count_of_rows_in_scope),
    "a child goes on": (((os, "getpid", lambda: 1),), checks.test_a_forked_child_is_told_nothing),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_mistake_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patches, check = MUTANTS[name]
    check()  # which has nothing to say against the real thing
    for target, attribute, replacement in patches:
        monkeypatch.setattr(target, attribute, replacement)
        if attribute == "certify_stream":
            monkeypatch.setattr(checks, attribute, replacement)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check()
