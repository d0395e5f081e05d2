"""A changed budget, ceiling, default or description is no new version: what was paid for stays free, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from lapwing.answers.answer import Answer
from lapwing.audit.worlds import declare, random_world
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.errors import BudgetRefused, CatalogueError, PreparationError
from lapwing.ledger.connect import system_user
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.protocol import EntryKind
from tests.unit.cli.support import run

ACCOUNTS = {"pure": "0", "approximate": '"2^-30"', "ordered": '"1e-8"\norder = 32'}
KNOWN = (
    "SELECT sex, COUNT(*) AS n, AVG(score) AS score FROM people GROUP BY sex",
    "SELECT COUNT(*) AS n, SUM(cost) AS cost FROM visits WHERE cost < 100",
    "SELECT COUNT(*) AS n FROM people WITH PRIVACY (error = 40)",
)
FOUND_KEYS = "SELECT drug, COUNT(*) AS n FROM drugs GROUP BY drug"
LAPLACE = "SELECT COUNT(*) AS n FROM people"
"""In an account with an order it is asked at a price for which Laplace noise is better, and that is a share of the account."""
EPSILONS = dict.fromkeys((*KNOWN, FOUND_KEYS), "0.1") | {KNOWN[2]: None, LAPLACE: "0.4"}
DEAR = "SELECT COUNT(*) AS n FROM people WHERE age > 40"


@pytest.fixture(params=[(account, neighbours) for account in ACCOUNTS for neighbours in ("unbounded", "bounded")], ids="-".join)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    """A data set with epsilon 1 below a ceiling of 3, prepared, and what is asked of it."""
    account, neighbours = request.param
    more = {"pure": (), "approximate": (FOUND_KEYS,), "ordered": (FOUND_KEYS,)}[account]
    return _made(tmp_path, account, neighbours), (LAPLACE, *KNOWN, *more)


def _made(tmp_path: Path, account: str, neighbours: str, *, budget: str = "") -> Path:
    directory = tmp_path / "data"
    declare(random_world(random.Random(4)), directory, neighbours=neighbours, delta=ACCOUNTS[account])
    _edit(directory, "epsilon = 1\n", f"epsilon = 1\nceiling = {{ epsilon = 3 }}\n{budget}")
    _edit(directory, "[tables.people]\n", "[defaults]\nepsilon = 0.1\n[tables.people]\n")
    with _open(directory) as data:
        assert data.curator.prepare() == 1
    return directory


def _edit(directory: Path, old: str, new: str) -> None:
    catalogue = directory / "lapwing.toml"
    text = catalogue.read_text()
    assert text.count(old) == 1, old
    catalogue.write_text(text.replace(old, new))


def _open(directory: Path) -> DataSet:
    return DataSet(Curator(directory, home=directory.parent / "home"))


def _asked(data: DataSet, statements: Sequence[str]) -> list[Answer]:
    return [data.ask(sql, epsilon=EPSILONS[sql]) for sql in statements]


def _assert_free(directory: Path, statements: Sequence[str], first: Sequence[Answer]) -> None:
    with _open(directory) as data:
        before = data.curator.balance()
        for sql, was, again in zip(statements, first, _asked(data, statements), strict=True):
            assert again.cost.free, sql
            assert again.stored == was.stored and again.table == was.table and again.intervals == was.intervals, sql
        assert data.curator.balance() == before and data.curator.engine.versions() == (1,)


def test_a_raised_budget_keeps_the_version_and_what_was_answered(made: tuple[Path, tuple[str, ...]]) -> None:
    directory, statements = made
    with _open(directory) as data:
        first = _asked(data, statements)
        entries = len(data.history())
        with pytest.raises(BudgetRefused):
            data.ask(DEAR, epsilon="1.2")
    _edit(directory, "epsilon = 1\n", "epsilon = 2\n")
    with _open(directory) as data:
        assert data.curator.prepare() == 1 and data.curator.engine.versions() == (1,)
        raised, *before = data.history()
        assert len(before) == entries, "one entry, and none of a version"
        assert raised.kind is EntryKind.BUDGET and raised.at and raised.cost.loss == 0
        assert raised.detail == f"by {system_user()}: epsilon 1 to 2: declared in the catalogue"
    _assert_free(directory, statements, first)
    with _open(directory) as data:
        spent = data.curator.balance().spent
        assert not data.ask(DEAR, epsilon="1.2").cost.free and data.curator.balance().spent.loss > spent.loss
    # Opened alone it reads every entry again: the chain, the budgets and the sums.
    path = directory / ".lapwing" / "ledger.sqlite"
    with LocalLedger.open(path, source_id="oracle", home=directory.parent / "home") as ledger:
        assert ledger.balance().budget.epsilon == 2 and ledger.balance().ceiling.epsilon == 3


def test_no_question_raises_a_budget(tmp_path: Path) -> None:
    """Between the edit and the owner's act the ledger has the old budget, and whoever is refused hears why."""
    directory = _made(tmp_path, "approximate", "unbounded")
    with _open(directory) as data:
        first = _asked(data, KNOWN)
    _edit(directory, "epsilon = 1\n", "epsilon = 2\n")
    _assert_free(directory, KNOWN, first)
    with _open(directory) as data:
        for sql, epsilon in ((DEAR, "1.5"), (f"{DEAR} WITH PRIVACY (error = 0.5)", None)):
            with pytest.raises(BudgetRefused) as refused:
                data.ask(sql, epsilon=epsilon)
            assert refused.value.hint == "the catalogue says epsilon 2; epsilon 1 is in force until an owner prepares"
        assert data.curator.balance().budget.epsilon == 1 and data.history()[0].kind is not EntryKind.BUDGET
    shown = run("-C", directory, "budget", home=tmp_path / "home")
    assert shown.status == 0 and "epsilon 1 is in force until an owner prepares" in shown.err


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('unit = "person"\n', 'unit = "person"\ndescription = "people"\n', "dataset.description"),
        ("[defaults]\nepsilon = 0.1\n", "[defaults]\nepsilon = 0.4\n", "defaults.epsilon"),
        ("[defaults]\nepsilon = 0.1\n", "[defaults]\nepsilon = 0.1\nconfidence = 0.9\n", "defaults.confidence"),
        ("epsilon = 1\n", "epsilon = 0.9\n", "budget.epsilon"),
        ("ceiling = { epsilon = 3 }", "ceiling = { epsilon = 2 }", "budget.ceiling"),
        ("[defaults]\n", "[limits]\nper_statement = 0.05\n[defaults]\n", "limits.per_statement"),
        ("[defaults]\n", "[limits]\nper_day = 0.05\n[defaults]\n", "limits.per_day"),
        ("format = 1\n", "format = 1 # a remark\n", None),
    ],
)
def test_no_policy_is_a_new_version(tmp_path: Path, old: str, new: str, key: str | None) -> None:
    directory = _made(tmp_path, "approximate", "unbounded")
    statements = (*(sql for sql in KNOWN if key != "defaults.confidence" or "PRIVACY" not in sql), FOUND_KEYS)
    with _open(directory) as data:
        first = [data.ask(sql, epsilon=EPSILONS[sql], confidence="0.95") for sql in statements]
        history = data.history()
    _edit(directory, old, new)
    with _open(directory) as data:
        assert data.curator.policy_changes() == (() if key is None else (key,))
        assert data.curator.prepare() == 1 and data.curator.engine.versions() == (1,)
        assert data.curator.policy_changes() is None
        assert data.history()[-len(history) :] == history
        assert [entry.kind for entry in data.history()[: -len(history)]] == ([EntryKind.BUDGET] if key == "budget.epsilon" else [])
        assert data.curator.balance().ceiling.epsilon == 3
        for sql, was in zip(statements, first, strict=True):
            again = data.ask(sql, epsilon=EPSILONS[sql], confidence="0.95")
            assert again.cost.free and again.stored == was.stored and again.table == was.table, sql
        assert data.curator.prepare() == 2, "a catalogue that did not change is prepared for its rows"


def test_a_ceiling_is_final_on_a_local_ledger(tmp_path: Path) -> None:
    directory = _made(tmp_path, "approximate", "unbounded")
    statements = (*KNOWN, FOUND_KEYS)
    with _open(directory) as data:
        first = _asked(data, statements)
    _edit(directory, "{ epsilon = 3 }", "{ epsilon = 5 }")
    _assert_free(directory, statements, first)
    with _open(directory) as data, pytest.raises(PreparationError, match="override-needed"):
        data.curator.prepare()
    with _open(directory) as data:
        assert data.curator.prepare(override="a new study") == 1
        assert data.history()[0].kind is EntryKind.OVERRIDE and "budget.ceiling" in data.history()[0].detail
        assert data.curator.balance().ceiling.epsilon == 3, "a reason is written down, and the promise stays"
    _assert_free(directory, statements, first)
    _edit(directory, "epsilon = 1\n", "epsilon = 4\n")
    with _open(directory) as data, pytest.raises(CatalogueError, match="budget-above-ceiling"):
        data.curator.prepare(override="more")
    with _open(directory) as data:
        assert data.curator.balance().budget.epsilon == 1


def test_a_budget_is_lowered_to_what_is_spent_and_not_below(tmp_path: Path) -> None:
    directory = _made(tmp_path, "pure", "unbounded")
    with _open(directory) as data:
        data.ask(DEAR, epsilon="0.5")
    _edit(directory, "epsilon = 1\n", "epsilon = 0.3\n")
    with _open(directory) as data, pytest.raises(CatalogueError, match="budget-below-spent"):
        data.curator.prepare()
    _edit(directory, "epsilon = 0.3\n", "epsilon = 0.55\n")
    with _open(directory) as data:
        assert data.curator.prepare() == 1 and data.curator.balance().remaining.loss < 10**12


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('delta = "2^-30"', "delta = 0"),
        ('delta = "2^-30"', 'delta = "2^-31"'),
        ('delta = "2^-30"', 'delta = "2^-30"\norder = 32'),
        ('neighbours = "unbounded"', 'neighbours = "bounded"\nunits = 50'),
        ('unit = "person"\n', 'unit = "family"\n'),
    ],
)
def test_what_answers_were_charged_for_is_no_policy(tmp_path: Path, old: str, new: str) -> None:
    directory = _made(tmp_path, "approximate", "unbounded")
    _edit(directory, old, new)
    _edit(directory, "epsilon = 1\n", "epsilon = 2\n")
    with _open(directory) as data:
        assert data.curator.policy_changes() is None
        with pytest.raises(PreparationError, match="override-needed"):
            data.curator.prepare()
        with pytest.raises(PreparationError, match="snapshot-outdated"):
            data.ask(KNOWN[0], epsilon="0.1")
        assert data.curator.balance().budget.epsilon == 1


@pytest.mark.parametrize(
    ("budget", "old", "new"),
    [
        ("statistics_share = 0\nnorms_share = 0\n", 'unit = "person"\n', 'unit = "person"\nunits = 900\n'),
        ("", "delta =", "norms_share = 0.3\ndelta ="),
    ],
    ids=["units", "norms"],
)
def test_what_shapes_a_plan_is_the_versions_own(tmp_path: Path, budget: str, old: str, new: str) -> None:
    """An estimate or a share in the catalogue changes no bound of the version that there is; the next one has it."""
    directory = _made(tmp_path, "approximate", "unbounded", budget=budget)
    with _open(directory) as data:
        first = _asked(data, KNOWN)
    _edit(directory, old, new)
    _assert_free(directory, KNOWN, first)
    with _open(directory) as data:
        assert data.curator.prepare() == 2 and not data.ask(KNOWN[1], epsilon="0.1").cost.free


def test_an_owner_may_want_a_version_all_the_same(tmp_path: Path) -> None:
    directory = _made(tmp_path, "approximate", "unbounded")
    _edit(directory, "epsilon = 1\n", "epsilon = 2\n")
    with _open(directory) as data:
        assert data.curator.prepare(new_version=True) == 2 and data.curator.balance().budget.epsilon == 2
    _edit(directory, "epsilon = 2\n", "epsilon = 2.5\n")
    _edit(directory, "max = 500", "max = 400")
    with _open(directory) as data:
        assert data.curator.prepare() == 3 and data.curator.balance().budget.epsilon == 2.5, "with other bounds there is a version"
        data.curator.retire(3)
    _edit(directory, "epsilon = 2.5\n", "epsilon = 2.6\n")
    with _open(directory) as data:
        assert data.curator.prepare() == 4, "the version that is left was prepared with other bounds"


def test_the_owner_is_told_what_was_changed(tmp_path: Path) -> None:
    directory, home = _made(tmp_path, "pure", "unbounded"), tmp_path / "home"
    with _open(directory) as data:
        first = _asked(data, KNOWN[:1])
    _edit(directory, "epsilon = 1\n", "epsilon = 2\n")
    _edit(directory, 'unit = "person"\n', 'unit = "person"\ndescription = "people"\n')
    said = run("-C", directory, "prepare", home=home)
    assert said.status == 0, said.err
    *lines, balance = said.out.splitlines()
    assert lines == [
        "The budget is raised from epsilon 1 to 2.",
        "Changed: dataset.description.",
        "Version 1 stays: nothing that it is made of changed. 3 stored answers stay free.",
    ]
    assert balance.endswith("is left.")
    _assert_free(directory, KNOWN[:1], first)
    again = run("-C", directory, "prepare", "--new-version", "--accept-losses", home=home)
    assert again.status == 0 and again.out.startswith("Version 2 of oracle is prepared")
