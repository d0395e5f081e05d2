"""Audits of the kernel as it is: nothing it claims is refuted, and every planted mistake is.

The sampler has no seed, so these tests depend on chance. False alarms: each honest audit is made at a confidence of 1 - 1e-7, fewer than
100 of them. Misses: the numbers of runs leave five standard deviations or more between the bound and the claim. The long run, with a
million runs and smaller mistakes, is ``make audit``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.audit.claims import Concentrated, Pure, parameter_of
from lapwing.audit.mechanisms import AuditedMechanism, audit_case, cases, mistakes, sharper
from lapwing.audit.plan_shapes import shapes
from lapwing.audit.plans import Pair, audit_pair, claim_of_plan, same_law, tiled_ratios, whole_releases, worst_pairs
from lapwing.kernel import release as release_module
from lapwing.kernel.accounting import Account
from lapwing.kernel.ir import KnownGroups
from lapwing.mechanisms.key_set import KeySet
from lapwing.render.duckdb import DUCKDB
from lapwing.render.queries import render_plan

SURE = 1 - Fraction(1, 10**7)
CASES = cases()
MISTAKES = mistakes(Fraction(5, 4))
SETTINGS = [
    pytest.param(account, relation, marks=pytest.mark.xdist_group(f"pairs of {account}, {relation}"))
    for account in Account
    for relation in ("unbounded", "bounded")
]
"""Those of one account and relation run on one worker, which looks for their pairs once."""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_mechanism_reveals_more_than_it_claims(case: AuditedMechanism) -> None:
    found = audit_case(case, samples=3_000, confidence=SURE)
    assert not found.caught, found


@pytest.mark.slow
@pytest.mark.parametrize(("case", "run"), MISTAKES, ids=[f"{case.family}: {case.name}" for case, _ in MISTAKES])
def test_a_quarter_more_than_claimed_is_caught(case: AuditedMechanism, run: object) -> None:
    """Each family at 1.25 times its epsilon (or mu), and permute-and-flip at the exponential mechanism's rho."""
    found = audit_case(case, samples=14_000, run=run)  # type: ignore[arg-type]
    assert found.caught, found


def test_every_family_has_a_planted_mistake() -> None:
    assert {case.family for case, _ in MISTAKES} == {case.family for case in CASES}


@pytest.mark.slow
def test_gaussian_noise_at_half_of_its_scale_is_caught_in_rho_too() -> None:
    (case,) = (case for case in CASES if case.name == "Gaussian, rho")
    assert audit_case(case, samples=10_000, run=sharper(case.mechanism, Fraction(2))).caught


_PAIRS: dict[tuple[Account, str], dict[str, Pair]] = {}


def pairs(account: Account, relation: str) -> dict[str, Pair]:
    """The worst neighbours of every shape in one random world; looked for once."""
    if (account, relation) not in _PAIRS:
        _PAIRS[account, relation] = worst_pairs(shapes(account), relation=relation, account=account, worlds=1, seed=3)
    return _PAIRS[account, relation]


@pytest.mark.slow
@pytest.mark.parametrize(("account", "relation"), SETTINGS)
def test_no_plan_reveals_more_than_its_certificate(account: Account, relation: str) -> None:
    """The exact loss never exceeds the certificate, and so many runs of the shapes that come close do not refute it."""
    found = pairs(account, relation)
    assert found.keys() == shapes(account).keys()
    assert [name for name, pair in found.items() if pair.share > 1] == []
    close = sorted(found, key=lambda name: -found[name].worth)[:6]
    assert found[close[0]].share > 0.9
    audits = [audit_pair(found[name], samples=4_000, tests=2 * len(close), confidence=SURE) for name in close]
    audits.append(audit_pair(found[close[0]], samples=16_000, tests=2 * len(close), confidence=SURE))
    assert [audit for audit in audits if audit.caught] == []
    # Of 4,000 runs an audit often sees nothing; of 16,000 about three quarters of the claim.
    assert audits[-1].lower_bound / float(parameter_of(audits[-1].claimed)) > 0.1, "these audits see something"


@pytest.mark.slow
@pytest.mark.parametrize(
    "account", [pytest.param(account, marks=pytest.mark.xdist_group(f"pairs of {account}, unbounded")) for account in Account]
)
def test_a_certificate_that_charges_too_little_is_caught(account: Account) -> None:
    """The same runs against two thirds of what the certificate charges (an epsilon), or a half (a rho)."""
    pair = pairs(account, "unbounded")["project"]
    assert pair.share > 0.99
    certificate = parameter_of(claim_of_plan(pair.left.certified))
    claim = Pure(certificate * 2 / 3) if account is Account.PURE else Concentrated(certificate / 2)
    found = audit_pair(pair, samples=20_000, tests=2, claim=claim)
    assert found.caught, found


@pytest.mark.slow
@pytest.mark.xdist_group(f"pairs of {Account.APPROXIMATE}, unbounded")
@pytest.mark.parametrize("name", ["project", "discovered days, grouped", "two queries"])
def test_whole_releases_follow_the_law_of_the_tiled_ones(name: str) -> None:
    pair = pairs(Account.APPROXIMATE, "unbounded")[name]
    for right in (False, True):
        whole, tiled = whole_releases(pair, right=right, runs=300), tiled_ratios(pair, right=right, runs=6_000)
        assert same_law(whole, tiled, error=1e-8)


@pytest.mark.xdist_group(f"pairs of {Account.APPROXIMATE}, unbounded")
def test_another_law_would_be_seen() -> None:
    """The two sides of a pair have different laws, and so has a side with noise that is twice as large."""
    pair = pairs(Account.APPROXIMATE, "unbounded")["project"]
    left, other = (tiled_ratios(pair, right=right, runs=6_000) for right in (False, True))
    assert not same_law(left, other, error=1e-8)
    assert not same_law(left, left.mean() + 2 * (left - left.mean()), error=1e-8)


@pytest.mark.parametrize(("account", "relation"), SETTINGS)
def test_neighbours_get_the_same_statement_plan_price_and_number_of_draws(
    account: Account, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lapwing's own path, as a recording would see it: all that happens before and beside the noise is equal on neighbours.

    (Which keys are discovered is part of what is released; there, the number of draws depends on the noise and on keys that delta covers.)
    """
    counted: list[int] = []
    add_noise = getattr(release_module, "add_noise")  # noqa: B009

    def counting(law: object, values: object, **terms: object) -> object:
        counted.append(len(values))  # type: ignore[arg-type]
        return add_noise(law, values, **terms)

    monkeypatch.setattr(release_module, "add_noise", counting)
    compared = 0
    for pair in pairs(account, relation).values():
        left, right = pair.left.certified, pair.right.certified
        assert (left.plan, left.facts, left.cost, left.digest) == (right.plan, right.facts, right.cost, right.digest)
        assert left.queries == right.queries, "sensitivities and thresholds"
        assert render_plan(left, DUCKDB) == render_plan(right, DUCKDB)
        if any(not isinstance(query.query.groups, KnownGroups) for query in left.queries):
            continue
        draws = []
        for is_right in (False, True):
            counted.clear()
            whole_releases(pair, right=is_right, runs=1)
            draws.append(list(counted))
        assert draws[0] == draws[1] and draws[0]
        compared += 1
    assert compared >= 30


@pytest.mark.slow
def test_a_key_threshold_one_too_low_is_caught() -> None:
    """The chance that a unit shows a key it alone carries is then exp(1 / scale) times the delta that was paid."""
    (case,) = (case for case in CASES if case.name == "key set, a key of one unit")
    assert isinstance(case.mechanism, KeySet)
    lower = replace(case.mechanism, threshold=case.mechanism.threshold - 1)
    assert audit_case(case, samples=10_000, run=lower).caught
