"""The oracle on sets of quantiles: no neighbour moves more rows than they are charged for, and a planted mistake is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.audit.runs import run_oracle
from lapwing.kernel import certify, selections
from lapwing.kernel.accounting import Account
from lapwing.render import queries
from tests.properties.test_sensitivity_oracle import NEIGHBOURS
from tests.support.sizes import size

WORLDS = size("oracle of quantiles, worlds")
PAIRS_OF_A_WORLD = {"unbounded": 40, "bounded": min(120, 10 * size("oracle neighbours, bounded"))}


@pytest.mark.parametrize("relation", PAIRS_OF_A_WORLD)
@pytest.mark.parametrize("account", list(Account))
def test_no_neighbour_moves_more_rows_than_are_charged(relation: str, account: Account) -> None:
    outcome = run_oracle(
        relation=relation,
        account=account,
        worlds=WORLDS,
        seed=33,
        only=quantile_shapes(account),
        neighbours_max=NEIGHBOURS[relation],
    )
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= WORLDS * PAIRS_OF_A_WORLD[relation], "the run must be as large as it says"


def _one_row_claimed(*arguments: Any) -> Any:
    found = _CERTIFY(*arguments)
    return replace(found, mechanism=replace(found.mechanism, rows_per_unit=1))


def _counted_twice(*arguments: Any) -> Any:
    found = _RENDER(*arguments)
    return replace(found, sql=found.sql.replace("COUNT(*)", "2 * COUNT(*)"))


_CERTIFY = selections.certify_quantiles
_RENDER = queries._quantiles


@pytest.mark.parametrize(
    ("module", "name", "mistake"),
    [(certify, "certify_quantiles", _one_row_claimed), (queries, "_quantiles", _counted_twice)],
    ids=["one row claimed", "rows counted twice"],
)
def test_a_planted_mistake_is_seen(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, mistake: Any) -> None:
    monkeypatch.setattr(module, name, mistake)
    only = {key: shape for key, shape in quantile_shapes(Account.PURE).items() if key == "quantiles, by clinic"}
    outcome = run_oracle(relation="unbounded", account=Account.PURE, worlds=WORLDS, seed=33, only=only, stop_at_first=True)
    assert outcome.breaches and all("quantiles" in breach.what or "loss" in breach.what for _, breach in outcome.breaches)
