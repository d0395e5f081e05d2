"""The tests of the ledger can fail: each deliberate mistake is seen by the model, by the oracle of the races, or by a scenario."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import lapwing.ledger.local.ledger
from lapwing.errors import CatalogueError, LapwingError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.local.ledger import LocalLedger
from tests.ledger import mutants
from tests.ledger.crashes import Report, race, stampede
from tests.ledger.machine import UNION_BUDGETS, LocalStand, random_walk
from tests.ledger.mutants import Mutant, build, loaded, patched
from tests.ledger.support import (
    FINGERPRINT,
    SOURCE,
    approximate_budget,
    declare_dead,
    ledger_path,
    new_ledger,
    open_ledger,
    pure_budget,
    request,
    union_budget,
)
from tests.support.sizes import size


@pytest.mark.parametrize("mutant", mutants.SEEN_BY_THE_MODEL, ids=lambda mutant: mutant.name)
def test_the_model_sees(mutant: Mutant, tmp_path: Path) -> None:
    """On the very walks on which the shipped ledger agrees with the model (``test_model``)."""
    with loaded(mutant, build(mutant, tmp_path)) as module, pytest.raises((AssertionError, LapwingError)):
        for seed in range(size("walks of the local ledger")):
            random_walk(seed, steps=200, stand=LocalStand(module))


@pytest.mark.parametrize("mutant", mutants.SEEN_WITH_AN_ORDER[:-1], ids=lambda mutant: mutant.name)
def test_the_model_sees_with_an_order(mutant: Mutant, tmp_path: Path) -> None:
    """The same for an account that is a union of filters."""
    with loaded(mutant, build(mutant, tmp_path)) as module, pytest.raises((AssertionError, LapwingError)):
        for seed in range(size("walks of the local ledger")):
            random_walk(seed, steps=200, stand=LocalStand(module), budgets=UNION_BUDGETS)


def test_another_order_is_refused_by_the_limits_alone(tmp_path: Path) -> None:
    mutant, to = mutants.SEEN_WITH_AN_ORDER[-1], union_budget(1, order=64)
    with new_ledger(tmp_path, budget=union_budget(), ceiling=union_budget(2)) as ledger, pytest.raises(CatalogueError) as refused:
        ledger.set_budget(to, reason="asked")
    assert refused.value.code == "budget-account"
    with loaded(mutant, build(mutant, tmp_path)) as module:
        open_ledger(tmp_path, module=module).set_budget(to, reason="asked")


def mutant_race(mutant: Mutant, directory: Path, *, kills: int, charges: int = 20) -> Report:
    """A short race with budget for so many charges, on a file made by the mutant, because its tables may differ too."""
    budget, code = approximate_budget(), build(mutant, directory)
    with loaded(mutant, code) as module:
        new_ledger(directory, budget=budget, module=module).disconnect()
    units = (budget.loss_total // charges, budget.delta_total // 1000)
    return race(directory, budget, units=units, kills=kills, seed=7, package=mutant.package, code=code, outside_share=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "violation", "kills", "charges"),
    [
        (mutants.REFUNDS, "overspent", 60, 20),
        (mutants.DOUBLES, "one key, two charges", 250, 2000),
        (mutants.NEVER_SWEEPS, "left reserved", 60, 20),
    ],
    ids=lambda value: value.name if isinstance(value, Mutant) else str(value),
)
def test_the_race_sees(mutant: Mutant, violation: str, kills: int, charges: int, tmp_path: Path) -> None:
    assert mutant_race(mutant, tmp_path, kills=kills, charges=charges).violations[violation] > 0


def test_the_oracle_sees_a_permit_without_a_durable_charge(tmp_path: Path) -> None:
    mutant, budget = mutants.NOT_DURABLE, pure_budget(10)
    new_ledger(tmp_path, budget=budget).disconnect()
    report = stampede(tmp_path, budget, units=(1, 0), crowd=[["one"]], package=mutant.package, code=build(mutant, tmp_path))
    assert report.violations == Counter({"read without a charge": 1})


def test_the_oracle_sees_a_budget_rounded_up(tmp_path: Path) -> None:
    mutant, budget = mutants.ROUNDS_UP, pure_budget(3)
    code = build(mutant, tmp_path)
    with loaded(mutant, code) as module:
        new_ledger(tmp_path, budget=budget, module=module).disconnect()
    crowd = [[f"key-{number}y" for number in range(5)]]
    report = stampede(tmp_path, budget, units=(1, 0), crowd=crowd, package=mutant.package, code=code)
    assert report.violations == Counter({"overspent": 1})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "violation"), [("send before commit", "answer that is not stored"), ("read before reserve", "read without a charge")]
)
def test_the_race_sees_a_wrong_order_of_steps(order: str, violation: str, tmp_path: Path) -> None:
    """These two are mistakes of whoever uses the ledger: the protocol is the order as well as the calls."""
    budget = approximate_budget()
    new_ledger(tmp_path, budget=budget).disconnect()
    units = (budget.loss_total // 400, budget.delta_total // 1000)
    report = race(tmp_path, budget, units=units, kills=80, seed=7, order=order, outside_share=0.0)
    assert report.violations[violation] > 0


@pytest.mark.slow
def test_the_stampede_sees_a_decision_on_a_stale_read(tmp_path: Path) -> None:
    mutant, budget = mutants.READS_THEN_WRITES, pure_budget(10)
    code = build(mutant, tmp_path)
    new_ledger(tmp_path, budget=budget).disconnect()
    crowd = [[f"k-{process}{number:02d}y" for number in range(6)] for process in range(8)]
    report = stampede(tmp_path, budget, units=(1, 0), crowd=crowd, package=mutant.package, code=code)
    assert report.violations["overspent"] and report.violations["spent does not add up"]
    with pytest.raises(LedgerError) as refused:
        open_ledger(tmp_path)
    assert refused.value.code == "ledger-damaged"


@pytest.mark.slow
@pytest.mark.parametrize("mutant", mutants.STOPPED_BY_THE_FILE, ids=lambda mutant: mutant.name)
def test_the_file_stops_a_mistake_of_the_code_alone(mutant: Mutant, tmp_path: Path) -> None:
    """What is left reserved because it can be neither refunded nor settled is spent all the same."""
    report = mutant_race(mutant, tmp_path, kills=20)
    assert set(report.violations) <= {"left reserved"}
    assert report.events["permit"] > 0


def test_the_file_stops_a_zombie(tmp_path: Path) -> None:
    mutant = mutants.ZOMBIE_ALONE
    with loaded(mutant, build(mutant, tmp_path)) as module, new_ledger(tmp_path, module=module) as zombie:
        permit = zombie.reserve(request("one"))
        assert isinstance(permit, Permit) and declare_dead(ledger_path(tmp_path), permit.charge_id)
        with open_ledger(tmp_path, module=module) as ledger:
            with pytest.raises(LedgerError) as refused:
                zombie.commit(permit, b"late")
            assert refused.value.code == "ledger-rule"
            assert ledger.find("plan of one") is None


def test_settings_that_are_not_durable_are_refused(tmp_path: Path) -> None:
    mutant = mutants.LESS_DURABLE
    with loaded(mutant, build(mutant, tmp_path)) as module, pytest.raises(LedgerError) as refused:
        new_ledger(tmp_path, module=module)
    assert refused.value.code == "ledger-unreachable"


def older_backup_is_served(directory: Path, module: ModuleType) -> bool:
    path = ledger_path(directory)
    with new_ledger(directory, module=module) as ledger:
        shutil.copy(path, directory / "backup")
        ledger.reserve(request("one"))
    shutil.copy(directory / "backup", path)
    return serves(lambda: open_ledger(directory, module=module))


def copy_is_served(directory: Path, module: ModuleType) -> bool:
    new_ledger(directory, module=module).disconnect()
    shutil.copy(ledger_path(directory), directory / "copy")
    return serves(lambda: module.LocalLedger.open(directory / "copy", source_id=SOURCE, home=directory / "home"))


def second_ledger_is_made(directory: Path, module: ModuleType) -> bool:
    new_ledger(directory, module=module).disconnect()
    return serves(
        lambda: module.LocalLedger.create(
            directory / "second",
            source_id="another name",
            source_fingerprint=FINGERPRINT,
            budget=pure_budget(1),
            ceiling=pure_budget(1),
            home=directory / "home",
        )
    )


def serves(attempt: Callable[[], LocalLedger]) -> bool:
    try:
        ledger = attempt()
    except LapwingError:
        return False
    with ledger:
        return ledger.balance().spent == Cost.zero()


@pytest.mark.parametrize(
    ("mutant", "is_fooled"),
    [
        (mutants.NOT_ANCHORED, older_backup_is_served),
        (mutants.ANCHOR_NOT_COMPARED, older_backup_is_served),
        (mutants.COPIES_PASS, copy_is_served),
        (mutants.SECOND_LEDGERS_PASS, second_ledger_is_made),
    ],
    ids=lambda value: value.name if isinstance(value, Mutant) else "",
)
def test_the_registry_scenarios_tell_a_mutant_from_the_ledger(
    mutant: Mutant, is_fooled: Callable[[Path, ModuleType], bool], tmp_path: Path
) -> None:
    shipped, changed = tmp_path / "shipped", tmp_path / "changed"
    shipped.mkdir()
    changed.mkdir()
    assert not is_fooled(shipped, lapwing.ledger.local.ledger)
    with loaded(mutant, build(mutant, tmp_path)) as module:
        assert is_fooled(changed, module)


def test_every_mutant_fits_the_code() -> None:
    every = {*_mutants(list(vars(mutants).values()))}
    assert len(every) > 25
    for mutant in sorted(every, key=lambda one: one.name):
        patched(mutant)


def _mutants(values: Iterable[object]) -> Iterator[Mutant]:
    for value in values:
        if isinstance(value, Mutant):
            yield value
        elif isinstance(value, list):
            yield from _mutants(value)


def test_a_mutant_that_does_not_fit_the_code_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="not once"):
        build(Mutant("misfit", (("local/ledger", "this text is nowhere", ""),)), tmp_path)
