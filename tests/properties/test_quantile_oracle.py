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

CHUNKS = [("unbounded", account, 31, 3, 130) for account in Account] + [("bounded", account, 32, 2, 250) for account in Account]


@pytest.mark.parametrize(("relation", "account", "seed", "worlds", "least_pairs"), CHUNKS)
def test_no_neighbour_moves_more_rows_than_are_charged(relation: str, account: Account, seed: int, worlds: int, least_pairs: int) -> None:
    outcome = run_oracle(relation=relation, account=account, worlds=worlds, seed=seed, only=quantile_shapes(account))
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= least_pairs, "the run must be as large as it says"


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
    outcome = run_oracle(relation="unbounded", account=Account.PURE, worlds=6, seed=33, only=only, stop_at_first=True)
    assert outcome.breaches and all("quantiles" in breach.what or "loss" in breach.what for _, breach in outcome.breaches)
