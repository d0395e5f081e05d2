"""The life of a data set: prepare, answer, replay, new version, retire, change of declaration, incident."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import random
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest

from lapwing.audit.plan_shapes import shapes
from lapwing.audit.worlds import declare, random_world
from lapwing.curator.curator import Curator
from lapwing.curator.stored_tables import decode, encode
from lapwing.errors import BudgetRefused, CatalogueError, Incident, LapwingError, PreparationError, Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.ir import Plan
from lapwing.kernel.laws import Law
from lapwing.kernel.noise import additive, reference


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    declare(random_world(random.Random(4)), tmp_path / "data", neighbours="unbounded", delta='"2^-30"')
    _set(tmp_path / "data", "[tables.people]", "statistics_share = 0\n[tables.people]")
    return tmp_path / "data"


def _set(directory: Path, old: str, new: str) -> None:
    catalogue = directory / "lapwing.toml"
    catalogue.write_text(catalogue.read_text().replace(old, new, 1))


def _open(directory: Path) -> Curator:
    return Curator(directory, home=directory.parent / "home")


def _plan(curator: Curator, name: str = "ranked, by clinic", *, scale: int = 2**30) -> Plan:
    """A shape whose noise is large enough for the budget to pay for it."""
    plan = shapes(Account.APPROXIMATE)[name](curator.facts)
    law = dataclasses.replace(plan.queries[0].vectors[0].law, scale=type(plan.queries[0].vectors[0].law.scale)(scale))
    vectors = tuple(dataclasses.replace(vector, law=law) for vector in plan.queries[0].vectors)
    return Plan((dataclasses.replace(plan.queries[0], vectors=vectors),))


def test_an_answer_is_charged_once_and_replayed_free(directory: Path) -> None:
    with _open(directory) as curator:
        assert curator.prepare() == 1
        plan = _plan(curator)
        first = curator.answer(plan, summary="visits by clinic")
        released = first.released
        assert not first.free and len(released.tables[0].groups) == 5
        spent = curator.balance().spent
        assert spent == certify(plan, curator.facts).cost
        again = curator.answer(plan, summary="visits by clinic", analyst="somebody else")
        assert again.free and again.stored == first.stored and again.released == released and curator.balance().spent == spent
        assert encode(decode(encode(released))) == encode(released)


def test_the_owner_chooses_who_draws(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenDP draws where the catalogue says so, at the same price; where it is not installed, nothing opens and nothing is charged."""
    drawn: list[int] = []
    add = reference.opendp_noise_added

    def counted(law: Law, values: Sequence[int]) -> list[int]:
        drawn.append(len(values))
        return add(law, values)

    monkeypatch.setattr(additive, "opendp_noise_added", counted)
    with _open(directory) as curator:
        curator.prepare()
        curator.answer(_plan(curator), summary="drawn by Lapwing")
        spent = curator.balance().spent
        assert drawn == []
    _set(directory, "[dataset]", '[dataset]\nnoise = "opendp"')
    with _open(directory) as curator:
        answered = curator.answer(_plan(curator, scale=2**31), summary="drawn by OpenDP")
        assert set(drawn) == {5} and len(drawn) == len(answered.released.tables[0].columns)
        assert curator.balance().spent.loss - spent.loss == certify(_plan(curator, scale=2**31), curator.facts).cost.loss
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "opendp" else find(name, *more))
    with pytest.raises(LapwingError) as refused:
        _open(directory)
    assert refused.value.code == "sampler-missing"


def test_what_the_budget_cannot_pay_is_refused_before_any_data_is_read(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _open(directory) as curator:
        curator.prepare()
        monkeypatch.setattr(type(curator.snapshot), "run", lambda *_: pytest.fail("data was read"))
        with pytest.raises(BudgetRefused):
            curator.answer(_plan(curator, scale=1), summary="too dear")
        assert curator.balance().spent.loss == 0


def test_versions_carry_the_budget_over(directory: Path) -> None:
    with _open(directory) as curator:
        curator.prepare()
        curator.answer(_plan(curator), summary="first")
        spent = curator.balance().spent
        assert curator.prepare() == 2
        assert curator.balance().spent == spent
        again = curator.answer(_plan(curator), summary="the same on a new version")
        assert not again.free and curator.balance().spent.loss == 2 * spent.loss
        curator.retire(1)
        assert curator.engine.versions() == (2,)
        curator.retire(2)
        with pytest.raises(PreparationError, match="not-prepared"):
            curator.snapshot  # noqa: B018
        assert curator.prepare() == 3, "a number is never used twice"


def test_a_changed_declaration_is_noticed(directory: Path) -> None:
    catalogue = directory / "lapwing.toml"
    with _open(directory) as curator:
        curator.prepare()
    catalogue.write_text(catalogue.read_text().replace("max = 500", "max = 400"))
    with _open(directory) as curator:
        with pytest.raises(PreparationError, match="snapshot-outdated"):
            curator.snapshot  # noqa: B018
        assert curator.prepare() == 2
        assert curator.facts.version == 2
    catalogue.write_text(catalogue.read_text().replace('neighbours = "unbounded"', 'neighbours = "bounded"\nunits = 50'))
    with _open(directory) as curator:
        with pytest.raises((PreparationError, CatalogueError), match="override-needed"):
            curator.prepare()
        assert curator.prepare(override="the owner decided to protect by replacement") == 3
        assert any(entry.kind == "override" for entry in curator.history())


def test_the_same_source_gets_no_second_budget(directory: Path, tmp_path: Path) -> None:
    with _open(directory) as curator:
        curator.prepare()
    copy = directory / "copy.toml"
    copy.write_text((directory / "lapwing.toml").read_text().replace('id = "oracle"', 'id = "fresh"'))
    (directory / ".lapwing").rename(directory / ".elsewhere")
    with Curator(copy, home=tmp_path / "home") as again, pytest.raises(CatalogueError, match="source-registered"):
        again.prepare()


def test_an_engine_fault_is_charged_opaque_and_closes_the_data_set(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _open(directory) as curator:
        curator.prepare()
        plan, snapshot = _plan(curator), curator.snapshot

        def explode(*_: object) -> None:
            raise duckdb.ConversionException("could not convert 'x-secret' to INT32")

        monkeypatch.setattr(type(snapshot), "_table", explode)
        with pytest.raises(Incident) as caught:
            curator.answer(plan, summary="fails")
        assert "secret" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__context__ is None
        assert curator.balance().spent == certify(plan, curator.facts).cost
        monkeypatch.undo()
        with pytest.raises(Refused, match="data-set-closed"):
            curator.answer(_plan(curator, "filter"), summary="closed")
        curator.reopen("cause found in the engine's log")
        curator.answer(_plan(curator, "filter"), summary="open again")


def test_secret_files_are_for_the_owner_only(directory: Path) -> None:
    with _open(directory) as curator:
        curator.prepare()
        for name in ("ranking.key", "ledger.sqlite", "v000001.duckdb"):
            assert os.stat(directory / ".lapwing" / name).st_mode & 0o077 == 0
        key = curator.state.ranking_key()
        curator.prepare()
        assert curator.state.ranking_key() == key, "unchanged units keep their ranks over versions"


def test_a_failed_preparation_leaves_the_old_version(directory: Path) -> None:
    with _open(directory) as curator:
        curator.prepare()
        (directory / "visits.parquet").write_bytes(b"not parquet")
        with pytest.raises(PreparationError, match="preparation-failed"):
            curator.prepare()
        assert curator.engine.versions() == (1,)
        assert not list((directory / ".lapwing").glob("*.partial"))
        curator.answer(_plan(curator), summary="still answers")


def test_statistics_are_bought_once_and_serve_later_versions(directory: Path) -> None:
    _set(directory, "statistics_share = 0", "statistics_share = 0.1")
    with _open(directory) as curator:
        curator.prepare()
        balance = curator.balance()
        assert 0.09 < balance.spent.loss / balance.budget.loss_total <= 0.1
        assert set(curator.contributions()) == {"visits", "drugs"}, "one row per unit needs no histogram"
        curator.prepare()
        assert curator.balance().spent == balance.spent
        assert sum(entry.kind == "reserve" for entry in curator.history()) == 2
