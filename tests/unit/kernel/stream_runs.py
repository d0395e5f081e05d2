"""The law of what a stream of counts tells, found by running the real thing with every noise there can be, up to a size.

The noise is given by a script, and the run is repeated for every script. What larger noise would have told is the mass that is missing; it
is known exactly, so that a law which should be the same is compared within it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from lapwing.kernel import count_stream, release
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified
from lapwing.kernel.count_stream import CountStream, StreamPlan, certify_stream
from lapwing.kernel.domains import IntegerDomain, Kind, TextDomain
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Scan
from lapwing.kernel.laws import DiscreteLaplace, Law
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import Permit, issue
from lapwing.mechanisms.above_threshold import AboveThreshold
from lapwing.mechanisms.geometric import mass
from lapwing.mechanisms.streamed_counts import StreamedCounts, Transcript

FACTS = Facts(
    "stream",
    1,
    Neighbours.UNBOUNDED,
    Account.PURE,
    {"people": TableFacts({"age": IntegerDomain(0, 9, False), "sex": TextDomain(("F", "M"), False)}, 3, 1_000)},
    {},
)
PLAN = StreamPlan(
    Scan("people", 1), ("age",), 2, 2, DiscreteLaplace(Fraction(4)), DiscreteLaplace(Fraction(2)), DiscreteLaplace(Fraction(1))
)
YOUNG = call(Function.LESS, Column("age"), Literal(3, Kind.INTEGER))
DECAY = Fraction(1, 4)
REACH = {PLAN.of_threshold: 3, PLAN.of_distance: 1, PLAN.of_count: 0}
"""The largest noise of each law that is looked at."""
MASSES = {
    law: {z: mass(z, decay=DECAY**power) for z in range(-REACH[law], REACH[law] + 1)}
    for law, power in ((PLAN.of_threshold, 1), (PLAN.of_distance, 2), (PLAN.of_count, 4))
}


def near(told: Transcript) -> int:
    """A public number that depends on what was told."""
    return 3 + sum(1 if noisy > 3 else -1 for noisy in told if noisy is not None)


def mechanism(plan: StreamPlan = PLAN, *, reach: int = 1, clamp: tuple[int, int] | None = None) -> StreamedCounts:
    """The same stream, with a law in closed form."""
    above = AboveThreshold(reach, plan.threshold, plan.of_threshold.scale, plan.of_distance.scale)
    return StreamedCounts(above, plan.starts, plan.of_count.scale, near, clamp)


def permit_for(plan: StreamPlan, facts: Facts = FACTS) -> Permit:
    certified = certify_stream(plan, facts)
    return issue(1, certified.digest, certified.cost)


def exact(question: Certified, count: int) -> Exact:
    """What an engine would find."""
    return Exact([ExactTable(groups=[()], vectors=[[count]], units=None)], certified=question)


def opened(plan: StreamPlan = PLAN, facts: Facts = FACTS) -> CountStream:
    return CountStream(plan, facts, permit_for(plan, facts))


def told_of(stream: CountStream, count: int, number: int, condition: Expression = YOUNG, plan: StreamPlan = PLAN) -> int | None:
    return stream.tell(condition, exact(plan.question(condition, FACTS), count), near=number)


@dataclass(frozen=True)
class FoundLaw:
    """Probabilities of what was told, and what of 1 is missing."""

    law: dict[Any, Fraction]

    @property
    def missing(self) -> Fraction:
        return 1 - sum(self.law.values(), Fraction(0))


class _ScriptEnds(Exception):
    """The run wants another draw of this law."""

    def __init__(self, law: Law) -> None:
        super().__init__()
        self.law = law


@contextmanager
def scripted() -> Iterator[list[int]]:
    """Noise is what the script that is given says, in its order. Questions are certified once, since all runs ask the same."""
    script: list[int] = []
    known: dict[Any, Certified] = {}
    real = StreamPlan.question

    def add_noise(law: Law, values: Sequence[int], **_: Any) -> list[int]:
        if len(script) < len(values):
            raise _ScriptEnds(law)
        return [value + script.pop(0) for value in values]

    def question(self: StreamPlan, condition: Expression, facts: Facts) -> Certified:
        key = self, condition, facts.version
        known[key] = known.get(key) or real(self, condition, facts)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_stream, "add_noise", add_noise)
        patch.setattr(release, "add_noise", add_noise)
        patch.setattr(StreamPlan, "question", question)
        yield script


def found_law(run: Callable[[], Any]) -> FoundLaw:
    """The law of what a run returns, over all noise of limited size."""
    law: dict[Any, Fraction] = {}
    open_scripts: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    with scripted() as script:
        while open_scripts:
            given, chance = open_scripts.pop()
            script[:] = given
            try:
                output = run()
            except _ScriptEnds as end:
                assert isinstance(end.law, DiscreteLaplace)
                open_scripts += [((*given, z), chance * share) for z, share in MASSES[end.law].items()]
                continue
            law[output] = law.get(output, Fraction(0)) + chance
    return FoundLaw(law)


def transcript(counts: Sequence[int], *, clamp: tuple[int, int]) -> Callable[[], Transcript]:
    """Ask for each count in turn, until the starts are used up; noisy counts are clamped, as in the closed form."""
    certified = certify_stream(PLAN, FACTS)

    def run() -> Transcript:
        question = PLAN.question(YOUNG, FACTS)
        stream = CountStream(PLAN, FACTS, issue(1, certified.digest, certified.cost))
        told: list[int | None] = []
        for count in counts:
            if stream.starts_left < 1:
                break
            noisy = stream.tell(YOUNG, exact(question, count), near=near(tuple(told)))
            told.append(None if noisy is None else min(max(noisy, clamp[0]), clamp[1]))
        return tuple(told)

    return run


def with_k_rows(k: int) -> StreamPlan:
    """The same, where a unit counts for k rows."""
    return replace(PLAN, rows=Scan("people", k))
