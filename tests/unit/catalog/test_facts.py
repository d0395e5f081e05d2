"""From a declaration to the facts that certification relies on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lapwing.catalog import Settings, parse
from lapwing.catalog.facts import PublicValues, facts
from lapwing.errors import CatalogueError
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import IntegerDomain, TextDomain
from lapwing.kernel.neighbours import Neighbours
from tests.unit.catalog.mistakes import CLINIC

VALUES: PublicValues = {
    "clinics": {"city": ["Ulm", "Aachen", None, "Ulm", "ulm", "Öhringen", "Zwolle"]},
    "diagnoses": {"code": ["J11", "J10", "C50"], "chapter": ["X", "II"]},
}


def test_the_clinic() -> None:
    clinic = parse(CLINIC)
    known = facts(clinic, VALUES, version=7)
    assert (known.source_id, known.version, known.neighbours, known.account) == (
        "clinic-2026",
        7,
        Neighbours.UNBOUNDED,
        Account.APPROXIMATE,
    )
    assert list(known.tables) == ["patients", "visits", "prescriptions"]
    assert [(table.rows_per_unit_max, table.rows_max) for table in known.tables.values()] == [
        (1, 1_000_000),
        (200, 50_000_000),
        (1_000, 100_000_000),
    ]
    for table in clinic.tables:
        for column in table.columns:
            if column.values_from is None:
                assert known.table(table.name).columns[column.name] == column.domain
    assert known.public_table("clinics").key == "clinic_id"
    assert known.public_table("clinics").columns["clinic_id"] == IntegerDomain(1, 12, False)


def test_values_of_public_tables_in_the_order_of_their_bytes() -> None:
    known = facts(parse(CLINIC), VALUES, version=1)
    assert known.public_table("clinics").columns["city"] == TextDomain(("Aachen", "Ulm", "Zwolle", "ulm", "Öhringen"))
    assert known.public_table("clinics").columns["kind"] == TextDomain(("hospital", "practice"))
    assert known.table("visits").columns["code"] == TextDomain(("C50", "J10", "J11"))


def test_other_joins_the_values_taken_over() -> None:
    text = CLINIC.replace('values_from = "diagnoses.code"', 'values_from = "diagnoses.code", other = "rest"')
    assert facts(parse(text), VALUES, version=1).table("visits").columns["code"] == TextDomain(("C50", "J10", "J11", "rest"))


def test_pure_and_bounded() -> None:
    text = CLINIC.replace('"2^-40"', "0").replace("delta_keys_share = 0.5\n", "").replace("unbounded", "bounded")
    known = facts(parse(text), VALUES, version=1)
    assert (known.account, known.neighbours) == (Account.PURE, Neighbours.BOUNDED)


def test_protected_columns_take_nothing_from_values_given_for_them() -> None:
    """Values under the name of a protected table, as a confused caller might pass, change nothing."""
    meddled = {**VALUES, "patients": {"sex": ["secret"]}, "prescriptions": {"drug": ["secret"]}}
    assert facts(parse(CLINIC), meddled, version=1) == facts(parse(CLINIC), VALUES, version=1)


def test_missing_values() -> None:
    with pytest.raises(CatalogueError, match=r"clinics\.city") as caught:
        facts(parse(CLINIC), {}, version=1)
    assert caught.value.code == "public-values-missing"


def test_too_many_values_stay_open_or_are_refused() -> None:
    clinic = parse(CLINIC)
    few = Settings(values_per_column_max=2)
    with pytest.raises(CatalogueError, match="more than 2 values") as caught:
        facts(clinic, VALUES, version=1, settings=few)
    assert caught.value.code == "catalogue-limit"
    visits = clinic.table("visits")
    open_code = tuple(replace(column, values_from=None) for column in visits.columns)
    without = replace(clinic, tables=(clinic.tables[0], replace(visits, columns=open_code), clinic.tables[2]))
    known = facts(without, VALUES, version=1, settings=few)
    assert known.public_table("diagnoses").columns["code"] == TextDomain(None, False)
    assert known.public_table("diagnoses").columns["chapter"] == TextDomain(("II", "X"))
