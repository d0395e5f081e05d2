"""The oracle on streamed counts: neighbours made in the source move no distance from a public number by more than the claimed reach.

On the real engine; and planted mistakes are seen.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.audit.runs import prepare_in_duckdb
from lapwing.audit.worlds import World, declare, neighbours_of, random_world
from lapwing.engines.base import Snapshot
from lapwing.kernel import sensitivity
from lapwing.kernel.count_stream import StreamPlan, certify_stream
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call
from lapwing.kernel.ir import Scan
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.release import dense_vectors
from lapwing.kernel.sensitivity import Sensitivity
from lapwing.render import relations
from tests.support.sizes import size

WORLDS = size("oracle of streams, worlds")
LAW = DiscreteLaplace(Fraction(1))
NUMBERS = (0, 1, 2, 3, 5, 8, 100)
"""Public numbers that counts are held against: below, among and above them."""


def _less(column: str, value: int, kind: Kind) -> Expression:
    return call(Function.LESS, Column(column), Literal(value, kind))


JULY = call(Function.EQUAL, call(Function.MONTH, Column("day")), Literal(7, Kind.INTEGER))
STREAMS: dict[str, tuple[StreamPlan, tuple[Expression, ...]]] = {
    f"{table}, {rows} rows of a unit": (
        StreamPlan(Scan(table, rows), columns, 2, 2, LAW, LAW, LAW),
        (*conditions, Literal(True, Kind.BOOLEAN)),
    )
    for table, rows, columns, conditions in (
        ("people", 1, ("age",), (_less("age", 40, Kind.INTEGER), call(Function.IS_NULL, Column("age")))),
        ("visits", 1, ("day",), (JULY,)),
        ("visits", 3, ("day",), (JULY, call(Function.NOT, JULY))),
        ("visits", 12, ("day",), (JULY,)),
    )
}


def _counts(snapshot: Snapshot) -> dict[tuple[str, int], int]:
    found = {}
    for name, (plan, conditions) in STREAMS.items():
        for number, condition in enumerate(conditions):
            question = plan.question(condition, snapshot.facts)
            groups = question.queries[0].query.groups
            ((count,),) = dense_vectors(groups, snapshot.run(question)._tables[0])  # type: ignore[arg-type]
            found[name, number] = count
    return found


@contextmanager
def _prepared(world: World, directory: Path, relation: str, seed: int) -> Iterator[Snapshot]:
    snapshot = prepare_in_duckdb(declare(world, directory, neighbours=relation, delta="0", seed=seed))
    yield snapshot
    snapshot.close()


def moved_too_far(relation: str, *, worlds: int, seed: int) -> tuple[list[str], int, set[str]]:
    """What moved by more than was claimed, how many pairs were looked at, and in which streams the claim was reached."""
    breaches, pairs, reached, rng = list[str](), 0, set[str](), random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(worlds):
            world = random_world(rng)
            with _prepared(world, Path(scratch) / f"{number}", relation, 0) as left:
                before = _counts(left)
                claimed = {name: certify_stream(plan, left.facts).reach for name, (plan, _) in STREAMS.items()}
            for index, neighbour in enumerate(neighbours_of(world, relation, rng)):
                with _prepared(neighbour, Path(scratch) / f"{number}-{index}", relation, index + 1) as right:
                    for (name, question), count in _counts(right).items():
                        far = max(abs(abs(before[name, question] - near) - abs(count - near)) for near in NUMBERS)
                        pairs += 1
                        if far > claimed[name]:
                            breaches.append(f"{name}: claimed {claimed[name]}, moved {far}")
                        if far == claimed[name]:
                            reached.add(name)
    return breaches, pairs, reached


@pytest.mark.parametrize("relation", ["unbounded", "bounded"])
def test_no_neighbour_moves_a_distance_by_more_than_the_reach(relation: str) -> None:
    breaches, pairs, reached = moved_too_far(relation, worlds=WORLDS, seed=20)
    assert breaches == []
    assert pairs >= WORLDS * 9 * 5
    assert {name for name in STREAMS if "1 rows" in name or "3 rows" in name} <= reached, "the claim is no larger than it has to be"


_ROWS = sensitivity.rows_weighing


def _one_row(neighbours: Neighbours, **facts: Any) -> Sensitivity:
    return _ROWS(neighbours, **(facts | {"weight": 1}))


def _half(neighbours: Neighbours, **facts: Any) -> Sensitivity:
    bound = _ROWS(neighbours, **facts)
    return replace(bound, l1=(bound.l1 + 1) // 2, linf=(bound.linf + 1) // 2)


@pytest.mark.parametrize("mistake", [_one_row, _half], ids=["a unit has one row", "half of the rows"])
def test_a_planted_mistake_is_seen(mistake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensitivity, "rows_weighing", mistake)
    assert moved_too_far("unbounded", worlds=1, seed=20)[0] != []


def test_a_forgotten_rank_limit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "rank_predicate", lambda alias, rows: "TRUE")
    assert moved_too_far("unbounded", worlds=1, seed=20)[0] != []
