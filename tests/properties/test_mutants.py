"""Every deliberate bug makes the oracle fail. A mutant that survives means the oracle is blind to that mistake."""

from __future__ import annotations

import pytest

from lapwing.audit import oracle
from lapwing.audit.plan_shapes import shapes
from lapwing.audit.runs import run_oracle
from lapwing.kernel.accounting import Account
from tests.properties.mutants import BY_NAME, MUTANTS, Mutant
from tests.properties.test_sensitivity_oracle import NEIGHBOURS, SEEDS, WORLDS


def apply(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    for target, name, replacement in mutant.patches:
        monkeypatch.setattr(target, name, replacement)
        if name == "dense_vectors":  # the oracle looks at what release would show
            monkeypatch.setattr(oracle, name, replacement)


@pytest.mark.parametrize("name", BY_NAME)
def test_the_oracle_sees_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = BY_NAME[name]
    only = {key: shape for key, shape in shapes(mutant.account).items() if not mutant.shapes or key in mutant.shapes}
    apply(mutant, monkeypatch)
    for seed in SEEDS:
        worlds = WORLDS[mutant.relation]
        outcome = run_oracle(
            relation=mutant.relation,
            account=mutant.account,
            worlds=worlds,
            seed=seed,
            only=only,
            stop_at_first=True,
            neighbours_max=NEIGHBOURS[mutant.relation],
            order=mutant.order,
        )
        if outcome.breaches:
            return
    pytest.fail(f"the oracle did not see: {name}")


def test_there_are_at_least_twenty_five() -> None:
    assert len(MUTANTS) >= 25


@pytest.mark.soak("`properties/test_sensitivity_oracle.py` finds the very worlds of the mutants clean")
@pytest.mark.parametrize("relation", ["unbounded", "bounded"])
@pytest.mark.parametrize("account", list(Account))
def test_without_a_bug_the_same_worlds_are_clean(relation: str, account: Account) -> None:
    outcome = run_oracle(relation=relation, account=account, worlds=2, seed=5)
    assert outcome.breaches == []
    assert outcome.faults == []
