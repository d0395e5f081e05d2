"""The oracle on the profiles that preparation buys: no neighbour moves them together by more than the one charge."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.audit.runs import run_oracle
from lapwing.kernel import certify
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Plan, UnitNorms
from lapwing.planning.profiles import profile_plan
from lapwing.render import queries
from tests.properties.mutants import BY_NAME, Mutant
from tests.properties.test_mutants import apply
from tests.properties.test_norm_mutants import in_two_bins
from tests.properties.test_sensitivity_oracle import NEIGHBOURS, WORLDS

_COST = certify.total_cost


def _profiles(facts: Facts) -> Plan:
    plan = profile_plan("visits", facts, loss=Fraction(1))
    assert any(isinstance(query.source, UnitNorms) for query in plan.queries), "rows, and a measure"
    return plan


@pytest.mark.parametrize("relation", WORLDS)
@pytest.mark.parametrize("account", list(Account))
def test_no_neighbour_moves_profiles_by_more_than_their_charge(relation: str, account: Account) -> None:
    worlds = 2 * WORLDS[relation]
    outcome = run_oracle(
        relation=relation, account=account, worlds=worlds, seed=35, only={"profiles": _profiles}, neighbours_max=NEIGHBOURS[relation]
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= 3 * worlds, "the run must be as large as it says"


def _dearest_only(certified: tuple[CertifiedQuery, ...]) -> Cost:
    return max((_COST((query,)) for query in certified), key=lambda cost: cost.loss)


def _last_is_free(certified: tuple[CertifiedQuery, ...]) -> Cost:
    return _COST(certified[:-1])


MUTANTS = [
    Mutant("only the dearest profile charged", ((certify, "total_cost", _dearest_only),)),
    Mutant("the last profile is free", ((certify, "total_cost", _last_is_free),)),
    Mutant("a unit is in two bins", ((queries, "render_source", in_two_bins),)),
    BY_NAME["replace-one charged as add/remove, rows"],
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_mistake_is_seen(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(mutant, monkeypatch)
    for seed in (35, 36, 37):
        outcome = run_oracle(
            relation=mutant.relation,
            account=mutant.account,
            worlds=2,
            seed=seed,
            only={"profiles": _profiles},
            stop_at_first=True,
            neighbours_max=NEIGHBOURS[mutant.relation],
        )
        if outcome.breaches:
            return
    pytest.fail(f"the oracle did not see: {mutant.name}")
