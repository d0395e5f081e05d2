"""Oracle runs over families of worlds: each world is prepared once, every statement runs on it once, and all pairs are compared."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lapwing.audit.oracle import ExactResult, compare
from lapwing.audit.plan_shapes import Shape
from lapwing.audit.runs import OracleRun, Prepare, prepare_in_duckdb
from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.facts import Facts
from tests.support.clinic_worlds import Caps, Clinic, Family, declare, fan_out, replacements, subsets

MakeFamily = Callable[[random.Random], Family]


def family_of(relation: str, *, units: int = 4, contents: int = 6) -> MakeFamily:
    """The usual family of a neighbour relation."""
    if relation == "bounded":
        return lambda rng: replacements(rng, units=units - 1, contents=contents)
    return lambda rng: subsets(rng, units=units)


def fan_out_of(*, visits: int, prescriptions: int) -> MakeFamily:
    """A family about one unit with so many rows."""
    return lambda rng: fan_out(rng, visits=visits, prescriptions=prescriptions)


def clinic_facts(relation: str, account: Account, caps: Caps) -> Facts:
    """Public facts of every world of this relation, account and caps: they do not depend on rows."""
    with tempfile.TemporaryDirectory() as scratch:
        snapshot = prepare_in_duckdb(
            declare(Clinic(), Path(scratch) / "empty", neighbours=relation, delta=_delta(account), seed=0, caps=caps)
        )
        snapshot.close()
    return snapshot.facts


def _delta(account: Account) -> str:
    return "0" if account is Account.PURE else '"2^-30"'


def run_families(
    *,
    relation: str,
    account: Account,
    make: MakeFamily,
    families: int,
    seed: int,
    only: Mapping[str, Shape],
    caps: Caps,
    prepare: Prepare = prepare_in_duckdb,
    stop_at_first: bool = False,
) -> OracleRun:
    """Compare every shape on every pair of neighbours of ``families`` random families.

    Facts are compared first; where they are equal, so is the certificate (it is a pure function of them), and it is made once.
    """
    outcome = OracleRun()
    rng = random.Random(seed)
    certificates: dict[str, Certified] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(families):
            family = make(rng)
            measured: list[dict[str, ExactResult]] = []
            for index, world in enumerate(family.worlds):
                directory = Path(scratch) / f"{number}-{index}"
                snapshot = prepare(declare(world, directory, neighbours=relation, delta=_delta(account), seed=index, caps=caps))
                found: dict[str, ExactResult] = {}
                for name, shape in only.items():
                    try:
                        certified = certificates.get(name)
                        if certified is None or certified.facts != snapshot.facts:
                            certified = certificates[name] = certify(shape(snapshot.facts), snapshot.facts)
                        found[name] = ExactResult(certified, snapshot.run(certified))
                    except LapwingError as error:
                        outcome.faults.append((name, str(error)))
                snapshot.close()
                measured.append(found)
                for left, right in family.pairs:
                    if max(left, right) == index:
                        _compare(measured[left], measured[right], outcome)
                if stop_at_first and (outcome.breaches or outcome.faults):
                    return outcome
    return outcome


def _compare(left: Mapping[str, ExactResult], right: Mapping[str, ExactResult], outcome: OracleRun) -> None:
    for name in left.keys() & right.keys():
        outcome.pairs += 1
        outcome.breaches += [(name, breach) for breach in compare(left[name], right[name])]
