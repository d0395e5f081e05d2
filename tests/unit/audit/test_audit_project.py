"""Invented neighbours: they fit the catalogue, differ in one unit, and show mistakes that are planted in the kernel."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.audit.invented import Style, invent, throwaway_catalogue, toml_text
from lapwing.audit.oracle import ExactResult
from lapwing.audit.project import InventedProject, invented_project
from lapwing.catalog import load, parse
from lapwing.data_set import DataSet
from lapwing.demo import write_demo
from lapwing.errors import LapwingError
from lapwing.kernel import release as release_module
from lapwing.kernel import sensitivity
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.sensitivity import RowRange, Sensitivity

VISITS = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demonstration's catalogue with its public tables; the protected ones are deleted, so that nothing can read them."""
    directory = tmp_path_factory.mktemp("audit") / "clinic"
    write_demo(directory, patients=5)
    for name in ("patients", "visits", "prescriptions"):
        (directory / f"{name}.parquet").unlink()
    return directory / "lapwing.toml"


def test_a_catalogue_survives_being_written_again(catalogue: Path) -> None:
    document = tomllib.loads(catalogue.read_text(), parse_float=Decimal)
    assert tomllib.loads(toml_text(document), parse_float=Decimal) == document
    before, after = load(catalogue), parse(throwaway_catalogue(catalogue, epsilon=1000))
    assert [table.columns for table in before.tables] == [table.columns for table in after.tables]
    assert before.dataset.neighbours is after.dataset.neighbours and before.declared_budget.delta == after.declared_budget.delta
    assert after.declared_budget.statistics_share == 0 and after.dataset.id != before.dataset.id
    assert before.fingerprint() != after.fingerprint(), "another registry entry, another ledger"


@pytest.mark.parametrize("style", Style)
def test_invented_units_keep_to_their_caps_and_their_own_keys(catalogue: Path, tmp_path: Path, style: Style) -> None:
    source, _ = invent(catalogue, tmp_path / "scout", epsilon=1000)
    one, other = (source.unit_rows(unit, style, seed=1) for unit in (1, 2))
    caps = {table.name: table.rows_per_unit_max for table in source.declaration.tables}
    for table, rows in one.items():
        assert 1 <= len(rows) <= caps[table]
        if style is not Style.PLAIN:
            assert len(rows) == min(caps[table], 500)
    assert {row["patient_id"] for row in one["visits"]} == {one["patients"][0]["patient_id"]}
    assert {row["visit_id"] for row in one["prescriptions"]} <= {row["visit_id"] for row in one["visits"]}
    assert not {row["visit_id"] for row in one["visits"]} & {row["visit_id"] for row in other["visits"]}
    assert source.unit_rows(1, style, seed=1) == one, "the same on every run"
    if style is Style.HIGH:
        assert {row["minutes"] for row in one["visits"]} == {480} and one["patients"][0]["income"] == 200_000.0
    if style is Style.SPREAD:
        assert len({row["code"] for row in one["visits"]}) > 1, "values come from the public table"


def test_the_worst_invented_unit_reaches_the_certificate(catalogue: Path) -> None:
    with invented_project(catalogue) as project:
        assert project.tables() == ["patients", "visits", "prescriptions"]
        found = project.audit(VISITS, epsilon="8", samples=400, asks=0)
    assert 0.99 < found.share <= 1 and not found.caught


def test_a_sensitivity_that_is_too_small_is_found_for_certain(catalogue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true_bound = sensitivity.rows_weighing

    def half(neighbours: Neighbours, *, weight: int, row: RowRange) -> Sensitivity:
        bound = true_bound(neighbours, weight=weight, row=row)
        return Sensitivity(l1=bound.l1 // 2, l2_squared=bound.l2_squared // 4, linf=bound.linf // 2)

    monkeypatch.setattr(sensitivity, "rows_weighing", half)
    with invented_project(catalogue) as project:
        found = project.audit("SELECT SUM(income) AS s FROM patients", epsilon="8", samples=200, asks=0)
    assert found.share > 1.9 and found.caught and found.asked is None


@pytest.mark.slow
def test_noise_that_is_forgotten_is_found_by_asking(catalogue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_law: object, values: Sequence[int], **_terms: object) -> list[int]:
        return list(values)

    monkeypatch.setattr(release_module, "add_noise", silent)
    with invented_project(catalogue) as project:
        found = project.audit(VISITS, epsilon="8", samples=200, asks=60)
    assert found.share <= 1, "the certificate is right; what is released is not"
    assert found.released.caught and found.asked is not None and found.asked.caught


def test_a_price_that_depends_on_the_data_is_found(catalogue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true_measure = InventedProject._measure

    def dearer(self: InventedProject, data_set: DataSet, statement: str, price: Fraction) -> ExactResult:
        return true_measure(self, data_set, statement, 2 * price if data_set is self.sets[-1] else price)

    monkeypatch.setattr(InventedProject, "_measure", dearer)
    with invented_project(catalogue) as project, pytest.raises(LapwingError) as error:
        project.audit(VISITS, epsilon="1", samples=100, asks=0)
    assert error.value.code == "audit-plans-differ"


ROWS = """
format = 1
[dataset]
id = "answers"
unit = "row"
neighbours = "{neighbours}"
units = 100
[budget]
epsilon = 1
[tables.first]
source = "first.parquet"
unit = "row"
[tables.first.columns]
age = {{ type = "integer", min = 0, max = 10 }}
[tables.second]
source = "second.parquet"
unit = "row"
[tables.second.columns]
age = {{ type = "integer", min = 0, max = 10 }}
"""


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
def test_where_rows_are_units_one_row_of_one_table_is_the_difference(tmp_path: Path, neighbours: str) -> None:
    (tmp_path / "lapwing.toml").write_text(ROWS.format(neighbours=neighbours), encoding="utf-8")
    source, _ = invent(tmp_path / "lapwing.toml", tmp_path / "scout", epsilon=1000)
    assert source.places() == ["first", "second"]
    assert [len(rows) for rows in source.unit_rows(7, Style.HIGH, seed=1, only="second").values()] == [0, 1]
    with invented_project(tmp_path / "lapwing.toml") as project:
        for table in ("first", "second"):
            found = project.audit(f"SELECT COUNT(*) AS n, SUM(age) AS s FROM {table}", epsilon="8", samples=200, asks=0)
            assert 0.999 < found.share <= 1, "one row reaches what is certified"
            assert not found.caught
