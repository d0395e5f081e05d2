"""Counts of one table, each compared with a public number: sparse vector with fresh answers, charged as a whole before a row is read.

While the noisy distance of the exact count from the number stays below the noisy threshold, only that is released; otherwise a fresh noisy
count is released, and the next start has its own threshold. Distances and thresholds stay secret. See docs/proofs/above-threshold.md.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account, Cost, charge_loss, pure_at_order
from lapwing.kernel.canonical import digest
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.domains import INTEGER_LIMIT, Kind
from lapwing.kernel.exact import Exact
from lapwing.kernel.expressions import Expression, Literal, columns_of
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Filter, KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import LOSS_MARGIN, DiscreteLaplace, Law
from lapwing.kernel.noise.additive import add_noise
from lapwing.kernel.permit import Permit
from lapwing.kernel.plan_types import require_exact_types
from lapwing.kernel.release import HowDrawn, dense_vectors, take


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """Questions are counts of rows by conditions on ``columns``; a distance is above from about ``threshold`` on, ``starts`` times."""

    rows: Scan
    columns: tuple[str, ...]
    starts: int
    threshold: int
    of_threshold: DiscreteLaplace
    of_distance: DiscreteLaplace
    of_count: Law
    name: str = ""  # distinguishes it from streams that are otherwise equal

    def question(self, condition: Expression, facts: Facts) -> Certified:
        """One count, certified as if it were asked alone; refuses (``stream-scope``) a condition on other columns."""
        if not columns_of(condition) <= frozenset(self.columns):
            raise Refused("stream-scope", "the condition reads a column that is not in the scope of the stream")
        vector = Vector("count", RowCount(), self.of_count)
        return certify(Plan((Query(Filter(self.rows, condition), (), KnownGroups(((),)), Ranked(), (vector,)),)), facts)


@dataclass(frozen=True, slots=True)
class CertifiedStream:
    """What a stream costs, and how far one unit moves a count and so its distance from a public number."""

    reach: int
    cost: Cost
    digest: str


def certify_stream(plan: StreamPlan, facts: Facts) -> CertifiedStream:
    """Derived from plan and facts alone: a start costs its comparisons, whatever their number, and its one answer."""
    require_exact_types(plan)
    is_laplace = type(plan.of_threshold) is DiscreteLaplace and type(plan.of_distance) is DiscreteLaplace
    if not is_laplace or not all(1 <= number < INTEGER_LIMIT for number in (plan.starts, plan.threshold)):
        raise Refused("stream-invalid", "a stream has a start at least, a threshold from 1, and Laplace noise in what it compares")
    every = plan.question(Literal(True, Kind.BOOLEAN), facts)
    if every.blocks:
        raise Refused("stream-invalid", "a stream counts rows of a table without blocks of time")
    (counted,) = every.queries[0].vectors
    reach = counted.sensitivity.l1
    epsilon = LOSS_MARGIN * (reach / plan.of_threshold.scale + 2 * reach / plan.of_distance.scale)
    rho = epsilon**2 / 2 if facts.order is None else pure_at_order(facts.order, epsilon)
    loss = plan.starts * ((epsilon if facts.account is Account.PURE else rho) + counted.loss)
    pure = None if counted.pure is None else charge_loss(plan.starts * (epsilon + counted.pure))
    return CertifiedStream(reach, Cost(loss=charge_loss(loss), delta=0, pure=pure), digest((plan, facts.source_id, facts.version)))


class CountStream:
    """An opened stream. It belongs to one process and answers one question at a time; each permit opens one stream."""

    __slots__ = ("_facts", "_lock", "_plan", "_process", "_reach", "_threshold", "starts_left")

    def __init__(self, plan: StreamPlan, facts: Facts, permit: Permit) -> None:
        certified = certify_stream(plan, facts)
        take(certified.digest, certified.cost, permit)
        self._plan, self._facts, self._reach, self.starts_left = plan, facts, certified.reach, plan.starts
        self._process, self._lock = os.getpid(), threading.Lock()
        self._start()

    def __reduce_ex__(self, protocol: object) -> str:
        raise TypeError("a stream is not copied")

    def tell(self, condition: Expression, exact: Exact, *, near: int) -> int | None:
        """None where the count is near the public number; else a fresh noisy count, which ends a start."""
        question = self._plan.question(condition, self._facts)
        (counted,) = question.queries[0].vectors
        if exact._certified != question or counted.sensitivity.l1 > self._reach or type(near) is not int:
            raise LapwingError("engine-result", "the engine's result does not fit the question")
        with self._lock:
            if os.getpid() != self._process or self.starts_left < 1:
                raise Refused("session-ended", "the stream has used up its starts, or belongs to another process")
            ((count,),) = dense_vectors(KnownGroups(((),)), exact._tables[0])
            if abs(count - near) + self._noise(self._plan.of_distance, 2 * self._reach) < self._threshold:
                return None
            (noisy,) = HowDrawn(self._facts).added(self._plan.of_count, [count], counted.sensitivity, counted.loss)
            self.starts_left -= 1
            self._start()
            return noisy

    def _start(self) -> None:
        self._threshold = self._plan.threshold + self._noise(self._plan.of_threshold, self._reach)

    def _noise(self, law: DiscreteLaplace, moved: int) -> int:
        """Unbounded noise, so that each comparison follows the exact law. What a movement of this size reveals was charged at opening."""
        return add_noise(law, [0], account=Account.PURE, l1=moved, l2_squared=0, charged=LOSS_MARGIN * moved / law.scale)[0]
