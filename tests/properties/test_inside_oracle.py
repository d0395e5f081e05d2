"""The sensitivity oracle on groups within units: by the unit and more, by an identifier that one unit owns; no claim is ever broken."""

from __future__ import annotations

from functools import lru_cache

import pytest

from lapwing.kernel.accounting import Account
from lapwing.kernel.ir import PerUnit
from lapwing.kernel.workload import parts_of
from tests.properties.test_relations_oracle import CAPS, CHUNKS, CONTENTS, FAMILIES, PAIRS, clean, facts
from tests.support.clinic_worlds import REFERENCES, UNIT_COLUMNS
from tests.support.family_runs import family_of, run_families
from tests.support.sizes import size
from tests.support.sql_inside import InsideQueries
from tests.support.sql_shapes import SqlShape, shapes_of

STATEMENTS = size("oracle of groups within units, statements")


@lru_cache
def generated(relation: str, account: Account, seed: int) -> dict[str, SqlShape]:
    known = facts(relation, account)
    queries = InsideQueries(known, UNIT_COLUMNS, REFERENCES, seed=seed + 30)
    return shapes_of(queries, known, UNIT_COLUMNS, REFERENCES, count=STATEMENTS)


@pytest.mark.parametrize(("relation", "account", "seed"), CHUNKS)
def test_no_neighbour_breaks_a_claim(relation: str, account: Account, seed: int) -> None:
    outcome = run_families(
        relation=relation,
        account=account,
        make=family_of(relation, contents=CONTENTS),
        families=FAMILIES[relation],
        seed=seed,
        only=generated(relation, account, seed),
        caps=CAPS,
    )
    clean(outcome, pairs=PAIRS[relation] * STATEMENTS)


@pytest.mark.soak("the oracle in `check` says itself how many pairs it has")
def test_the_pairs_add_up_to_ten_thousand() -> None:
    assert sum(PAIRS[relation] * STATEMENTS for relation, _, _ in CHUNKS) >= 10_000


def test_most_plans_group_within_units() -> None:
    """Some need no groups any more when they are planned: a count of units, say, or a UNION of which only units are counted."""
    plans = [shape(facts(r, a)) for r, a, seed in CHUNKS for shape in generated(r, a, seed).values()]
    grouped = [plan for plan in plans if any(isinstance(p, PerUnit) and p.keys for q in plan.queries for p in parts_of(q.source))]
    assert len(grouped) >= 0.5 * len(plans), (len(grouped), len(plans))
