"""Oracle runs: many worlds, every neighbour, every plan shape, on one engine.

Each neighbour is prepared once from its own source and all shapes run on it, so a pair (shape, neighbour) costs a few milliseconds.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from lapwing.audit.oracle import ChangedBlock, ExactResult, RefutedClaim, compare, measure
from lapwing.audit.plan_shapes import Shape, shapes
from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.audit.worlds import World, declare, neighbours_of, random_world
from lapwing.catalog import Declaration
from lapwing.engines.base import Snapshot
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account

RANKING_KEY = b"oracle" * 5 + b"!!"
"""Neighbours share the ranking key, because its choice does not depend on the data."""

Prepare = Callable[[Declaration], Snapshot]


def prepare_in_duckdb(declaration: Declaration) -> Snapshot:
    """Prepare on DuckDB, in memory."""
    return DuckDBSnapshot.in_memory(declaration, version=1, ranking_key=RANKING_KEY)


@dataclass(frozen=True)
class Family:
    """Random worlds, how they are declared, and their neighbours, with the block in which each differs if there are blocks of time."""

    world: Callable[[random.Random], World]
    declare: Callable[..., Declaration]
    neighbours: Callable[[World, str, random.Random], Iterator[tuple[World, ChangedBlock | None]]]


def _whole_units(world: World, relation: str, rng: random.Random) -> Iterator[tuple[World, ChangedBlock | None]]:
    return ((neighbour, None) for neighbour in neighbours_of(world, relation, rng))


WHOLE_UNITS = Family(random_world, declare, _whole_units)
"""Worlds that differ in all rows of a unit."""


@dataclass
class OracleRun:
    """The result of an oracle run."""

    pairs: int = 0
    breaches: list[tuple[str, RefutedClaim]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)


def run_oracle(
    *,
    relation: str,
    account: Account,
    worlds: int,
    seed: int,
    only: Mapping[str, Shape] | None = None,
    prepare: Prepare = prepare_in_duckdb,
    stop_at_first: bool = False,
    neighbours_max: int | None = None,
    order: int | None = None,
    family: Family = WHOLE_UNITS,
) -> OracleRun:
    """Compare every shape on every neighbour of ``worlds`` random worlds; on slow engines on the first ``neighbours_max`` of each.

    With ``stop_at_first``, stops when a claim is refuted. With an ``order``, the approximate account is a union of filters.
    """
    outcome = OracleRun()
    rng = random.Random(seed)
    chosen = only if only is not None else {**shapes(account), **quantile_shapes(account)}
    delta = "0" if account is Account.PURE else '"2^-30"' if order is None else f'"2^-30"\norder = {order}'
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(worlds):
            world = family.world(rng)
            left = prepare(family.declare(world, Path(scratch) / f"{number}", neighbours=relation, delta=delta))
            measured = {} if stop_at_first else _measured(chosen, left, outcome)
            is_done = False
            for index, (neighbour, changed) in enumerate(islice(family.neighbours(world, relation, rng), neighbours_max)):
                directory = Path(scratch) / f"{number}-{index}"
                right = prepare(family.declare(neighbour, directory, neighbours=relation, delta=delta, seed=index + 1))
                if stop_at_first:
                    _compare_until_refuted(chosen, left, right, measured, outcome, changed)
                    is_done = bool(outcome.breaches or outcome.faults)
                else:
                    _compare_all(measured, _measured(chosen, right, outcome), outcome, changed)
                right.close()
                if is_done:
                    break
            left.close()
            if is_done:
                break
    return outcome


def _measured(chosen: Mapping[str, Shape], snapshot: Snapshot, outcome: OracleRun) -> dict[str, ExactResult]:
    results: dict[str, ExactResult] = {}
    for name, shape in chosen.items():
        try:
            if (plan := shape(snapshot.facts)).queries:  # of some, none can be certified over blocks
                results[name] = measure(plan, snapshot)
        except LapwingError as error:
            outcome.faults.append((name, str(error)))
    return results


def _compare_all(
    left: Mapping[str, ExactResult], right: Mapping[str, ExactResult], outcome: OracleRun, changed: ChangedBlock | None
) -> None:
    for name in left.keys() & right.keys():
        outcome.pairs += 1
        outcome.breaches += [(name, breach) for breach in compare(left[name], right[name], changed=changed)]


def _compare_until_refuted(
    chosen: Mapping[str, Shape],
    left: Snapshot,
    right: Snapshot,
    measured: dict[str, ExactResult],
    outcome: OracleRun,
    changed: ChangedBlock | None,
) -> None:
    """Compare shape by shape until a claim is refuted; results on the left are kept for the next neighbour."""
    for name, shape in chosen.items():
        if name not in measured:
            measured |= _measured({name: shape}, left, outcome)
        _compare_all(measured, _measured({name: shape}, right, outcome), outcome, changed)
        if outcome.breaches:
            return
