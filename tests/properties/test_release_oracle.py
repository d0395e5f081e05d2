"""The oracle on whole releases: no neighbour moves all tables together by more than the one charge, and planted mistakes are seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from lapwing.audit.release_shapes import release_shapes
from lapwing.audit.runs import run_oracle
from lapwing.kernel import certify, laws, sensitivity
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.certify import CertifiedQuery, CertifiedVector
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.sensitivity import Sensitivity
from lapwing.releases.marginals.measurements import count_name
from tests.properties.mutants import BY_NAME, Mutant
from tests.properties.test_mutants import apply
from tests.properties.test_sensitivity_oracle import NEIGHBOURS
from tests.support.sizes import size

WORLDS = size("oracle of releases, worlds")
PAIRS_OF_A_WORLD = {"unbounded": 25, "bounded": min(60, 5 * size("oracle neighbours, bounded"))}


@pytest.mark.slow
@pytest.mark.parametrize("relation", PAIRS_OF_A_WORLD)
@pytest.mark.parametrize("account", list(Account))
def test_no_neighbour_moves_a_release_by_more_than_its_charge(relation: str, account: Account) -> None:
    outcome = run_oracle(
        relation=relation, account=account, worlds=WORLDS, seed=18, only=release_shapes(), neighbours_max=NEIGHBOURS[relation]
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= WORLDS * PAIRS_OF_A_WORLD[relation], "the run must be as large as it says"


_COST = certify.total_cost
_LOSS = laws.loss
_ROWS = sensitivity.rows_weighing


def _dearest_table_only(queries: tuple[CertifiedQuery, ...]) -> Cost:
    return max((_COST((query,)) for query in queries), key=lambda cost: cost.loss)


def _without_the_total(queries: tuple[CertifiedQuery, ...]) -> Cost:
    """A table without axes is taken to be free."""
    return _COST(tuple(query for query in queries if query.query.keys) or queries)


def _without_the_last(queries: tuple[CertifiedQuery, ...]) -> Cost:
    return _COST(queries[:-1])


def _noise_of_the_noisiest(queries: tuple[CertifiedQuery, ...]) -> Cost:
    """Every table is charged for the scale of the table with the most noise."""
    most = max(query.vectors[0].vector.law.scale for query in queries)
    return _COST(tuple(replace(query, vectors=(_charged_for(query.vectors[0], most),)) for query in queries))


def _first_section_only(queries: tuple[CertifiedQuery, ...]) -> Cost:
    """Further parts of a release are taken to be paid with the first."""
    return _COST(tuple(query for query in queries if query.vectors[0].vector.name == count_name(0)))


def _charged_for(vector: CertifiedVector, scale: Fraction) -> CertifiedVector:
    return replace(vector, loss=vector.loss * (vector.vector.law.scale / scale) ** (1 if vector.pure is not None else 2))


def _one_row(neighbours: Neighbours, **facts: Any) -> Sensitivity:
    return _ROWS(neighbours, **(facts | {"weight": 1}))


def _a_row_less(neighbours: Neighbours, **facts: Any) -> Sensitivity:
    return _ROWS(neighbours, **(facts | {"weight": max(1, facts["weight"] - 1)}))


def _root_of_the_rows(neighbours: Neighbours, **facts: Any) -> Sensitivity:
    """As if the rows of a unit were never in one cell."""
    bound = _ROWS(neighbours, **facts)
    return replace(bound, l2_squared=max(1, bound.l2_squared // max(1, facts["weight"])))


OWN = [
    Mutant("only the dearest table charged", ((certify, "total_cost", _dearest_table_only),)),
    Mutant("a table without axes is free", ((certify, "total_cost", _without_the_total),)),
    Mutant("the last table is free", ((certify, "total_cost", _without_the_last),)),
    Mutant("only the first part charged", ((certify, "total_cost", _first_section_only),)),
    Mutant("the scale of another table", ((certify, "total_cost", _noise_of_the_noisiest),)),
    Mutant("a unit has one row", ((sensitivity, "rows_weighing", _one_row),)),
    Mutant("a unit has a row less", ((sensitivity, "rows_weighing", _a_row_less),)),
    Mutant("rows of a unit are never in one cell", ((sensitivity, "rows_weighing", _root_of_the_rows),), account=Account.APPROXIMATE),
]
KNOWN = [
    "forgotten rank limit",
    "weights rounded up",
    "weights of a capped row count ignored",
    "grid of the weights forgotten",
    "separate branches charged once",
    "one row per unit not enforced",
    "known keys dropped when empty",
    "replace-one charged as add/remove, rows",
]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [*OWN, *(BY_NAME[name] for name in KNOWN)], ids=lambda mutant: mutant.name)
def test_a_planted_mistake_is_seen(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(mutant, monkeypatch)
    for seed in (18, 19, 20):
        outcome = run_oracle(
            relation=mutant.relation,
            account=mutant.account,
            worlds=1,
            seed=seed,
            only=release_shapes(),
            stop_at_first=True,
            neighbours_max=NEIGHBOURS[mutant.relation],
        )
        if outcome.breaches:
            return
    pytest.fail(f"the oracle did not see: {mutant.name}")
