"""The sensitivity oracle through the SQL front: bind, plan, certify, render, run; every neighbour; no claim is ever broken."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lapwing.audit.runs import prepare_in_duckdb, run_oracle
from lapwing.audit.worlds import declare, random_world
from lapwing.kernel.accounting import Account
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Clipped, DiscoveredGroups, Grouped, Plan, Ranked
from tests.properties.mutants import BY_NAME
from tests.properties.test_sensitivity_oracle import NEIGHBOURS
from tests.support.sizes import size
from tests.support.sql_shapes import SqlShape, sql_shapes

UNIT_COLUMNS = {"people": "person_id", "visits": "person_id"}
STATEMENTS = size("oracle of SQL, statements")
COMMON_DAYS = "day IN ('2024-01-01', '2024-07-07', '2024-12-31')"
GIVEN = (
    f"SELECT clinic, SUM(change) AS s, SUM(late) AS l FROM visits WHERE {COMMON_DAYS} GROUP BY clinic",
    f"SELECT flag, SUM(change) AS s, COUNT(*) AS n FROM visits WHERE {COMMON_DAYS} GROUP BY flag",
    f"SELECT SUM(change) AS s, COUNT(*) AS n FROM visits WHERE {COMMON_DAYS}",
    f"SELECT c.city, SUM(v.change) AS s FROM visits v LEFT JOIN clinics c ON c.clinic = v.clinic WHERE v.{COMMON_DAYS} GROUP BY 1",
    "SELECT drug, COUNT(*) AS n, SUM(dose) AS s FROM drugs WHERE dose IN (0, 3.5, 10) GROUP BY drug",
    "SELECT drug, COUNT(*) FILTER (WHERE dose > 5) AS n FROM drugs WHERE drug <> 'z' GROUP BY drug HAVING n > 2 ORDER BY n DESC LIMIT 3",
    "SELECT drug, SUM(dose) AS s FROM drugs WHERE dose IN (0, 10) OR drug IS NULL GROUP BY drug",
)
"""Filters that look selective and are not, over signed values and undeclared texts: bounded after the filter, and the bounds bind."""
BOUNDED_MIN = min(10, size("oracle neighbours, bounded"))
"""Neighbours of a world of a bounded relation, at least."""
# relation, account, seed, worlds, least pairs
CHUNKS = [
    ("unbounded", Account.PURE, 31, 2, 6 * STATEMENTS),
    ("unbounded", Account.APPROXIMATE, 32, 2, 6 * STATEMENTS),
    ("bounded", Account.PURE, 33, 1, BOUNDED_MIN * STATEMENTS),
    ("bounded", Account.APPROXIMATE, 34, 1, BOUNDED_MIN * STATEMENTS),
]


@lru_cache
def facts(relation: str, account: Account) -> Facts:
    """Public facts of all worlds of this relation and account: they do not depend on rows."""
    delta = "0" if account is Account.PURE else '"2^-30"'
    with TemporaryDirectory() as scratch:
        world = random_world(random.Random(0))
        snapshot = prepare_in_duckdb(declare(world, Path(scratch) / "world", neighbours=relation, delta=delta))
        snapshot.close()
    return snapshot.facts


@lru_cache
def shapes(relation: str, account: Account, seed: int) -> dict[str, SqlShape]:
    """Statements that are answered on these facts."""
    return sql_shapes(facts(relation, account), UNIT_COLUMNS, count=STATEMENTS, seed=seed, first=GIVEN)


@pytest.mark.parametrize(("relation", "account", "seed", "worlds", "least_pairs"), CHUNKS)
def test_no_neighbour_breaks_a_claim(relation: str, account: Account, seed: int, worlds: int, least_pairs: int) -> None:
    only = shapes(relation, account, seed)
    outcome = run_oracle(relation=relation, account=account, worlds=worlds, seed=seed, only=only, neighbours_max=NEIGHBOURS[relation])
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= least_pairs, "the run must be as large as it says"


def test_the_statements_are_many_and_meet_every_bounding_plan() -> None:
    bounded_by: Counter[tuple[Account, str]] = Counter()
    texts: set[str] = set()
    for relation, account, seed, *_ in CHUNKS:
        for text, shape in shapes(relation, account, seed).items():
            texts.add(text)
            bounded_by[account, type(shape(facts(relation, account)).queries[0].bounding).__name__] += 1
    assert len(texts) >= 3 * STATEMENTS
    for account, kind in [(Account.PURE, "Ranked"), (Account.PURE, "Grouped"), (Account.APPROXIMATE, "Ranked")]:
        assert bounded_by[account, kind] >= 5
    assert bounded_by[Account.APPROXIMATE, "Clipped"] >= 5


def test_planning_twice_gives_the_same_plan() -> None:
    known = facts("bounded", Account.APPROXIMATE)
    for shape in list(shapes("bounded", Account.APPROXIMATE, 34).values())[:20]:
        assert shape.planned(known).certified == shape.planned(known).certified


def is_ranked(plan: Plan) -> bool:
    return isinstance(plan.queries[0].bounding, Ranked)


def is_grouped(plan: Plan) -> bool:
    return isinstance(plan.queries[0].bounding, Grouped)


def is_clipped(plan: Plan) -> bool:
    return isinstance(plan.queries[0].bounding, Clipped)


def discovers(plan: Plan) -> bool:
    return isinstance(plan.queries[0].groups, DiscoveredGroups)


# A deliberate bug, the account and the kind of plan it is looked for in. Planning never narrows the bounds of a sum below its own range, so
# a lost clamp shows where cells are clamped; and a lost equality of units cannot be reached before joins of protected tables are accepted.
MUTANTS = [
    ("forgotten rank limit", Account.APPROXIMATE, is_ranked),
    ("upper clamp end dropped", Account.PURE, is_grouped),
    ("lower clamp end dropped", Account.PURE, is_grouped),
    ("group choice dropped", Account.PURE, is_grouped),
    ("clipping dropped", Account.APPROXIMATE, is_clipped),
    ("threshold of weights off by one", Account.APPROXIMATE, discovers),
    ("replace-one charged as add/remove, rows", Account.PURE, is_ranked),
    ("replace-one charged as add/remove, clipped", Account.APPROXIMATE, is_clipped),
    ("units merged by clamping", Account.PURE, is_ranked),
]


@pytest.mark.parametrize(("name", "account", "kind"), MUTANTS)
def test_the_oracle_sees_the_bug_through_sql(
    name: str, account: Account, kind: Callable[[Plan], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = BY_NAME[name]
    seed, worlds = next((seed, worlds) for relation, of, seed, worlds, _ in CHUNKS if relation == mutant.relation and of is account)
    known = facts(mutant.relation, account)
    only = {text: shape for text, shape in shapes(mutant.relation, account, seed).items() if kind(shape(known))}
    assert len(only) >= 3
    for target, attribute, replacement in mutant.patches:
        monkeypatch.setattr(target, attribute, replacement)
    outcome = run_oracle(
        relation=mutant.relation,
        account=account,
        worlds=4 * worlds,
        seed=seed,
        only=only,
        stop_at_first=True,
        neighbours_max=NEIGHBOURS[mutant.relation],
    )
    assert outcome.breaches, f"the oracle did not see: {name} (after {outcome.pairs} pairs)"
