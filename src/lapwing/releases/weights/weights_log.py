"""The answers of a session of weights: counts with their errors, and the log of a session, which answers again free of charge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from lapwing.answers.display.number_format import percent
from lapwing.errors import LedgerError, Refused
from lapwing.kernel.canonical import digest
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Expression, Function, Literal, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import RowCount
from lapwing.kernel.stability import shape_of
from lapwing.planning.measures import measured
from lapwing.releases.serving.coverage import NotCovered, PublicMarginals, covered_queries, rows_read
from lapwing.releases.weights.multiplicative_weights import CellSubset
from lapwing.releases.weights.plan import PlannedWeights
from lapwing.statements import AggregateKind, LinearOutput, Noisy, PostProcess, Statement, substituted

FORMAT = "weights 1"


class CountSource(StrEnum):
    """The source of a count of a session."""

    WEIGHTS = "weights"
    """The weights were near enough: only that was released."""
    FRESH = "fresh"
    """The weights were not near: a fresh noisy count, with which they were updated."""
    LOG = "log"
    """The count was answered before, in this session or in a closed one."""


@dataclass(frozen=True, slots=True)
class WeighedCount:
    """A count, its source, and its error bound at the session's confidence."""

    value: int
    served_by: CountSource
    error: int
    confidence: Fraction
    starts_left: int

    @property
    def interval(self) -> tuple[int, int]:
        """The interval; counts are not negative."""
        return max(self.value - self.error, 0), max(self.value + self.error, 0)

    def __str__(self) -> str:
        how = {
            CountSource.WEIGHTS: "from the weights",
            CountSource.FRESH: "counted freshly, and learnt from",
            CountSource.LOG: "told before",
        }[self.served_by]
        return f"{self.value:,} ± {self.error:,} ({percent(float(self.confidence))}), {how}; {self.starts_left} starts left"


@dataclass(frozen=True, slots=True, eq=False)
class CountQuestion:
    """A statement as one count over the scope of a session."""

    key: str
    """The identity of the question: the counted rows of a table."""
    condition: Expression
    cells: CellSubset


def count_question(statement: Statement, facts: Facts, planned: PlannedWeights) -> CountQuestion:
    """The one count that a statement asks for, in scope; refused (``weights-question``) where it asks for anything else. Public facts."""
    every = tuple(range(len(planned.axes)))
    scope = PublicMarginals(planned.request.table, planned.axes, {every: 1.0})
    covered = covered_queries(statement, facts, scope)
    if isinstance(covered, NotCovered):
        reason = covered.reason.replace("the release", "the session")
        raise Refused("weights-question", f"the session does not answer this: {reason}")
    plain = PostProcess(statement.post.outputs, statement.post.source, statement.post.rows_of)
    counts = [query for query in statement.privates if [item.kind for item in query.aggregates] == [AggregateKind.COUNT]]
    is_count = len(covered) == len(counts) == 1 and not counts[0].keys and counts[0].levels is None and statement.post == plain
    if not is_count or [output.derivation for output in plain.outputs] != [LinearOutput(Noisy(0, 0))]:
        raise Refused("weights-question", "a session answers one count at a time: SELECT COUNT(*) FROM .. WHERE ..")
    query = counts[0]
    _, names, conditions = rows_read(query.source, facts)
    (vector,) = (item for item in measured(query.aggregates, shape_of(query.source, facts)).measures.items())
    assert isinstance(vector[1], RowCount)
    parts = [*conditions, *([] if vector[1].where is None else [substituted(vector[1].where, names)])]
    condition = reduce(lambda one, other: call(Function.AND, one, other), parts) if parts else Literal(True, Kind.BOOLEAN)
    counted = covered[0].weights[vector[0]] > 0.0
    return CountQuestion(digest((planned.stream.rows, condition)), condition, CellSubset(covered[0].axes, np.asarray(counted)))


@dataclass(frozen=True, slots=True)
class WeightsLog:
    """The answers of a session by question; all of them are public."""

    told: Mapping[str, WeighedCount]
    starts_used: int

    def packed(self) -> bytes:
        """The bytes for the ledger."""
        told = {
            key: [count.value, count.served_by.value, count.error, str(count.confidence), count.starts_left]
            for key, count in self.told.items()
        }
        body = {"format": FORMAT, "starts_used": self.starts_used, "told": told}
        return json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode()

    @classmethod
    def unpacked(cls, payload: bytes) -> WeightsLog:
        """Inverse of :meth:`packed`."""
        body: dict[str, Any] = json.loads(payload)
        if body.get("format") != FORMAT:
            raise LedgerError("answer-format", "the stored answer has another format version")
        told = {
            key: WeighedCount(value, CountSource(served), error, Fraction(confidence), left)
            for key, (value, served, error, confidence, left) in body["told"].items()
        }
        return cls(told, body["starts_used"])
