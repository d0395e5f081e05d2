"""What a catalogue declares: the clinic in full, defaults, budgets, fingerprints, warnings."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.catalog import ColumnRef, EngineKind, Hop, UnitPath, load, parse
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account, budget_for
from lapwing.kernel.domains import BooleanDomain, DateDomain, IntegerDomain, KeyDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.neighbours import Neighbours
from tests.unit.catalog.mistakes import CLINIC, HERE

DAY_MICROSECONDS = 86_400_000_000
SMALLEST = """
format = 1
dataset = { id = "d", unit = "person" }
budget = { epsilon = 1 }
[tables.t]
source = "t.csv"
unit = "who"
columns.who = { type = "key", of = "text" }
"""


class TestClinic:
    clinic = parse(CLINIC)

    def test_data_set(self) -> None:
        dataset = self.clinic.dataset
        assert (dataset.id, dataset.engine, dataset.unit, dataset.neighbours) == (
            "clinic-2026",
            EngineKind.DUCKDB,
            "patient",
            Neighbours.UNBOUNDED,
        )
        assert self.clinic.defaults.epsilon == Fraction(1, 10)
        assert self.clinic.defaults.confidence == Fraction(19, 20)
        assert self.clinic.warnings == ()

    def test_units_over_two_foreign_keys(self) -> None:
        patients, visits, prescriptions = self.clinic.tables
        end = ColumnRef("patients", "patient_id")
        to_patients, to_visits = Hop("patient_id", end), Hop("visit_id", ColumnRef("visits", "visit_id"))
        assert patients.unit == UnitPath((), end)
        assert visits.unit == UnitPath((to_patients,), end)
        assert prescriptions.unit == UnitPath((to_visits, to_patients), end)

    def test_caps(self) -> None:
        assert [(table.one_row_per_unit, table.rows_per_unit_max, table.rows_max) for table in self.clinic.tables] == [
            (True, 1, 1_000_000),
            (False, 200, 50_000_000),
            (False, 1_000, 100_000_000),
        ]

    def test_domains(self) -> None:
        patients, visits, prescriptions = self.clinic.tables
        assert patients.column("patient_id").domain == KeyDomain(nullable=False)
        assert patients.column("birth_year").domain == IntegerDomain(1920, 2020)
        assert patients.column("sex").domain == TextDomain(("f", "m", "x"))
        assert patients.column("smoker").domain == BooleanDomain()
        assert patients.column("vaccinated").domain == BooleanDomain(nullable=False)
        assert patients.column("income").domain == RealDomain(Fraction(0), Fraction(200_000), True, 10**6)
        assert visits.column("cost").domain == RealDomain(Fraction(0), Fraction(5_000), True, 100)
        assert visits.column("day").domain == DateDomain(19_723, 20_453)
        assert visits.column("started").domain == TimestampDomain(19_723 * DAY_MICROSECONDS, 20_454 * DAY_MICROSECONDS - 1_000_000)
        assert visits.column("code").values_from == ColumnRef("diagnoses", "code")
        assert prescriptions.column("drug").domain == TextDomain(None)

    def test_other_is_one_of_the_values(self) -> None:
        region = self.clinic.table("patients").column("region")
        assert isinstance(region.domain, TextDomain)
        assert region.domain.values is not None
        assert len(region.domain.values) == 21
        assert region.domain.values[-1] == region.other == "elsewhere"

    def test_names_of_the_source(self) -> None:
        columns = {column.name: column.source_name for column in self.clinic.table("prescriptions").columns}
        assert columns == {"visit_id": "visit_id", "drug": "drug", "dose_mg": "dose (mg)"}

    def test_public_tables(self) -> None:
        assert [(table.name, table.key) for table in self.clinic.public_tables] == [("clinics", "clinic_id"), ("diagnoses", "code")]
        assert self.clinic.public_table("diagnoses").column("chronic").domain == BooleanDomain()

    def test_budget_and_ceiling_are_those_of_the_kernel(self) -> None:
        delta = Fraction(1, 2**40)
        assert self.clinic.budget() == budget_for(epsilon=Fraction(3), delta=delta)
        assert self.clinic.ceiling() == budget_for(epsilon=Fraction(6), delta=delta)
        assert self.clinic.budget().loss_total < self.clinic.ceiling().loss_total

    @pytest.mark.parametrize("name", ["clinics", "nowhere"])
    def test_tables_that_are_not_there(self, name: str) -> None:
        with pytest.raises(Refused) as caught:
            self.clinic.table(name)
        assert caught.value.code == "unknown-table"

    def test_columns_and_public_tables_that_are_not_there(self) -> None:
        with pytest.raises(Refused, match="unknown-table"):
            self.clinic.public_table("patients")
        with pytest.raises(Refused, match="unknown-column"):
            self.clinic.table("patients").column("name")
        with pytest.raises(Refused, match="unknown-column"):
            self.clinic.public_table("clinics").column("name")


class TestDefaults:
    smallest = parse(SMALLEST)

    def test_what_is_not_said(self) -> None:
        assert self.smallest.dataset.neighbours is Neighbours.UNBOUNDED
        assert self.smallest.dataset.units is None
        assert self.smallest.declared_budget.delta == Fraction(1, 2**40)
        assert self.smallest.declared_budget.delta_keys_share == Fraction(1, 2)
        assert self.smallest.ceiling() == self.smallest.budget()
        assert self.smallest.defaults.epsilon == Fraction(1, 10)
        assert self.smallest.defaults.confidence == Fraction(19, 20)
        table = self.smallest.table("t")
        assert (table.one_row_per_unit, table.rows_per_unit_max, table.rows_max) == (False, 1_000, 10**9)
        assert table.column("who").domain == KeyDomain(nullable=True, text=True)
        assert self.smallest.warnings == ()

    def test_a_statement_never_defaults_to_more_than_the_budget(self) -> None:
        assert parse(SMALLEST.replace("epsilon = 1", "epsilon = 0.01")).defaults.epsilon == Fraction(1, 100)

    def test_a_cap_never_exceeds_the_rows(self) -> None:
        assert parse(SMALLEST.replace('unit = "who"', 'unit = "who"\nrows_max = 10')).table("t").rows_per_unit_max == 10

    def test_without_delta_the_data_set_is_pure(self) -> None:
        pure = parse(SMALLEST.replace("epsilon = 1", "epsilon = 1, delta = 0"))
        assert pure.budget().account is Account.PURE
        assert pure.budget() == budget_for(epsilon=Fraction(1), delta=Fraction(0))


class TestWarnings:
    def warnings(self, text: str) -> list[str]:
        return [warning.code for warning in parse(text).warnings]

    def test_delta_at_its_edge(self) -> None:
        """50,000 units are declared: 1/500,000 is too large, a little less is not."""
        assert self.warnings(CLINIC.replace('"2^-40"', "2e-6")) == ["delta-large"]
        assert self.warnings(CLINIC.replace('"2^-40"', "1.999999e-6")) == []

    def test_delta_without_declared_units(self) -> None:
        """Then the largest number of rows stands for the number of units."""
        text = CLINIC.replace("units = 50_000\n", "")
        assert self.warnings(text.replace('"2^-40"', "1e-9")) == ["delta-large"]
        assert self.warnings(text.replace('"2^-40"', "0.999e-9")) == []

    def test_what_is_printed(self) -> None:
        (warning,) = parse(CLINIC.replace('"2^-40"', "1e-5")).warnings
        assert str(warning) == (
            "[delta-large] lapwing.toml:13:9: delta = 0.00001 is large for 50000 units\n"
            "  13 | delta = 1e-5\n"
            "     |         ^^^^ (stay below 1/(10 * units): at 1/units, publishing one unit's rows in full would be allowed)"
        )

    def test_a_coarse_grid(self) -> None:
        coarse = "income = { type = 'real', min = 0, max = 1, steps = 4 }"
        (warning,) = parse(CLINIC.replace('income = { type = "real", min = 0, max = 200_000 }', coarse)).warnings
        assert warning.code == "grid-coarse"
        assert "only 5 different values" in warning.message

    def test_an_order_far_from_the_best(self) -> None:
        declared = CLINIC.replace('"2^-40"', '"2^-40"\norder = 200')
        (warning,) = parse(declared).warnings
        assert warning.code == "order-far" and warning.hint is not None
        best = warning.hint.rsplit(" ", 1)[1].strip("`")
        assert self.warnings(declared.replace("order = 200", f"order = {best}")) == []


class TestFingerprint:
    def test_it_is_stable(self) -> None:
        """The text that is digested, written out: changing it would cut every existing ledger off from its data set."""
        canonical = '{"engine":"duckdb","fingerprint":1,"sources":["patients.parquet","prescriptions.parquet","visits/*.parquet"]}'
        assert parse(CLINIC).fingerprint() == hashlib.sha256(canonical.encode()).hexdigest()

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('id = "clinic-2026"', 'id = "another"'),
            ("epsilon = 3", "epsilon = 1"),
            ("max = 480", "max = 240"),
            ('sex = { type = "text", values = ["f", "m", "x"] }', 'sex = { type = "text" }'),
            ("rows_per_unit_max = 200", "rows_per_unit_max = 2"),
            ("clinics.csv", "clinics.parquet"),
            ("units = 50_000", "units = 1_000"),
            ("format = 1", "format = 1 # and a comment"),
            ("visit_id -> visits.visit_id", " visit_id->visits . visit_id "),
            ('visit_id = { type = "key" }\npatient_id', 'visit = { type = "key", from = "visit_id" }\npatient_id'),
            ('unit = "patient"', 'unit = "household"'),
            ("unbounded", "bounded"),
            ("patient_id -> patients.patient_id", "patient_id"),
            ('patient_id = { type = "key", null = false }', 'patient_id = { type = "key", from = "household_id" }'),
        ],
    )
    def test_what_it_does_not_depend_on(self, old: str, new: str) -> None:
        text = CLINIC.replace(old, new).replace("-> visits.visit_id", "-> visits.visit" if "visit = {" in new else "-> visits.visit_id")
        assert text != CLINIC
        assert parse(text).fingerprint() == parse(CLINIC).fingerprint()

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"patients.parquet"', '"people.parquet"'),
            ('"visits/*.parquet"', '"visits/2026.parquet"'),
        ],
    )
    def test_what_it_depends_on(self, old: str, new: str) -> None:
        text = CLINIC.replace(old, new)
        assert text != CLINIC
        assert parse(text).fingerprint() != parse(CLINIC).fingerprint()

    def test_order_and_names_of_tables_do_not_matter(self) -> None:
        head, *sections = CLINIC.split("[tables.")
        patients, patient_columns, visits, visit_columns, prescriptions, rest = sections
        last, public = rest.split("[public.", 1)
        turned = [head, prescriptions, last, visits, visit_columns, patients, patient_columns + "[public." + public]
        text = (
            "[tables.".join(turned)
            .replace("visits]", "stays]")
            .replace("visits.columns", "stays.columns")
            .replace("-> visits.", "-> stays.")
        )
        assert [table.name for table in parse(text).tables] == ["prescriptions", "stays", "patients"]
        assert parse(text).fingerprint() == parse(CLINIC).fingerprint()

    def test_files_elsewhere_are_other_rows(self, tmp_path: Path) -> None:
        (tmp_path / "clinic.toml").write_text(CLINIC)
        here, there = load(HERE / "clinic.toml"), load(tmp_path / "clinic.toml")
        assert here.fingerprint() != there.fingerprint()
        assert there.source_path(there.table("visits")) == str(tmp_path.resolve() / "visits/*.parquet")
        assert load(tmp_path / "." / "clinic.toml").fingerprint() == there.fingerprint()

    def test_an_absolute_source_is_the_same_from_everywhere(self, tmp_path: Path) -> None:
        (tmp_path / "near").mkdir()
        (tmp_path / "a.toml").write_text(SMALLEST.replace("t.csv", f"{tmp_path}/t.csv"))
        (tmp_path / "near" / "b.toml").write_text(SMALLEST.replace("t.csv", "../t.csv"))
        assert load(tmp_path / "a.toml").fingerprint() == load(tmp_path / "near" / "b.toml").fingerprint()
