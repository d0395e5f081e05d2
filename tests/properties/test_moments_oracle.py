"""The sensitivity oracle on moments: squares and products of centred values, with NULLs and filters; every neighbour, no claim broken."""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lapwing.audit.runs import prepare_in_duckdb, run_oracle
from lapwing.audit.worlds import declare, random_world
from lapwing.kernel.accounting import Account
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Ranked
from tests.properties.mutants import BY_NAME
from tests.properties.test_sensitivity_oracle import NEIGHBOURS
from tests.support.sizes import size
from tests.support.sql_shapes import SqlShape, sql_shapes

UNIT_COLUMNS = {"people": "person_id", "visits": "person_id"}
STATEMENTS = (
    "SELECT VAR_SAMP(change) AS a, STDDEV_POP(late) AS b FROM visits",
    "SELECT clinic, VAR_POP(cost) AS a, AVG(cost) AS b, COUNT(*) AS n FROM visits GROUP BY clinic",
    "SELECT flag, CORR(change, late) AS a, REGR_SLOPE(late, cost) AS b FROM visits GROUP BY flag",
    "SELECT COVAR_SAMP(change, cost) AS a, REGR_INTERCEPT(change, late) AS b FROM visits WHERE day > '2024-02-01'",
    "SELECT STDDEV(change) FILTER (WHERE flag) AS a, CORR(cost, change) FILTER (WHERE NOT flag) AS b FROM visits",
    "SELECT c.city, VARIANCE(v.change) AS a FROM visits v LEFT JOIN clinics c ON c.clinic = v.clinic GROUP BY 1",
    "SELECT COVAR_POP(cost / 3, change * late) AS a, REGR_R2(ABS(change), LN(1 + cost)) AS b FROM visits",
    "SELECT REGR_COUNT(change, cost) AS a, REGR_AVGX(change, cost) AS b, REGR_AVGY(change, cost) AS c FROM visits",
)
WORLDS = size("oracle of moments, worlds")
CHUNKS = [(relation, account) for relation in ("unbounded", "bounded") for account in Account]


@lru_cache
def facts(relation: str, account: Account) -> Facts:
    """Public facts of all worlds of this relation and account."""
    delta = "0" if account is Account.PURE else '"2^-30"'
    with TemporaryDirectory() as scratch:
        snapshot = prepare_in_duckdb(declare(random_world(random.Random(0)), Path(scratch) / "world", neighbours=relation, delta=delta))
        snapshot.close()
    return snapshot.facts


@lru_cache
def shapes(relation: str, account: Account) -> dict[str, SqlShape]:
    return sql_shapes(facts(relation, account), UNIT_COLUMNS, count=len(STATEMENTS), seed=1, first=STATEMENTS)


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "account"), CHUNKS)
def test_no_neighbour_breaks_a_claim(relation: str, account: Account) -> None:
    made = shapes(relation, account)
    assert set(made) == set(STATEMENTS), "each of them is planned, none is replaced"
    outcome = run_oracle(relation=relation, account=account, worlds=WORLDS, seed=5, only=made, neighbours_max=NEIGHBOURS[relation])
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= WORLDS * 20, "the run must be as large as it says"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forgotten rank limit", "replace-one charged as add/remove, rows"])
def test_the_oracle_sees_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = BY_NAME[name]
    made = shapes(mutant.relation, Account.APPROXIMATE)
    assert all(isinstance(shape(facts(mutant.relation, Account.APPROXIMATE)).queries[0].bounding, Ranked) for shape in made.values())
    for target, attribute, replacement in mutant.patches:
        monkeypatch.setattr(target, attribute, replacement)
    outcome = run_oracle(
        relation=mutant.relation,
        account=Account.APPROXIMATE,
        worlds=WORLDS,
        seed=5,
        only=made,
        stop_at_first=True,
        neighbours_max=NEIGHBOURS[mutant.relation],
    )
    assert outcome.breaches, f"the oracle did not see: {name} (after {outcome.pairs} pairs)"
